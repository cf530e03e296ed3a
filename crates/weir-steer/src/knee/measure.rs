//! Finds the knees of a slow tier: one tenant alone, with ever narrower limits.
//!
//! A host measures with fewer threads in place of limits. If the Table of Requests is not counted there, a chain of
//! loads is timed: it is longer than the residency by the path to the table, both without load and at the knee.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::action::Action;
use weir_model::machine::{MachineError, Observation, Testbed};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

use super::{Criteria, Knee, grains};
use crate::limit::{Grain, Limit, Share};
use crate::readings::Readings;

/// Beyond the reach of every cache.
const WORKING_SET: Bytes = Bytes::mib(64);
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
    /// The chain of loads of a host.
    pub chain: Option<Chain>,
    /// How a knee is recognised.
    pub criteria: Criteria,
}

/// A chain of loads, with a core of its own, on a host whose threads access working sets of this size.
#[derive(Debug, Clone, Copy)]
pub struct Chain {
    /// Its core.
    pub core: u32,
    /// Bytes that each thread accesses: beyond the reach of every cache.
    pub working_set: Bytes,
}

/// A tenant alone under a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LimitedWindow {
    units: f64,
    writes: f64,
    /// How long a request stays in the table, or how long a load takes.
    pub residency: Nanos,
    /// Whether the table was counted; otherwise loads were timed.
    pub counted: bool,
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
        match self.at_rest()? {
            Some(rest) => self.knees_from(rest.residency, &mut |_| ()),
            None => Ok(Vec::new()),
        }
    }

    /// The same, with the residency of a request without load. `before` is called before each instruction.
    pub(crate) fn knees_from(
        &self,
        rest: Nanos,
        before: &mut dyn FnMut(Op),
    ) -> Result<Vec<Knee>, MachineError> {
        let mut knees = Vec::new();
        for op in [Op::Ld, Op::St, Op::NtSt] {
            before(op);
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
            Some(rest) => self.best(op, rest.residency),
            None => Ok(None),
        }
    }

    /// The better knee: with few cores or with many.
    fn best(&self, op: Op, rest: Nanos) -> Result<Option<Knee>, MachineError> {
        let mut best: Option<(Knee, LimitedWindow)> = None;
        for grain in grains(self.step) {
            let knee = self.knee(op, grain, rest)?;
            best = match (best, knee) {
                (Some(best), Some(knee)) if !self.is_better(op, &knee.1, &best.1) => Some(best),
                (best, knee) => knee.or(best),
            };
        }
        Ok(best.map(|(knee, _)| knee))
    }

    /// Whether few cores serve better than many: they give more, or as much with a far shorter queue.
    fn is_better(&self, op: Op, few: &LimitedWindow, many: &LimitedWindow) -> bool {
        let criteria = &self.criteria;
        let gain = few.gives.get() / many.gives.get();
        if op.is_posted() {
            return gain > criteria.worth_posted;
        }
        let is_shorter = few.residency.get() * criteria.shorter < many.residency.get();
        gain > criteria.worth || (gain > 1.0 / criteria.worth && is_shorter)
    }

    /// A single core without its prefetchers, or the chain of loads alone; `None` if too little is counted.
    pub(crate) fn at_rest(&self) -> Result<Option<LimitedWindow>, MachineError> {
        if self.chain.is_some() {
            return self.see(None, Limit::FREE, 1);
        }
        let mut tenant = self.tenant(Op::Ld);
        tenant.cores.truncate(1);
        tenant.prefetch = false;
        self.see(Some(tenant), Limit::FREE, 1)
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
        let criteria = &self.criteria;
        let is_queued = |seen: &LimitedWindow| {
            seen.residency > rest * criteria.queued || seen.waits > rest * criteria.waits
        };
        let mut known = vec![None; ladder.len()];
        let mut look = |i: usize| -> Result<Option<LimitedWindow>, MachineError> {
            if known[i].is_none() {
                known[i] = Some(self.look(op, ladder[i])?);
            }
            Ok(known[i].flatten())
        };
        // The first limit that fills the queue; a limit that cannot be judged counts as such.
        let much = first(ladder.len(), |i| Ok(look(i)?.is_none_or(|s| is_queued(&s))))?;
        let Some(last) = much.checked_sub(1).map(&mut look) else {
            return Ok(None);
        };
        let Some(last) = last? else { return Ok(None) };
        // Below it, the first that gives as much as any.
        let enough = last.gives * criteria.busy;
        let busy = first(
            much - 1,
            |i| Ok(look(i)?.is_some_and(|s| s.gives >= enough)),
        )?;
        let seen = self.see(Some(self.tenant(op)), ladder[busy], criteria.windows)?;
        let Some(seen) = seen.filter(|seen| seen.gives.get() > 0.0) else {
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
        self.repeating(NAME, op, Pattern::Sequential, self.cores)
    }

    fn repeating(&self, name: &str, op: Op, pattern: Pattern, cores: &[u32]) -> Tenant {
        let tier = TierName::dram();
        let working_set = self.chain.map_or(WORKING_SET, |chain| chain.working_set);
        Tenant {
            name: name.into(),
            cores: cores.to_vec(),
            placement: self.placement.clone(),
            ..Tenant::on_first_cores(op, pattern, &tier, 1, working_set)
        }
    }

    /// The tenant under a limit, for one window.
    pub(crate) fn look(&self, op: Op, limit: Limit) -> Result<Option<LimitedWindow>, MachineError> {
        self.see(Some(self.tenant(op)), limit, 1)
    }

    /// A tenant alone under a limit, and the chain of a host, for this many windows; `None` if too little is counted.
    fn see(
        &self,
        tenant: Option<Tenant>,
        limit: Limit,
        windows: u32,
    ) -> Result<Option<LimitedWindow>, MachineError> {
        let units = limit.units(self.cores.len() as u32);
        let op = tenant.as_ref().and_then(|tenant| tenant.work.stream());
        let op = op.map_or(Op::Ld, |stream| stream.op);
        let Some(chain) = self.chain else {
            let tenants: Vec<Tenant> = tenant.into_iter().collect();
            let seen = self.observe(&tenants, limit, windows)?;
            return Ok(counted(&seen, units));
        };
        let locality = Locality::TlbFriendly;
        let pattern = Pattern::Chase { locality };
        let mut tenants = vec![self.repeating("chain", Op::Ld, pattern, &[chain.core])];
        // On a host the limit is made of fewer threads.
        let running = limit.cores.map_or(usize::MAX, |cores| cores as usize);
        tenants.extend(tenant.map(|mut tenant| {
            tenant.cores.truncate(running);
            tenant
        }));
        tenants.retain(|tenant| !tenant.cores.is_empty());
        let seen = self.observe(&tenants, Limit::FREE, windows)?;
        let is_fast = self.placement == Placement::Bind(TierName::dram());
        Ok(timed(&seen, units, op, is_fast))
    }

    fn observe(
        &self,
        tenants: &[Tenant],
        limit: Limit,
        windows: u32,
    ) -> Result<Observation, MachineError> {
        let mut machine = self.testbed.open(self.seed)?;
        machine.start(tenants)?;
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
            seen.extend(machine.observe(self.window)?);
        }
        machine.stop()?;
        Ok(seen)
    }
}

