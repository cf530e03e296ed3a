//! Predictions as documents, and how good they are.

use crate::documents::{
    Accuracy, AccuracyLine, MeasuredSlowdown, PopulationAccuracy, Predicted, PublishedPrediction,
    RejectedPrediction,
};
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::{Bound, Components, Rejected, SlowdownModel};
use weir_model::workload::Population;

use crate::breakdown::Difference;
use crate::score::{Judged, mean_error, pearson, within};
use crate::slowdown::{Prediction, predict};
use crate::{InsightError, Run};

/// What to count of a program for a prediction, whichever family its processor is of, with what tells
/// whether it waits for bandwidth and what the rejected predictors read.
pub const COUNTERS: [Counter; 24] = [
    Counter::Cycles,
    Counter::Instructions,
    Counter::StallsL1dMiss,
    Counter::StallsL2Miss,
    Counter::StallsL3Miss,
    Counter::CyclesL1dMiss,
    Counter::CyclesL2Miss,
    Counter::CyclesL3Miss,
    Counter::BoundOnStores,
    Counter::L1Miss,
    Counter::FbHit,
    Counter::L2Hit,
    Counter::L3Hit,
    Counter::L3Miss,
    Counter::HwpfL1d,
    Counter::HwpfL1dL3Hit,
    Counter::HwpfL2,
    Counter::TorInsertsIaDrdPref,
    Counter::TorInsertsIaMissDrdPref,
    Counter::OffcoreDemandDataRd,
    Counter::OffcoreOutstandingDemandDataRd,
    Counter::OffcoreCyclesDemandDataRd,
    Counter::OffcoreDataRd,
    Counter::OffcoreOutstandingDataRd,
];

/// A prediction for a workload from its run on local memory.
///
/// # Errors
/// Counters that the model needs are missing, or cannot be of a run.
pub fn forecast(
    model: &SlowdownModel,
    workload: &str,
    local: &CounterSet,
) -> Result<Predicted, InsightError> {
    let prediction = predict(model, &Run::of(local)?)?;
    Ok(in_percent(workload, prediction))
}

/// A prediction next to what the same workload did on the other memory.
///
/// # Errors
/// As [`forecast`], of either run.
pub fn compare(
    model: &SlowdownModel,
    workload: &str,
    local: &CounterSet,
    target: &CounterSet,
) -> Result<Predicted, InsightError> {
    Ok(Predicted {
        measured: Some(measured(local, target)?),
        ..forecast(model, workload, local)?
    })
}

/// How much slower a workload was on the other memory, by cause.
///
/// # Errors
/// Counters are missing, or cannot be of a run.
pub fn measured(local: &CounterSet, target: &CounterSet) -> Result<MeasuredSlowdown, InsightError> {
    let measured = Difference::between(&Run::of(local)?, &Run::of(target)?)?;
    Ok(MeasuredSlowdown {
        slowdown_pct: measured.slowdown * 100.0,
        components: measured.added.components(measured.slowdown),
    })
}

fn in_percent(workload: &str, prediction: Prediction) -> Predicted {
    let percent = |share: f64| share * 100.0;
    let rejected = |&(of, slowdown): &(Rejected, Option<f64>)| RejectedPrediction {
        of,
        slowdown_pct: slowdown.map(percent),
    };
    Predicted {
        workload: workload.into(),
        population: None,
        components: Components {
            store: Some(percent(prediction.store)),
            cache: Some(percent(prediction.cache)),
            dram: Some(percent(prediction.dram)),
            other: Some(percent(prediction.constant)),
            ..Components::default()
        },
        slowdown_pct: percent(prediction.total()),
        interval_pct: prediction.interval().map(|ends| ends.map(percent)),
        published: (prediction.published)
            .zip(prediction.published_total())
            .map(|(published, total)| PublishedPrediction {
                dram_pct: percent(published.dram),
                cache_pct: percent(published.cache),
                slowdown_pct: percent(total),
            }),
        bound: prediction.bound.bound,
        evidence: prediction.bound.evidence.clone(),
        rejected: prediction.rejected.iter().map(rejected).collect(),
        measured: None,
        warnings: prediction.warnings,
    }
}

/// How many of the worst are named.
const WORST: usize = 5;

