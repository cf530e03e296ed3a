//! The readings of one window, for a controller.
//!
//! At the Table of Requests Little's law holds: entries = residency x rate. If occupancy and inserts are
//! counted by the tier for which a request waits, they give the slow tier's residency directly. If a
//! processor counts all requests together, the residency follows from the mix (MIKU section 4.1, Eq. 1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::Observation;
use weir_model::sampled::Sampled;
use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};

use crate::own::Done;

/// One window.
#[derive(Debug, Clone)]
pub struct Readings {
    /// Its length.
    pub length: Nanos,
    /// All requests of cores in the Tables of Requests.
    pub table: Result<Residency, Unavailable>,
    /// The part that waits for DRAM of this socket.
    pub fast_table: Result<Residency, Unavailable>,
    /// The part that waits for the slow tier.
    pub slow_table: Result<Residency, Unavailable>,
    /// Requests in the ingress queues, before the tables.
    pub ingress: Result<Residency, Unavailable>,
    /// Bandwidth of DRAM of this socket.
    pub fast: Result<Traffic, Unavailable>,
    /// Bandwidth of the slow tier.
    pub slow: Result<Traffic, Unavailable>,
    /// How long loads from the fast tier by the controller's process take, if it probes: the only reading of
    /// queues if no table is counted.
    pub probe: Result<Nanos, Unavailable>,
    /// The tenants.
    pub tenants: Vec<TenantReadings>,
    /// What described programs did; in the order of the tenants, empty where that is unknown.
    pub done: Vec<Option<Done>>,
    /// The sampling error, if only parts of the window were simulated; its tenants are in the order of these.
    pub sampled: Option<Sampled>,
}

/// How long requests stay in a queue, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residency {
    /// Mean time in the queue.
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

/// The role of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Its fast tier is protected; it is never limited.
    Protected,
    /// It uses the slow tier, and may be limited.
    Restrained,
    /// Neither.
    Bystander,
}

/// The readings of a tenant.
#[derive(Debug, Clone)]
pub struct TenantReadings {
    /// Its role.
    pub role: Role,
    /// Cores that it has without a limit.
    pub cores: u32,
    /// Whether it had anything to run in the window, limited or not.
    pub busy: bool,
    /// Bandwidth that it drew, if it can be separated from that of others.
    pub drew: Result<GbPerSec, Unavailable>,
}

impl Readings {
    /// The readings of a window's counters.
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
            probe: observation.probe.clone(),
            tenants,
            done: Vec::new(),
            sampled: observation.sampled.clone(),
        }
    }

    /// How long a request for the slow tier holds its entry: counted if the processor counts by tier,
    /// otherwise solved from the mix, with `fast` as the residency of requests for DRAM.
    ///
    /// # Errors
    /// The required counters were not counted, or too few lines went to the slow tier.
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
                "requests stay shorter than requests for DRAM alone",
            ));
        }
        Ok(Nanos(slow))
    }

    /// Whether any protected tenant had something to run.
    pub fn protected_busy(&self) -> bool {
        let mut protected = self.tenants.iter().filter(|t| t.role == Role::Protected);
        protected.any(|t| t.busy)
    }

    /// Bandwidth of all protected tenants that had something to run, if it is known of each.
    pub fn protected_bandwidth(&self) -> Option<GbPerSec> {
        self.bandwidth(Role::Protected)
    }

    /// The same of all tenants that may be limited.
    pub fn restrained_bandwidth(&self) -> Option<GbPerSec> {
        self.bandwidth(Role::Restrained)
    }

    fn bandwidth(&self, role: Role) -> Option<GbPerSec> {
        let mut of = (self.tenants.iter()).filter(|t| t.role == role && t.busy);
        of.try_fold(GbPerSec(0.0), |all, t| Some(all + t.drew.clone().ok()?))
    }

    /// Cores of all tenants that may be limited and had something to run.
    pub fn restrained_cores(&self) -> u32 {
        (self.tenants.iter())
            .filter(|t| t.role == Role::Restrained && t.busy)
            .map(|t| t.cores)
            .sum()
    }
}

/// A smaller share of all lines says nothing about the slow tier: the error of the mix is divided by it.
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
