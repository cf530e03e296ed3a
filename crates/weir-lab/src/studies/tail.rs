//! `weir bench tail`: the latency of every single request, to the far end of the distribution,
//! alone and with others (MIO, in SupMario, *Dissecting CXL Memory Performance at Scale: Analysis,
//! Modeling, and Optimization*).
//!
//! A thread chases pointers within the reach of the TLB, prefetchers off, and each hop is timed by
//! itself. A mean over several hops, which most probes log, hides a long one among short ones.
//!
//! The co_runners is of three kinds. *Chasers* do the very same as the thread that is timed, so that
//! all of them are timed and their latencies pool in one distribution: such a point is one load of
//! several threads. *Readers* and *writers* stream, prefetchers on, and only the one chase is timed.

use std::str::FromStr;

use weir_model::access::{Op, Pattern, Timing};
use weir_model::document::{Point, TailScore};
use weir_model::latency::LatencySummary;
use weir_model::topology::{Tier, TierKind, TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES, Nanos};

use super::loaded::chase;
use super::point_study::{About, PointStudy};
use crate::plan::{Load, check_threads, choose_tiers, or_usual};
use crate::room::working_set;
use crate::view::{View, col};
use crate::{LabError, PointSpec, Severity, Threads, Verdict};

const NAME: &str = "tail";

weir_model::named! {
    /// The other threads, which run with the timed thread.
    pub enum CoRunners {
        /// Others that chase, and are timed with it.
        Chasers = "chasers",
        /// Threads that load line by line.
        Readers = "readers",
        /// Threads that store line by line.
        Writers = "writers",
    }
}

impl FromStr for CoRunners {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        CoRunners::named(&text.to_lowercase()).ok_or_else(|| {
            format!("`{text}` cannot run with a chase; write chasers, readers or writers")
        })
    }
}

/// Threads with the timed one, as far as there are cores, and in a quick run.
const BESIDE: [u32; 6] = [1, 2, 4, 8, 16, 32];
const QUICK_BESIDE: [u32; 3] = [1, 4, 16];
/// Ten requests beyond p99.999, and twice that.
const FOR_P99999: u64 = 2_000_000;
/// A few more than ten beyond p99.99.
const FOR_P9999: u64 = 120_000;
/// A few more than ten beyond p99.9.
const FOR_P999: u64 = 12_000;

/// How long single requests take, to p99.999, alone and under load.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench tail --quick
  weir bench tail --on emr2s+cxl-a --tier dram,cxl0 --beside readers
  weir bench tail --on emr2s+cxl-ssd-znand --tier cxl0 --beside writers \\
      --deterministic
  weir bench tail --beside writers --threads 1,4,16 --format json")]
pub struct Tail {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long = "tier", value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<TierName>,
    /// What runs beside: chasers, readers, writers [default: each].
    #[arg(long = "beside", value_delimiter = ',', value_name = "KIND")]
    pub co_runners: Vec<CoRunners>,
    /// Threads with the one that is timed [default: powers of two to 32].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub threads: Vec<Threads>,
    /// Give the timed loads the hint that no internal task of the device may delay them (CXL-SSD; a model of a device
    /// with a medium).
    #[arg(long)]
    pub deterministic: bool,
    /// Fewer thread counts, and no quantiles beyond p99.99.
    #[arg(long)]
    pub quick: bool,
}

impl PointStudy for Tail {
    const NAME: &'static str = NAME;
    const VERB: &'static str = "bench tail";
    const TITLE: &'static str = "Tails";
    const WORDS: &'static str = "Each request is timed. On the vertical axis each nine of a quantile takes as much space as the one before it; a curve that leans to the right has a long tail. Chasers are timed too, readers and writers are not.";

    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        check_threads(&Threads::all(&self.threads), topology, 1)?;
        let most = topology.cores.len().saturating_sub(1) as u32;
        let series = if self.quick {
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
        let (alone, beside) = if self.quick {
            (FOR_P9999, FOR_P999)
        } else {
            (FOR_P99999, FOR_P9999)
        };
        let mut points: Vec<PointSpec> = Vec::new();
        for tier in choose_tiers(topology, &self.tiers)? {
            points.push(timed(topology, tier, 1).at_least(alone));
            for co_runners in or_usual(&self.co_runners, &CoRunners::ALL) {
                for threads in or_usual(&Threads::all(&self.threads), &usual) {
                    points.push(with(topology, tier, co_runners, threads).at_least(beside));
                }
            }
        }
        let is_cxl = |name: &TierName| {
            let kinds = [TierKind::Cxl, TierKind::RemoteCxl];
            (topology.tiers.iter()).any(|tier| tier.name == *name && kinds.contains(&tier.kind))
        };
        for point in points.iter_mut().filter(|point| is_cxl(&point.load.tier)) {
            point.load.deterministic = self.deterministic;
        }
        Ok(points)
    }

    fn case(point: &Point) -> Option<String> {
        Some(if is_alone(point) {
            "nothing".into()
        } else {
            beside(point)
        })
    }

    fn answer(points: &[Point], topology: &Topology) -> Vec<Verdict> {
        topology
            .tiers
            .iter()
            .filter_map(|tier| tails(points, &tier.name))
            .collect()
    }

    fn views(_: &[Point], _: About<'_>) -> Vec<View> {
        let columns = [
            "mean_ns",
            "p50_ns",
            "p99_ns",
            "p999_ns",
            "p9999_ns",
            "p99999_ns",
            "max_ns",
        ];
        let figures = columns.map(col);
        vec![
            View::table(
                "points",
                "Latency of single requests to {tier}",
                [&[col("case").head("beside")], &figures[..]].concat(),
            )
            .each(&["tier"]),
            View::table(
                "tails",
                "Tail scores: widest p99.9 - p50, alone and under load; divided by p50 alone",
                [
                    "tier",
                    "p50_ns",
                    "alone_ns",
                    "chasers_ns",
                    "readers_ns",
                    "writers_ns",
                    "growth",
                    "score",
                ]
                .map(col)
                .to_vec(),
            ),
            View::picture("points", "tails"),
        ]
    }

