//! A scenario under a controller, without control, and with each side alone.

use serde::{Deserialize, Serialize};
use weir_model::machine::{MachineError, Testbed};
use weir_model::topology::{TierKind, Topology};
use weir_model::units::{GbPerSec, Nanos};

use crate::control_loop::{ControlLoop, Step, run_phases, windows};
use crate::controller::Controller;
use crate::document::{PhaseSummary, SideSummary, SteerSummary};
use crate::readings::Role;
use crate::record::{TierNames, WindowRecord};
use crate::registry::Policy;
use crate::steered::{Actuators, Phase, Steered, SteeredTenant};

/// How a scenario runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// The window of the controller.
    pub window: Nanos,
    /// The period of CPU quotas.
    pub quota_period: Nanos,
    /// Seed of every random choice.
    pub seed: u64,
    /// The actuators of the tenants.
    pub actuators: Actuators,
    /// Whether decisions are only recorded.
    pub dry: bool,
}

/// The result of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRun {
    /// Its windows.
    pub windows: Vec<WindowRecord>,
    /// Its phases.
    pub phases: Vec<PhaseSummary>,
    /// All together.
    pub summary: SteerSummary,
}

/// Windows that measure a side alone, or without control; the first is not counted.
const REFERENCE: usize = 4;

/// Windows that [`run_scenario`] observes.
pub fn length(phases: &[Phase], window: Nanos) -> usize {
    windows(phases, window) + phases.len() * 3 * REFERENCE
}