/// How good predictions that have a measurement are; `None` of none. Those of workloads that wait
/// for bandwidth are left out, as the model is not of them.
pub fn accuracy(predictions: &[Predicted]) -> Option<Accuracy> {
    let all: Vec<(&Predicted, &MeasuredSlowdown)> = (predictions.iter())
        .filter_map(|p| Some((p, p.measured.as_ref()?)))
        .collect();
    let first = all.first().and_then(|(p, _)| p.population);
    let measured: Vec<(&Predicted, &MeasuredSlowdown)> = (all.iter().copied())
        .filter(|(p, _)| p.population == first)
        .collect();
    let judged: Vec<(&Predicted, &MeasuredSlowdown)> = (measured.iter().copied())
        .filter(|(p, _)| p.bound != Some(Bound::Bandwidth))
        .collect();
    let whole = |(p, m): &(&Predicted, &MeasuredSlowdown)| Some((p.slowdown_pct, m.slowdown_pct));
    let component = |of: fn(&Components) -> Option<f64>| {
        move |(p, m): &(&Predicted, &MeasuredSlowdown)| {
            Some((of(&p.components)?, of(&m.components)?))
        }
    };
    let published = |(p, m): &(&Predicted, &MeasuredSlowdown)| {
        Some((p.published?.slowdown_pct, m.slowdown_pct))
    };
    let published_dram = |(p, m): &(&Predicted, &MeasuredSlowdown)| {
        Some((p.published?.dram_pct, m.components.dram?))
    };
    let published_cache = |(p, m): &(&Predicted, &MeasuredSlowdown)| {
        Some((p.published?.cache_pct, m.components.cache?))
    };
    let mut lines: Vec<AccuracyLine> = [
        line("DRAM", judged.iter().filter_map(component(|c| c.dram))),
        line("cache", judged.iter().filter_map(component(|c| c.cache))),
        line("store", judged.iter().filter_map(component(|c| c.store))),
        line("total", judged.iter().filter_map(whole)),
        line("published DRAM", judged.iter().filter_map(published_dram)),
        line("published cache", judged.iter().filter_map(published_cache)),
        line("published total", judged.iter().filter_map(published)),
    ]
    .into_iter()
    .flatten()
    .collect();
    lines.extend(Rejected::ALL.into_iter().filter_map(|of| {
        let theirs = |(p, m): &(&Predicted, &MeasuredSlowdown)| {
            let said = p.rejected.iter().find(|r| r.of == of)?.slowdown_pct?;
            Some((said, m.slowdown_pct))
        };
        line(&of.to_string(), judged.iter().filter_map(theirs))
    }));
    let mut worst = judged.clone();
    let off = |(p, m): &(&Predicted, &MeasuredSlowdown)| (p.slowdown_pct - m.slowdown_pct).abs();
    worst.sort_by(|a, b| off(b).total_cmp(&off(a)));
    Some(Accuracy {
        workloads: measured.len(),
        latency_bound: judged.len(),
        covered_pct: covered(&judged),
        explained_pct: share(
            (judged.iter()).filter_map(|(_, m)| Some(m.components.other?.abs() <= 5.0)),
        ),
        lines,
        populations: by_population(&all),
        worst: worst
            .iter()
            .take(WORST)
            .map(|(p, _)| p.workload.clone())
            .collect(),
    })
    .filter(|accuracy| accuracy.workloads > 0)
}

/// A slowdown of more than this is one that matters.
const SLOWED_BY_PCT: f64 = 5.0;

/// The accuracy of each population, of all that wait for latency and of those that are slowed.
fn by_population(all: &[(&Predicted, &MeasuredSlowdown)]) -> Vec<PopulationAccuracy> {
    let judged = || {
        all.iter()
            .copied()
            .filter(|(p, _)| p.bound != Some(Bound::Bandwidth))
    };
    let mut populations: Vec<Option<Population>> = judged().map(|(p, _)| p.population).collect();
    populations.sort_unstable();
    populations.dedup();
    let pairs = populations
        .into_iter()
        .flat_map(|of| [(of, None), (of, Some(SLOWED_BY_PCT))]);
    pairs
        .filter_map(|(population, slowed_by_pct)| {
            let more = |m: &MeasuredSlowdown| slowed_by_pct.is_none_or(|by| m.slowdown_pct > by);
            let own: Vec<_> = judged()
                .filter(|(p, m)| p.population == population && more(m))
                .collect();
            let pair = |(p, m): &(&Predicted, &MeasuredSlowdown)| (p.slowdown_pct, m.slowdown_pct);
            let total = line("total", own.iter().map(pair))?;
            let off = own
                .iter()
                .map(|(p, m)| (p.slowdown_pct - m.slowdown_pct).abs());
            let half = |(p, _): &(&Predicted, &MeasuredSlowdown)| {
                p.interval_pct.map(|[low, high]| (high - low) / 2.0)
            };
            Some(PopulationAccuracy {
                population,
                slowed_by_pct,
                workloads: own.len(),
                median_error_pct: median(off)?,
                mean_error_pct: total.mean_error_pct,
                within_10_pct: total.within_10_pct,
                covered_pct: covered(&own),
                half_width_pct: median(own.iter().filter_map(half)),
            })
        })
        .collect()
}

