//! Amortised latency of demand reads, for Alto: cycles with at least one outstanding, for each of them, of all cores.

use weir_model::capability::Unavailable;
use weir_model::counters::Counter;
use weir_model::events::{EventLibrary, EventTable};

use crate::perf::{self, OnEveryCpu, Session, Target};
use crate::root::Root;

const CYCLES: Counter = Counter::OffcoreCyclesDemandDataRd;
const READS: Counter = Counter::OffcoreDemandDataRd;

/// The open counters of all cores.
#[derive(Debug)]
pub(crate) struct Amortised {
    sessions: OnEveryCpu<Session>,
    table: EventTable,
}

impl Amortised {
    /// Opens the counters.
    ///
    /// # Errors
    /// This processor does not count them, or this user may not.
    pub fn open(root: &Root, library: &EventLibrary) -> Result<Self, Unavailable> {
        let table = perf::table(root, library)?.clone();
        let sessions = OnEveryCpu::open(root, |cores| Ok(session(root, &table, cores)))?;
        let mut open = Self { sessions, table };
        open.counts()?;
        Ok(open)
    }

    /// Cycles and reads since the last call.
    fn counts(&mut self) -> Result<(u64, u64), Unavailable> {
        let amounts = self.sessions.events.window();
        let seen = Session::counters(Some(&self.table), &amounts, true);
        Ok((seen.get(CYCLES)?, seen.get(READS)?))
    }

    /// Cycles for each read since the last call; `None` if there was no read, or the counters were not readable.
    pub fn cycles(&mut self, root: &Root) -> Option<f64> {
        let counts = self.counts();
        let table = &self.table;
        (self.sessions).follow(root, |cores| Ok(session(root, table, cores)));
        let (cycles, reads) = counts.ok()?;
        (reads > 0).then(|| cycles as f64 / reads as f64)
    }
}

/// The counters of some cores.
fn session(root: &Root, table: &EventTable, cores: &[Target]) -> Session {
    Session::open(root, Some(table), &[CYCLES, READS], cores)
}
