//! Calibrating a host: threads of our own in place of holds, and a chain of loads beside them in place of
//! counters where there are none.
//!
//! On a host nobody can be held before somebody is steered, and bandwidth allocation is not touched for a
//! measurement; so a knee is found in whole threads. Where the Table of Requests is not counted, what a load
//! takes stands for its stay there: that is longer by the way to the table, at rest and at the knee alike.

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

/// How a host is measured.
pub struct Threads<'a> {
    /// The machine, on which nothing else should run.
    pub testbed: &'a dyn Testbed,
    /// Its seed.
    pub seed: u64,
    /// How long each point is looked at.
    pub window: Nanos,
    /// Bytes that each thread touches: beyond every cache's reach.
    pub working_set: Bytes,
}

/// What is known of a host, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What controllers are told.
    pub calibration: Calibration,
    /// The tier that was taken for the slow one; none where there is one tier only.
    pub slow: Option<TierName>,
    /// Whether the Table of Requests was counted; else loads were timed.
    pub counted: bool,
}

/// Threads beside a chain of loads.
#[derive(Debug, Clone)]
struct ChainWindow {
    stay: Nanos,
    counted: bool,
    gives: GbPerSec,
    writes: f64,
}

impl Threads<'_> {
    /// Residencies of both tiers, and the knees of the slow one, `told` being called before each point.
    ///
    /// # Errors
    /// The machine cannot run a thread on its tiers.
    pub fn measure(&self, told: &mut dyn FnMut(&str)) -> Result<Measured, CalibrateError> {
        let topology = self.testbed.open(self.seed)?.topology().clone();
        let fast = Placement::Bind(TierName::dram());
        // The chain of loads has a core of its own.
        let (chain, others) = match topology.cores_of(0) {
            [] => return Err(CalibrateError::NotCounted("it has no core".into())),
            [one] => (*one, Vec::new()),
            [one, others @ ..] => (*one, others.to_vec()),
        };
        told("the fast tier at rest");
        let rest = self.look(chain, &[], Op::Ld, &fast)?;
        told("the fast tier under load");
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
        told("the slow tier at rest");
        let slow_rest = self.look(chain, &[], Op::Ld, &slow)?;
        let mut knees = Vec::new();
        for op in [Op::Ld, Op::St, Op::NtSt] {
            told(&format!("the slow tier's knee of {op}"));
            knees.extend(self.knee(chain, &others, op, &slow, slow_rest.stay)?);
        }
        knees.sort_by(|a, b| a.writes.total_cmp(&b.writes));
        let read = knees.first().map_or(slow_rest.stay, |knee| knee.residency);
        let calibration = &mut measured.calibration;
        calibration.slow = Some(slow_rest.stay);
        calibration.slow_read = read;
        // The paper finds twice that of a load.
        calibration.slow_write = read * 2.0;
        calibration.knees = knees;
        measured.slow = Some(name);
        Ok(measured)
    }

    /// The fewest threads with which the device is busy, if it has no queue then; else the most without one.
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
            // One thread fills the queue already: more is known to be too much, and less cannot be tried.
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

    /// Threads that do one thing as fast as they can, beside a chain of loads from the same tier.
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
                "not one load came back in the time given".into(),
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

/// What an instruction writes of the lines that cross: a temporal store reads its line first.
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
