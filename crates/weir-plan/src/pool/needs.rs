//! What each policy needs of a cluster: memory to buy, memory in the pool, VMs that are slower.

use super::Pools;
use super::cluster::{NOWHERE, Placed};
use super::events::{Event, events};
use super::kept::kept;
use super::replay::{Need, Replayed, replay};
use super::room::{Fill, Memory};
use super::seats::SOCKETS;
use super::split::{Known, Policy};
use crate::PlanError;
use crate::trace::{GIB, Trace};

impl Pools {
    /// Replays one cluster, and finds what machines and pools need where VMs stay on their machines. `go_on` is given the
    /// share that is done, and answers whether to go on.
    ///
    /// # Errors
    /// Memory was not conserved.
    pub fn keep(
        &self,
        trace: &Trace,
        go_on: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Replayed, PlanError> {
        let mut replayed = self.kept(trace, &events(trace), go_on)?;
        replayed.machines = Vec::new();
        Ok(replayed)
    }

    /// The same with the machine of each VM.
    fn kept(
        &self,
        trace: &Trace,
        events: &[Event],
        go_on: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Replayed, PlanError> {
        let mut replayed = replay(trace, events, (self.machine, self.machines as usize), go_on)?;
        if replayed.stopped_at.is_some() {
            return Ok(replayed);
        }
        let sizes = self
            .sockets
            .iter()
            .map(|sockets| (sockets / SOCKETS) as usize);
        let sizes: Vec<usize> = sizes.collect();
        let placed = self.placed(trace, events, &replayed.machines);
        let known = Known::of(trace, self.seed);
        let policies = self.policies().into_iter();
        let of = policies.map(|policy| kept(&placed, &policy.pooled_mib(trace, &known), &sizes));
        replayed.needs.kept = of.collect::<Result<_, PlanError>>()?;
        Ok(replayed)
    }

    fn placed<'t>(&self, trace: &'t Trace, events: &'t [Event], machines: &'t [u32]) -> Placed<'t> {
        Placed {
            trace,
            events,
            machines,
            machine: self.machine,
            count: self.machines as usize,
            release_ms: self.release_ms,
        }
    }

    /// Replays one cluster as [`Pools::keep`], and finds the least memory for each policy and size.
    ///
    /// # Errors
    /// Memory was not conserved.
    pub fn replay(
        &self,
        trace: &Trace,
        go_on: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Replayed, PlanError> {
        let (policies, events) = (self.policies(), events(trace));
        let part = 1.0 / (policies.len() * self.sockets.len() + 1) as f64;
        let mut replayed = self.kept(trace, &events, &mut |share| go_on(share * part))?;
        let machines = std::mem::take(&mut replayed.machines);
        if replayed.stopped_at.is_some() {
            return Ok(replayed);
        }
        let placed = self.placed(trace, &events, &machines);
        let without = placed.least_without()?;
        replayed.needs.without = without;
        let Some(without) = without else {
            return Ok(replayed);
        };
        let known = Known::of(trace, self.seed);
        let mut done = 1.0;
        for policy in policies {
            let slices = policy.slices(trace, &known);
            let mut row = Vec::new();
            for sockets in &self.sockets {
                if !go_on(done * part) {
                    replayed.stopped_at = Some(trace.last_arrival());
                    return Ok(replayed);
                }
                done += 1.0;
                let of_pool = (sockets / SOCKETS) as usize;
                let least = |fill| placed.least(&slices, fill, (of_pool, without));
                let need = match least(Fill::LocalFirst)? {
                    Some(memory) => {
                        let mut need = need(&placed, memory, &slices, (policy, &known))?;
                        need.as_split = least(Fill::AsSplit)?;
                        Some(need)
                    }
                    None => None,
                };
                row.push(need);
            }
            replayed.needs.with.push(row);
        }
        Ok(replayed)
    }
}

fn need(
    placed: &Placed<'_>,
    memory: Memory,
    slices: &[u32],
    (policy, known): (Policy, &Known),
) -> Result<Need, PlanError> {
    let run = placed.with(memory, slices, Fill::LocalFirst)?;
    let end = placed.trace.last_arrival();
    let mut need = Need {
        least: memory,
        as_split: None,
        buffer: placed.buffer(slices, Fill::LocalFirst, memory)?,
        slow: (0.0, 0.0),
        pooled: (0.0, 0.0, 0.0),
    };
    let vms = (0u64..).zip(placed.trace.vms());
    for ((((at, vm), machine), &got), &may) in vms.zip(placed.machines).zip(&run.got).zip(slices) {
        if *machine == NOWHERE {
            continue;
        }
        let seconds = f64::from(vm.departure.min(end).saturating_sub(vm.arrival));
        need.pooled.0 += f64::from(got * GIB) * seconds;
        need.pooled.1 += f64::from(may * GIB) * seconds;
        need.pooled.2 += f64::from(vm.memory_mib) * seconds;
        need.slow.0 += policy.slow(&vm, at, got, known);
        need.slow.1 += policy.slow(&vm, at, may, known);
    }
    Ok(need)
}
