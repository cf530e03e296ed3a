//! Failures at random moments of a replayed trace: which VMs are killed, which are notified, and which are started again.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::slice;

use super::Topology;
use super::part::{Broken, Fate, Part, Running};
use crate::PlanError;
use crate::pool::SOCKETS;
use crate::pool::cluster::Cluster;
use crate::pool::cluster::{NOWHERE, conserved};
use crate::pool::events::Event;
use crate::trace::{Trace, UNKNOWN, Vm};
use weir_model::random::Random;

/// What one failure does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Harm {
    /// VMs that were there.
    pub there: u64,
    /// VMs that are killed.
    pub killed: u64,
    /// VMs that lose optional memory, are notified, and go on.
    pub told: u64,
    /// VMs that are killed and find room elsewhere.
    pub restarted: u64,
    /// VMs that are killed and find none.
    pub refused: u64,
    /// VMs that arrive while the manager is away, and wait.
    pub waiting: u64,
    /// Machines that are down.
    pub hosts: u64,
}

/// A failure, of which part in pools of which size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failed {
    /// Sockets that share a pool.
    pub sockets: u32,
    /// What failed.
    pub broken: Broken,
    /// What it did.
    pub harm: Harm,
}

/// A trace that was placed on whole machines.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'t> {
    /// Its VMs.
    pub trace: &'t Trace,
    /// When they arrive and leave.
    pub events: &'t [Event],
    /// Where each was placed, or [`NOWHERE`].
    pub machines: &'t [u32],
}

/// The VMs that are there while time passes.
pub(super) struct Alive<'e> {
    /// Those that are there.
    pub(super) vms: BTreeSet<u32>,
    later: Peekable<slice::Iter<'e, Event>>,
}

impl<'e> Alive<'e> {
    pub(super) fn new(events: &'e [Event]) -> Self {
        Self {
            vms: BTreeSet::new(),
            later: events.iter().peekable(),
        }
    }

    /// Time passes, up to and with this second.
    pub(super) fn advance(&mut self, moment: u32) {
        while let Some(event) = self.later.next_if(|event| event.time <= moment) {
            match event.arrives {
                true => self.vms.insert(event.vm),
                false => self.vms.remove(&event.vm),
            };
        }
    }
}

