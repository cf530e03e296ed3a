//! Finds the knees of a slow tier: one tenant alone, with ever narrower limits.

use weir_model::access::{Op, Pattern};
use weir_model::action::Action;
use weir_model::machine::{MachineError, Testbed};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

use super::{Knee, grains};
use crate::limit::{Grain, Limit, Share};
use crate::readings::Readings;

/// Beyond the reach of every cache.
const WORKING_SET: Bytes = Bytes::mib(64);
/// A device is busy at this share of its most bandwidth without a queue.
pub(super) const BUSY: f64 = 0.97;
/// Requests that stay this multiple of the unloaded residency wait in a queue.
pub(super) const QUEUED: f64 = 3.0;
/// Requests that wait before the table for this share of it have filled the table.
const WAITS: f64 = 0.1;
/// Few cores must give this factor more than many to be preferred.
const WORTH: f64 = 1.03;
/// The same for posted stores: together with other tenants, whose requests wait before the table as well, few
/// cores cannot post as fast as alone.
const WORTH_POSTED: f64 = 1.08;
/// Windows per limit: a device's bandwidth varies from one window to the next.
const KNEE: u32 = 4;
/// The difference between two limits if there is no bandwidth allocation, in cores.
const CORE: f64 = 1.0;

/// The machine to measure, and how.
pub struct Measure<'a> {
    /// The machine, on which nothing else runs.
    pub testbed: &'a dyn Testbed,
    /// Its seed.
    pub seed: u64,
    /// How long each limit is observed.
    pub window: Nanos,
    /// Cores that may be used.
    pub cores: &'a [u32],
    /// The slow tier.
    pub placement: Placement,
    /// Step of its bandwidth allocation, if it has any.
    pub step: Option<Share>,
}

/// A tenant alone under a limit.
#[derive(Debug, Clone, Copy)]
struct LimitedWindow {
    units: f64,
    writes: f64,
    residency: Nanos,
    /// How long requests wait before the table, if that is counted.
    waits: Nanos,
    gives: GbPerSec,
}

