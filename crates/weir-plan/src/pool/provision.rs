//! The least memory with which a trace still finds room, where all machines are equal and so are all pools.
//!
//! Pond does not say how machines and pools are provisioned. Here local memory of a machine and slices of a pool shrink
//! together, until more VMs are refused than by whole machines without a pool and [`TOLERATED`] of all. The scheduler
//! knows both (Pond, section 4.3): it takes the fullest machine that has the cores, the local memory and the slices.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::replay::Setting;
use super::split::{Known, Policy};
use crate::trace::{GIB, STAYS, Trace};

/// Share of VMs that may be refused besides those that whole machines refuse.
pub const TOLERATED: f64 = 0.001;
/// Steps of the bisection: a 300th of a machine's memory.
const STEPS: u32 = 8;
/// Memory that is searched, as a share of that of the machines.
const RANGE: (f64, f64) = (0.25, 1.25);
/// Shares of memory in the pool that are tried, relative to the mean use: a large pool needs less room for peaks.
const SHARES: [f64; 3] = [0.75, 0.875, 1.0];

/// Memory of equal machines and pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Of a machine, in MiB.
    pub local_mib: u64,
    /// Of a pool, in slices.
    pub slices: u64,
    /// Machines that share a pool.
    pub of_pool: usize,
}

/// Finds the least memory of a trace, one policy at a time.
pub struct Search<'t> {
    trace: &'t Trace,
    setting: &'t Setting,
    known: &'t Known,
    limit: u64,
}

impl<'t> Search<'t> {
    /// Counts what whole machines refuse.
    pub fn new(trace: &'t Trace, setting: &'t Setting, known: &'t Known) -> Self {
        let mut search = Self {
            trace,
            setting,
            known,
            limit: u64::MAX,
        };
        let whole = Memory {
            local_mib: u64::from(setting.machine.memory_mib),
            slices: 0,
            of_pool: 1,
        };
        let refused = search.refused(whole, &vec![0; trace.len()]);
        search.limit = refused + (trace.len() as f64 * TOLERATED) as u64;
        search
    }

    /// What of each VM a policy puts into the pool, in slices.
    pub fn splits(&self, policy: Policy) -> Vec<u32> {
        let vms = self.trace.vms().enumerate();
        vms.map(|(at, vm)| policy.split(&vm, at as u64, self.known).slices)
            .collect()
    }

    /// The least memory for these splits; `share` is the mean share of memory that is in the pool. `None` where a quarter
    /// more than now is too little.
    pub fn least(&self, slices: &[u32], of_pool: usize, share: f64) -> Option<Memory> {
        let whole = f64::from(self.setting.machine.memory_mib);
        let memory = |size: f64, share: f64| Memory {
            local_mib: (whole * size * (1.0 - share)) as u64,
            slices: (whole * size * share * of_pool as f64 / f64::from(GIB)).ceil() as u64,
            of_pool,
        };
        let shares = SHARES.iter().map(|part| part * share);
        let mut best: Option<(f64, Memory)> = None;
        for share in shares.take(if share > 0.0 { SHARES.len() } else { 1 }) {
            let fits = |size: f64| self.refused(memory(size, share), slices) <= self.limit;
            // What is not better than another share's need not be searched.
            let (mut low, mut high) = (RANGE.0, best.map_or(RANGE.1, |(size, _)| size));
            if !fits(high) {
                continue;
            }
            for _ in 0..STEPS {
                let middle = (low + high) / 2.0;
                match fits(middle) {
                    true => high = middle,
                    false => low = middle,
                }
            }
            if best.is_none_or(|(size, _)| high < size) {
                best = Some((high, memory(high, share)));
            }
        }
        best.map(|(_, memory)| memory)
    }

