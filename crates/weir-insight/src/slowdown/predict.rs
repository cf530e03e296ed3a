//! Slowdown by component, with an interval that what was held out has earned.

use weir_model::insight::{Bound, HeldOut, Margin, Rejected, SlowdownModel};

use super::metrics::lacking;
use super::metrics::parts;
use super::{Metrics, Misses, Pair, Waits, nearness, rejected};
use crate::bound::{Classification, classify};
use crate::breakdown::Difference;
use crate::score::{Judged, conformal_quantile};
use crate::{InsightError, Run};

/// A prediction for one workload; shares of its cycles on local memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// By a full store buffer.
    pub store: f64,
    /// By the caches.
    pub cache: f64,
    /// By misses.
    pub dram: f64,
    /// The components as published, where `dram` is the one by exposed cycles.
    pub published: Option<Published>,
    /// What every workload loses (k4).
    pub constant: f64,
    /// What holds it back on local memory. The model is one of latency.
    pub bound: Classification,
    /// Half-width of the interval of the total; `None` where nothing was held out.
    pub half_width: Option<f64>,
    /// What the rejected predictors say; `None` where their counters are missing.
    pub rejected: Vec<(Rejected, Option<f64>)>,
    /// What makes it less than trustworthy.
    pub warnings: Vec<String>,
}

/// What the published components say, which others took the place of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// By the caches.
    pub cache: f64,
    /// By misses.
    pub dram: f64,
}

impl Prediction {
    /// The whole slowdown.
    pub fn total(&self) -> f64 {
        self.store + self.cache + self.dram + self.constant
    }

    /// The whole slowdown with the components as published, where those are others.
    pub fn published_total(&self) -> Option<f64> {
        let published = self.published?;
        Some(self.store + published.cache + published.dram + self.constant)
    }

    /// The interval of the total; no workload is predicted to take less than no time.
    pub fn interval(&self) -> Option<[f64; 2]> {
        let half = self.half_width?;
        Some([(self.total() - half).max(-1.0), self.total() + half])
    }
}

/// Predicts the slowdown of a workload from its run on local memory.
///
/// # Errors
/// Counters that the model needs are missing.
pub fn predict(model: &SlowdownModel, local: &Run<'_>) -> Result<Prediction, InsightError> {
    let metrics = Metrics::of(local, model.prefetch)?;
    let [store, cache, dram] = parts(&metrics, &model.constants);
    let published = Published { cache, dram };
    let misses = model.exposed.as_ref().map(|_| Misses::of(local));
    let exposed = match (&model.exposed, &misses) {
        (Some(exposed), Some(Ok(misses))) => Some((misses.lost(&exposed.constants), exposed)),
        _ => None,
    };
    let dram = exposed.map_or(dram, |(dram, _)| dram);
    let late = exposed.and_then(|(_, exposed)| exposed.late.as_ref());
    let waits =
        late.map(|late| Waits::of(local, model.prefetch).map(|waits| waits.lost(late, dram)));
    let cache = match &waits {
        Some(Ok(lost)) => *lost,
        _ => cache,
    };
    let mut prediction = Prediction {
        store,
        cache,
        dram,
        published: exposed.map(|_| published),
        constant: model.constants.k4,
        bound: classify(local, Some(model.unloaded)),
        half_width: None,
        rejected: (Rejected::ALL.into_iter())
            .map(|of| {
                let line = model.rejected.iter().find(|line| line.of == of);
                (of, line.and_then(|line| rejected::slowdown(line, local)))
            })
            .collect(),
        warnings: Vec::new(),
    };
    let held_out = exposed.map_or(&model.held_out, |(_, exposed)| &exposed.held_out);
    let place = nearness::place(local);
    if let Some(held_out) = held_out {
        let near = held_out.near.as_ref().zip(place.as_ref());
        let near = near.and_then(|(near, at)| nearness::relative(near, at));
        let margin = Margin {
            relative: near.map_or(held_out.total.relative, |(relative, _)| relative),
            ..held_out.total
        };
        prediction.half_width = Some(margin.around(prediction.total() * 100.0) / 100.0);
        let unlike = near.and_then(|(_, times)| nearness::unlike(times));
        prediction.warnings.extend(unlike);
    }
    for (component, missing) in [
        ("DRAM", misses.and_then(Result::err)),
        ("cache", waits.and_then(Result::err)),
    ] {
        prediction.warnings.extend(missing.map(|missing| {
            format!(
                "its {component} component is the published one: {}",
                lacking(&missing)
            )
        }));
    }
    let [least, greatest] = model.aol_range;
    if let Some(aol) = metrics.aol
        && dram > 0.01
        && (aol < least * 0.8 || aol > greatest * 1.25)
    {
        prediction.warnings.push(format!(
            "its amortised offcore latency of {aol:.0} lies outside the {:.0} to {greatest:.0} of the \
             calibration",
            least.get()
        ));
    }
    Ok(prediction)
}

