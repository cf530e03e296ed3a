//! Tails: how far the slowest requests lie from the usual ones, and what company does to that.

use weir_model::access::Op;
use weir_model::document::{Experiment, Point, TailScore};
use weir_model::topology::TierName;
use weir_model::units::Nanos;

use super::{Severity, Verdict};

/// A tail grows if its gap exceeds the one alone by more than this factor.
const GROWN: f64 = 1.5;

/// How bad the tail of each tier is: of every tier whose requests were timed alone.
pub fn tail_scores(points: &[Point]) -> Vec<TailScore> {
    let mut tiers: Vec<&TierName> = Vec::new();
    for point in points.iter().filter(|p| p.experiment == Experiment::Tail) {
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
        .filter(|p| p.experiment == Experiment::Tail && p.tier == *tier)
        .collect()
}

/// The gap between p99.9 and p50, alone and in the company that widens it most; and against DRAM's.
pub(super) fn tails(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let score = score(points, tier)?;
    let alone = score.alone_ns;
    let mut text = format!("p99.9 lies {:.0} ns above p50 when alone", alone.get());
    let dram = TierName::dram();
    if *tier != dram
        && let Some(near) = self::score(points, &dram).filter(|near| near.alone_ns.get() > 0.0)
    {
        text += &format!(" ({:.1}x that of dram)", alone / near.alone_ns);
    }
    let own = of(points, tier);
    let co_runners = own.iter().filter(|p| !is_alone(p));
    let worst = co_runners
        .filter_map(|p| Some((gap(p)?, *p)))
        .max_by(|a, b| a.0.get().total_cmp(&b.0.get()));
    if let Some((wide, point)) = worst {
        text += &if wide > alone * GROWN {
            format!(
                ", and {:.0} ns beside {}: the tail grows with load",
                wide.get(),
                beside(point)
            )
        } else {
            format!(
                ", and {:.0} ns at the most beside others: the tail does not grow with load",
                wide.get()
            )
        };
    }
    text += &format!("; its score is {:.2}", score.score);
    Some(Verdict::new(Severity::Note, format!("{tier} tail"), text))
}

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
