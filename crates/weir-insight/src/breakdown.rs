//! Cycles lost by cause, and which of them a slower tier adds (SupMario §4.1, equations 1 to 5).
//!
//! Stalls by level are nested: a cycle stalled with a miss of L2 under way is one stalled with a miss of
//! L1 too. So each level's own is a difference, and no cycle is counted twice.

use weir_model::counters::Counter;
use weir_model::insight::Components;

use crate::{InsightError, Run};

/// Shares of the cycles on local memory, by cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lost {
    /// The store buffer was full (BOUND_ON_STORES).
    pub store: Option<f64>,
    /// STALLS_MEM_ANY without STALLS_L1D_MISS.
    pub l1: Option<f64>,
    /// STALLS_L1D_MISS without STALLS_L2_MISS.
    pub l2: Option<f64>,
    /// STALLS_L2_MISS without STALLS_L3_MISS.
    pub l3: Option<f64>,
    /// STALLS_MEM_ANY without STALLS_L3_MISS, also where the levels between are not known.
    pub cache: Option<f64>,
    /// STALLS_L3_MISS.
    pub dram: Option<f64>,
}

/// A counter that a breakdown would have used, and what is not told for want of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold {
    /// Which.
    pub counter: Counter,
    /// Why it is missing.
    pub why: String,
    /// What it would have told.
    pub cost: &'static str,
}

/// Cycles lost in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Breakdown {
    /// Shares of the run's own cycles.
    pub lost: Lost,
    /// What could not be told.
    pub untold: Vec<Untold>,
}

/// Slowdown by cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Cycles for the same work, beyond those on local memory, as a share of them.
    pub slowdown: f64,
    /// What each cause adds.
    pub added: Lost,
    /// Slowdown that no cause accounts for; `None` where a cause is unknown.
    pub other: Option<f64>,
    /// Instructions of the other run for each of the local one. Both are compared for one instruction;
    /// `None` where they were not counted, and both runs are taken for the same work.
    pub instructions: Option<f64>,
    /// What could not be told.
    pub untold: Vec<Untold>,
}

impl Lost {
    fn of(run: &Run<'_>) -> Self {
        let share = |counter| run.share(counter).ok();
        let stalls = [
            Counter::StallsMemAny,
            Counter::StallsL1dMiss,
            Counter::StallsL2Miss,
            Counter::StallsL3Miss,
        ]
        .map(share);
        let [any, l1d, l2, l3] = stalls;
        let without = |outer: Option<f64>, inner: Option<f64>| Some(outer? - inner?);
        Self {
            store: share(Counter::BoundOnStores),
            l1: without(any, l1d),
            l2: without(l1d, l2),
            l3: without(l2, l3),
            cache: without(any, l3),
            dram: l3,
        }
    }

    /// What `self` loses beyond `local`, if each of its cycles is worth so many local ones.
    fn beyond(&self, local: &Self, worth: f64) -> Self {
        let more = |here: Option<f64>, there: Option<f64>| Some(here? * worth - there?);
        Self {
            store: more(self.store, local.store),
            l1: more(self.l1, local.l1),
            l2: more(self.l2, local.l2),
            l3: more(self.l3, local.l3),
            cache: more(self.cache, local.cache),
            dram: more(self.dram, local.dram),
        }
    }

    /// All causes together; `None` where one is unknown.
    pub fn sum(&self) -> Option<f64> {
        Some(self.store? + self.cache? + self.dram?)
    }

    /// In percent, with what is left of `whole`.
    pub fn components(&self, whole: f64) -> Components {
        let percent = |share: Option<f64>| share.map(|s| s * 100.0);
        Components {
            store: percent(self.store),
            l1: percent(self.l1),
            l2: percent(self.l2),
            l3: percent(self.l3),
            cache: percent(self.cache),
            dram: percent(self.dram),
            other: percent(self.sum().map(|sum| whole - sum)),
        }
    }
}

impl Breakdown {
    /// Cycles lost in one run, as shares of its own.
    pub fn of(run: &Run<'_>) -> Self {
        Self {
            lost: Lost::of(run),
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
        let added = Lost::of(other).beyond(&Lost::of(local), worth);
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
