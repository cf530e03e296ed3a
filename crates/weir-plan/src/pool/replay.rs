//! Replays a trace on a cluster: places VMs, follows local and pool memory under every policy at once, and integrates
//! what is stranded.
//!
//! Memory grows with the VMs that are there at one time, not with the length of the trace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::books::{Books, Needs};
use super::cluster::Cluster;
use super::split::{Known, Policy};
use crate::PlanError;
use crate::trace::{GIB, Machine, STAYS, Trace};

/// Seconds of a day.
const DAY: u32 = 86_400;
/// Events between two looks at whether to go on.
const LOOK: u64 = 1 << 16;

/// What is replayed.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The machines.
    pub machine: Machine,
    /// How many there are.
    pub machines: usize,
    /// Machines that share a pool, for each size of pools.
    pub pools: Vec<usize>,
    /// What is compared.
    pub policies: Vec<Policy>,
    /// Milliseconds until a slice of a VM that has left can be given to another one (Pond, section 4.2: 10 to 100).
    pub release_ms: u32,
}

/// One day of a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Day {
    /// The day, from 0.
    pub day: u32,
    /// Mean share of cores that were rented.
    pub cores: f64,
    /// Mean share of memory that was stranded.
    pub stranded: f64,
}

/// A trace that was replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// VMs that were placed.
    pub placed: u64,
    /// VMs for which no machine had room.
    pub refused: u64,
    /// Arrivals and departures.
    pub events: u64,
    /// Days, in their order.
    pub days: Vec<Day>,
    /// What each policy needs, in the order of the setting.
    pub needs: Vec<Needs>,
    /// Where it was stopped, if it was: nothing after this second was replayed.
    pub stopped_at: Option<u32>,
}

/// A VM that is there.
#[derive(Debug, Clone, Default)]
struct Alive {
    machine: u32,
    millicores: u32,
    memory_mib: u32,
    /// Slices in the pool under each policy.
    slices: Vec<u32>,
}

/// What happens to a slot of a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Its VM leaves.
    Leave,
    /// Its slices are released and scrubbed.
    Released,
}

/// Replays a trace whose unknown fields were filled. `go_on` is told the share that is done, and answers whether to go on.
///
/// # Errors
/// Memory was lost or came from nowhere, which would be a mistake of this program.
pub fn replay(
    trace: &Trace,
    setting: &Setting,
    known: &Known,
    go_on: &mut dyn FnMut(f64) -> bool,
) -> Result<Replayed, PlanError> {
    let smallest = trace.vms().map(|vm| vm.millicores).min().unwrap_or(1);
    let mut state = State {
        setting,
        cluster: Cluster::new(setting.machine, setting.machines, smallest),
        books: setting
            .policies
            .iter()
            .map(|_| Books::new(setting))
            .collect(),
        slots: Vec::new(),
        free: Vec::new(),
        ends: BinaryHeap::new(),
        now: 0,
        alive_mib: 0,
        days: Vec::new(),
        sums: (0.0, 0.0, 0),
        memory_seconds: 0.0,
        events: 0,
    };
    let (mut placed, mut refused, mut stopped_at) = (0, 0, None);
    for (at, vm) in trace.vms().enumerate() {
        state.until(vm.arrival)?;
        state.advance(vm.arrival)?;
        if state.events.is_multiple_of(LOOK) && !go_on(at as f64 / trace.len() as f64) {
            stopped_at = Some(vm.arrival);
            break;
        }
        state.events += 1;
        let Some(machine) = state.cluster.best_fit(&vm) else {
            refused += 1;
            continue;
        };
        placed += 1;
        state.cluster.add(machine, &vm);
        state.alive_mib += u64::from(vm.memory_mib);
        let slot = state.free.pop().unwrap_or_else(|| {
            state.slots.push(Alive::default());
            state.slots.len() - 1
        });
        let mut slices = std::mem::take(&mut state.slots[slot].slices);
        slices.clear();
        for (policy, books) in setting.policies.iter().zip(&mut state.books) {
            let split = policy.split(&vm, at as u64, known);
            books.add(machine, vm.memory_mib, split.slices, &setting.pools);
            books.slow += split.slow;
            slices.push(split.slices);
        }
        state.slots[slot] = Alive {
            machine: machine as u32,
            millicores: vm.millicores,
            memory_mib: vm.memory_mib,
            slices,
        };
        if vm.departure != STAYS {
            state.ends.push(Reverse((vm.departure, Event::Leave, slot)));
        }
    }
    let end = stopped_at.unwrap_or_else(|| trace.last_arrival());
    state.advance(end)?;
    state.recount()?;
    state.close_day();
    let memory_seconds = state.memory_seconds;
    let needs = state
        .books
        .iter()
        .map(|books| books.needs(placed, memory_seconds));
    Ok(Replayed {
        placed,
        refused,
        events: state.events,
        needs: needs.collect(),
        days: state.days,
        stopped_at,
    })
}

