//! Mean latencies of requests that left the core, by class.

use weir_model::counters::Counter;
use weir_model::units::Cycles;

use crate::Run;

/// Mean latencies of the classes of requests; zero where there are none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latencies {
    /// Of all data reads that left the core.
    pub reads: Cycles,
    /// Of those that were prefetches.
    pub prefetches: Cycles,
    /// Of reads for ownership.
    pub stores: Cycles,
}

impl Latencies {
    /// Reads them from a run.
    ///
    /// # Errors
    /// The counter that is missing, and why.
    pub fn of(run: &Run<'_>) -> Result<Self, (Counter, String)> {
        let get = |counter| run.count(counter).map_err(|why| (counter, why.reason));
        let reads = get(Counter::OffcoreDataRd)?;
        let under_way = get(Counter::OffcoreOutstandingDataRd)?;
        let demand = get(Counter::OffcoreDemandDataRd)?;
        let demand_under_way = get(Counter::OffcoreOutstandingDemandDataRd)?;
        let owned = get(Counter::OffcoreDemandRfo)?;
        let owned_under_way = get(Counter::OffcoreOutstandingDemandRfo)?;
        let mean = |occupancy: f64, requests: f64| {
            Cycles(if requests > 0.0 {
                (occupancy / requests).max(0.0)
            } else {
                0.0
            })
        };
        Ok(Self {
            reads: mean(under_way, reads),
            prefetches: mean(under_way - demand_under_way, reads - demand),
            stores: mean(owned_under_way, owned),
        })
    }
}
