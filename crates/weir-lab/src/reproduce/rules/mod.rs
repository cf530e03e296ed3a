//! Which published row is answered by which statistic, one file for each paper.

mod interplay;
mod memo;
mod micro23;
mod miku;
mod supmario;

use super::statistic::Statistic;

/// How one published row is answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The row's id.
    pub id: &'static str,
    /// Whether a parameter of the platform was set from this row.
    pub sets_parameter: bool,
    /// How our figure is computed.
    pub statistic: Statistic,
    /// What to know when comparing; empty if nothing.
    pub note: &'static str,
}

impl Rule {
    /// A row that set a parameter: our figure shows whether the model carries it through.
    const fn calibrated(id: &'static str, statistic: Statistic) -> Self {
        Self {
            id,
            sets_parameter: true,
            statistic,
            note: "",
        }
    }

    /// A row from which nothing was set.
    const fn predicted(id: &'static str, statistic: Statistic) -> Self {
        Self {
            id,
            sets_parameter: false,
            statistic,
            note: "",
        }
    }

    const fn noting(self, note: &'static str) -> Self {
        Self { note, ..self }
    }
}

/// Every rule.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [
        supmario::RULES,
        memo::RULES,
        micro23::RULES,
        interplay::RULES,
        miku::RULES,
    ]
    .into_iter()
    .flatten()
}

/// The rule for a row.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}
