//! What a controller sees of one window.
//!
//! At the Table of Requests Little's law holds: entries = residency x rate. With occupancy and inserts
//! counted by the tier that a request waits for, the slow tier's residency can be read off. Where a
//! processor counts all requests together it follows from the mix (MIKU section 4.1, Eq. 1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::Observation;
use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};

/// One window.
#[derive(Debug, Clone)]
pub struct Readings {
    /// How long it was.
    pub length: Nanos,
    /// All requests of cores in the Tables of Requests.
    pub table: Result<Residency, Unavailable>,
    /// Those of them that wait for DRAM of this socket.
    pub fast_table: Result<Residency, Unavailable>,
    /// Those of them that wait for the slow tier.
    pub slow_table: Result<Residency, Unavailable>,
    /// Requests in the ingress queues, before the tables.
    pub ingress: Result<Residency, Unavailable>,
    /// What DRAM of this socket moved.
    pub fast: Result<Traffic, Unavailable>,
    /// What the slow tier moved.
    pub slow: Result<Traffic, Unavailable>,
    /// How long loads of the fast tier take whoever steers, where it tries: all that is seen of queues where
    /// no table is counted.
    pub probe: Result<Nanos, Unavailable>,
    /// The tenants.
    pub tenants: Vec<TenantReadings>,
}

/// How long things stay in a queue, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residency {
    /// Mean stay.
    pub mean: Nanos,
    /// Mean number present.
    pub entries: f64,
    /// How many came in the window.
    pub inserts: f64,
}

/// Lines that crossed to and from a tier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Towards the processor.
    pub read: GbPerSec,
    /// Away from it.
    pub written: GbPerSec,
}

impl Traffic {
    /// Both directions.
    pub fn total(&self) -> GbPerSec {
        self.read + self.written
    }

    /// Share of what is written; zero where nothing moved.
    pub fn write_share(&self) -> f64 {
        let total = self.total().get();
        if total > 0.0 {
            self.written.get() / total
        } else {
            0.0
        }
    }
}

/// What a tenant is to a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Whose fast tier is kept fast; never held.
    Protected,
    /// Uses the slow tier, and may be held.
    Restrained,
    /// Neither.
    Bystander,
}

/// What is seen of a tenant.
#[derive(Debug, Clone)]
pub struct TenantReadings {
    /// What it is.
    pub role: Role,
    /// Cores that it has when nobody holds it.
    pub cores: u32,
    /// Whether it had anything to run in the window, held or not.
    pub busy: bool,
    /// Bandwidth that it drew, where it can be told from others'.
    pub drew: Result<GbPerSec, Unavailable>,
}

impl Readings {
    /// What the counters of a window say.
    pub fn of(observation: &Observation, tenants: Vec<TenantReadings>) -> Self {
        let set = &observation.counters;
        let length = observation.window;
        let residency = |inserts, occupancy| residency(set, length, inserts, occupancy);
        let traffic = |read, written| traffic(set, length, read, written);
        Self {
            length,
            table: residency(Counter::TorInsertsIa, Counter::TorOccupancyIa),
            fast_table: residency(Counter::TorInsertsIaMissDdr, Counter::TorOccupancyIaMissDdr),
            slow_table: residency(Counter::TorInsertsIaMissCxl, Counter::TorOccupancyIaMissCxl),
            ingress: residency(Counter::IrqInserts, Counter::IrqOccupancy),
            fast: traffic(Counter::CasRd, Counter::CasWr),
            slow: traffic(Counter::CxlRxMemData, Counter::CxlTxMemData),
            probe: Err(Unavailable::because("nobody tries how long loads take")),
            tenants,
        }
    }

    /// How long a request for the slow tier holds its entry: counted where the processor tells tiers
    /// apart, else solved from the mix, with `fast` as the residency of requests for DRAM.
    ///
    /// # Errors
    /// Nothing that would tell was counted, or too little went to the slow tier to tell from.
    pub fn slow_residency(&self, fast: Nanos) -> Result<Nanos, Unavailable> {
        match &self.slow_table {
            Ok(slow) => Ok(slow.mean),
            Err(_) => self.slow_residency_of_mix(fast),
        }
    }

    /// The same, from the mix alone (MIKU Eq. 1, solved for the slow tier).
    ///
    /// # Errors
    /// As [`Readings::slow_residency`].
    pub fn slow_residency_of_mix(&self, fast: Nanos) -> Result<Nanos, Unavailable> {
        let mean = self.table.clone()?.mean;
        let to_fast = self.fast.clone()?.total().get();
        let to_slow = self.slow.clone()?.total().get();
        let share = to_slow / (to_fast + to_slow);
        if share.is_nan() || share < LEAST_SLOW_SHARE {
            return Err(Unavailable::because(
                "less than a hundredth of all lines went to the slow tier",
            ));
        }
        let slow = (mean.get() - (1.0 - share) * fast.get()) / share;
        if slow <= 0.0 {
            return Err(Unavailable::because(
                "requests stay shorter than requests for DRAM alone would",
            ));
        }
        Ok(Nanos(slow))
    }

    /// Whether anyone whose fast tier is kept fast had anything to run.
    pub fn protected_busy(&self) -> bool {
        let mut protected = self.tenants.iter().filter(|t| t.role == Role::Protected);
        protected.any(|t| t.busy)
    }

    /// Cores of all tenants that may be held and had something to run.
    pub fn restrained_cores(&self) -> u32 {
        (self.tenants.iter())
            .filter(|t| t.role == Role::Restrained && t.busy)
            .map(|t| t.cores)
            .sum()
    }
}

/// Less than this part of all lines says nothing about the slow tier: the error of the mix is divided by it.
const LEAST_SLOW_SHARE: f64 = 0.01;

fn residency(
    set: &CounterSet,
    length: Nanos,
    inserts: Counter,
    occupancy: Counter,
) -> Result<Residency, Unavailable> {
    let came = set.get(inserts)? as f64;
    let occupied = set.get(occupancy)? as f64;
    let ticks = set.get(Counter::ChaClockticks)? as f64;
    if ticks == 0.0 || length.get() <= 0.0 {
        return Err(Unavailable::because("the uncore's clock did not tick"));
    }
    if came == 0.0 {
        return Err(Unavailable::because(format!("{inserts} is zero")));
    }
    Ok(Residency {
        mean: Nanos(occupied / came * length.get() / ticks),
        entries: occupied / ticks,
        inserts: came,
    })
}

fn traffic(
    set: &CounterSet,
    length: Nanos,
    read: Counter,
    written: Counter,
) -> Result<Traffic, Unavailable> {
    let rate = |lines: u64| GbPerSec(lines as f64 * LINE_BYTES as f64 / length.get());
    Ok(Traffic {
        read: rate(set.get(read)?),
        written: rate(set.get(written)?),
    })
}
