//! `weir predict`: how slow a workload would be on a tier, from one run on local memory.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use weir_insight::InsightError;
use weir_insight::documents::{Predicted, Predictions};
use weir_insight::forecast::{self, forecast};
use weir_insight::slowdown::file;
use weir_insight::studies::predict::Predict;
use weir_insight::two_tiers::OnBoth;
use weir_lab::{Outcome as _, Study as _};
use weir_linux::memory::ProgramPolicy;
use weir_model::document::{Document, Header};
use weir_model::insight::{PrefetchForm, SlowdownModel};
use weir_model::machine::MachineKind;
use weir_model::workload::Population;

use crate::context::Context;
use crate::counting::counters;
use crate::counting::{self, Count};
use crate::driver::{self, Job};
use crate::driver::{header, header_of};
use crate::evaluation::{self, Counted, Row};
use crate::failure::{Failure, Result};
use crate::insight::{self, model_path, read_model};
use crate::keeping::Keeping;
use crate::machine::{self, Chosen};
use crate::named::find_for;
use crate::nodes;
use crate::session::say;
use crate::shown::show;
use crate::store::{RunId, Store};

/// The verb as the store has it.
pub const VERB: &str = Predict::VERB;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir predict chase --on emr2s+cxl-a --tier cxl0
  weir predict --counters local.csv --cpu spr --model emr-cxl.json
  weir predict --counters counted/*.csv --model emr-cxl.json
  weir predict --model emr-cxl.json -- ./service --once
  weir predict --population 300 --on emr2s+cxl-a --export population.csv
  weir predict --evaluate population.csv --on emr2s+cxl-a

A command runs on this host with its memory on --from, and needs the counters
of its processor; its exit code is passed on.

The model is the one that `weir calibrate` left for the machine and tiers, or
--model. A file to evaluate has a row for each workload: its name, counters on
local memory by their portable names, and the slowdown that was measured; see
docs/predict.md.")]
pub struct Args {
    #[command(flatten)]
    study: Predict,
    /// A command of this host and its arguments, after `--`.
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["counters", "evaluate", "population"])]
    command: Vec<String>,
    /// Counters of a run on local memory, as `perf stat` wrote them; several files for several runs.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["evaluate", "population"])]
    counters: Vec<PathBuf>,
    /// The microarchitecture of --counters, where the file does not tell.
    #[arg(long, value_name = "CPU", requires = "counters")]
    cpu: Option<String>,
    /// Counters and measured slowdowns of many workloads.
    #[arg(long, value_name = "FILE", conflicts_with = "population")]
    evaluate: Option<PathBuf>,
    /// Write what was counted and measured as a file to evaluate.
    #[arg(long, value_name = "FILE", requires = "population")]
    export: Option<PathBuf>,
    /// The model file [default: what `weir calibrate` left].
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
}

/// Predicts, keeps and prints.
///
/// # Errors
/// There is no model, it is of another pair, or the counters do not do.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    if !args.command.is_empty() {
        return of_command(args, context);
    }
    let runs = args.study.workload.is_some() || args.study.population.is_some();
    // Before a machine is looked for, which is not what is missing.
    if !runs && args.evaluate.is_none() && args.counters.is_empty() {
        return Err(Failure::request(
            "name a workload, --counters FILE, --evaluate FILE, or --population N",
        ));
    }
    if !runs {
        return of_files(args, context);
    }
    // A store that cannot be made is named before a model that is missing.
    drop(Store::open(&context.store_path()?)?);
    let chosen = machine::choose(&context.global.on)?;
    let study = on_model(args, context, &chosen)?;
    let done = Job::once(context, &chosen, VERB).run(&study)?;
    export(args, &study)?;
    show(context, &done.document, done.kept_in())?;
    done.verdict()
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    let mut study = None;
    let done = driver::resume(context, run, None, |_, chosen, _| {
        let again = on_model(args, context, chosen)?;
        study = Some(again.clone());
        Ok(again)
    })?;
    study.map_or(Ok(()), |study| export(args, &study))?;
    done.verdict()
}

/// The study with its workload and the model that is calibrated for its tiers.
fn on_model(args: &Args, context: &Context, chosen: &Chosen) -> Result<Predict> {
    if chosen.identity.kind == MachineKind::Host {
        return Err(Failure::Missing(anyhow::anyhow!(
            "descriptions run on a model; name one with --on, or a command of this host after `--`"
        )));
    }
    let mut study = args.study.clone();
    let model = model_for(args, context, chosen)?;
    study.calibrated = Some(Box::new(model));
    if let Some(name) = &study.workload {
        study.described = Some(find_for(name, study.threads)?);
    }
    Ok(study)
}

/// The model that was named, or that is calibrated for the machine and the tiers.
fn model_for(args: &Args, context: &Context, chosen: &Chosen) -> Result<SlowdownModel> {
    let Predict { from, tier: to, .. } = &args.study;
    let model = match &args.model {
        Some(path) => named_model(args, context, path)?,
        None => {
            let tiers = insight::tiers(&chosen.topology, from, to)?;
            let path = model_path(context, &chosen.identity, &tiers)?;
            read_model(context, None, &path, from, to)?
        }
    };
    file::check(&model, &chosen.identity, from, to)?;
    Ok(model)
}

/// The model in a file, which is of the tiers that were named, if any were.
fn named_model(args: &Args, context: &Context, path: &Path) -> Result<SlowdownModel> {
    let Predict { from, tier: to, .. } = &args.study;
    let model = read_model(context, Some(path), path, from, to)?;
    let others = [("--from", from != &model.from), ("--tier", to != &model.to)];
    match others
        .iter()
        .find(|(option, differs)| *differs && context.was_typed(option))
    {
        Some((option, _)) => Err(Failure::request(format!(
            "{} is of {} to {}; leave {option} out, or name a model of the tiers that are asked about",
            path.display(),
            model.from,
            model.to
        ))),
        None => Ok(model),
    }
}

/// Writes what ran on both tiers as a file to evaluate.
fn export(args: &Args, study: &Predict) -> Result<()> {
    let Some(path) = &args.export else {
        return Ok(());
    };
    let ran = study.ran.lock().unwrap_or_else(PoisonError::into_inner);
    let counted = |(population, both): &(Option<Population>, OnBoth)| -> Result<Counted> {
        let (local, target) = (&both.local.counters, &both.target.counters);
        Ok(Counted {
            workload: both.local.workload.clone(),
            population: *population,
            local: local.clone(),
            measured: forecast::measured(local, target)?,
        })
    };
    let rows: Vec<Counted> = ran.iter().map(counted).collect::<Result<_>>()?;
    evaluation::write(path, &rows)
}

/// Predicts from counters in files.
fn of_files(args: &Args, context: &Context) -> Result<()> {
    let keeping = Keeping::begin(context, VERB)?;
    let on = &context.global.on;
    let named = (args.model.as_deref()).map(|path| named_model(args, context, path));
    let (model, chosen) = match named.transpose()? {
        Some(model) if machine::is_host(on) => (model, None),
        Some(model) => {
            let chosen = machine::choose(on)?;
            file::check(&model, &chosen.identity, &model.from, &model.to)?;
            (model, Some(chosen))
        }
        None => {
            let chosen = machine::choose(on)?;
            let model = model_for(args, context, &chosen).map_err(|failure| match failure {
                Failure::Request(error) if machine::is_host(on) => Failure::Request(anyhow::anyhow!(
                    "{error:#}; --model names a model of another machine's tiers, and --on a machine"
                )),
                other => other,
            })?;
            (model, Some(chosen))
        }
    };
    let predictions = match &args.evaluate {
        Some(file) => of_evaluation(&model, file)?,
        None => of_counters(context, &model, &args.counters, args.cpu.as_deref())?,
    };
    let head = match &chosen {
        Some(chosen) => header_of(Predictions::SCHEMA, context, chosen),
        None => header(Predictions::SCHEMA, context, &model.processor),
    };
    keep(keeping, head, &model, predictions)
}

/// Counts a command with its memory on the local tier, and predicts.
fn of_command(args: &Args, context: &Context) -> Result<()> {
    let keeping = Keeping::begin(context, VERB)?;
    counting::on_this_host(context, "weir predict -- CMD")?;
    let Predict { from, tier: to, .. } = &args.study;
    // A model from elsewhere needs no second tier here: that is what predictions are for.
    let (host, model) = match &args.model {
        Some(path) => {
            let model = named_model(args, context, path)?;
            (nodes::here(context)?, model)
        }
        None => {
            let (host, tiers) = nodes::pair_here(context, from, to)?;
            let path = model_path(context, &host.identity, &tiers)?;
            (host, read_model(context, None, &path, from, to)?)
        }
    };
    let topology = host.view.topology()?;
    let policy = (topology.tier(from))
        .and_then(|tier| tier.node)
        .map(ProgramPolicy::bind);
    let counted = Count {
        command: &args.command,
        pid: None,
        others: &[],
        lasts: None,
        all: false,
        every: None,
        counters: &forecast::COUNTERS,
        policy: policy.as_ref(),
    }
    .run(&context.stop)?;
    counting::tell(&counted);
    counting::passed_on(counted.exit_status)?;
    if let Some(family) = counted.cpu.as_deref().and_then(PrefetchForm::of) {
        file::check_family(&model, family)?;
    }
    let predicted = forecast(&model, &counted.of, &counted.total)?;
    let mut head = header(Predictions::SCHEMA, context, &topology.processor);
    head.machine = host.identity;
    keep(keeping, head, &model, vec![predicted])
}

/// Keeps predictions that no lab made, and prints them.
fn keep(
    keeping: Keeping<'_>,
    mut header: Header,
    model: &SlowdownModel,
    predictions: Vec<Predicted>,
) -> Result<()> {
    header.warnings.extend(Predictions::doubt(model));
    let output = Predictions::of(model, predictions);
    keeping.put(Document { header, output }, None)
}

fn of_counters(
    context: &Context,
    model: &SlowdownModel,
    paths: &[PathBuf],
    cpu: Option<&str>,
) -> Result<Vec<Predicted>> {
    let one = |path: &PathBuf| {
        let counted = counters(context, path, cpu)?;
        if let Some(family) = counted.cpu.as_deref().and_then(PrefetchForm::of) {
            file::check_family(model, family)?;
        }
        for note in &counted.notes {
            say(&format!("weir: {}: {note}", path.display()));
        }
        let named = |error: InsightError| -> Failure {
            Failure::from(error).of(&path.display().to_string())
        };
        forecast(model, &counted.of, &counted.total).map_err(named)
    };
    paths.iter().map(one).collect()
}

fn of_evaluation(model: &SlowdownModel, path: &Path) -> Result<Vec<Predicted>> {
    let one = |Row { line, counted }: Row| {
        let named = |error: InsightError| {
            Failure::from(error).of(&format!(
                "{}:{line}: `{}`",
                path.display(),
                counted.workload
            ))
        };
        let predicted = forecast(model, &counted.workload, &counted.local).map_err(named)?;
        Ok(Predicted {
            measured: Some(counted.measured),
            population: counted.population,
            ..predicted
        })
    };
    evaluation::read(path)?.into_iter().map(one).collect()
}
