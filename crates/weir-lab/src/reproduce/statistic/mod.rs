//! How a published figure is computed from points: a small language of constants.

mod reading;
mod wanted;

use weir_model::access::{Locality, Op, Pattern};
use weir_model::units::Bytes;

use crate::Finished;
use crate::curve::Curve;

use reading::{cxl_writes, gbps, l2_miss, l3_accesses, latency, quantile_of_means, tor_residency};
use wanted::{LINES, pairs};
pub use wanted::{Neighbour, Pair, Stream, Wanted};

/// What of a curve over threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Feature {
    /// The highest figure.
    Peak,
    /// The fewest threads at the peak.
    ThreadsAtPeak,
    /// The fewest threads past which more of them gain less than a tenth.
    GainsLittlePast,
    /// The threads past which the curve has declined, or the most of them if it has not.
    DeclinesPast,
    /// The mean figure with more than so many threads.
    Beyond(u32),
}

/// A figure computed from points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// Mean latency of a timed point, in ns.
    Latency(Wanted),
    /// What a probe that logs the mean of so many dependent hops would give for this quantile of
    /// its log, in ns.
    QuantileOfMeans(Wanted, u32, f64),
    /// Bandwidth of a stream with so many threads, in GB/s.
    Bandwidth(Stream, u32),
    /// A feature of the curve over these thread counts, as far as there are cores.
    Curve(Stream, &'static [u32], Feature),
    /// How long a request to CXL memory stays in the Table of Requests under a stream with so many
    /// threads, in ns: occupancy over inserts, by the counted clock.
    TorResidencyCxl(Stream, u32),
    /// By how many percent the victim's bandwidth falls beside so many threads, the victim's first.
    LossPct(Pair, (u32, u32)),
    /// The change of the victim's bandwidth in percent that is largest in size over all pairs of these
    /// thread counts: a cell of CXL-Interplay's Table III.
    ExtremeChangePct(Pair, &'static [u32]),
    /// Bandwidth of a pair's victim beside so many threads, the victim's first, in MB/s.
    BandwidthBeside(Pair, (u32, u32)),
    /// The same by the lines that went out to CXL memory.
    CxlWritesBeside(Pair, (u32, u32)),
    /// How many times as long as alone a demand load that missed L2 takes: outstanding over requests
    /// (Load_L2_Miss_Latency of Intel's top-down metrics).
    L2MissFactor(Pair, (u32, u32)),
    /// How many times as many requests as alone the victim's cores send to the last-level cache
    /// (L3_Cache_Access_BW of the same metrics): `offcore_requests.all_requests` over time.
    L3AccessFactor(Pair, (u32, u32)),
    /// The first divided by the second.
    Ratio(&'static [Statistic; 2]),
    /// By how many percent the first exceeds the second.
    ExcessPct(&'static [Statistic; 2]),
    /// By how many percent the first falls short of the second.
    ShortfallPct(&'static [Statistic; 2]),
    /// A bandwidth in percent of a theoretical one in GB/s.
    Efficiency(&'static Statistic, f64),
    /// The abscissa, of a unit, at which the figure is greatest.
    Best(&'static [(f64, Statistic)], &'static str),
    /// The first or the last abscissa, of a unit, at which the first figure is clearly above the
    /// second.
    Above(&'static [(f64, [Statistic; 2])], Side, &'static str),
    /// The first less the second.
    Difference(&'static [Statistic; 2]),
    /// The sum of several of one unit.
    Sum(&'static [Statistic]),
    /// The least of several of one unit.
    Least(&'static [Statistic]),
    /// The greatest of several of one unit.
    Greatest(&'static [Statistic]),
}

/// Which end of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The lowest abscissa.
    First,
    /// The highest.
    Last,
}

/// A figure this much above another is clearly above it.
const CLEARLY: f64 = 1.05;

/// Where results are looked up.
pub trait Results {
    /// The cores of a platform.
    ///
    /// # Errors
    /// The platform could not be opened.
    fn cores(&self, platform: &str) -> Result<usize, String>;

    /// A measured point.
    ///
    /// # Errors
    /// It has no figure; the reason.
    fn point(&self, wanted: &Wanted) -> Result<&Finished, String>;
}

/// A pointer chase in one tier, within TLB reach and alone on the machine: idle latency.
pub const fn idle(platform: &'static str, tier: &'static str) -> Statistic {
    Statistic::Latency(chase(platform, tier))
}

/// The chase of [`idle`]: 1 GiB (MEMO Fig 2), prefetchers off.
const fn chase(platform: &'static str, tier: &'static str) -> Wanted {
    Wanted {
        platform,
        tier,
        op: Op::Ld,
        pattern: Pattern::Chase {
            locality: Locality::TlbFriendly,
        },
        threads: 1,
        working_set: Some(Bytes::gib(1)),
        prefetch: false,
        reads: None,
        least_accesses: 0,
        beside: None,
    }
}

/// The chase of [`idle`] over another working set.
pub const fn chase_of(platform: &'static str, tier: &'static str, size: Bytes) -> Statistic {
    Statistic::Latency(Wanted {
        working_set: Some(size),
        ..chase(platform, tier)
    })
}

/// A quantile of means of `hops` dependent hops of the chase of [`idle`], from at least `singles`.
pub const fn idle_quantile(
    platform: &'static str,
    tier: &'static str,
    singles: u64,
    hops: u32,
    share: f64,
) -> Statistic {
    let wanted = Wanted {
        least_accesses: singles,
        ..chase(platform, tier)
    };
    Statistic::QuantileOfMeans(wanted, hops, share)
}

/// A quantile of single hops while so many threads chase pointers in the tier, each its own.
pub const fn tail(
    platform: &'static str,
    tier: &'static str,
    threads: u32,
    share: f64,
) -> Statistic {
    let wanted = Wanted {
        threads,
        least_accesses: LINES,
        ..chase(platform, tier)
    };
    Statistic::QuantileOfMeans(wanted, 1, share)
}

/// One access at a time on a flushed line, prefetchers off.
pub const fn flushed(platform: &'static str, tier: &'static str, op: Op) -> Statistic {
    on_flushed(platform, tier, op, Pattern::FlushedLine)
}

/// So many accesses at once on flushed lines, prefetchers off: their time over their number.
pub const fn burst(platform: &'static str, tier: &'static str, op: Op, lines: u32) -> Statistic {
    on_flushed(platform, tier, op, Pattern::FlushedBurst { lines })
}

const fn on_flushed(
    platform: &'static str,
    tier: &'static str,
    op: Op,
    pattern: Pattern,
) -> Statistic {
    Statistic::Latency(Wanted {
        op,
        pattern,
        working_set: Some(Bytes::mib(64)),
        ..chase(platform, tier)
    })
}

impl Statistic {
    /// The unit of the figure, as published data spells it.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Latency(_) | Self::QuantileOfMeans(..) | Self::TorResidencyCxl(..) => "ns",
            Self::Bandwidth(..) | Self::Curve(_, _, Feature::Peak | Feature::Beyond(_)) => "GB/s",
            Self::Curve(
                _,
                _,
                Feature::ThreadsAtPeak | Feature::GainsLittlePast | Feature::DeclinesPast,
            ) => "threads",
            Self::BandwidthBeside(..) | Self::CxlWritesBeside(..) => "MB/s",
            Self::Ratio(_) | Self::L2MissFactor(..) | Self::L3AccessFactor(..) => "x",
            Self::LossPct(..) => "% loss",
            Self::ExcessPct(_)
            | Self::ShortfallPct(_)
            | Self::Efficiency(..)
            | Self::ExtremeChangePct(..) => "%",
            Self::Best(_, unit) | Self::Above(_, _, unit) => unit,
            Self::Difference([first, _]) => first.unit(),
            Self::Sum(parts) | Self::Least(parts) | Self::Greatest(parts) => {
                parts.first().map_or("", Statistic::unit)
            }
        }
    }

    /// Every point that the figure needs.
    pub fn wanted(&self) -> Vec<Wanted> {
        match self {
            Self::Latency(wanted) | Self::QuantileOfMeans(wanted, ..) => vec![*wanted],
            Self::Bandwidth(stream, threads) | Self::TorResidencyCxl(stream, threads) => {
                vec![stream.with(*threads)]
            }
            Self::Curve(stream, threads, _) => threads.iter().map(|&n| stream.with(n)).collect(),
            Self::LossPct(pair, (n, m))
            | Self::L2MissFactor(pair, (n, m))
            | Self::L3AccessFactor(pair, (n, m)) => {
                vec![pair.victim.with(*n), pair.with(*n, *m)]
            }
            Self::BandwidthBeside(pair, (n, m)) | Self::CxlWritesBeside(pair, (n, m)) => {
                vec![pair.with(*n, *m)]
            }
            Self::ExtremeChangePct(pair, threads) => pairs(threads)
                .flat_map(|(n, m)| [pair.victim.with(n), pair.with(n, m)])
                .collect(),
            Self::Ratio(parts)
            | Self::ExcessPct(parts)
            | Self::ShortfallPct(parts)
            | Self::Difference(parts) => parts.iter().flat_map(Statistic::wanted).collect(),
            Self::Efficiency(bandwidth, _) => bandwidth.wanted(),
            Self::Best(steps, _) => steps.iter().flat_map(|(_, s)| s.wanted()).collect(),
            Self::Above(steps, ..) => {
                let pairs = steps.iter().flat_map(|(_, pair)| pair);
                pairs.flat_map(Statistic::wanted).collect()
            }
            Self::Sum(parts) | Self::Least(parts) | Self::Greatest(parts) => {
                parts.iter().flat_map(Statistic::wanted).collect()
            }
        }
    }

    /// The figure.
    ///
    /// # Errors
    /// A point that it needs has no figure; the reason.
    pub fn value(&self, results: &dyn Results) -> Result<f64, String> {
        let both = |[first, second]: &[Statistic; 2]| {
            Ok::<_, String>((first.value(results)?, second.value(results)?))
        };
        let fold = |parts: &[Statistic], join: fn(f64, f64) -> f64| {
            let values: Vec<f64> = parts
                .iter()
                .map(|part| part.value(results))
                .collect::<Result<_, _>>()?;
            values
                .into_iter()
                .reduce(join)
                .ok_or_else(|| "made of nothing".to_string())
        };
        match self {
            Self::Latency(wanted) => latency(results.point(wanted)?),
            Self::QuantileOfMeans(wanted, hops, share) => {
                quantile_of_means(results.point(wanted)?, *hops, *share)
            }
            Self::Bandwidth(stream, threads) => gbps(results.point(&stream.with(*threads))?),
            Self::Curve(stream, threads, feature) => {
                let cores = results.cores(stream.platform)?;
                let curve = threads
                    .iter()
                    .filter(|&&threads| threads as usize <= cores)
                    .map(|&threads| Ok((threads, gbps(results.point(&stream.with(threads))?)?)))
                    .collect::<Result<Curve, String>>()?;
                feature
                    .of(&curve)
                    .ok_or_else(|| format!("{cores} cores are too few for it"))
            }
            Self::TorResidencyCxl(stream, threads) => {
                tor_residency(results.point(&stream.with(*threads))?)
            }
            Self::LossPct(pair, threads) => Ok(-pair.change(*threads, results)?),
            Self::ExtremeChangePct(pair, threads) => {
                let changes: Vec<f64> = pairs(threads)
                    .map(|threads| pair.change(threads, results))
                    .collect::<Result<_, _>>()?;
                let largest = changes
                    .into_iter()
                    .reduce(|a, b| if b.abs() > a.abs() { b } else { a });
                largest.ok_or_else(|| "made of nothing".to_string())
            }
            Self::BandwidthBeside(pair, (n, m)) => {
                Ok(gbps(results.point(&pair.with(*n, *m))?)? * 1e3)
            }
            Self::CxlWritesBeside(pair, (n, m)) => cxl_writes(results.point(&pair.with(*n, *m))?),
            Self::L2MissFactor(pair, (n, m)) => {
                let alone = l2_miss(results.point(&pair.victim.with(*n))?)?;
                Ok(l2_miss(results.point(&pair.with(*n, *m))?)? / alone)
            }
            Self::L3AccessFactor(pair, (n, m)) => {
                let alone = l3_accesses(results.point(&pair.victim.with(*n))?)?;
                Ok(l3_accesses(results.point(&pair.with(*n, *m))?)? / alone)
            }
            Self::Ratio(parts) => both(parts).map(|(a, b)| a / b),
            Self::ExcessPct(parts) => both(parts).map(|(a, b)| (a / b - 1.0) * 100.0),
            Self::ShortfallPct(parts) => both(parts).map(|(a, b)| (1.0 - a / b) * 100.0),
            Self::Efficiency(bandwidth, of) => {
                bandwidth.value(results).map(|gbps| gbps / of * 100.0)
            }
            Self::Best(steps, _) => best(steps, results),
            Self::Above(steps, side, _) => above(steps, *side, results),
            Self::Difference(parts) => both(parts).map(|(a, b)| a - b),
            Self::Sum(parts) => fold(parts, |a, b| a + b),
            Self::Least(parts) => fold(parts, f64::min),
            Self::Greatest(parts) => fold(parts, f64::max),
        }
    }
}

fn best(steps: &[(f64, Statistic)], results: &dyn Results) -> Result<f64, String> {
    let figures: Vec<(f64, f64)> = steps
        .iter()
        .map(|(x, statistic)| Ok((*x, statistic.value(results)?)))
        .collect::<Result<_, String>>()?;
    let best = figures.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    best.map(|(x, _)| x)
        .ok_or_else(|| "made of nothing".to_string())
}

fn above(
    steps: &[(f64, [Statistic; 2])],
    side: Side,
    results: &dyn Results,
) -> Result<f64, String> {
    let mut is_above = Vec::new();
    for (x, [first, second]) in steps {
        if first.value(results)? > second.value(results)? * CLEARLY {
            is_above.push(*x);
        }
    }
    let end = match side {
        Side::First => is_above.first(),
        Side::Last => is_above.last(),
    };
    end.copied()
        .ok_or_else(|| "the one is nowhere clearly above the other".to_string())
}

impl Feature {
    fn of(self, curve: &Curve) -> Option<f64> {
        match self {
            Self::Peak => curve.peak().map(|(_, gbps)| gbps),
            Self::ThreadsAtPeak => curve.knee().map(f64::from),
            Self::GainsLittlePast => curve.reaches(0.9).map(f64::from),
            Self::DeclinesPast => {
                let most = || curve.last().map(|(threads, _)| threads);
                curve.declines_past().or_else(most).map(f64::from)
            }
            Self::Beyond(threads) => curve.mean_beyond(threads),
        }
    }
}
