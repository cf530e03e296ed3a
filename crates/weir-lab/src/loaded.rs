//! Experiment `loaded`: the latency of one thread against the bandwidth that all others draw.
//!
//! One thread chases pointers within the reach of the TLB, prefetchers off; the others stream, each
//! through lines of its own, and pause between two lines. From the longest pause to none the load
//! grows from next to nothing to all that the cores can ask for. One curve for each mix of reads
//! and writes, as Intel MLC's `--loaded_latency` and the Mess benchmark (Esmaili-Dokht et al.,
//! MICRO 2024) draw it.
//!
//! A mix is what crosses the memory interface: a temporal store reads its line before it writes it
//! back, so that stores alone are one read for each write.

use std::fmt;
use std::str::FromStr;

use weir_model::access::{Dataflow, Locality, Op, Pattern};
use weir_model::document::Experiment;
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES, Nanos};

use crate::bandwidth::working_set;
use crate::plan::{Load, check_threads, choose_tiers, or_usual};
use crate::theory::traffic_limit;
use crate::{LabError, PointSpec};

/// What the threads beside the chase draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mix {
    /// Loads only.
    Reads,
    /// So many lines read for so many written, by loads and temporal stores. Reads are at least as
    /// many as writes and writes at least one.
    Temporal {
        /// Lines read from memory.
        reads: u32,
        /// Lines written to memory.
        writes: u32,
    },
    /// Non-temporal stores only.
    Posted,
}

impl Mix {
    /// The mixes of the experiment, with what MLC's option `-W` calls them: 0, 3, 2, 4, 5 and 6.
    pub const ALL: [Mix; 6] = [
        Mix::Reads,
        Mix::temporal(3, 1),
        Mix::temporal(2, 1),
        Mix::temporal(3, 2),
        Mix::temporal(1, 1),
        Mix::Posted,
    ];

    const fn temporal(reads: u32, writes: u32) -> Self {
        Mix::Temporal { reads, writes }
    }

    /// Share of the lines that cross the memory interface that are read.
    pub fn read_share(self) -> f64 {
        match self {
            Mix::Reads => 1.0,
            Mix::Temporal { reads, writes } => f64::from(reads) / f64::from(reads + writes),
            Mix::Posted => 0.0,
        }
    }

    /// Threads on a tier that draw this mix.
    pub fn load(self, tier: &TierName, threads: u32, set: Bytes) -> Load {
        let op = match self {
            Mix::Reads => Op::Ld,
            Mix::Temporal { .. } => Op::St,
            Mix::Posted => Op::NtSt,
        };
        let load = Load::new(tier, op, Pattern::Sequential, threads, set);
        match self {
            // Each store brings a read of its own.
            Mix::Temporal { reads, writes } if reads > writes => {
                let (lines, per) = (reads - writes, writes);
                let common = gcd(lines, per);
                load.reading(lines / common, per / common, tier, Dataflow::Apart)
            }
            _ => load,
        }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// `reads`, `3:1`, `nt_writes`.
impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mix::Reads => f.pad("reads"),
            Mix::Temporal { reads, writes } => f.pad(&format!("{reads}:{writes}")),
            Mix::Posted => f.pad("nt_writes"),
        }
    }
}

impl FromStr for Mix {
    type Err = String;

    /// Accepts `reads`, `nt_writes` and ratios of reads to writes with at least as many reads.
    fn from_str(text: &str) -> Result<Self, String> {
        /// More than this is reads only, near enough.
        const MOST: u32 = 1000;
        let wrong = || {
            format!(
                "`{text}` is no mix: write reads, nt_writes, or reads:writes such as 3:1 or 1:1"
            )
        };
        match text.replace('-', "_").as_str() {
            "reads" | "1:0" => return Ok(Mix::Reads),
            "nt_writes" | "0:1" => return Ok(Mix::Posted),
            _ => {}
        }
        let (reads, writes) = text.split_once(':').ok_or_else(wrong)?;
        let part = |part: &str| part.parse::<u32>().ok().filter(|n| (1..=MOST).contains(n));
        let (reads, writes) = (part(reads).zip(part(writes))).ok_or_else(wrong)?;
        if reads < writes {
            return Err(format!(
                "`{text}` writes more than it reads, which temporal stores cannot: each reads its \
                 line first; the most is 1:1, or nt_writes"
            ));
        }
        let common = gcd(reads, writes);
        Ok(Mix::temporal(reads / common, writes / common))
    }
}

/// Where the limit of a tier is known, pauses go from half to sixteen times the one at which the
/// threads would ask for all of it, in steps of half an octave, ...
const OCTAVES_ABOUT_LIMIT: (f64, f64) = (-1.0, 4.0);
const STEPS_AN_OCTAVE: f64 = 2.0;
/// ... and in finer ones where curves bend.
const OCTAVES_OF_BEND: (f64, f64) = (-0.5, 1.0);
const STEPS_IN_BEND: f64 = 6.0;
/// A quick run takes a third of the steps.
const QUICK_STEPS: f64 = 1.0;
const QUICK_STEPS_IN_BEND: f64 = 2.0;
/// Where the limit is not known, from 1 ns to about 1 us.
const OCTAVES_OF_NS: (f64, f64) = (0.0, 10.0);
/// The chase goes over at least this much memory, and this many times the last-level cache.
const LEAST_CHASE: Bytes = Bytes::mib(256);
const TIMES_CACHE: u64 = 4;
/// And over no more than this part of its tier, for the loaders need room too.
const PART_OF_TIER: u64 = 4;