    fn in_all(tiers: &[TierName], quick: bool) -> Option<Self> {
        Some(Self {
            tiers: tiers.to_vec(),
            quick,
            ..Self::default()
        })
    }
}

/// `threads` chasers, all of them timed.
fn timed(topology: &Topology, tier: &Tier, threads: u32) -> PointSpec {
    let mut load = chase(topology, tier).timed(Timing::Each);
    load.threads = threads;
    let room = tier.capacity.get() / 2 / u64::from(threads);
    // A power of two, which every probe takes.
    let fits = (1_u64 << room.max(2 * LINE_BYTES).ilog2()).min(load.working_set.get());
    load.working_set = Bytes(fits);
    PointSpec::alone(NAME, load)
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

/// A tail grows if its p99.9 exceeds the one alone by more than this factor.
const GROWN: f64 = 1.5;

/// How bad the tail of each tier is: of every tier whose requests were timed alone.
pub fn scores(points: &[Point]) -> Vec<TailScore> {
    let mut tiers: Vec<&TierName> = Vec::new();
    for point in points.iter().filter(|p| p.experiment == NAME) {
        if !tiers.contains(&&point.tier) {
            tiers.push(&point.tier);
        }
    }
    tiers
        .into_iter()
        .filter_map(|tier| score(points, tier))
        .collect()
}

fn score(points: &[Point], tier: &TierName) -> Option<TailScore> {
    let own = of(points, tier);
    let single = own.iter().find(|p| is_alone(p))?;
    let (alone, p50) = (gap(single)?, single.ns?.p50);
    let widest = |is: fn(&Point) -> bool| {
        let gaps = own.iter().filter(|p| !is_alone(p) && is(p));
        gaps.filter_map(|p| gap(p)).reduce(Nanos::max)
    };
    let chasers = widest(|p| p.beside.is_none());
    let readers = widest(|p| p.beside.as_ref().is_some_and(|b| b.op == Op::Ld));
    let writers = widest(|p| p.beside.as_ref().is_some_and(|b| b.op != Op::Ld));
    let co_runners = [chasers, readers, writers]
        .into_iter()
        .flatten()
        .reduce(Nanos::max);
    let worst = co_runners.map_or(alone, |co_runners| co_runners.max(alone));
    (p50.get() > 0.0).then(|| TailScore {
        tier: tier.clone(),
        p50_ns: p50,
        alone_ns: alone,
        chasers_ns: chasers,
        readers_ns: readers,
        writers_ns: writers,
        growth: co_runners
            .filter(|_| alone.get() > 0.0)
            .map(|_| worst / alone),
        score: worst / p50,
    })
}

/// The timed points of a tier.
fn of<'p>(points: &'p [Point], tier: &TierName) -> Vec<&'p Point> {
    (points.iter())
        .filter(|p| p.experiment == NAME && p.tier == *tier)
        .collect()
}

/// The farthest quantile alone, against DRAM's; and p99.9 alone and in the company that raises it most.
fn tails(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let score = score(points, tier)?;
    let own = of(points, tier);
    let single = own.iter().find(|p| is_alone(p))?;
    let near = of(points, &TierName::dram());
    let near = near.iter().find(|p| is_alone(p) && p.tier != *tier);
    // A ratio is of the farthest quantile that both have: tails part late.
    let farthest = QUANTILES.iter().find_map(|(name, quantile)| {
        let far = quantile(&single.ns?)?.get();
        match near {
            Some(near) => Some((name, far, Some(quantile(&near.ns?)?.get()))),
            None => Some((name, far, None)),
        }
    });
    let (name, far, near) = farthest?;
    let mut text = format!("{name} is {far:.0} ns alone");
    if let Some(near) = near {
        text += &format!(" ({:.1}x the {near:.0} ns of dram)", far / near);
    }
    let alone = single.ns?.p999?.get();
    let co_runners = own.iter().filter(|p| !is_alone(p));
    let worst = co_runners
        .filter_map(|p| Some((p.ns?.p999?.get(), *p)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((highest, point)) = worst {
        text += &match highest > alone * GROWN {
            true => format!(
                "; p99.9 grows with load, from {alone:.0} ns alone to {highest:.0} ns with {}",
                beside(point)
            ),
            false => format!(
                "; p99.9 does not grow with load: {alone:.0} ns alone, {highest:.0} ns at most with others"
            ),
        };
    }
    text += &format!("; its score is {:.2}", score.score);
    Some(Verdict::new(Severity::Note, format!("{tier} tail"), text))
}

/// A quantile of a distribution, where enough was timed for it.
type Quantile = fn(&LatencySummary) -> Option<Nanos>;

/// Quantiles, the farthest first.
const QUANTILES: [(&str, Quantile); 3] = [
    ("p99.999", |ns| ns.p99999),
    ("p99.99", |ns| ns.p9999),
    ("p99.9", |ns| ns.p999),
];

fn is_alone(point: &Point) -> bool {
    point.threads == 1 && point.beside.is_none()
}

fn gap(point: &Point) -> Option<Nanos> {
    let ns = point.ns?;
    Some(ns.p999? - ns.p50)
}

fn beside(point: &Point) -> String {
    let (n, what) = match &point.beside {
        None => (point.threads.saturating_sub(1), "chaser"),
        Some(beside) if beside.op == Op::Ld => (beside.threads, "reader"),
        Some(beside) => (beside.threads, "writer"),
    };
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}
