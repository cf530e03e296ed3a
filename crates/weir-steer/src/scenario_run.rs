//! A scenario under a controller, without control, and with each side alone.

use serde::{Deserialize, Serialize};
use weir_model::machine::{MachineError, Testbed};
use weir_model::tenant::Work;
use weir_model::topology::{TierKind, Topology};
use weir_model::units::{GbPerSec, Nanos};

use crate::control_loop::{ControlLoop, Step, metric, windows};
use crate::controller::Controller;
use crate::document::{PhaseSummary, ProgramSummary, SideSummary, SteerSummary};
use crate::own::Done;
use crate::readings::Role;
use crate::record::{self, TierNames, WindowRecord};
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
    let tenants = steered.tenants().to_vec();
    steered.release();
    let (records, done) = records?;

    let mut summaries = Vec::new();
    let mut from = Nanos(0.0);
    for (k, phase) in phases.iter().enumerate() {
        let to = from + phase.lasts;
        let within = |r: &&WindowRecord| {
            let middle = r.t_s - 0.5 * r.window_s;
            (from.as_secs()..to.as_secs()).contains(&middle)
        };
        let first = records.iter().position(|record| within(&record));
        let seen: Vec<&WindowRecord> = records.iter().filter(within).collect();
        if seen.is_empty() || !go_on(whole + k * 3 * REFERENCE) {
            break;
        }
        let mut summary = PhaseSummary {
            from_s: from.as_secs(),
            to_s: seen[seen.len() - 1].t_s,
            ..PhaseSummary::default()
        };
        let alone_errors = match alone_and_free(testbed, phase, options) {
            Err(MachineError::Interrupted) => break,
            found => {
                let [protected, restrained] = found?;
                summary.programs = [protected.programs, restrained.programs].concat();
                (summary.protected, summary.restrained) = (protected.summary, restrained.summary);
                [protected.error, restrained.error]
            }
        };
        let settled = judge(&mut summary, &seen, &alone_errors);
        let settled = first.unwrap_or(0) + settled..first.unwrap_or(0) + seen.len();
        for program in &mut summary.programs {
            let own = tenants
                .iter()
                .position(|tenant| tenant.name == program.tenant);
            let windows = done.get(settled.clone()).unwrap_or(&[]).iter();
            let windows = own.map(|own| windows.filter_map(move |done| done.get(own)?.as_ref()));
            program.settled = windows.and_then(Done::together);
        }
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

/// What each tenant did in one window; `None` for streams.
type WorkDone = Vec<Option<Done>>;

fn steps(
    steered: &mut Steered<'_>,
    controller: &mut dyn Controller,
    whole: usize,
    options: &RunOptions,
    tiers: &TierNames,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<(Vec<WindowRecord>, Vec<WorkDone>), MachineError> {
    let tenants = steered.tenants().to_vec();
    let mut control_loop = ControlLoop::new(steered, controller, options.window);
    let (mut records, mut all) = (Vec::new(), Vec::new());
    for done in 0..whole {
        if !go_on(done) {
            break;
        }
        match control_loop.step() {
            Err(MachineError::Interrupted) => break,
            step => {
                let step = step?;
                records.push(WindowRecord::of(&step, &tenants, tiers));
                all.push(step.readings.done);
            }
        }
    }
    Ok((records, all))
}

/// A side of a phase, and its programs.
#[derive(Default)]
struct Side {
    summary: SideSummary,
    /// The sampling error of its bandwidth alone, as a share of it.
    error: Option<f64>,
    programs: Vec<ProgramSummary>,
}

/// Both sides of a phase: their bandwidth alone, and together without limits, and so their programs.
fn alone_and_free(
    testbed: &dyn Testbed,
    phase: &Phase,
    options: &RunOptions,
) -> Result<[Side; 2], MachineError> {
    let free = reference(testbed, phase.participants.clone(), options)?;
    Ok([
        alone(testbed, phase, Role::Protected, options, &free)?,
        alone(testbed, phase, Role::Restrained, options, &free)?,
    ])
}

/// One side of a phase: its bandwidth alone, and that of `free`, the windows of both sides.
fn alone(
    testbed: &dyn Testbed,
    phase: &Phase,
    role: Role,
    options: &RunOptions,
    free: &[Step],
) -> Result<Side, MachineError> {
    let of_role = |steered: &&SteeredTenant| steered.role == role;
    let names: Vec<String> = (phase.participants.iter().filter(of_role))
        .map(|steered| steered.tenant.name.clone())
        .collect();
    if names.is_empty() {
        return Ok(Side::default());
    }
    let only: Vec<SteeredTenant> = phase.participants.iter().filter(of_role).cloned().collect();
    let mine = |participants: &[SteeredTenant]| -> Vec<usize> {
        (0..participants.len())
            .filter(|&i| participants[i].role == role)
            .collect()
    };
    let (alone_is, free_is) = (mine(&only), mine(&phase.participants));
    let by_itself = reference(testbed, only, options)?;
    let bandwidth = |steps: &[Step], mine: &[usize]| {
        let drew = |step: &Step| mine.iter().map(|&i| step.drew(i)).sum::<GbPerSec>();
        steps.iter().map(drew).sum::<GbPerSec>() * (1.0 / steps.len() as f64)
    };
    let (alone_gbps, free_gbps) = (bandwidth(&by_itself, &alone_is), bandwidth(free, &free_is));
    let error = error_of(&by_itself, &alone_is, alone_gbps);
    let free_error = both(error, error_of(free, &free_is, free_gbps));
    let each = names.iter().zip(alone_is.iter().zip(&free_is));
    let programs = each.filter_map(|(tenant, (&own, &among))| {
        Some(ProgramSummary {
            tenant: tenant.clone(),
            role,
            alone: Some(metric(&by_itself, own)?),
            free: metric(free, among),
            settled: None,
        })
    });
    let programs = programs.collect();
    let summary = SideSummary {
        tenants: names,
        alone_gbps: Some(alone_gbps),
        free_gbps: Some(free_gbps),
        free_error_pct: free_error.map(|error| error * percent_of(free_gbps, alone_gbps)),
        ..SideSummary::default()
    };
    Ok(Side {
        summary,
        error,
        programs,
    })
}

/// The sampling error of the mean bandwidth of some tenants over steps, as a share of it; `None` if it is not known.
fn error_of(steps: &[Step], mine: &[usize], mean: GbPerSec) -> Option<f64> {
    let squares: Option<f64> = (steps.iter())
        .map(|step| {
            let sampled = step.readings.sampled.as_ref()?;
            let errors = (mine.iter()).map(|&i| Some(step.drew(i) * (*sampled.tenants.get(i)?)?));
            Some(record::together(errors)?.get().powi(2))
        })
        .sum();
    share(squares?.sqrt() / steps.len().max(1) as f64, mean)
}

/// An error as a share of a bandwidth that is not 0.
fn share(error: f64, of: GbPerSec) -> Option<f64> {
    (of.get() > 0.0).then(|| error / of.get())
}

/// The relative error of a quotient of two figures with these.
fn both(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one?.hypot(other?))
}

fn percent_of(part: GbPerSec, whole: GbPerSec) -> f64 {
    match whole.get() > 0.0 {
        true => 100.0 * part.get() / whole.get(),
        false => 0.0,
    }
}

/// Requests that a program answers in a reference; p99 needs a thousand.
const ANSWERED: u64 = 1_200;
/// The most windows for that.
const MOST: usize = 400;

/// Windows of tenants without limits, without the first: more where a program's requests are to be seen.
fn reference(
    testbed: &dyn Testbed,
    participants: Vec<SteeredTenant>,
    options: &RunOptions,
) -> Result<Vec<Step>, MachineError> {
    let answers = |steered: &SteeredTenant| match &steered.tenant.work {
        Work::Program(work) => work.requests.is_some(),
        _ => false,
    };
    let answering: Vec<usize> = (0..participants.len())
        .filter(|&i| answers(&participants[i]))
        .collect();
    let phase = Phase {
        lasts: options.window * REFERENCE as f64,
        participants,
    };
    let mut machine = testbed.open(options.seed)?;
    let mut free = Policy::free();
    let mut steered = Steered::new(machine.as_mut(), vec![phase], options.quota_period);
    let mut control_loop = ControlLoop::new(&mut steered, free.as_mut(), options.window);
    let mut steps = control_loop.steps(REFERENCE)?;
    steps.remove(0);
    let answered = |steps: &[Step], tenant: usize| -> u64 {
        let done = steps
            .iter()
            .filter_map(|step| step.readings.done.get(tenant)?.as_ref());
        done.map(Done::answered).sum()
    };
    while steps.len() < MOST && answering.iter().any(|&i| answered(&steps, i) < ANSWERED) {
        steps.extend(control_loop.steps(1)?);
    }
    steered.release();
    Ok(steps)
}

/// A phase has settled within this many points of alone.
const SETTLED: f64 = 3.0;

/// The results of a phase's windows, with the errors of both sides alone; returns the first that counts as settled.
fn judge(phase: &mut PhaseSummary, seen: &[&WindowRecord], alone: &[Option<f64>; 2]) -> usize {
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
    let sides = [
        (&mut phase.protected, Role::Protected),
        (&mut phase.restrained, Role::Restrained),
    ];
    for (((side, role), series), by_itself) in sides.into_iter().zip(&shares).zip(alone) {
        let (Some(alone), Some(series)) = (side.alone_gbps, series) else {
            continue;
        };
        let end = mean(&series[half..]);
        let swing = series[half..].iter().map(|x| (x - end).abs());
        let settled = mean(&series[from..]);
        side.gbps = Some(alone * (mean(series) / 100.0));
        side.settled_gbps = Some(alone * (settled / 100.0));
        side.settled_pct_of_alone = Some(settled);
        let windows = &seen[from..];
        let squares: Option<f64> = (windows.iter())
            .map(|window| Some(window.error_of(role)?.get().powi(2)))
            .sum();
        let error = squares.map(|sum| sum.sqrt() / windows.len().max(1) as f64);
        let error = error.and_then(|error| share(error, alone * (settled / 100.0)));
        side.settled_error_pct = both(*by_itself, error).map(|error| error * settled);
        side.swing_pct = Some(swing.fold(0.0, f64::max));
    }
    if phase.protected.tenants.is_empty() {
        let held = |r: &&WindowRecord| r.quota_pct < 100.0;
        let last = seen.iter().rposition(held).map_or(0, |last| last + 1);
        phase.release_s = (last < seen.len()).then(|| until(last));
    }
    from
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
    // Errors of phases are independent.
    let error = |side: Side, error: fn(&SideSummary) -> Option<f64>| {
        let squares: Option<f64> = (both.iter())
            .map(|p| Some((error(side(p))? * (p.to_s - p.from_s)).powi(2)))
            .sum();
        let time: f64 = both.iter().map(|p| p.to_s - p.from_s).sum();
        squares.filter(|_| time > 0.0).map(|sum| sum.sqrt() / time)
    };
    let unprotected = phases.iter().filter(|p| p.protected.tenants.is_empty());
    SteerSummary {
        settle_s: longest(both.iter().map(|p| p.settle_s).collect()),
        protected_pct_of_solo: weighted(|p| &p.protected, settled),
        protected_error_pct: error(|p| &p.protected, |side| side.settled_error_pct),
        restrained_pct_of_solo: weighted(|p| &p.restrained, settled),
        restrained_error_pct: error(|p| &p.restrained, |side| side.settled_error_pct),
        protected_pct_without_limits: weighted(|p| &p.protected, free),
        protected_error_without_limits: error(|p| &p.protected, |side| side.free_error_pct),
        restrained_pct_without_limits: weighted(|p| &p.restrained, free),
        release_s: longest(unprotected.map(|p| p.release_s).collect()),
    }
}
