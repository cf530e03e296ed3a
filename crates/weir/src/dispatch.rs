//! From a command line to the verb that does it.

use clap::{CommandFactory, Parser};
use weir_lab::Study as _;
use weir_lab::interplay::Interplay;

use crate::cli::{self, Cli, Verb};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::store::StoredRun;
use crate::studies::{self, points_again};
use crate::{driver, machine, output, storage, verbs};

/// Does what was asked for in this process.
///
/// # Errors
/// As the verb says.
pub(crate) fn run(verb: Verb, context: &Context) -> Result<()> {
    if context.global.error.is_some() {
        check_error(&verb, &context.global.on)?;
    }
    check_machine(&verb, &context.global.on)?;
    match verb {
        Verb::Topo(args) => verbs::topo::run(&args, context),
        Verb::Doctor(args) => verbs::doctor::run(&args, context),
        Verb::Place(args) => verbs::place::run(&args, context),
        Verb::Platforms(args) => verbs::platforms::run(&args, context),
        Verb::Workload(args) => verbs::workload::run(&args, context),
        Verb::Bench(args) => verbs::bench::run(&args, context),
        Verb::Accept(args) => verbs::accept::run(&args, context),
        Verb::Interplay(args) => verbs::interplay::run(&args, context),
        Verb::Counters(args) => verbs::counters::run(&args, context),
        Verb::Explain(args) => verbs::explain::run(&args, context),
        Verb::Calibrate(args) => verbs::calibrate::run(&args, context),
        Verb::Predict(args) => verbs::predict::run(&args, context),
        Verb::Tune(args) => verbs::tune::run(args, context),
        Verb::Steer(args) => verbs::steer::run(&args, context),
        Verb::Tier(args) => verbs::tier::run(&args, context),
        Verb::Plan(args) => verbs::plan::run(&args, context),
        Verb::Design(args) => verbs::design::run(&args, context),
        Verb::Persist(args) => verbs::persist::run(&args, context),
        Verb::Pool(args) => verbs::pool::run(&args, context),
        Verb::Namespace(args) => verbs::namespace::run(&args, context),
        Verb::Tour(args) => verbs::tour::run(&args, context),
        Verb::Reproduce(args) => verbs::reproduce::run(&args, context),
        Verb::Runs(args) => verbs::runs::run(&args, context, resume),
        Verb::Report(args) => verbs::report::run(&args, context),
        Verb::Machines => output::print(&format!("{}\n", cli::MACHINES)),
        Verb::Man(args) => verbs::man::run(&args, Cli::command()),
        Verb::Completions(args) => verbs::completions::run(&args, &Cli::command()),
    }
}

/// Refuses a machine that would change nothing.
fn check_machine(verb: &Verb, on: &str) -> Result<()> {
    let why = match verb {
        Verb::Persist(args) if !args.has_machine() => "what a program stores is of no machine",
        Verb::Design(_) => "the file of the space names its machines",
        Verb::Plan(args) if !args.has_machine() => "this plan is of no machine",
        Verb::Reproduce(_) => "each published figure names its machine",
        _ => return Ok(()),
    };
    match on == machine::HOST {
        true => Ok(()),
        false => Err(Failure::request(format!(
            "--on {on} would change nothing, since {why}; leave it out"
        ))),
    }
}

/// Refuses an error that would change nothing.
fn check_error(verb: &Verb, on: &str) -> Result<()> {
    match verb {
        Verb::Bench(_) | Verb::Steer(_) | Verb::Runs(_) if machine::is_real(on) => {
            Err(Failure::request(format!(
                "--error is of models, of which more can be simulated; {on} is measured in whole windows, as often as \
                 --repeat says"
            )))
        }
        Verb::Bench(_) | Verb::Steer(_) | Verb::Runs(_) => Ok(()),
        _ => Err(Failure::request(
            "--error is of `weir bench` and `weir steer` on a model; this command has no figure that it changes",
        )),
    }
}

/// Runs what a stopped run still lacks: points by the plan that was kept, other studies by their arguments.
fn resume(stored: &StoredRun, context: &Context, storage: &storage::Named) -> Result<()> {
    let run = stored.summary.id;
    let typed = stored.arguments.as_array().into_iter().flatten();
    let words = typed.filter_map(|word| word.as_str());
    let cli = Cli::try_parse_from(std::iter::once("weir").chain(words));
    match (cli.map(|cli| cli.verb), stored.summary.verb.as_str()) {
        (Ok(Verb::Accept(args)), _) => verbs::accept::resume(&args, context, run),
        (Ok(Verb::Tune(args)), _) => verbs::tune::resume(args, context, run),
        (Ok(Verb::Explain(args)), _) => verbs::explain::resume(&args, context, run),
        (Ok(Verb::Calibrate(args)), _) => verbs::calibrate::resume(&args, context, run),
        (Ok(Verb::Predict(args)), _) => verbs::predict::resume(&args, context, run),
        (Ok(Verb::Steer(args)), _) => verbs::steer::resume(&args, context, run),
        (Ok(Verb::Place(args)), _) => verbs::place::resume(&args, context, run),
        (Ok(Verb::Tier(args)), _) => verbs::tier::resume(&args, context, run),
        (Ok(Verb::Workload(args)), _) => verbs::workload::resume(&args, context, run),
        (Ok(Verb::Plan(args)), _) => verbs::plan::resume(&args, context, run),
        (Ok(Verb::Design(args)), _) => verbs::design::resume(&args, context, run),
        (Ok(Verb::Interplay(args)), _) => {
            verbs::interplay::resume(&args, context, run, storage.wish())
        }
        (Ok(Verb::Reproduce(args)), _) => verbs::reproduce::resume(&args, context, run),
        (_, verb) if verb != Interplay::VERB && studies::is_study(verb) => Err(Failure::request(
            format!("this version does not read the arguments of run {run}; start it again"),
        )),
        _ => driver::resume(context, run, storage.wish(), points_again)?.verdict(),
    }
}
