//! What a pool saves where each VM stays on its machine: the simulation that Pond publishes (sections 3.1 and 6.1).
//!
//! A policy takes its part of each VM into the pool. A machine needs the most local memory that its VMs have at one time,
//! and a pool the most that those of its machines have there. All of it fits then, so that no VM moves. Memory is compared
//! with what the same machines need for the same VMs without a pool.
//!
//! A scheduler that fills equal machines in their order makes neighbours alike, which racks of a cloud are not: a pool has
//! machines that are as far apart as possible.
//!
//! The paper does not say whether machines are alike. [`Kept::summed`] has for each machine and pool its own peak,
//! [`Kept::uniform`] for all of them the highest. Slices that are being released are in neither: [`Kept::starts`] says how
//! fast they must be, where each pool has its own peak.

use serde::{Deserialize, Serialize};

use super::cluster::{NOWHERE, Placed, conserved};
use super::events::Event;
use super::release::{Releasing, Starts};
use super::split::untouched_share;
use crate::PlanError;
use crate::trace::Vm;

/// Seconds between two recounts of all memory.
const RECOUNT: u32 = 86_400;

/// Memory of all machines and pools, in MiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provision {
    /// Of machines without pools.
    pub without_mib: u64,
    /// Of machines with pools.
    pub local_mib: u64,
    /// Of pools.
    pub pool_mib: u64,
}

/// The share of `base` that is saved where `needed` is enough; below 0 where more is needed.
pub(super) fn share_saved(base: u64, needed: u64) -> f64 {
    match base {
        0 => 0.0,
        base => 1.0 - needed as f64 / base as f64,
    }
}

/// What one policy needs with pools of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Each machine and each pool has its own peak.
    pub summed: Provision,
    /// Each machine has the highest peak of a machine, and each pool the highest for each of its machines.
    pub uniform: Provision,
    /// VMs that touch what they have in the pool.
    pub touching: u64,
    /// Starts of VMs, and whether they would wait for slices.
    pub starts: Starts,
}

impl Provision {
    /// The share of the memory that is saved; below 0 where more is needed.
    pub fn saved(self) -> f64 {
        share_saved(self.without_mib, self.local_mib + self.pool_mib)
    }

    fn add(&mut self, other: Self) {
        self.without_mib += other.without_mib;
        self.local_mib += other.local_mib;
        self.pool_mib += other.pool_mib;
    }
}

impl Kept {
    /// Adds what another cluster needs.
    pub fn add(&mut self, other: &Self) {
        self.summed.add(other.summed);
        self.uniform.add(other.uniform);
        self.touching += other.touching;
        self.starts.add(&other.starts);
    }
}

/// Memory in use, and the most that it was, in MiB.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    now: u64,
    peak: u64,
}

impl Level {
    fn change(&mut self, mib: u64, arrives: bool) {
        match arrives {
            true => self.now += mib,
            false => self.now -= mib,
        }
        self.peak = self.peak.max(self.now);
    }
}

/// Follows the VMs on their machines, of which `pooled_mib` is in pools of each of these numbers of machines.
///
/// # Errors
/// Memory was lost or came from nowhere.
pub fn kept(
    placed: &Placed<'_>,
    pooled_mib: &[u32],
    machines: &[usize],
) -> Result<Vec<Kept>, PlanError> {
    let mut local = vec![Level::default(); placed.count];
    let mut whole = local.clone();
    let pools = |machines: &usize| placed.count.div_ceil((*machines).max(1));
    let sizes = machines.iter().map(pools);
    let mut sizes: Vec<_> = sizes.map(|pools| vec![Level::default(); pools]).collect();
    let (mut alive, mut recounted, mut touching) = (0, 0, 0);
    for (event, vm, machine, pooled) in placed_events(placed, pooled_mib) {
        if event.time / RECOUNT != recounted {
            recounted = event.time / RECOUNT;
            recount(event.time, alive, &local, &sizes)?;
        }
        let (memory, arrives) = (vm.memory_mib, event.arrives);
        match arrives {
            true => alive += u64::from(memory),
            false => alive -= u64::from(memory),
        }
        let touched = f64::from(pooled) > f64::from(memory) * untouched_share(&vm);
        touching += u64::from(arrives && touched);
        whole[machine].change(memory.into(), arrives);
        local[machine].change((memory - pooled).into(), arrives);
        for pools in &mut sizes {
            let at = machine % pools.len();
            pools[at].change(pooled.into(), arrives);
        }
    }
    recount(u32::MAX, alive, &local, &sizes)?;
    let count = placed.count as u64;
    let sum = |levels: &[Level]| levels.iter().map(|level| level.peak).sum::<u64>();
    let most = |levels: &[Level]| levels.iter().map(|level| level.peak).max().unwrap_or(0) * count;
    let of = |pools: &Vec<Level>| {
        let starts = starts(placed, pooled_mib, pools);
        let each = pools.iter().enumerate().map(|(at, pool)| {
            let machines = (at..placed.count).step_by(pools.len()).count();
            pool.peak.div_ceil(machines as u64)
        });
        Kept {
            summed: Provision {
                without_mib: sum(&whole),
                local_mib: sum(&local),
                pool_mib: sum(pools),
            },
            uniform: Provision {
                without_mib: most(&whole),
                local_mib: most(&local),
                pool_mib: each.max().unwrap_or(0) * count,
            },
            touching,
            starts,
        }
    };
    Ok(sizes.iter().map(of).collect())
}

