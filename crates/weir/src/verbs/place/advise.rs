//! `weir place advise`: finds or records the description for the study.

use std::path::Path;

use weir_insight::studies::place::AdviseObjects;
use weir_lab::Study as _;
use weir_model::machine::MachineKind;

use crate::context::Context;
use crate::driver::{self, Job};
use crate::failure::{Failure, Result};
use crate::insight;
use crate::machine::{self, Chosen};
use crate::store::RunId;
use crate::studies::show;
use crate::verbs::workload::{Recording, find_for};

/// Advises, keeps and prints.
///
/// # Errors
/// The machine runs no descriptions or lacks these tiers, or the work failed.
pub(super) fn run(study: &AdviseObjects, context: &Context) -> Result<()> {
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
pub(super) fn resume(study: &AdviseObjects, context: &Context, run: RunId) -> Result<()> {
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
