//! The least memory with which a trace still finds room, where all machines are equal and so are all pools.
//!
//! Pond does not say how machines and pools are bought. Here the memory of both shrinks until more than [`REFUSED`] of the
//! VMs find no machine. The scheduler takes the fullest machine with room for a VM; it knows cores, local memory and
//! slices (Pond, section 4.3). Without a pool it is the same scheduler, and memory shrinks by the same rule, so that a
//! saving is due to the pool and not to VMs that are placed better.

use super::cluster::{NOWHERE, Placed};
use super::room::{Fill, Memory, Room};
use crate::PlanError;
use crate::trace::GIB;

/// Share of the VMs that may find no machine, beyond those that whole machines have no room for; assumed.
pub const REFUSED: f64 = 0.001;
/// Steps of a bisection: a 512th of a machine's memory.
const STEPS: u32 = 9;
/// Sizes of local memory that are tried, evenly between the least and that without a pool.
const LOCALS: u64 = 5;
/// Slices of a pool that is never full.
const ENDLESS: u64 = u64::MAX >> 1;
/// Seconds between two recounts of all memory.
const RECOUNT: u32 = 86_400;

/// What one run found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// VMs for which no machine had room.
    pub refused: u64,
    /// The most slices of one pool that were in use or being released.
    pub peak: u64,
    /// Slices that each VM got.
    pub got: Vec<u32>,
    /// The machine of each VM, or [`NOWHERE`].
    pub machines: Vec<u32>,
}

