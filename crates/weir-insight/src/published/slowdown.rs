//! Slowdown of a population and of presets.

use weir_lab::WorkloadOptions;
use weir_model::counters::Counter;
use weir_model::insight::{Accuracy, Components, MeasuredSlowdown, Predicted};
use weir_model::workload::{Workloads, population};

use super::Opened;
use super::rules::{Figure, PresetFigure, Quality};
use crate::breakdown::Difference;
use crate::forecast::{accuracy, compare};
use crate::score::{Judged, pearson};
use crate::two_tiers::{CalibrateOptions, GoOn, TierRunError, calibrate_machine, on_both, run_on};
use crate::{InsightError, Run};

/// A population that was predicted and measured.
#[derive(Debug, Clone)]
pub(super) struct Study {
    accuracy: Accuracy,
    seen: Vec<Seen>,
}

/// One workload of it.
#[derive(Debug, Clone)]
struct Seen {
    predicted: Predicted,
    measured: MeasuredSlowdown,
    /// Share of cycles stalled on misses, on local memory.
    stalls: f64,
    /// Bandwidth on local memory, in GB/s.
    gbps: f64,
}

fn options(seed: u64) -> WorkloadOptions {
    WorkloadOptions {
        seed,
        ..WorkloadOptions::default()
    }
}

/// Calibrates, predicts and measures.
pub(super) fn study(
    on: &Opened,
    workloads: usize,
    seed: u64,
    go_on: GoOn<'_>,
) -> Result<Study, TierRunError> {
    let run = options(seed);
    let of = (&on.identity, &on.topology);
    let calibrate = CalibrateOptions {
        run: run.clone(),
        // Intervals are not asked for.
        held_out: 0,
        ..CalibrateOptions::default()
    };
    let model = calibrate_machine(&*on.testbed, of, &on.tiers, &calibrate, go_on)?;
    let drawn = population(seed, workloads);
    let ran = on_both(&*on.testbed, &drawn, &on.tiers, &run, go_on);
    if ran.len() < workloads {
        return Err(TierRunError::Stopped);
    }
    let mut seen = Vec::new();
    for both in ran {
        let both = both?;
        let (local, target) = (&both.local, &both.target);
        let predicted = compare(&model, &local.workload, &local.counters, &target.counters)?;
        let Some(measured) = predicted.measured else {
            continue;
        };
        let counted = Run::of(&local.counters)?;
        let stalls = counted.share(Counter::StallsL3Miss).map_err(lacking)?;
        let gbps = local.bandwidth().map_err(lacking)?.get();
        seen.push(Seen {
            predicted,
            measured,
            stalls,
            gbps,
        });
    }
    let predicted: Vec<Predicted> = seen.iter().map(|s| s.predicted.clone()).collect();
    let accuracy = accuracy(&predicted)
        .ok_or_else(|| InsightError::Calibration("no workload was drawn".into()))?;
    Ok(Study { accuracy, seen })
}

fn lacking(why: weir_model::capability::Unavailable) -> TierRunError {
    InsightError::Calibration(why.reason).into()
}

/// The fewest workloads that a spread is told of.
const FEW: usize = 5;

