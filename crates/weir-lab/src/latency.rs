//! Experiment `latency`: how long one access takes on an idle machine.
//!
//! Three views of each tier (MEMO §4.2). A *flushed line*: one access at a time on a line that is in
//! no cache, for a load, a store written back at once, and a fenced non-temporal store. A *burst*:
//! several of those at once, of which each gets its share of the time (MICRO 2023, §3.2). A *pointer
//! chase*: dependent loads over growing working sets, a staircase whose steps are the caches and
//! whose last plateau is the latency that applications see.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::document::Experiment;
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::Bytes;

use crate::plan::{Load, check_working_set, choose_tiers, or_usual};
use crate::{LabError, PointSpec};

/// The instructions that are timed on a flushed line unless others are asked for.
pub const FLUSHED_OPS: [Op; 3] = [Op::Ld, Op::StClwb, Op::NtSt];
/// Accesses of a burst in the whole experiment (MICRO 2023, §3.2).
pub const BURST: u32 = 16;
/// Memory from which flushed lines are drawn. It decides nothing but the DRAM rows that are met:
/// the flush has already brought the translation in.
const FLUSHED_SET: Bytes = Bytes::mib(64);
/// The first step of the staircase, within any first-level cache.
const FIRST_STEP: Bytes = Bytes::kib(4);
/// The staircase goes at least to here (MEMO Fig 2).
const LAST_STEP: Bytes = Bytes::gib(1);
/// And in a quick run to here.
const LAST_QUICK_STEP: Bytes = Bytes::mib(256);
/// Or to this many times the last-level cache, so that few hops still hit it.
const TIMES_CACHE: u64 = 4;

/// What to leave out of the whole experiment, or to put in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Tiers; empty means all.
    pub tiers: Vec<TierName>,
    /// Instructions on a flushed line; empty means [`FLUSHED_OPS`]. The chase runs if `ld` is
    /// among them.
    pub ops: Vec<Op>,
    /// Accesses at once on flushed lines, besides one; empty means [`BURST`], or none when
    /// quick; zero means none.
    pub bursts: Vec<u32>,
    /// Working sets of the chase; empty means the staircase that fits the caches and the tier.
    pub sizes: Vec<Bytes>,
    /// How far a hop may reach; empty means both.
    pub localities: Vec<Locality>,
    /// A staircase of every other step, up to 256 MiB or four times the last-level cache.
    pub quick: bool,
}

/// The points of the experiment: tier by tier, flushed lines first, one at a time and in bursts,
/// then the staircases.
///
/// # Errors
/// A tier is unknown, a burst is too long, or a working set cannot hold a chase.
pub fn plan(topology: &Topology, options: &Options) -> Result<Vec<PointSpec>, LabError> {
    let ops = if options.ops.is_empty() {
        &FLUSHED_OPS[..]
    } else {
        &options.ops
    };
    let localities = if options.localities.is_empty() {
        &[Locality::TlbFriendly, Locality::Random][..]
    } else {
        &options.localities
    };
    for &size in &options.sizes {
        check_working_set(size)?;
    }

    let usual: &[u32] = if options.quick { &[] } else { &[BURST] };
    let bursts = or_usual(&options.bursts, usual);
    if let Some(&lines) = bursts.iter().find(|&&n| n > Pattern::MOST_IN_BURST) {
        return Err(LabError::Burst { lines });
    }

    let mut points = Vec::new();
    for tier in choose_tiers(topology, &options.tiers)? {
        let point = |op, pattern, working_set| {
            let load = Load::new(&tier.name, op, pattern, 1, working_set);
            PointSpec::alone(Experiment::Latency, load.prefetch(false))
        };
        let flushed = FLUSHED_SET.min(tier.capacity);
        let at_once = (bursts.iter().filter(|&&lines| lines > 0))
            .map(|&lines| Pattern::FlushedBurst { lines });
        for pattern in std::iter::once(Pattern::FlushedLine).chain(at_once) {
            points.extend(ops.iter().map(|&op| point(op, pattern, flushed)));
        }
        if ops.contains(&Op::Ld) {
            let sizes = if options.sizes.is_empty() {
                staircase(topology, tier, options.quick)
            } else {
                options.sizes.clone()
            };
            for &locality in localities {
                let pattern = Pattern::Chase { locality };
                points.extend(sizes.iter().map(|&size| point(Op::Ld, pattern, size)));
            }
        }
    }
    Ok(points)
}

/// 4 KiB times powers of two (of four when quick), as far as the tier holds them.
fn staircase(topology: &Topology, tier: &Tier, quick: bool) -> Vec<Bytes> {
    let least = if quick { LAST_QUICK_STEP } else { LAST_STEP };
    let beyond_cache = topology
        .last_level_cache()
        .get()
        .saturating_mul(TIMES_CACHE);
    let last = least
        .get()
        .max(beyond_cache.checked_next_power_of_two().unwrap_or(u64::MAX));
    let ratio = if quick { 4 } else { 2 };
    let mut sizes: Vec<Bytes> =
        std::iter::successors(Some(FIRST_STEP.get()), |size| size.checked_mul(ratio))
            .take_while(|&size| size <= last)
            .map(Bytes)
            .collect();
    // Steps of four may stride over the end.
    if sizes.last().is_some_and(|size| size.get() < last) {
        sizes.push(Bytes(last));
    }
    sizes.retain(|&size| size <= tier.capacity);
    sizes
}
