//! Thread counts as they are typed.

use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::plan::distinct;

/// One thread count, or a range with both ends in it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Threads(RangeInclusive<u32>);

/// No machine has more cores than this; a longer range is a typing error.
const MOST_THREADS: u32 = 4096;

impl Threads {
    /// Every count of these, in order and once.
    pub fn all(ranges: &[Self]) -> Vec<u32> {
        distinct(ranges.iter().flat_map(|range| range.0.clone()))
    }
}

impl From<u32> for Threads {
    fn from(count: u32) -> Self {
        Self(count..=count)
    }
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = |part: &str| -> std::result::Result<u32, String> {
            match part.trim().parse() {
                Ok(n) if n > u64::from(MOST_THREADS) => Err(format!(
                    "`{text}` is more than {MOST_THREADS} threads, the most that are read; write 4, or 1..32"
                )),
                Ok(n @ 1..) => Ok(n as u32),
                _ => Err(format!(
                    "`{text}` is no number of threads; write 4, or 1..32"
                )),
            }
        };
        let (from, to) = match text.split_once("..").or_else(|| text.split_once('-')) {
            Some((from, to)) => (number(from)?, number(to.trim_start_matches('='))?),
            None => (number(text)?, number(text)?),
        };
        if from > to {
            return Err(format!(
                "the range `{text}` runs backwards; write {to}..{from}"
            ));
        }
        Ok(Self(from..=to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_are_numbers_and_ranges() {
        assert_eq!("4".parse(), Ok(Threads(4..=4)));
        assert_eq!("1..32".parse(), Ok(Threads(1..=32)));
        assert_eq!("2-8".parse(), Ok(Threads(2..=8)));
        assert_eq!("1..=3".parse(), Ok(Threads(1..=3)));
        let twice = [Threads(2..=4), Threads(1..=3), Threads(3..=3)];
        assert_eq!(Threads::all(&twice), [2, 3, 4, 1]);
    }

    #[test]
    fn a_thread_count_of_nonsense_says_what_to_write() {
        for text in ["0", "many", "8..2", "1..", "1..9999999", "-3", ""] {
            let error = text.parse::<Threads>().unwrap_err();
            assert!(error.contains(".."), "{text}: {error}");
        }
        for text in ["8000", "1..8000", "9999999999"] {
            let error = text.parse::<Threads>().unwrap_err();
            assert!(error.contains("more than 4096 threads"), "{text}: {error}");
        }
    }
}
