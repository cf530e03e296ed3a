//! Amortised latency of demand reads, for Alto: cycles with at least one outstanding, for each of them, of all cores.

use weir_model::capability::Unavailable;
use weir_model::counters::Counter;
use weir_model::events::{EventLibrary, EventTable};

use crate::perf::{self, Session};
use crate::root::Root;

const CYCLES: Counter = Counter::OffcoreCyclesDemandDataRd;
const READS: Counter = Counter::OffcoreDemandDataRd;

/// The open counters of all cores.
#[derive(Debug)]
pub(crate) struct Amortised {
    session: Session,
    table: EventTable,
}

impl Amortised {
    /// Opens the counters.
    ///
    /// # Errors
    /// This processor does not count them, or this user may not.
    pub fn open(root: &Root, library: &EventLibrary) -> Result<Self, Unavailable> {
        let table = perf::table(root, library)?.clone();
        let cores = perf::every_cpu(root)?;
        let session = Session::open(root, Some(&table), &[CYCLES, READS], &cores);
        let mut open = Self { session, table };
        open.counts()?;
        Ok(open)
    }

    /// Cycles and reads since the last call.
    fn counts(&mut self) -> Result<(u64, u64), Unavailable> {
        let seen = Session::counters(Some(&self.table), &self.session.window(), true);
        Ok((seen.get(CYCLES)?, seen.get(READS)?))
    }

    /// Cycles for each read since the last call; `None` if there was no read, or the counters were not readable.
    pub fn cycles(&mut self) -> Option<f64> {
        let (cycles, reads) = self.counts().ok()?;
        (reads > 0).then(|| cycles as f64 / reads as f64)
    }
}
