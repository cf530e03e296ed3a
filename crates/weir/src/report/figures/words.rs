//! What is said of a figure on touching it, and the sign next to one that is to be trusted less.

use std::fmt::Write as _;

use weir_model::document::{Point, Steadiness};

pub use crate::output::distinct;
use crate::output::figure;
use crate::report::chart::Sign;

/// `1 thread`, `4 threads`.
pub fn several(count: u32, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The sign of a figure; what physics forbids counts for more than how it scatters.
pub fn sign(point: &Point) -> Option<Sign> {
    if point.theory.as_ref().is_some_and(|t| t.beaten) {
        return Some(Sign::Beaten);
    }
    match point.steadiness? {
        Steadiness::Steady => None,
        Steadiness::Noisy => Some(Sign::Noisy),
        Steadiness::Bimodal => Some(Sign::Bimodal),
        Steadiness::Drifting => Some(Sign::Drifting),
    }
}

/// The limit of a figure and how its repetitions agree, each on a line of its own.
pub fn remarks(point: &Point, unit: &str) -> String {
    let mut text = String::new();
    if let Some(theory) = &point.theory {
        let _ = write!(
            text,
            "\nlimit {} {unit}: {}",
            figure(theory.limit),
            theory.basis
        );
    }
    if let Some(sign) = sign(point) {
        let _ = write!(text, "\n{} {}", sign.glyph(), sign.meaning());
    }
    if point.repetitions > 1 {
        let _ = write!(text, "\n{} repetitions", point.repetitions);
    }
    text
}
