//! Experiment `interplay`: who hurts whom when tenants share a socket, by how much, and where in the
//! processor (CXL-Interplay, DAC 2025, §III; MIKU, arXiv 2503.17864, §4).
//!
//! Every *victim* is measured alone and beside every *aggressor*, on disjoint cores, over pairs of
//! thread counts; a chase in the victim's tier is timed alone and beside the aggressor, for that is
//! what services feel. All of these are ordinary points, so that they repeat, resume and are kept
//! like any other.
//!
//! | step | from | to |
//! |---|---|---|
//! | [`plan`] | topology and options | points |
//! | [`matrix`] | points and their records | cells, and the surface of thread counts behind them |
//! | `side_by_side` | counters alone and beside | ratios (the paper's Table IV), and where requests wait |
//! | `reason` | ratios | a cause in words, with its evidence |

mod company;
mod matrix;
pub mod preset;
mod reason;
mod side_by_side;

use weir_model::access::{Dataflow, Pattern, Timing};
use weir_model::document::Experiment;
use weir_model::interplay::Party;
use weir_model::topology::{Tier, TierKind, Topology};
use weir_model::units::{Bytes, Nanos};

use crate::bandwidth::working_set;
use crate::loaded::{chase, check_pauses};
use crate::plan::{Load, check_threads, or_usual};
use crate::{LabError, PointSpec};

pub use company::{Company, pairs};
pub use matrix::{Measured, matrix};

/// Bytes of one storage request (CXL-Interplay §III-A: fio with `bs=4k`).
const BLOCK: Bytes = Bytes::kib(4);
/// Requests that one thread keeps under way (`iodepth=16`).
const DEPTH: u32 = 16;
/// Bytes of the part of a storage device that one thread works on.
const STORAGE_SET: Bytes = Bytes::mib(256);

/// Thread counts of either side, as far as half of the cores go.
const THREADS: [u32; 4] = [1, 4, 8, 16];
/// Samples of the timed chase: some sixty beyond p99.
const FOR_P99: u64 = 6_000;

/// What to leave out of the whole matrix, or to put in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Victims and aggressors; empty means every tier's usual tenants beside those of the others.
    pub pairs: Vec<(Party, Party)>,
    /// Threads of either side; empty means 1, 4, 8 and 16, as far as half of the cores go.
    pub threads: Vec<u32>,
    /// Pauses of the aggressor between two lines; empty means none. They vary what it draws with its
    /// threads as they are.
    pub pauses: Vec<Nanos>,
    /// The largest usual number of threads only.
    pub quick: bool,
}

/// The points of the matrix: what every tenant does alone, what a chase sees alone, and then pair by
/// pair.
///
/// # Errors
/// A tier is unknown or takes no such instruction, a thread count is zero or leaves no core for the
/// other side, or a pause is negative.
pub fn plan(topology: &Topology, options: &Options) -> Result<Vec<PointSpec>, LabError> {
    if topology.cores.len() < 2 {
        return Err(LabError::Nothing(
            "interplay needs two cores at least: one for the victim, one for the aggressor".into(),
        ));
    }
    check_threads(&options.threads, topology, 1)?;
    check_pauses(&options.pauses)?;
    let pairs = if options.pairs.is_empty() {
        company::pairs(topology, &[], &[])?
    } else {
        options.pairs.clone()
    };
    let threads = thread_counts(topology, options);
    let pauses = or_usual(&options.pauses, &[Nanos(0.0)]);
    let mut points = Points {
        topology,
        specs: Vec::new(),
    };
    for party in pairs
        .iter()
        .flat_map(|(victim, aggressor)| [victim, aggressor])
    {
        company::check(topology, party)?;
        for &n in &threads {
            points.add(points.alone(party, n)?);
        }
    }
    for (victim, aggressor) in &pairs {
        let chase = points.chase(victim)?;
        if let Some(chase) = &chase {
            points.add(chase.clone());
        }
        let company = threads
            .iter()
            .flat_map(|&m| pauses.iter().map(move |&p| (m, p)));
        for (m, pause) in company {
            let beside = points.load(aggressor, m)?.pausing(pause);
            if let Some(chase) = &chase {
                points.add_if_it_fits(chase.clone().beside(beside.clone()));
            }
            for &n in &threads {
                points.add_if_it_fits(points.alone(victim, n)?.beside(beside.clone()));
            }
        }
    }
    Ok(points.specs)
}

fn thread_counts(topology: &Topology, options: &Options) -> Vec<u32> {
    let mut counts = options.threads.clone();
    if counts.is_empty() {
        let half = (topology.cores.len() / 2).max(1) as u32;
        counts.extend(THREADS.into_iter().filter(|&n| n <= half));
        if options.quick {
            counts = counts.last().copied().into_iter().collect();
        }
    }
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Points under way, none of them twice.
struct Points<'t> {
    topology: &'t Topology,
    specs: Vec<PointSpec>,
}

impl Points<'_> {
    fn add(&mut self, spec: PointSpec) {
        if !self.specs.contains(&spec) {
            self.specs.push(spec);
        }
    }

    fn add_if_it_fits(&mut self, spec: PointSpec) {
        if spec.threads() as usize <= self.topology.cores.len() {
            self.add(spec);
        }
    }

    fn tier(&self, party: &Party) -> Result<&Tier, LabError> {
        self.topology
            .tier(&party.tier)
            .ok_or_else(|| LabError::unknown_tier(&party.tier, self.topology))
    }

    fn load(&self, party: &Party, threads: u32) -> Result<Load, LabError> {
        let tier = self.tier(party)?;
        Ok(load(self.topology, tier, party, threads))
    }

    fn alone(&self, party: &Party, threads: u32) -> Result<PointSpec, LabError> {
        let load = self.load(party, threads)?;
        Ok(PointSpec::alone(Experiment::Interplay, load))
    }

    /// The chase of a victim's tier; a storage device has none.
    fn chase(&self, victim: &Party) -> Result<Option<PointSpec>, LabError> {
        let tier = self.tier(victim)?;
        if tier.kind == TierKind::Ssd {
            return Ok(None);
        }
        let load = chase(self.topology, tier).timed(Timing::Each);
        Ok(Some(
            PointSpec::alone(Experiment::Interplay, load).at_least(FOR_P99),
        ))
    }
}

/// Threads of one party.
fn load(topology: &Topology, tier: &Tier, party: &Party, threads: u32) -> Load {
    let op = party.op;
    if op.is_storage() {
        let pattern = Pattern::Requests {
            bytes: BLOCK,
            depth: DEPTH,
        };
        return Load::new(&tier.name, op, pattern, threads, STORAGE_SET);
    }
    let set = working_set(topology, tier, threads);
    let load = Load::new(&tier.name, op, Pattern::Sequential, threads, set);
    match &party.from {
        Some(from) => load.reading(1, 1, from, Dataflow::Copy),
        None => load,
    }
}
