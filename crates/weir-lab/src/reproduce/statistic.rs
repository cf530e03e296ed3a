//! How a published figure is computed from points: a small language of constants.

use weir_model::access::{Dataflow, Locality, Op, Pattern};
use weir_model::counters::Counter;
use weir_model::document::Experiment;
use weir_model::tenant::{Placement, Reads};
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

use crate::curve::Curve;
use crate::grouped::GroupMeans;
use crate::interplay::{REQUESTS, STORAGE_SET};
use crate::{Finished, Load, PointSpec, bandwidth};

/// A point as a rule names it: platform and tier by name, working set by size or by rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The platform expression.
    pub platform: &'static str,
    /// The tier.
    pub tier: &'static str,
    /// The instruction.
    pub op: Op,
    /// The order of lines.
    pub pattern: Pattern,
    /// Threads.
    pub threads: u32,
    /// Bytes of one thread; `None` means enough to leave the caches behind.
    pub working_set: Option<Bytes>,
    /// Whether the hardware prefetchers run.
    pub prefetch: bool,
    /// Lines loaded for so many lines that the instruction touches, in a mix.
    pub reads: Option<(u32, u32)>,
    /// Accesses to see at least; 0 leaves it to the machine.
    pub least_accesses: u64,
    /// What runs beside it.
    pub beside: Option<Neighbour>,
}

/// Threads that stream beside those that a figure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Neighbour {
    /// Their tier.
    pub tier: &'static str,
    /// Their instruction.
    pub op: Op,
    /// How many they are.
    pub threads: u32,
}

impl Wanted {
    /// The point on a machine of this topology.
    ///
    /// # Errors
    /// The machine has no such tier, or too few cores; in words.
    pub fn on(&self, topology: &Topology) -> Result<PointSpec, String> {
        let Self {
            platform,
            tier,
            threads,
            ..
        } = *self;
        let cores = topology.cores.len();
        let all = threads + self.beside.map_or(0, |beside| beside.threads);
        if all as usize > cores {
            return Err(format!(
                "{all} threads wanted, but platform {platform} has {cores} cores"
            ));
        }
        let known = |tier: &str| {
            topology
                .tier(&TierName::named(tier))
                .ok_or_else(|| format!("platform {platform} has no tier {tier}"))
        };
        let tier = known(tier)?;
        let timed = self.pattern.is_timed();
        let experiment = match (timed, self.beside) {
            (_, Some(_)) => Experiment::Interplay,
            (true, None) => Experiment::Latency,
            (false, None) => Experiment::Bandwidth,
        };
        let usual = |tier, op: Op, threads| match op.is_storage() {
            true => STORAGE_SET,
            false => bandwidth::working_set(topology, tier, threads),
        };
        let size = (self.working_set).unwrap_or_else(|| usual(tier, self.op, threads));
        let mut load = Load::new(&tier.name, self.op, self.pattern, threads, size);
        load.reads = self.reads.map(|(lines, per)| Reads {
            lines,
            per,
            from: Placement::Bind(tier.name.clone()),
            dataflow: Dataflow::Apart,
        });
        let spec = PointSpec {
            least_accesses: self.least_accesses,
            ..PointSpec::alone(experiment, load.prefetch(self.prefetch))
        };
        let Some(Neighbour { tier, op, threads }) = self.beside else {
            return Ok(spec);
        };
        let tier = known(tier)?;
        let pattern = match op.is_storage() {
            true => REQUESTS,
            false => Pattern::Sequential,
        };
        let size = usual(tier, op, threads);
        Ok(spec.beside(Load::new(&tier.name, op, pattern, threads, size)))
    }
}

/// Threads that move as many bytes as they can.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// The platform expression.
    pub platform: &'static str,
    /// The tier.
    pub tier: &'static str,
    /// The instruction.
    pub op: Op,
    /// The order of lines.
    pub pattern: Pattern,
    /// Lines loaded for so many lines that the instruction touches, in a mix.
    pub reads: Option<(u32, u32)>,
    /// Whether the hardware prefetchers run.
    pub prefetch: bool,
}

/// Lines of a stream until a slow device has been seen for milliseconds, since its bandwidth sways.
const LINES: u64 = 400_000;

impl Stream {
    /// One instruction line by line, prefetchers on.
    pub const fn new(platform: &'static str, tier: &'static str, op: Op) -> Self {
        Self {
            platform,
            tier,
            op,
            pattern: Pattern::Sequential,
            reads: None,
            prefetch: true,
        }
    }

    /// Requests to a storage device.
    pub const fn requests(platform: &'static str, tier: &'static str, op: Op) -> Self {
        Self {
            pattern: REQUESTS,
            ..Self::new(platform, tier, op)
        }
    }

    /// The same with the prefetchers off.
    pub const fn without_prefetch(self) -> Self {
        Self {
            prefetch: false,
            ..self
        }
    }

    /// The same in blocks at random.
    pub const fn in_blocks(self, block: Bytes) -> Self {
        Self {
            pattern: Pattern::RandomBlock { block },
            ..self
        }
    }

    /// The same with so many lines loaded for so many that the instruction touches.
    pub const fn mixed(self, lines: u32, per: u32) -> Self {
        Self {
            reads: Some((lines, per)),
            ..self
        }
    }

