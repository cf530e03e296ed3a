//! The arguments, and their help.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};
use weir_insight::studies::calibrate::Calibrate;

use crate::context::Global;
use crate::verbs;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default());

const AFTER_HELP: &str = "\
Examples:
  weir tour          measures this machine, and writes weir-report.html
  weir topo          shows the parts of this machine, and what it lacks
  weir doctor        shows problems that would spoil its figures
  weir bench bandwidth --op ld,nt_st --threads 1..16
  weir bench latency --on emr2s+cxl-a --format json

Exit codes:
  0  done
  1  the work failed, or was stopped (finished points are stored)
  2  the request was wrong: an argument, or a file it names
  3  this machine lacks a capability that the request needs
  4  a check found what must not be";

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
    /// Options of every verb.
    #[command(flatten)]
    pub global: Global,
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What `--on` takes.
pub const MACHINES: &str = "\
--on MACHINE names the machine that a command uses.

  host                  this machine, with pages of 2 MiB where the kernel gives
                        them on demand
  host@4k               this machine, working sets in pages of 4 KiB
  host@reserved         this machine, working sets in reserved pages of 2 MiB
  emr2s                 a model of a server; `weir platforms list` has the names
  emr2s+cxl-a           a server with a device behind its CXL ports
  emr2s+2xcxl-a         the same with two of the device
  emr2s+cxl-a@remote    the same with the device on the other socket
  emr2s,uncore.tor=40+cxl-a
                        with another value of a key of the part before the comma
  ./my.toml+cxl-a       a part from a file (docs/platforms.md)
  FILE.machine          a recording from `weir doctor --record`, to look at";

impl Cli {
    /// Reads arguments, the program's name first.
    ///
    /// # Errors
    /// What is wrong with them, or help that they ask for.
    pub fn read(arguments: &[OsString]) -> Result<Self, clap::Error> {
        Self::try_parse_from(arguments).map_err(|mut error| {
            if let Some(told) = no_number(&error) {
                return told;
            }
            let (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) =
                (error.kind(), error.get(ContextKind::InvalidArg))
            else {
                return error;
            };
            let unknown = unknown.clone();
            // What the help hides is no advice.
            if let Some(ContextValue::String(tip)) = error.get(ContextKind::SuggestedArg)
                && Self::command().get_arguments().any(|one| {
                    one.is_hide_set() && one.get_long() == Some(tip.trim_start_matches('-'))
                })
            {
                error.remove(ContextKind::SuggestedArg);
            }
            let is_number = unknown
                .strip_prefix('-')
                .is_some_and(|digit| digit.parse::<u8>().is_ok());
            let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
            let at = (words.iter()).position(|word| is_number && word.starts_with(&unknown));
            let Some(at) = at else { return error };
            // The option that it is of, where the word before is one.
            let named = (words[..at].last()).filter(|word| word.starts_with('-'));
            let of = named.map_or_else(String::new, |option| format!("{option} "));
            let text = format!("`{of}{}`: a value must not be negative\n", words[at]);
            clap::Error::raw(ErrorKind::InvalidValue, text)
        })
    }
}

/// What to say of a value that is no number, in place of the words of Rust's own parsers.
fn no_number(error: &clap::Error) -> Option<clap::Error> {
    let source = error.source()?;
    let whole = source.downcast_ref::<ParseIntError>();
    let why = match whole.map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow) => "it is too large",
        Some(IntErrorKind::NegOverflow) => "it is too small",
        Some(_) => "it is a whole number, such as 3",
        None => {
            source.downcast_ref::<ParseFloatError>()?;
            "it is a number, such as 0.5"
        }
    };
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let (value, option) = (of(ContextKind::InvalidValue), of(ContextKind::InvalidArg));
    let text = format!("invalid value '{value}' for '{option}': {why}\n");
    Some(clap::Error::raw(ErrorKind::ValueValidation, text))
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show tiers, caches and cores, and the capabilities that are missing.
    Topo(verbs::topo::Args),
    /// Show what would spoil a measurement or tiering, and the command that fixes it.
    Doctor(verbs::doctor::Args),
    /// Put memory on tiers and check that, or say which objects of a program may live on a slower one.
    Place(verbs::place::Args),
    /// List, show and check platform files.
    Platforms(verbs::platforms::Args),
    /// List, show, check and run descriptions of programs.
    Workload(verbs::workload::Args),
    /// Characterise a machine.
    Bench(verbs::bench::Args),
    /// Hold a server against its data sheet, its firmware, a platform or an earlier run.
    Accept(verbs::accept::Args),
    /// Show which tenants slow which others on a socket, by how much, and where.
    Interplay(verbs::interplay::Args),
    /// Count a command here, show how to count it elsewhere, and show counts.
    Counters(verbs::counters::Args),
    /// Show where a workload loses its cycles, and why it is slower on another tier.
    Explain(verbs::explain::Args),
    /// Fit the slowdown model for a machine and one of its tiers.
    Calibrate(Calibrate),
    /// Predict how slow a workload would be on a tier, from one run on local memory.
    Predict(verbs::predict::Args),
    /// Find the share of a workload's pages that should be on a slower tier.
    Tune(verbs::tune::Args),
    /// Protect the fast tier: limit the tenants that use the slow one.
    Steer(verbs::steer::Args),
    /// Place pages on fast and slow tiers: compare policies on a model, or set the kernel's own.
    Tier(verbs::tier::Args),
    /// Say whether servers should share memory: latency, cost, packing, and what a pool saves.
    Plan(verbs::plan::Args),
    /// Search a space of servers for the designs that no other dominates.
    Design(weir_design::study::DesignStudy),
    /// Say whether memory is consistent after a crash: states that stores, flushes and fences leave.
    Persist(verbs::persist::Args),
    /// Give VMs slices of a pool of memory and take them back, scrubbed, through QEMU.
    Pool(verbs::pool::Args),
    /// Name ranges of memory that hosts share: who owns them, who may map them, and scrub what is released.
    Namespace(verbs::namespace::Args),
    /// Measure this machine and a simulated CXL server, and write a report.
    Tour(verbs::tour::Args),
    /// Compare published figures with ours, row by row.
    Reproduce(weir_lab::reproduce::Reproduce),
    /// List, show, compare, resume and export stored runs.
    Runs(verbs::runs::Args),
    /// Write runs as one HTML page with charts.
    Report(verbs::report::Args),
    /// Print what `--on` takes.
    #[command(hide = true, long_about = MACHINES, help_template = "{about}\n")]
    Machines,
    /// Print a page of the manual, for `man`.
    Man(verbs::man::Args),
    /// Print a completion script for a shell.
    Completions(verbs::completions::Args),
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command, CommandFactory as _};

    use super::*;

    fn options(command: &Command) -> Vec<&Arg> {
        let below = command.get_subcommands().flat_map(options);
        command.get_arguments().chain(below).collect()
    }

    /// Clap takes the value of one for the other, and fails when it is read as another type.
    #[test]
    fn an_option_with_the_name_of_one_of_all_commands_has_its_type() {
        let command = Cli::command();
        let of_all: Vec<&Arg> = command.get_arguments().collect();
        assert!(of_all.iter().any(|one| one.get_id() == "engine"));
        for option in command.get_subcommands().flat_map(options) {
            let same = of_all.iter().find(|one| one.get_id() == option.get_id());
            let types = |one: &Arg| one.get_value_parser().type_id();
            assert!(
                same.is_none_or(|same| types(same) == types(option)),
                "{option}"
            );
        }
    }
}
