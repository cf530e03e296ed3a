//! Calibrates a host: with threads of its own in place of limits, and a chain of loads in place of counters
//! if there are none.
//!
//! On a host no tenant can be limited before steering begins, and a measurement does not change the bandwidth
//! allocation; so a knee is found in whole threads. If the Table of Requests is not counted, the latency of a
//! load replaces its residency there: it is longer by the path to the table, both without load and at the
//! knee.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::machine::Testbed;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::{TierKind, TierName, Topology};
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::Knee;
use super::measure::{BUSY, QUEUED, first};
use crate::calibrate::{CalibrateError, Calibration, slow_placement};
use crate::limit::Grain;
use crate::readings::Readings;

/// The host to measure, and how.
pub struct Threads<'a> {
    /// The machine, on which nothing else should run.
    pub testbed: &'a dyn Testbed,
    /// Its seed.
    pub seed: u64,
    /// How long each point is observed.
    pub window: Nanos,
    /// Bytes that each thread accesses: beyond the reach of every cache.
    pub working_set: Bytes,
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

/// Threads that run with a chain of loads.
#[derive(Debug, Clone)]
struct ChainWindow {
    stay: Nanos,
    counted: bool,
    gives: GbPerSec,
    writes: f64,
}

impl Threads<'_> {
    /// Residencies of both tiers, and the knees of the slow one. `before_point` is called before each point.
    ///
    /// # Errors
    /// The machine cannot run a thread on its tiers.
    pub fn measure(&self, before_point: &mut dyn FnMut(&str)) -> Result<Measured, CalibrateError> {
        let topology = self.testbed.open(self.seed)?.topology().clone();
        let fast = Placement::Bind(TierName::dram());
        // The chain of loads has a core of its own.
        let (chain, others) = match topology.cores_of(0) {
            [] => return Err(CalibrateError::NotCounted("it has no core".into())),
            [one] => (*one, Vec::new()),
            [one, others @ ..] => (*one, others.to_vec()),
        };
        before_point("the fast tier at rest");
        let rest = self.look(chain, &[], Op::Ld, &fast)?;
        before_point("the fast tier under load");
        let loaded = self.look(chain, &others, Op::Ld, &fast)?;
        let mut measured = Measured {
            calibration: Calibration {
                fast: rest.stay,
                fast_loaded: loaded.stay,
                slow: None,
                slow_read: Nanos(0.0),
                slow_write: Nanos(0.0),
                knees: Vec::new(),
            },
            slow: None,
            counted: rest.counted,
        };
        let Some((slow, name)) = slowest(&topology) else {
            return Ok(measured);
        };
        before_point("the slow tier at rest");
        let slow_rest = self.look(chain, &[], Op::Ld, &slow)?;
        let mut knees = Vec::new();
        for op in [Op::Ld, Op::St, Op::NtSt] {
            before_point(&format!("the slow tier's knee of {op}"));
            knees.extend(self.knee(chain, &others, op, &slow, slow_rest.stay)?);
        }
        knees.sort_by(|a, b| a.writes.total_cmp(&b.writes));
        let read = knees.first().map_or(slow_rest.stay, |knee| knee.residency);
        let calibration = &mut measured.calibration;
        calibration.slow = Some(slow_rest.stay);
        calibration.slow_read = read;
        // The paper finds twice the residency of a load.
        calibration.slow_write = read * 2.0;
        calibration.knees = knees;
        measured.slow = Some(name);
        Ok(measured)
    }

    /// The fewest threads with which the device is busy, if it has no queue then; otherwise the most without
    /// a queue.
    fn knee(
        &self,
        chain: u32,
        cores: &[u32],
        op: Op,
        slow: &Placement,
        rest: Nanos,
    ) -> Result<Option<Knee>, CalibrateError> {
        let mut known: Vec<Option<ChainWindow>> = vec![None; cores.len()];
        let mut look = |n: usize| -> Result<ChainWindow, CalibrateError> {
            if let Some(seen) = &known[n] {
                return Ok(seen.clone());
            }
            let seen = self.look(chain, &cores[..=n], op, slow)?;
            known[n] = Some(seen.clone());
            Ok(seen)
        };
        let much = first(cores.len(), |n| {
            look(n).map(|seen| seen.stay > rest * QUEUED)
        })?;
        let Some(last) = much.checked_sub(1) else {
            // One thread already fills the queue: more threads are too many, and fewer cannot be tried.
            return Ok(None);
        };
        let most = look(last)?.gives;
        let busy = first(last, |n| look(n).map(|seen| seen.gives >= most * BUSY))?;
        let seen = look(busy)?;
        Ok((seen.gives.get() > 0.0).then_some(Knee {
            writes: seen.writes,
            rest,
            residency: seen.stay,
            gives: most,
            units: (busy + 1) as f64,
            much: (much < cores.len()).then_some((much + 1) as f64),
            grain: Grain::Time,
        }))
    }

    /// Threads that repeat one instruction as fast as they can, with a chain of loads from the same tier.
    fn look(
        &self,
        chain: u32,
        cores: &[u32],
        op: Op,
        placement: &Placement,
    ) -> Result<ChainWindow, CalibrateError> {
        let tenant = |name: &str, op, pattern, cores: &[u32]| Tenant {
            name: name.into(),
            cores: cores.to_vec(),
            placement: placement.clone(),
            ..Tenant::on_first_cores(op, pattern, &TierName::dram(), 1, self.working_set)
        };
        let locality = Locality::TlbFriendly;
        let mut tenants = vec![tenant(
            "chain",
            Op::Ld,
            Pattern::Chase { locality },
            &[chain],
        )];
        if !cores.is_empty() {
            tenants.push(tenant("threads", op, Pattern::Sequential, cores));
        }
        let mut machine = self.testbed.open(self.seed)?;
        machine.start(&tenants)?;
        let seen = machine.observe(self.window)?;
        machine.stop()?;
        let gives = (seen.tenants.iter().skip(1))
            .map(|tenant| tenant.bandwidth(seen.window))
            .sum();
        let loads = seen.tenants.first().map_or(0, |chain| chain.accesses);
        if loads == 0 {
            return Err(CalibrateError::NotCounted(
                "no load returned in the given time".into(),
            ));
        }
        let readings = Readings::of(&seen, Vec::new());
        let fast = placement == &Placement::Bind(TierName::dram());
        let counted = match fast {
            true => readings
                .fast_table
                .as_ref()
                .or(readings.table.as_ref())
                .map(|table| table.mean),
            false => readings.slow_table.as_ref().map(|table| table.mean),
        };
        Ok(ChainWindow {
            counted: counted.is_ok(),
            stay: counted.unwrap_or(seen.window / loads as f64),
            gives,
            writes: match &readings.slow {
                Ok(traffic) => traffic.write_share(),
                Err(_) => writes_of(op),
            },
        })
    }
}

/// The share of the lines crossing that an instruction writes: a temporal store reads its line first.
fn writes_of(op: Op) -> f64 {
    match op {
        Op::St => 0.5,
        Op::NtSt => 1.0,
        _ => 0.0,
    }
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
