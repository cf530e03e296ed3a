//! `weir plan untouched`: the days of a cluster are trained and judged side by side.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use weir_lab::Outcome as _;
use weir_lab::plan::distinct;
use weir_model::document::Document;
use weir_plan::cost::percent;
use weir_plan::pool::Traced;
use weir_plan::predict::monitor::{Monitor, Watch, simulate};
use weir_plan::predict::untouched::{
    Evaluated, Predicted, Prepared, Untouched, UntouchedModel, UntouchedPlan, history,
};

use super::traces;
use crate::context::Context;
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::files;
use crate::keeping::Keeping;
use crate::output::to_json;
use crate::progress::Progress;
use crate::studies::PLAN_UNTOUCHED;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every night a model is trained on VMs that have left, for each share of
over-predictions that is allowed, and judged on the VMs of the next day. A
fixed share of each VM that gives as much memory is judged, too. What a VM
touches is the column touched_pct of a trace; where a trace has none it is
drawn, and no history tells of it.

Examples:
  weir plan untouched --trace cluster.csv
  weir plan untouched --days 20 --over-predicted 1%,2%,4% --format csv
  weir plan untouched --trace cluster.csv --model untouched.json")]
pub(super) struct Args {
    #[command(flatten)]
    traces: traces::Options,
    /// Over-predictions that are allowed, of the VMs.
    #[arg(long, value_delimiter = ',', value_name = "PERCENT", default_value = "0.5%,1%,2%,4%,8%",
          value_parser = percent)]
    over_predicted: Vec<f64>,
    /// Days of VMs that train a model.
    #[arg(long, value_name = "DAYS", default_value_t = 7)]
    train_days: u32,
    /// Seconds between two looks of the monitor at a VM.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    look_every: u32,
    /// Write the models of the last day as JSON.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
}

/// Trains, judges, keeps and prints.
///
/// # Errors
/// An argument is outside its bounds, a trace cannot be read, or the work was stopped.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    let untouched = Untouched {
        targets: distinct(args.over_predicted.iter().copied()),
        train_days: args.train_days,
        ..Untouched::default()
    };
    untouched.check()?;
    if let Some(file) = &args.model {
        files::check(file)?;
    }
    let keeping = Keeping::begin(context, PLAN_UNTOUCHED)?;
    let mut clusters: Vec<(Traced, Vec<Predicted>, u32)> = Vec::new();
    let mut model = None;
    for at in 0..args.traces.count() {
        if context.stop.requested() {
            break;
        }
        let traced = args.traces.cluster(at, context)?;
        let prepared = Prepared::of(&traced.trace);
        let predicted = side_by_side(&untouched, &prepared, &traced.name, context);
        let days = prepared.days();
        if args.model.is_some() && model.is_none() && days > 0 {
            let trained = untouched.train(&prepared, days - 1);
            model = trained.map(|(models, _)| UntouchedModel {
                schema: UntouchedModel::SCHEMA.into(),
                cluster: traced.name.clone(),
                day: days - 1,
                features: history::names(),
                models,
            });
        }
        clusters.push((traced, predicted, days));
    }
    let stopped = context.stop.requested();
    let output = conclude(args, &untouched, &clusters, context);
    if let (Some(file), Some(model)) = (&args.model, &model) {
        files::write(file, to_json(model)?)?;
    }
    let mut header = header(UntouchedPlan::SCHEMA, context, "");
    header.partial = stopped;
    header.warnings = clusters
        .iter()
        .flat_map(|(traced, ..)| [traces::words(traced), of_one_customer(traced)].concat())
        .collect();
    keeping.put(Document { header, output }, None)?;
    match stopped {
        false => Ok(()),
        true => Err(Failure::Partial(
            "stopped: the figures are of the days that were judged until then".into(),
        )),
    }
}

/// Says that a history of customers tells no VMs apart, where all are of one, as without a column `customer`.
fn of_one_customer(traced: &Traced) -> Vec<String> {
    let mut customers = traced.trace.vms().map(|vm| vm.customer);
    let first = customers.next();
    match traced.trace.len() > 1 && customers.all(|customer| Some(customer) == first) {
        true => vec![format!(
            "{}: all VMs are of one customer, so that its history is that of all",
            traced.name
        )],
        false => Vec::new(),
    }
}

fn conclude(
    args: &Args,
    untouched: &Untouched,
    clusters: &[(Traced, Vec<Predicted>, u32)],
    context: &Context,
) -> UntouchedPlan {
    let evaluated: Vec<Evaluated<'_>> = clusters
        .iter()
        .map(|(traced, predicted, days)| Evaluated {
            name: &traced.name,
            trace: &traced.trace,
            predicted,
            days: *days,
        })
        .collect();
    let mut output = untouched.conclude(&evaluated);
    output.problems = clusters
        .iter()
        .flat_map(|(traced, ..)| traced.problems.clone())
        .collect();
    let monitor = Monitor {
        every_s: args.look_every,
        ..Monitor::default()
    };
    for (traced, predicted, _) in clusters {
        let watch = Watch {
            cluster: &traced.name,
            trace: &traced.trace,
            predicted,
            machine: args.traces.machine,
            machines: args.traces.machines as usize,
            seed: context.global.seed,
        };
        let targets = untouched.targets.iter().enumerate();
        let rows = targets.map(|(at, target)| simulate(&watch, (at, 100.0 * target), &monitor));
        output.monitor.extend(rows);
    }
    output
}

/// Days that are judged, in their order, on all cores. A day takes nothing from another.
fn side_by_side(
    untouched: &Untouched,
    prepared: &Prepared<'_>,
    name: &str,
    context: &Context,
) -> Vec<Predicted> {
    let days = prepared.days() as usize;
    let title = format!("plan untouched, {name}");
    let progress = Mutex::new((Progress::begin(&title, days, context.global.quiet), 0));
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Predicted>> = Mutex::new(Vec::new());
    let take = || {
        loop {
            let day = next.fetch_add(1, Ordering::Relaxed);
            if day >= days || context.stop.requested() {
                return;
            }
            if let Some(predicted) = untouched.day(prepared, day as u32) {
                done.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(predicted);
            }
            let mut held = progress.lock().unwrap_or_else(PoisonError::into_inner);
            held.1 += 1;
            let finished = held.1;
            held.0
                .step(finished, days, finished as f64 / days.max(1) as f64);
        }
    };
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(days.max(1));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(take);
        }
    });
    progress
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .0
        .end();
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|predicted| predicted.day);
    done
}
