//! Experiment `interplay`: who hurts whom when tenants share a socket, by how much, and where in the
//! processor (CXL-Interplay, DAC 2025, §III; MIKU, arXiv 2503.17864, §4).
//!
//! Every *victim* is measured alone and with every *aggressor*, on disjoint cores, over pairs of
//! thread counts; a chase in the victim's tier is timed alone and with the aggressor, for that is
//! what services feel. All of these are ordinary points, so that they repeat, resume and are kept
//! like any other.
//!
//! | step | from | to |
//! |---|---|---|
//! | [`plan`] | topology and options | points |
//! | `change` | the victim alone and together | how far it moved, and how sure that is |
//! | `certainty` | changes over thread counts | the classes that a cell may be in, and what to measure again |
//! | [`matrix()`] | points and their records | cells, and the surface of thread counts behind them |
//! | `side_by_side` | counters alone and together | ratios (the paper's Table IV), and where requests wait |
//! | `reason` | ratios | a cause in words, with its evidence |

mod certainty;
mod change;
mod co_runners;
mod matrix;
mod measured;
pub mod preset;
mod programs;
mod reason;
mod side_by_side;
mod study;

use weir_model::access::{Dataflow, Op, Pattern, Timing};
use weir_model::interplay::TierOp;
use weir_model::topology::{Tier, TierKind, Topology};
use weir_model::units::{Bytes, Nanos};

use crate::loaded::{chase, check_pauses};
use crate::plan::{Load, check_threads, check_working_set, or_usual};
use crate::room::working_set;
use crate::{LabError, PointSpec, share};

pub use certainty::{LEAST, MOST};
pub use co_runners::{CoRunners, PlacedName, pairs, tier_ops};
pub use matrix::{Matrix, matrix};
pub use measured::Measured;
pub use programs::{
    ACCESSES, CountedPair, CountedProgram, LoadPoint, LostCycles, Participant, ProgramPair,
    ProgramPairs, ProgramTable, TenantRun, Together, TogetherRun, What,
};
pub use study::{Interplay, per_second, sentence};

/// Storage requests as CXL-Interplay §III-A puts them: `fio` with `bs=4k` and `iodepth=16`.
pub(crate) const REQUESTS: Pattern = Pattern::Requests {
    bytes: Bytes::kib(4),
    depth: 16,
    buffered: false,
};
/// Bytes of the part of a storage device that one thread works on.
pub(crate) const STORAGE_SET: Bytes = Bytes::mib(256);

/// Thread counts of either side, as far as half of the cores go.
const THREADS: [u32; 4] = [1, 4, 8, 16];
/// Samples of the timed chase: some sixty beyond p99.
const FOR_P99: u64 = 6_000;

/// What to leave out of the whole matrix, or to put in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Victims and aggressors; empty means every tier's usual tenants with those of the others.
    pub pairs: Vec<(TierOp, TierOp)>,
    /// Threads of either side; empty means 1, 4, 8 and 16, as far as half of the cores go.
    pub threads: Vec<u32>,
    /// Pauses of the aggressor between two lines; empty means none. They vary what it draws with its
    /// threads as they are.
    pub pauses: Vec<Nanos>,
    /// Bytes that all threads of a tenant touch together; `None` means enough to leave the caches behind.
    pub working_set: Option<Bytes>,
    /// Bytes that the timed chase goes through; `None` means enough to leave the caches behind.
    pub timed_set: Option<Bytes>,
    /// How the last-level cache is divided: the victim's share of its ways in percent, the rest is the
    /// aggressor's; empty means not at all. Pairs are then measured undivided, too.
    pub shares: Vec<u32>,
    /// Whether a line that two cores hand over is timed as well as the chase (MIKU §4.4).
    pub shared_line: bool,
    /// Whether one that a core of either socket takes part in is timed as well.
    pub across: bool,
    /// Whether storage requests go through the page cache, where the kernel copies their data; `libaio` then
    /// waits for each, so that a thread has one under way.
    pub buffered: bool,
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
        co_runners::pairs(topology, &[], &[])?
    } else {
        options.pairs.clone()
    };
    let threads = thread_counts(topology, options);
    let pauses = or_usual(&options.pauses, &[Nanos(0.0)]);
    check_sockets(&pairs)?;
    let mut points = Points {
        topology,
        working_set: options.working_set,
        buffered: options.buffered,
        timed_set: options.timed_set,
        specs: Vec::new(),
    };
    for tier_op in pairs
        .iter()
        .flat_map(|(victim, aggressor)| [victim, aggressor])
    {
        co_runners::check(topology, tier_op)?;
        for &n in &threads {
            points.add(points.alone(tier_op, n)?);
        }
    }
    let mut fits = pairs.is_empty();
    for (victim, aggressor) in &pairs {
        let timed = points.timed(victim, options)?;
        for spec in &timed {
            points.add(spec.clone());
        }
        let co_runners = threads
            .iter()
            .flat_map(|&m| pauses.iter().map(move |&p| (m, p)));
        for (m, pause) in co_runners {
            let beside = points.load(aggressor, m)?.pausing(pause);
            for spec in &timed {
                points.add_if_it_fits(spec.clone().beside(beside.clone()));
            }
            for &n in &threads {
                let pair = points.alone(victim, n)?.beside(beside.clone());
                for divided in divisions(topology, &pair, &options.shares)? {
                    points.add_if_it_fits(divided);
                }
                fits |= points.add_if_it_fits(pair);
            }
        }
    }
    if !fits {
        return Err(LabError::Nothing(format!(
            "no pair fits: each side has {} threads on cores of its own, and there are {} cores",
            threads.first().copied().unwrap_or_default(),
            topology.cores.len()
        )));
    }
    Ok(points.specs)
}

