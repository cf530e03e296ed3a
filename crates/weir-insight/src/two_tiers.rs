//! Workloads on two tiers of a machine, and what calibration and validation make of them.

use weir_lab::{LabError, WorkloadOptions, WorkloadRun, run_workload, side_by_side};
use weir_model::insight::{ExposedModel, FitPoint, HeldOut, Micro, PrefetchForm, SlowdownModel};
use weir_model::machine::{Identity, MachineError, Testbed};
use weir_model::tenant::Placement;
use weir_model::topology::{TierName, Topology};
use weir_model::units::Cycles;
use weir_model::workload::{Workload, population};

use crate::slowdown::predict::{Tried, hold_out, try_out};
use crate::slowdown::{Pair, calibrate};
use crate::{InsightError, Run, micro};

/// The tiers that workloads run on: counted on one, slower on the other.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Tiers {
    /// Where counters are read: local DRAM.
    pub from: TierName,
    /// Where slowdown is asked for.
    pub to: TierName,
}

impl Tiers {
    /// Two tiers of a machine.
    ///
    /// # Errors
    /// The machine lacks one of them, or they are the same.
    pub fn of(topology: &Topology, from: &TierName, to: &TierName) -> Result<Self, LabError> {
        for name in [from, to] {
            if topology.tier(name).is_none() {
                return Err(LabError::unknown_tier(name, topology));
            }
        }
        if from == to {
            return Err(LabError::Nothing(format!(
                "{from} is not slower than itself; name another tier"
            )));
        }
        Ok(Self {
            from: from.clone(),
            to: to.clone(),
        })
    }
}

/// A workload that ran on both.
#[derive(Debug, Clone, PartialEq)]
pub struct OnBoth {
    /// Counted on the first.
    pub local: WorkloadRun,
    /// Counted on the other.
    pub target: WorkloadRun,
}

impl OnBoth {
    /// As calibration and prediction take it.
    pub fn pair(&self, micro: Micro) -> Pair {
        Pair {
            name: self.local.workload.clone(),
            micro,
            local: self.local.counters.clone(),
            target: self.target.counters.clone(),
        }
    }
}

/// Asked after each workload, from the threads that run them: with how many there are, whether to go on.
pub type GoOn<'a> = &'a (dyn Fn(usize) -> bool + Sync);

/// Runs workloads on both tiers, as many side by side as the testbed allows, in order. Those that were
/// not begun before `go_on` said no are missing at the end.
pub fn on_both(
    testbed: &dyn Testbed,
    workloads: &[Workload],
    tiers: &Tiers,
    options: &WorkloadOptions,
    go_on: GoOn<'_>,
) -> Vec<Result<OnBoth, MachineError>> {
    side_by_side(testbed.parallelism(), workloads.len(), &|index| {
        let workload = workloads.get(index)?;
        let on = |tier: &TierName| run_on(testbed, workload, tier, options);
        let both = || {
            Ok(OnBoth {
                local: on(&tiers.from)?,
                target: on(&tiers.to)?,
            })
        };
        go_on(workloads.len()).then(both)
    })
}

/// What chance of the held-out workloads is set apart by from that of any population that a user draws.
const HELD_OUT: u64 = 0x6865_6c64_206f_7574;

/// How a machine is calibrated.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrateOptions {
    /// How workloads run.
    pub run: WorkloadOptions,
    /// Workloads that no constant is fitted to, and that intervals are made from.
    pub held_out: usize,
    /// The share of workloads that intervals are to hold.
    pub coverage: f64,
}

impl Default for CalibrateOptions {
    fn default() -> Self {
        Self {
            run: WorkloadOptions::default(),
            held_out: 100,
            coverage: 0.9,
        }
    }
}

