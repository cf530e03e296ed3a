//! `weir tier`: pages on fast and slow tiers.
//!
//! | file | content |
//! |---|---|
//! | `run` | the kernel's own tiering on this host: set, counted, restored |
//! | `windows` | what it did, window by window |

mod run;
mod windows;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Result;

pub use run::VERB as RUN;
pub use windows::Tiered;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir tier run --for 10s
  weir tier run --demotion on --balancing tiering --promote-limit '0.1 GB/s'")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Set the kernel's own tiering on this host, count what it does, and restore it.
    Run(run::Args),
}

/// What was asked for.
///
/// # Errors
/// That of the verb.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    match &args.what {
        What::Run(args) => run::run(args, context),
    }
}
