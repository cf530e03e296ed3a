//! `weir plan pool`: what a pool saves when a trace is replayed, which VMs are slower for it, and what the packing bound says
//! of the same trace.
//!
//! | module | content |
//! |---|---|
//! | [`free`] | what is free of machines, and the fullest one with room |
//! | [`cluster`] | machines, and where a VM is placed |
//! | [`split`] | what of a VM goes to the pool, by policy |
//! | [`events`] | when VMs arrive and leave |
//! | [`mod@replay`] | VMs on whole machines, and stranded memory |
//! | [`seats`] | on which socket of a machine a VM is |
//! | [`room`] | what is free of machines and pools |
//! | [`mod@kept`] | what machines and pools need where VMs stay on their machines |
//! | [`release`] | how fast slices must be released |
//! | [`provision`] | the least memory with which VMs find room |
//! | [`needs`] | what each policy needs |
//! | [`verdict`] | memory and money saved |
//! | [`stranding`] | stranded memory by cores that are rented |
//! | [`slices`] | which VM owns which slice of a pool: all interleavings, checked |
//! | [`owners`] | the same as a table that a manager keeps |

pub mod cluster;
pub mod events;
pub mod free;
pub mod kept;
pub mod needs;
mod outcome;
pub mod owners;
pub mod provision;
pub mod release;
pub mod replay;
pub mod room;
pub mod seats;
pub mod slices;
pub mod split;
pub mod stranding;
pub mod verdict;

pub use outcome::PoolPlan;
pub use seats::SOCKETS;

use crate::PlanError;
use crate::error::within;
use crate::packing::Packing;
use crate::prices::Prices;
use crate::trace::problems::ProblemCount;
use crate::trace::{Machine, Trace, moment};
use replay::Replayed;
use split::{Policy, Predictions};
use verdict::Terms;

/// The version of the replay: it changes where a replay of the same trace finds something else, so that what is kept of the
/// former is not taken for it.
const REPLAY: u32 = 3;
/// Moments of a trace at which the packing bound is taken.
const SNAPSHOTS: u32 = 4;

/// One cluster: its trace, and how it was read.
#[derive(Debug, Clone)]
pub struct Traced {
    /// Its name: a file, or the number of a generated one.
    pub name: String,
    /// Its VMs, without unknown fields.
    pub trace: Trace,
    /// Lines that were left out or are strange.
    pub problems: Vec<ProblemCount>,
    /// What they count: line, row or VM.
    pub unit: &'static str,
    /// VMs of which something is drawn that the trace does not say.
    pub drawn: u64,
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Pools {
    /// Sockets that share a pool.
    pub sockets: Vec<u32>,
    /// Machines of a cluster.
    pub machines: u32,
    /// Their size.
    pub machine: Machine,
    /// Fixed shares that are compared, from 0 to 1.
    pub fixed: Vec<f64>,
    /// How well Pond's models predict.
    pub predictions: Predictions,
    /// Milliseconds for which a slice is released.
    pub release_ms: u32,
    /// Price of the pool's memory as a share of that of a server's.
    pub price_ratio: f64,
    /// Seed of mispredictions.
    pub seed: u64,
}

/// The clusters that were replayed to their end: one that was stopped has needs of some policies only.
pub fn whole(done: Vec<(Traced, Replayed)>) -> (Vec<Traced>, Vec<Replayed>) {
    let mut done = done;
    done.retain(|(_, replayed)| replayed.stopped_at.is_none());
    done.into_iter().unzip()
}

impl Pools {
    /// Checks what is asked.
    ///
    /// # Errors
    /// A size of pools is not 2 to 64 sockets or odd, or a share is none.
    pub fn check(&self) -> Result<(), PlanError> {
        for &sockets in &self.sockets {
            within("a pool", f64::from(sockets), (2.0, 64.0), "2 to 64 sockets")?;
            if !sockets.is_multiple_of(SOCKETS) {
                return Err(PlanError::OutOfBounds {
                    what: "a pool",
                    found: format!("{sockets} sockets"),
                    wanted: "a multiple of the 2 sockets of a machine".into(),
                });
            }
        }
        within(
            "--machines",
            f64::from(self.machines),
            (1.0, 1e6),
            "1 to 1000000",
        )?;
        within(
            "the price of server and pool memory",
            self.price_ratio,
            (0.0, 100.0),
            "0 % to 10000 %",
        )?;
        let Predictions {
            marked,
            false_positives,
            untouched,
            over_predicted,
        } = self.predictions;
        let fixed = self.fixed.iter().map(|share| ("--fixed", *share));
        for (what, share) in [
            ("--marked", marked),
            ("--untouched", untouched),
            ("--over-predicted", over_predicted),
        ]
        .into_iter()
        .chain(fixed)
        {
            within(what, share, (0.0, 1.0), "0 % to 100 %")?;
        }
        within(
            "--false-positives",
            false_positives,
            (0.0, marked),
            "0 % to --marked",
        )
    }

