//! Random reads of an open loop.

use serde::{Deserialize, Serialize};
use weir_lab::{Ask, Lab, LabError};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{LINE_BYTES, Nanos};

use super::servers::PEAK_GBPS;
use crate::coaxial::{READING, arrivals};
use crate::published::slowdown::failed;

/// A core for each arrival that may be under way: an open loop has no limit of them.
pub(super) const OPEN: (&str, &str) = ("coaxial-ddr,core.count=512,llc.slices=16", "dram");

/// The same with pages over four links.
pub(super) const OPEN_FOUR: (&str, &str) = (
    "coaxial-ddr,core.count=512,llc.slices=16+4xcoaxial-x8@interleaved",
    "cxl0",
);

/// Reads that arrive at random times, whether or not earlier ones are answered.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Arrivals {
    /// Of the peak of one channel.
    pub utilisation: f64,
    /// Where all pages are.
    pub tier: &'static str,
}

/// Their latency beyond the caches, in ns, and their traffic.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Arrived {
    pub mean: f64,
    pub p90: f64,
    pub gbps: f64,
}

/// Time in which arrivals are counted.
const COUNTED: Nanos = Nanos(300_000.0);

impl Ask for Arrivals {
    type Got = Arrived;
    const KIND: &'static str = "reads of an open loop";

    fn ask(&self, lab: &Lab<'_>) -> Result<Arrived, LabError> {
        let cores = lab.topology().cores.len() as u32;
        let lines_per_second = self.utilisation * PEAK_GBPS * 1e9 / LINE_BYTES as f64;
        let tenant = Tenant {
            prefetch: false,
            ..Tenant::running(
                arrivals(cores, lines_per_second),
                (0..cores).collect(),
                Placement::Bind(TierName::named(self.tier)),
            )
        };
        let mut machine = lab.testbed().open(lab.seed())?;
        machine.start(&[tenant])?;
        machine.observe(COUNTED * 0.1)?;
        let seen = machine.observe(COUNTED)?;
        machine.stop()?;
        let latency = seen.tenants.first().and_then(|own| own.latency.as_ref());
        let latency = latency.ok_or_else(|| failed("latencies were not counted"))?;
        // Those that read nothing are the fastest, and take no time.
        let mean = latency.mean().get() / READING;
        let lines = seen.tenants.first().map_or(0, |own| own.accesses);
        Ok(Arrived {
            mean,
            p90: latency.quantile(1.0 - 0.1 * READING).get(),
            gbps: (lines * LINE_BYTES) as f64 / seen.window.get(),
        })
    }
}
