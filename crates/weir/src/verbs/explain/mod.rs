//! `weir explain`: where a workload, a command or a process loses its cycles.

mod application;
mod host;

use std::path::{Path, PathBuf};

use weir_insight::documents::Explained;
use weir_insight::explain::CountedRun;
use weir_insight::studies::explain::Explain;
use weir_lab::interplay::Participant;
use weir_lab::{Outcome as _, Study as _};
use weir_model::document::{Document, Header};
use weir_model::insight::PrefetchForm;
use weir_model::units::{Bytes, Nanos};

use super::participants::participants;
use super::workload::{find_for, real_program};
use crate::context::Context;
use crate::counting;
use crate::driver::{self, Job};
use crate::failure::{Failure, Result};
use crate::insight::{counters, header};
use crate::keeping::Keeping;
use crate::machine::{self, Chosen};
use crate::store::RunId;
use crate::studies::show_in;

/// The verb as the store has it.
pub const VERB: &str = Explain::VERB;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir explain chase --on emr2s+cxl-a
  weir explain my-service.toml --on emr2s+cxl-a --tier dram
  weir explain redis-ycsb-a --on emr2s+cxl-a --rate 40k --beside cxl0:nt_st
  weir explain bfs-twitter --on emr2s+cxl-a --beside cxl0:llama-decode
  weir explain redis-ycsb-a --size 256M --for 10s     the real program, on this host
  weir explain -I 1000 -- ./service --once
  weir explain --tier dram,cxl0 -- ./service --once
  weir explain --beside dram:nt_st -- ./service --once
  weir explain --beside dram:redis-ycsb-a -- ./service --once
  weir explain --pid 4242 -- sleep 10
  weir explain --counters local.csv --cpu spr
  weir explain --counters local.csv --against cxl.csv --cpu spr

A workload is the name of one that comes with Weir, or a file that describes
one. A model runs the description; on this host its real program is started,
loaded with data, observed for a time, and ended. A command runs on this host, and is counted with all
that it starts; it keeps its own input, output and errors, and its exit code is
passed on. Counters are what `weir counters record` or `perf stat` wrote, as
text, CSV (-x,) or JSON (-j).")]
pub struct Args {
    #[command(flatten)]
    study: Explain,
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
    /// Observe a real program of this host for this time [default: 5s].
    #[arg(long = "for", value_name = "TIME", requires = "workload", conflicts_with_all = ["command", "counters", "pid"])]
    lasts: Option<Nanos>,
    /// The size of the data of a real program of this host [default: as described, at most half of the free memory].
    #[arg(long, value_name = "SIZE", requires = "workload", conflicts_with_all = ["command", "counters", "pid"])]
    size: Option<Bytes>,
    /// What a lone chase takes on the memory of each run, in ns, as `weir bench latency` measures it: tells
    /// whether reads queue.
    #[arg(long, value_name = "NS", value_delimiter = ',', value_parser = idle)]
    idle: Vec<f64>,
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
    if let Some(name) = &args.study.workload {
        if machine::is_real(&context.global.on) {
            return match real_program(name)? {
                Some(program) => application::explain(args, program, context),
                None => Err(Failure::request(format!(
                    "`{name}` describes no program that this host has, and only a model runs a description: name one with --on, \
                     or give the command itself after `--`"
                ))),
            };
        }
        let of_host = [
            ("--interval", args.interval.is_some()),
            ("--idle", !args.idle.is_empty()),
            ("--for", args.lasts.is_some()),
            ("--size", args.size.is_some()),
        ];
        if let Some((option, _)) = of_host.iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::request(format!(
                "{option} is of what runs on this host; {} is a model",
                context.global.on
            )));
        }
        let chosen = machine::choose(&context.global.on)?;
        let study = described(args, &chosen)?;
        let done = Job::once(context, &chosen, VERB).run(&study)?;
        show_in(args.out.as_deref(), context, &done.document, Some(done.run))?;
        return done.verdict();
    }
    let keeping = Keeping::begin(context, VERB)?;
    let document = match &args.counters {
        Some(file) => from_files(args, file, context)?,
        None => host::explain(args, context)?,
    };
    let last = document.output.runs.last();
    let exit_status = last.and_then(|run| run.exit_status);
    keeping.put(document, args.out.as_deref())?;
    counting::passed_on(exit_status)
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    driver::resume(context, run, None, |_, chosen, _| described(args, chosen))?.verdict()
}

fn described(args: &Args, chosen: &Chosen) -> Result<Explain> {
    let mut study = args.study.clone();
    let name = study.workload.as_deref().unwrap_or_default();
    let mut workload = find_for(name, study.threads)?;
    if let Some(rate) = study.rate {
        workload.at_rate(rate).map_err(Failure::request)?;
    }
    study.described = Some(workload);
    study.aggressor = beside(args, chosen)?;
    Ok(study)
}

/// The tenant that runs with what is explained.
fn beside(args: &Args, chosen: &Chosen) -> Result<Option<Participant>> {
    let named = args.study.beside.as_slice();
    let mut participants = participants(named, chosen, &[])?;
    match (participants.pop(), participants.is_empty()) {
        (found, true) => Ok(found),
        (_, false) => Err(Failure::request(
            "a tier alone means several tenants; give --beside one, as cxl0:nt_st",
        )),
    }
}

fn from_files(args: &Args, file: &Path, context: &Context) -> Result<Document<Explained>> {
    let mut files = vec![counters(context, file, args.cpu.as_deref())?];
    if let Some(other) = &args.against {
        files.push(counters(context, other, args.cpu.as_deref())?);
    }
    let cpu = files.iter().find_map(|f| f.cpu.clone());
    let processor = cpu.unwrap_or_else(|| "a processor that is not known".into());
    let mut head = header(Explained::SCHEMA, context, &processor);
    for file in &files {
        let named = |note: &String| format!("{}: {note}", file.of);
        head.warnings.extend(file.notes.iter().map(named));
    }
    if PrefetchForm::of(&processor).is_none() {
        let warning = format!("the prefetch counters of {processor} are not known");
        head.warnings.push(warning);
    }
    let seen: Vec<CountedRun> = (files.iter().enumerate())
        .map(|(index, file)| CountedRun {
            unloaded: (args.idle.get(index)).and_then(|&ns| host::unloaded(file, Nanos(ns))),
            // The exit status of a command that ran elsewhere does not fail this request.
            exit_status: None,
            ..CountedRun::of_file(file)
        })
        .collect();
    document(&seen, head)
}

fn document(seen: &[CountedRun], header: Header) -> Result<Document<Explained>> {
    let output = Explained::of(seen)?;
    Ok(Document { header, output })
}