    /// The policies in the order of their rows.
    pub fn policies(&self) -> Vec<Policy> {
        let fixed = self.fixed.iter().map(|share| Policy::Fixed(*share));
        let mut policies: Vec<Policy> = fixed.collect();
        policies.extend([Policy::Pond(self.predictions), Policy::Oracle]);
        policies
    }

    /// What the replay of a trace depends on, hashed: prices are left out, as they come later.
    pub fn address(&self, trace: &Trace) -> String {
        let Self {
            sockets,
            machines,
            machine,
            fixed,
            predictions,
            release_ms,
            seed,
            price_ratio: _,
        } = self;
        let asked = format!(
            "replay {REPLAY}\n{sockets:?}\n{machines}\n{machine:?}\n{fixed:?}\n{predictions:?}\n{release_ms}\n{seed}\n{}\n",
            trace.len()
        );
        // 128-bit FNV-1a.
        let bytes = asked.into_bytes().into_iter().chain(trace.bytes());
        let hash = bytes.fold(
            0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128,
            |hash, byte| {
                (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
            },
        );
        format!("{hash:032x}")
    }

    /// What all clusters together say, which are [`whole`].
    ///
    /// # Errors
    /// The packing was asked for a size without cores or memory.
    pub fn conclude(
        &self,
        clusters: &[Traced],
        replayed: &[Replayed],
        prices: &Prices,
    ) -> Result<PoolPlan, PlanError> {
        let terms = Terms {
            machines: self.machines,
            machine: self.machine,
            prices,
            price_ratio: self.price_ratio,
        };
        let savings = match replayed {
            [] => Vec::new(),
            some => verdict::savings(&self.policies(), &self.sockets, some, &terms),
        };
        let packing = Packing {
            inflate: vec![1],
            pools: self
                .sockets
                .iter()
                .map(|sockets| sockets / SOCKETS)
                .collect(),
        };
        let mut packings = Vec::new();
        // Only one has its trace still.
        let mut with_trace = clusters.iter().filter(|traced| !traced.trace.is_empty());
        if let Some(traced) = with_trace.next() {
            let end = traced.trace.last_arrival();
            let moments = (1..=SNAPSHOTS)
                .map(|at| (u64::from(end) * u64::from(at) / u64::from(SNAPSHOTS + 1)) as u32);
            let mut moments: Vec<u32> = moments.collect();
            moments.dedup();
            for at in moments {
                let name = format!("{} after {}", traced.name, moment(at));
                packings.extend(packing.of(
                    &name,
                    &traced.trace.snapshot(at),
                    self.machine.shape(),
                    &|| true,
                )?);
            }
        }
        let sum = |of: fn(&Replayed) -> u64| replayed.iter().map(of).sum();
        let apart = replayed.iter().fold((0.0, 0.0), |sum, replayed| {
            (sum.0 + replayed.apart.0, sum.1 + replayed.apart.1)
        });
        let days: Vec<_> = replayed
            .iter()
            .flat_map(|replayed| replayed.days.iter().copied())
            .collect();
        Ok(PoolPlan {
            savings,
            stranding: stranding::buckets(&days),
            days: stranding::rows(clusters, replayed),
            packings,
            problems: clusters
                .iter()
                .flat_map(|traced| traced.problems.clone())
                .collect(),
            prices: prices.list.clone(),
            clusters: replayed.len() as u64,
            machines: self.machines,
            machine_size: self.machine.words(),
            events: sum(|replayed| replayed.events),
            placed: sum(|replayed| replayed.placed),
            refused: sum(|replayed| replayed.refused),
            spanning: sum(|replayed| replayed.spanning),
            apart_pct: 100.0 * apart.0 / f64::max(apart.1, 1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::generate::{Generate, MACHINE};
    use crate::trace::{GIB, UNKNOWN, Vm};

    fn pools(sockets: Vec<u32>, machines: u32) -> Pools {
        Pools {
            sockets,
            machines,
            machine: MACHINE,
            fixed: vec![0.5],
            predictions: Predictions::default(),
            release_ms: 100,
            price_ratio: 1.0,
            seed: 1,
        }
    }

    #[test]
    fn a_cluster_that_was_stopped_is_in_no_figure() {
        let pools = pools(vec![4, 8], 4);
        let cluster = |seed, until: f64| {
            let generate = Generate {
                seed,
                machines: 4,
                days: 2.0,
                ..Generate::default()
            };
            let mut trace = generate.run().unwrap();
            trace.fill(seed, 0.4);
            let replayed = pools.replay(&trace, &mut |share| share < until).unwrap();
            let traced = Traced {
                name: seed.to_string(),
                trace,
                problems: Vec::new(),
                unit: "VM",
                drawn: 0,
            };
            (traced, replayed)
        };
        let said = |done: Vec<(Traced, Replayed)>| {
            let (clusters, replayed) = whole(done);
            let prices = Prices::builtin().unwrap();
            pools.conclude(&clusters, &replayed, &prices).unwrap()
        };
        let alone = said(vec![cluster(1, 2.0)]);
        assert!(alone.saving("oracle", 8).unwrap().pools > 0);
        // One is stopped between policies, the other while VMs are placed.
        let (late, early) = (cluster(2, 0.6), cluster(3, 0.0));
        assert!(!late.1.needs.with.is_empty() && early.1.needs.with.is_empty());
        assert_eq!(said(vec![cluster(1, 2.0), late, early]), alone);
        let nothing = said(vec![cluster(3, 0.0)]);
        assert_eq!((nothing.clusters, nothing.savings.len()), (0, 0));
    }

    #[test]
    fn the_packing_bound_is_of_moments_that_differ() {
        let pools = pools(vec![2, 4], 2);
        let vm = |arrival, departure| Vm {
            arrival,
            departure,
            millicores: 4000,
            memory_mib: 16 * GIB,
            customer: 0,
            kind: 0,
            touched_pct: 50,
            insensitive: Some(false),
        };
        let moments = |vms: &[Vm]| {
            let mut trace = Trace::default();
            vms.iter().for_each(|vm| trace.push(*vm));
            let replayed = pools.replay(&trace, &mut |_| true).unwrap();
            let traced = Traced {
                name: "t".into(),
                trace,
                problems: Vec::new(),
                unit: "line",
                drawn: 0,
            };
            let prices = Prices::builtin().unwrap();
            let plan = pools.conclude(&[traced], &[replayed], &prices).unwrap();
            let mut names: Vec<String> = plan.packings.into_iter().map(|row| row.machine).collect();
            names.dedup();
            names
        };
        assert_eq!(moments(&[vm(0, 100), vm(0, 200)]), ["t after 0 s"]);
        let long = [
            "t after 40 s",
            "t after 80 s",
            "t after 120 s",
            "t after 160 s",
        ];
        assert_eq!(moments(&[vm(0, 300), vm(200, 400)]), long);
    }

    #[test]
    fn needs_are_of_the_time_that_was_replayed_and_of_pools_of_the_machines_that_were_asked_for() {
        let pools = Pools {
            machine: Machine {
                millicores: 4000,
                memory_mib: 64 * GIB,
            },
            ..pools(vec![2, 4], 2)
        };
        let mut trace = Trace::default();
        for (arrival, departure, gib) in
            [(0, 100, 32), (0, 150, 2), (100, 1000, 2), (150, 1000, 32)]
        {
            trace.push(Vm {
                arrival,
                departure,
                millicores: 4000,
                memory_mib: gib * GIB,
                customer: 0,
                kind: 0,
                touched_pct: UNKNOWN,
                insensitive: Some(false),
            });
        }
        let replayed = pools.replay(&trace, &mut |_| true).unwrap();
        // The half of both peaks is in two pools of a machine at its own time, and once in one of two.
        let kept = |size: usize| replayed.needs.kept[0][size].summed.pool_mib / u64::from(GIB);
        assert_eq!((kept(0), kept(1)), (32, 17));
        // Machines have room for all, so that no slice is used of the half that may be. The last VM arrives after 150 s.
        let need = replayed.needs.with[0][0].unwrap();
        let seconds = [32.0 * 100.0, 2.0 * 150.0, 2.0 * 50.0];
        let gib_seconds = f64::from(GIB) * seconds.iter().sum::<f64>();
        assert_eq!(need.pooled, (0.0, gib_seconds / 2.0, gib_seconds));
        assert_eq!(need.slow, (0.0, 4.0 * split::SLOWED));
    }

    #[test]
    fn an_address_depends_on_all_that_a_replay_depends_on() {
        let generate = Generate {
            machines: 2,
            days: 1.0,
            ..Generate::default()
        };
        let trace = generate.run().unwrap();
        let pools = pools(vec![8], 2);
        let dear = Pools {
            price_ratio: 2.0,
            ..pools.clone()
        };
        assert_eq!(pools.address(&trace), dear.address(&trace));
        let mut others = vec![
            Pools {
                sockets: vec![8, 16],
                ..pools.clone()
            },
            Pools {
                machines: 3,
                ..pools.clone()
            },
            Pools {
                machine: Machine {
                    millicores: 1,
                    ..MACHINE
                },
                ..pools.clone()
            },
            Pools {
                fixed: vec![0.4],
                ..pools.clone()
            },
            Pools {
                release_ms: 10,
                ..pools.clone()
            },
            Pools {
                seed: 2,
                ..pools.clone()
            },
        ];
        let predictions = Predictions {
            marked: 0.2,
            ..Predictions::default()
        };
        others.push(Pools {
            predictions,
            ..pools.clone()
        });
        let mut addresses: Vec<String> = others.iter().map(|one| one.address(&trace)).collect();
        let first = trace.get(0).unwrap();
        for changed in [
            Vm {
                arrival: first.arrival + 1,
                ..first
            },
            Vm {
                departure: first.departure - 1,
                ..first
            },
            Vm {
                millicores: 7,
                ..first
            },
            Vm {
                memory_mib: 7,
                ..first
            },
            Vm {
                customer: first.customer + 1,
                ..first
            },
            Vm {
                kind: first.kind + 1,
                ..first
            },
            Vm {
                touched_pct: 101,
                ..first
            },
            Vm {
                insensitive: first.insensitive.map(|is| !is),
                ..first
            },
        ] {
            let mut other = Trace::default();
            other.push(changed);
            trace.vms().skip(1).for_each(|vm| other.push(vm));
            addresses.push(pools.address(&other));
        }
        addresses.push(pools.address(&trace));
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), 16);
    }
}
