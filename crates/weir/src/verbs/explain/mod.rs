//! `weir explain`: where a workload, a command or a process loses its cycles.

mod host;

use std::path::{Path, PathBuf};
use std::time::Instant;

use weir_insight::documents::ExplainDocument;
use weir_insight::explain::CountedRun;
use weir_insight::two_tiers::{lone_chase, run_on};
use weir_model::document::Header;
use weir_model::insight::PrefetchForm;
use weir_model::topology::TierName;
use weir_model::units::Nanos;

use super::counters::write;
use super::workload::find_for;
use crate::context::{Context, Format, say};
use crate::counting;
use crate::failure::{Failure, Result};
use crate::insight::{self, counters, header, header_of, run_options};
use crate::keeping::Keeping;
use crate::machine;
use crate::output::{self, to_csv, to_json};

/// The verb as the store has it.
pub const VERB: &str = "explain";

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir explain chase --on emr2s+cxl-a
  weir explain my-service.toml --on emr2s+cxl-a --tier dram
  weir explain -I 1000 -- ./service --once
  weir explain --tier dram,cxl0 -- ./service --once
  weir explain --pid 4242 -- sleep 10
  weir explain --counters local.csv --cpu spr
  weir explain --counters local.csv --against cxl.csv --cpu spr

A workload is the name of one that comes with Weir, or a file that describes
one, and runs on a model. A command runs on this host, and is counted with all
that it starts; it keeps its own input, output and errors, and its exit code is
passed on. Counters are what `weir counters record` or `perf stat` wrote, as
text, CSV (-x,) or JSON (-j).")]
pub struct Args {
    /// A workload, to be run on the model.
    #[arg(
        required_unless_present_any = ["counters", "command", "pid"],
        conflicts_with_all = ["counters", "command", "pid", "interval", "idle"]
    )]
    workload: Option<String>,
    /// A command of this host and its arguments, after `--`.
    #[arg(last = true, value_name = "CMD", conflicts_with = "counters")]
    command: Vec<String>,
    /// A process of this host, while the command runs; without one, until the process ends or Ctrl-C comes.
    #[arg(short, long, value_name = "PID", conflicts_with = "counters")]
    pid: Option<u32>,
    /// Count in intervals of so many milliseconds, for phases over time.
    #[arg(short = 'I', long, value_name = "MS", conflicts_with = "counters",
          value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    interval: Option<u64>,
    /// The tier that its pages lie on, and one to compare with [default: the first two of a model; of a
    /// command, where the kernel puts them].
    #[arg(
        long = "tier",
        alias = "tiers",
        value_delimiter = ',',
        value_name = "TIER",
        conflicts_with = "counters"
    )]
    tiers: Vec<String>,
    /// What a lone chase takes on the memory of each run, in ns, as `weir bench latency` measures it: tells
    /// whether reads queue.
    #[arg(long, value_name = "NS", value_delimiter = ',', value_parser = idle)]
    idle: Vec<f64>,
    /// Run with the hardware prefetchers off.
    #[arg(long, conflicts_with = "counters")]
    no_prefetch: bool,
    /// Threads of the workload in place of those that it says.
    #[arg(long, value_name = "N", requires = "workload", conflicts_with_all = ["command", "counters", "pid"],
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Counters of a run on local memory.
    #[arg(long, value_name = "FILE")]
    counters: Option<PathBuf>,
    /// Counters of the same work on another memory.
    #[arg(long, value_name = "FILE", requires = "counters")]
    against: Option<PathBuf>,
    /// The microarchitecture that was counted on, such as spr, where the file
    /// does not tell.
    #[arg(long, value_name = "CPU", requires = "counters")]
    cpu: Option<String>,
    /// Write the result here instead of to standard output.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A latency in ns.
fn idle(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ns) if ns > 0.0 && ns.is_finite() => Ok(ns),
        _ => Err(format!("`{text}` is no number of nanoseconds above zero")),
    }
}

