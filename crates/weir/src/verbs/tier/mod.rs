//! `weir tier`: pages on fast and slow tiers.
//!
//! | file | content |
//! |---|---|
//! | `advise` | the profile from which advice is given |
//! | `moves` | parts of memory that move to a tier, and what became of them |
//! | `profile` | which pages are touched how often: arguments |
//! | `profile_host` | of running processes |
//! | `profile_trace` | of a trace |
//! | `requests` | what `run` is asked for, in words |
//! | `run` | the kernel's own tiering on this host: set, counted, restored |
//! | `schemes` | schemes of DAMON, and what they did |
//! | `watch` | its windows, and what it asks of the kernel in them |
//! | `windows` | its document |

mod advise;
mod moves;
mod profile;
mod profile_host;
mod profile_trace;
mod requests;
mod run;
mod schemes;
mod watch;
mod windows;

use clap::Subcommand;
use weir_model::machine::MachineKind;
use weir_steer::tier::Simulate;
use weir_steer::tier::advise::Advise;
use weir_steer::tier::population::Population;

use crate::context::Context;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::machine::{self, Chosen};
use crate::store::RunId;
use crate::studies::complete;

pub use run::VERB as RUN;
pub use windows::{Tiered, in_words};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir tier simulate --on emr2s+cxl-a --workload web1
  weir tier simulate --on emr2s+cxl-a --workload cache1 --ratio 1:4
  weir tier population --on emr2s+cxl-a
  weir tier profile --on emr2s+cxl-a --workload cache1
  weir tier advise last --on emr2s+cxl-a --ratio 1:4
  weir tier run --for 10s
  weir tier run --demotion on --balancing tiering --promote-limit '0.1 GB/s'")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Compare policies of page placement on the model of a machine.
    Simulate(Simulate),
    /// Say which pages are touched how often: of a workload on a model, of processes of this host, of a trace.
    Profile(profile::Args),
    /// Compare policies on workloads that are drawn at random.
    Population(Population),
    /// Say from a profile whether tiering is worth it, and how much fast memory is needed.
    Advise(Advise),
    /// Set the kernel's own tiering on this host, count what it does, and restore it.
    Run(run::Args),
}

/// What was asked for.
///
/// # Errors
/// That of the verb; a simulation of a host, which is no model.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    match &args.what {
        What::Simulate(study) => complete(context, &model(context)?, study),
        What::Population(study) => complete(context, &model(context)?, study),
        What::Advise(study) => {
            let chosen = model(context)?;
            complete(context, &chosen, &advise::with_profile(study, context)?)
        }
        What::Run(args) => run::run(args, context),
        What::Profile(args) => profile::run(args, context),
    }
}

fn model(context: &Context) -> Result<Chosen> {
    let chosen = machine::choose(&context.global.on)?;
    if chosen.identity.kind == MachineKind::Host {
        return Err(Failure::Missing(anyhow::anyhow!(
            "pages are simulated on a model; name one with --on, such as --on emr2s+cxl-a"
        )));
    }
    Ok(chosen)
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    match &args.what {
        What::Simulate(study) => {
            driver::resume(context, run, None, |_, _, _| Ok(study.clone()))?.verdict()
        }
        What::Population(study) => {
            driver::resume(context, run, None, |_, _, _| Ok(study.clone()))?.verdict()
        }
        What::Advise(study) => {
            let study = advise::with_profile(study, context)?;
            driver::resume(context, run, None, |_, _, _| Ok(study.clone()))?.verdict()
        }
        What::Profile(args) if !args.is_of_host() => {
            driver::resume(context, run, None, |_, _, _| Ok(args.study.clone()))?.verdict()
        }
        What::Profile(_) => Err(Failure::request(
            "a profile of processes or of a trace is made in one go; begin another",
        )),
        What::Run(_) => Err(Failure::request(
            "a run of this host's tiering has ended with its settings; begin another",
        )),
    }
}
