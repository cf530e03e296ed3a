//! `weir predict`: how slow a workload would be on a tier, from one run on local memory.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use weir_insight::InsightError;
use weir_insight::documents::{PredictDocument, Predicted};
use weir_insight::forecast::{self, accuracy, compare, forecast};
use weir_insight::slowdown::file;
use weir_insight::two_tiers::{Tiers, on_both, run_on};
use weir_linux::memory::ProgramPolicy;
use weir_model::document::Header;
use weir_model::insight::{PrefetchForm, SlowdownModel};
use weir_model::topology::TierName;
use weir_model::workload::{Workload, population};

use super::workload::find_for;
use crate::context::{Context, Format, say};
use crate::counting::{self, Count};
use crate::evaluation::{self, Counted, Row};
use crate::failure::{Failure, Result};
use crate::insight::{
    self, Going, counters, header, header_of, model_path, read_model, run_options,
};
use crate::keeping::Keeping;
use crate::machine::{self, Chosen};
use crate::nodes;
use crate::output::{self, print, to_csv, to_json};

/// The verb as the store has it.
pub const VERB: &str = "predict";

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
    /// A workload, to be run on the model of a machine.
    #[arg(conflicts_with_all = ["counters", "evaluate", "population", "command"])]
    workload: Option<String>,
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
    /// So many workloads that span the space, predicted and measured.
    #[arg(long, value_name = "N")]
    population: Option<NonZeroUsize>,
    /// Measure on the tier too.
    #[arg(long, requires = "workload")]
    verify: bool,
    /// Threads of the workload in place of those that it says.
    #[arg(long, value_name = "N", requires = "workload", conflicts_with_all = ["command", "counters", "evaluate", "population"],
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Write what was counted and measured as a file to evaluate.
    #[arg(long, value_name = "FILE", requires = "population")]
    export: Option<PathBuf>,
    /// The tier that is asked about.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    tier: String,
    /// The tier that was counted on.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    from: String,
    /// The model file [default: what `weir calibrate` left].
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
}

/// Predicts, keeps and prints.
///
/// # Errors
/// There is no model, it is of another pair, or the counters do not do.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let began = Instant::now();
    let keeping = Keeping::begin(context, VERB)?;
    let (from, to) = (TierName::named(&args.from), TierName::named(&args.tier));
    if !args.command.is_empty() {
        return of_command(args, context, (&from, &to), began, keeping);
    }
    // Before a machine is looked for, which is not what is missing.
    let nothing = args.workload.is_none() && args.evaluate.is_none() && args.population.is_none();
    if nothing && args.counters.is_empty() {
        return Err(nothing_asked());
    }
    let needs_machine =
        args.model.is_none() || args.workload.is_some() || args.population.is_some();
    let chosen = needs_machine
        .then(|| machine::choose(&context.global.on))
        .transpose()?;
    let model = match (&args.model, &chosen) {
        (Some(path), _) => read_model(path)?,
        (None, Some(chosen)) => {
            let tiers = insight::tiers(&chosen.topology, &from, &to)?;
            read_model(&model_path(context, &chosen.identity, &tiers)?)?
        }
        (None, None) => return Err(Failure::request("name a model with --model")),
    };
    if let Some(chosen) = &chosen {
        file::check(&model, &chosen.identity, &from, &to)?;
    }
    let asked = Asked {
        context,
        model: &model,
        chosen: chosen.as_ref(),
    };
    let predictions = match args {
        Args { counters, cpu, .. } if !counters.is_empty() => {
            asked.of_files(counters, cpu.as_deref())?
        }
        Args {
            evaluate: Some(file),
            ..
        } => asked.of_evaluation(file)?,
        Args {
            population: Some(n),
            export,
            ..
        } => {
            let workloads = population(context.global.seed, n.get());
            asked.of_workloads(&workloads, true, export.as_deref())?
        }
        Args {
            workload: Some(name),
            verify,
            ..
        } => asked.of_workloads(&[find_for(name, args.threads)?], *verify, None)?,
        _ => return Err(nothing_asked()),
    };
    let mut head = match &chosen {
        Some(chosen) => header_of(PredictDocument::SCHEMA, context, chosen),
        None => header(PredictDocument::SCHEMA, context, &model.processor),
    };
    head.elapsed_s = began.elapsed().as_secs_f64();
    finish(context, keeping, &model, head, predictions)
}

