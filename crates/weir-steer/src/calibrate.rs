//! What controllers need to know of a machine, measured with each tier alone (MIKU section 4.1).

use serde::{Deserialize, Serialize};
use weir_model::access::{Op, Pattern};
use weir_model::machine::{MachineError, Testbed};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::{TierKind, TierName, Topology};
use weir_model::units::{Bytes, GbPerSec, Nanos};

use crate::knee::{Chain, Criteria, Knee, Measure};
use crate::limit::{Limit, Share};
use crate::readings::Readings;

/// Residencies in the Table of Requests of a machine, each measured with no other tenant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// A request for DRAM without load.
    pub fast: Nanos,
    /// A request for loaded DRAM.
    pub fast_loaded: Nanos,
    /// A request for the slow tier without load, if known.
    pub slow: Option<Nanos>,
    /// A load from the slow tier at the point from which more threads bring no more bandwidth.
    pub slow_read: Nanos,
    /// The same for a non-temporal store.
    pub slow_write: Nanos,
    /// The knees of the slow tier, in order of their share of writes; empty if they were not measured.
    pub knees: Vec<Knee>,
}

weir_model::named! {
    /// A value of a calibration. What a controller does not need is not measured.
    pub enum Value {
        /// [`Calibration::fast`].
        Fast = "fast",
        /// [`Calibration::fast_loaded`].
        FastLoaded = "fast_loaded",
        /// [`Calibration::slow`].
        Slow = "slow",
        /// [`Calibration::slow_read`], and `slow_write`, which follows from it.
        SlowRead = "slow_read",
        /// [`Calibration::knees`].
        Knees = "knees",
    }
}

/// Why a machine cannot be calibrated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CalibrateError {
    /// It has no memory behind CXL on this socket.
    #[error("this machine has no CXL tier on its first socket, so there is nothing to limit")]
    NoSlowTier,
    /// It failed.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A required counter was not counted.
    #[error("the machine cannot be calibrated: {0}")]
    NotCounted(String),
}

/// A working set of this many last-level caches cannot be cached by a single thread.
const CACHES: u64 = 4;
/// With this pause between two lines, a thread finds the memory without load.
const REST: Nanos = Nanos(1_000.0);
/// From this share of the most bandwidth on, more threads bring no more.
const ENOUGH: f64 = 0.97;

/// Measures these values of a machine, with one window for each point; the others are zero, or none. Knees are
/// measured in steps of bandwidth allocation if the machine has it, otherwise in cores.
///
/// # Errors
/// The machine has no slow tier, cannot run a thread on its tiers, or does not count its table.
pub fn calibrate(
    testbed: &dyn Testbed,
    seed: u64,
    window: Nanos,
    step: Option<Share>,
    values: &[Value],
) -> Result<Calibration, CalibrateError> {
    let topology = testbed.open(seed)?.topology().clone();
    let bench = CalibrationRun {
        testbed,
        seed,
        window,
        working_set: Bytes(topology.last_level_cache().get() * CACHES),
    };
    let fast = Placement::Bind(TierName::dram());
    let slow = slow_placement(&topology).ok_or(CalibrateError::NoSlowTier)?;
    let half = &topology.cores[..topology.cores.len().div_ceil(2)];
    let one = &half[..half.len().min(1)];
    let resting = |placement: &Placement| {
        let mut tenant = bench.stream(Op::Ld, one, placement);
        tenant.prefetch = false;
        tenant.with_stream(|stream| stream.pause = REST)
    };
    let needs = |value| values.contains(&value);
    let mut known = Calibration::default();
    if needs(Value::Fast) || needs(Value::Slow) {
        known.fast = bench.look(resting(&fast))?.mean()?;
    }
    if needs(Value::FastLoaded) {
        let loaded = bench.look(bench.stream(Op::Ld, half, &fast))?;
        known.fast_loaded = loaded.mean()?;
    }
    if needs(Value::Slow) {
        known.slow = Some(bench.look(resting(&slow))?.slow(known.fast)?);
    }
    let measure = |step| Measure {
        testbed,
        seed,
        window,
        cores: half,
        placement: slow.clone(),
        step,
        chain: None,
        criteria: Criteria::default(),
    };
    if needs(Value::SlowRead) {
        known.slow_read = match measure(None).knee_of(Op::Ld)? {
            Some(knee) => knee.residency,
            None => bench.knee(Op::Ld, half, &slow)?,
        };
        // The paper finds twice the residency of a load. If one core already fills the queue of posted
        // stores, it cannot be measured.
        known.slow_write = known.slow_read * 2.0;
    }
    if needs(Value::Knees) {
        known.knees = measure(step).knees()?;
    }
    Ok(known)
}

