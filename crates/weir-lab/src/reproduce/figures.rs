//! Figures that rules are made of: what is read from points, and arithmetic of other figures.

use crate::reproduce::rule::Figure;
use weir_model::access::{Locality, Op, Pattern};
use weir_model::units::Bytes;

use super::points::{self, Stream, gbps, quantile_of_means};
use crate::Finished;
use crate::curve::Curve;

/// What of a curve over threads, and its unit.
pub type Feature = (&'static str, fn(&Curve) -> Option<f64>);

/// The highest figure.
pub const PEAK: Feature = ("GB/s", |curve| Some(curve.peak()?.1));
/// The fewest threads at the peak.
pub const THREADS_AT_PEAK: Feature = ("threads", |curve| curve.knee().map(f64::from));
/// The fewest threads past which more of them gain less than a tenth.
pub const GAINS_LITTLE_PAST: Feature = ("threads", |curve| curve.reaches(0.9).map(f64::from));
/// The threads past which the curve has declined, or the most of them if it has not.
pub const DECLINES_PAST: Feature = ("threads", |curve| {
    let most = || curve.last().map(|(threads, _)| threads);
    curve.declines_past().or_else(most).map(f64::from)
});
/// The mean figure with more than 12 threads.
pub const BEYOND_12: Feature = ("GB/s", |curve| curve.mean_beyond(12));

/// What one reading gives of a stream with this many threads, alone or with an aggressor.
pub fn reading(
    unit: &'static str,
    stream: Stream,
    threads: u32,
    aggressor: Option<(Stream, u32)>,
    read: impl Fn(&Finished) -> Result<f64, String> + Send + Sync + 'static,
) -> Figure {
    Figure::new(unit, move |results| {
        stream.read(threads, aggressor, results, &read)
    })
}

/// Bandwidth of a stream with this many threads, in GB/s.
pub fn bandwidth(stream: Stream, threads: u32) -> Figure {
    reading("GB/s", stream, threads, None, gbps)
}

/// A feature of the curve over those of these thread counts for which there are cores.
pub fn curve(stream: Stream, threads: &'static [u32], (unit, feature): Feature) -> Figure {
    Figure::new(unit, move |results| {
        let cores = results.on(stream.platform.into())?.topology.cores.len();
        let counts = threads.iter().filter(|&&threads| threads as usize <= cores);
        let point = |&threads: &u32| Ok((threads, stream.read(threads, None, results, gbps)?));
        let curve = counts.map(point).collect::<Result<Curve, String>>()?;
        feature(&curve).ok_or_else(|| format!("{cores} cores are too few for it"))
    })
}

/// A pointer chase over 1 GiB of one tier (MEMO Fig 2), within TLB reach, prefetchers off.
pub const fn chase(platform: &'static str, tier: &'static str) -> Stream {
    Stream {
        pattern: Pattern::Chase {
            locality: Locality::TlbFriendly,
        },
        working_set: Some(Bytes::gib(1)),
        least_accesses: 0,
        ..Stream::new(platform, tier, Op::Ld).without_prefetch()
    }
}

/// Mean latency of one thread, in ns.
pub fn latency(stream: Stream) -> Figure {
    reading("ns", stream, 1, None, points::latency)
}

/// Idle latency: that of a chase alone on the machine.
pub fn idle(platform: &'static str, tier: &'static str) -> Figure {
    latency(chase(platform, tier))
}

/// The same over another working set.
pub fn chase_of(platform: &'static str, tier: &'static str, size: Bytes) -> Figure {
    latency(Stream {
        working_set: Some(size),
        ..chase(platform, tier)
    })
}

/// A quantile of means of `hops` dependent hops, from at least `singles`, while this many threads chase
/// pointers in the tier, each its own.
pub fn quantile(
    (platform, tier): (&'static str, &'static str),
    threads: u32,
    singles: u64,
    hops: u32,
    share: f64,
) -> Figure {
    let chase = Stream {
        least_accesses: singles,
        ..chase(platform, tier)
    };
    let read = move |done: &Finished| quantile_of_means(done, hops, share);
    reading("ns", chase, threads, None, read)
}

/// Accesses to flushed lines, prefetchers off: one at a time, or this many at once (`Pattern::FlushedBurst`),
/// their time then over their number.
pub fn flushed(platform: &'static str, tier: &'static str, op: Op, pattern: Pattern) -> Figure {
    latency(Stream {
        op,
        pattern,
        working_set: Some(Bytes::mib(64)),
        ..chase(platform, tier)
    })
}

/// The change in percent of a stream's bandwidth by an aggressor.
pub fn change_pct(stream: Stream, aggressor: Stream, threads: (u32, u32)) -> Figure {
    let (n, m) = threads;
    let together = reading("GB/s", stream, n, Some((aggressor, m)), gbps);
    excess_pct(&together, &bandwidth(stream, n))
}

/// By how many percent a stream's bandwidth falls by an aggressor.
pub fn loss_pct(stream: Stream, aggressor: Stream, threads: (u32, u32)) -> Figure {
    let change = change_pct(stream, aggressor, threads);
    Figure::new("% loss", move |results| Ok(-change.value(results)?))
}

/// How many times as much as alone a reading is with an aggressor.
pub fn factor(
    stream: Stream,
    aggressor: Stream,
    (n, m): (u32, u32),
    read: fn(&Finished) -> Result<f64, String>,
) -> Figure {
    let alone = reading("", stream, n, None, read);
    ratio(&reading("", stream, n, Some((aggressor, m)), read), &alone)
}

fn two(unit: &'static str, first: &Figure, second: &Figure, join: fn(f64, f64) -> f64) -> Figure {
    let (first, second) = (first.clone(), second.clone());
    Figure::new(unit, move |results| {
        Ok(join(first.value(results)?, second.value(results)?))
    })
}

/// The first divided by the second.
pub fn ratio(first: &Figure, second: &Figure) -> Figure {
    two("x", first, second, |a, b| a / b)
}

/// By how many percent the first exceeds the second.
pub fn excess_pct(first: &Figure, second: &Figure) -> Figure {
    two("%", first, second, |a, b| (a / b - 1.0) * 100.0)
}

/// By how many percent the first is less than the second.
pub fn shortfall_pct(first: &Figure, second: &Figure) -> Figure {
    two("%", first, second, |a, b| (1.0 - a / b) * 100.0)
}

/// The first less the second.
pub fn difference(first: &Figure, second: &Figure) -> Figure {
    two(first.unit, first, second, |a, b| a - b)
}

/// A bandwidth in percent of a theoretical one in GB/s.
pub fn efficiency(bandwidth: Figure, of: f64) -> Figure {
    Figure::new("%", move |results| {
        Ok(bandwidth.value(results)? / of * 100.0)
    })
}

fn fold(parts: Vec<Figure>, join: fn(f64, f64) -> f64) -> Figure {
    let unit = parts.first().map_or("", |part| part.unit);
    Figure::new(unit, move |results| {
        let values: Vec<f64> = (parts.iter())
            .map(|part| part.value(results))
            .collect::<Result<_, _>>()?;
        let joined = values.into_iter().reduce(join);
        joined.ok_or_else(|| "made of nothing".to_string())
    })
}

/// The sum of several of one unit.
pub fn sum(parts: Vec<Figure>) -> Figure {
    fold(parts, |a, b| a + b)
}

/// The least of several of one unit.
pub fn least(parts: Vec<Figure>) -> Figure {
    fold(parts, f64::min)
}

/// The greatest of several of one unit.
pub fn greatest(parts: Vec<Figure>) -> Figure {
    fold(parts, f64::max)
}

/// The one of several that is largest in size, whatever its sign.
pub fn extreme(parts: Vec<Figure>) -> Figure {
    fold(parts, |a, b| if b.abs() > a.abs() { b } else { a })
}

/// The abscissa, of a unit, at which the figure is greatest.
pub fn best(unit: &'static str, steps: Vec<(f64, Figure)>) -> Figure {
    Figure::new(unit, move |results| {
        let figures: Vec<(f64, f64)> = (steps.iter())
            .map(|(x, figure)| Ok((*x, figure.value(results)?)))
            .collect::<Result<_, String>>()?;
        let best = figures.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(x, _)| x)
            .ok_or_else(|| "made of nothing".to_string())
    })
}

/// A figure this much above another is clearly above it.
const CLEARLY: f64 = 1.05;

/// The first and the last abscissa, of a unit, at which the first figure is clearly above the second.
pub fn above(unit: &'static str, steps: &[(f64, Figure, Figure)]) -> [Figure; 2] {
    [true, false].map(|is_first| {
        let steps = steps.to_vec();
        Figure::new(unit, move |results| {
            let mut above = Vec::new();
            for (x, first, second) in &steps {
                if first.value(results)? > second.value(results)? * CLEARLY {
                    above.push(*x);
                }
            }
            let end = if is_first {
                above.first()
            } else {
                above.last()
            };
            end.copied()
                .ok_or_else(|| "the first is nowhere clearly above the second".to_string())
        })
    })
}
