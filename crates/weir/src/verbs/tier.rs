//! `weir tier`: page placement on two tiers.

use clap::Subcommand;
use weir_model::machine::MachineKind;
use weir_steer::tier::Simulate;

use crate::context::Context;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::machine;
use crate::store::RunId;
use crate::studies::complete;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir tier simulate --on emr2s+cxl-a --workload web1
  weir tier simulate --on emr2s+cxl-a --workload cache1 --ratio 1:4")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Compare policies of page placement on the model of a machine.
    Simulate(Simulate),
}

/// Simulates, keeps and prints.
///
/// # Errors
/// The machine is a host or lacks a tier, there is no such workload or policy, or the work failed.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let What::Simulate(study) = &args.what;
    let chosen = machine::choose(&context.global.on)?;
    if chosen.identity.kind == MachineKind::Host {
        return Err(Failure::Missing(anyhow::anyhow!(
            "pages are simulated on a model; name one with --on, such as --on emr2s+cxl-a"
        )));
    }
    complete(context, &chosen, study)
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    let What::Simulate(study) = &args.what;
    driver::resume(context, run, None, |_, _, _| Ok(study.clone()))?.verdict()
}
