//! Slowdown of a population and of presets.

use serde::{Deserialize, Serialize};
use weir_lab::{Ask, Lab, LabError, WorkloadOptions};
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::Components;
use weir_model::workload::{Workload, Workloads, population};

use super::tiers;
use crate::breakdown::Difference;
use crate::documents::{Accuracy, AccuracyLine, MeasuredSlowdown, Predicted};
use crate::forecast::{accuracy, compare};
use crate::score::{Judged, pearson};
use crate::two_tiers::{OnBoth, calibrate_machine, on_both, options};
use crate::{InsightError, Run};

/// Workloads that stand for a paper's.
const WORKLOADS: usize = 300;

/// A population that is predicted and measured.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Population {
    pub to: &'static str,
}

/// What was predicted and measured of it.
#[derive(Serialize, Deserialize)]
pub(super) struct Study {
    accuracy: Accuracy,
    measured: Vec<Measured>,
}

/// One workload of it.
#[derive(Serialize, Deserialize)]
struct Measured {
    slowdown: MeasuredSlowdown,
    /// Share of cycles stalled on misses, on local memory.
    stalls: f64,
    /// Bandwidth on local memory, in GB/s.
    gbps: f64,
}

/// The population on both tiers.
fn run_population(
    lab: &Lab<'_>,
    to: &str,
    options: &WorkloadOptions,
) -> Result<Vec<OnBoth>, LabError> {
    let drawn = population(lab.seed(), WORKLOADS);
    let ran = on_both(lab, &drawn, &tiers(lab, to)?, options)?;
    match ran.len() < WORKLOADS {
        true => Err(LabError::Stopped),
        false => Ok(ran),
    }
}

impl Ask for Population {
    type Got = Study;
    const KIND: &'static str = "predicted population";
    const ALL_THREADS: bool = true;

    fn ask(&self, lab: &Lab<'_>) -> Result<Study, LabError> {
        // Intervals are not needed.
        let model = calibrate_machine(lab, &tiers(lab, self.to)?, 0, 0.9)?;
        let (mut predictions, mut measured) = (Vec::new(), Vec::new());
        for OnBoth { local, target } in run_population(lab, self.to, &options(lab.seed()))? {
            let predicted = compare(&model, &local.workload, &local.counters, &target.counters);
            let predicted: Predicted = predicted.map_err(LabError::from)?;
            let Some(slowdown) = predicted.measured else {
                continue;
            };
            let counted = Run::of(&local.counters)?;
            measured.push(Measured {
                slowdown,
                stalls: counted.share(Counter::StallsL3Miss).map_err(lacking)?,
                gbps: local.bandwidth().map_err(lacking)?.get(),
            });
            predictions.push(predicted);
        }
        let accuracy = accuracy(&predictions).ok_or_else(|| failed("no workload was drawn"))?;
        Ok(Study { accuracy, measured })
    }
}

fn lacking(why: Unavailable) -> LabError {
    failed(why.reason)
}

pub(super) fn failed(why: impl Into<String>) -> LabError {
    InsightError::Calibration(why.into()).into()
}

/// The fewest workloads that a spread is given of.
const FEW: usize = 5;

const NOT_COUNTED: &str = "causes were not all counted";

impl Study {
    /// How good predictions are of a component or of the total, as [`accuracy`] names them.
    pub(super) fn line(&self, of: &str) -> Option<&AccuracyLine> {
        self.accuracy.lines.iter().find(|line| line.what == of)
    }

    /// A figure of such a line.
    pub(super) fn quality(
        &self,
        of: &str,
        read: fn(&AccuracyLine) -> Option<f64>,
    ) -> Result<f64, String> {
        let line = self.line(of);
        let line = line.ok_or_else(|| format!("there are no predictions of {of}"))?;
        read(line).ok_or_else(|| format!("predictions of {of} do not vary"))
    }