/// Events of VMs that found a machine, with the VM, its machine, and its memory in the pool.
fn placed_events<'t>(
    placed: &'t Placed<'t>,
    pooled_mib: &'t [u32],
) -> impl Iterator<Item = (&'t Event, Vm, usize, u32)> {
    placed.events.iter().filter_map(|event| {
        let place = event.vm as usize;
        let (vm, pooled) = (placed.trace.get(place)?, *pooled_mib.get(place)?);
        let machine = placed.machines[place];
        let at = (machine != NOWHERE).then_some(machine as usize)?;
        Some((event, vm, at, pooled.min(vm.memory_mib)))
    })
}

/// Follows the slices of pools that have their peaks.
fn starts(placed: &Placed<'_>, pooled_mib: &[u32], pools: &[Level]) -> Starts {
    let mut starts = Starts::default();
    let mut now = vec![(0, Releasing::default()); pools.len()];
    for (event, _, machine, pooled) in placed_events(placed, pooled_mib) {
        let (pooled, at) = (u64::from(pooled), machine % pools.len());
        let (used, releasing) = &mut now[at];
        match (event.arrives, pooled) {
            (true, 0) => starts.local(),
            (true, _) => {
                *used += pooled;
                releasing.starts(pools[at].peak - *used, event.time, &mut starts);
            }
            (false, _) => {
                *used -= pooled;
                releasing.leaves(pooled, event.time);
            }
        }
    }
    starts
}