/// The share of measured slowdowns that are in their interval, in percent.
fn covered(judged: &[(&Predicted, &MeasuredSlowdown)]) -> Option<f64> {
    share(judged.iter().filter_map(|(p, m)| {
        let [low, high] = p.interval_pct?;
        Some((low..=high).contains(&m.slowdown_pct))
    }))
}

/// The middle of some values; `None` of none.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some(f64::midpoint(
        *sorted.get(last / 2)?,
        *sorted.get(last.div_ceil(2))?,
    ))
}

/// How many of the answers are yes, in percent; `None` of none.
fn share(answers: impl Iterator<Item = bool>) -> Option<f64> {
    let (mut yes, mut all) = (0_u32, 0_u32);
    for answer in answers {
        yes += u32::from(answer);
        all += 1;
    }
    (all > 0).then(|| f64::from(yes) / f64::from(all) * 100.0)
}

/// Predicted and measured, in percent.
fn line(what: &str, pairs: impl Iterator<Item = (f64, f64)>) -> Option<AccuracyLine> {
    let judged: Vec<Judged> = pairs
        .map(|(predicted, measured)| Judged {
            predicted,
            measured,
        })
        .collect();
    let within_pct = |points: f64| within(&judged, points).map(|share| share * 100.0);
    Some(AccuracyLine {
        what: what.into(),
        within_2_pct: within_pct(2.0)?,
        within_5_pct: within_pct(5.0)?,
        within_10_pct: within_pct(10.0)?,
        pearson: pearson(&judged),
        mean_error_pct: mean_error(&judged)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(workload: &str, said: f64, measured: f64, bound: Bound) -> Predicted {
        Predicted {
            workload: workload.into(),
            population: None,
            components: Components::default(),
            slowdown_pct: said,
            interval_pct: Some([said - 2.0, said + 2.0]),
            published: None,
            bound: Some(bound),
            evidence: String::new(),
            rejected: Vec::new(),
            measured: Some(MeasuredSlowdown {
                slowdown_pct: measured,
                components: Components::default(),
            }),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn accuracy_is_of_what_waits_for_latency() {
        let found = accuracy(&[
            predicted("exact", 10.0, 10.0, Bound::Latency),
            predicted("near", 10.0, 11.0, Bound::Latency),
            predicted("far", 20.0, 30.0, Bound::Latency),
            predicted("small", 2.0, 2.5, Bound::Latency),
            predicted("queues", 0.0, 100.0, Bound::Bandwidth),
        ])
        .unwrap();
        assert_eq!((found.workloads, found.latency_bound), (5, 4));
        assert_eq!(found.covered_pct, Some(75.0));
        assert_eq!(found.worst, ["far", "near", "small", "exact"]);
        let [total] = found.lines.as_slice() else {
            panic!("{:?}", found.lines);
        };
        assert_eq!((total.within_2_pct, total.within_10_pct), (75.0, 100.0));
        assert_eq!(total.mean_error_pct, 2.875);
        let [all, slowed] = found.populations.as_slice() else {
            panic!("{:?}", found.populations);
        };
        // The middle of 0, 0.5, 1 and 10, and of those that were slowed by more than 5 %.
        assert_eq!((all.workloads, all.median_error_pct), (4, 0.75));
        assert_eq!((slowed.workloads, slowed.median_error_pct), (3, 1.0));
        assert_eq!(slowed.half_width_pct, Some(2.0));
    }
}