/// Runs phases under a controller. `go_on` is called before each window with the number of windows that are
/// done, of [`length`]; if it returns false, the results so far are returned.
///
/// # Errors
/// The machine cannot run the tenants, or failed while they ran.
pub fn run_scenario(
    testbed: &dyn Testbed,
    phases: &[Phase],
    controller: &mut dyn Controller,
    options: &RunOptions,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<ScenarioRun, MachineError> {
    let mut machine = testbed.open(options.seed)?;
    let tiers = tier_names(machine.topology());
    let steered = Steered::new(machine.as_mut(), phases.to_vec(), options.quota_period);
    let mut steered = steered.with_actuators(&options.actuators).dry(options.dry);
    let whole = windows(phases, options.window);
    let records = steps(&mut steered, controller, whole, options, &tiers, go_on);
    steered.release();
    let records = records?;

    let mut summaries = Vec::new();
    let mut from = Nanos(0.0);
    for (k, phase) in phases.iter().enumerate() {
        let to = from + phase.lasts;
        let within = |r: &&WindowRecord| {
            let middle = r.t_s - 0.5 * r.window_s;
            (from.as_secs()..to.as_secs()).contains(&middle)
        };
        let seen: Vec<&WindowRecord> = records.iter().filter(within).collect();
        if seen.is_empty() || !go_on(whole + k * 3 * REFERENCE) {
            break;
        }
        let mut summary = PhaseSummary {
            from_s: from.as_secs(),
            to_s: seen[seen.len() - 1].t_s,
            ..PhaseSummary::default()
        };
        let sides = [Role::Protected, Role::Restrained];
        match sides.map(|role| alone(testbed, phase, role, options)) {
            [Err(MachineError::Interrupted), _] | [_, Err(MachineError::Interrupted)] => break,
            [protected, restrained] => {
                summary.protected = protected?;
                summary.restrained = restrained?;
            }
        }
        judge(&mut summary, &seen);
        summaries.push(summary);
        from = to;
    }
    Ok(ScenarioRun {
        summary: together(&summaries),
        windows: records,
        phases: summaries,
    })
}

/// The names of a machine's tiers in records.
pub fn tier_names(topology: &Topology) -> TierNames {
    let slow: Vec<&str> = (topology.tiers.iter())
        .filter(|tier| tier.kind == TierKind::Cxl)
        .map(|tier| tier.name.as_str())
        .collect();
    TierNames {
        fast: "dram".into(),
        slow: if slow.is_empty() {
            "cxl".into()
        } else {
            slow.join("+")
        },
    }
}

fn steps(
    steered: &mut Steered<'_>,
    controller: &mut dyn Controller,
    whole: usize,
    options: &RunOptions,
    tiers: &TierNames,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<Vec<WindowRecord>, MachineError> {
    let tenants = steered.tenants().to_vec();
    let mut control_loop = ControlLoop::new(steered, controller, options.window);
    let mut records = Vec::new();
    for done in 0..whole {
        if !go_on(done) {
            break;
        }
        match control_loop.step() {
            Err(MachineError::Interrupted) => break,
            step => records.push(WindowRecord::of(&step?, &tenants, tiers)),
        }
    }
    Ok(records)
}

/// One side of a phase: its bandwidth alone, and with the other side without limits.
fn alone(
    testbed: &dyn Testbed,
    phase: &Phase,
    role: Role,
    options: &RunOptions,
) -> Result<SideSummary, MachineError> {
    let of_role = |steered: &&SteeredTenant| steered.role == role;
    let names: Vec<String> = (phase.parties.iter().filter(of_role))
        .map(|steered| steered.tenant.name.clone())
        .collect();
    if names.is_empty() {
        return Ok(SideSummary::default());
    }
    let only = phase.parties.iter().filter(of_role).cloned().collect();
    let bandwidth = |parties: Vec<SteeredTenant>| -> Result<GbPerSec, MachineError> {
        let mine: Vec<usize> = (0..parties.len())
            .filter(|&i| parties[i].role == role)
            .collect();
        let phase = Phase {
            lasts: options.window * REFERENCE as f64,
            parties,
        };
        let mut machine = testbed.open(options.seed)?;
        let mut free = Policy::free();
        let steps = run_phases(
            machine.as_mut(),
            free.as_mut(),
            &[phase],
            options.window,
            options.quota_period,
        )?;
        let drew = |step: &Step| mine.iter().map(|&i| step.drew(i)).sum::<GbPerSec>();
        let steady = &steps[1..];
        Ok(steady.iter().map(drew).sum::<GbPerSec>() * (1.0 / steady.len() as f64))
    };
    Ok(SideSummary {
        tenants: names,
        alone_gbps: Some(bandwidth(only)?),
        free_gbps: Some(bandwidth(phase.parties.clone())?),
        ..SideSummary::default()
    })
}

/// A phase has settled within this many points of alone.
const SETTLED: f64 = 3.0;

/// The results of a phase's windows.
fn judge(phase: &mut PhaseSummary, seen: &[&WindowRecord]) {
    let shares = [
        percent(&phase.protected, seen, Role::Protected),
        percent(&phase.restrained, seen, Role::Restrained),
    ];
    let half = seen.len() / 2;
    let near = |series: &[f64]| {
        let end = mean(&series[half..]);
        let far = |&x: &f64| (x - end).abs() > SETTLED;
        series.iter().rposition(far).map_or(0, |last| last + 1)
    };
    let settled = match &shares {
        [Some(fast), Some(slow)] => Some(near(fast).max(near(slow))).filter(|&k| k < seen.len()),
        _ => None,
    };
    let until = |k: usize| match k {
        0 => 0.0,
        k => seen[k - 1].t_s - phase.from_s,
    };
    phase.settle_s = settled.map(until);
    let from = settled.unwrap_or(half);
    for (side, series) in [&mut phase.protected, &mut phase.restrained]
        .into_iter()
        .zip(&shares)
    {
        let (Some(alone), Some(series)) = (side.alone_gbps, series) else {
            continue;
        };
        let end = mean(&series[half..]);
        let swing = series[half..].iter().map(|x| (x - end).abs());
        let settled = mean(&series[from..]);
        side.gbps = Some(alone * (mean(series) / 100.0));
        side.settled_gbps = Some(alone * (settled / 100.0));
        side.settled_pct_of_alone = Some(settled);
        side.swing_pct = Some(swing.fold(0.0, f64::max));
    }
    if phase.protected.tenants.is_empty() {
        let held = |r: &&WindowRecord| r.quota_pct < 100.0;
        let last = seen.iter().rposition(held).map_or(0, |last| last + 1);
        phase.release_s = (last < seen.len()).then(|| until(last));
    }
}

/// Bandwidth of a side in each window, in percent of alone; `None` if one window is not known.
fn percent(side: &SideSummary, seen: &[&WindowRecord], role: Role) -> Option<Vec<f64>> {
    let alone = side.alone_gbps.filter(|g| g.get() > 0.0)?;
    seen.iter()
        .map(|record| Some(100.0 * record.drew(role)?.get() / alone.get()))
        .collect()
}

fn mean(series: &[f64]) -> f64 {
    series.iter().sum::<f64>() / series.len().max(1) as f64
}

fn together(phases: &[PhaseSummary]) -> SteerSummary {
    let both: Vec<&PhaseSummary> = (phases.iter())
        .filter(|p| !p.protected.tenants.is_empty() && !p.restrained.tenants.is_empty())
        .collect();
    let longest = |times: Vec<Option<f64>>| {
        let known: Option<Vec<f64>> = times.into_iter().collect();
        known?.into_iter().reduce(f64::max)
    };
    let settled: fn(&SideSummary) -> Option<f64> = |side| side.settled_pct_of_alone;
    let free = |side: &SideSummary| Some(100.0 * side.free_gbps?.get() / side.alone_gbps?.get());
    type Side = fn(&PhaseSummary) -> &SideSummary;
    let weighted = |side: Side, percent: fn(&SideSummary) -> Option<f64>| {
        let shares: Option<Vec<(f64, f64)>> = (both.iter())
            .map(|p| Some((percent(side(p))?, p.to_s - p.from_s)))
            .collect();
        let shares = shares.filter(|s| !s.is_empty())?;
        let time: f64 = shares.iter().map(|(_, time)| time).sum();
        Some(shares.iter().map(|(x, time)| x * time).sum::<f64>() / time)
    };
    let unprotected = phases.iter().filter(|p| p.protected.tenants.is_empty());
    SteerSummary {
        settle_s: longest(both.iter().map(|p| p.settle_s).collect()),
        protected_pct_of_solo: weighted(|p| &p.protected, settled),
        restrained_pct_of_solo: weighted(|p| &p.restrained, settled),
        protected_pct_without_limits: weighted(|p| &p.protected, free),
        restrained_pct_without_limits: weighted(|p| &p.restrained, free),
        release_s: longest(unprotected.map(|p| p.release_s).collect()),
    }
}
