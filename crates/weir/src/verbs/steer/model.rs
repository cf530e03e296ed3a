//! A scenario on a model: run, stored and printed.

use std::time::Instant;

use weir_model::topology::Topology;
use weir_model::units::Nanos;
use weir_steer::calibrate::{CalibrateError, Calibration, calibrate};
use weir_steer::document::SteerDocument;
use weir_steer::guard::Bounds;
use weir_steer::registry::Policy;
use weir_steer::scenario::{Scenario, ScenarioError};
use weir_steer::scenario_run::{self, RunOptions, run_scenario, tier_names};
use weir_steer::steered::{Actuators, Phase};

use super::{RunArgs, VERB};
use crate::context::{Context, Format, say};
use crate::failure::{Failure, Result};
use crate::insight::header_of;
use crate::keeping::Keeping;
use crate::machine::{self, Chosen};
use crate::output::{self, print, to_csv, to_json};
use crate::progress::Progress;

/// A window, and the period of CPU quotas, unless others are requested.
const WINDOW: Nanos = Nanos(250e6);
const PERIOD: Nanos = Nanos(100e6);

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

/// A scenario that can run, with its controller.
pub(super) struct Cast {
    /// The model.
    pub chosen: Chosen,
    /// Its phases, as far as they run.
    pub phases: Vec<Phase>,
    /// The scenario's name.
    pub scenario: &'static str,
    /// The controller.
    pub policy: Policy,
    /// The options of the run.
    pub options: RunOptions,
}

impl Cast {
    /// The options of the arguments.
    pub fn of(args: &RunArgs, context: &Context, dry: bool) -> Result<Self> {
        let Some(name) = &args.scenario else {
            return Err(Failure::request(
                "a model has no tenants of its own; name a scenario with --scenario \
                 (`weir steer scenarios` lists them)",
            ));
        };
        let chosen = machine::choose_sampled(&context.global.on)?;
        let scenario = Scenario::builtin(name, &chosen.topology)?;
        let window = args.window.unwrap_or(WINDOW);
        let period = args.period.unwrap_or(PERIOD);
        for (flag, time) in [("--window", window), ("--period", period)] {
            if time.get() < 1e6 {
                return Err(Failure::request(format!(
                    "{flag} {time} is too short; the minimum is 1 ms"
                )));
            }
        }
        let phases = match args.lasts {
            Some(lasts) => first(scenario.phases, lasts),
            None => scenario.phases,
        };
        if phases.is_empty() {
            return Err(Failure::request("--for leaves no window"));
        }
        let actuators = actuators(&args.actuators, &chosen.topology);
        Ok(Self {
            chosen,
            phases,
            scenario: scenario.name,
            // clap accepts no other name.
            policy: (args.controller.as_deref())
                .and_then(Policy::named)
                .unwrap_or(Policy::Weir),
            options: RunOptions {
                window,
                quota_period: period,
                seed: context.global.seed,
                actuators,
                dry,
            },
        })
    }

    /// The values of the model that the controller needs: measured on it.
    pub fn calibrate(&self) -> Result<Calibration> {
        let testbed = self.chosen.testbed.as_ref();
        let RunOptions { seed, window, .. } = self.options;
        Ok(calibrate(
            testbed,
            seed,
            window,
            self.options.actuators.allocation,
        )?)
    }
}

/// The requested actuators, among those that a model has.
fn actuators(named: &[String], on: &Topology) -> Actuators {
    let has = |name: &str| named.iter().any(|named| named == name);
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
    let began = Instant::now();
    let keeping = Keeping::begin(context, VERB)?;
    let cast = Cast::of(args, context, dry)?;
    let Cast {
        chosen,
        phases,
        options,
        ..
    } = &cast;
    let testbed = chosen.testbed.as_ref();
    let known = cast.calibrate()?;
    let mut controller = (cast.policy).controller(&known, &options.actuators, Bounds::default());
    let of = scenario_run::length(phases, options.window);
    let mut progress = Progress::begin("steer", of, context.global.quiet);
    let mut go_on = |done| {
        progress.step(done, of);
        !context.stop.requested()
    };
    let played = run_scenario(testbed, phases, controller.as_mut(), options, &mut go_on);
    progress.end();
    let played = played?;
    let topology = &chosen.topology;
    let mut document = SteerDocument {
        header: header_of(SteerDocument::SCHEMA, context, chosen),
        scenario: cast.scenario.into(),
        controller: cast.policy.name().into(),
        dry,
        tiers: tier_names(topology),
        windows: played.windows,
        phases: played.phases,
        summary: played.summary,
    };
    document.header.elapsed_s = began.elapsed().as_secs_f64();
    document.header.partial = context.stop.requested();
    for warning in &document.header.warnings {
        say(&format!("weir: warning: {warning}"));
    }
    let printed = print(&match context.global.format {
        Format::Table => output::steer(&document),
        Format::Json => to_json(&document)?,
        Format::Csv => to_csv(output::steer_rows(&document))?,
    });
    let run = keeping.keep(&document.header, &document, "windows", printed)?;
    context.note(&format!(
        "stored as run {run}; `weir report {run}` draws it"
    ));
    if document.header.partial {
        return Err(Failure::Partial("stopped before the end".into()));
    }
    Ok(())
}