    /// VMs without room; counting ends above the limit.
    pub fn refused(&self, memory: Memory, slices: &[u32]) -> u64 {
        let machines = self.setting.machines;
        let of_pool = memory.of_pool.max(1);
        let mut room = Room {
            cores: vec![u64::from(self.setting.machine.millicores); machines],
            local: vec![memory.local_mib; machines],
            slices: vec![memory.slices; machines.div_ceil(of_pool)],
            of_pool,
            whole: (
                u64::from(self.setting.machine.millicores),
                memory.local_mib.max(1),
            ),
        };
        let mut ends: BinaryHeap<Reverse<(u32, End)>> = BinaryHeap::new();
        let mut refused = 0;
        for (vm, &slices) in self.trace.vms().zip(slices) {
            while let Some(&Reverse((time, end))) = ends.peek() {
                if time > vm.arrival {
                    break;
                }
                ends.pop();
                if let Some(release) = room.end(end) {
                    let wait = (u64::from(release.slices) * u64::from(self.setting.release_ms))
                        .div_ceil(1000);
                    ends.push(Reverse((time.saturating_add(wait as u32), release)));
                }
            }
            let needs = End {
                machine: 0,
                cores: vm.millicores,
                local: vm.memory_mib - slices * GIB,
                slices,
            };
            match room.place(needs) {
                Some(placed) if vm.departure != STAYS => ends.push(Reverse((vm.departure, placed))),
                Some(_) => {}
                None => refused += 1,
            }
            if refused > self.limit {
                break;
            }
        }
        refused
    }
}

/// What a VM has on a machine and gives back; without cores, the slices that are released after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    machine: u32,
    cores: u32,
    local: u32,
    slices: u32,
}

/// What is free.
struct Room {
    cores: Vec<u64>,
    local: Vec<u64>,
    /// By pool.
    slices: Vec<u64>,
    of_pool: usize,
    /// Cores and local memory of a whole machine.
    whole: (u64, u64),
}

impl Room {
    fn place(&mut self, needs: End) -> Option<End> {
        let (cores, local) = (u64::from(needs.cores), u64::from(needs.local));
        let mut best: Option<(u64, usize)> = None;
        for (at, (&free, &free_local)) in self.cores.iter().zip(&self.local).enumerate() {
            if free < cores || free_local < local {
                continue;
            }
            // As in `Cluster::best_fit`.
            let left = free * self.whole.1 + free_local * self.whole.0;
            if best.is_none_or(|(least, _)| left < least)
                && self.slices[at / self.of_pool] >= u64::from(needs.slices)
            {
                best = Some((left, at));
            }
        }
        let (_, at) = best?;
        self.cores[at] -= cores;
        self.local[at] -= local;
        self.slices[at / self.of_pool] -= u64::from(needs.slices);
        Some(End {
            machine: at as u32,
            ..needs
        })
    }

    /// Gives back what ends, and returns the slices that are to be released.
    fn end(&mut self, end: End) -> Option<End> {
        let at = end.machine as usize;
        if end.cores == 0 {
            self.slices[at / self.of_pool] += u64::from(end.slices);
            return None;
        }
        self.cores[at] += u64::from(end.cores);
        self.local[at] += u64::from(end.local);
        (end.slices > 0).then_some(End {
            cores: 0,
            local: 0,
            ..end
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::generate::{Generate, MACHINE};

    fn setting(machines: usize) -> Setting {
        Setting {
            machine: MACHINE,
            machines,
            pools: vec![machines],
            policies: Vec::new(),
            release_ms: 100,
        }
    }

    fn trace() -> Trace {
        let generate = Generate {
            machines: 8,
            days: 10.0,
            ..Generate::default()
        };
        generate.run().unwrap()
    }

    #[test]
    fn the_least_memory_is_enough_and_a_tenth_less_is_not() {
        let (trace, setting) = (trace(), setting(8));
        let known = Known::of(&trace, 1);
        let search = Search::new(&trace, &setting, &known);
        for (policy, share) in [(Policy::AllLocal, 0.0), (Policy::Fixed(0.5), 0.49)] {
            let slices = search.splits(policy);
            let least = search.least(&slices, 8, share).unwrap();
            assert!(search.refused(least, &slices) <= search.limit, "{policy}");
            let scaled = |part: f64| Memory {
                local_mib: (least.local_mib as f64 * part) as u64,
                slices: (least.slices as f64 * part) as u64,
                of_pool: 8,
            };
            assert!(
                search.refused(scaled(0.9), &slices) > search.limit,
                "{policy}"
            );
        }
    }

    #[test]
    fn a_pool_of_one_machine_holds_what_the_machine_held() {
        let (trace, setting) = (trace(), setting(8));
        let known = Known::of(&trace, 1);
        let search = Search::new(&trace, &setting, &known);
        let none = vec![0; trace.len()];
        let all_local = search.least(&none, 1, 0.0).unwrap();
        assert_eq!(all_local.slices, 0);
        assert!(all_local.local_mib <= u64::from(MACHINE.memory_mib));
    }
}
