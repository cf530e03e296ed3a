//! Latency distributions, to their far end.

use weir_model::access::Op;
use weir_model::document::Point;
use weir_model::latency::LatencySummary;
use weir_model::topology::TierName;
use weir_model::units::Nanos;

use super::words::{distinct, remarks, sign};
use crate::output::figure;
use crate::render::chart::Drawn;
use crate::report::Section;
use crate::report::chart::{LineChart, Look, Sample, Series, Spread, quantile_name};

/// A curve is drawn as far as this many accesses lie beyond.
const LEAST_BEYOND: f64 = 10.0;
/// Steps that are shorter than this part of the curve in both directions are not drawn apart.
const FINENESS: f64 = 1.0 / 120.0;

/// What runs with the requests that are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CoRunners {
    Chasers,
    Readers,
    Writers,
}

impl CoRunners {
    /// `None` where nothing does. Chasers are timed too: they are threads of the same load.
    fn of(point: &Point) -> Option<Self> {
        match &point.beside {
            None => (point.threads > 1).then_some(CoRunners::Chasers),
            Some(beside) if beside.op == Op::Ld => Some(CoRunners::Readers),
            Some(_) => Some(CoRunners::Writers),
        }
    }

    fn name(self) -> &'static str {
        match self {
            CoRunners::Chasers => "chasers",
            CoRunners::Readers => "readers",
            CoRunners::Writers => "writers",
        }
    }
}

/// How many of them run.
fn count(point: &Point) -> u32 {
    match &point.beside {
        Some(beside) => beside.threads,
        None => point.threads.saturating_sub(1),
    }
}

/// A chart for each tier and kind of company, a curve for each number.
pub fn tails(section: &Section) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    for tier in super::tiers(section) {
        for co_runners in [CoRunners::Chasers, CoRunners::Readers, CoRunners::Writers] {
            let wanted = |p: &Point| {
                let with = CoRunners::of(p);
                let of_tier = p.experiment == "tail" && p.tier == *tier;
                of_tier && (with.is_none() || with == Some(co_runners))
            };
            let mut points: Vec<(usize, &Point)> =
                section.numbered().filter(|(_, p)| wanted(p)).collect();
            if points.iter().all(|(_, p)| CoRunners::of(p).is_none()) {
                continue;
            }
            points.sort_by_key(|(_, p)| count(p));
            let counts = distinct(points.iter().map(|(_, p)| count(p)));
            let series = points.iter().filter_map(|&(at, point)| {
                let name = match count(point) {
                    0 => "alone".into(),
                    _ => format!(
                        "{} {}",
                        point.case.as_deref().unwrap_or("?"),
                        beside_where(point, tier)
                    ),
                };
                let colour = counts.iter().position(|n| *n == count(point));
                let look = Look::solid(colour.unwrap_or(0));
                curve(name.trim_end().into(), look, point, section.latency(at))
            });
            let series: Vec<Series> = series.collect();
            if !series.is_empty() {
                let name = format!("Tail of {tier} with {}", co_runners.name());
                let label = format!("{name} on {}", section.machine());
                drawn.push(Drawn::new(
                    name,
                    chart(label, "latency of a request", series),
                ));
            }
        }
    }
    drawn
}

/// Where the company is, if elsewhere.
fn beside_where(point: &Point, tier: &TierName) -> String {
    match &point.beside {
        Some(beside) if beside.tier != *tier => format!("on {}", beside.tier),
        _ => String::new(),
    }
}

/// A chart of distributions.
pub(super) fn chart(label: String, of: &str, series: Vec<Series>) -> LineChart {
    LineChart {
        label,
        x_title: format!("{of} [ns]"),
        x: Spread::Log,
        x_reach: Vec::new(),
        y_title: "share of requests that are no slower".into(),
        y: Spread::Tail,
        y_reach: Vec::new(),
        series,
        walls: Vec::new(),
        limits: Vec::new(),
    }
}