impl Measure<'_> {
    /// The knees of loads, stores and non-temporal stores, in order of their share of writes. An instruction
    /// without counters has no knee.
    ///
    /// # Errors
    /// The machine cannot run the tenant, or cannot limit it.
    pub fn knees(&self) -> Result<Vec<Knee>, MachineError> {
        let Some(rest) = self.at_rest()? else {
            return Ok(Vec::new());
        };
        let mut knees = Vec::new();
        for op in [Op::Ld, Op::St, Op::NtSt] {
            knees.extend(self.best(op, rest)?);
        }
        knees.sort_by(|a, b| a.writes.total_cmp(&b.writes));
        Ok(knees)
    }

    /// The knee of one instruction.
    ///
    /// # Errors
    /// As [`Measure::knees`].
    pub fn knee_of(&self, op: Op) -> Result<Option<Knee>, MachineError> {
        match self.at_rest()? {
            Some(rest) => self.best(op, rest),
            None => Ok(None),
        }
    }

    /// The better knee: with few cores or with many.
    fn best(&self, op: Op, rest: Nanos) -> Result<Option<Knee>, MachineError> {
        let mut best: Option<(Knee, LimitedWindow)> = None;
        for grain in grains(self.step) {
            let knee = self.knee(op, grain, rest)?;
            best = match (best, knee) {
                (Some(best), Some(knee)) if !is_better(op, &knee.1, &best.1) => Some(best),
                (best, knee) => knee.or(best),
            };
        }
        Ok(best.map(|(knee, _)| knee))
    }

    /// Residency with a single core, without its prefetchers.
    fn at_rest(&self) -> Result<Option<Nanos>, MachineError> {
        let mut tenant = self.tenant(Op::Ld);
        tenant.cores.truncate(1);
        tenant.prefetch = false;
        Ok(self.see(tenant, Limit::FREE, 1)?.map(|seen| seen.residency))
    }

    /// The narrowest limit under which the device is busy, if it has no queue then; otherwise the widest
    /// without a queue.
    fn knee(
        &self,
        op: Op,
        grain: Grain,
        rest: Nanos,
    ) -> Result<Option<(Knee, LimitedWindow)>, MachineError> {
        let ladder = self.ladder(grain);
        let is_queued =
            |seen: &LimitedWindow| seen.residency > rest * QUEUED || seen.waits > rest * WAITS;
        let look = |i: usize| self.look(op, ladder[i]);
        // The first limit that fills the queue; a limit that cannot be judged counts as such.
        let much = first(ladder.len(), |i| Ok(look(i)?.is_none_or(|s| is_queued(&s))))?;
        let Some(last) = much.checked_sub(1).map(look) else {
            return Ok(None);
        };
        let Some(last) = last? else { return Ok(None) };
        // Below it, the first that gives as much as any.
        let enough = last.gives * BUSY;
        let busy = first(
            much - 1,
            |i| Ok(look(i)?.is_some_and(|s| s.gives >= enough)),
        )?;
        let Some(seen) = self.see(self.tenant(op), ladder[busy], KNEE)? else {
            return Ok(None);
        };
        let all = self.cores.len() as u32;
        let knee = Knee {
            writes: seen.writes,
            rest,
            residency: seen.residency,
            gives: seen.gives,
            units: seen.units,
            much: ladder.get(much).map(|limit| limit.units(all)),
            grain,
        };
        Ok(Some((knee, seen)))
    }

    /// Every limit that can be set, the narrowest first.
    fn ladder(&self, grain: Grain) -> Vec<Limit> {
        let all = self.cores.len() as u32;
        let step = match grain {
            Grain::Time => CORE,
            Grain::Wide(step) | Grain::Narrow(step) => step.get(),
        };
        if step <= 0.0 {
            return Vec::new();
        }
        let steps = (f64::from(all) / step).round() as u32;
        let mut ladder: Vec<Limit> = (1..=steps)
            .map(|n| Limit::to_units(f64::from(n) * step, all, grain))
            .collect();
        ladder.dedup_by(|a, b| a.units(all) <= b.units(all));
        ladder
    }

    /// A tenant that repeats one instruction as fast as it can.
    fn tenant(&self, op: Op) -> Tenant {
        let tier = TierName::dram();
        Tenant {
            name: NAME.into(),
            cores: self.cores.to_vec(),
            placement: self.placement.clone(),
            ..Tenant::on_first_cores(op, Pattern::Sequential, &tier, 1, WORKING_SET)
        }
    }

    fn look(&self, op: Op, limit: Limit) -> Result<Option<LimitedWindow>, MachineError> {
        self.see(self.tenant(op), limit, 1)
    }

    /// A tenant alone under a limit, for `WINDOWS` windows; `None` if too little is counted.
    fn see(
        &self,
        tenant: Tenant,
        limit: Limit,
        windows: u32,
    ) -> Result<Option<LimitedWindow>, MachineError> {
        let mut machine = self.testbed.open(self.seed)?;
        machine.start(&[tenant])?;
        if limit.cores.is_some() {
            machine.act(&Action::Cores {
                tenant: NAME.into(),
                cores: limit.cores,
            })?;
        }
        if limit.allocation < Share::ALL {
            machine.act(&Action::Bandwidth {
                tenant: NAME.into(),
                percent: (limit.allocation.get() * 100.0).round() as u32,
            })?;
        }
        let mut seen = machine.observe(self.window)?;
        for _ in 1..windows {
            let more = machine.observe(self.window)?;
            seen.window = seen.window + more.window;
            seen.counters.accumulate(&more.counters);
        }
        machine.stop()?;
        let readings = Readings::of(&seen, Vec::new());
        let (Ok(residency), Ok(slow)) = (readings.slow_residency(Nanos(0.0)), &readings.slow)
        else {
            return Ok(None);
        };
        let lines = slow.total().get() / LINE_BYTES as f64;
        Ok((lines > 0.0).then_some(LimitedWindow {
            units: limit.units(self.cores.len() as u32),
            writes: slow.write_share(),
            residency,
            waits: readings.ingress.as_ref().map_or(Nanos(0.0), |q| q.mean),
            gives: slow.total(),
        }))
    }
}

/// Whether few cores serve better than many: they give more, or as much with a far shorter queue.
fn is_better(op: Op, few: &LimitedWindow, many: &LimitedWindow) -> bool {
    let gain = few.gives.get() / many.gives.get();
    if op.is_posted() {
        return gain > WORTH_POSTED;
    }
    gain > WORTH || (gain > 1.0 / WORTH && few.residency.get() * SHORTER < many.residency.get())
}

/// Requests that stay shorter by this factor have a far shorter queue.
const SHORTER: f64 = 1.5;

/// The tenant of the measurement.
const NAME: &str = "calibration";

/// The first of `0..end` from which on a condition always holds; `end` if there is none.
pub(super) fn first<E>(
    end: usize,
    mut limits: impl FnMut(usize) -> Result<bool, E>,
) -> Result<usize, E> {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if limits(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}
