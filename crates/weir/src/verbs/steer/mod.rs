//! `weir steer`: protects the fast tier.
//!
//! | file | content |
//! |---|---|
//! | `model` | a scenario on a model: run, stored and printed |
//! | `host` | this host, from the request to the loop |
//! | `calibrate` | measures the values of a machine that controllers need |
//! | `restore`, `explain`, `top` | the other verbs; `status` prints one picture of `top` |
//! | `config_file` | the configuration as a file |
//! | `named` | tenants as users name them |
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
mod named;
mod reporter;
mod restore;
mod scrape;
mod socket;
mod tier;
mod top;
mod view;

use std::path::PathBuf;

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use weir_lab::interplay::per_second;
use weir_model::units::Nanos;
use weir_steer::config::Probing;
use weir_steer::registry::Policy;
use weir_steer::scenario::Scenario;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::machine::HOST;
use crate::output::{Column, Table, print};
use crate::store::RunId;
use named::Named;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir steer run --on miku-a --scenario alternate100s
  weir steer run --on emr2s+cxl-a --scenario llm-decode --controller miku
  weir steer run --on emr2s+cxl-a --protect dram:redis-ycsb-a --rate 40k \
      --restrain cxl0:nt_st --for '10 s'
  weir steer run --config /etc/weir/steer.toml
  weir steer dry-run --protect unit:db.service --restrain cgroup:/batch.slice \
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
    DryRun(RunArgs),
    /// Show the status of a running controller.
    Status(top::Asked),
    /// Show live which tenants are limited, and why: of this host, or of a scenario.
    Top(RunArgs),
    /// Measure the values of this host, or of a model, that controllers need.
    Calibrate(calibrate::Args),
    /// Restore what a killed run has left changed.
    Restore(restore::Args),
    /// Explain a decision.
    Explain(explain::Args),
    /// List the scenarios for models.
    Scenarios,
}

/// Arguments of a run.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  weir steer run --on miku-a --scenario alternate100s
  weir steer run --on miku-a --scenario small-and-bully --controller quota \\
      --for '10 s' --format json
  weir steer run --config /etc/weir/steer.toml

On this host it runs until a stop is requested (Ctrl-C, SIGTERM), and then
restores everything. A scope is cgroup:/PATH, unit:NAME.service, container:ID
or pid:NUMBER. Arguments override the configuration. On a model tenants run
for --for, 10 s by default; a stream has up to 16 threads.")]
pub struct RunArgs {
    /// The scenario on a model: `weir steer scenarios` lists them.
    #[arg(long, value_name = "NAME", 
        conflicts_with_all = ["config", "protect", "restrain", "auto", "fast", "probe", "log", "socket", "journal"])]
    scenario: Option<String>,
    /// On this host: a configuration, as docs/steer.md describes it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Tenants whose fast tier is protected: SCOPE on this host; TIER:OP or TIER:PROGRAM on a model.
    #[arg(long, value_name = "TENANT", value_delimiter = ',')]
    protect: Vec<Named>,
    /// Tenants that may be limited, named so too.
    #[arg(long, value_name = "TENANT", value_delimiter = ',')]
    restrain: Vec<Named>,
    /// On a model: requests that arrive in a second, of each named program that answers requests.
    #[arg(long, value_name = "N", requires = "protect", value_parser = per_second)]
    rate: Option<f64>,
    /// On this host: control groups become tenants, by the nodes of their pages.
    #[arg(long)]
    auto: bool,
    /// How long a request for DRAM without load stays in the Table of Requests here.
    #[arg(long, value_name = "TIME")]
    fast: Option<Nanos>,
    /// On this host: whether loads from the fast tier are timed; auto times them if the Table of Requests is
    /// not counted [default: auto].
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(Probing::ALL.map(Probing::name)))]
    probe: Option<String>,
    /// The decision log.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// The status socket [default: /run/weir/steer.sock].
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The folder of the journal [default: /var/lib/weir/steer].
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
    /// On a model: the actuators of tenants: cores, time, allocation, clock [default: all].
    #[arg(long = "means", value_name = "MEANS", value_delimiter = ',', conflicts_with = "config", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["cores", "time", "allocation", "clock"]))]
    actuators: Vec<String>,
    /// The controller [default: weir].
    #[arg(long, value_parser = PossibleValuesParser::new(Policy::ALL.map(Policy::name)))]
    controller: Option<String>,
    /// The length of a window [default: 250 ms].
    #[arg(long, value_name = "TIME")]
    window: Option<Nanos>,
    /// The period in which a tenant gets its processor time [default: 100 ms].
    #[arg(long, value_name = "TIME")]
    period: Option<Nanos>,
    /// End after this time [default: at the end of the scenario; on this host, never].
    #[arg(long = "for", value_name = "TIME")]
    lasts: Option<Nanos>,
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
    print(&table.to_string())
}
