//! `weir counters record`: counts a command of this host.

use std::path::PathBuf;
use std::time::Duration;

use super::list::chosen;
use super::show;
use crate::context::{Context, Format};
use crate::counting::{self, Count};
use crate::failure::Result;
use crate::{files, output};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command and its arguments, after `--`.
    #[arg(last = true, required_unless_present = "pid", value_name = "CMD")]
    command: Vec<String>,
    /// Count in intervals of this many milliseconds, for phases.
    #[arg(short = 'I', long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    interval: Option<u64>,
    /// Write the document here instead of to standard output.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Only these counters, by their portable names.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    counters: Vec<String>,
    /// Count everything that runs on this machine while the command runs.
    #[arg(short, long)]
    all: bool,
    /// Count this process and its children while the command runs; without a command, until the process ends
    /// or Ctrl-C comes.
    #[arg(short, long, value_name = "PID", conflicts_with = "all")]
    pid: Option<u32>,
    /// Also count the units outside the cores, for the whole machine while the command runs.
    #[arg(long)]
    uncore: bool,
}

/// Runs a command and counts it.
///
/// # Errors
/// A counter's name is not known, nothing can be counted, or the command cannot be started; or the command
/// failed, and then the exit code is the command's.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    counting::on_this_host(context, "weir counters record")?;
    let mut counters = chosen(&args.counters)?;
    if args.counters.is_empty() && !args.uncore {
        counters.retain(|counter| !counter.name().starts_with("unc_"));
    }
    let count = Count {
        command: &args.command,
        pid: args.pid,
        others: &[],
        lasts: None,
        all: args.all,
        every: args.interval.map(Duration::from_millis),
        counters: &counters,
        policy: None,
    };
    args.out.as_deref().map(files::check).transpose()?;
    let document = count.run(&context.stop)?;
    counting::tell(&document);
    let format = match (&args.out, context.global.format) {
        // A file is to be read again.
        (Some(_), Format::Table) => Format::Json,
        (_, format) => format,
    };
    let text = show::text(&document, format, false)?;
    match args.out.as_deref().filter(|file| file.as_os_str() != "-") {
        None => output::print_as(format, &text),
        Some(file) => files::write(file, text),
    }?;
    counting::passed_on(document.exit_status)
}
