//! `weir tune`: which share of a workload's pages belongs on a slower tier.

mod host;

use clap::Subcommand;
use weir_insight::studies::tune::Interleave;
use weir_insight::two_tiers::Tiers;
use weir_lab::Study as _;
use weir_model::insight::SlowdownModel;
use weir_model::machine::{Identity, MachineKind};

use crate::context::Context;
use crate::counting;
use crate::driver::{self, Job};
use crate::failure::{Failure, Result};
use crate::insight::{self, Going, model_path, read_model};
use crate::keeping::Keeping;
use crate::machine::{self, Chosen};
use crate::named::find_for;
use crate::nodes::pair_here;
use crate::shown::show;
use crate::store::RunId;

/// The verb as the store has it.
pub const VERB: &str = Interleave::VERB;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir tune interleave scan --on skx2s --tier remote
  weir tune interleave my-service.toml --on emr2s+cxl-a --verify
  weir tune interleave --tier cxl0 --verify -- ./job")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Spread a workload's pages over two tiers by weights.
    Interleave(Box<Interleave>),
}

/// Advises, keeps and prints.
///
/// # Errors
/// The machine runs no workloads or lacks these tiers, or the work failed.
pub fn run(args: Args, context: &Context) -> Result<()> {
    let What::Interleave(args) = args.what;
    if args.workload.is_none() {
        return of_command(&args, context);
    }
    let study = described(*args)?;
    let chosen = machine::choose(&context.global.on)?;
    let study = on_model(study, context, &chosen)?;
    let done = Job::once(context, &chosen, VERB).run(&study)?;
    show(context, &done.document, done.kept_in())?;
    done.verdict()
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub fn resume(args: Args, context: &Context, run: RunId) -> Result<()> {
    let What::Interleave(args) = args.what;
    let again = |chosen: &Chosen| on_model(described(*args)?, context, chosen);
    driver::resume(context, run, None, |_, chosen, _| again(chosen))?.verdict()
}

fn described(mut args: Interleave) -> Result<Interleave> {
    let name = args.workload.as_deref().unwrap_or_default();
    args.described = Some(find_for(name, args.threads)?);
    Ok(args)
}

/// The study with the model that is calibrated for its tiers, or why there is none.
fn on_model(mut study: Interleave, context: &Context, chosen: &Chosen) -> Result<Interleave> {
    if chosen.identity.kind == MachineKind::Host {
        return Err(Failure::Missing(anyhow::anyhow!(
            "a description runs on a model; name one with --on, or a command of this host after `--`"
        )));
    }
    let tiers = insight::tiers(&chosen.topology, &study.from, &study.tier)?;
    study.model = model_of(context, &chosen.identity, &tiers)?.map(Box::new);
    let path = model_path(context, &chosen.identity, &tiers)?;
    let warning = format!(
        "no model of this pair is calibrated ({}), so there is no best-shot; `weir calibrate --on {} \
         --tier {} --interleave` makes one",
        path.display(),
        chosen.identity.name,
        tiers.to
    );
    study.without_model = study.model.is_none().then_some(warning);
    Ok(study)
}

/// The model that was calibrated for a pair, if one was.
fn model_of(context: &Context, machine: &Identity, tiers: &Tiers) -> Result<Option<SlowdownModel>> {
    let path = model_path(context, machine, tiers)?;
    (path.exists())
        .then(|| read_model(context, None, &path, &tiers.from, &tiers.to))
        .transpose()
}

/// Advises about a command of this host.
fn of_command(args: &Interleave, context: &Context) -> Result<()> {
    let keeping = Keeping::begin(context, VERB)?;
    let going = Going::on(context, "tune");
    counting::on_this_host(context, "weir tune interleave -- CMD")?;
    let (host, tiers) = pair_here(context, &args.from, &args.tier)?;
    let model = model_of(context, &host.identity, &tiers)?;
    let mut document = host::advise(args, context, model.as_ref(), (&host, &tiers), &going)?;
    going.end();
    document.header.partial |= context.stop.requested();
    keeping.put(document, None)
}