struct State<'s> {
    setting: &'s Setting,
    cluster: Cluster,
    books: Vec<Books>,
    slots: Vec<Alive>,
    free: Vec<usize>,
    ends: BinaryHeap<Reverse<(u32, Event, usize)>>,
    now: u32,
    alive_mib: u64,
    days: Vec<Day>,
    /// Rented cores and stranded memory, times seconds, and the seconds of the day.
    sums: (f64, f64, u32),
    memory_seconds: f64,
    events: u64,
}

impl State<'_> {
    /// All that ends up to a second, in order of time.
    fn until(&mut self, time: u32) -> Result<(), PlanError> {
        while let Some(&Reverse((at, event, slot))) = self.ends.peek() {
            if at > time {
                break;
            }
            self.ends.pop();
            self.advance(at)?;
            match event {
                Event::Leave => self.leave(slot),
                Event::Released => self.released(slot),
            }
        }
        Ok(())
    }

    fn leave(&mut self, slot: usize) {
        self.events += 1;
        let alive = &self.slots[slot];
        let (machine, memory) = (alive.machine as usize, alive.memory_mib);
        self.cluster.remove(machine, alive.millicores, memory);
        self.alive_mib -= u64::from(memory);
        for (books, &slices) in self.books.iter_mut().zip(&alive.slices) {
            books.leave(machine, memory, slices, &self.setting.pools);
        }
        // The release is in the background; the longest of all policies decides when the slot is free again.
        let most = alive.slices.iter().max().copied().unwrap_or(0);
        let seconds = (u64::from(most) * u64::from(self.setting.release_ms)).div_ceil(1000);
        let done = self.now.saturating_add(seconds as u32);
        self.ends.push(Reverse((done, Event::Released, slot)));
    }

    fn released(&mut self, slot: usize) {
        let alive = &self.slots[slot];
        for (books, &slices) in self.books.iter_mut().zip(&alive.slices) {
            books.release(alive.machine as usize, slices, &self.setting.pools);
        }
        self.free.push(slot);
    }

    /// Time passes: integrals, and the check that no memory was lost since.
    fn advance(&mut self, to: u32) -> Result<(), PlanError> {
        if to <= self.now {
            return Ok(());
        }
        for books in &self.books {
            let found = books.total_local + books.total_slices * u64::from(GIB);
            if found != self.alive_mib {
                return Err(lost(self.now, self.alive_mib, found));
            }
        }
        while self.now < to {
            let end = (self.now / DAY + 1).saturating_mul(DAY).min(to);
            let passed = end - self.now;
            let seconds = f64::from(passed);
            self.sums.0 += self.cluster.cores_share() * seconds;
            self.sums.1 += self.cluster.stranded_share() * seconds;
            self.sums.2 += passed;
            self.memory_seconds += self.alive_mib as f64 * seconds;
            for books in &mut self.books {
                books.pooled += (books.total_slices * u64::from(GIB)) as f64 * seconds;
            }
            self.now = end;
            if end.is_multiple_of(DAY) {
                self.close_day();
                self.recount()?;
            }
        }
        Ok(())
    }

    fn close_day(&mut self) {
        let (cores, stranded, seconds) = std::mem::take(&mut self.sums);
        if seconds > 0 {
            self.days.push(Day {
                day: (self.now - 1) / DAY,
                cores: cores / f64::from(seconds),
                stranded: stranded / f64::from(seconds),
            });
        }
    }

    /// The books against the machines, one by one.
    fn recount(&self) -> Result<(), PlanError> {
        for books in &self.books {
            let mut local = 0;
            for (at, level) in books.local.iter().enumerate() {
                local += level.now;
                if level.now > u64::from(self.cluster.used_memory(at)) {
                    return Err(lost(
                        self.now,
                        u64::from(self.cluster.used_memory(at)),
                        level.now,
                    ));
                }
            }
            for pools in &books.owned {
                let slices: u64 = pools.iter().map(|pool| pool.now).sum();
                let found = local + slices * u64::from(GIB);
                if found != self.alive_mib {
                    return Err(lost(self.now, self.alive_mib, found));
                }
            }
        }
        Ok(())
    }
}

