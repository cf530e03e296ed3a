//! Classes by which memory is allocated (Memory disaggregation: why now and what are the challenges): what each
//! needs of a replayed trace, and which VMs lose memory when a device or all of a pool fails.
//!
//! Memory is bought by the rule of `weir plan pool`: the least with which the VMs find room.

use super::Topology;
use super::inject::Alive;
use super::part::{Broken, Fate, Part, Running};
use crate::PlanError;
use crate::pool::SOCKETS;
use crate::pool::cluster::{NOWHERE, Placed};
use crate::pool::provision::Run;
use crate::pool::room::{Fill, Memory};
use crate::pool::split::{Known, Policy, untouched_share};
use crate::trace::GIB;
use weir_model::random::Random;

/// Milliseconds until a slice of a VM that has left can be given to another one (Pond, section 4.2: 10 to 100).
pub const RELEASE_MS: u32 = 100;

weir_model::named! {
    /// How memory is allocated.
    pub enum Class {
        /// From the machine's own memory.
        Local = "local only",
        /// This share of each VM from the pool, such as buffers that are shared.
        Targeted = "targeted pool",
        /// From the machine's own memory while it has some, then from the pool.
        Transparent = "transparent",
        /// The same, but at most this share of each VM from the pool.
        Spill = "spill",
        /// As transparent, but a page of the pool is brought in by a fault when it is used.
        Swap = "remote swap",
    }
}

impl Class {
    /// What of a VM may be in the pool, and what is there.
    fn rule(self, share: f64) -> (Policy, Fill) {
        match self {
            Class::Local => (Policy::Fixed(0.0), Fill::AsSplit),
            Class::Targeted => (Policy::Fixed(share), Fill::AsSplit),
            Class::Transparent | Class::Swap => (Policy::Fixed(1.0), Fill::LocalFirst),
            Class::Spill => (Policy::Fixed(share), Fill::LocalFirst),
        }
    }
}

/// VMs that the loss of memory hits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// Those that lose vital memory, and are killed.
    pub killed: u64,
    /// Those that lose optional memory, are notified, and go on.
    pub told: u64,
}

/// Memory that VMs ever touch, times seconds, in MiB.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Touched {
    /// In the pool, where that has its part of what a VM touches.
    pub even: f64,
    /// In the pool, where that has first what a VM never touches.
    pub cold: f64,
    /// All.
    pub all: f64,
}

/// A cluster whose memory is of one class.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocated {
    /// The class.
    pub class: Class,
    /// Sockets that share a pool; 0 without one.
    pub sockets: u32,
    /// The least memory of equal machines and pools; `None` where whole machines are not enough.
    pub memory: Option<Memory>,
    /// Memory times seconds, in MiB: in the pool, and all of the VMs.
    pub pooled: (f64, f64),
    /// The same of memory that is ever touched.
    pub touched: Touched,
    /// For each moment: the loss of one device, and of a whole pool.
    pub losses: Vec<(Loss, Loss)>,
}

