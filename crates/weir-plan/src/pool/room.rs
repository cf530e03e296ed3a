//! What is free of machines and pools, and where a VM finds room.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::cluster::{Placed, conserved};
use super::free::Free;
use crate::PlanError;
use crate::trace::{GIB, Vm};

weir_model::named! {
    /// Which memory a VM gets when it starts.
    pub enum Fill {
        /// What may be in the pool is only there as far as the machine has no local memory for it.
        LocalFirst = "local first",
        /// What may be in the pool is there.
        AsSplit = "as split",
    }
}

/// Memory of equal machines and pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Of a machine, in MiB.
    pub local_mib: u64,
    /// Of a pool, in slices.
    pub slices: u64,
    /// Machines that share a pool.
    pub of_pool: usize,
}

impl Memory {
    /// Of one of `count` machines with its part of all pools, in MiB. Fewer machines may share the last pool, or the
    /// only one, than could.
    pub fn of_machine(self, count: usize) -> f64 {
        let pools = count.div_ceil(self.of_pool.max(1)) as u64;
        self.local_mib as f64 + (pools * self.slices * u64::from(GIB)) as f64 / count.max(1) as f64
    }
}

/// What is free.
pub struct Room {
    memory: Memory,
    free: Free,
    /// Slices of each pool that are in use or being released.
    slices: Vec<u64>,
    /// The most of them that one pool had.
    pub peak: u64,
    /// When slices are free again, of which pool, and how many.
    releases: BinaryHeap<Reverse<(u32, usize, u32)>>,
    /// Memory of the VMs that are there, in MiB, and of slices that are being released.
    alive: (u64, u64),
}

impl Room {
    /// Nothing is in use.
    pub fn new(placed: &Placed<'_>, memory: Memory) -> Self {
        let cores = u64::from(placed.machine.millicores);
        Self {
            memory,
            free: Free::new((cores, memory.local_mib), placed.count),
            slices: vec![0; placed.count.div_ceil(memory.of_pool.max(1))],
            peak: 0,
            releases: BinaryHeap::new(),
            alive: (0, 0),
        }
    }

    fn pool(&self, machine: usize) -> usize {
        machine / self.memory.of_pool.max(1)
    }

    /// The fullest machine with room, as `Cluster::best_fit`, and the slices that the VM gets there.
    pub fn fullest(&self, vm: &Vm, slices: u32, fill: Fill) -> Option<(usize, u32)> {
        let got = |free: u64| match fill {
            Fill::AsSplit => slices,
            Fill::LocalFirst => {
                let lacks = u64::from(vm.memory_mib).saturating_sub(free);
                (lacks.div_ceil(u64::from(GIB)) as u32).min(slices)
            }
        };
        let least = (u64::from(vm.millicores), local(vm, slices));
        let at = self.free.fullest(least, |at, free| {
            self.slices[self.pool(at)] + u64::from(got(free)) <= self.memory.slices
        })?;
        Some((at, got(self.free.of(at).1)))
    }

    /// A VM begins on a machine with this many slices.
    pub fn arrive(&mut self, machine: usize, vm: &Vm, slices: u32) {
        let pool = self.pool(machine);
        let (cores, free) = self.free.of(machine);
        let left = (cores - u64::from(vm.millicores), free - local(vm, slices));
        self.free.set(machine, left);
        self.slices[pool] += u64::from(slices);
        self.peak = self.peak.max(self.slices[pool]);
        self.alive.0 += u64::from(vm.memory_mib);
    }

    /// It ends; its slices are being released for this many milliseconds each.
    pub fn leave(&mut self, machine: usize, vm: &Vm, slices: u32, (now, release_ms): (u32, u32)) {
        let (cores, free) = self.free.of(machine);
        let left = (cores + u64::from(vm.millicores), free + local(vm, slices));
        self.free.set(machine, left);
        self.alive.0 -= u64::from(vm.memory_mib);
        let pool = self.pool(machine);
        let seconds = (u64::from(slices) * u64::from(release_ms)).div_ceil(1000) as u32;
        if seconds == 0 {
            self.slices[pool] -= u64::from(slices);
        } else if slices > 0 {
            self.alive.1 += u64::from(slices);
            let when = now.saturating_add(seconds);
            self.releases.push(Reverse((when, pool, slices)));
        }
    }

    /// Slices that are free again at a second.
    pub fn released(&mut self, now: u32) {
        while let Some(&Reverse((when, pool, slices))) = self.releases.peek() {
            if when > now {
                break;
            }
            self.releases.pop();
            self.slices[pool] -= u64::from(slices);
            self.alive.1 -= u64::from(slices);
        }
    }

    /// Compares the VMs with machines and pools, one by one.
    ///
    /// # Errors
    /// Memory was lost or came from nowhere.
    pub fn recount(&self, now: u32) -> Result<(), PlanError> {
        let machines = 0..self.free.machines();
        let local = machines.map(|at| self.memory.local_mib - self.free.of(at).1);
        let slices: u64 = self.slices.iter().sum();
        let found = local.sum::<u64>() + slices * u64::from(GIB);
        conserved(now, self.alive.0 + self.alive.1 * u64::from(GIB), found)
    }
}

/// Memory of a VM that is not in the pool, in MiB.
fn local(vm: &Vm, slices: u32) -> u64 {
    u64::from(vm.memory_mib.saturating_sub(slices * GIB))
}