/// What to leave out of the whole experiment, or to put in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Tiers; empty means all.
    pub tiers: Vec<TierName>,
    /// Mixes; empty means [`Mix::ALL`], or reads only and 1:1 when quick.
    pub mixes: Vec<Mix>,
    /// Threads that load; empty means all cores but the one that chases.
    pub threads: Vec<u32>,
    /// Pauses between two lines; empty means a geometric series from none to next to idle.
    pub pauses: Vec<Nanos>,
    /// Two mixes and a third of the pauses.
    pub quick: bool,
}

/// The points of the experiment: by tier the idle chase, then by mix, threads and pause, the
/// longest pause first.
///
/// # Errors
/// A tier is unknown, the machine has one core only, a number of loaders is zero or leaves no core
/// for the chase, or a pause is negative.
pub fn plan(topology: &Topology, options: &Options) -> Result<Vec<PointSpec>, LabError> {
    let most = topology.cores.len().saturating_sub(1) as u32;
    if most == 0 {
        return Err(LabError::Nothing(
            "a loaded latency needs two cores at least: one to chase, one to load".into(),
        ));
    }
    check_threads(&options.threads, topology, 1)?;
    check_pauses(&options.pauses)?;
    let quick: &[Mix] = &[Mix::Reads, Mix::temporal(1, 1)];
    let mixes = if options.quick { quick } else { &Mix::ALL };
    let mut points = Vec::new();
    for tier in choose_tiers(topology, &options.tiers)? {
        let idle = PointSpec::alone(Experiment::Loaded, chase(topology, tier));
        points.push(idle.clone());
        for mix in or_usual(&options.mixes, mixes) {
            for threads in or_usual(&options.threads, &[most]) {
                let set = working_set(topology, tier, threads);
                let load = mix.load(&tier.name, threads, set);
                let mut pauses = pauses(tier, &load, options);
                pauses.sort_by(|a, b| b.get().total_cmp(&a.get()));
                pauses.dedup();
                let beside = |pause| idle.clone().beside(load.clone().pausing(pause));
                points.extend(pauses.into_iter().map(beside));
            }
        }
    }
    Ok(points)
}

/// The thread that is timed: a chase within the reach of the TLB that leaves the caches behind.
pub fn chase(topology: &Topology, tier: &Tier) -> Load {
    let caches = topology
        .last_level_cache()
        .get()
        .saturating_mul(TIMES_CACHE);
    let wanted = caches
        .checked_next_power_of_two()
        .unwrap_or(u64::MAX)
        .max(LEAST_CHASE.get());
    let room = (tier.capacity.get() / PART_OF_TIER).max(2 * LINE_BYTES);
    let pattern = Pattern::Chase {
        locality: Locality::TlbFriendly,
    };
    let set = Bytes(wanted.min(room));
    Load::new(&tier.name, Op::Ld, pattern, 1, set).prefetch(false)
}

pub(crate) fn check_pauses(pauses: &[Nanos]) -> Result<(), LabError> {
    match pauses
        .iter()
        .find(|p| !p.get().is_finite() || p.get() < 0.0)
    {
        Some(pause) => Err(LabError::Nothing(format!(
            "a pause of {pause} is none: write 0ns or more"
        ))),
        None => Ok(()),
    }
}

/// None, and a geometric series about the pause at which the threads would ask for all that the
/// tier can give.
fn pauses(tier: &Tier, load: &Load, options: &Options) -> Vec<Nanos> {
    if !options.pauses.is_empty() {
        return options.pauses.clone();
    }
    let limit = tier
        .limits
        .as_ref()
        .map(|limits| traffic_limit(limits, load.read_share()).get())
        .filter(|limit| *limit > 0.0);
    let (steps, in_bend) = if options.quick {
        (QUICK_STEPS, QUICK_STEPS_IN_BEND)
    } else {
        (STEPS_AN_OCTAVE, STEPS_IN_BEND)
    };
    let octaves = match limit {
        Some(_) => [
            series(OCTAVES_ABOUT_LIMIT, steps),
            series(OCTAVES_OF_BEND, in_bend),
        ]
        .concat(),
        None => series(OCTAVES_OF_NS, steps),
    };
    let unit = limit.map_or(1.0, |gbps| {
        f64::from(load.threads) * LINE_BYTES as f64 * load.traffic_factor() / gbps
    });
    // Whole hundredths of a nanosecond, which is what documents show.
    let pause = |octave: f64| Nanos((unit * octave.exp2() * 100.0).round() / 100.0);
    std::iter::once(Nanos(0.0))
        .chain(octaves.into_iter().map(pause))
        .collect()
}

/// From one end to the other in so many steps for each unit.
fn series((from, to): (f64, f64), steps: f64) -> Vec<f64> {
    let count = ((to - from) * steps).round() as u32;
    (0..=count)
        .map(|step| from + f64::from(step) / steps)
        .collect()
}
