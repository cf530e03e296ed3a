//! Best-shot against a sweep: what its one run is worth on workloads that wait for bandwidth.

use weir_lab::{Lab, LabError, WorkloadOptions, WorkloadRun};
use weir_model::insight::{Bound, InterleaveFit};
use weir_model::units::Cycles;
use weir_model::workload::Workload;

use crate::Run;
use crate::bound::classify;
use crate::interleave::Weights;
use crate::interleave::best_shot::{Load, aim};
use crate::tune::{ROUND, change, run_at, shares, sweep};
use crate::two_tiers::Tiers;

/// The same program on this many cores, which fills the memory as rate runs and thread pools do.
pub fn crowd(workload: &Workload, threads: u32) -> Workload {
    Workload {
        threads,
        ..workload.clone()
    }
}

/// What best-shot said of a workload, and what a sweep of all shares says.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Shot {
    /// Whose.
    pub workload: String,
    /// The weights that were advised; none on the slower tier where it says to stay.
    pub weights: Weights,
    /// The gain over all local that it expects at the best share: 0.2 is a fifth more done in the same time.
    /// It says to stay where that is less than its error.
    pub expected: f64,
    /// By how much less it may gain.
    pub error: f64,
    /// The gain that was measured at these weights.
    pub gain: f64,
    /// The weights at which it ran fastest of all that were swept.
    pub best: Weights,
    /// The gain there.
    pub best_gain: f64,
    /// How much longer it takes with every page on the slower tier, as a share.
    pub all_slow: f64,
}

/// Shoots at a workload and sweeps it; `None` where it waits for latency, of which best-shot says nothing.
/// `unloaded` is what a lone chase takes on local memory.
///
/// # Errors
/// The machine refuses, counters are missing, or it was stopped.
pub fn shoot_and_sweep(
    lab: &Lab<'_>,
    fit: &InterleaveFit,
    workload: &Workload,
    tiers: &Tiers,
    unloaded: Cycles,
    options: &WorkloadOptions,
) -> Result<Option<Shot>, LabError> {
    let at = |weights| run_at(lab, workload, tiers, weights, options);
    let local = at(Weights { local: 1, slow: 0 })?;
    let counted = Run::of(&local.counters)?;
    if classify(&counted, Some(unloaded)).bound != Some(Bound::Bandwidth) {
        return Ok(None);
    }
    let aim = aim(fit, &Load::of(&counted, local.time)?, ROUND);
    let weights = match aim.is_worth_it() {
        true => aim.weights,
        false => Weights { local: 1, slow: 0 },
    };
    let all = swept_shares();
    let swept = sweep(lab, workload, tiers, &all, options)?;
    let swept: Vec<(Weights, WorkloadRun)> = all.into_iter().zip(swept).collect();
    let gain = |run: &WorkloadRun| 1.0 / (1.0 + change(&local, run)) - 1.0;
    // A run of the same is the same.
    let there = swept
        .iter()
        .find(|(at, _)| at.slow > 0 && at.share() == weights.share());
    let advised = match (weights.slow, there) {
        (0, _) => 0.0,
        (_, Some((_, run))) => gain(run),
        (_, None) => gain(&at(weights)?),
    };
    let best = swept
        .iter()
        .max_by(|a, b| gain(&a.1).total_cmp(&gain(&b.1)));
    Ok(best
        .zip(swept.last())
        .map(|((best, fastest), (_, slow))| Shot {
            workload: workload.name.clone(),
            weights,
            expected: aim.gain,
            error: aim.error,
            gain: advised,
            best: *best,
            best_gain: gain(fastest),
            all_slow: change(&local, slow),
        }))
}

/// Every twentieth share up to a quarter, every tenth up to two thirds, and all: nothing is best on a tier that is
/// slower than local memory with more than that there, and run times change little between large shares.
fn swept_shares() -> Vec<Weights> {
    let mut all = shares(ROUND);
    all.retain(|weights| match weights {
        Weights { local: 0, .. } => true,
        Weights { slow, .. } if *slow <= ROUND / 4 => true,
        Weights { local, slow } => *slow <= 2 * local && slow % 2 == 0,
    });
    all
}