/// Why there is no calibration.
#[derive(Debug, thiserror::Error)]
pub enum TierRunError {
    /// The machine refused.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The counters tell nothing.
    #[error(transparent)]
    Insight(#[from] InsightError),
    /// It was stopped.
    #[error("stopped before the micro-workloads were through")]
    Stopped,
}

/// Calibrates the slowdown model of a machine for two of its tiers: constants from the micro-workloads,
/// intervals from a population that is drawn apart.
///
/// # Errors
/// The machine runs no workloads or has not these tiers, its processor's prefetch counters are not known,
/// or no constants follow.
pub fn calibrate_machine(
    testbed: &dyn Testbed,
    (machine, topology): (&Identity, &Topology),
    tiers: &Tiers,
    options: &CalibrateOptions,
    go_on: GoOn<'_>,
) -> Result<SlowdownModel, TierRunError> {
    form_of(topology)?;
    let (kinds, workloads): (Vec<Micro>, Vec<Workload>) = micro::micros().into_iter().unzip();
    let ran = on_both(testbed, &workloads, tiers, &options.run, go_on);
    if ran.len() < workloads.len() {
        return Err(TierRunError::Stopped);
    }
    let pairs: Vec<Pair> = (ran.into_iter().zip(kinds))
        .map(|(ran, micro)| Ok(ran?.pair(micro)))
        .collect::<Result<_, MachineError>>()?;
    let mut model = model_of(&pairs, (machine, topology), tiers)?;
    let apart = population(options.run.seed ^ HELD_OUT, options.held_out);
    let tried = validate(testbed, &model, &apart, tiers, &options.run, go_on)?;
    let published: Vec<Tried> = tried.iter().map(Tried::published).collect();
    model.held_out = interval(&published, options.coverage);
    if let Some(exposed) = &mut model.exposed {
        exposed.held_out = interval(&tried, options.coverage);
    }
    Ok(model)
}

/// Which prefetch counters a processor has.
///
/// # Errors
/// They are not known.
pub fn form_of(topology: &Topology) -> Result<PrefetchForm, InsightError> {
    PrefetchForm::of(&topology.processor).ok_or_else(|| {
        let why = format!(
            "the slowdown model reads prefetch counters, and those of `{}` are not known",
            topology.processor
        );
        InsightError::Calibration(why)
    })
}

/// The model that follows from micro-workloads that ran on both tiers of a machine. Nothing was held out.
///
/// # Errors
/// The processor's prefetch counters are not known, or no constants follow.
pub fn model_of(
    pairs: &[Pair],
    (machine, topology): (&Identity, &Topology),
    tiers: &Tiers,
) -> Result<SlowdownModel, InsightError> {
    let form = form_of(topology)?;
    let found = calibrate(pairs, form)?;
    let mut notes = found.notes;
    notes.extend(misfit(&found.fitted_on));
    Ok(SlowdownModel {
        schema: SlowdownModel::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        machine: machine.clone(),
        processor: topology.processor.clone(),
        from: tiers.from.clone(),
        to: tiers.to.clone(),
        prefetch: form,
        constants: found.constants,
        exposed: found.exposed.map(|constants| ExposedModel {
            constants,
            late: found.late,
            held_out: None,
        }),
        unloaded: found.unloaded,
        aol_range: found.aol_range,
        fitted_on: found.fitted_on,
        held_out: None,
        rejected: found.rejected,
        interleave: None,
        notes,
    })
}

/// Constants that miss a micro-workload by more than this, in points of slowdown, are said to.
const MISFIT: f64 = 5.0;

/// The micro-workload that the constants miss most, if by too much.
fn misfit(fitted: &[FitPoint]) -> Option<String> {
    let off = |point: &FitPoint| point.fitted_pct - point.slowdown_pct;
    let worst = fitted
        .iter()
        .max_by(|a, b| off(a).abs().total_cmp(&off(b).abs()))?;
    (off(worst).abs() > MISFIT).then(|| {
        format!(
            "the constants miss the micro-workload `{}` by {:+.1} points of slowdown: what resembles it is \
             predicted no better",
            worst.name,
            off(worst)
        )
    })
}

/// Intervals from workloads that wait for latency, which is what the model is of.
fn interval(tried: &[Tried], coverage: f64) -> Option<HeldOut> {
    let latency_bound: Vec<Tried> = tried
        .iter()
        .filter(|t| t.is_latency_bound())
        .cloned()
        .collect();
    hold_out(&latency_bound, coverage)
}

/// Predicts workloads from their local run and measures them on the other tier. One that the machine
/// refuses, or whose counters tell nothing, is an error: a share of a population is one of all of it.
///
/// # Errors
/// See above.
pub fn validate(
    testbed: &dyn Testbed,
    model: &SlowdownModel,
    workloads: &[Workload],
    tiers: &Tiers,
    options: &WorkloadOptions,
    go_on: GoOn<'_>,
) -> Result<Vec<Tried>, TierRunError> {
    let ran = on_both(testbed, workloads, tiers, options, go_on);
    ran.into_iter()
        .map(|ran| Ok(try_out(model, &ran?.pair(Micro::Mixed))?))
        .collect()
}

/// Runs a workload with its pages on one tier.
///
/// # Errors
/// The machine refuses.
pub fn run_on(
    testbed: &dyn Testbed,
    workload: &Workload,
    tier: &TierName,
    options: &WorkloadOptions,
) -> Result<WorkloadRun, MachineError> {
    run_workload(testbed, workload, &Placement::Bind(tier.clone()), options)
}

/// Latency of a lone chase on a tier, in cycles of the core: what a read takes that meets no other.
///
/// # Errors
/// The machine refuses, or counts no reads.
pub fn lone_chase(
    testbed: &dyn Testbed,
    tier: &TierName,
    options: &WorkloadOptions,
) -> Result<Cycles, TierRunError> {
    let (_, chase) = (micro::micros().into_iter().next())
        .ok_or_else(|| InsightError::Calibration("there is no chase to run".into()))?;
    let run = run_on(testbed, &chase, tier, options)?;
    let latency = Run::of(&run.counters)?.offcore_latency();
    let why = |why: String| InsightError::Calibration(why);
    match latency.map_err(|missing| why(missing.reason))? {
        Some(latency) => Ok(latency),
        None => Err(why("the chase read nothing from memory".into()).into()),
    }
}