    /// Percent of the workloads whose causes account for their slowdown within 5 points.
    pub(super) fn explained_pct(&self) -> Result<f64, String> {
        self.accuracy
            .explained_pct
            .ok_or_else(|| NOT_COUNTED.into())
    }

    /// Points by which the causes miss the slowdown, for all but 5 % of the workloads.
    pub(super) fn unexplained(&self) -> Result<f64, String> {
        let off = self
            .measured
            .iter()
            .filter_map(|m| Some(m.slowdown.components.other?.abs()));
        let mut off: Vec<f64> = off.collect();
        off.sort_by(f64::total_cmp);
        let rank = (off.len() as f64 * 0.95).ceil() as usize;
        let at_rank = rank.checked_sub(1).and_then(|rank| off.get(rank));
        at_rank.copied().ok_or_else(|| NOT_COUNTED.into())
    }

    /// Percent of the workloads that lose at least 5 points to a component.
    pub(super) fn slowed_pct(&self, component: fn(&Components) -> Option<f64>) -> f64 {
        let parts = self
            .measured
            .iter()
            .map(|m| component(&m.slowdown.components));
        let slowed = parts.filter(|part| part.is_some_and(|part| part >= 5.0));
        slowed.count() as f64 / self.measured.len() as f64 * 100.0
    }

    /// Pearson's correlation of stalls on misses, as they are, with the slowdown by DRAM.
    pub(super) fn stalls_alone(&self) -> Result<f64, String> {
        let judged = self.measured.iter().filter_map(|m| {
            Some(Judged {
                predicted: m.stalls,
                measured: m.slowdown.components.dram?,
            })
        });
        pearson(&judged.collect::<Vec<_>>()).ok_or_else(|| "stalls do not vary".into())
    }

    /// The least or greatest slowdown in percent, of the workloads that draw 10 to 20 GB/s.
    pub(super) fn drawing_10_to_20(&self, join: fn(f64, f64) -> f64) -> Result<f64, String> {
        let drawing = self
            .measured
            .iter()
            .filter(|m| (10.0..=20.0).contains(&m.gbps));
        let slowdowns: Vec<f64> = drawing.map(|m| m.slowdown.slowdown_pct).collect();
        let n = slowdowns.len();
        let joined = slowdowns.into_iter().reduce(join).filter(|_| n >= FEW);
        joined.ok_or_else(|| format!("{n} of the population's programs of one thread draw so much"))
    }
}

/// A preset that runs on both tiers.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Preset {
    pub name: &'static str,
    pub to: &'static str,
}

/// What it did.
#[derive(Serialize, Deserialize)]
pub(super) struct PresetRun {
    /// How much longer it takes on the slower one, as a share.
    slowdown: f64,
    /// The part of that which is DRAM's.
    dram: f64,
    /// What it draws from the slower one, in GB/s.
    pub gbps: f64,
}

impl PresetRun {
    /// How much longer it takes, in percent.
    pub(super) fn slowdown_pct(&self) -> f64 {
        self.slowdown * 100.0
    }

    /// How many times as long it takes.
    pub(super) fn times(&self) -> f64 {
        1.0 + self.slowdown
    }

    /// Slowdown by DRAM in percent of all slowdown.
    pub(super) fn dram_share_pct(&self) -> f64 {
        self.dram / self.slowdown * 100.0
    }
}

impl Ask for Preset {
    type Got = PresetRun;
    const KIND: &'static str = "preset on two tiers";

    fn ask(&self, lab: &Lab<'_>) -> Result<PresetRun, LabError> {
        let library = Workloads::builtin();
        let workload = library.get(self.name);
        let workload =
            workload.ok_or_else(|| failed(format!("there is no preset `{}`", self.name)))?;
        let tiers = tiers(lab, self.to)?;
        let one = std::slice::from_ref(workload);
        let ran = on_both(lab, one, &tiers, &options(lab.seed()))?;
        let ran = ran.into_iter().next().ok_or(LabError::Stopped)?;
        let (local, slow) = (ran.local, ran.target);
        let between = difference(&local.counters, &slow.counters)?;
        let dram = between.added.dram;
        Ok(PresetRun {
            slowdown: between.slowdown,
            dram: dram.ok_or_else(|| failed("stalls by level were not counted"))?,
            gbps: slow.bandwidth().map_err(lacking)?.get(),
        })
    }
}

