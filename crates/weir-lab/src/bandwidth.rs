//! Experiment `bandwidth`: how many bytes a second threads move, by instruction, thread count and
//! tier (MEMO §4.3.1).
//!
//! Every thread goes through its own working set line by line, again and again. The curve over
//! threads shows what one core can have in flight, where the tier saturates (the *knee*), and
//! whether more threads than that do harm.

use weir_model::access::{Op, Pattern};
use weir_model::document::Experiment;
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::Bytes;

use crate::plan::{
    Load, caches_in_reach, check_threads, check_working_set, choose_tiers, doubling,
};
use crate::{LabError, PointSpec};

/// A thread's working set is at least this.
const LEAST_SET: Bytes = Bytes::mib(64);
/// And all threads' together this many times the caches in reach, so that memory is measured.
pub const TIMES_CACHES: u64 = 2;
/// Working sets are multiples of this, the usual huge page.
const GRANULE: Bytes = Bytes::mib(2);
/// All threads' working sets together take at most this part of a tier.
const PART_OF_TIER: u64 = 2;

/// The instructions of a quick run: one of each kind of traffic.
const QUICK_OPS: [Op; 3] = [Op::Ld, Op::St, Op::NtSt];

/// What to leave out of the whole experiment, or to put in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Tiers; empty means all.
    pub tiers: Vec<TierName>,
    /// Instructions; empty means all, or `ld`, `st` and `nt_st` when quick.
    pub ops: Vec<Op>,
    /// Thread counts; empty means a series that is dense where curves bend, up to every core.
    pub threads: Vec<u32>,
    /// Bytes that one thread touches; `None` means enough to leave the caches behind.
    pub working_set: Option<Bytes>,
    /// Whether the hardware prefetchers run.
    pub prefetch: bool,
    /// Powers of two of threads and fewer instructions.
    pub quick: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tiers: Vec::new(),
            ops: Vec::new(),
            threads: Vec::new(),
            working_set: None,
            prefetch: true,
            quick: false,
        }
    }
}

/// The points of the experiment: by tier, then instruction, then threads.
///
/// # Errors
/// A tier is unknown, a thread count is zero or above the number of cores, or the working set is
/// too small.
pub fn plan(topology: &Topology, options: &Options) -> Result<Vec<PointSpec>, LabError> {
    let cores = topology.cores.len();
    check_threads(&options.threads, topology, 0)?;
    if let Some(size) = options.working_set {
        check_working_set(size)?;
    }
    let threads = if options.threads.is_empty() {
        thread_series(cores as u32, options.quick)
    } else {
        options.threads.clone()
    };
    let ops = match (options.ops.as_slice(), options.quick) {
        ([], false) => &Op::ALL[..],
        ([], true) => &QUICK_OPS[..],
        (given, _) => given,
    };

    let mut points = Vec::new();
    for tier in choose_tiers(topology, &options.tiers)? {
        for &op in ops {
            for &threads in &threads {
                let size = options
                    .working_set
                    .unwrap_or_else(|| working_set(topology, tier, threads));
                let load = Load::new(&tier.name, op, Pattern::Sequential, threads, size);
                points.push(PointSpec::alone(
                    Experiment::Bandwidth,
                    load.prefetch(options.prefetch),
                ));
            }
        }
    }
    Ok(points)
}

/// 1 to 4, then steps that widen, and every core at last.
fn thread_series(cores: u32, quick: bool) -> Vec<u32> {
    if quick {
        return doubling(cores);
    }
    let widening = std::iter::successors(Some(1_u32), |&n| {
        Some(
            n + match n {
                0..4 => 1,
                4..8 => 2,
                8..32 => 4,
                32..64 => 8,
                _ => 16,
            },
        )
    });
    let mut series: Vec<u32> = widening.take_while(|&n| n <= cores).collect();
    if series.last().is_some_and(|&last| last < cores) {
        series.push(cores);
    }
    series
}

/// Bytes for each of `threads` threads that together leave the caches behind, within the tier.
pub fn working_set(topology: &Topology, tier: &Tier, threads: u32) -> Bytes {
    beyond_caches(topology, tier, threads, TIMES_CACHES)
}

/// Bytes for each of `threads` threads that together are so many times the caches in their reach,
/// within the tier.
pub fn beyond_caches(topology: &Topology, tier: &Tier, threads: u32, times: u64) -> Bytes {
    let threads_wide = u64::from(threads.max(1));
    let granule = GRANULE.get();
    let caches = caches_in_reach(topology, threads)
        .get()
        .saturating_mul(times);
    let wanted = caches
        .div_ceil(threads_wide)
        .max(LEAST_SET.get())
        .next_multiple_of(granule);
    let room = tier.capacity.get() / PART_OF_TIER / threads_wide;
    let room = (room - room % granule).max(granule.min(tier.capacity.get()));
    Bytes(wanted.min(room))
}
