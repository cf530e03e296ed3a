//! `weir explain`: where a workload, a command or a process loses its cycles.

mod application;
mod host;
mod options;

use std::path::Path;

use weir_insight::InsightError;
use weir_insight::documents::Explained;
use weir_insight::explain::CountedRun;
use weir_insight::studies::explain::Explain;
use weir_lab::{Outcome as _, Study as _};
use weir_model::document::Document;
use weir_model::insight::PrefetchForm;
use weir_model::units::Nanos;

use crate::context::Context;
use crate::counting;
use crate::counting::counters;
use crate::driver::header;
use crate::driver::{self, Job};
use crate::failure::{Failure, Result};
use crate::keeping::Keeping;
use crate::machine::{self, Chosen};
use crate::named::{find_for, real_program};
use crate::shown::show_in;
use crate::store::RunId;

pub use options::Args;

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
                None if !machine::is_host(&context.global.on) => Err(Failure::request(format!(
                    "{} is a recorded machine, and nothing runs on it; name a model with --on",
                    context.global.on
                ))),
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
        let done = Job::once(context, &chosen, Explain::VERB).run(&study)?;
        show_in(args.out.as_deref(), context, &done.document, done.kept_in())?;
        return done.verdict();
    }
    let keeping = Keeping::begin(context, Explain::VERB)?;
    let document = match &args.counters {
        Some(file) => from_files(args, file, context)?,
        None => host::explain(args, context)?,
    };
    let last = document.output.runs.last();
    let exit_status = last.and_then(|run| run.exit_status);
    let partial = document.header.partial;
    keeping.put(document, args.out.as_deref())?;
    counting::passed_on(exit_status)?;
    match partial {
        true => Err(Failure::Partial(
            "stopped: what was counted until then is explained".into(),
        )),
        false => Ok(()),
    }
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
    study.aggressor = host::beside(args, chosen)?;
    Ok(study)
}

fn from_files(args: &Args, file: &Path, context: &Context) -> Result<Document<Explained>> {
    if !machine::is_host(&context.global.on) {
        return Err(Failure::request(
            "a file of counters is of the machine that it was counted on; leave --on out, or name the processor with --cpu",
        ));
    }
    let paths: Vec<&Path> = std::iter::once(file)
        .chain(args.against.as_deref())
        .collect();
    args.check_idle(paths.len(), "file")?;
    let mut files = Vec::new();
    for path in &paths {
        files.push(counters(context, path, args.cpu.as_deref())?);
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
    let mut seen = Vec::new();
    for (index, (file, path)) in files.iter().zip(&paths).enumerate() {
        let name = path.display().to_string();
        let in_cycles = |&ns: &f64| {
            host::unloaded(file, Nanos(ns)).ok_or_else(|| {
                Failure::request(
                    "--idle is in ns, and only `cycles` and `task-clock` together tell how many cycles that is; count \
                     both, or leave --idle out",
                )
                .of(&name)
            })
        };
        let run = CountedRun {
            unloaded: args.idle.get(index).map(in_cycles).transpose()?,
            // The exit status of a command that ran elsewhere does not fail this request.
            exit_status: None,
            ..CountedRun::of_file(file)
        };
        run.explain().map_err(|why| of_file(why, &name))?;
        seen.push(run);
    }
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let output = Explained::of(&seen).map_err(|why| of_file(why, &names.join(" and ")))?;
    Ok(Document {
        header: head,
        output,
    })
}

/// What is wrong with a file is no lack of this machine.
fn of_file(why: InsightError, name: &str) -> Failure {
    Failure::Request(why.into()).of(name)
}
