//! Constants from micro-workloads that ran on both memories (SupMario §5.6).
//!
//! Each constant comes from the workloads that have no other component: `p`, `q` and `k1` from random
//! chases, whose slowdown is all DRAM's, with one chain or several at once; `k3` from stores to fresh
//! memory; `k2` from lists that prefetchers feed. Where several workloads of a kind are given, least
//! squares through the origin takes the place of the paper's quotient. The paper does not say how it
//! finds `p` and `q`; its authors' later artefact (CAMP) solves `1 / K = p / AOL + q` on two workloads.
//! The constants of the components by exposed cycles come from the same chases and lists.

use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::{
    Constants, Exposed, FitPoint, Late, Line, Micro, PrefetchForm, Rejected,
};
use weir_model::units::Cycles;

use super::exposed::{self, Misses};
use super::late::{self, Lost, Waits};
use super::metrics::lacking;
use super::{Metrics, rejected};
use crate::breakdown::Difference;
use crate::{InsightError, Run, least_squares};

/// A workload that ran on both memories.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Its name.
    pub name: String,
    /// Which of the micro-workloads it is.
    pub micro: Micro,
    /// Counted on local memory.
    pub local: CounterSet,
    /// Counted on the other.
    pub target: CounterSet,
}

/// What a calibration finds.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The constants of the published model.
    pub constants: Constants,
    /// Those of the DRAM component by exposed cycles; `None` where its counters are missing, or chases
    /// do not tell.
    pub exposed: Option<Exposed>,
    /// Those of the cache component by exposed cycles; `None` where its counters are missing, or lists do
    /// not tell.
    pub late: Option<Late>,
    /// How well they give back what they were fitted on.
    pub fitted_on: Vec<FitPoint>,
    /// The least and the greatest amortised offcore latency among the chases.
    pub aol_range: [Cycles; 2],
    /// Offcore latency of a lone chase on local memory.
    pub unloaded: Cycles,
    /// The rejected predictors, fitted on the same workloads.
    pub rejected: Vec<Line>,
    /// What to know of the fit.
    pub notes: Vec<String>,
}

/// A pair with what the fit reads from it.
struct PairMetrics<'a> {
    pair: &'a Pair,
    local: Run<'a>,
    metrics: Metrics,
    misses: Result<Misses, Vec<(Counter, String)>>,
    waits: Result<Waits, Vec<(Counter, String)>>,
    slowdown: f64,
    /// Slowdown by stores, caches and DRAM.
    parts: [f64; 3],
}

impl<'a> PairMetrics<'a> {
    fn of(pair: &'a Pair, form: PrefetchForm) -> Result<Self, InsightError> {
        let (local, target) = (Run::of(&pair.local)?, Run::of(&pair.target)?);
        let difference = Difference::between(&local, &target)?;
        let added = difference.added;
        let parts = (added.store, added.cache, added.dram);
        let (Some(store), Some(cache), Some(dram)) = parts else {
            return Err(InsightError::Missing {
                what: format!("the slowdown of `{}` by cause", pair.name),
                counters: (difference.untold.into_iter())
                    .map(|untold| (untold.counter, untold.why))
                    .collect(),
            });
        };
        Ok(Self {
            metrics: Metrics::of(&local, form)?,
            misses: Misses::of(&local),
            waits: Waits::of(&local, form),
            pair,
            local,
            slowdown: difference.slowdown,
            parts: [store, cache, dram],
        })
    }
}

