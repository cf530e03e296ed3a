//! On which of a machine's two sockets a VM has its cores and memory, and what of its memory is on the other one (Pond,
//! section 3.1). Which machine a VM is on is decided before, with a look at whether one of its sockets has room.

use std::collections::BTreeMap;

use crate::trace::{Machine, Vm};

/// Sockets of a machine.
pub const SOCKETS: u32 = 2;

/// Cores in thousandths, and memory in MiB.
type Part = (u32, u32);

/// What is free of each socket, and where VMs are.
#[derive(Debug, Clone)]
pub struct Seats {
    free: Vec<[Part; SOCKETS as usize]>,
    /// What spanning VMs have of each socket, by their place in the trace.
    spanning: BTreeMap<u32, [Part; SOCKETS as usize]>,
    /// Of each VM that is on one socket, whether that is the second.
    second: Vec<bool>,
}

impl Seats {
    /// Empty machines, whose sockets are equal, and a place for each of this many VMs.
    pub fn new(machine: Machine, machines: usize, vms: usize) -> Self {
        let half = |whole: u32| (whole - whole / 2, whole / 2);
        let (cores, memory) = (half(machine.millicores), half(machine.memory_mib));
        Self {
            free: vec![[(cores.0, memory.0), (cores.1, memory.1)]; machines],
            spanning: BTreeMap::new(),
            second: vec![false; vms],
        }
    }

    /// Whether a socket of a machine has room for all of a VM.
    pub fn has(&self, machine: usize, vm: &Vm) -> bool {
        self.free[machine].iter().any(|part| has(*part, vm))
    }

    /// Puts a VM onto the fuller socket of its machine with room for all of it, or onto both. Returns whether it spans
    /// both, and how much of its memory is beyond what its cores have on the same socket, in MiB.
    pub fn sit(&mut self, place: u32, machine: usize, vm: &Vm) -> Option<u32> {
        let free = &mut self.free[machine];
        let second = match (has(free[0], vm), has(free[1], vm)) {
            (false, false) => {
                // As much as possible on the socket with more cores left, and memory where the cores are.
                let first = usize::from(free[1].0 > free[0].0);
                let cores = vm.millicores.min(free[first].0);
                let wanted = u64::from(vm.memory_mib) * u64::from(cores);
                let wanted = wanted.div_ceil(u64::from(vm.millicores.max(1))) as u32;
                let least = vm.memory_mib.saturating_sub(free[1 - first].1);
                let memory = wanted.min(free[first].1).max(least);
                let mut parts = [(0, 0); SOCKETS as usize];
                parts[first] = (cores, memory);
                parts[1 - first] = (vm.millicores - cores, vm.memory_mib - memory);
                for (free, part) in free.iter_mut().zip(parts) {
                    *free = (free.0 - part.0, free.1 - part.1);
                }
                self.spanning.insert(place, parts);
                return Some(memory.abs_diff(wanted));
            }
            (true, true) => free[1] < free[0],
            (first, _) => !first,
        };
        let socket = &mut free[usize::from(second)];
        *socket = (socket.0 - vm.millicores, socket.1 - vm.memory_mib);
        self.second[place as usize] = second;
        None
    }

    /// Takes a VM from its machine.
    pub fn leave(&mut self, place: u32, machine: usize, vm: &Vm) {
        let mut parts = [(0, 0); SOCKETS as usize];
        parts[usize::from(self.second[place as usize])] = (vm.millicores, vm.memory_mib);
        let parts = self.spanning.remove(&place).unwrap_or(parts);
        for (free, part) in self.free[machine].iter_mut().zip(parts) {
            *free = (free.0 + part.0, free.1 + part.1);
        }
    }
}