/// A workload's slowdown on the other memory, predicted from the local run and measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// The prediction.
    pub prediction: Prediction,
    /// Store, by counters of both runs; `None` where they are missing.
    pub store: Option<Judged>,
    /// The caches.
    pub cache: Option<Judged>,
    /// DRAM.
    pub dram: Option<Judged>,
    /// The whole.
    pub total: Judged,
    /// What was measured, by cause.
    pub measured: Difference,
    /// Where its local run is in the space of counters; `None` where counters are missing.
    pub place: Option<nearness::Place>,
}

impl Tried {
    /// The same with the components as published.
    #[must_use]
    pub fn published(&self) -> Self {
        let mut tried = self.clone();
        if let Some(Published { cache, dram }) = tried.prediction.published.take() {
            (tried.prediction.cache, tried.prediction.dram) = (cache, dram);
            tried.total.predicted = tried.prediction.total();
            for (judged, published) in [(&mut tried.cache, cache), (&mut tried.dram, dram)] {
                if let Some(judged) = judged {
                    judged.predicted = published;
                }
            }
        }
        tried
    }

    /// Whether it waits for latency on local memory, by what its counters say; the model is one of that.
    pub fn is_latency_bound(&self) -> bool {
        self.prediction.bound.bound == Some(Bound::Latency)
    }
}

/// Predicts and measures.
///
/// # Errors
/// Counters that the model needs are missing, or cannot be of a run.
pub fn try_out(model: &SlowdownModel, pair: &Pair) -> Result<Tried, InsightError> {
    let (local, target) = (Run::of(&pair.local)?, Run::of(&pair.target)?);
    let prediction = predict(model, &local)?;
    let measured = Difference::between(&local, &target)?;
    let judged = |predicted, measured: Option<f64>| {
        measured.map(|measured| Judged {
            predicted,
            measured,
        })
    };
    Ok(Tried {
        store: judged(prediction.store, measured.added.store),
        cache: judged(prediction.cache, measured.added.cache),
        dram: judged(prediction.dram, measured.added.dram),
        total: Judged {
            predicted: prediction.total(),
            measured: measured.slowdown,
        },
        place: nearness::place(&local),
        prediction,
        measured,
    })
}

/// What is added to a prediction before errors are taken relative to it: small slowdowns are off by
/// fractions of a point whatever they are.
const FLOOR_PCT: f64 = 5.0;

/// How wide intervals must be to hold `coverage` of workloads like those held out, none of which a
/// constant was fitted to (split conformal prediction with errors relative to the prediction's size, Lei
/// et al. 2018 §5.2). `None` where there are too few of them.
///
/// Intervals of the whole hold as many of each group, and follow the errors of the nearest ([`nearness`]).
pub fn hold_out(groups: &[Vec<Tried>], coverage: f64) -> Option<HeldOut> {
    let tried = || groups.iter().flatten();
    let relative =
        |judged: Judged| judged.error().abs() / (FLOOR_PCT / 100.0 + judged.predicted.abs());
    let margin = |of: fn(&Tried) -> Option<Judged>| {
        let errors = tried().filter_map(of).map(relative).collect();
        Some(Margin {
            relative: conformal_quantile(errors, coverage)?,
            floor_pct: FLOOR_PCT,
        })
    };
    Some(HeldOut {
        workloads: u32::try_from(tried().count()).ok()?,
        coverage_pct: coverage * 100.0,
        store: margin(|t| t.store)?,
        cache: margin(|t| t.cache)?,
        dram: margin(|t| t.dram)?,
        total: margin(|t| Some(t.total))?,
        near: {
            let placed = |t: &Tried| Some((t.place.clone()?, relative(t.total)));
            let placed = |group: &Vec<Tried>| group.iter().map(placed).collect::<Option<Vec<_>>>();
            let groups: Option<Vec<_>> = groups.iter().map(placed).collect();
            groups.and_then(|groups| nearness::fit(&groups, coverage))
        },
    })
}
