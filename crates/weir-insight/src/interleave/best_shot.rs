//! Best-shot interleaving: the share and the gain from one run on local memory (SupMario §6.2).
//!
//! A workload gains from a second tier by as much as it presses on the first. Pressure is, for each class
//! of requests, what latency costs it (M, the metric of the slowdown model) times the latency it meets
//! (L). Over streaming kernels, both the best share and the gain are close to linear in it. The paper
//! prints neither slopes nor what L is of; L here is the mean latency of all data reads, of those that
//! are prefetched, and of reads for ownership, as in the authors' later artefact (CAMP).

use weir_model::counters::Counter;
use weir_model::insight::{Constants, InterleaveFit, Linear, PrefetchForm};
use weir_model::units::Cycles;

use crate::slowdown::Metrics;
use crate::{InsightError, Run, least_squares};

/// How hard a run presses on local memory: R_DRAM + R_cache + R_store, in cycles of the core.
///
/// # Errors
/// Counters are missing.
pub fn pressure(
    run: &Run<'_>,
    form: PrefetchForm,
    constants: &Constants,
) -> Result<Cycles, InsightError> {
    let metrics = Metrics::of(run, form)?;
    let latency = Latencies::of(run).map_err(|(counter, why)| InsightError::Missing {
        what: "best-shot interleaving".into(),
        counters: vec![(counter, why)],
    })?;
    Ok(latency.reads * metrics.dram(constants)
        + latency.prefetches * metrics.cache
        + latency.stores * metrics.store)
}

/// Mean latencies of the classes of requests; zero where there are none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latencies {
    /// Of all data reads that left the core.
    pub reads: Cycles,
    /// Of those that were prefetches.
    pub prefetches: Cycles,
    /// Of reads for ownership.
    pub stores: Cycles,
}

impl Latencies {
    /// Reads them from a run.
    ///
    /// # Errors
    /// The counter that is missing, and why.
    pub fn of(run: &Run<'_>) -> Result<Self, (Counter, String)> {
        let get = |counter| run.count(counter).map_err(|why| (counter, why.reason));
        let reads = get(Counter::OffcoreDataRd)?;
        let under_way = get(Counter::OffcoreOutstandingDataRd)?;
        let demand = get(Counter::OffcoreDemandDataRd)?;
        let demand_under_way = get(Counter::OffcoreOutstandingDemandDataRd)?;
        let owned = get(Counter::OffcoreDemandRfo)?;
        let owned_under_way = get(Counter::OffcoreOutstandingDemandRfo)?;
        let mean = |occupancy: f64, requests: f64| {
            Cycles(if requests > 0.0 {
                (occupancy / requests).max(0.0)
            } else {
                0.0
            })
        };
        Ok(Self {
            reads: mean(under_way, reads),
            prefetches: mean(under_way - demand_under_way, reads - demand),
            stores: mean(owned_under_way, owned),
        })
    }
}

/// A streaming kernel whose best share was found by trying shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Swept {
    /// Its pressure on local memory.
    pub pressure: Cycles,
    /// The share at which it ran fastest.
    pub share: f64,
    /// How much faster than all local it ran there: 0.2 is a fifth more done in the same time.
    pub gain: f64,
}

/// The lines through what was swept.
///
/// # Errors
/// There are too few kernels, or all press alike.
pub fn fit(swept: &[Swept]) -> Result<InterleaveFit, InsightError> {
    let rows: Vec<[f64; 2]> = swept.iter().map(|s| [s.pressure.get(), 1.0]).collect();
    let line = |of: fn(&Swept) -> f64| {
        let wanted: Vec<f64> = swept.iter().map(of).collect();
        let [slope, intercept] = least_squares::solve(&rows, &wanted)?;
        Some(Linear { slope, intercept })
    };
    let ends = || {
        let pressures = || swept.iter().map(|s| s.pressure);
        Some([
            pressures().reduce(Cycles::min)?,
            pressures().reduce(Cycles::max)?,
        ])
    };
    match (line(|s| s.share), line(|s| s.gain), ends()) {
        (Some(share), Some(gain), Some(range)) => Ok(InterleaveFit {
            share,
            gain,
            pressure_range: range,
            most: swept.iter().map(|s| s.share).fold(0.0, f64::max),
        }),
        _ => Err(InsightError::Interleave(
            "the kernels press on local memory alike, or there are fewer than two of them".into(),
        )),
    }
}

/// A gain below this is not worth moving pages for; it is what repetitions differ by.
const WORTH_IT: f64 = 0.01;

/// Best share and gain for a pressure; `None` if interleaving is not worth it. The lines hold within the
/// pressures that they were fitted on and are not carried beyond.
pub fn shoot(fit: &InterleaveFit, pressure: Cycles) -> Option<(f64, f64)> {
    let [least, greatest] = fit.pressure_range;
    let pressure = pressure.max(least).min(greatest).get();
    let at = |line: &Linear| line.slope * pressure + line.intercept;
    let share = at(&fit.share).clamp(0.0, fit.most);
    let gain = at(&fit.gain);
    (share > 0.0 && gain > WORTH_IT).then_some((share, gain))
}

/// What interleaving costs a workload that waits for latency: its slowdown on the slower tier, in
/// proportion to the share of pages there (SupMario §6.2).
pub fn latency_bound_slowdown(all_slow: f64, share: f64) -> f64 {
    all_slow * share
}
