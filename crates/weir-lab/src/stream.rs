//! Experiment `stream`: STREAM's four kernels (McCalpin, *Memory Bandwidth and Machine Balance in
//! Current High Performance Computers*, 1995) by thread count and tier.
//!
//! Bytes are counted as STREAM does: two arrays for copy and scale, three for add and triad. Reads
//! for ownership are not counted, so that with ordinary stores more crosses the memory interface
//! than the figure says: a half more for copy and scale, a third more for add and triad.

use std::str::FromStr;

use weir_model::access::{Dataflow, Op, Pattern};
use weir_model::document::Experiment;
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::Bytes;

use crate::plan::{Load, caches_in_reach, check_threads, check_working_set, choose_tiers};
use crate::plan::{doubling, or_usual};
use crate::{LabError, PointSpec};

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// `c = a`.
    Copy,
    /// `b = s c`.
    Scale,
    /// `c = a + b`.
    Add,
    /// `a = b + s c`.
    Triad,
}

impl Kernel {
    /// Every kernel, in STREAM's order.
    pub const ALL: [Kernel; 4] = [Kernel::Copy, Kernel::Scale, Kernel::Add, Kernel::Triad];

    /// What it does with what it loads.
    pub const fn dataflow(self) -> Dataflow {
        match self {
            Kernel::Copy => Dataflow::Copy,
            Kernel::Scale => Dataflow::Scale,
            Kernel::Add => Dataflow::Add,
            Kernel::Triad => Dataflow::Triad,
        }
    }

    /// Arrays that it reads for the one that it writes.
    pub const fn sources(self) -> u32 {
        match self {
            Kernel::Copy | Kernel::Scale => 1,
            Kernel::Add | Kernel::Triad => 2,
        }
    }

    /// The stable name.
    pub const fn name(self) -> &'static str {
        self.dataflow().name()
    }
}

impl FromStr for Kernel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        (Kernel::ALL.into_iter())
            .find(|kernel| kernel.name() == text.to_lowercase())
            .ok_or_else(|| {
                format!("STREAM has no kernel `{text}`; it has copy, scale, add and triad")
            })
    }
}

/// STREAM's rule: each array at least this many times the caches.
const TIMES_CACHES: u64 = 4;
/// And at least this much of it for each thread.
const LEAST_SHARE: Bytes = Bytes::mib(16);
/// Working sets are multiples of this, so that three arrays of a thread are whole huge pages.
const GRANULE: Bytes = Bytes::mib(6);
/// All arrays together take at most this part of a tier.
const PART_OF_TIER: u64 = 2;

/// What to leave out of the whole experiment, or to put in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Tiers; empty means all.
    pub tiers: Vec<TierName>,
    /// Kernels; empty means all four.
    pub kernels: Vec<Kernel>,
    /// The instruction that writes; empty means `st`, as a compiler does without being told more.
    pub ops: Vec<Op>,
    /// Thread counts; empty means powers of two and every core; when quick one and every core.
    pub threads: Vec<u32>,
    /// Bytes of all arrays of one thread; `None` means STREAM's rule.
    pub working_set: Option<Bytes>,
    /// Whether the hardware prefetchers run.
    pub prefetch: bool,
    /// One thread and every core.
    pub quick: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tiers: Vec::new(),
            kernels: Vec::new(),
            ops: Vec::new(),
            threads: Vec::new(),
            working_set: None,
            prefetch: true,
            quick: false,
        }
    }
}

/// The points of the experiment: by tier, then storing instruction, kernel and threads.
///
/// # Errors
/// A tier is unknown, a thread count is zero or above the number of cores, the working set is too
/// small, or the instruction stores nothing.
pub fn plan(topology: &Topology, options: &Options) -> Result<Vec<PointSpec>, LabError> {
    check_threads(&options.threads, topology, 0)?;
    if let Some(size) = options.working_set {
        check_working_set(size)?;
    }
    if let Some(op) = (options.ops.iter()).find(|op| !matches!(op, Op::St | Op::NtSt)) {
        return Err(LabError::Nothing(format!(
            "STREAM writes with st or nt_st, not with {op}"
        )));
    }
    let mut series = doubling(topology.cores.len() as u32);
    if options.quick {
        let last = series.len().saturating_sub(1);
        series = (series.iter().enumerate())
            .filter(|&(at, _)| at == 0 || at == last)
            .map(|(_, &n)| n)
            .collect();
    }
    let mut points = Vec::new();
    for tier in choose_tiers(topology, &options.tiers)? {
        for op in or_usual(&options.ops, &[Op::St]) {
            for kernel in or_usual(&options.kernels, &Kernel::ALL) {
                for threads in or_usual(&options.threads, &series) {
                    let set = options
                        .working_set
                        .unwrap_or_else(|| arrays(topology, tier, kernel, threads));
                    let load = Load::new(&tier.name, op, Pattern::Sequential, threads, set)
                        .reading(kernel.sources(), 1, &tier.name, kernel.dataflow())
                        .prefetch(options.prefetch);
                    points.push(PointSpec::alone(Experiment::Stream, load));
                }
            }
        }
    }
    Ok(points)
}

/// Bytes of a thread's arrays by STREAM's rule, within the tier.
fn arrays(topology: &Topology, tier: &Tier, kernel: Kernel, threads: u32) -> Bytes {
    let wide = u64::from(threads.max(1));
    let caches = caches_in_reach(topology, threads).get();
    let share = caches.saturating_mul(TIMES_CACHES).div_ceil(wide);
    let one = share.max(LEAST_SHARE.get());
    let granule = GRANULE.get();
    let wanted = one
        .saturating_mul(u64::from(kernel.sources()) + 1)
        .next_multiple_of(granule);
    let room = tier.capacity.get() / PART_OF_TIER / wide;
    let room = (room - room % granule).max(granule.min(tier.capacity.get()));
    Bytes(wanted.min(room))
}
