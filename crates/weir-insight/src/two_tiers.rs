//! Workloads on two tiers of a machine, and what calibration and validation make of them.

use weir_lab::{Lab, LabError, Placed, WorkloadOptions, WorkloadRun};
use weir_model::insight::{ExposedModel, FitPoint, HeldOut, Micro, PrefetchForm, SlowdownModel};
use weir_model::machine::Identity;
use weir_model::tenant::Placement;
use weir_model::topology::{TierName, Topology};
use weir_model::units::Cycles;
use weir_model::workload::{Population, Workload};

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
            return Err(LabError::same_tier(from));
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

/// Runs workloads on both tiers, in order. Those that the user's stop left out are missing at the end.
///
/// # Errors
/// The machine refuses.
pub fn on_both(
    lab: &Lab<'_>,
    workloads: &[Workload],
    tiers: &Tiers,
    options: &WorkloadOptions,
) -> Result<Vec<OnBoth>, LabError> {
    let on = |workload, tier: &TierName| Placed {
        placement: Placement::Bind(tier.clone()),
        ..Placed::local(workload, options)
    };
    let asks: Vec<Placed<'_>> = (workloads.iter())
        .flat_map(|workload| [on(workload, &tiers.from), on(workload, &tiers.to)])
        .collect();
    let mut ran = lab.ask(&asks)?.into_iter();
    let both = std::iter::from_fn(|| {
        Some(OnBoth {
            local: ran.next()?,
            target: ran.next()?,
        })
    });
    Ok(both.collect())
}

/// What chance of the held-out workloads is set apart by from that of any population that a user draws.
const HELD_OUT: u64 = 0x6865_6c64_206f_7574;

/// Calibrates the slowdown model of a machine for two of its tiers: constants from the micro-workloads, intervals that
/// hold a share of workloads from so many that are drawn apart, half of them heavy on memory.
///
/// # Errors
/// The machine runs no workloads, its processor's prefetch counters are not known, no constants follow, or the user
/// stopped it.
pub fn calibrate_machine(
    lab: &Lab<'_>,
    tiers: &Tiers,
    held_out: usize,
    coverage: f64,
) -> Result<SlowdownModel, LabError> {
    let of = (lab.machine(), lab.topology());
    form_of(of.1)?;
    let options = options(lab.seed());
    let (kinds, workloads): (Vec<Micro>, Vec<Workload>) = micro::micros().into_iter().unzip();
    let ran = on_both(lab, &workloads, tiers, &options)?;
    if ran.len() < workloads.len() {
        return Err(LabError::Stopped);
    }
    let pairs: Vec<Pair> = (ran.into_iter().zip(kinds))
        .map(|(ran, micro)| ran.pair(micro))
        .collect();
    let mut model = model_of(&pairs, of, tiers)?;
    let (mut published, mut tried) = (Vec::new(), Vec::new());
    for (of, n) in Population::ALL
        .into_iter()
        .zip([held_out - held_out / 2, held_out / 2])
    {
        let apart = of.draw(lab.seed() ^ HELD_OUT, n);
        let ran = on_both(lab, &apart, tiers, &options)?;
        // A share of a population is a statement on the whole population.
        if ran.len() < apart.len() {
            return Err(LabError::Stopped);
        }
        let group: Vec<Tried> = (ran.iter())
            .map(|ran| try_out(&model, &ran.pair(Micro::Mixed)))
            .collect::<Result<_, _>>()?;
        published.push(group.iter().map(Tried::published).collect());
        tried.push(group);
    }
    model.held_out = interval(published, coverage);
    if let Some(exposed) = &mut model.exposed {
        exposed.held_out = interval(tried, coverage);
    }
    Ok(model)
}

/// How workloads run that are drawn from a seed.
pub fn options(seed: u64) -> WorkloadOptions {
    WorkloadOptions {
        seed,
        ..WorkloadOptions::default()
    }
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
fn interval(mut groups: Vec<Vec<Tried>>, coverage: f64) -> Option<HeldOut> {
    groups
        .iter_mut()
        .for_each(|group| group.retain(Tried::is_latency_bound));
    hold_out(&groups, coverage)
}

/// Latency of a lone chase on each of these tiers, in cycles of the core: what a read takes that meets no other.
///
/// # Errors
/// The machine refuses, or counts no reads.
pub fn lone_chases(
    lab: &Lab<'_>,
    tiers: &[&TierName],
    options: &WorkloadOptions,
) -> Result<Vec<Cycles>, LabError> {
    let (_, chase) = (micro::micros().into_iter().next())
        .ok_or_else(|| LabError::Failed("there is no chase to run".into()))?;
    let on = |tier: &&TierName| Placed {
        placement: Placement::Bind((*tier).clone()),
        ..Placed::local(&chase, options)
    };
    let ran = lab.ask_all(&tiers.iter().map(on).collect::<Vec<_>>())?;
    let latency = |run: &WorkloadRun| {
        let latency = Run::of(&run.counters)?.miss_latency();
        let latency = latency.map_err(|missing| LabError::Failed(missing.reason))?;
        latency.ok_or_else(|| LabError::Failed("the chase read nothing from memory".into()))
    };
    ran.iter().map(latency).collect()
}

/// Latency of a lone chase on local memory and on the slower tier.
///
/// # Errors
/// As [`lone_chases`].
pub fn unloaded(
    lab: &Lab<'_>,
    tiers: &Tiers,
    options: &WorkloadOptions,
) -> Result<[Cycles; 2], LabError> {
    let found = lone_chases(lab, &[&tiers.from, &tiers.to], options)?;
    found.try_into().map_err(|_| LabError::Stopped)
}