/// Finds the constants of a pair of processor and memory.
///
/// # Errors
/// A kind of micro-workload is missing, shows nothing of its component, or its counters are incomplete.
pub fn calibrate(pairs: &[Pair], form: PrefetchForm) -> Result<Calibration, InsightError> {
    let seen: Vec<PairMetrics<'_>> = (pairs.iter())
        .map(|pair| PairMetrics::of(pair, form))
        .collect::<Result<_, _>>()?;
    let mut notes = Vec::new();
    let chases = of_kind(&seen, Micro::Chase)?;
    let (p, q) = overlap(&chases, &mut notes)?;
    let mut constants = Constants {
        k1: 1.0,
        k2: 0.0,
        k3: 0.0,
        k4: 0.0,
        p,
        q,
    };
    constants.k1 = through_origin(&chases, |s| (s.metrics.dram(&constants), s.slowdown))
        .ok_or_else(|| nothing(Micro::Chase, "never waited for memory"))?;
    constants.k3 = through_origin(&of_kind(&seen, Micro::Store)?, |s| {
        (s.metrics.store, s.parts[0])
    })
    .ok_or_else(|| nothing(Micro::Store, "never filled the store buffer"))?;
    let lists = of_kind(&seen, Micro::List)?;
    constants.k2 = through_origin(&lists, |s| (s.metrics.cache, s.parts[1]))
        .ok_or_else(|| nothing(Micro::List, "lost no cycle to late prefetches"))?;
    if seen.iter().any(|s| s.pair.micro == Micro::Mixed) {
        constants = all_at_once(&seen, constants, &mut notes);
    }
    let exposed = exposed_of(&chases, &mut notes);
    let late = exposed.and_then(|_| late_of(&lists, &mut notes));
    let aols = || chases.iter().filter_map(|s| s.metrics.aol);
    let least = aols().reduce(Cycles::min).unwrap_or_default();
    let greatest = aols().reduce(Cycles::max).unwrap_or_default();
    Ok(Calibration {
        fitted_on: (seen.iter())
            .map(|s| fit_point(s, &constants, exposed.as_ref(), late.as_ref()))
            .collect(),
        exposed,
        late,
        aol_range: [least, greatest],
        unloaded: unloaded(&chases),
        rejected: (Rejected::ALL.into_iter())
            .filter_map(|of| rejected::fit(of, seen.iter().map(|s| (&s.local, s.slowdown))))
            .collect(),
        constants,
        notes,
    })
}

fn of_kind<'s, 'a>(
    seen: &'s [PairMetrics<'a>],
    micro: Micro,
) -> Result<Vec<&'s PairMetrics<'a>>, InsightError> {
    let all: Vec<&PairMetrics<'a>> = seen.iter().filter(|s| s.pair.micro == micro).collect();
    if all.is_empty() {
        let why = format!("no micro-workload of kind `{micro}` was run");
        return Err(InsightError::Calibration(why));
    }
    Ok(all)
}

fn nothing(micro: Micro, why: &str) -> InsightError {
    InsightError::Calibration(format!("the micro-workload `{micro}` {why}"))
}

