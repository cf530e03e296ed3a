//! `weir place advise`: finds or records the description for the study, or looks at a process.

use std::path::Path;

use weir_insight::studies::place::AdviseObjects;
use weir_lab::Study as _;
use weir_model::machine::MachineKind;
use weir_model::units::Nanos;

use super::live;
use crate::context::Context;
use crate::driver::{self, Job};
use crate::failure::{Failure, Result};
use crate::insight;
use crate::machine::{self, Chosen};
use crate::store::RunId;
use crate::studies::show;
use crate::verbs::workload::{Recording, find_for};

/// Arguments.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub study: AdviseObjects,
    /// A process of this host, in place of a description.
    #[arg(
        long,
        value_name = "PID",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["workload", "command", "max_loss", "whole", "verify", "threads", "out", "from"],
    )]
    pub pid: Option<u32>,
    /// Of a process: look at what was touched so often.
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "pid")]
    pub interval: Nanos,
    /// Of a process: look at what is written, too; each first write to a page in an interval is a page fault then.
    #[arg(long, requires = "pid")]
    pub writes: bool,
}

/// Advises, keeps and prints.
///
/// # Errors
/// The machine runs no descriptions or lacks these tiers, or the work failed.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    let study = &args.study;
    if let Some(pid) = args.pid {
        return live::run(study, pid, args.interval, args.writes, context);
    }
    if study.workload.is_none() && study.command.is_empty() {
        return Err(Failure::request(
            "name a description (`weir workload list`), a command after `--`, or a process with --pid",
        ));
    }
    if study.lasts.is_some() && study.command.is_empty() {
        return Err(Failure::request(
            "--for is for a command after `--`, or for a process (--pid)",
        ));
    }
    let chosen = machine::choose(&context.global.on)?;
    on_model(study, &chosen)?;
    let recording = recording(study);
    let file = match &recording {
        Some(recording) => Some(recording.described(context)?),
        None => None,
    };
    let study = described(study, file.as_deref())?;
    let done = Job::once(context, &chosen, AdviseObjects::VERB).run(&study)?;
    show(context, &done.document, Some(done.run))?;
    done.verdict()
}

/// Runs what a stopped run still lacks; a command that was recorded is not run again.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub(super) fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    let study = &args.study;
    let again = |chosen: &Chosen| {
        on_model(study, chosen)?;
        let file = recording(study).map(|recording| recording.file());
        described(study, file.as_deref())
    };
    driver::resume(context, run, None, |_, chosen, _| again(chosen))?.verdict()
}

/// How the command is recorded, where one was given.
fn recording(study: &AdviseObjects) -> Option<Recording> {
    (!study.command.is_empty())
        .then(|| Recording::of(&study.command, study.lasts, study.out.clone()))
}

/// The study with a description: that of a file, or the one that was named.
fn described(study: &AdviseObjects, file: Option<&Path>) -> Result<AdviseObjects> {
    let named = match file {
        Some(file) => file.display().to_string(),
        None => study.workload.clone().unwrap_or_default(),
    };
    Ok(AdviseObjects {
        described: Some(find_for(&named, study.threads)?),
        ..study.clone()
    })
}

fn on_model(study: &AdviseObjects, chosen: &Chosen) -> Result<()> {
    if chosen.identity.kind == MachineKind::Host {
        return Err(Failure::Missing(anyhow::anyhow!(
            "a description runs on a model; name one with --on. `weir platforms fit` makes the model of this host"
        )));
    }
    insight::tiers(&chosen.topology, &study.from, &study.tier).map(drop)
}
