//! Machines of a cluster, and where a VM is placed: best fit over cores and memory.

use super::events::Event;
use super::free::Free;
use crate::PlanError;
use crate::trace::{Machine, Trace, Vm};

/// Of a VM for which no machine had room.
pub const NOWHERE: u32 = u32::MAX;

/// A cluster of equal machines.
#[derive(Debug, Clone)]
pub struct Cluster {
    machine: Machine,
    free: Free,
    /// Cores below which a machine rents nothing more.
    smallest: u32,
    used_cores: u64,
    stranded: u64,
}

impl Cluster {
    /// Empty machines; `smallest` is the VM with the fewest cores, in thousandths.
    pub fn new(machine: Machine, machines: usize, smallest: u32) -> Self {
        let whole = (machine.millicores.into(), machine.memory_mib.into());
        Self {
            machine,
            free: Free::new(whole, machines),
            smallest,
            used_cores: 0,
            stranded: 0,
        }
    }

    /// The fullest machine that has room: the one with the least sum of what is left of cores and of memory, each as a
    /// share of the machine. Of equals the first.
    pub fn best_fit(&self, vm: &Vm) -> Option<usize> {
        self.best_of(vm, |_| true)
    }

    /// The same, where machines that are preferred come before all others.
    pub fn best_preferred(&self, vm: &Vm, preferred: impl Fn(usize) -> bool) -> Option<usize> {
        self.best_of(vm, preferred).or_else(|| self.best_fit(vm))
    }

    fn best_of(&self, vm: &Vm, is: impl Fn(usize) -> bool) -> Option<usize> {
        let least = (vm.millicores.into(), vm.memory_mib.into());
        self.free.fullest(least, |at, _| is(at))
    }

    /// Puts a VM onto a machine that has room.
    pub fn add(&mut self, at: usize, vm: &Vm) {
        let (cores, memory) = self.free.of(at);
        let (less, taken) = (u64::from(vm.millicores), u64::from(vm.memory_mib));
        self.change(at, (cores - less, memory - taken));
    }

    /// Takes a VM of this size from the machine that it is on.
    pub fn remove(&mut self, at: usize, millicores: u32, memory_mib: u32) {
        let (cores, memory) = self.free.of(at);
        let (more, given) = (u64::from(millicores), u64::from(memory_mib));
        self.change(at, (cores + more, memory + given));
    }

    fn change(&mut self, at: usize, now: (u64, u64)) {
        let before = self.free.of(at);
        self.free.set(at, now);
        self.used_cores = self.used_cores + before.0 - now.0;
        self.stranded = self.stranded - self.strands(before) + self.strands(now);
    }

    /// Memory that is free and cannot be rented, since the cores are.
    fn strands(&self, (cores, memory): (u64, u64)) -> u64 {
        match cores < u64::from(self.smallest) {
            true => memory,
            false => 0,
        }
    }

    /// How many machines there are.
    pub fn machines(&self) -> usize {
        self.free.machines()
    }

    /// Memory in use on a machine, in MiB.
    pub fn used_memory(&self, at: usize) -> u32 {
        self.machine.memory_mib - self.free.of(at).1 as u32
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

/// A trace that was placed on whole machines.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'t> {
    /// Its VMs.
    pub trace: &'t Trace,
    /// When they arrive and leave.
    pub events: &'t [Event],
    /// Where each was placed on whole machines; those that were [`NOWHERE`] are left out.
    pub machines: &'t [u32],
    /// The size of a machine.
    pub machine: Machine,
    /// How many there are.
    pub count: usize,
    /// Milliseconds until a slice of a VM that has left can be given to another one (Pond, section 4.2: 10 to 100).
    pub release_ms: u32,
}

/// Whether memory in use is that of the VMs that are there, in MiB.
///
/// # Errors
/// It is not.
pub fn conserved(second: u32, expected: u64, found: u64) -> Result<(), PlanError> {
    match expected == found {
        true => Ok(()),
        false => Err(PlanError::NotConserved {
            second,
            expected,
            found,
        }),
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
        assert_eq!(cluster.best_preferred(&vm(4, 8), |at| at == 2), Some(2));
        assert_eq!(cluster.best_preferred(&vm(4, 8), |_| false), Some(1));
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
