//! Experiment `tail`: the latency of every single request, to the far end of the distribution,
//! alone and beside others (MIO, in SupMario, *Dissecting CXL Memory Performance at Scale: Analysis,
//! Modeling, and Optimization*).
//!
//! A thread chases pointers within the reach of the TLB, prefetchers off, and each hop is timed by
//! itself. A mean over several hops, which most probes log, hides a long one among short ones.
//!
//! The company is of three kinds. *Chasers* do the very same as the thread that is timed, so that
//! all of them are timed and their latencies pool in one distribution: such a point is one load of
//! several threads. *Readers* and *writers* stream, prefetchers on, and only the one chase is timed.

use std::str::FromStr;

use weir_model::access::{Op, Pattern, Timing};
use weir_model::document::Experiment;
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES};

use crate::bandwidth::working_set;
use crate::loaded::chase;
use crate::plan::{Load, check_threads, choose_tiers, or_usual};
use crate::{LabError, PointSpec};

/// What runs beside the thread that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoRunners {
    /// Others that chase, and are timed with it.
    Chasers,
    /// Threads that load line by line.
    Readers,
    /// Threads that store line by line.
    Writers,
}

impl CoRunners {
    /// Every kind.
    pub const ALL: [CoRunners; 3] = [CoRunners::Chasers, CoRunners::Readers, CoRunners::Writers];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            CoRunners::Chasers => "chasers",
            CoRunners::Readers => "readers",
            CoRunners::Writers => "writers",
        }
    }
}

impl FromStr for CoRunners {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        (CoRunners::ALL.into_iter())
            .find(|co_runners| co_runners.name() == text.to_lowercase())
            .ok_or_else(|| {
                format!("`{text}` is no company for a chase; it is chasers, readers or writers")
            })
    }
}

/// Threads beside the timed one, as far as there are cores, and in a quick run.
const BESIDE: [u32; 6] = [1, 2, 4, 8, 16, 32];
const QUICK_BESIDE: [u32; 3] = [1, 4, 16];
/// Ten requests beyond p99.999, and twice that.
const FOR_P99999: u64 = 2_000_000;
/// A few more than ten beyond p99.99.
const FOR_P9999: u64 = 120_000;
/// A few more than ten beyond p99.9.
const FOR_P999: u64 = 12_000;

/// What to leave out of the whole experiment, or to put in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Tiers; empty means all.
    pub tiers: Vec<TierName>,
    /// Company; empty means every kind.
    pub co_runners: Vec<CoRunners>,
    /// Threads beside the timed one; empty means powers of two up to 32.
    pub threads: Vec<u32>,
    /// Powers of four of threads, and distributions to p99.99 alone and p99.9 beside others.
    pub quick: bool,
}

/// The points of the experiment: by tier alone, then by company and its threads.
///
/// # Errors
/// A tier is unknown, or a number of threads is zero or leaves no core for the chase.
pub fn plan(topology: &Topology, options: &Options) -> Result<Vec<PointSpec>, LabError> {
    check_threads(&options.threads, topology, 1)?;
    let most = topology.cores.len().saturating_sub(1) as u32;
    let series = if options.quick {
        &QUICK_BESIDE[..]
    } else {
        &BESIDE[..]
    };
    let mut usual: Vec<u32> = series.iter().copied().filter(|&n| n <= most).collect();
    // A socket of 32 cores has 31 to spare for 32.
    if let Some(&last) = series.last()
        && most < last
        && most > usual.last().copied().unwrap_or(0)
    {
        usual.push(most);
    }
    let (alone, beside) = if options.quick {
        (FOR_P9999, FOR_P999)
    } else {
        (FOR_P99999, FOR_P9999)
    };
    let mut points = Vec::new();
    for tier in choose_tiers(topology, &options.tiers)? {
        points.push(timed(topology, tier, 1).at_least(alone));
        for co_runners in or_usual(&options.co_runners, &CoRunners::ALL) {
            for threads in or_usual(&options.threads, &usual) {
                points.push(with(topology, tier, co_runners, threads).at_least(beside));
            }
        }
    }
    Ok(points)
}

/// `threads` chasers, all of them timed.
fn timed(topology: &Topology, tier: &Tier, threads: u32) -> PointSpec {
    let mut load = chase(topology, tier).timed(Timing::Each);
    load.threads = threads;
    let room = tier.capacity.get() / 2 / u64::from(threads);
    // A power of two, which every probe takes.
    let fits = (1_u64 << room.max(2 * LINE_BYTES).ilog2()).min(load.working_set.get());
    load.working_set = Bytes(fits);
    PointSpec::alone(Experiment::Tail, load)
}

fn with(topology: &Topology, tier: &Tier, co_runners: CoRunners, threads: u32) -> PointSpec {
    let op = match co_runners {
        CoRunners::Chasers => return timed(topology, tier, threads + 1),
        CoRunners::Readers => Op::Ld,
        CoRunners::Writers => Op::St,
    };
    let set = working_set(topology, tier, threads);
    let load = Load::new(&tier.name, op, Pattern::Sequential, threads, set);
    timed(topology, tier, 1).beside(load)
}
