//! A part of a study's work, where workers share it.

use std::str::FromStr;

/// What is asked at every Nth place from the Ith on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which part, counted from 1; 0 is the part without anything.
    which: usize,
    /// How many parts there are.
    of: usize,
}

impl Part {
    /// The part without anything: the study is answered from what is stored, or not at all.
    pub const NOTHING: Self = Self { which: 0, of: 1 };

    /// Whether what is asked at this place belongs to it. What a study asks at a place must not depend on what is
    /// stored.
    pub const fn has(self, place: usize) -> bool {
        self.which > 0 && place % self.of == self.which - 1
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(which, of)| Some((which.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((which, of)) if (1..=of).contains(&which) => Ok(Self { which, of }),
            _ => Err("write which part of how many, such as 1/4".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_in_one_part() {
        for of in 1..6 {
            let parts: Vec<Part> = (1..=of)
                .map(|which| format!("{which}/{of}").parse().unwrap())
                .collect();
            for place in 0..50 {
                assert_eq!(parts.iter().filter(|part| part.has(place)).count(), 1);
                assert!(!Part::NOTHING.has(place));
            }
        }
        for wrong in ["", "1", "0/3", "4/3", "a/b", "1/0", "-1/2"] {
            wrong.parse::<Part>().unwrap_err();
        }
    }
}
