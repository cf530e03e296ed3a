//! How well a workload runs by Caption's estimate: a linear function of three figures that counters give
//! (MICRO 2023 §6.1).
//!
//! The authors fitted it once, to the throughput of one program, and use it unchanged for all; only the
//! direction of its changes matters. It is kept here for what it is worth as published. Where the run time
//! is known, that is the better figure.

use weir_model::counters::{Counter, CounterSet};
use weir_model::topology::Topology;
use weir_model::units::Nanos;

use crate::{InsightError, Run};

/// What the estimate goes by, as Intel PCM reports it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PcmReadings {
    /// Instructions per nominal cycle, over all cores of the machine, idle ones too.
    pub ipc: f64,
    /// Mean time that a load which missed L1 waits.
    pub l1_miss: Nanos,
    /// Mean time that a read waits in the queues of the socket's memory controllers; that of the CXL device
    /// has no part in it.
    pub dram_read: Nanos,
}

/// Cycles until a miss of L1 is known, which PCM adds to each.
const MISS_KNOWN: f64 = 5.0;

/// What one instruction per cycle, a nanosecond of either latency count: the coefficients of the public
/// artefact (ece-fast-lab/cxl_type3_tests), fitted on a server with two Xeon Gold 6430 and CXL-A.
const PUBLISHED: [f64; 3] = [99.55281, -0.04686, -0.48751];

impl PcmReadings {
    /// Reads them from what a workload counted while it had the machine to itself.
    ///
    /// # Errors
    /// Counters are missing or contradict each other, or the clock of the cores is not known.
    pub fn of(
        counters: &CounterSet,
        time: Nanos,
        machine: &Topology,
    ) -> Result<Self, InsightError> {
        let run = Run::of(counters)?;
        let get = |counter| {
            run.count(counter).map_err(|why| InsightError::Missing {
                what: "Caption's estimate".into(),
                counters: vec![(counter, why.reason)],
            })
        };
        let clock = machine.clock.ok_or_else(|| {
            InsightError::Interleave("Caption's estimate needs the clock of the cores".into())
        })?;
        let cycle = Nanos(1.0 / clock.get());
        let cores = machine.sockets as f64 * machine.cores.len() as f64;
        let missed = get(Counter::FbHit)? + get(Counter::L1Miss)?;
        let pending = get(Counter::L1dPendMiss)?;
        let reads = get(Counter::CasRd)?;
        let queued = get(Counter::RpqOccupancy)?;
        let ticks = get(Counter::MClockticks)?;
        let mean = |sum: f64, of: f64| if of > 0.0 { sum / of } else { 0.0 };
        Ok(Self {
            ipc: get(Counter::Instructions)? / ((time / cycle) * cores),
            l1_miss: cycle * mean(pending + MISS_KNOWN * missed, missed),
            dram_read: time * mean(mean(queued, reads), ticks),
        })
    }

    /// The estimate, the greater the better. Its zero means nothing.
    pub fn estimate(&self) -> f64 {
        let [ipc, l1_miss, dram_read] = PUBLISHED;
        ipc * self.ipc + l1_miss * self.l1_miss.get() + dram_read * self.dram_read.get()
    }
}
