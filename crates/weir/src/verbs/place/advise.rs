//! `weir place advise`: finds or records the description for the study, or looks at a process.

use std::path::{Path, PathBuf};

use weir_insight::objects::PlaceAdvice;
use weir_insight::objects::policy::{ClassOf, TierNode, classes};
use weir_insight::studies::place::AdviseObjects;
use weir_lab::Study as _;
use weir_model::machine::{MachineError, MachineKind};
use weir_model::topology::{TierName, Topology};
use weir_model::units::Nanos;

use super::live;
use crate::context::Context;
use crate::driver::{self, Done, Job};
use crate::failure::{Failure, Result};
use crate::machine::{self, Chosen, HOST};
use crate::named::{at_region, find_for};
use crate::session::say;
use crate::shown::show;
use crate::store::RunId;
use crate::verbs::workload::{Recording, Tag};
use crate::{files, insight, system};

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
    /// Of a process: the time between two looks at what was touched.
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "pid")]
    pub interval: Nanos,
    /// Of a process: look at what is written, too; each first write to a page in an interval is a page fault then.
    #[arg(long, requires = "pid")]
    pub writes: bool,
    #[command(flatten)]
    pub tag: Tag,
    /// Write the advice here, as a policy of weir-alloc.
    #[arg(long, value_name = "FILE", conflicts_with = "pid")]
    pub policy: Option<PathBuf>,
    /// Of the policy: objects that are classes of the program, besides index, buffer, operator, temporary, log and cold; with
    /// the class, where it has another name.
    #[arg(long = "class", value_name = "OBJECT[=CLASS]", value_delimiter = ',', requires = "policy", value_parser = ClassOf::read)]
    pub classes: Vec<ClassOf>,
}

/// Advises, keeps and prints.
///
/// # Errors
/// The machine runs no descriptions or lacks these tiers, or the work failed.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    let study = &args.study;
    if args.tag.is_asked() && study.command.is_empty() {
        return Err(Failure::request("--tag is for a command after `--`"));
    }
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
    args.policy.as_deref().map(files::check).transpose()?;
    let recording = recording(args);
    let file = match &recording {
        Some(recording) => Some(recording.described(context)?),
        None => None,
    };
    let study = described(study, file.as_deref())?;
    let of_policy = of_policy(args, &study)?;
    let done = Job::once(context, &chosen, AdviseObjects::VERB)
        .run(&study)
        .map_err(|failure| larger(failure, &study))?;
    show(context, &done.document, done.kept_in())?;
    write_policy(args, &of_policy, &done, context)?;
    done.verdict()
}

/// Runs what a stopped run still lacks; a command that was recorded is not run again.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub(super) fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    let study = &args.study;
    let mut of_run = Vec::new();
    let mut again = |chosen: &Chosen| -> Result<AdviseObjects> {
        on_model(study, chosen)?;
        let file = recording(args).map(|recording| recording.file());
        let study = described(study, file.as_deref())?;
        of_run = of_policy(args, &study)?;
        Ok(study)
    };
    let done = driver::resume(context, run, None, |_, chosen, _| again(chosen))?;
    write_policy(args, &of_run, &done, context)?;
    done.verdict()
}

/// A failure of a program that is larger than a tier, with what answers for it nevertheless.
fn larger(failure: Failure, study: &AdviseObjects) -> Failure {
    let Failure::Request(error) = &failure else {
        return failure;
    };
    if !matches!(error.downcast_ref(), Some(MachineError::NoMemory { .. })) {
        return failure;
    }
    let failure = at_region(failure, study.workload.as_deref().unwrap_or_default());
    Failure::request(format!(
        "{}; or change the model, which runs the program as a whole on {} and on {}: `--on emr2s,dram.capacity=210GiB+cxl-a,capacity=210GiB` \
         has more memory on both, and --free says how much must move",
        failure.message().unwrap_or_default(),
        study.from,
        study.tier
    ))
}

/// How the command is recorded, where one was given.
fn recording(args: &Args) -> Option<Recording> {
    let study = &args.study;
    (!study.command.is_empty()).then(|| {
        Recording::of(&study.command, study.lasts, study.out.clone()).tagged(args.tag.clone())
    })
}

/// The classes of the policy; none where no policy is asked for.
fn of_policy(args: &Args, study: &AdviseObjects) -> Result<Vec<ClassOf>> {
    let (Some(file), Some(workload)) = (&args.policy, &study.described) else {
        return Ok(Vec::new());
    };
    let objects = workload.objects();
    let objects: Vec<&str> = objects.iter().map(|(name, ..)| *name).collect();
    classes(&objects, &args.classes).map_err(|why| {
        Failure::request(format!(
            "--policy {}: {}: {why}",
            file.display(),
            workload.name
        ))
    })
}

/// Writes the advice as a policy, and says what of it is not in there.
fn write_policy(
    args: &Args,
    classes: &[ClassOf],
    done: &Done<PlaceAdvice>,
    context: &Context,
) -> Result<()> {
    let Some(path) = &args.policy else {
        return Ok(());
    };
    let advice = &done.document.output;
    let host = system::find(HOST)?.and_then(|host| host.view.topology().ok());
    let nodes = nodes(&advice.from, &advice.to, host.as_ref());
    let made_by = format!(
        "weir place advise of {}, for the model {}, run {}",
        advice.workload,
        done.document.header.name(),
        done.run
    );
    let policy = advice.policy(classes, &nodes, &made_by);
    files::write(path, &policy.text)?;
    (policy.notes.iter()).for_each(|note| say(&format!("weir: warning: {note}")));
    context.note(&format!("wrote {}, a policy of weir-alloc", path.display()));
    Ok(())
}

/// The nodes of two tiers: those of this host, or the first that are free where it has no such tier.
fn nodes(from: &TierName, to: &TierName, host: Option<&Topology>) -> [TierNode; 2] {
    let here = |tier: &TierName| host?.tier(tier)?.node;
    let node = |tier: &TierName, other: Option<u32>, first: u32| TierNode {
        tier: tier.clone(),
        node: here(tier).unwrap_or(if other == Some(first) {
            1 - first
        } else {
            first
        }),
        assumed: here(tier).is_none(),
    };
    [node(from, here(to), 0), node(to, here(from), 1)]
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
