//! `weir tier profile`: who touches which pages how often, on a model, in processes of this host, or in a trace.

use weir_model::machine::MachineKind;
use weir_steer::tier::profile::ProfileModel;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::machine;
use crate::studies::complete;

/// Arguments.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Workloads: web1, cache1, cache2, data-warehouse, stream.

Examples:
  weir tier profile --on emr2s+cxl-a --workload cache1
  weir tier profile --on emr2s+cxl-a --workload web1 --sampler events")]
pub struct Args {
    #[command(flatten)]
    pub study: ProfileModel,
}

impl Args {
    /// Whether processes of this host or a trace are profiled.
    pub(super) fn is_of_host(&self) -> bool {
        false
    }
}

/// Profiles what was named.
///
/// # Errors
/// Arguments of one source with another, or the source's own.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    let chosen = machine::choose(&context.global.on)?;
    if chosen.identity.kind == MachineKind::Host {
        return Err(Failure::request(
            "say what to profile: a model, as with --on emr2s+cxl-a",
        ));
    }
    complete(context, &chosen, &args.study)
}
