//! Which figures not to trust, and which are missing.

use std::collections::BTreeMap;

use weir_model::access::Op;
use weir_model::document::{Point, Steadiness};
use weir_model::topology::Topology;
use weir_model::units::Bytes;

use super::{Severity, Verdict, figure, name};
use crate::plan::caches_in_reach;
use crate::room::TIMES_CACHES;

/// A figure is noisy if its interval's half-width exceeds this share of it.
const NOISY: f64 = 0.05;
/// This many figures are named, and the others counted.
const NAMED: usize = 3;

/// Figures that beat their limit, those of one limit together with the one that beats it most.
pub(crate) fn beats_physics(points: &[Point]) -> Vec<Verdict> {
    let mut by_limit: BTreeMap<&str, Vec<(f64, &Point)>> = BTreeMap::new();
    for point in points {
        if let (Some(theory), Some((value, _))) = (&point.theory, figure(point))
            && theory.beaten
        {
            let beyond = (value / theory.limit).ln().abs();
            by_limit
                .entry(&theory.basis)
                .or_default()
                .push((beyond, point));
        }
    }
    let verdict = |(basis, beaten): (&str, Vec<(f64, &Point)>)| {
        let (_, worst) = beaten.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let (theory, (value, unit)) = (worst.theory.as_ref()?, figure(worst)?);
        let about = match beaten.len() {
            1 => name(worst),
            several => format!("{several} points, the worst {}", name(worst)),
        };
        Some(Verdict::new(
            Severity::Wrong,
            about,
            format!(
                "{value:.1} {unit} is better than the limit of {:.1} {unit} ({basis}): the figure \
                 or the limit is wrong",
                theory.limit
            ),
        ))
    };
    by_limit.into_iter().filter_map(verdict).collect()
}

/// Whether caches that the threads can use may serve a good part of a bandwidth, of which a study chose more memory itself.
/// Loads and stores that pass them by are of the memory.
pub(crate) fn from_caches(point: &Point, topology: &Topology) -> bool {
    let caches = caches_in_reach(topology, point.threads).get();
    let touched = |set: Bytes| set.get().saturating_mul(u64::from(point.threads));
    ["bandwidth", "random", "stream"].contains(&point.experiment.as_str())
        && point.gbps.is_some()
        && !(point.op.is_posted() || point.op == Op::UcLd)
        && (point.wss_bytes).is_some_and(|set| touched(set) < caches.saturating_mul(TIMES_CACHES))
}

/// How many figures are of so little memory.
pub(crate) fn cached(points: &[Point], topology: &Topology) -> Option<Verdict> {
    let cached: Vec<&Point> = (points.iter())
        .filter(|point| from_caches(point, topology))
        .collect();
    Some(Verdict::new(
        Severity::Doubt,
        "caches",
        format!(
            "{} of {} points, the first {}: less memory than twice what the caches hold, so that they serve a part of it or \
             all; take a larger --size, or leave it out",
            cached.len(),
            points.len(),
            name(cached.first()?)
        ),
    ))
}

pub(crate) fn without_figure(points: &[Point]) -> Vec<Verdict> {
    let mut by_reason: BTreeMap<&str, Vec<&Point>> = BTreeMap::new();
    for point in points {
        if let Some(reason) = &point.error {
            by_reason.entry(reason).or_default().push(point);
        }
    }
    let verdict = |(reason, points): (&str, Vec<&Point>)| {
        let first = points.first()?;
        let about = match points.len() {
            1 => name(first),
            several => format!("{several} points, the first {}", name(first)),
        };
        Some(Verdict::new(
            Severity::Doubt,
            about,
            format!("no figure: {reason}"),
        ))
    };
    by_reason.into_iter().filter_map(verdict).collect()
}

pub(crate) fn noisy(points: &[Point]) -> Option<Verdict> {
    let share = |point: &Point| Some(point.ci95? / figure(point)?.0);
    let noisy = points
        .iter()
        .filter_map(|p| Some((share(p)?, p)))
        .filter(|(s, _)| *s > NOISY);
    let noisy: Vec<(f64, &Point)> = noisy.collect();
    let (worst, point) = noisy
        .iter()
        .copied()
        .reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    Some(Verdict::new(
        Severity::Doubt,
        "noise",
        format!(
            "{} of {} points {} known to no better than ±{:.0} %; the worst, {}, to ±{:.0} %",
            noisy.len(),
            points.len(),
            if noisy.len() == 1 { "is" } else { "are" },
            NOISY * 100.0,
            name(point),
            worst * 100.0
        ),
    ))
}

/// Figures whose repetitions do not agree, by name.
pub(crate) fn unsteady(points: &[Point], kind: Steadiness) -> Option<Verdict> {
    let text = match kind {
        Steadiness::Steady => return None,
        Steadiness::Noisy => {
            "their repetitions scatter widely: repeat more often, and keep a real machine quiet"
        }
        Steadiness::Bimodal => {
            "their repetitions gather around two values, and the mean is neither: look at the \
             samples"
        }
        Steadiness::Drifting => {
            "later repetitions lie beyond earlier ones: a real machine changed meanwhile, and on a model \
             it is chance: repeat more often"
        }
    };
    let word = match kind {
        Steadiness::Steady => "steady",
        Steadiness::Noisy => "noisy",
        Steadiness::Bimodal => "bimodal",
        Steadiness::Drifting => "drifting",
    };
    let such: Vec<&Point> = (points.iter())
        .filter(|p| p.steadiness == Some(kind))
        .collect();
    let mut names: Vec<String> = such.iter().take(NAMED).map(|p| name(p)).collect();
    if such.len() > NAMED {
        names.push(format!("{} more", such.len() - NAMED));
    }
    (!such.is_empty()).then(|| {
        let judged = points.iter().filter(|p| p.steadiness.is_some()).count();
        Verdict::new(
            Severity::Doubt,
            word,
            format!(
                "{} of {judged} figures ({}): {text}",
                such.len(),
                names.join("; ")
            ),
        )
    })
}