/// Refuses storage with tenants on the other socket, which no machine has yet.
fn check_sockets(pairs: &[(TierOp, TierOp)]) -> Result<(), LabError> {
    let mixed = |(victim, aggressor): &&(TierOp, TierOp)| {
        let both = [victim, aggressor];
        both.iter().any(|tier_op| tier_op.op.is_storage())
            && both
                .iter()
                .any(|tier_op| tier_op.socket > 0 || tier_op.host > 0)
    };
    match pairs.iter().find(mixed) {
        None => Ok(()),
        Some((victim, aggressor)) => Err(LabError::Nothing(format!(
            "`{victim}` with `{aggressor}` cannot be: storage devices are attached to socket 0 of the first host, and with \
             tenants on others they are not modelled"
        ))),
    }
}

/// The pair with the last-level cache divided between its sides, once for each share.
fn divisions(
    topology: &Topology,
    pair: &PointSpec,
    shares: &[u32],
) -> Result<Vec<PointSpec>, LabError> {
    if shares.is_empty() {
        return Ok(Vec::new());
    }
    let Some(ways) = topology.caches.last().and_then(|cache| cache.ways) else {
        return Err(LabError::Nothing(
            "the ways of this machine's last-level cache are not known".into(),
        ));
    };
    let ways = ways.clamp(2, 31);
    let divided = shares.iter().map(|share| {
        // Either side has one way at least.
        let own = (ways * share).div_ceil(100).clamp(1, ways - 1);
        let (low, all) = ((1_u32 << own) - 1, (1_u32 << ways) - 1);
        let mut pair = pair.clone();
        pair.load.ways = Some(low);
        pair.beside = pair.beside.map(|beside| beside.in_ways(Some(all & !low)));
        pair
    });
    let mut divided: Vec<PointSpec> = divided.collect();
    divided.dedup();
    Ok(divided)
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
    working_set: Option<Bytes>,
    buffered: bool,
    timed_set: Option<Bytes>,
    specs: Vec<PointSpec>,
}

impl Points<'_> {
    fn add(&mut self, spec: PointSpec) {
        if !self.specs.contains(&spec) {
            self.specs.push(spec);
        }
    }

    /// Whether it fits.
    fn add_if_it_fits(&mut self, spec: PointSpec) -> bool {
        let fits = spec.tenants(self.topology).is_some();
        if fits {
            self.add(spec);
        }
        fits
    }

    fn tier(&self, tier_op: &TierOp) -> Result<&Tier, LabError> {
        self.topology
            .tier(&tier_op.tier)
            .ok_or_else(|| LabError::unknown_tier(&tier_op.tier, self.topology))
    }

    fn load(&self, tier_op: &TierOp, threads: u32) -> Result<Load, LabError> {
        let tier = self.tier(tier_op)?;
        let mut load = load(self.topology, tier, tier_op, threads);
        if self.buffered {
            load.pattern = buffered(load.pattern);
        }
        if let Some(all) = self.working_set {
            load.working_set = check_working_set(Bytes(all.get() / u64::from(threads.max(1))))?;
        }
        Ok(load)
    }

    fn alone(&self, tier_op: &TierOp, threads: u32) -> Result<PointSpec, LabError> {
        let load = self.load(tier_op, threads)?;
        Ok(PointSpec::alone("interplay", load))
    }

    /// What is timed of a victim's tier; of a storage device nothing.
    fn timed(&self, victim: &TierOp, options: &Options) -> Result<Vec<PointSpec>, LabError> {
        let tier = self.tier(victim)?;
        if tier.kind == TierKind::Ssd {
            return Ok(Vec::new());
        }
        let mut chase = chase(self.topology, tier)
            .timed(Timing::Each)
            .on_socket(victim.socket)
            .on_host(victim.host);
        if let Some(set) = self.timed_set {
            chase.working_set = check_working_set(set)?;
        }
        // By compare-and-swap, as MIKU's lat-share.
        let line = Load::new(&tier.name, Op::Cas, Pattern::SharedLine, 2, share::LINE);
        let line = line.prefetch(false);
        let mut loads = vec![chase];
        if options.shared_line {
            loads.push(line.clone().on_socket(victim.socket).on_host(victim.host));
        }
        if let (true, [one, ..], [other, ..]) = (
            options.across,
            self.topology.cores.as_slice(),
            self.topology.other_cores.as_slice(),
        ) {
            loads.push(line.on(&[*one, *other]));
        }
        Ok(loads
            .into_iter()
            .map(|load| PointSpec::alone("interplay", load).at_least(FOR_P99))
            .collect())
    }
}

/// The same requests through the page cache, one at a time.
pub(crate) fn buffered(pattern: Pattern) -> Pattern {
    match pattern {
        Pattern::Requests { bytes, .. } => Pattern::Requests {
            bytes,
            depth: 1,
            buffered: true,
        },
        other => other,
    }
}

/// Threads of one participant.
fn load(topology: &Topology, tier: &Tier, tier_op: &TierOp, threads: u32) -> Load {
    let op = tier_op.op;
    if op.is_storage() {
        return Load::new(&tier.name, op, REQUESTS, threads, STORAGE_SET);
    }
    let set = working_set(topology, tier, threads);
    let load = Load::new(&tier.name, op, Pattern::Sequential, threads, set)
        .on_socket(tier_op.socket)
        .on_host(tier_op.host);
    match &tier_op.from {
        Some(from) => load.reading(1, 1, from, Dataflow::Copy),
        None => load,
    }
}
