//! Cycles lost by cause, and which of them a slower tier adds (SupMario §4.1, equations 1 to 5).

use weir_model::counters::Counter;
use weir_model::insight::Stalls;

use crate::{InsightError, Run};

/// A counter that a breakdown would have used, and what is unknown without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold {
    /// Which.
    pub counter: Counter,
    /// Why it is missing.
    pub why: String,
    /// What it would have shown.
    pub cost: &'static str,
}

/// Cycles lost in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Breakdown {
    /// Shares of the run's own cycles.
    pub lost: Stalls,
    /// What could not be found.
    pub untold: Vec<Untold>,
}

/// Slowdown by cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Cycles for the same work, beyond those on local memory, as a share of them.
    pub slowdown: f64,
    /// What each cause adds.
    pub added: Stalls,
    /// Slowdown that no cause accounts for; `None` where a cause is unknown.
    pub other: Option<f64>,
    /// Instructions of the other run for each of the local one. Both are compared for one instruction;
    /// `None` where they were not counted, and both runs are taken for the same work.
    pub instructions: Option<f64>,
    /// What could not be found.
    pub untold: Vec<Untold>,
}

impl Breakdown {
    /// Cycles lost in one run, as shares of its own.
    pub fn of(run: &Run<'_>) -> Self {
        Self {
            lost: run.stalls(),
            untold: untold(&[run]),
        }
    }
}

impl Difference {
    /// Where the same work loses more cycles than on local memory. The counts are compared for one
    /// instruction each, as runs of one program never retire quite the same number.
    ///
    /// # Errors
    /// Instructions of one run were counted and none retired.
    pub fn between(local: &Run<'_>, other: &Run<'_>) -> Result<Self, InsightError> {
        some_retired(local)?;
        some_retired(other)?;
        let instructions = match (local.instructions(), other.instructions()) {
            (Ok(here), Ok(there)) => Some(there / here),
            _ => None,
        };
        // Cycles of the other run for each local one, both for one instruction.
        let worth = other.cycles() / local.cycles() / instructions.unwrap_or(1.0);
        let slowdown = worth - 1.0;
        let added = other.stalls().beyond(&local.stalls(), worth);
        Ok(Self {
            slowdown,
            added,
            other: added.sum().map(|sum| slowdown - sum),
            instructions,
            untold: untold(&[local, other]),
        })
    }
}

/// That instructions were counted and are zero is an error, that they were not counted is none.
fn some_retired(run: &Run<'_>) -> Result<(), InsightError> {
    match run.count(Counter::Instructions) {
        Ok(0.0) => Err(InsightError::Impossible {
            counter: Counter::Instructions,
            value: 0,
            why: "but cycles passed: the command ended before it could be counted".into(),
        }),
        _ => Ok(()),
    }
}

/// Counters and what they tell.
const TELLS: [(Counter, &str); 6] = [
    (Counter::Instructions, "whether both runs did the same work"),
    (Counter::StallsMemAny, "the part of L1, and of all caches"),
    (Counter::StallsL1dMiss, "L1 apart from L2"),
    (Counter::StallsL2Miss, "L2 apart from L3"),
    (Counter::StallsL3Miss, "DRAM apart from the caches"),
    (Counter::BoundOnStores, "the part of stores"),
];

fn untold(runs: &[&Run<'_>]) -> Vec<Untold> {
    let missing = |&(counter, cost): &(Counter, &'static str)| {
        let why = runs.iter().find_map(|run| run.count(counter).err())?;
        Some(Untold {
            counter,
            why: why.reason,
            cost,
        })
    };
    TELLS.iter().filter_map(missing).collect()
}