impl Topology {
    /// Every class with pools of each size. `go_on` is given the share that is done, and answers whether to go on; where
    /// it does not, there are none.
    ///
    /// # Errors
    /// Memory was lost or came from nowhere, which would be a mistake of this program.
    pub fn classes(
        &self,
        placed: &Placed<'_>,
        go_on: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Vec<Allocated>, PlanError> {
        let Some(without) = placed.least_without()? else {
            return Ok(Vec::new());
        };
        let known = Known::of(placed.trace, self.seed);
        let mut all: Vec<Allocated> = Vec::new();
        let parts = (Class::ALL.len() * self.sockets.len()) as f64;
        for (at, class) in Class::ALL.into_iter().enumerate() {
            let (policy, fill) = class.rule(self.share);
            let slices = policy.slices(placed.trace, &known);
            for (size, &sockets) in self.sockets.iter().enumerate() {
                if !go_on((at * self.sockets.len() + size) as f64 / parts) {
                    return Ok(Vec::new());
                }
                let of_pool = (sockets / SOCKETS) as usize;
                let local = Memory {
                    local_mib: without,
                    slices: 0,
                    of_pool,
                };
                let of = match class {
                    Class::Local if size > 0 => continue,
                    Class::Local => (0, Some(local)),
                    Class::Swap => {
                        let same = |one: &&Allocated| {
                            one.class == Class::Transparent && one.sockets == sockets
                        };
                        let swap = all.iter().find(same).cloned();
                        all.extend(swap.map(|same| Allocated { class, ..same }));
                        continue;
                    }
                    _ => (sockets, placed.least(&slices, fill, (of_pool, without))?),
                };
                let mut allocated = Allocated {
                    class,
                    sockets: of.0,
                    memory: of.1,
                    pooled: (0.0, 0.0),
                    touched: Touched::default(),
                    losses: Vec::new(),
                };
                if let Some(memory) = of.1 {
                    let run = placed.with(memory, &slices, fill)?;
                    allocated.hold(placed, &run);
                    allocated.losses = self.losses(placed, &run, of_pool);
                }
                all.push(allocated);
            }
        }
        Ok(all)
    }

    /// What a device, and a whole pool, take down at random moments. They are the same for every class.
    fn losses(&self, placed: &Placed<'_>, run: &Run, of_pool: usize) -> Vec<(Loss, Loss)> {
        let mut random = Random::new(self.seed ^ 0x63_6c_61_73_73);
        let mut alive = Alive::new(placed.events);
        let moments = self.moments(placed.trace, &mut random);
        let losses = moments.into_iter().map(|moment| {
            alive.advance(moment);
            let mut broken = Broken {
                part: Part::Device,
                machine: (random.share() * f64::from(self.machines)) as usize,
                device: (random.share() * f64::from(self.devices)) as u32,
                page: 0.0,
            };
            let running = alive.vms.iter().filter_map(|&place| {
                let machine = *run.machines.get(place as usize)?;
                let vm = placed.trace.get(place as usize)?;
                let got = *run.got.get(place as usize)?;
                (machine != NOWHERE).then(|| Running {
                    local_mib: vm.memory_mib.saturating_sub(got * GIB),
                    ..Running::new((place, vm), machine as usize, self)
                })
            });
            let running: Vec<Running> = running.collect();
            let loss = |broken: Broken| {
                let mut loss = Loss::default();
                for one in &running {
                    match broken.fate(one, of_pool, self) {
                        Fate::Killed => loss.killed += 1,
                        Fate::Told => loss.told += 1,
                        Fate::Untouched => {}
                    }
                }
                loss
            };
            let partial = loss(broken);
            // Behind its switch is all of a pool.
            broken.part = Part::Switch;
            (partial, loss(broken))
        });
        losses.collect()
    }
}

impl Allocated {
    /// Adds up what VMs have where, over their time.
    fn hold(&mut self, placed: &Placed<'_>, run: &Run) {
        let end = placed.trace.last_arrival();
        for ((vm, machine), got) in placed.trace.vms().zip(&run.machines).zip(&run.got) {
            if *machine == NOWHERE {
                continue;
            }
            let seconds = f64::from(vm.departure.min(end).saturating_sub(vm.arrival));
            let (memory, pooled) = (f64::from(vm.memory_mib), f64::from(got * GIB));
            let untouched = untouched_share(&vm);
            self.pooled.0 += pooled * seconds;
            self.pooled.1 += memory * seconds;
            self.touched.even += pooled * (1.0 - untouched) * seconds;
            self.touched.cold += (pooled - memory * untouched).max(0.0) * seconds;
            self.touched.all += memory * (1.0 - untouched) * seconds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::events::events;
    use crate::pool::replay::replay;
    use crate::trace::{Machine, STAYS, Trace, UNKNOWN, Vm};
    use proptest::prelude::*;

    const SMALL: Machine = Machine {
        millicores: 8000,
        memory_mib: 32 * GIB,
    };

    fn topology(share: f64) -> Topology {
        Topology {
            sockets: vec![4, 8],
            machines: 8,
            machine: SMALL,
            share,
            optional: 0.0,
            devices: 2,
            interleaved: false,
            switched: false,
            moments: 20,
            seed: 1,
        }
    }

    fn vm(arrival: u32, departure: u32, cores: u32, memory_mib: u32) -> Vm {
        Vm {
            arrival,
            departure,
            millicores: cores * 1000,
            memory_mib,
            customer: 0,
            kind: 0,
            touched_pct: 50,
            insensitive: Some(false),
        }
    }

    fn classes(topology: &Topology, trace: &Trace) -> Vec<Allocated> {
        let events = events(trace);
        let cluster = (topology.machine, topology.machines as usize);
        let replayed = replay(trace, &events, cluster, &mut |_| true).unwrap();
        let placed = Placed {
            trace,
            events: &events,
            machines: &replayed.machines,
            machine: topology.machine,
            count: topology.machines as usize,
            release_ms: RELEASE_MS,
        };
        topology.classes(&placed, &mut |_| true).unwrap()
    }

    /// Eight VMs fill the cores of eight machines, one of them with 8 GiB and the others with a half; half of each is
    /// touched.
    #[test]
    fn each_class_by_hand() {
        let mut trace = Trace::default();
        for at in 0..8 {
            trace.push(vm(0, STAYS, 8, if at == 0 { 8 * GIB } else { GIB / 2 }));
        }
        trace.push(vm(1000, STAYS, 1, 1));
        let found = classes(&topology(0.5), &trace);
        let of = |class, sockets| {
            let mut rows = found.iter();
            rows.find(|one| (one.class, one.sockets) == (class, sockets))
                .unwrap()
        };
        assert_eq!(found.len(), 9);
        let memory = |class, sockets| of(class, sockets).memory.unwrap();
        assert_eq!(memory(Class::Local, 0).local_mib, u64::from(8 * GIB));
        // The slices of one pool hold the half of the large VM that may be there; small VMs have no whole slice.
        assert_eq!(memory(Class::Targeted, 4).slices, 4);
        assert_eq!(memory(Class::Targeted, 4).local_mib, u64::from(4 * GIB));
        // Machines have a half of a GiB for the small VMs, and the pool all of the large one.
        assert_eq!(memory(Class::Transparent, 8).of_machine(8), 2.5 * 1024.0);
        let held = of(Class::Transparent, 8);
        assert_eq!(held.pooled.0 / held.pooled.1, 8.0 / 11.5);
        // Four of its GiB are never touched.
        assert_eq!(held.touched.cold / held.touched.all, 4.0 / 5.75);
        let half = of(Class::Targeted, 8).touched;
        assert_eq!((half.even / half.all, half.cold), (2.0 / 5.75, 0.0));
        let losses = |class, sockets| of(class, sockets).losses.iter().map(|loss| loss.1.killed);
        assert_eq!(losses(Class::Local, 0).sum::<u64>(), 0);
        // All machines share a pool of 16 sockets; of 8 they do where the lost pool is that of the large VM.
        let of_pool: u64 = losses(Class::Transparent, 8).sum();
        assert!((1..20).contains(&of_pool), "{of_pool}");
        let whole = Topology {
            sockets: vec![16],
            ..topology(0.5)
        };
        let found = classes(&whole, &trace);
        let lost: u64 = found
            .iter()
            .filter(|one| one.class == Class::Spill)
            .flat_map(|one| &one.losses)
            .map(|loss| loss.1.killed)
            .sum();
        assert_eq!(lost, 20);
    }

    #[test]
    fn a_stopped_study_has_no_class() {
        let mut trace = Trace::default();
        trace.push(Vm {
            touched_pct: UNKNOWN,
            ..vm(0, STAYS, 1, GIB)
        });
        let events = events(&trace);
        let placed = Placed {
            trace: &trace,
            events: &events,
            machines: &[0],
            machine: SMALL,
            count: 8,
            release_ms: 0,
        };
        let stopped = topology(0.5).classes(&placed, &mut |share| share < 0.5);
        assert_eq!(stopped.unwrap(), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn classes_keep_their_laws(
            vms in prop::collection::vec((0..500_000u32, 1..300_000u32, 1..4u32, 1..100u32), 1..150),
            share in 0.0..=1.0f64, optional in 0.0..=1.0f64, devices in 1..4u32, interleaved: bool,
        ) {
            let mut trace = Trace::default();
            for (at, life, cores, quarters) in vms {
                trace.push(vm(at, at + life, cores, quarters * GIB / 4));
            }
            trace.sort();
            let vital = Topology { devices, interleaved, ..topology(share) };
            let found = classes(&vital, &trace);
            let local = found[0].memory.unwrap().of_machine(8);
            for one in &found {
                let Some(memory) = one.memory else { continue };
                // Where the machine's own memory comes first, no class needs more than none of a pool.
                prop_assert!(one.class == Class::Targeted || memory.of_machine(8) <= local);
                prop_assert!(one.pooled.0 <= one.pooled.1);
                let Touched { even, cold, all } = one.touched;
                prop_assert!(cold <= even * (1.0 + 1e-9) && even <= all.min(one.pooled.0) * (1.0 + 1e-9));
                let most = if one.class == Class::Local { 0.0 } else if one.class == Class::Swap || one.class == Class::Transparent { 1.0 } else { share };
                prop_assert!(one.pooled.0 <= most * one.pooled.1 * (1.0 + 1e-9));
                for (partial, total) in &one.losses {
                    prop_assert!(partial.killed <= total.killed && partial.told + total.told == 0);
                    prop_assert!(devices > 1 && !interleaved || partial == total);
                    prop_assert!(one.class != Class::Local || total.killed == 0);
                }
            }
            // Optional memory kills no more than vital memory, and hits the same VMs.
            for (one, other) in found.iter().zip(classes(&Topology { optional, ..vital.clone() }, &trace)) {
                prop_assert_eq!((one.memory, one.pooled), (other.memory, other.pooled));
                for (vital, some) in one.losses.iter().zip(&other.losses) {
                    prop_assert!(some.1.killed <= vital.1.killed && some.0.killed <= vital.0.killed);
                    prop_assert_eq!(some.1.killed + some.1.told, vital.1.killed);
                }
            }
            let all = classes(&Topology { optional: 1.0, ..vital }, &trace);
            prop_assert!(all.iter().flat_map(|one| &one.losses).all(|loss| loss.1.killed == 0));
        }
    }
}
