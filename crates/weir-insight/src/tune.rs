//! Interleavings of a workload, tried on a machine.

use weir_lab::{Lab, LabError, Placed, WorkloadOptions, WorkloadRun};
use weir_model::insight::{Bound, Capacity, InterleaveFit};
use weir_model::tenant::Placement;
use weir_model::units::Cycles;
use weir_model::workload::Workload;

use crate::bound::classify;
use crate::breakdown::Breakdown;
use crate::interleave::Weights;
use crate::interleave::best_shot::{Load, aim};
use crate::interleave::caption::{Caption, Settings, State};
use crate::interleave::closed_form::Class;
use crate::interleave::kernels::{self, Swept};
use crate::interleave::latency::Latencies;
use crate::two_tiers::{Tiers, unloaded};
use crate::{InsightError, Run, micro};

/// Pages of a round of weights, at most: shares come in steps of a twentieth.
pub const ROUND: u32 = 20;

/// Runs a workload at every share of a list, side by side where the machine allows it.
///
/// # Errors
/// The machine refuses, or the user stopped it.
pub fn sweep(
    lab: &Lab<'_>,
    workload: &Workload,
    tiers: &Tiers,
    weights: &[Weights],
    options: &WorkloadOptions,
) -> Result<Vec<WorkloadRun>, LabError> {
    let spread = |weights: &Weights| Placed {
        placement: match (weights.local, weights.slow) {
            (_, 0) => Placement::Bind(tiers.from.clone()),
            (0, _) => Placement::Bind(tiers.to.clone()),
            (local, slow) => {
                Placement::Interleave(vec![(tiers.from.clone(), local), (tiers.to.clone(), slow)])
            }
        },
        ..Placed::local(workload, options)
    };
    lab.ask_all(&weights.iter().map(spread).collect::<Vec<_>>())
}

/// Runs a workload with its pages spread by weights.
///
/// # Errors
/// As [`sweep`].
pub fn run_at(
    lab: &Lab<'_>,
    workload: &Workload,
    tiers: &Tiers,
    weights: Weights,
    options: &WorkloadOptions,
) -> Result<WorkloadRun, LabError> {
    let runs = sweep(lab, workload, tiers, &[weights], options)?;
    runs.into_iter().next().ok_or(LabError::Stopped)
}

/// The change of run time against another run of the same work, as a share of that: above zero is slower.
pub fn change(base: &WorkloadRun, run: &WorkloadRun) -> f64 {
    run.time / base.time - 1.0
}

/// Every share from none to all, in this many steps.
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
    let class = |of: fn(&weir_model::insight::Stalls) -> Option<f64>,
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

/// A climb of Caption's tuner.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Climb {
    /// The weights that it tried, in order, with the figure there: the greater, the better.
    pub tried: Vec<(Weights, f64)>,
    /// The weights that new pages would be placed by from then on.
    pub next: Weights,
}

impl Climb {
    /// Where it stays, with the figure there: what it turns back to after one step too many, or the last
    /// that it tried where it had not settled. `None` where nothing was tried.
    pub fn settled(&self) -> Option<(Weights, f64)> {
        let tried = || self.tried.iter().rev();
        let turned_back = tried().find(|(weights, _)| *weights == self.next);
        turned_back.or(tried().next()).copied()
    }
}

/// Caption by any figure that is known exactly, the greater the better. It ends when it has settled.
///
/// # Errors
/// As finding the figure has them.
pub fn climb_by<E>(
    settings: Settings,
    go_on: &dyn Fn(usize) -> bool,
    mut figure_at: impl FnMut(Weights) -> Result<f64, E>,
) -> Result<Climb, E> {
    let mut caption = Caption::new(settings);
    let mut tried: Vec<(Weights, f64)> = Vec::new();
    for _ in 0..MOST_TUNINGS {
        if !go_on(MOST_TUNINGS) {
            break;
        }
        let weights = caption.weights();
        let mean = figure_at(weights)?;
        tried.push((weights, mean));
        let next = caption.tune(State { mean, noise: 0.0 }, true);
        if caption.is_settled() && tried.iter().any(|(w, _)| *w == next) {
            break;
        }
    }
    Ok(Climb {
        tried,
        next: caption.weights(),
    })
}

