//! A scenario on a model: run, stored and printed.

use weir_lab::interplay::{Participant, What};
use weir_model::topology::Topology;
use weir_model::units::Nanos;
use weir_steer::calibrate::CalibrateError;
use weir_steer::registry::Policy;
use weir_steer::scenario::{ASKED, Scenario, ScenarioError, asked};
use weir_steer::scenario_run::RunOptions;
use weir_steer::steered::{Actuators, Phase};
use weir_steer::study::Regulate;

use super::options::{self, RunArgs};
use crate::context::Context;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::machine::{self, Chosen};
use crate::store::RunId;
use crate::studies::complete;
use crate::verbs::participants::participants;

/// A window, and the period of CPU quotas, unless others are requested.
const WINDOW: Nanos = Nanos(250e6);
const PERIOD: Nanos = Nanos(100e6);
/// How long named tenants run, unless another time is requested.
const LASTS: Nanos = Nanos(10e9);

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Failure::Request(error.into())
    }
}

impl From<CalibrateError> for Failure {
    fn from(error: CalibrateError) -> Self {
        match error {
            CalibrateError::Machine(error) => error.into(),
            CalibrateError::NoSlowTier | CalibrateError::NotCounted(_) => {
                Failure::Missing(error.into())
            }
        }
    }
}

/// The model, and the scenario with its controller.
pub(super) fn study(args: &RunArgs, context: &Context, dry: bool) -> Result<(Chosen, Regulate)> {
    let chosen = machine::choose_sampled(&context.global.on, context.global.error)?;
    let study = study_on(args, context, &chosen, dry)?;
    Ok((chosen, study))
}

fn study_on(args: &RunArgs, context: &Context, chosen: &Chosen, dry: bool) -> Result<Regulate> {
    let (name, phases) = match &args.scenario {
        Some(name) => {
            let scenario = Scenario::builtin(name, &chosen.topology)?;
            (scenario.name, scenario.phases)
        }
        None => (ASKED, named_tenants(args, chosen)?),
    };
    let window = args.window.unwrap_or(WINDOW);
    let period = args.period.unwrap_or(PERIOD);
    let phases = match args.lasts {
        Some(lasts) => first(phases, lasts),
        None => phases,
    };
    if phases.is_empty() {
        return Err(Failure::request("--for leaves no window"));
    }
    Ok(Regulate {
        scenario: name,
        phases,
        programs: (args.protect.iter().chain(&args.restrain))
            .filter_map(options::Named::program)
            .map(str::to_owned)
            .collect(),
        // clap accepts no other name.
        policy: (args.controller.as_deref())
            .and_then(Policy::named)
            .unwrap_or(Policy::Weir),
        options: RunOptions {
            window,
            quota_period: period,
            seed: context.global.seed,
            actuators: actuators(&args.actuators, &chosen.topology),
            dry,
        },
    })
}

/// The tenants that the command line names, at the same time.
fn named_tenants(args: &RunArgs, chosen: &Chosen) -> Result<Vec<Phase>> {
    if args.protect.is_empty() && args.restrain.is_empty() {
        return Err(Failure::request(
            "a model has no tenants of its own; name them with --protect and --restrain (dram:redis-ycsb-a, \
             cxl0:nt_st), or a scenario with --scenario (`weir steer scenarios` lists them)",
        ));
    }
    let side = |of: &[options::Named]| -> Result<Vec<Participant>> {
        let mut side = participants(&options::tenants(of)?, chosen, &[])?;
        for participant in &mut side {
            if let (What::Program(workload, _), Some(rate)) = (&mut participant.what, args.rate)
                && workload.requests.is_some()
            {
                workload.at_rate(rate).map_err(Failure::request)?;
            }
        }
        Ok(side)
    };
    let lasts = args.lasts.unwrap_or(LASTS);
    let (protect, restrain) = (side(&args.protect)?, side(&args.restrain)?);
    asked(&protect, &restrain, (0, lasts), &chosen.topology)
        .map_err(|error| driver::refusal(error, chosen))
}

/// The requested actuators, among those that a model has.
fn actuators(named: &[String], on: &Topology) -> Actuators {
    let has = |name: &str| named.is_empty() || named.iter().any(|named| named == name);
    let all = Actuators::of_model(on);
    Actuators {
        cores: has("cores"),
        time: has("time"),
        allocation: all.allocation.filter(|_| has("allocation")),
        clocks: match has("clock") {
            true => all.clocks,
            false => Vec::new(),
        },
    }
}

/// The beginning of a scenario.
fn first(phases: Vec<Phase>, lasts: Nanos) -> Vec<Phase> {
    let mut left = lasts;
    let mut kept = Vec::new();
    for phase in phases {
        if left.get() <= 0.0 {
            break;
        }
        let part = phase.lasts.min(left);
        left = left - part;
        kept.push(Phase {
            lasts: part,
            ..phase
        });
    }
    kept
}

/// Runs, stores and prints.
pub(super) fn run(args: &RunArgs, context: &Context, dry: bool) -> Result<()> {
    let (chosen, study) = study(args, context, dry)?;
    complete(context, &chosen, &study)
}

/// Runs what a stopped run still lacks.
pub(super) fn resume(args: &RunArgs, context: &Context, dry: bool, run: RunId) -> Result<()> {
    let again = |chosen: &Chosen| study_on(args, context, chosen, dry);
    driver::resume(context, run, None, |_, chosen, _| again(chosen))?.verdict()
}
