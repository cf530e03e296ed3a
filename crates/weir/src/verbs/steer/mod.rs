//! `weir steer`: protects the fast tier.
//!
//! | file | content |
//! |---|---|
//! | `model` | a scenario on a model: run, stored and printed |
//! | `host` | this host, from the request to the loop |
//! | `calibrate` | measures the values of a machine that controllers need |
//! | `restore`, `explain`, `top` | the other verbs; `status` prints one picture of `top` |
//! | `config_file` | the configuration as a file |
//! | `options` | what a run is asked for: arguments, and tenants as users name them |
//! | `reporter` | the observers of each window |
//! | `tier` | the kernel's own tiering while the daemon runs |
//! | `log_file`, `socket`, `scrape`, `metrics` | the reports: a file, a socket, a port |
//! | `view`, `clock` | the status on a terminal; the time of day |

mod calibrate;
mod clock;
mod config_file;
mod explain;
mod host;
mod log_file;
mod metrics;
mod model;
mod options;
mod reporter;
mod restore;
mod scrape;
mod socket;
mod tier;
mod top;
mod view;

use clap::Subcommand;
use weir_steer::scenario::Scenario;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::machine::HOST;
use crate::output::{Column, Table, print_text};
use crate::store::RunId;
use options::RunArgs;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir steer run --on miku-a --scenario alternate100s
  weir steer run --on emr2s+cxl-a --scenario llm-decode --controller miku
  weir steer run --on emr2s+cxl-a --protect dram:redis-ycsb-a --rate 40k \\
      --restrain cxl0:nt_st --for '10 s'
  weir steer run --config /etc/weir/steer.toml
  weir steer dry-run --protect unit:db.service --restrain cgroup:/batch.slice \\
      --fast '110 ns'
  weir steer top
  weir steer scenarios")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Limit the tenants of the slow tier, as far as others need the fast one.
    Run(RunArgs),
    /// The same without a write: every decision is made, and no tenant is limited.
    #[command(after_help = "Example:\n  weir steer dry-run --config /etc/weir/steer.toml")]
    DryRun(RunArgs),
    /// Show the status of a running controller.
    Status(top::Asked),
    /// Show live which tenants are limited, and why: of this host, or of a scenario.
    #[command(after_help = "\
Examples:
  weir steer top
  weir steer top --on miku-a --scenario alternate100s")]
    Top(RunArgs),
    /// Measure the values of this host, or of a model, that controllers need.
    Calibrate(calibrate::Args),
    /// Restore what a killed run has left changed.
    Restore(restore::Args),
    /// Explain a decision.
    Explain(explain::Args),
    /// List the scenarios for models.
    #[command(after_help = "Example:\n  weir steer scenarios")]
    Scenarios,
}

/// Runs it.
///
/// # Errors
/// The request was wrong, or the machine failed.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    match &args.what {
        What::Run(args) if context.global.on == HOST => host::run(args, context, false),
        What::DryRun(args) if context.global.on == HOST => host::run(args, context, true),
        What::Run(args) => model::run(args, context, false),
        What::DryRun(args) => model::run(args, context, true),
        What::Status(args) => top::status(args, context),
        What::Top(args) => top::top(args, context),
        What::Calibrate(args) => calibrate::run(args, context),
        What::Restore(args) => restore::run(args, context),
        What::Explain(args) => explain::run(args, context),
        What::Scenarios => scenarios(),
    }
}

/// Runs what a stopped run of a scenario still lacks.
///
/// # Errors
/// As [`run`] has them, or the run is not one of a scenario.
pub fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    match &args.what {
        What::Run(args) => model::resume(args, context, false, run),
        What::DryRun(args) => model::resume(args, context, true, run),
        _ => Err(Failure::request("only `weir steer run` is resumed")),
    }
}

fn scenarios() -> Result<()> {
    let mut table = Table::new(&[Column::words("scenario"), Column::words("what happens")]);
    for (name, about) in Scenario::list() {
        table.row([name.to_owned(), about.to_owned()]);
    }
    print_text(&table.to_string())
}