    const fn with(self, threads: u32) -> Wanted {
        let Self {
            platform,
            tier,
            op,
            pattern,
            reads,
            prefetch,
        } = self;
        Wanted {
            platform,
            tier,
            op,
            pattern,
            threads,
            working_set: None,
            prefetch,
            reads,
            // The machine knows how long to look at requests.
            least_accesses: if op.is_storage() { 0 } else { LINES },
            beside: None,
        }
    }
}

/// A stream beside another one of the same platform.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Whose bandwidth it is about.
    pub victim: Stream,
    /// Who runs beside it.
    pub aggressor: Stream,
}

/// Lines of a victim: fewer than alone, for there are many pairs and few of its lines get through.
const LINES_BESIDE: u64 = 40_000;

impl Pair {
    const fn with(self, victim_threads: u32, aggressor_threads: u32) -> Wanted {
        let storage = self.victim.op.is_storage();
        Wanted {
            least_accesses: if storage { 0 } else { LINES_BESIDE },
            beside: Some(Neighbour {
                tier: self.aggressor.tier,
                op: self.aggressor.op,
                threads: aggressor_threads,
            }),
            ..self.victim.with(victim_threads)
        }
    }

    /// The change of the victim's bandwidth in percent.
    fn change(self, threads: (u32, u32), results: &dyn Results) -> Result<f64, String> {
        let solo = gbps(results.point(&self.victim.with(threads.0))?)?;
        let corun = gbps(results.point(&self.with(threads.0, threads.1))?)?;
        Ok((corun / solo - 1.0) * 100.0)
    }
}

/// Every pair of these thread counts.
fn pairs(threads: &'static [u32]) -> impl Iterator<Item = (u32, u32)> {
    (threads.iter()).flat_map(move |&n| threads.iter().map(move |&m| (n, m)))
}

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

fn gbps(done: &Finished) -> Result<f64, String> {
    let figure = done.point.gbps.map(|gbps| gbps.get());
    figure.ok_or_else(|| no_figure(done, "no bandwidth"))
}

fn latency(done: &Finished) -> Result<f64, String> {
    let ns = done.point.ns.ok_or_else(|| no_figure(done, "no latency"))?;
    Ok(ns.mean.get())
}

/// Single accesses that a quantile must have beyond it to mean something.
const LEAST_BEYOND: f64 = 10.0;

fn quantile_of_means(done: &Finished, hops: u32, share: f64) -> Result<f64, String> {
    let singles = &done.record.latency;
    let means = GroupMeans::of(singles, hops).ok_or_else(|| no_figure(done, "no latency"))?;
    let all: u64 = singles.iter().map(|&(_, count)| count).sum();
    // A group is beyond it for one long hop among its own.
    if all as f64 * (1.0 - share) / f64::from(hops) < LEAST_BEYOND {
        return Err(format!("{all} accesses are too few for that quantile"));
    }
    Ok(means.quantile(share).get())
}

fn no_figure(done: &Finished, otherwise: &str) -> String {
    done.point.error.clone().unwrap_or_else(|| otherwise.into())
}

fn tor_residency(done: &Finished) -> Result<f64, String> {
    if let Some(error) = &done.point.error {
        return Err(error.clone());
    }
    let counters = &done.record.counters;
    let missing = |why: weir_model::capability::Unavailable| format!("no residency: {why}");
    let cycles = counters
        .ratio(Counter::TorOccupancyIaMissCxl, Counter::TorInsertsIaMissCxl)
        .map_err(missing)?;
    let ticks = counters.get(Counter::ChaClockticks).map_err(missing)? as f64;
    let time: Nanos = done.record.samples.iter().map(|&(window, _)| window).sum();
    let per_ns = ticks / time.get();
    if per_ns > 0.0 {
        Ok(cycles / per_ns)
    } else {
        Err("the uncore clock did not tick".into())
    }
}

/// Core cycles that a demand load which missed L2 was outstanding.
fn l2_miss(done: &Finished) -> Result<f64, String> {
    let counters = &done.record.counters;
    counters
        .ratio(
            Counter::OffcoreOutstandingDemandDataRd,
            Counter::OffcoreDemandDataRd,
        )
        .map_err(|why| no_figure(done, &format!("no latency of L2 misses: {why}")))
}

/// Requests a second of the first tenant's cores to the last-level cache, in units of 10^9.
fn l3_accesses(done: &Finished) -> Result<f64, String> {
    let victim = done.record.tenants.first();
    let victim = victim.ok_or_else(|| no_figure(done, "no counters of the victim's cores"))?;
    let sent = victim.get(Counter::OffcoreAllRequests);
    let sent = sent.map_err(|why| no_figure(done, &format!("no requests counted: {why}")))?;
    let time: Nanos = done.record.samples.iter().map(|&(window, _)| window).sum();
    match sent {
        0 => Err("the victim's cores sent no request to the last-level cache".into()),
        sent => Ok(sent as f64 / time.get()),
    }
}

/// What went out to CXL memory, in MB/s.
fn cxl_writes(done: &Finished) -> Result<f64, String> {
    let lines = done.record.counters.get(Counter::CxlTxMemData);
    let lines = lines.map_err(|why| no_figure(done, &format!("no lines counted: {why}")))?;
    let time: Nanos = done.record.samples.iter().map(|&(window, _)| window).sum();
    let rate = GbPerSec::from_bytes_in(Bytes(lines * LINE_BYTES), time);
    Ok(rate.get() * 1e3)
}
