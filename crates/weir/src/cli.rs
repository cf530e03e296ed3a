//! The arguments, and their help.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand, ValueEnum};

use crate::verbs;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default());

const AFTER_HELP: &str = "\
Examples:
  weir tour                                    a first look, and weir-report.html
  weir topo                                    what this machine has and lacks
  weir doctor                                  what would spoil its figures
  weir bench bandwidth --op ld,nt_st --threads 1..16
  weir bench latency --on emr2s+cxl-a --format json

Exit codes:
  0  done
  1  the work failed, or was stopped (finished points are kept)
  2  the request was wrong: an argument, or a file it names
  3  this machine lacks a capability that the request needs";

/// Measures and regulates memory traffic on servers whose memory comes in tiers: on this machine,
/// or on a model of one.
#[derive(Debug, Parser)]
#[command(name = "weir", version, styles = STYLES, after_help = AFTER_HELP)]
#[command(
    term_width = 80,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What every verb takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Arguments that every verb takes.
#[derive(Debug, Clone, clap::Args)]
pub struct Global {
    /// Which machine: `host`, a platform (`emr2s+2xcxl-a@remote`), a platform file, or, to look
    /// at, a recording (`FILE.machine`, from `weir doctor --record`).
    ///
    /// A platform is a server and the devices behind its CXL ports, joined by `+`; `2x` in front
    /// of a device takes two, `@remote` behind it hangs it on the other socket. Each part may be
    /// the path of a TOML file instead of a name that `weir platforms list` knows. `host@4k` and
    /// `host@reserved` keep working sets in pages of 4 KiB and in reserved ones of 2 MiB; `host`
    /// takes 2 MiB where the kernel gives them on demand.
    #[arg(long, global = true, value_name = "MACHINE", default_value = "host")]
    pub on: String,
    /// How results are printed.
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Where runs are kept [default: weir/runs.sqlite in the user's data directory].
    #[arg(long, global = true, value_name = "PATH", env = "WEIR_STORE")]
    pub store: Option<PathBuf>,
    /// Seed of every random choice.
    #[arg(long, global = true, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// No progress on standard error; warnings and errors stay.
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For reading: at most 80 columns.
    Table,
    /// One document, as docs/json.md describes.
    Json,
    /// One row for each figure, with a head.
    Csv,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show tiers, caches and cores, and what is missing for trustworthy results.
    Topo(verbs::topo::Args),
    /// Say what would spoil a measurement or tiering, and the command that mends it.
    Doctor(verbs::doctor::Args),
    /// Put memory on tiers, and say whether the kernel did as it was told.
    Place(verbs::place::Args),
    /// List, show and check machines as files.
    Platforms(verbs::platforms::Args),
    /// List, show, check and run descriptions of programs.
    Workload(verbs::workload::Args),
    /// Characterise a machine.
    Bench(verbs::bench::Args),
    /// Say who hurts whom when tenants share a socket, by how much, and where.
    Interplay(verbs::interplay::Args),
    /// Count a command here, say how to count it elsewhere, and show what was counted.
    Counters(verbs::counters::Args),
    /// Say where a workload loses its cycles, and why it is slower on another tier.
    Explain(verbs::explain::Args),
    /// Fit the slowdown model for a machine and one of its tiers.
    Calibrate(verbs::calibrate::Args),
    /// Say how slow a workload would be on a tier, from one run on local memory.
    Predict(verbs::predict::Args),
    /// Say what share of a workload's pages should lie on a slower tier.
    Tune(verbs::tune::Args),
    /// Keep the fast tier fast: hold back who uses the slow one.
    Steer(verbs::steer::Args),
    /// Take a first look at this machine and a simulated CXL server, and leave a report.
    Tour(verbs::tour::Args),
    /// Compare published figures with ours, row by row.
    Reproduce(verbs::reproduce::Args),
    /// List, show and export what was measured.
    Runs(verbs::runs::Args),
    /// Write runs as one HTML page with charts.
    Report(verbs::report::Args),
    /// Print a page of the manual, for `man`.
    Man(verbs::man::Args),
    /// Print a completion script for a shell.
    Completions(verbs::completions::Args),
}