/// The values of a host, and how they were measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The values for controllers.
    pub calibration: Calibration,
    /// The tier that was taken as the slow one; `None` if there is only one tier.
    pub slow: Option<TierName>,
    /// Whether the Table of Requests was counted; otherwise loads were timed.
    pub counted: bool,
}

/// Measures a host with threads that access `working_set` bytes each. Knees are measured in whole threads.
/// `before_point` is called before each point.
///
/// # Errors
/// The machine cannot run a thread on its tiers.
pub fn calibrate_host(
    testbed: &dyn Testbed,
    seed: u64,
    window: Nanos,
    working_set: Bytes,
    before_point: &mut dyn FnMut(&str),
) -> Result<Measured, CalibrateError> {
    let topology = testbed.open(seed)?.topology().clone();
    // The chain of loads has a core of its own.
    let Some((&core, cores)) = topology.cores_of(0).split_first() else {
        return Err(CalibrateError::NotCounted("it has no core".into()));
    };
    let measure = |placement| Measure {
        testbed,
        seed,
        window,
        cores,
        placement,
        step: None,
        chain: Some(Chain { core, working_set }),
        criteria: Criteria::default(),
    };
    let none = || CalibrateError::NotCounted("no load returned in the given time".into());
    let fast = measure(Placement::Bind(TierName::dram()));
    before_point("the fast tier at rest");
    let rest = fast.at_rest()?.ok_or_else(none)?;
    before_point("the fast tier under load");
    let loaded = fast.look(Op::Ld, Limit::FREE)?.ok_or_else(none)?;
    let mut measured = Measured {
        calibration: Calibration {
            fast: rest.residency,
            fast_loaded: loaded.residency,
            ..Calibration::default()
        },
        slow: None,
        counted: rest.counted,
    };
    let Some((placement, name)) = slowest(&topology) else {
        return Ok(measured);
    };
    let slow = measure(placement);
    before_point("the slow tier at rest");
    let rest = slow.at_rest()?.ok_or_else(none)?.residency;
    let mut before = |op| before_point(&format!("the slow tier's knee of {op}"));
    let knees = slow.knees_from(rest, &mut before)?;
    let read = knees.first().map_or(rest, |knee| knee.residency);
    measured.calibration = Calibration {
        slow: Some(rest),
        slow_read: read,
        // The paper finds twice the residency of a load.
        slow_write: read * 2.0,
        knees,
        ..measured.calibration
    };
    measured.slow = Some(name);
    Ok(measured)
}

/// The slow tier of a machine: CXL, else memory without processors, else another socket's.
fn slowest(topology: &Topology) -> Option<(Placement, TierName)> {
    let of = |kinds: &[TierKind]| topology.tiers.iter().find(|t| kinds.contains(&t.kind));
    let name = of(&[TierKind::Cxl])
        .or(of(&[TierKind::CpuLess, TierKind::RemoteCxl]))
        .or(of(&[TierKind::Remote]))?
        .name
        .clone();
    let placement = slow_placement(topology).unwrap_or_else(|| Placement::Bind(name.clone()));
    Some((placement, name))
}

