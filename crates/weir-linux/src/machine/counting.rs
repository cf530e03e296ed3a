//! The counters of each thread of a run: of its core, and of the kernel.

use std::sync::{Arc, Mutex, PoisonError};

use weir_model::counters::{Counter, CounterSet};
use weir_model::events::{Budget, EventTable, groups};

use crate::perf::{self, Session, Target};
use crate::root::Root;

/// The most informative counters of a load, in order. Only as many are counted as the processor has counters:
/// multiplexing would need a timer during the measurement.
const WANTED: [Counter; 12] = [
    Counter::Cycles,
    Counter::Instructions,
    Counter::StallsL3Miss,
    Counter::OffcoreCyclesDemandDataRd,
    Counter::OffcoreDemandDataRd,
    Counter::StallsL2Miss,
    Counter::BoundOnStores,
    Counter::L1Miss,
    Counter::FbHit,
    Counter::L3Miss,
    Counter::L3Hit,
    Counter::StallsMemAny,
];

/// Disturbances of a load that are counted at no cost.
const KERNELS: [Counter; 3] = [
    Counter::PageFaults,
    Counter::ContextSwitches,
    Counter::CpuMigrations,
];

/// The events of each thread of a run, encoded by the processor's table if there is one.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    table: Option<Arc<EventTable>>,
    counters: Vec<Counter>,
}

impl Plan {
    /// As many as fit onto the counters at once.
    pub fn of(root: &Root, table: Option<EventTable>) -> Self {
        let mut counters = Vec::new();
        if let Some(table) = &table {
            let budget = Budget::of(table, perf::watchdog(root));
            for counter in WANTED {
                counters.push(counter);
                if groups(table, &counters, budget).len() > 1 {
                    counters.pop();
                }
            }
        }
        counters.extend(KERNELS);
        Self {
            table: table.map(Arc::new),
            counters,
        }
    }
}

/// The counters of one thread: the thread opens them, the run reads them.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(Arc<Mutex<Option<(Session, Plan)>>>);

impl Counts {
    /// Opens the plan's events for the calling thread.
    pub fn open(&self, root: &Root, plan: &Plan) {
        let table = plan.table.as_deref();
        let session = Session::open(root, table, &plan.counters, &[Target::ThisThread]);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((session, plan.clone()));
    }

    /// Counts before this moment are not used.
    pub fn begin(&self) {
        if let Some((session, _)) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            session.start();
        }
    }

    /// The counts since then.
    pub fn end(&self) -> CounterSet {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((session, plan)) => {
                let amounts = session.window();
                Session::counters(plan.table.as_deref(), &amounts, false)
            }
            None => CounterSet::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_model::events::EventLibrary;

    use super::*;

    #[test]
    fn what_is_counted_beside_a_measurement_takes_no_turns() {
        for table in EventLibrary::builtin().tables() {
            let plan = Plan::of(&Root::at("/nowhere"), Some(table.clone()));
            let hardware: Vec<_> = plan.counters.iter().filter(|c| !c.is_software()).collect();
            assert!(hardware.len() >= 3, "{}: {hardware:?}", table.name);
            let budget = Budget::of(table, false);
            assert_eq!(
                groups(table, &plan.counters, budget).len(),
                1,
                "{}",
                table.name
            );
        }
    }
}