/// A figure of a population, or why it has none.
pub(super) fn figure(study: &Study, figure: Figure) -> Result<f64, String> {
    let all = study.seen.len() as f64;
    match figure {
        Figure::Line(what, quality) => {
            let line = study.accuracy.lines.iter().find(|line| line.what == what);
            let line = line.ok_or_else(|| format!("there are no predictions of {what}"))?;
            match quality {
                Quality::Pearson => {
                    (line.pearson).ok_or_else(|| format!("predictions of {what} do not vary"))
                }
                Quality::Within2 => Ok(line.within_2_pct),
                Quality::Within5 => Ok(line.within_5_pct),
                Quality::Within10 => Ok(line.within_10_pct),
            }
        }
        Figure::Explained => {
            (study.accuracy.explained_pct).ok_or_else(|| "causes were not all counted".into())
        }
        Figure::Unexplained => {
            let mut off: Vec<f64> = (study.seen.iter())
                .filter_map(|s| Some(s.measured.components.other?.abs()))
                .collect();
            off.sort_by(f64::total_cmp);
            let rank = (off.len() as f64 * 0.95).ceil() as usize;
            let told = rank.checked_sub(1).and_then(|rank| off.get(rank));
            told.copied()
                .ok_or_else(|| "causes were not all counted".into())
        }
        Figure::Slowed(what) => {
            let part = part(what);
            let slowed = |s: &&Seen| part(&s.measured.components).is_some_and(|p| p >= 5.0);
            Ok(study.seen.iter().filter(slowed).count() as f64 / all * 100.0)
        }
        Figure::StallsAlone => {
            let judged: Vec<Judged> = (study.seen.iter())
                .filter_map(|s| {
                    Some(Judged {
                        predicted: s.stalls,
                        measured: s.measured.components.dram?,
                    })
                })
                .collect();
            pearson(&judged).ok_or_else(|| "stalls do not vary".into())
        }
        Figure::AtTenToTwenty(end) => {
            let drawing: Vec<f64> = (study.seen.iter())
                .filter(|s| (10.0..=20.0).contains(&s.gbps))
                .map(|s| s.measured.slowdown_pct)
                .collect();
            if drawing.len() < FEW {
                let n = drawing.len();
                return Err(format!(
                    "{n} of the population's programs of one thread draw so much"
                ));
            }
            end.of(drawing.into_iter().map(Ok))
        }
    }
}

fn part(what: &str) -> fn(&Components) -> Option<f64> {
    match what {
        "cache" => |c| c.cache,
        "store" => |c| c.store,
        _ => |c| c.dram,
    }
}

/// A preset that ran on both tiers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preset {
    /// How much longer it takes on the slower one, as a share.
    slowdown: f64,
    /// The part of that which is DRAM's.
    dram: f64,
    /// What it draws from the slower one, in GB/s.
    gbps: f64,
}

impl Preset {
    /// A figure of it.
    pub(super) fn figure(&self, figure: PresetFigure) -> f64 {
        match figure {
            PresetFigure::Slowdown => self.slowdown * 100.0,
            PresetFigure::Times => 1.0 + self.slowdown,
            PresetFigure::DramShare => self.dram / self.slowdown * 100.0,
            PresetFigure::Bandwidth => self.gbps,
        }
    }
}

/// Runs a preset on both tiers.
pub(super) fn preset(on: &Opened, name: &str, seed: u64) -> Result<Preset, TierRunError> {
    let library = Workloads::builtin();
    let workload = library.get(name);
    let workload = workload.ok_or_else(|| why(format!("there is no preset `{name}`")))?;
    let options = options(seed);
    let [local, slow] =
        [&on.tiers.from, &on.tiers.to].map(|tier| run_on(&*on.testbed, workload, tier, &options));
    let (local, slow) = (local?, slow?);
    let between = Difference::between(&Run::of(&local.counters)?, &Run::of(&slow.counters)?)?;
    let dram = between.added.dram;
    Ok(Preset {
        slowdown: between.slowdown,
        dram: dram.ok_or_else(|| why("stalls by level were not counted".into()))?,
        gbps: slow.bandwidth().map_err(lacking)?.get(),
    })
}

/// The greatest slowdown by caches, as a share, of a population that runs without prefetchers.
pub(super) fn cache_without_prefetch(
    on: &Opened,
    workloads: usize,
    seed: u64,
    go_on: GoOn<'_>,
) -> Result<f64, TierRunError> {
    let options = WorkloadOptions {
        prefetch: false,
        ..options(seed)
    };
    let drawn = population(seed, workloads);
    let ran = on_both(&*on.testbed, &drawn, &on.tiers, &options, go_on);
    if ran.len() < workloads {
        return Err(TierRunError::Stopped);
    }
    let mut worst: Option<f64> = None;
    for both in ran {
        let both = both?;
        let (local, target) = (
            Run::of(&both.local.counters)?,
            Run::of(&both.target.counters)?,
        );
        if let Some(cache) = Difference::between(&local, &target)?.added.cache {
            worst = Some(worst.map_or(cache, |worst: f64| worst.max(cache)));
        }
    }
    worst.ok_or_else(|| why("stalls by level were not counted".into()))
}

fn why(text: String) -> TierRunError {
    InsightError::Calibration(text).into()
}