/// The distribution of a point: the way from what was recorded, the marks from the summary.
pub(super) fn curve(
    name: String,
    look: Look,
    point: &Point,
    recorded: &[(Nanos, u64)],
) -> Option<Series> {
    let ns = point.ns?;
    let samples = quantiles(&ns)
        .map(|(beyond, latency)| Sample {
            x: latency.get(),
            y: beyond,
            ci95: None,
            sign: if beyond == 0.5 { sign(point) } else { None },
            tip: format!(
                "{name}\n{}: {} ns\nmean {} ns of {} samples{}",
                quantile_name(beyond),
                figure(latency.get()),
                figure(ns.mean.get()),
                ns.samples,
                remarks(point, "ns")
            ),
        })
        .collect();
    Some(Series {
        samples,
        outline: outline(recorded),
        name,
        look,
    })
}

/// The quantiles of a summary, by the share beyond them.
fn quantiles(ns: &LatencySummary) -> impl Iterator<Item = (f64, Nanos)> {
    let all = [
        (0.5, Some(ns.p50)),
        (0.1, ns.p90),
        (1e-2, ns.p99),
        (1e-3, ns.p999),
        (1e-4, ns.p9999),
        (1e-5, ns.p99999),
    ];
    all.into_iter()
        .filter_map(|(beyond, ns)| Some((beyond, ns?)))
}

/// Steps through a recorded distribution: latency, and the share of accesses that are slower. Empty
/// where nothing was recorded.
fn outline(recorded: &[(Nanos, u64)]) -> Vec<(f64, f64)> {
    let total: f64 = recorded.iter().map(|&(_, n)| n as f64).sum();
    let (Some(first), Some(last)) = (recorded.first(), recorded.last()) else {
        return Vec::new();
    };
    let least = LEAST_BEYOND / total;
    let reach = |from: f64, to: f64| (to / from).ln().abs().max(f64::MIN_POSITIVE);
    let width = reach(first.0.get().max(1e-3), last.0.get().max(1e-3));
    let height = reach(1.0, least.min(0.1));
    let mut way = vec![(first.0.get(), 1.0)];
    let (mut at, mut beyond) = (first.0.get(), 1.0);
    let mut seen = 0.0;
    for &(latency, count) in recorded {
        seen += count as f64;
        let next = (1.0 - seen / total).max(0.0);
        let end = next < least;
        let far = reach(at, latency.get()) > width * FINENESS
            || (next > 0.0 && reach(beyond, next) > height * FINENESS);
        if end || far {
            // What is beyond the last accesses that count is not known to be there.
            let next = next.max(least.min(beyond));
            way.extend([(latency.get(), beyond), (latency.get(), next)]);
            (at, beyond) = (latency.get(), next);
        }
        if end {
            break;
        }
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_outline_only_climbs_and_is_short(
            mut recorded in proptest::collection::vec((1u32..100_000, 1u64..1000), 1..3000),
        ) {
            recorded.sort_unstable();
            let recorded: Vec<(Nanos, u64)> = recorded
                .into_iter()
                .map(|(tenths, n)| (Nanos(f64::from(tenths) / 10.0), n))
                .collect();
            let way = outline(&recorded);
            prop_assert!(way.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 >= w[1].1));
            prop_assert!(way.iter().all(|p| p.1 > 0.0 && p.1 <= 1.0));
            prop_assert!(way.len() <= 2 + 2 * 2 * 130, "{}", way.len());
        }

        #[test]
        fn an_outline_is_true_where_it_turns(
            counts in proptest::collection::vec(1u64..1000, 1..50),
        ) {
            let recorded: Vec<(Nanos, u64)> =
                counts.iter().enumerate().map(|(i, &n)| (Nanos((i + 1) as f64), n)).collect();
            let total: u64 = counts.iter().sum();
            let slower = |than: f64| -> f64 {
                let beyond = recorded.iter().filter(|(ns, _)| ns.get() > than);
                beyond.map(|(_, n)| *n).sum::<u64>() as f64 / total as f64
            };
            let way = outline(&recorded);
            for pair in way.windows(2) {
                // Upright: the share falls to what is slower. Level: it stays until then.
                prop_assert!(pair[0].0 == pair[1].0 || pair[0].1 == pair[1].1);
                if pair[0].1 > pair[1].1 && pair[1].1 > LEAST_BEYOND / total as f64 {
                    prop_assert!((pair[1].1 - slower(pair[1].0)).abs() < 1e-9);
                }
            }
        }
    }
}