/// Pages are interleaved over every CXL device of the first socket.
pub fn slow_placement(topology: &Topology) -> Option<Placement> {
    let slow: Vec<TierName> = (topology.tiers.iter())
        .filter(|tier| tier.kind == TierKind::Cxl)
        .map(|tier| tier.name.clone())
        .collect();
    match slow.as_slice() {
        [] => None,
        [only] => Some(Placement::Bind(only.clone())),
        all => Some(Placement::Interleave(
            all.iter().map(|tier| (tier.clone(), 1)).collect(),
        )),
    }
}

struct CalibrationRun<'a> {
    testbed: &'a dyn Testbed,
    seed: u64,
    window: Nanos,
    working_set: Bytes,
}

/// A tenant alone.
struct AloneWindow {
    readings: Readings,
    drew: GbPerSec,
}

impl CalibrationRun<'_> {
    fn stream(&self, op: Op, cores: &[u32], placement: &Placement) -> Tenant {
        let tier = TierName::dram();
        Tenant {
            name: "calibration".into(),
            cores: cores.to_vec(),
            placement: placement.clone(),
            ..Tenant::on_first_cores(op, Pattern::Sequential, &tier, 1, self.working_set)
        }
    }

    fn look(&self, tenant: Tenant) -> Result<AloneWindow, CalibrateError> {
        let mut machine = self.testbed.open(self.seed)?;
        machine.start(&[tenant])?;
        let seen = machine.observe(self.window)?;
        machine.stop()?;
        Ok(AloneWindow {
            drew: (seen.tenants.iter())
                .map(|t| t.bandwidth(seen.window))
                .sum(),
            readings: Readings::of(&seen, Vec::new()),
        })
    }

    /// Residency with the fewest threads that draw about as much as any larger number.
    fn knee(&self, op: Op, cores: &[u32], placement: &Placement) -> Result<Nanos, CalibrateError> {
        let counts = std::iter::successors(Some(1), |n| Some(n * 2));
        let counts = counts.take_while(|&n| n <= cores.len());
        let seen = counts
            .map(|n| self.look(self.stream(op, &cores[..n], placement)))
            .collect::<Result<Vec<AloneWindow>, _>>()?;
        let most = seen.iter().fold(0.0, |most, s| s.drew.get().max(most));
        let fewest = seen.iter().find(|s| s.drew.get() >= ENOUGH * most);
        let fewest = fewest.ok_or(CalibrateError::NoSlowTier)?;
        fewest.slow(Nanos(0.0))
    }
}

impl AloneWindow {
    fn mean(&self) -> Result<Nanos, CalibrateError> {
        let table = self.readings.table.as_ref();
        let table = table.map_err(|why| CalibrateError::NotCounted(why.to_string()))?;
        Ok(table.mean)
    }

    fn slow(&self, fast: Nanos) -> Result<Nanos, CalibrateError> {
        let slow = self.readings.slow_residency(fast);
        slow.map_err(|why| CalibrateError::NotCounted(why.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_tier_is_cxl_or_memory_without_processors_or_another_socket() {
        let slow = |kinds: &[TierKind]| {
            let tier = |kind: &TierKind| weir_model::topology::Tier {
                name: TierName::named(kind.name()),
                kind: *kind,
                node: None,
                capacity: Bytes::gib(1),
                description: String::new(),
                limits: None,
                programs_left: None,
            };
            let topology = Topology {
                tiers: kinds.iter().map(tier).collect(),
                ..Topology::default()
            };
            slowest(&topology).map(|(_, name)| name.as_str().to_owned())
        };
        let all = [
            TierKind::Dram,
            TierKind::Remote,
            TierKind::CpuLess,
            TierKind::Cxl,
        ];
        for (n, taken) in all.iter().enumerate().skip(1) {
            assert_eq!(slow(&all[..=n]).as_deref(), Some(taken.name()));
        }
        assert_eq!(slow(&all[..1]), None);
    }
}
