//! Replays a trace on whole machines: places VMs, and integrates what is stranded. Machines on which a VM has room on one
//! socket come first, so that few VMs span two (Pond, section 3.1: at most 3 %).

use serde::{Deserialize, Serialize};

use super::cluster::{Cluster, NOWHERE, conserved};
use super::events::Event;
use super::kept::Kept;
use super::room::Memory;
use super::seats::Seats;
use crate::PlanError;
use crate::trace::{Machine, Trace};

/// Seconds of a day.
const DAY: u32 = 86_400;
/// Events between two looks at whether to go on.
const LOOK: usize = 1 << 16;
/// One day of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Day {
    /// The day, from 0.
    pub day: u32,
    /// Mean share of cores that were rented.
    pub cores: f64,
    /// Mean share of memory that was stranded.
    pub stranded: f64,
    /// VMs that were placed.
    pub placed: u64,
    /// Those of them that span two sockets.
    pub spanning: u64,
}

/// What one policy needs with pools of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Need {
    /// The least memory where local memory is filled first.
    pub least: Memory,
    /// The same where all that may be in the pool is there.
    pub as_split: Option<Memory>,
    /// Slices of a pool that are needed since others are being released.
    pub buffer: u64,
    /// VMs that are slower than the margin, as expected from the predictions: with local memory filled first, and with
    /// all in the pool that may be there.
    pub slow: (f64, f64),
    /// Seconds times memory that is in the pool, that may be there, and all, in MiB.
    pub pooled: (f64, f64, f64),
}

/// What a cluster needs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Needs {
    /// Memory of a machine without a pool, in MiB; `None` where whole machines are too small.
    pub without: Option<u64>,
    /// By policy, then by size of pools, where VMs stay on their machines.
    pub kept: Vec<Vec<Kept>>,
    /// By policy, then by size of pools; `None` where nothing up to the memory without a pool is enough.
    pub with: Vec<Vec<Option<Need>>>,
}

/// A trace that was replayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// VMs that were placed.
    pub placed: u64,
    /// VMs for which no machine had room.
    pub refused: u64,
    /// Placed VMs that span two sockets.
    pub spanning: u64,
    /// Memory times seconds, in MiB: on another socket than the cores of its VM, and all.
    pub apart: (f64, f64),
    /// Arrivals and departures.
    pub events: u64,
    /// Days, in their order.
    pub days: Vec<Day>,
    /// The machine of each VM, or [`NOWHERE`]; empty once it is of no more use.
    pub machines: Vec<u32>,
    /// What each policy needs; empty where it was not searched.
    pub needs: Needs,
    /// Where it was stopped, if it was: nothing after this second was replayed.
    pub stopped_at: Option<u32>,
}

/// Replays a trace. `go_on` is given the share that is done, and answers whether to go on.
///
/// # Errors
/// Memory was lost or came from nowhere, which would be a mistake of this program.
pub fn replay(
    trace: &Trace,
    events: &[Event],
    (machine, machines): (Machine, usize),
    go_on: &mut dyn FnMut(f64) -> bool,
) -> Result<Replayed, PlanError> {
    let smallest = trace.vms().map(|vm| vm.millicores).min().unwrap_or(1);
    let mut state = State {
        cluster: Cluster::new(machine, machines, smallest),
        now: 0,
        alive_mib: 0,
        days: Vec::new(),
        sums: (0.0, 0.0, 0),
        of_day: (0, 0),
    };
    let mut seats = Seats::new(machine, machines, trace.len());
    let end = trace.last_arrival();
    let mut replayed = Replayed {
        placed: 0,
        refused: 0,
        spanning: 0,
        apart: (0.0, 0.0),
        events: 0,
        days: Vec::new(),
        machines: vec![NOWHERE; trace.len()],
        needs: Needs::default(),
        stopped_at: None,
    };
    for (done, event) in events.iter().enumerate() {
        let at = event.vm as usize;
        let Some(vm) = trace.get(at) else { continue };
        state.advance(event.time)?;
        if done.is_multiple_of(LOOK) && !go_on(done as f64 / events.len() as f64) {
            replayed.stopped_at = Some(event.time);
            break;
        }
        replayed.events += 1;
        if !event.arrives {
            let machine = replayed.machines[at];
            if machine != NOWHERE {
                state
                    .cluster
                    .remove(machine as usize, vm.millicores, vm.memory_mib);
                seats.leave(event.vm, machine as usize, &vm);
                state.alive_mib -= u64::from(vm.memory_mib);
            }
        } else if let Some(machine) = state.cluster.best_preferred(&vm, |at| seats.has(at, &vm)) {
            replayed.placed += 1;
            replayed.machines[at] = machine as u32;
            state.cluster.add(machine, &vm);
            state.alive_mib += u64::from(vm.memory_mib);
            let apart = seats.sit(event.vm, machine, &vm);
            let spans = u64::from(apart.is_some());
            replayed.spanning += spans;
            state.of_day = (state.of_day.0 + 1, state.of_day.1 + spans);
            let seconds = f64::from(vm.departure.min(end).saturating_sub(vm.arrival));
            replayed.apart.0 += f64::from(apart.unwrap_or(0)) * seconds;
            replayed.apart.1 += f64::from(vm.memory_mib) * seconds;
        } else {
            replayed.refused += 1;
        }
    }
    state.recount()?;
    state.close_day();
    replayed.days = state.days;
    Ok(replayed)
}

