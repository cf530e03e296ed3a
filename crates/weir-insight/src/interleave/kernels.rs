//! What best-shot is calibrated on: streaming kernels that ran at every share.

use weir_model::insight::{Capacity, InterleaveFit, Margin};
use weir_model::units::Cycles;

use super::best_shot::{Load, run_time};
use crate::InsightError;
use crate::score::conformal_quantile;

/// A streaming kernel that was swept.
#[derive(Debug, Clone, PartialEq)]
pub struct Swept {
    /// Its load with every page on local memory.
    pub load: Load,
    /// Run time at shares of pages on the slower tier, of that with none.
    pub times: Vec<(f64, f64)>,
}

/// Fewer kernels than this leave the factors open.
const FEWEST: usize = 3;

/// Finds the four factors that bring run times closest, as ratios. The error is yet to be measured.
///
/// # Errors
/// There are too few kernels, or no capacity is known.
pub fn fit(
    swept: &[Swept],
    unloaded: [Cycles; 2],
    capacity: Vec<Capacity>,
    unfollowed: Vec<Capacity>,
) -> Result<InterleaveFit, InsightError> {
    let mut fit = InterleaveFit {
        unloaded,
        queueing: 0.2,
        slow_queueing: 0.2,
        prefetched: 1.0,
        exposed: 1.0,
        capacity,
        unfollowed,
        error: Margin {
            relative: 0.0,
            floor_pct: FLOOR_PCT,
        },
    };
    if swept.len() < FEWEST || !is_possible(&fit) {
        return Err(InsightError::Interleave(
            "too few kernels wait for bandwidth, or the slower tier gives them nothing".into(),
        ));
    }
    // Up and down by one factor after another, in ever smaller steps.
    let mut least = misses(&fit, swept);
    let mut step = WIDEST;
    while step > FINEST {
        let found = FACTORS.iter().fold(least, |least, factor| {
            let tried = [step, 1.0 / step].map(|by| {
                let tried = scaled(&fit, *factor, by);
                (misses(&tried, swept), tried)
            });
            let [up, down] = tried;
            let (misses, better) = if up.0 < down.0 { up } else { down };
            if misses >= least {
                return least;
            }
            fit = better;
            misses
        });
        if found >= least * (1.0 - CONVERGED) {
            step = step.sqrt();
        }
        least = found;
    }
    Ok(fit)
}

/// The factors that are fitted.
const FACTORS: [fn(&mut InterleaveFit) -> &mut f64; 4] = [
    |fit| &mut fit.queueing,
    |fit| &mut fit.slow_queueing,
    |fit| &mut fit.prefetched,
    |fit| &mut fit.exposed,
];

/// A fit with one factor this many times as large, and still one that follows from something.
fn scaled(
    fit: &InterleaveFit,
    factor: fn(&mut InterleaveFit) -> &mut f64,
    by: f64,
) -> InterleaveFit {
    let mut scaled = fit.clone();
    let value = factor(&mut scaled);
    *value = (*value * by).clamp(SMALLEST, 1.0 / SMALLEST);
    scaled
}

/// The first step, and one that is too small to matter.
const WIDEST: f64 = 2.0;
const FINEST: f64 = 1.01;

/// A step that takes away less than this share of the misses has done its work.
const CONVERGED: f64 = 1e-4;

/// No factor is smaller, or larger than one over it.
const SMALLEST: f64 = 0.01;

/// Whether a fit is one that run times follow from.
pub fn is_possible(fit: &InterleaveFit) -> bool {
    let above_zero = |x: f64| x.is_finite() && x > 0.0;
    fit.unloaded.iter().all(|latency| above_zero(latency.get()))
        && above_zero(fit.queueing)
        && above_zero(fit.slow_queueing)
        && above_zero(fit.prefetched)
        && above_zero(fit.exposed)
        && !fit.capacity.is_empty()
        && (fit.capacity.iter()).all(|kernel| {
            above_zero(kernel.local.get()) && above_zero(kernel.latency / fit.unloaded[0] - 1.0)
        })
        && (fit.capacity.iter().chain(&fit.unfollowed))
            .all(|kernel| above_zero(kernel.bandwidth.get()))
        && fit.error.relative >= 0.0
}

/// Where a kernel takes this many times as long, moving is not advised, and nothing is fitted.
const FAR_GONE: f64 = 1.2;

/// Sum of squared logarithms of found over measured run times.
fn misses(fit: &InterleaveFit, swept: &[Swept]) -> f64 {
    let of = |kernel: &Swept| {
        let each = kernel.times.iter().filter(|(_, time)| *time <= FAR_GONE);
        let off = each.map(|&(share, time)| (run_time(fit, &kernel.load, share) / time).ln());
        off.map(|off| off * off).sum::<f64>()
    };
    swept.iter().map(of).sum()
}

/// What is added to a gain before errors are taken relative to it, in percentage points.
const FLOOR_PCT: f64 = 5.0;

/// The share of workloads that are to gain no less than expected and its error.
const COVERAGE: f64 = 0.9;

/// The error of expected gains, from kernels that ran as advised: expected and gained, each as a share.
/// The largest where there are too few of them to leave any out.
pub fn error(ran: &[(f64, f64)]) -> Margin {
    let short: Vec<f64> = (ran.iter())
        .map(|(expected, gained)| (expected - gained).max(0.0) / (FLOOR_PCT / 100.0 + expected))
        .collect();
    let largest = short.iter().copied().fold(0.0, f64::max);
    Margin {
        relative: conformal_quantile(short, COVERAGE).unwrap_or(largest),
        floor_pct: FLOOR_PCT,
    }
}