/// `p` and `q` from chases of one chain and several: a line through 1 / K over 1 / AOL. Each point counts
/// as much as an error of its 1 / K shows in the slowdown.
fn overlap(
    chases: &[&PairMetrics<'_>],
    notes: &mut Vec<String>,
) -> Result<(Cycles, f64), InsightError> {
    let points: Vec<(f64, f64, f64)> = (chases.iter())
        .filter_map(|s| {
            let [_, _, dram] = s.parts;
            let aol = s.metrics.aol?.get();
            let k = dram / s.metrics.miss_stalls;
            (k.is_finite() && k > 0.0).then_some((1.0 / aol, 1.0 / k, dram * k))
        })
        .collect();
    if points.is_empty() {
        return Err(nothing(Micro::Chase, "is not slower on the other memory"));
    }
    let line = || {
        let (rows, wanted): (Vec<[f64; 2]>, Vec<f64>) = (points.iter())
            .map(|&(x, y, weight)| ([x * weight, weight], y * weight))
            .unzip();
        least_squares::solve(&rows, &wanted)
    };
    let level = || {
        let weights: f64 = points.iter().map(|(_, _, w)| w * w).sum();
        points.iter().map(|(_, y, w)| y * w * w).sum::<f64>() / weights
    };
    Ok(match line() {
        Some([p, q]) if p >= 0.0 && q > 0.0 => (Cycles(p), q),
        Some(_) => {
            notes.push("overlapping misses lose no less than lone ones here: p is zero".into());
            (Cycles(0.0), level())
        }
        None => {
            notes.push("all chases overlap alike, and p is taken as zero".into());
            (Cycles(0.0), level())
        }
    })
}

/// The factor that brings one quantity closest to another; `None` if the first is nowhere above zero.
fn through_origin(
    seen: &[&PairMetrics<'_>],
    of: impl Fn(&PairMetrics<'_>) -> (f64, f64),
) -> Option<f64> {
    let (rows, wanted): (Vec<[f64; 1]>, Vec<f64>) = (seen.iter())
        .map(|s| {
            let (x, y) = of(s);
            ([x], y)
        })
        .unzip();
    let [factor] = least_squares::solve(&rows, &wanted)?;
    Some(factor)
}

/// The linear fit over every workload, which the paper makes with mixed ones; it is what gives `k4`.
fn all_at_once(seen: &[PairMetrics<'_>], found: Constants, notes: &mut Vec<String>) -> Constants {
    let (rows, wanted): (Vec<[f64; 4]>, Vec<f64>) = (seen.iter())
        .map(|s| {
            let metrics = [
                s.metrics.dram(&found),
                s.metrics.cache,
                s.metrics.store,
                1.0,
            ];
            (metrics, s.slowdown)
        })
        .unzip();
    match least_squares::solve(&rows, &wanted) {
        Some([k1, k2, k3, k4]) if k1 > 0.0 && k2 >= 0.0 && k3 >= 0.0 => Constants {
            k1,
            k2,
            k3,
            k4,
            ..found
        },
        _ => {
            notes.push(
                "the mixed workloads do not determine all constants; those of the three kinds stand"
                    .into(),
            );
            found
        }
    }
}

/// The component by exposed cycles, if every chase has the counters for it.
fn exposed_of(chases: &[&PairMetrics<'_>], notes: &mut Vec<String>) -> Option<Exposed> {
    let counted = |s: &&PairMetrics<'_>| {
        let [_, _, dram] = s.parts;
        s.misses.clone().map(|misses| (misses, dram))
    };
    let found = match chases.iter().map(counted).collect::<Result<Vec<_>, _>>() {
        Ok(chases) => {
            exposed::fit(&chases).ok_or_else(|| "the chases do not tell its constants".into())
        }
        Err(missing) => Err(lacking(&missing)),
    };
    found
        .map_err(|why| notes.push(format!("the DRAM component is the published one: {why}")))
        .ok()
}

/// The cache component by exposed cycles, if every list has the counters for it.
fn late_of(lists: &[&PairMetrics<'_>], notes: &mut Vec<String>) -> Option<Late> {
    let counted = |s: &&PairMetrics<'_>| {
        let [_, cache, dram] = s.parts;
        s.waits.clone().map(|waits| (waits, Lost { cache, dram }))
    };
    let found = match lists.iter().map(counted).collect::<Result<Vec<_>, _>>() {
        Ok(lists) => late::fit(&lists).ok_or_else(|| "the lists do not tell its constants".into()),
        Err(missing) => Err(lacking(&missing)),
    };
    found
        .map_err(|why| notes.push(format!("the cache component is the published one: {why}")))
        .ok()
}

fn fit_point(
    seen: &PairMetrics<'_>,
    constants: &Constants,
    exposed: Option<&Exposed>,
    late: Option<&Late>,
) -> FitPoint {
    let [store, cache, dram] = super::metrics::parts(&seen.metrics, constants);
    let dram = match (exposed, &seen.misses) {
        (Some(constants), Ok(misses)) => misses.lost(constants),
        _ => dram,
    };
    let cache = match (late, &seen.waits) {
        (Some(constants), Ok(waits)) => waits.lost(constants, dram),
        _ => cache,
    };
    FitPoint {
        name: seen.pair.name.clone(),
        micro: seen.pair.micro,
        slowdown_pct: seen.slowdown * 100.0,
        fitted_pct: (store + cache + dram + constants.k4) * 100.0,
        aol: seen.metrics.aol,
    }
}

/// The latency of the chase that overlaps least.
fn unloaded(chases: &[&PairMetrics<'_>]) -> Cycles {
    let lone = chases.iter().max_by(|a, b| {
        let aol = |s: &PairMetrics<'_>| s.metrics.aol.unwrap_or_default().get();
        aol(a).total_cmp(&aol(b))
    });
    let latency = lone.and_then(|s| s.local.miss_latency().ok().flatten());
    latency
        .or(lone.and_then(|s| s.metrics.aol))
        .unwrap_or_default()
}