/// Compares the VMs with machines and pools.
fn recount(now: u32, alive: u64, local: &[Level], sizes: &[Vec<Level>]) -> Result<(), PlanError> {
    let sum = |levels: &[Level]| levels.iter().map(|level| level.now).sum::<u64>();
    let local = sum(local);
    (sizes.iter()).try_for_each(|pools| conserved(now, alive, local + sum(pools)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::events::{Event, events};
    use crate::pool::replay::replay;
    use crate::pool::split::{Known, Policy, Predictions};
    use crate::trace::{GIB, Machine, Trace, UNKNOWN, Vm};
    use proptest::prelude::*;

    const SMALL: Machine = Machine {
        millicores: 4000,
        memory_mib: 64 * GIB,
    };

    struct Case {
        trace: Trace,
        events: Vec<Event>,
        machines: Vec<u32>,
        count: usize,
    }

    impl Case {
        fn new(vms: impl IntoIterator<Item = (u32, u32, u32, u32)>, count: usize) -> Self {
            Self::touched(vms.into_iter().map(|vm| (vm, UNKNOWN)), count)
        }

        /// The same with what VMs touch, in percent.
        fn touched(
            vms: impl IntoIterator<Item = ((u32, u32, u32, u32), u8)>,
            count: usize,
        ) -> Self {
            let mut trace = Trace::default();
            for ((arrival, life, cores, memory_mib), touched_pct) in vms {
                trace.push(Vm {
                    arrival,
                    departure: arrival + life,
                    millicores: cores * 1000,
                    memory_mib,
                    customer: 0,
                    kind: 0,
                    touched_pct,
                    insensitive: Some(arrival % 2 == 0),
                });
            }
            trace.sort();
            let events = events(&trace);
            let replayed = replay(&trace, &events, (SMALL, count), &mut |_| true).unwrap();
            let machines = replayed.machines;
            Self {
                trace,
                events,
                machines,
                count,
            }
        }

        fn kept(&self, policy: Policy, machines: &[usize]) -> Vec<Kept> {
            let placed = Placed {
                trace: &self.trace,
                events: &self.events,
                machines: &self.machines,
                machine: SMALL,
                count: self.count,
                release_ms: 0,
            };
            let pooled = policy.pooled_mib(&self.trace, &Known::of(&self.trace, 1));
            kept(&placed, &pooled, machines).unwrap()
        }

        /// Local memory, that of pools, and all, in the sum of peaks, by a look at each VM after each event.
        fn looked_up(&self, policy: Policy, of_pool: usize) -> Provision {
            let pooled = policy.pooled_mib(&self.trace, &Known::of(&self.trace, 1));
            let peak = |is: &dyn Fn(usize) -> bool, of: &dyn Fn(usize, u32) -> u32| {
                let at = self.events.iter().map(|event| {
                    let there = self.trace.vms().enumerate().filter(|(place, vm)| {
                        let machine = self.machines[*place];
                        let in_time = vm.arrival <= event.time && event.time < vm.departure;
                        machine != NOWHERE && in_time && is(machine as usize)
                    });
                    there
                        .map(|(place, vm)| u64::from(of(place, vm.memory_mib)))
                        .sum::<u64>()
                });
                at.max().unwrap_or(0)
            };
            let sum = |of_pool: usize, of: &dyn Fn(usize, u32) -> u32| {
                let pools = self.count.div_ceil(of_pool);
                (0..pools)
                    .map(|pool| peak(&|machine| machine % pools == pool, of))
                    .sum()
            };
            Provision {
                without_mib: sum(1, &|_, memory| memory),
                local_mib: sum(1, &|place, memory| memory - pooled[place]),
                pool_mib: sum(of_pool, &|place, _| pooled[place]),
            }
        }
    }

    /// Two machines with peaks of 32 GiB, one after the other: the half that is in a pool is there once.
    #[test]
    fn peaks_at_different_times_share_a_pool() {
        let gib = |gib| gib * GIB;
        let vms = [
            (0, 100, 4, gib(32)),
            (0, 150, 4, gib(2)),
            (100, 900, 4, gib(2)),
            (150, 850, 4, gib(32)),
            (999, 1, 1, gib(1)),
        ];
        let case = Case::new(vms, 2);
        let half = case.kept(Policy::Fixed(0.5), &[1, 2]);
        let mib = |gib: u64| gib * u64::from(GIB);
        let summed = |kept: &Kept| kept.summed;
        let all = |pool_mib| Provision {
            without_mib: mib(64),
            local_mib: mib(32),
            pool_mib,
        };
        assert_eq!(
            (summed(&half[0]), summed(&half[1])),
            (all(mib(32)), all(mib(17)))
        );
        // Both machines have the same peak, and a pool has 8.5 GiB for each.
        assert_eq!(half[1].uniform, all(mib(17)));
    }

    #[test]
    fn vms_touch_the_pool_with_what_they_use_beyond_their_local_half() {
        let vm = |touched| ((0, 100, 1, 8 * GIB), touched);
        let case = Case::touched([vm(40), vm(60), vm(70)], 1);
        assert_eq!(case.kept(Policy::Fixed(0.5), &[1])[0].touching, 2);
    }

    /// The second VM starts a second after the first left, when the pool has nothing else: 32 GiB in two seconds.
    #[test]
    fn a_start_waits_for_all_that_the_peak_does_not_leave_unused() {
        let case = Case::new([(0, 100, 4, 32 * GIB), (101, 100, 4, 32 * GIB)], 1);
        let starts = case.kept(Policy::Fixed(1.0), &[1])[0].starts;
        assert_eq!(starts.needed().map(|speed| speed.get()), Some(20.0));
    }

    #[test]
    fn a_pool_of_fewer_machines_than_others_is_divided_by_its_own() {
        let vms = [8, 32, 8].map(|gib| (0, 100, 4, gib * GIB));
        let kept = Case::new(vms, 3).kept(Policy::Fixed(0.5), &[2])[0];
        // The second machine has a pool alone, and the others one together.
        assert_eq!(kept.uniform.pool_mib, 3 * 16 * u64::from(GIB));
    }

    fn vms() -> impl Strategy<Value = Vec<(u32, u32, u32, u32)>> {
        let one = (0..500_000u32, 1..300_000u32, 1..4u32, 1..40_000u32);
        prop::collection::vec(one, 1..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_pool_saves_no_more_than_its_share_and_merged_pools_no_less(
            vms in vms(), share in 0.0..1.0f64, of_pool in 1..4usize, pools in 1..3usize,
        ) {
            let case = Case::new(vms, 4 * of_pool * pools);
            let policies = [Policy::Fixed(share), Policy::Pond(Predictions::default()), Policy::Oracle];
            for policy in policies {
                let found = case.kept(policy, &[1, of_pool, 2 * of_pool, 4 * of_pool]);
                prop_assert_eq!(found[1].summed, case.looked_up(policy, of_pool));
                for of in [|kept: &Kept| kept.summed, |kept: &Kept| kept.uniform] {
                    let needs = |kept: &Kept| of(kept).local_mib + of(kept).pool_mib;
                    // A pool of one machine saves nothing.
                    prop_assert!(needs(&found[0]) >= of(&found[0]).without_mib);
                    for pair in found[1..].windows(2) {
                        prop_assert!(needs(&pair[1]) <= needs(&pair[0]));
                    }
                    if let Policy::Fixed(share) = policy {
                        let least = (1.0 - share) * of(&found[3]).without_mib as f64;
                        prop_assert!(needs(&found[3]) as f64 >= least - 1e-3);
                    }
                }
            }
            let none = case.kept(Policy::Fixed(0.0), &[4 * of_pool])[0];
            for Provision { without_mib, local_mib, pool_mib } in [none.summed, none.uniform] {
                prop_assert_eq!((local_mib, pool_mib), (without_mib, 0));
            }
            prop_assert_eq!(none.touching, 0);
        }
    }
}