fn has(free: Part, vm: &Vm) -> bool {
    free.0 >= vm.millicores && free.1 >= vm.memory_mib
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::cluster::{Cluster, NOWHERE};
    use crate::pool::events::events;
    use crate::pool::replay::replay;
    use crate::trace::{GIB, Trace, UNKNOWN};
    use proptest::prelude::*;

    const SMALL: Machine = Machine {
        millicores: 8000,
        memory_mib: 32 * GIB,
    };

    fn vm(arrival: u32, departure: u32, cores: u32, gib: u32) -> Vm {
        Vm {
            arrival,
            departure,
            millicores: cores * 1000,
            memory_mib: gib * GIB,
            customer: 0,
            kind: 0,
            touched_pct: UNKNOWN,
            insensitive: None,
        }
    }

    #[test]
    fn a_vm_spans_where_neither_socket_has_room() {
        let mut seats = Seats::new(SMALL, 1, 9);
        let mut sit = |place, cores, gib| seats.sit(place, 0, &vm(0, 1, cores, gib));
        // Two of three cores each; the third VM has one core on each socket, and half of its memory.
        assert_eq!((sit(0, 3, 4), sit(1, 3, 4)), (None, None));
        assert_eq!(sit(2, 2, 4), Some(0));
        for place in 0..3 {
            let (cores, gib) = if place == 2 { (2, 4) } else { (3, 4) };
            seats.leave(place, 0, &vm(0, 1, cores, gib));
        }
        let mut sit = |place, cores, gib| seats.sit(place, 0, &vm(0, 1, cores, gib));
        // 14 of 16 GiB on either; the third VM's cores find room on one socket, and half of its memory.
        assert_eq!((sit(3, 1, 14), sit(4, 2, 14)), (None, None));
        assert_eq!(sit(5, 1, 4), Some(2 * GIB));
    }

    #[test]
    fn the_fuller_socket_is_filled_first() {
        let mut seats = Seats::new(SMALL, 1, 3);
        for (place, cores) in [(0, 2), (1, 2), (2, 4)] {
            assert_eq!(seats.sit(place, 0, &vm(0, 1, cores, 1)), None);
        }
        assert_eq!(seats.free[0], [(0, 14 * GIB), (0, 15 * GIB)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn sockets_keep_what_machines_have_and_a_vm_spans_where_no_socket_of_any_machine_has_room(
            vms in prop::collection::vec((0..500_000u32, 1..300_000u32, 1..9u32, 1..33u32), 1..200),
        ) {
            let mut trace = Trace::default();
            for (at, life, cores, gib) in vms {
                trace.push(vm(at, at + life, cores, gib));
            }
            trace.sort();
            let events = events(&trace);
            let replayed = replay(&trace, &events, (SMALL, 8), &mut |_| true)?;
            // The same by hand.
            let (mut cluster, mut seats) = (Cluster::new(SMALL, 8, 1), Seats::new(SMALL, 8, trace.len()));
            let (mut machines, mut spanning) = (vec![NOWHERE; trace.len()], 0);
            for event in &events {
                let place = event.vm as usize;
                let vm = trace.get(place).unwrap();
                if !event.arrives && machines[place] != NOWHERE {
                    cluster.remove(machines[place] as usize, vm.millicores, vm.memory_mib);
                    seats.leave(event.vm, machines[place] as usize, &vm);
                } else if let Some(at) = cluster.best_preferred(&vm, |at| seats.has(at, &vm)).filter(|_| event.arrives) {
                    machines[place] = at as u32;
                    let fits = (0..8).any(|at| seats.has(at, &vm));
                    cluster.add(at, &vm);
                    let apart = seats.sit(event.vm, at, &vm);
                    spanning += u64::from(apart.is_some());
                    prop_assert_eq!(apart.is_some(), !fits);
                    prop_assert!(apart.is_none_or(|apart| apart <= vm.memory_mib));
                }
                for (at, free) in seats.free.iter().enumerate() {
                    prop_assert_eq!(free[0].1 + free[1].1, SMALL.memory_mib - cluster.used_memory(at));
                }
            }
            prop_assert_eq!((machines, spanning), (replayed.machines, replayed.spanning));
        }
    }
}