fn difference(local: &CounterSet, slow: &CounterSet) -> Result<Difference, LabError> {
    Ok(Difference::between(&Run::of(local)?, &Run::of(slow)?)?)
}

/// The greatest slowdown by caches, as a share, of a population that runs without prefetchers.
#[derive(Debug, Clone, Serialize)]
pub(super) struct NoPrefetch {
    pub to: &'static str,
}

impl Ask for NoPrefetch {
    type Got = f64;
    const KIND: &'static str = "population without prefetchers";
    const ALL_THREADS: bool = true;

    fn ask(&self, lab: &Lab<'_>) -> Result<f64, LabError> {
        let options = WorkloadOptions {
            prefetch: false,
            ..options(lab.seed())
        };
        let mut worst: Option<f64> = None;
        for OnBoth { local, target } in run_population(lab, self.to, &options)? {
            let cache = difference(&local.counters, &target.counters)?.added.cache;
            worst = worst.into_iter().chain(cache).reduce(f64::max);
        }
        worst.ok_or_else(|| failed("stalls by level were not counted"))
    }
}

/// How the presets' prefetches from memory change from local memory to a slower tier.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PrefetchShift {
    pub to: &'static str,
}

/// Of each preset that prefetches, for 1000 instructions: the lines that the L2 prefetchers bring less from
/// memory, and those that the L1 prefetchers bring more.
pub(super) type Shifts = Vec<(f64, f64)>;

impl Ask for PrefetchShift {
    type Got = Shifts;
    const KIND: &'static str = "prefetches of presets on two tiers";
    const ALL_THREADS: bool = true;

    fn ask(&self, lab: &Lab<'_>) -> Result<Shifts, LabError> {
        let presets: Vec<Workload> = (Workloads::builtin().list().iter())
            .map(|preset| Workload {
                threads: 1,
                ..preset.clone()
            })
            .collect();
        let ran = on_both(lab, &presets, &tiers(lab, self.to)?, &options(lab.seed()))?;
        if ran.len() < presets.len() {
            return Err(LabError::Stopped);
        }
        let shift = |OnBoth { local, target }: &OnBoth| {
            let (near, far) = (
                from_memory(&local.counters)?,
                from_memory(&target.counters)?,
            );
            Ok((near.1 - far.1, far.0 - near.0))
        };
        ran.iter().map(shift).collect()
    }
}

/// Lines that the prefetchers of L1 and of L2 bring from memory, for 1000 instructions.
fn from_memory(counters: &CounterSet) -> Result<(f64, f64), LabError> {
    let run = Run::of(counters)?;
    let missed = |all, hits| -> Result<f64, LabError> {
        let of = |counter| run.count(counter).map_err(lacking);
        Ok((of(all)? - of(hits)?) * 1e3 / run.instructions().map_err(lacking)?)
    };
    Ok((
        missed(Counter::HwpfL1d, Counter::HwpfL1dL3Hit)?,
        missed(Counter::HwpfL2, Counter::HwpfL2L3Hit)?,
    ))
}

/// Pearson's correlation of what the L2 prefetchers bring less with what those of L1 bring more.
pub(super) fn handed_over(shifts: &Shifts) -> Result<f64, String> {
    let judged: Vec<Judged> = (shifts.iter())
        .map(|&(predicted, measured)| Judged {
            predicted,
            measured,
        })
        .collect();
    pearson(&judged).ok_or_else(|| "no prefetches change".into())
}
