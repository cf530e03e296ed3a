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

/// Finds the three factors that bring run times closest, as ratios. The error is yet to be measured.
///
/// # Errors
/// There are too few kernels, or no capacity is known.
pub fn fit(
    swept: &[Swept],
    unloaded: [Cycles; 2],
    capacity: Vec<Capacity>,
) -> Result<InterleaveFit, InsightError> {
    let mut fit = InterleaveFit {
        unloaded,
        queueing: 0.2,
        prefetched: 1.0,
        exposed: 1.0,
        capacity,
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
    // A coarse look over all factors, and finer ones around what it finds.
    let mut reach = 4.0_f64;
    for _ in 0..LOOKS {
        let steps = (-STEPS..=STEPS).map(|step| reach.powf(f64::from(step) / f64::from(STEPS)));
        let around = steps
            .clone()
            .flat_map(|a| steps.clone().map(move |b| (a, b)));
        let tried = around.map(|(a, b)| InterleaveFit {
            queueing: fit.queueing * a,
            prefetched: fit.prefetched * b,
            ..fit.clone()
        });
        let best = tried
            .map(|tried| (misses(&tried, swept), tried))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, best)) = best {
            fit = best;
        }
        reach = reach.sqrt();
    }
    Ok(fit)
}

/// Whether a fit is one that run times follow from.
pub fn is_possible(fit: &InterleaveFit) -> bool {
    let above_zero = |x: f64| x.is_finite() && x > 0.0;
    fit.unloaded.iter().all(|latency| above_zero(latency.get()))
        && above_zero(fit.queueing)
        && above_zero(fit.prefetched)
        && above_zero(fit.exposed)
        && !fit.capacity.is_empty()
        && (fit.capacity.iter()).all(|kind| above_zero(kind.bandwidth.get()))
        && fit.error.relative >= 0.0
}

/// Looks, and steps of each to either side.
const LOOKS: u32 = 4;
const STEPS: i32 = 4;

/// Where a kernel takes this many times as long, nobody is advised to go, and nothing is fitted.
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
const COVERAGE: f64 = 0.8;

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
