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
//! | [`provision`] | the least memory with which VMs find room |
//! | [`needs`] | what each policy needs |
//! | [`verdict`] | memory and money saved |
//! | [`stranding`] | stranded memory by cores that are rented |
//! | [`slices`] | who owns which slice of a pool: all interleavings, checked |
//! | [`owners`] | the same as a table that a manager keeps |

pub mod cluster;
pub mod events;
pub mod free;
pub mod needs;
mod outcome;
pub mod owners;
pub mod provision;
pub mod replay;
pub mod room;
pub mod seats;
pub mod slices;
pub mod split;
pub mod stranding;
pub mod verdict;

pub use outcome::PoolPlan;

use crate::PlanError;
use crate::error::within;
use crate::packing::Packing;
use crate::prices::Prices;
use crate::trace::problems::ProblemCount;
use crate::trace::{Machine, Trace};
use replay::Replayed;
use split::{Policy, Predictions};
use verdict::Terms;

/// Sockets of a machine.
pub const SOCKETS: u32 = 2;
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
                    wanted: "a multiple of the 2 sockets of a machine",
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
        for share in [marked, untouched, over_predicted]
            .into_iter()
            .chain(self.fixed.iter().copied())
        {
            within("a share", share, (0.0, 1.0), "0 % to 100 %")?;
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

    /// What all clusters together say.
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
        let savings = verdict::savings(&self.policies(), &self.sockets, replayed, &terms);
        let packing = Packing {
            inflate: vec![1],
            pools: self
                .sockets
                .iter()
                .map(|sockets| sockets / SOCKETS)
                .collect(),
        };
        let mut packings = Vec::new();
        for traced in clusters.iter().take(1) {
            let end = traced.trace.last_arrival();
            for snapshot in 1..=SNAPSHOTS {
                let at = (u64::from(end) * u64::from(snapshot) / u64::from(SNAPSHOTS + 1)) as u32;
                let name = format!("{} after {:.1} days", traced.name, f64::from(at) / 86_400.0);
                packings.extend(packing.of(
                    &name,
                    &traced.trace.snapshot(at),
                    self.machine.shape(),
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