/// The readings of a tenant alone; `None` if too little is counted.
fn counted(seen: &Observation, units: f64) -> Option<LimitedWindow> {
    let readings = Readings::of(seen, Vec::new());
    let residency = readings.slow_residency(Nanos(0.0)).ok()?;
    let slow = readings.slow.as_ref().ok()?;
    let lines = slow.total().get() / LINE_BYTES as f64;
    (lines > 0.0).then_some(LimitedWindow {
        units,
        writes: slow.write_share(),
        residency,
        counted: true,
        waits: readings.ingress.as_ref().map_or(Nanos(0.0), |q| q.mean),
        gives: slow.total(),
    })
}

/// The readings of threads with a chain of loads from the same tier; `None` if no load returned.
fn timed(seen: &Observation, units: f64, op: Op, is_fast: bool) -> Option<LimitedWindow> {
    let loads = seen.tenants.first().map_or(0, |chain| chain.accesses);
    let others = seen.tenants.iter().skip(1);
    let readings = Readings::of(seen, Vec::new());
    let table = match is_fast {
        true => readings.fast_table.as_ref().or(readings.table.as_ref()),
        false => readings.slow_table.as_ref(),
    };
    (loads > 0).then_some(LimitedWindow {
        units,
        writes: match (&readings.slow, op) {
            (Ok(traffic), _) => traffic.write_share(),
            // A temporal store reads its line first.
            (Err(_), Op::St) => 0.5,
            (Err(_), Op::NtSt) => 1.0,
            (Err(_), _) => 0.0,
        },
        counted: table.is_ok(),
        residency: table.map_or(seen.window / loads as f64, |table| table.mean),
        waits: Nanos(0.0),
        gives: others.map(|own| own.bandwidth(seen.window)).sum(),
    })
}

/// The tenant of the measurement.
const NAME: &str = "calibration";

/// The first of `0..end` from which on a condition always holds; `end` if there is none.
fn first<E>(end: usize, mut limits: impl FnMut(usize) -> Result<bool, E>) -> Result<usize, E> {
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
