//! Best-shot interleaving: the share and the gain from one run on local memory (SupMario §6.2).
//!
//! A workload gains from a second tier by as much as it presses on the first. Pressure is, for each class
//! of requests, what latency costs it (M) times the latency it meets (L). Over streaming kernels, both the
//! best share and the gain are close to linear in it. The paper prints neither slopes nor what L is of;
//! L here is the mean latency of all data reads, of those that are prefetched, and of reads for ownership,
//! as in the authors' later artefact (CAMP). M here is the share of cycles stalled for the class, which
//! that artefact takes too: the cache metric of the slowdown model is zero where the L2 prefetcher keeps
//! up, which is where streams press hardest.

use weir_model::counters::Counter;
use weir_model::insight::{InterleaveFit, Linear, Pressure};
use weir_model::units::Cycles;

use crate::breakdown::Breakdown;
use crate::{InsightError, Run, least_squares};

/// How hard a run presses on local memory: by reads, R_DRAM + R_cache, and by stores, R_store.
///
/// # Errors
/// Counters are missing.
pub fn pressure(run: &Run<'_>) -> Result<Pressure, InsightError> {
    let lacking = |counters| InsightError::Missing {
        what: "best-shot interleaving".into(),
        counters,
    };
    let latency = Latencies::of(run).map_err(|missing| lacking(vec![missing]))?;
    let breakdown = Breakdown::of(run);
    let lost = breakdown.lost;
    match (lost.dram, lost.cache, lost.store) {
        (Some(dram), Some(cache), Some(store)) => Ok(Pressure {
            reads: latency.reads * dram + latency.prefetches * cache,
            stores: latency.stores * store,
        }),
        _ => Err(lacking(
            (breakdown.untold.into_iter())
                .map(|untold| (untold.counter, untold.why))
                .collect(),
        )),
    }
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
    pub pressure: Pressure,
    /// The share at which it ran fastest.
    pub share: f64,
    /// How much faster than all local it ran there: 0.2 is a fifth more done in the same time.
    pub gain: f64,
}

/// Where the hardest press by stores is less than this share of the hardest by reads, the kernels say
/// nothing of stores by themselves.
const HARDLY_STORES: f64 = 0.1;

/// The planes through what was swept. Where the kernels hardly press by stores, a cycle of either counts
/// the same: a plane is not tilted by what was not varied.
///
/// # Errors
/// There are too few kernels, or all press alike.
pub fn fit(swept: &[Swept]) -> Result<InterleaveFit, InsightError> {
    let most = |of: fn(&Pressure) -> Cycles| {
        let each = swept.iter().map(|s| of(&s.pressure));
        each.reduce(Cycles::max).unwrap_or_default()
    };
    let most_pressure = Pressure {
        reads: most(|p| p.reads),
        stores: most(|p| p.stores),
    };
    let apart = most_pressure.stores > most_pressure.reads * HARDLY_STORES;
    let plane = |of: fn(&Swept) -> f64| {
        if apart {
            tilted(swept, of)
        } else {
            even(swept, of)
        }
    };
    let (Some(share), Some(gain)) = (plane(|s| s.share), plane(|s| s.gain)) else {
        return Err(InsightError::Interleave(
            "the kernels press on local memory alike, or there are fewer than three of them".into(),
        ));
    };
    Ok(InterleaveFit {
        share,
        gain,
        most_pressure: Pressure {
            stores: if apart {
                most_pressure.stores
            } else {
                most_pressure.reads
            },
            ..most_pressure
        },
        most: swept.iter().map(|s| s.share).fold(0.0, f64::max),
    })
}

/// A plane over pressure by reads and by stores.
fn tilted(swept: &[Swept], of: fn(&Swept) -> f64) -> Option<Linear> {
    let rows: Vec<[f64; 3]> = (swept.iter())
        .map(|s| [s.pressure.reads.get(), s.pressure.stores.get(), 1.0])
        .collect();
    let wanted: Vec<f64> = swept.iter().map(of).collect();
    let [reads, stores, intercept] = least_squares::solve(&rows, &wanted)?;
    Some(Linear {
        reads,
        stores,
        intercept,
    })
}

/// A line over both together.
fn even(swept: &[Swept], of: fn(&Swept) -> f64) -> Option<Linear> {
    let rows: Vec<[f64; 2]> = (swept.iter())
        .map(|s| [(s.pressure.reads + s.pressure.stores).get(), 1.0])
        .collect();
    let wanted: Vec<f64> = swept.iter().map(of).collect();
    let [each, intercept] = least_squares::solve(&rows, &wanted).filter(|_| rows.len() > 2)?;
    Some(Linear {
        reads: each,
        stores: each,
        intercept,
    })
}

/// A gain below this is not worth moving pages for; it is what repetitions differ by.
const WORTH_IT: f64 = 0.01;

/// Best share and gain for a pressure; `None` if interleaving is not worth it. The planes are not carried
/// beyond the pressures that they were fitted on.
pub fn shoot(fit: &InterleaveFit, pressure: Pressure) -> Option<(f64, f64)> {
    let within = Pressure {
        reads: pressure.reads.min(fit.most_pressure.reads),
        stores: pressure.stores.min(fit.most_pressure.stores),
    };
    let share = fit.share.at(within).clamp(0.0, fit.most);
    let gain = fit.gain.at(within);
    (share > 0.0 && gain > WORTH_IT).then_some((share, gain))
}

/// What interleaving costs a workload that waits for latency: its slowdown on the slower tier, in
/// proportion to the share of pages there (SupMario §6.2).
pub fn latency_bound_slowdown(all_slow: f64, share: f64) -> f64 {
    all_slow * share
}