/// The tunings that published climbs took at most (SupMario §8 of Caption).
const MOST_TUNINGS: usize = 10;

/// Calibrates best-shot on streaming kernels that press on local memory more and less: each is swept, and
/// what it gains at the share that it would be advised gives the error. Kernels that no prefetcher follows
/// run at both ends alone, and tell what the slower tier gives at least.
///
/// # Errors
/// The machine refuses, or too few kernels wait for bandwidth.
pub fn fit_interleave(
    lab: &Lab<'_>,
    tiers: &Tiers,
    options: &WorkloadOptions,
) -> Result<InterleaveFit, LabError> {
    let cores = lab.topology().cores.len() as u32;
    let unloaded = unloaded(lab, tiers, options)?;
    let shares = swept_shares();
    let mut swept = Vec::new();
    let mut capacity = Vec::new();
    for kernel in micro::streams(cores) {
        let runs = sweep(lab, &kernel, tiers, &shares, options)?;
        let (Some(local), Some(slow)) = (runs.first(), runs.last()) else {
            return Err(LabError::Stopped);
        };
        let counted = Run::of(&local.counters)?;
        let load = Load::of(&counted, local.time)?;
        // Best-shot is not asked about the others.
        if classify(&counted, Some(unloaded[0])).bound == Some(Bound::Bandwidth) {
            if kernel.threads == cores && load.latency > unloaded[0] {
                capacity.push(given(&load, slow)?);
            }
            let times = (shares.iter().zip(&runs).skip(1))
                .filter(|(weights, _)| weights.local > 0)
                .map(|(weights, run)| (weights.share(), run.time / local.time))
                .collect();
            swept.push(Swept { load, times });
        }
    }
    let mut unfollowed = Vec::new();
    for kernel in micro::unfollowed(cores) {
        let ends = [(1, 0), (0, 1)].map(|(local, slow)| Weights { local, slow });
        let runs = sweep(lab, &kernel, tiers, &ends, options)?;
        let [local, slow] = runs.as_slice() else {
            return Err(LabError::Stopped);
        };
        let counted = Run::of(&local.counters)?;
        if classify(&counted, Some(unloaded[0])).bound == Some(Bound::Bandwidth) {
            unfollowed.push(given(&Load::of(&counted, local.time)?, slow)?);
        }
    }
    let mut fit = kernels::fit(&swept, unloaded, capacity, unfollowed)?;
    let advised = |kernel: &Swept| {
        let aim = aim(&fit, &kernel.load, ROUND);
        let there = aim.weights.share();
        let time = kernel.times.iter().find(|(share, _)| *share == there);
        // Of a share beyond those swept it is the last that tells.
        let (_, time) = time.or(kernel.times.last())?;
        Some((aim.gain, if there > 0.0 { 1.0 / time - 1.0 } else { 0.0 }))
    };
    let ran: Vec<(f64, f64)> = swept.iter().filter_map(advised).collect();
    fit.error = kernels::error(&ran);
    Ok(fit)
}

/// What memory gives to a kernel, from its load on local memory and from a run on the slower tier.
fn given(load: &Load, slow: &WorkloadRun) -> Result<Capacity, InsightError> {
    Ok(Capacity {
        kind: load.kind,
        bandwidth: Load::of(&Run::of(&slow.counters)?, slow.time)?.traffic,
        local: load.traffic,
        latency: load.latency,
    })
}

/// Shares that kernels are swept over: every twentieth to a half, and all, which tells what the slower tier
/// gives.
fn swept_shares() -> Vec<Weights> {
    let mut all = shares(ROUND);
    all.retain(|weights| weights.slow <= weights.local || weights.local == 0);
    all
}