/// Explains, keeps and prints.
///
/// # Errors
/// The request fits no machine or file, the counters cannot be of a run, or the work failed; or a
/// command did, and then the exit code is its own.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let began = Instant::now();
    let keeping = Keeping::begin(context, VERB)?;
    let mut document = match (&args.workload, &args.counters) {
        (Some(name), _) => on_machine(args, name, context)?,
        (None, Some(file)) => from_files(args, file, context)?,
        (None, None) => host::explain(args, context)?,
    };
    document.header.elapsed_s = began.elapsed().as_secs_f64();
    for warning in &document.header.warnings {
        say(&format!("weir: warning: {warning}"));
    }
    let text = match context.global.format {
        Format::Table => output::explain(&document),
        Format::Json => to_json(&document)?,
        Format::Csv => to_csv(&document.runs)?,
    };
    let written = write(args.out.as_ref(), &text);
    let run = keeping.keep(&document.header, &document, "runs", written)?;
    context.note(&format!("stored as run {run}"));
    counting::passed_on(document.runs.last().and_then(|run| run.exit_status))
}

fn on_machine(args: &Args, name: &str, context: &Context) -> Result<ExplainDocument> {
    let workload = find_for(name, args.threads)?;
    let chosen = machine::choose(&context.global.on)?;
    let names: Vec<TierName> = if args.tiers.is_empty() {
        chosen
            .topology
            .tiers
            .iter()
            .map(|t| t.name.clone())
            .take(2)
            .collect()
    } else {
        args.tiers.iter().map(TierName::named).collect()
    };
    match names.as_slice() {
        [_] => {}
        [from, to] => {
            insight::tiers(&chosen.topology, from, to)?;
        }
        _ => return Err(Failure::request("name one tier, or two to compare")),
    }
    let mut options = run_options(context);
    options.prefetch = !args.no_prefetch;
    let processor = &chosen.topology.processor;
    let mut seen = Vec::new();
    for tier in &names {
        let run = run_on(&*chosen.testbed, &workload, tier, &options)?;
        seen.push(CountedRun {
            unloaded: lone_chase(&*chosen.testbed, tier, &options).ok(),
            ..CountedRun::of_workload(&run, tier, processor)
        });
    }
    document(&seen, header_of(ExplainDocument::SCHEMA, context, &chosen))
}

fn from_files(args: &Args, file: &Path, context: &Context) -> Result<ExplainDocument> {
    let mut files = vec![counters(file, args.cpu.as_deref())?];
    if let Some(other) = &args.against {
        files.push(counters(other, args.cpu.as_deref())?);
    }
    let cpu = files.iter().find_map(|f| f.cpu.clone());
    let processor = cpu.unwrap_or_else(|| "a processor that is not known".into());
    let mut head = header(ExplainDocument::SCHEMA, context, &processor);
    for file in &files {
        let told = |note: &String| format!("{}: {note}", file.of);
        head.warnings.extend(file.notes.iter().map(told));
    }
    if PrefetchForm::of(&processor).is_none() {
        let told = format!("the prefetch counters of {processor} are not known");
        head.warnings.push(told);
    }
    let seen: Vec<CountedRun> = (files.iter().enumerate())
        .map(|(index, file)| CountedRun {
            unloaded: (args.idle.get(index)).and_then(|&ns| host::unloaded(file, Nanos(ns))),
            // Whose exit status it was is no failure of this request.
            exit_status: None,
            ..CountedRun::of_file(file)
        })
        .collect();
    document(&seen, head)
}

fn document(seen: &[CountedRun], header: Header) -> Result<ExplainDocument> {
    let runs = (seen.iter())
        .map(CountedRun::explain)
        .collect::<std::result::Result<_, _>>()?;
    let difference = match seen {
        [local, other, ..] => Some(local.difference(other)?),
        _ => None,
    };
    Ok(ExplainDocument {
        header,
        runs,
        difference,
    })
}