impl Topology {
    /// Breaks one part of each kind at each moment, for pools of each size. The same part of the cluster breaks whatever
    /// the size of pools. `manager_s` is how long a manager is away. `go_on` is given the share that is done, and
    /// answers whether to go on.
    ///
    /// # Errors
    /// Memory was lost or came from nowhere, which would be a mistake of this program.
    pub fn inject(
        &self,
        placed: &Placed<'_>,
        manager_s: f64,
        go_on: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Vec<Failed>, PlanError> {
        let mut random = Random::new(self.seed ^ 0x62_72_65_61_6b);
        let moments = self.moments(placed.trace, &mut random);
        let mut alive = Alive::new(placed.events);
        let mut failed = Vec::new();
        for (done, &moment) in moments.iter().enumerate() {
            if !go_on(done as f64 / moments.len() as f64) {
                break;
            }
            alive.advance(moment);
            let running = self.running(placed, alive.vms.iter().copied());
            let late = (f64::from(moment) + manager_s) as u32;
            let arriving = (alive.later.clone())
                .take_while(|event| event.time <= late)
                .filter(|event| event.arrives)
                .map(|event| event.vm);
            let arriving = self.running(placed, arriving);
            for part in Part::ALL {
                let broken = Broken {
                    part,
                    machine: (random.share() * f64::from(self.machines)) as usize,
                    device: (random.share() * f64::from(self.devices)) as u32,
                    page: random.share(),
                };
                for &sockets in &self.sockets {
                    let of_pool = (sockets / SOCKETS) as usize;
                    if self.count(part, of_pool) > 0 {
                        failed.push(Failed {
                            sockets,
                            broken,
                            harm: self.harm((moment, &running, &arriving), broken, of_pool)?,
                        });
                    }
                }
            }
        }
        Ok(failed)
    }

    /// Random moments of a trace, in their order.
    pub(super) fn moments(&self, trace: &Trace, random: &mut Random) -> Vec<u32> {
        let end = f64::from(trace.last_arrival()) + 1.0;
        let moments = (0..self.moments).map(|_| (random.share() * end) as u32);
        let mut moments: Vec<u32> = moments.collect();
        moments.sort_unstable();
        moments
    }

    fn running(&self, placed: &Placed<'_>, vms: impl Iterator<Item = u32>) -> Vec<Running> {
        vms.filter_map(|place| {
            let machine = *placed.machines.get(place as usize)?;
            let vm = placed.trace.get(place as usize)?;
            (machine != NOWHERE).then(|| Running::new((place, vm), machine as usize, self))
        })
        .collect()
    }

    /// What a failure does to the VMs that are running, and to those that arrive while the manager is away.
    ///
    /// # Errors
    /// Memory was not conserved.
    pub fn harm(
        &self,
        (moment, running, arriving): (u32, &[Running], &[Running]),
        broken: Broken,
        of_pool: usize,
    ) -> Result<Harm, PlanError> {
        let mut harm = Harm {
            there: running.len() as u64,
            hosts: u64::from(broken.part == Part::Machine),
            ..Harm::default()
        };
        if broken.part == Part::Manager {
            let waits =
                |one: &&Running| one.pooled_mib() > 0 && broken.in_pool(one.machine, of_pool);
            harm.waiting = arriving.iter().filter(waits).count() as u64;
            return Ok(harm);
        }
        let owner = match broken.part {
            Part::Dimm => broken
                .owner(running, self.own_mib())
                .map(|owner| owner.place),
            _ => None,
        };
        let (mut killed, mut left) = (Vec::new(), Vec::new());
        for one in running {
            match broken.fate(one, of_pool, self) {
                _ if owner == Some(one.place) => killed.push(one),
                Fate::Killed => killed.push(one),
                fate => {
                    harm.told += u64::from(fate == Fate::Told);
                    left.push(one);
                }
            }
        }
        harm.killed = killed.len() as u64;
        harm.restarted = self.restart(moment, (&killed, &left), broken, of_pool)?;
        harm.refused = harm.killed - harm.restarted;
        Ok(harm)
    }

    /// Starts killed VMs where there is room, the largest first; returns how many. A machine that lost its pool, or a part of
    /// it, starts VMs in its own memory only.
    fn restart(
        &self,
        moment: u32,
        (killed, left): (&[&Running], &[&Running]),
        broken: Broken,
        of_pool: usize,
    ) -> Result<u64, PlanError> {
        let mut cluster = Cluster::new(self.machine, self.machines as usize, 1);
        let (mut own, mut cores) = (
            vec![0u32; cluster.machines()],
            vec![0u32; cluster.machines()],
        );
        let mut expected = 0;
        for one in left {
            cluster.add(one.machine, &one.vm);
            own[one.machine] += one.local_mib;
            cores[one.machine] += one.vm.millicores;
            expected += u64::from(one.vm.memory_mib);
        }
        // What no VM can have is taken first.
        for at in 0..cluster.machines() {
            let free = self.machine.memory_mib - cluster.used_memory(at);
            let gone = if broken.part == Part::Machine && at == broken.machine {
                (self.machine.millicores - cores[at], free)
            } else if broken.without_pool(at, of_pool) {
                let own = (self.own_mib() as u32).saturating_sub(own[at]);
                (0, free.saturating_sub(own))
            } else {
                continue;
            };
            cluster.add(at, &gap(gone));
            expected += u64::from(gone.1);
        }
        let mut waiting = killed.to_vec();
        waiting.sort_by_key(|one| (std::cmp::Reverse(one.vm.memory_mib), one.place));
        let mut restarted = 0;
        for one in waiting {
            if let Some(at) = cluster.best_fit(&one.vm) {
                cluster.add(at, &one.vm);
                expected += u64::from(one.vm.memory_mib);
                restarted += 1;
            }
        }
        let used = |at| u64::from(cluster.used_memory(at));
        let found = (0..cluster.machines()).map(used).sum();
        conserved(moment, expected, found)?;
        Ok(restarted)
    }
}

/// Cores and memory that are not to be had.
fn gap((millicores, memory_mib): (u32, u32)) -> Vm {
    Vm {
        arrival: 0,
        departure: 0,
        millicores,
        memory_mib,
        customer: 0,
        kind: 0,
        touched_pct: UNKNOWN,
        insensitive: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::events::events;
    use crate::pool::replay::replay;
    use crate::trace::generate::{Generate, MACHINE};
    use crate::trace::{GIB, Machine, STAYS};
    use proptest::prelude::*;

    const SMALL: Machine = Machine {
        millicores: 8000,
        memory_mib: 32 * GIB,
    };

    fn topology(machine: Machine, machines: u32) -> Topology {
        Topology {
            sockets: vec![4, 8, 16],
            machines,
            machine,
            share: 0.5,
            optional: 0.0,
            devices: 2,
            interleaved: false,
            switched: false,
            moments: 20,
            seed: 1,
        }
    }

    fn inject(topology: &Topology, trace: &Trace) -> Vec<Failed> {
        let events = events(trace);
        let cluster = (topology.machine, topology.machines as usize);
        let replayed = replay(trace, &events, cluster, &mut |_| true).unwrap();
        let placed = Placed {
            trace,
            events: &events,
            machines: &replayed.machines,
        };
        topology.inject(&placed, 3600.0, &mut |_| true).unwrap()
    }

    fn vm(arrival: u32, departure: u32, cores: u32, gib: u32) -> Vm {
        Vm {
            arrival,
            departure,
            ..gap((cores * 1000, gib * GIB))
        }
    }

    /// Four VMs of four machines, each with 8 GiB of 16 in the pool of two machines.
    fn four(topology: &Topology) -> Vec<Running> {
        (0..4)
            .map(|at| {
                let vm = vm(0, STAYS, 4, 16);
                Running::new((at, vm), at as usize, topology)
            })
            .collect()
    }

    #[test]
    fn a_part_takes_down_what_is_behind_it() {
        let one = Topology {
            devices: 1,
            ..topology(SMALL, 4)
        };
        let harm = |topology: &Topology, part, page| {
            let broken = Broken {
                part,
                machine: 0,
                device: 0,
                page,
            };
            let running = four(topology);
            topology.harm((0, &running, &running), broken, 2).unwrap()
        };
        let killed = |part| harm(&one, part, 0.0).killed;
        // Two machines share a pool.
        assert_eq!((killed(Part::Machine), killed(Part::Device)), (1, 2));
        assert_eq!((killed(Part::Link), killed(Part::Manager)), (1, 0));
        assert_eq!(killed(Part::Switch), 2);
        assert_eq!(harm(&one, Part::Manager, 0.0).waiting, 2);
        // The VM has 8 of the 16 GiB of its machine's own.
        assert_eq!(
            (
                harm(&one, Part::Dimm, 0.49).killed,
                harm(&one, Part::Dimm, 0.5).killed
            ),
            (1, 0)
        );
        // Machines 2 and 3 have room for one more VM each; 0 and 1 have 16 GiB of their own for one.
        assert_eq!(harm(&one, Part::Device, 0.0).restarted, 2);
        let optional = Topology {
            optional: 1.0,
            ..one.clone()
        };
        let found = harm(&optional, Part::Device, 0.0);
        assert_eq!((found.killed, found.told), (0, 2));
        assert_eq!(harm(&optional, Part::Machine, 0.0).killed, 1);
    }

    #[test]
    fn what_finds_no_room_is_refused() {
        let full = Topology {
            devices: 1,
            ..topology(SMALL, 4)
        };
        let running: Vec<Running> = (0..4)
            .map(|at| Running::new((at, vm(0, STAYS, 8, 32)), at as usize, &full))
            .collect();
        let broken = Broken {
            part: Part::Device,
            machine: 2,
            device: 0,
            page: 0.0,
        };
        let harm = full.harm((0, &running, &[]), broken, 2).unwrap();
        // Their own machines have cores, but half of the memory.
        assert_eq!((harm.killed, harm.restarted, harm.refused), (2, 0, 2));
    }

    #[test]
    fn the_largest_vms_are_started_first() {
        let topology = topology(SMALL, 3);
        let running: Vec<Running> = (0..)
            .zip([12, 16, 16, 20])
            .map(|(at, gib)| Running::new((at, vm(0, STAYS, 1, gib)), 0, &topology))
            .collect();
        let broken = Broken {
            part: Part::Machine,
            machine: 0,
            device: 0,
            page: 0.0,
        };
        // 20 and 12 GiB fill one of the two machines that are left, and 16 and 16 the other.
        let harm = topology.harm((0, &running, &[]), broken, 2).unwrap();
        assert_eq!((harm.killed, harm.restarted), (4, 4));
    }

    #[test]
    fn moments_are_those_of_the_seed() {
        let generate = Generate {
            machines: 8,
            days: 10.0,
            ..Generate::default()
        };
        let (trace, asked) = (generate.run().unwrap(), topology(MACHINE, 8));
        let found = inject(&asked, &trace);
        assert_eq!(found, inject(&asked, &trace));
        let other = Topology { seed: 2, ..asked };
        assert_ne!(found, inject(&other, &trace));
        assert!(found.iter().any(|one| one.harm.refused > 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn failures_keep_their_laws(
            vms in prop::collection::vec((0..500_000u32, 1..300_000u32, 1..4u32, 1..100u32), 1..200),
            share in 0.0..=1.0f64, optional in 0.0..=1.0f64, devices in 1..4u32, seed: u64,
        ) {
            let mut trace = Trace::default();
            for (at, life, cores, quarters) in vms {
                trace.push(Vm { memory_mib: quarters * GIB / 4, ..vm(at, at + life, cores, 1) });
            }
            trace.sort();
            let asked = Topology { share, optional, devices, seed, ..topology(SMALL, 8) };
            let found = inject(&asked, &trace);
            for one in &found {
                let harm = one.harm;
                // No VM is killed twice, or killed and notified.
                prop_assert!(harm.killed + harm.told <= harm.there);
                prop_assert_eq!(harm.restarted + harm.refused, harm.killed);
                prop_assert_eq!(harm.hosts > 0, one.broken.part == Part::Machine);
                if one.broken.part == Part::Dimm {
                    prop_assert!(harm.killed <= 1);
                }
                // A larger pool takes down at least as many.
                for other in &found {
                    if other.broken == one.broken && other.sockets > one.sockets && other.broken.part != Part::Link {
                        prop_assert!(other.harm.killed >= harm.killed && other.harm.waiting >= harm.waiting);
                    }
                }
            }
            // The same parts break in all of these.
            let pairs = |asked: Topology| found.iter().copied().zip(inject(&asked, &trace)).collect::<Vec<_>>();
            for (one, spread) in pairs(Topology { interleaved: true, ..asked.clone() }) {
                prop_assert_eq!(one.broken, spread.broken);
                prop_assert!(one.harm.killed <= spread.harm.killed && one.harm.told <= spread.harm.told);
            }
            for (one, without) in pairs(Topology { share: 0.0, ..asked.clone() }) {
                prop_assert!(!one.broken.part.of_pool() || without.harm.killed + without.harm.told == 0);
            }
            for (one, told) in pairs(Topology { optional: 1.0, ..asked.clone() }) {
                if one.broken.part.of_pool() {
                    prop_assert_eq!(one.harm.killed + one.harm.told, told.harm.told);
                    prop_assert_eq!(told.harm.killed, 0);
                }
            }
        }
    }
}
