//! Counts that cannot be, and models that do not fit.

use weir_lab::LabError;
use weir_model::counters::Counter;

/// Why counters tell nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InsightError {
    /// Nothing ran while it was counted.
    #[error("`cycles` is zero: nothing ran while it was counted")]
    NothingRan,
    /// A counter that no run of a processor can show.
    #[error("`{counter}` is {value}, {why}")]
    Impossible {
        /// Which.
        counter: Counter,
        /// What it says.
        value: u64,
        /// Why that cannot be, and what may have happened.
        why: String,
    },
    /// Counters that are needed and missing.
    #[error("{what} needs {}", list(.counters))]
    Missing {
        /// What cannot be determined without them.
        what: String,
        /// Which, and why each is missing.
        counters: Vec<(Counter, String)>,
    },
    /// Workloads from which no constants follow.
    #[error("cannot calibrate: {0}")]
    Calibration(String),
    /// A model of another pair of processor and memory.
    #[error("this model is of {of}, not of {wanted}; calibrate one with `weir calibrate`")]
    OtherPair {
        /// What it was fitted for.
        of: String,
        /// What was asked for.
        wanted: String,
    },
    /// A model file that cannot be read.
    #[error("{file}: {why}")]
    ModelFile {
        /// Its path, as the user gave it.
        file: String,
        /// What is wrong, with line and column where known.
        why: String,
    },
    /// Figures that leave nothing to choose an interleaving by.
    #[error("no interleaving follows: {0}")]
    Interleave(String),
}

impl From<InsightError> for LabError {
    fn from(error: InsightError) -> Self {
        let text = error.to_string();
        match error {
            InsightError::Missing { .. } => Self::Lacks(text),
            InsightError::Calibration(_) => Self::Failed(text),
            _ => Self::Nothing(text),
        }
    }
}

fn list(counters: &[(Counter, String)]) -> String {
    let each = counters
        .iter()
        .map(|(counter, why)| format!("`{counter}` ({why})"));
    each.collect::<Vec<_>>().join(", ")
}
