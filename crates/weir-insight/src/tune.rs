//! Interleavings of a workload, tried on a machine.

use weir_lab::{WorkloadOptions, WorkloadRun, run_workload, side_by_side};
use weir_model::insight::{Bound, InterleaveFit};
use weir_model::machine::{MachineError, Testbed};
use weir_model::tenant::Placement;
use weir_model::units::{Cycles, Nanos};
use weir_model::workload::Workload;

use crate::bound::classify;
use crate::breakdown::Breakdown;
use crate::campaign::{CampaignError, GoOn, Tiers, lone_chase};
use crate::interleave::Weights;
use crate::interleave::best_shot::{self, Latencies, Swept, pressure};
use crate::interleave::caption::{Caption, Settings, State};
use crate::interleave::closed_form::Class;
use crate::{InsightError, Run, micro};

/// Pages of a round of weights, at most: shares come in steps of a twentieth.
pub const ROUND: u32 = 20;

/// Runs a workload with its pages spread by weights.
///
/// # Errors
/// The machine refuses.
pub fn run_at(
    testbed: &dyn Testbed,
    workload: &Workload,
    tiers: &Tiers,
    weights: Weights,
    options: &WorkloadOptions,
) -> Result<WorkloadRun, MachineError> {
    let placement = match (weights.local, weights.slow) {
        (_, 0) => Placement::Bind(tiers.from.clone()),
        (0, _) => Placement::Bind(tiers.to.clone()),
        (local, slow) => {
            Placement::Interleave(vec![(tiers.from.clone(), local), (tiers.to.clone(), slow)])
        }
    };
    run_workload(testbed, workload, &placement, options)
}

/// The change of run time against another run of the same work, as a share of that: above zero is slower.
pub fn change(base: &WorkloadRun, run: &WorkloadRun) -> f64 {
    run.time / base.time - 1.0
}

/// Runs a workload at every share of a list, side by side where the testbed allows it.
pub fn sweep(
    testbed: &dyn Testbed,
    workload: &Workload,
    tiers: &Tiers,
    weights: &[Weights],
    options: &WorkloadOptions,
    go_on: GoOn<'_>,
) -> Vec<Result<(Weights, WorkloadRun), MachineError>> {
    side_by_side(testbed.parallelism(), weights.len(), &|index| {
        let weights_here = *weights.get(index)?;
        go_on(weights.len()).then(|| {
            let run = run_at(testbed, workload, tiers, weights_here, options)?;
            Ok((weights_here, run))
        })
    })
}

/// Every share from none to all, in so many steps.
pub fn shares(steps: u32) -> Vec<Weights> {
    (0..=steps)
        .map(|slow| Weights {
            local: steps - slow,
            slow,
        })
        .collect()
}

/// The classes of the closed form from a run on either tier alone, and from what a lone chase takes on
/// each.
///
/// # Errors
/// Counters are missing.
pub fn classes(
    local: &WorkloadRun,
    slow: &WorkloadRun,
    unloaded: [Cycles; 2],
) -> Result<[Class; 3], InsightError> {
    let [here, there] = [Run::of(&local.counters)?, Run::of(&slow.counters)?];
    let lacking = |(counter, why)| InsightError::Missing {
        what: "the closed form of interleaving".into(),
        counters: vec![(counter, why)],
    };
    let latencies = [&here, &there].map(|run| Latencies::of(run).map_err(lacking));
    let [near, far] = latencies;
    let (near, far) = (near?, far?);
    let worth = there.cycles() / here.cycles();
    let lost = [&here, &there].map(|run| Breakdown::of(run).lost);
    let class = |of: fn(&crate::breakdown::Lost) -> Option<f64>,
                 latency: fn(&Latencies) -> Cycles| {
        let [l, s] = [of(&lost[0])?, of(&lost[1])?];
        let times = |latency: Cycles, unloaded: Cycles| {
            if unloaded.get() > 0.0 {
                (latency / unloaded).max(1.0)
            } else {
                1.0
            }
        };
        Some(Class {
            local_stalls: l,
            slow_stalls: s * worth,
            local_queueing: times(latency(&near), unloaded[0]),
            slow_queueing: times(latency(&far), unloaded[1]),
        })
    };
    let all = [
        class(|l| l.dram, |l| l.reads),
        class(|l| l.cache, |l| l.prefetches),
        class(|l| l.store, |l| l.stores),
    ];
    let [Some(dram), Some(cache), Some(store)] = all else {
        return Err(InsightError::Interleave(
            "stalls by level were not counted".into(),
        ));
    };
    Ok([dram, cache, store])
}

