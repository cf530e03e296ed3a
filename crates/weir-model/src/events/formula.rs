//! Sums and differences of events.

use std::fmt;

use crate::diagnostic::quote;

/// Whether an event is added or subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Added.
    Plus,
    /// Subtracted.
    Minus,
}

/// `A + B - C`: at least one event, the first of them added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula(Vec<(Sign, String)>);

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        let mut words = text.split_ascii_whitespace();
        let mut sign = Sign::Plus;
        loop {
            let Some(event) = words.next().filter(|word| !matches!(*word, "+" | "-")) else {
                return Err(format!(
                    "an event is missing in `{}`; write `A + B - C`",
                    quote(text)
                ));
            };
            if terms.iter().any(|(_, known)| known == event) {
                return Err(format!("`{}` is twice in one formula", quote(event)));
            }
            terms.push((sign, event.to_owned()));
            sign = match words.next() {
                None => return Ok(Self(terms)),
                Some("+") => Sign::Plus,
                Some("-") => Sign::Minus,
                Some(other) => {
                    return Err(format!(
                        "`{}` is between two events; write `+` or `-`",
                        quote(other)
                    ));
                }
            };
        }
    }

    /// The events and their signs.
    pub fn terms(&self) -> impl Iterator<Item = (Sign, &str)> + '_ {
        self.0.iter().map(|(sign, event)| (*sign, event.as_str()))
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (sign, event)) in self.terms().enumerate() {
            match (n, sign) {
                (0, _) => write!(f, "{event}")?,
                (_, Sign::Plus) => write!(f, " + {event}")?,
                (_, Sign::Minus) => write!(f, " - {event}")?,
            }
        }
        Ok(())
    }
}