struct State {
    cluster: Cluster,
    now: u32,
    alive_mib: u64,
    days: Vec<Day>,
    /// Rented cores and stranded memory, times seconds, and the seconds of the day.
    sums: (f64, f64, u32),
    /// VMs that were placed on the day, and those that span two sockets.
    of_day: (u64, u64),
}

impl State {
    /// Time passes.
    fn advance(&mut self, to: u32) -> Result<(), PlanError> {
        while self.now < to {
            let end = (self.now / DAY + 1).saturating_mul(DAY).min(to);
            let passed = end - self.now;
            let seconds = f64::from(passed);
            self.sums.0 += self.cluster.cores_share() * seconds;
            self.sums.1 += self.cluster.stranded_share() * seconds;
            self.sums.2 += passed;
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
            let (placed, spanning) = std::mem::take(&mut self.of_day);
            self.days.push(Day {
                day: (self.now - 1) / DAY,
                cores: cores / f64::from(seconds),
                stranded: stranded / f64::from(seconds),
                placed,
                spanning,
            });
        }
    }

    /// The VMs against the machines, one by one.
    fn recount(&self) -> Result<(), PlanError> {
        let machines = 0..self.cluster.machines();
        let used = machines.map(|at| u64::from(self.cluster.used_memory(at)));
        conserved(self.now, self.alive_mib, used.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::events::events;
    use crate::trace::generate::{Generate, MACHINE};
    use crate::trace::{GIB, STAYS, UNKNOWN, Vm};

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

    #[test]
    fn stranded_memory_is_averaged_over_days() {
        let mut trace = Trace::default();
        for vm in [
            vm(0, STAYS, 4, 16),
            vm(43_200, STAYS, 4, 64),
            vm(86_400, STAYS, 4, 1),
        ] {
            trace.push(vm);
        }
        let machine = Machine {
            millicores: 4000,
            memory_mib: 64 * GIB,
        };
        let found = replay(&trace, &events(&trace), (machine, 2), &mut |_| true).unwrap();
        assert_eq!((found.placed, found.refused), (2, 1));
        assert_eq!(found.machines, [0, 1, NOWHERE]);
        let first = found.days[0];
        // 48 of 128 GiB all day; the second machine strands nothing.
        assert_eq!((first.day, first.cores, first.stranded), (0, 0.75, 0.375));
    }

    #[test]
    fn a_vm_that_leaves_makes_room_in_the_same_second() {
        let mut trace = Trace::default();
        trace.push(vm(0, 10, 96, 8));
        trace.push(vm(10, 20, 96, 8));
        let found = replay(&trace, &events(&trace), (MACHINE, 1), &mut |_| true).unwrap();
        assert_eq!((found.placed, found.events), (2, 3));
    }

    #[test]
    fn a_stopped_replay_says_where() {
        let generate = Generate {
            machines: 4,
            days: 60.0,
            ..Generate::default()
        };
        let trace = generate.run().unwrap();
        let found = replay(&trace, &events(&trace), (MACHINE, 4), &mut |_| false).unwrap();
        assert!(found.stopped_at.is_some());
    }
}