/// Caption on a workload that runs again and again: the weights that it tried, in order, with the change
/// of run time against all local. It ends when it has settled.
///
/// # Errors
/// The machine refuses.
pub fn climb(
    testbed: &dyn Testbed,
    workload: &Workload,
    tiers: &Tiers,
    base: &WorkloadRun,
    options: &WorkloadOptions,
    go_on: GoOn<'_>,
) -> Result<Vec<(Weights, f64)>, MachineError> {
    climb_by(base.time, go_on, |weights| {
        Ok(run_at(testbed, workload, tiers, weights, options)?.time)
    })
}

/// The same of anything that takes some time at some weights; `base` is its time all local.
///
/// # Errors
/// As running it has them.
pub fn climb_by<E>(
    base: Nanos,
    go_on: GoOn<'_>,
    mut time_at: impl FnMut(Weights) -> Result<Nanos, E>,
) -> Result<Vec<(Weights, f64)>, E> {
    let mut caption = Caption::new(Settings::default());
    let mut tried: Vec<(Weights, f64)> = Vec::new();
    for _ in 0..MOST_TUNINGS {
        if !go_on(MOST_TUNINGS) {
            break;
        }
        let weights = caption.weights();
        let time = time_at(weights)?;
        tried.push((weights, time / base - 1.0));
        let state = State {
            mean: base / time,
            noise: 0.0,
        };
        let next = caption.tune(state, true);
        if caption.is_settled() && tried.iter().any(|(w, _)| *w == next) {
            break;
        }
    }
    Ok(tried)
}

/// The tunings that published climbs took at most (SupMario §8 of Caption).
const MOST_TUNINGS: usize = 10;

/// Fits best-shot on streaming kernels that press on local memory more and less: each is swept, and its
/// best share and gain are set beside its pressure.
///
/// # Errors
/// The machine refuses, or the kernels press alike.
pub fn fit_interleave(
    testbed: &dyn Testbed,
    tiers: &Tiers,
    cores: u32,
    options: &WorkloadOptions,
    go_on: GoOn<'_>,
) -> Result<InterleaveFit, CampaignError> {
    let mut swept = Vec::new();
    let shares: Vec<Weights> = shares(ROUND)
        .into_iter()
        .take(ROUND as usize / 2 + 3)
        .collect();
    let unloaded = lone_chase(testbed, &tiers.from, options)?;
    for kernel in micro::streams(cores) {
        let runs: Vec<(Weights, WorkloadRun)> =
            sweep(testbed, &kernel, tiers, &shares, options, go_on)
                .into_iter()
                .collect::<Result<_, MachineError>>()?;
        let Some((_, local)) = runs.first().filter(|_| runs.len() == shares.len()) else {
            return Err(CampaignError::Stopped);
        };
        let counted = Run::of(&local.counters)?;
        if classify(&counted, Some(unloaded)).bound != Some(Bound::Bandwidth) {
            // Best-shot is not asked about these.
            continue;
        }
        let best = runs
            .iter()
            .min_by(|a, b| a.1.time.get().total_cmp(&b.1.time.get()));
        let Some((weights, fastest)) = best else {
            continue;
        };
        swept.push(Swept {
            pressure: pressure(&counted)?,
            share: weights.share(),
            gain: local.time / fastest.time - 1.0,
        });
    }
    Ok(best_shot::fit(&swept)?)
}
