//! `weir calibrate`: the constants of the slowdown model, for a machine and one of its tiers.

mod host;

use std::path::Path;

use weir_insight::documents::Calibrated;
use weir_insight::studies::calibrate::Calibrate;
use weir_lab::{Outcome as _, Study as _};
use weir_model::document::Document;

use crate::context::Context;
use crate::driver::header;
use crate::driver::{self, Done, Job};
use crate::failure::{Failure, Result};
use crate::insight::{self, Going, model_path, write_model};
use crate::keeping::Keeping;
use crate::machine::{self, Chosen, HOST};
use crate::shown::show;
use crate::store::RunId;

/// The verb as the store has it.
pub const VERB: &str = Calibrate::VERB;

/// Calibrates, writes the model, keeps and prints.
///
/// # Errors
/// The machine cannot run workloads or has not these tiers, no constants follow, or the model cannot be written.
pub fn run(args: &Calibrate, context: &Context) -> Result<()> {
    if context.global.on == HOST {
        return on_host(args, context);
    }
    let chosen = machine::choose(&context.global.on)?;
    let study = with_file(args, context, &chosen)?;
    let done = written(Job::once(context, &chosen, VERB).run(&study)?)?;
    show(context, &done.document, done.kept_in())?;
    context.note(&format!("wrote {}", done.document.output.file));
    done.verdict()
}

/// Runs what a stopped run still lacks, and writes the model.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub fn resume(args: &Calibrate, context: &Context, run: RunId) -> Result<()> {
    let again = |chosen: &Chosen| with_file(args, context, chosen);
    let done = driver::resume(context, run, None, |_, chosen, _| again(chosen))?;
    written(done)?.verdict()
}

fn written(done: Done<Calibrated>) -> Result<Done<Calibrated>> {
    let Calibrated { file, model } = &done.document.output;
    write_model(Path::new(file), model)?;
    Ok(done)
}

/// The study with the file that its model is written to.
fn with_file(args: &Calibrate, context: &Context, chosen: &Chosen) -> Result<Calibrate> {
    let mut study = args.clone();
    if study.output.is_none() {
        let tiers = insight::tiers(&chosen.topology, &args.from, &args.tier)?;
        study.output = Some(model_path(context, &chosen.identity, &tiers)?);
    }
    Ok(study)
}

/// Calibrates this host by micro-workloads that run here.
fn on_host(args: &Calibrate, context: &Context) -> Result<()> {
    let keeping = Keeping::begin(context, VERB)?;
    if args.interleave {
        return Err(Failure::Missing(anyhow::anyhow!(
            "--interleave sweeps streaming descriptions, which models run; on a host \
             `weir tune interleave -- CMD` climbs by time"
        )));
    }
    let host = host::find(context, &args.from, &args.tier)?;
    let going = Going::on(context, "calibrate");
    let model = host::calibrate(&host, context, &going)?;
    going.end();
    let file = match &args.output {
        Some(file) => file.clone(),
        None => model_path(context, &model.machine, &host.tiers)?,
    };
    write_model(&file, &model)?;
    let output = Calibrated {
        file: file.display().to_string(),
        model,
    };
    let mut header = header(Calibrated::SCHEMA, context, &host.topology.processor);
    header.machine = host.system.identity;
    header.warnings = output.doubts();
    keeping.put(Document { header, output }, None)?;
    context.note(&format!("wrote {}", file.display()));
    Ok(())
}