/// Keeps predictions and prints them.
fn finish(
    context: &Context,
    keeping: Keeping<'_>,
    model: &SlowdownModel,
    mut header: Header,
    predictions: Vec<Predicted>,
) -> Result<()> {
    if model.held_out_in_use().is_none() {
        header
            .warnings
            .push("the model has no interval: nothing was held out".into());
    }
    header.partial = context.stop.requested();
    let document = PredictDocument {
        header,
        from: model.from.clone(),
        to: model.to.clone(),
        accuracy: accuracy(&predictions),
        predictions,
    };
    for warning in &document.header.warnings {
        say(&format!("weir: warning: {warning}"));
    }
    let printed = print(&match context.global.format {
        Format::Table => output::predict(&document),
        Format::Json => to_json(&document)?,
        Format::Csv => to_csv(&document.predictions)?,
    });
    let run = keeping.keep(&document.header, &document, "predictions", printed)?;
    context.note(&format!("stored as run {run}"));
    if document.header.partial {
        return Err(Failure::Partial(
            "stopped: workloads that were not run are missing".into(),
        ));
    }
    Ok(())
}

/// Counts a command with its memory on the local tier, and predicts.
fn of_command(
    args: &Args,
    context: &Context,
    (from, to): (&TierName, &TierName),
    began: Instant,
    keeping: Keeping<'_>,
) -> Result<()> {
    counting::on_this_host(context, "weir predict -- CMD")?;
    // Somebody else's model needs no second tier here: that is what predictions are for.
    let (host, model) = match &args.model {
        Some(path) => (nodes::here(context)?, read_model(path)?),
        None => {
            let (host, tiers) = nodes::pair_here(context, from, to)?;
            let path = model_path(context, &host.identity, &tiers)?;
            (host, read_model(&path)?)
        }
    };
    let topology = host.view.topology()?;
    let policy = (topology.tier(from))
        .and_then(|tier| tier.node)
        .map(ProgramPolicy::bind);
    let counted = Count {
        command: &args.command,
        pid: None,
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
    let mut head = header(PredictDocument::SCHEMA, context, &topology.processor);
    head.machine = host.identity;
    head.elapsed_s = began.elapsed().as_secs_f64();
    finish(context, keeping, &model, head, vec![predicted])
}

fn nothing_asked() -> Failure {
    Failure::request("name a workload, --counters FILE, --evaluate FILE, or --population N")
}

/// What predictions are made with.
struct Asked<'a> {
    context: &'a Context,
    model: &'a SlowdownModel,
    chosen: Option<&'a Chosen>,
}

impl Asked<'_> {
    fn of_files(&self, paths: &[PathBuf], cpu: Option<&str>) -> Result<Vec<Predicted>> {
        let one = |path: &PathBuf| {
            let counted = counters(path, cpu)?;
            if let Some(family) = counted.cpu.as_deref().and_then(PrefetchForm::of) {
                file::check_family(self.model, family)?;
            }
            for note in &counted.notes {
                say(&format!("weir: {}: {note}", path.display()));
            }
            let named = |error: InsightError| -> Failure {
                let failure = Failure::from(error);
                if paths.len() > 1 {
                    failure.of(&path.display().to_string())
                } else {
                    failure
                }
            };
            forecast(self.model, &counted.of, &counted.total).map_err(named)
        };
        paths.iter().map(one).collect()
    }

    fn of_evaluation(&self, path: &Path) -> Result<Vec<Predicted>> {
        let rows = evaluation::read(path)?;
        let one = |Row { line, counted }: Row| {
            let named = |error: InsightError| {
                Failure::from(error).of(&format!(
                    "{}:{line}: `{}`",
                    path.display(),
                    counted.workload
                ))
            };
            let predicted =
                forecast(self.model, &counted.workload, &counted.local).map_err(named)?;
            Ok(Predicted {
                measured: Some(counted.measured),
                ..predicted
            })
        };
        rows.into_iter().map(one).collect()
    }

    fn of_workloads(
        &self,
        workloads: &[Workload],
        measure: bool,
        export: Option<&Path>,
    ) -> Result<Vec<Predicted>> {
        let Some(chosen) = self.chosen else {
            return Err(Failure::request(
                "a workload runs on a machine; name it with --on",
            ));
        };
        let options = run_options(self.context);
        if !measure {
            return workloads
                .iter()
                .map(|workload| {
                    let run = run_on(&*chosen.testbed, workload, &self.model.from, &options)?;
                    Ok(forecast(self.model, &run.workload, &run.counters)?)
                })
                .collect();
        }
        let tiers = Tiers {
            from: self.model.from.clone(),
            to: self.model.to.clone(),
        };
        let going = Going::on(self.context, "predict");
        let ran = on_both(&*chosen.testbed, workloads, &tiers, &options, &|of| {
            going.step(of)
        });
        going.end();
        let mut predictions = Vec::new();
        let mut counted = Vec::new();
        for both in ran {
            let both = both?;
            let (name, local) = (&both.local.workload, &both.local.counters);
            let predicted = compare(self.model, name, local, &both.target.counters)?;
            if let Some(measured) = predicted.measured {
                counted.push(Counted {
                    workload: name.clone(),
                    local: local.clone(),
                    measured,
                });
            }
            predictions.push(predicted);
        }
        if let Some(path) = export {
            evaluation::write(path, &counted)?;
        }
        Ok(predictions)
    }
}
