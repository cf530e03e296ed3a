//! Machines of a cluster, and where a VM is placed: best fit over cores and memory.

use crate::trace::{Machine, Vm};

/// A cluster of equal machines.
#[derive(Debug, Clone)]
pub struct Cluster {
    machine: Machine,
    free_cores: Vec<u32>,
    free_memory: Vec<u32>,
    /// Cores below which a machine rents nothing more.
    smallest: u32,
    used_cores: u64,
    stranded: u64,
}

impl Cluster {
    /// Empty machines; `smallest` is the VM with the fewest cores, in thousandths.
    pub fn new(machine: Machine, machines: usize, smallest: u32) -> Self {
        Self {
            machine,
            free_cores: vec![machine.millicores; machines],
            free_memory: vec![machine.memory_mib; machines],
            smallest,
            used_cores: 0,
            stranded: 0,
        }
    }

    /// The fullest machine that has room: the one with the least sum of what is left of cores and of memory, each as a
    /// share of the machine. Of equals the first.
    pub fn best_fit(&self, vm: &Vm) -> Option<usize> {
        // Shares with one denominator, so that whole numbers are compared.
        let (cores, memory) = (
            u64::from(self.machine.millicores),
            u64::from(self.machine.memory_mib),
        );
        let mut best: Option<(u64, usize)> = None;
        for (at, (&free_cores, &free_memory)) in
            self.free_cores.iter().zip(&self.free_memory).enumerate()
        {
            if free_cores < vm.millicores || free_memory < vm.memory_mib {
                continue;
            }
            let left = u64::from(free_cores) * memory + u64::from(free_memory) * cores;
            if best.is_none_or(|(least, _)| left < least) {
                best = Some((left, at));
            }
        }
        best.map(|(_, at)| at)
    }

    /// Puts a VM onto a machine that has room.
    pub fn add(&mut self, at: usize, vm: &Vm) {
        self.change(at, |cores, memory| {
            (cores - vm.millicores, memory - vm.memory_mib)
        });
    }

    /// Takes a VM of this size from the machine that it is on.
    pub fn remove(&mut self, at: usize, millicores: u32, memory_mib: u32) {
        self.change(at, |cores, memory| {
            (cores + millicores, memory + memory_mib)
        });
    }

    fn change(&mut self, at: usize, change: impl FnOnce(u32, u32) -> (u32, u32)) {
        let before = (self.free_cores[at], self.stranded_at(at));
        let (cores, memory) = change(before.0, self.free_memory[at]);
        (self.free_cores[at], self.free_memory[at]) = (cores, memory);
        self.used_cores = self.used_cores + u64::from(before.0) - u64::from(cores);
        self.stranded = self.stranded - before.1 + self.stranded_at(at);
    }

    /// Memory that is free and cannot be rented, since the cores are.
    fn stranded_at(&self, at: usize) -> u64 {
        match self.free_cores[at] < self.smallest {
            true => u64::from(self.free_memory[at]),
            false => 0,
        }
    }

    /// How many machines there are.
    pub fn machines(&self) -> usize {
        self.free_cores.len()
    }

    /// Memory in use on a machine, in MiB.
    pub fn used_memory(&self, at: usize) -> u32 {
        self.machine.memory_mib - self.free_memory[at]
    }

    /// Share of all cores that are rented.
    pub fn cores_share(&self) -> f64 {
        self.used_cores as f64 / (self.machines() as f64 * f64::from(self.machine.millicores))
    }

    /// Share of all memory that is stranded (Pond, section 3.1).
    pub fn stranded_share(&self) -> f64 {
        self.stranded as f64 / (self.machines() as f64 * f64::from(self.machine.memory_mib))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{GIB, UNKNOWN};

    fn vm(cores: u32, gib: u32) -> Vm {
        Vm {
            arrival: 0,
            departure: 1,
            millicores: cores * 1000,
            memory_mib: gib * GIB,
            customer: 0,
            kind: 0,
            touched_pct: UNKNOWN,
            insensitive: None,
        }
    }

    #[test]
    fn the_fullest_machine_with_room_is_taken_and_memory_is_stranded_when_cores_are_gone() {
        let machine = Machine {
            millicores: 8000,
            memory_mib: 64 * GIB,
        };
        let mut cluster = Cluster::new(machine, 3, 1000);
        cluster.add(1, &vm(4, 8));
        assert_eq!(cluster.best_fit(&vm(4, 8)), Some(1));
        assert_eq!(cluster.best_fit(&vm(5, 8)), Some(0));
        assert_eq!(cluster.best_fit(&vm(1, 65)), None);
        assert_eq!(cluster.stranded_share(), 0.0);
        cluster.add(1, &vm(4, 8));
        assert_eq!(cluster.stranded_share(), 48.0 / 192.0);
        assert_eq!(cluster.cores_share(), 8.0 / 24.0);
        cluster.remove(1, 1000, 2 * GIB);
        assert_eq!(
            (cluster.stranded_share(), cluster.used_memory(1)),
            (0.0, 14 * GIB)
        );
    }
}
