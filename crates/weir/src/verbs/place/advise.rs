//! `weir place advise`: finds the description for the study.

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
use crate::verbs::workload::find_for;

/// Advises, keeps and prints.
///
/// # Errors
/// The machine runs no descriptions or lacks these tiers, or the work failed.
pub(super) fn run(study: &AdviseObjects, context: &Context) -> Result<()> {
    let study = described(study)?;
    let chosen = machine::choose(&context.global.on)?;
    on_model(&study, &chosen)?;
    let done = Job::once(context, &chosen, AdviseObjects::VERB).run(&study)?;
    show(context, &done.document, Some(done.run))?;
    done.verdict()
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub(super) fn resume(study: &AdviseObjects, context: &Context, run: RunId) -> Result<()> {
    let again = |chosen: &Chosen| {
        let study = described(study)?;
        on_model(&study, chosen)?;
        Ok(study)
    };
    driver::resume(context, run, None, |_, chosen, _| again(chosen))?.verdict()
}

fn described(study: &AdviseObjects) -> Result<AdviseObjects> {
    Ok(AdviseObjects {
        described: Some(find_for(&study.workload, study.threads)?),
        ..study.clone()
    })
}

fn on_model(study: &AdviseObjects, chosen: &Chosen) -> Result<()> {
    if chosen.identity.kind == MachineKind::Host {
        return Err(Failure::Missing(anyhow::anyhow!(
            "a description runs on a model; name one with --on. `weir workload record -o FILE -- CMD` makes the \
             description of a program of this host"
        )));
    }
    insight::tiers(&chosen.topology, &study.from, &study.tier).map(drop)
}