impl Placed<'_> {
    /// The least memory of machines without a pool, in MiB; `None` where whole machines are not enough.
    ///
    /// # Errors
    /// Memory was not conserved.
    pub fn least_without(&self) -> Result<Option<u64>, PlanError> {
        let slices = vec![0; self.trace.len()];
        self.least_local(&slices, Fill::AsSplit, self.refused()?.0)
    }

    /// The least memory of machines and pools, where `slices` of each VM may be in the pool, and machines without one
    /// need `without`. With local memory first that may be no pool at all; as split, `None` where whole machines are not
    /// enough.
    ///
    /// # Errors
    /// Memory was not conserved.
    pub fn least(
        &self,
        slices: &[u32],
        fill: Fill,
        (of_pool, without): (usize, u64),
    ) -> Result<Option<Memory>, PlanError> {
        let mut best = match fill {
            Fill::AsSplit => None,
            Fill::LocalFirst => Some(Memory {
                local_mib: without,
                slices: 0,
                of_pool,
            }),
        };
        // Half of the VMs that may be refused may be for want of local memory, the others for want of slices.
        let (refused, half) = self.refused()?;
        let Some(low) = self.least_local(slices, fill, half)? else {
            return Ok(best);
        };
        let last = match fill {
            Fill::LocalFirst => LOCALS - 1,
            Fill::AsSplit => 0,
        };
        for at in 0..=last {
            let local = low + without.saturating_sub(low) * at / LOCALS;
            let most = best.map(|best| {
                let left = (best.of_machine(self.count) - local as f64) * self.count as f64;
                let pools = self.count.div_ceil(of_pool.max(1));
                (left / pools as f64 / f64::from(GIB)).max(0.0) as u64
            });
            let found = self.least_pool(slices, fill, (local, of_pool), (most, refused))?;
            let of = |memory: &Memory| memory.of_machine(self.count);
            let better = |found: &Memory| best.is_none_or(|best| of(found) < of(&best));
            best = found.filter(better).or(best);
        }
        Ok(best)
    }

    /// Runs the trace with this memory.
    ///
    /// # Errors
    /// Memory was not conserved.
    pub fn with(&self, memory: Memory, slices: &[u32], fill: Fill) -> Result<Run, PlanError> {
        let run = self.run(memory, slices, fill, (u64::MAX, self.release_ms))?;
        Ok(run.unwrap_or_default())
    }

    /// Slices by which the fullest pool's peak grows because they are released after their VM has left.
    ///
    /// # Errors
    /// Memory was not conserved.
    pub fn buffer(&self, slices: &[u32], fill: Fill, memory: Memory) -> Result<u64, PlanError> {
        let endless = Memory {
            slices: ENDLESS,
            ..memory
        };
        let peak = |release_ms: u32| {
            let run = self.run(endless, slices, fill, (u64::MAX, release_ms))?;
            Ok::<u64, PlanError>(run.map_or(0, |run| run.peak))
        };
        Ok(peak(self.release_ms)?.saturating_sub(peak(0)?))
    }

    fn least_local(
        &self,
        slices: &[u32],
        fill: Fill,
        refused: u64,
    ) -> Result<Option<u64>, PlanError> {
        let of_pool = self.count.max(1);
        self.bisect(0, u64::from(self.machine.memory_mib), |local_mib| {
            let memory = Memory {
                local_mib,
                slices: ENDLESS,
                of_pool,
            };
            let run = self.run(memory, slices, fill, (refused, self.release_ms))?;
            Ok(run.is_some())
        })
    }

    /// The least pools with this local memory, up to `most` slices, where this many VMs may be refused.
    fn least_pool(
        &self,
        slices: &[u32],
        fill: Fill,
        (local_mib, of_pool): (u64, usize),
        (most, refused): (Option<u64>, u64),
    ) -> Result<Option<Memory>, PlanError> {
        let memory = |slices: u64| Memory {
            local_mib,
            slices,
            of_pool,
        };
        let limits = (refused, self.release_ms);
        let run = |of: u64| self.run(memory(of), slices, fill, limits);
        let Some(first) = run(most.unwrap_or(ENDLESS))? else {
            return Ok(None);
        };
        let least = self.bisect(0, first.peak, |of| Ok(run(of)?.is_some()))?;
        Ok(least.map(memory))
    }

    /// The least value that fits; `None` where the highest does not.
    fn bisect(
        &self,
        mut low: u64,
        mut high: u64,
        fits: impl Fn(u64) -> Result<bool, PlanError>,
    ) -> Result<Option<u64>, PlanError> {
        if !fits(high)? {
            return Ok(None);
        }
        for _ in 0..STEPS {
            let middle = low.midpoint(high);
            match fits(middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        Ok(Some(high))
    }

    /// VMs that may find no machine, and how many if half of [`REFUSED`] may not. Sockets are no matter here, so that some
    /// that were placed may have no room on whole machines.
    fn refused(&self) -> Result<(u64, u64), PlanError> {
        let whole = Memory {
            local_mib: self.machine.memory_mib.into(),
            slices: 0,
            of_pool: self.count.max(1),
        };
        let run = self.with(whole, &vec![0; self.trace.len()], Fill::AsSplit)?;
        let placed = self.machines.iter().filter(|at| **at != NOWHERE).count() as f64;
        let beyond = |part: f64| run.refused + (placed * REFUSED * part) as u64;
        Ok((beyond(1.0), beyond(0.5)))
    }

    /// Runs the trace with this memory; `None` where more VMs are refused than may be.
    fn run(
        &self,
        memory: Memory,
        slices: &[u32],
        fill: Fill,
        (most_refused, release_ms): (u64, u32),
    ) -> Result<Option<Run>, PlanError> {
        let mut room = Room::new(self, memory);
        let mut run = Run {
            got: vec![0; slices.len()],
            machines: vec![NOWHERE; slices.len()],
            ..Run::default()
        };
        let mut recounted = 0;
        for event in self.events {
            let place = event.vm as usize;
            let (Some(vm), Some(&slices)) = (self.trace.get(place), slices.get(place)) else {
                continue;
            };
            if self.machines[place] == NOWHERE {
                continue;
            }
            room.released(event.time);
            if event.time / RECOUNT != recounted {
                recounted = event.time / RECOUNT;
                room.recount(event.time)?;
            }
            if !event.arrives {
                if run.machines[place] != NOWHERE {
                    let machine = run.machines[place] as usize;
                    room.leave(machine, &vm, run.got[place], (event.time, release_ms));
                }
            } else if let Some((machine, got)) = room.fullest(&vm, slices, fill) {
                run.machines[place] = machine as u32;
                run.got[place] = got;
                room.arrive(machine, &vm, got);
            } else {
                run.refused += 1;
                if run.refused > most_refused {
                    return Ok(None);
                }
            }
        }
        run.peak = room.peak;
        Ok(Some(run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::events::{Event, events};
    use crate::pool::replay::replay;
    use crate::pool::split::{Known, Policy, Predictions};
    use crate::trace::generate::{Generate, MACHINE};
    use crate::trace::{Machine, STAYS, Trace, UNKNOWN, Vm};
    use proptest::prelude::*;

    struct Case {
        trace: Trace,
        events: Vec<Event>,
        machines: Vec<u32>,
        machine: Machine,
        count: usize,
    }

    impl Case {
        fn new(trace: Trace, machine: Machine, count: usize) -> Self {
            let events = events(&trace);
            let replayed = replay(&trace, &events, (machine, count), &mut |_| true).unwrap();
            Self {
                machines: replayed.machines,
                trace,
                events,
                machine,
                count,
            }
        }

        fn generated() -> Self {
            let generate = Generate {
                machines: 8,
                days: 20.0,
                ..Generate::default()
            };
            Self::new(generate.run().unwrap(), MACHINE, 8)
        }

        fn placed(&self, release_ms: u32) -> Placed<'_> {
            Placed {
                trace: &self.trace,
                events: &self.events,
                machines: &self.machines,
                machine: self.machine,
                count: self.count,
                release_ms,
            }
        }

        fn split(&self, policy: Policy) -> Vec<u32> {
            policy.slices(&self.trace, &Known::of(&self.trace, 1))
        }

        fn least(&self, policy: Policy, of_pool: usize, fill: Fill) -> Option<Memory> {
            let (placed, slices) = (self.placed(0), self.split(policy));
            let without = placed.least_without().unwrap().unwrap();
            placed.least(&slices, fill, (of_pool, without)).unwrap()
        }
    }

    fn vm(arrival: u32, departure: u32, cores: u32, gib: u32) -> Vm {
        Vm {
            arrival,
            departure,
            millicores: cores * 1000,
            memory_mib: gib * GIB,
            customer: 0,
            kind: 0,
            touched_pct: UNKNOWN,
            insensitive: Some(false),
        }
    }

    const SMALL: Machine = Machine {
        millicores: 4000,
        memory_mib: 64 * GIB,
    };

    /// Two machines, of which each has a VM of 32 GiB and one of 2 GiB, at different times: a pool of both needs 17 GiB
    /// where two of one machine need 16 each.
    #[test]
    fn peaks_at_different_times_share_a_pool() {
        let mut trace = Trace::default();
        for vm in [
            vm(0, 100, 4, 32),
            vm(0, 150, 4, 2),
            vm(100, 1000, 4, 2),
            vm(150, 1000, 4, 32),
            vm(999, STAYS, 1, 1),
        ] {
            trace.push(vm);
        }
        let case = Case::new(trace, SMALL, 2);
        let half = |of_pool| {
            case.least(Policy::Fixed(0.5), of_pool, Fill::AsSplit)
                .unwrap()
        };
        assert_eq!((half(1).slices, half(2).slices), (16, 17));
        assert_eq!(half(2).local_mib, u64::from(16 * GIB));
        assert_eq!(
            case.placed(0).least_without().unwrap(),
            Some(u64::from(32 * GIB))
        );
        // Both machines have 17 GiB of their own, and the one with the large VM has the 15 of the pool.
        let first = case.least(Policy::Fixed(0.5), 2, Fill::LocalFirst).unwrap();
        assert!(first.of_machine(2) <= half(2).of_machine(2), "{first:?}");
    }

    #[test]
    fn memory_of_a_pool_is_divided_by_the_machines_that_are_there() {
        let memory = |of_pool| Memory {
            local_mib: 0,
            slices: 12,
            of_pool,
        };
        let gib = |of_pool, count| memory(of_pool).of_machine(count) / f64::from(GIB);
        assert_eq!((gib(4, 8), gib(8, 8), gib(64, 8)), (3.0, 1.5, 1.5));
        // The last of two pools has two machines.
        assert_eq!(gib(4, 6), 4.0);
    }

    #[test]
    fn slices_stay_with_a_host_until_they_are_released() {
        let mut trace = Trace::default();
        for vm in [vm(0, 100, 4, 32), vm(101, 200, 4, 32)] {
            trace.push(vm);
        }
        let case = Case::new(trace, SMALL, 1);
        let slices = case.split(Policy::Fixed(1.0));
        let memory = Memory {
            local_mib: 0,
            slices: 64,
            of_pool: 1,
        };
        let buffer = |release_ms: u32| {
            let placed = case.placed(release_ms);
            placed.buffer(&slices, Fill::AsSplit, memory).unwrap()
        };
        // 32 slices take 3.2 s, so that the next VM needs others.
        assert_eq!((buffer(100), buffer(10)), (32, 0));
    }

    #[test]
    fn local_memory_is_filled_before_the_pool() {
        let mut trace = Trace::default();
        for vm in [vm(0, 100, 1, 8), vm(0, 100, 1, 8), vm(0, 100, 1, 8)] {
            trace.push(vm);
        }
        let case = Case::new(trace, SMALL, 1);
        let memory = Memory {
            local_mib: u64::from(12 * GIB),
            slices: 12,
            of_pool: 1,
        };
        let got = |fill| {
            let all = case.placed(0).with(memory, &[8, 8, 8], fill).unwrap();
            (all.got, all.refused)
        };
        assert_eq!(got(Fill::LocalFirst), (vec![0, 4, 8], 0));
        assert_eq!(got(Fill::AsSplit), (vec![8, 0, 0], 2));
    }

    #[test]
    fn the_least_memory_is_enough_and_a_tenth_less_is_not() {
        let case = Case::generated();
        for policy in [Policy::Fixed(0.5), Policy::Pond(Predictions::default())] {
            for fill in Fill::ALL {
                let (slices, placed) = (case.split(policy), case.placed(0));
                let Some(least) = case.least(policy, 8, fill) else {
                    assert_eq!(fill, Fill::AsSplit);
                    continue;
                };
                let (most, _) = placed.refused().unwrap();
                let fits = |memory: Memory| {
                    let run = placed.run(memory, &slices, fill, (most, 0));
                    run.unwrap().is_some()
                };
                assert!(fits(least), "{policy} {fill}");
                let less = |local_mib, slices| Memory {
                    local_mib,
                    slices,
                    ..least
                };
                assert!(!fits(less(least.local_mib * 9 / 10, least.slices * 9 / 10)));
                assert!(least.slices == 0 || !fits(less(least.local_mib, least.slices * 9 / 10)));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn memory_is_conserved_and_a_vm_gets_no_more_of_the_pool_than_it_may(
            vms in prop::collection::vec((0..500_000u32, 1..300_000u32, 1..4u32, 1..200u32), 1..200),
            release_ms in 0..200u32, share in 0.0..1.0f64, of_pool in 1..9usize,
        ) {
            let mut trace = Trace::default();
            for (at, life, cores, quarters) in vms {
                trace.push(Vm { memory_mib: quarters * GIB / 4, ..vm(at, at + life, cores, 1) });
            }
            trace.sort();
            let case = Case::new(trace, SMALL, 8);
            let placed = case.placed(release_ms);
            let without = placed.least_without()?.unwrap();
            prop_assert!(without <= u64::from(SMALL.memory_mib));
            for policy in [Policy::Fixed(share), Policy::Pond(Predictions::default()), Policy::Oracle] {
                let slices = case.split(policy);
                for fill in Fill::ALL {
                    let least = placed.least(&slices, fill, (of_pool, without))?;
                    let Some(least) = least else {
                        prop_assert_eq!(fill, Fill::AsSplit);
                        continue;
                    };
                    if fill == Fill::LocalFirst {
                        prop_assert!(least.of_machine(8) <= without as f64);
                    }
                    let run = placed.with(least, &slices, fill)?;
                    prop_assert!(run.peak <= least.slices);
                    for (got, may) in run.got.iter().zip(&slices) {
                        prop_assert!(got <= may);
                    }
                }
            }
        }
    }
}