fn lost(second: u32, expected: u64, found: u64) -> PlanError {
    PlanError::NotConserved {
        second,
        expected,
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::split::Predictions;
    use crate::trace::generate::Generate;
    use crate::trace::{UNKNOWN, Vm};
    use proptest::prelude::*;

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

    fn replayed(vms: &[Vm], setting: &Setting) -> Replayed {
        let mut trace = Trace::default();
        vms.iter().for_each(|vm| trace.push(*vm));
        trace.sort();
        let known = Known::of(&trace, 1);
        replay(&trace, setting, &known, &mut |_| true).unwrap()
    }

    fn setting(policies: &[Policy]) -> Setting {
        Setting {
            machine: Machine {
                millicores: 4000,
                memory_mib: 64 * GIB,
            },
            machines: 2,
            pools: vec![1, 2],
            policies: policies.to_vec(),
            release_ms: 0,
        }
    }

    /// Two machines, of which each has a VM of 32 GiB and one of 2 GiB, at different times: a pool of both needs no second
    /// 16 GiB.
    #[test]
    fn peaks_at_different_times_share_a_pool() {
        let vms = [
            vm(0, 100, 4, 32),
            vm(0, 150, 4, 2),
            vm(100, 1000, 4, 2),
            vm(150, 1000, 4, 32),
        ];
        let found = replayed(&vms, &setting(&[Policy::AllLocal, Policy::Fixed(0.5)]));
        assert_eq!((found.placed, found.refused), (4, 0));
        assert_eq!(found.needs[0].local, u64::from(64 * GIB));
        assert_eq!(found.needs[1].local, u64::from(32 * GIB));
        assert_eq!(found.needs[1].pools, [(32, 16), (17, 17)]);
    }

    #[test]
    fn slices_stay_with_a_host_until_they_are_released() {
        let vms = [vm(0, 100, 4, 32), vm(101, 200, 4, 32)];
        let mut slow = setting(&[Policy::Fixed(1.0)]);
        assert_eq!(replayed(&vms, &slow).needs[0].pools[0].0, 32);
        slow.release_ms = 100;
        let found = replayed(&vms, &slow);
        // 32 slices take 3.2 s, so that the next VM needs others.
        assert_eq!(found.needs[0].pools[0].0, 64);
        assert_eq!(found.needs[0].at_once[0], 32);
    }

    #[test]
    fn stranded_memory_is_averaged_over_days() {
        let vms = [
            vm(0, STAYS, 4, 16),
            vm(43_200, STAYS, 4, 64),
            vm(86_400, STAYS, 4, 1),
        ];
        let found = replayed(&vms, &setting(&[Policy::AllLocal]));
        assert_eq!(found.refused, 1);
        let first = found.days[0];
        // 48 of 128 GiB all day; the second machine strands nothing.
        assert_eq!((first.day, first.cores, first.stranded), (0, 0.75, 0.375));
    }

    #[test]
    fn a_stopped_replay_says_where() {
        let trace = Generate {
            machines: 4,
            days: 60.0,
            ..Generate::default()
        }
        .run()
        .unwrap();
        let known = Known::of(&trace, 1);
        let found = replay(&trace, &setting(&[Policy::AllLocal]), &known, &mut |_| {
            false
        })
        .unwrap();
        assert!(found.stopped_at.is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn memory_is_conserved_and_a_larger_pool_never_needs_more(
            vms in prop::collection::vec((0..5000u32, 1..3000u32, 1..4u32, 1..200u32), 1..200),
            release_ms in 0..200u32, share in 0.0..1.0f64,
        ) {
            let vms: Vec<Vm> = vms.into_iter().map(|(at, life, cores, quarters)| Vm {
                memory_mib: quarters * GIB / 4, ..vm(at, at + life, cores, 1)
            }).collect();
            let policies = [Policy::AllLocal, Policy::Fixed(share), Policy::Pond(Predictions::default()), Policy::Oracle];
            let setting = Setting { machines: 8, pools: vec![1, 2, 4, 8], release_ms, ..setting(&policies) };
            let found = replayed(&vms, &setting);
            for needs in &found.needs {
                for pair in needs.pools.windows(2) {
                    prop_assert!(pair[1].0 <= pair[0].0);
                }
                for (pools, at_once) in needs.pools.iter().zip(&needs.at_once) {
                    prop_assert!(at_once <= &pools.0);
                }
                prop_assert!(needs.local <= found.needs[0].local);
            }
        }
    }
}
