//! `weir counters record`: a command of this host, counted.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use weir_linux::perf::Target;
use weir_linux::{Root, perf};
use weir_model::counter_file::{CountedEvent, CounterInterval, CountersDocument, KnownBy};
use weir_model::counters::Counter;
use weir_model::events::{Amounts, EventLibrary, EventTable};
use weir_model::units::Nanos;

use super::{chosen, show};
use crate::cli::Format;
use crate::context::{Context, say};
use crate::failure::{Failure, Result};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
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
    /// Count everything that runs on this machine while the command does.
    #[arg(short, long)]
    all: bool,
    /// Count this process, and what it starts, while the command runs: `--pid 42 -- sleep 10`.
    #[arg(short, long, value_name = "PID", conflicts_with = "all")]
    pid: Option<u32>,
    /// Count the units outside the cores as well, for the whole machine while the command runs.
    #[arg(long)]
    uncore: bool,
}

/// Runs a command and counts it.
///
/// # Errors
/// A counter's name is not known, nothing can be counted, or the command cannot be started; or it
/// failed, and then the exit code is its own.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    if context.global.on != crate::machine::HOST {
        return Err(Failure::request(
            "`weir counters record` counts a command of this host; leave `--on` out",
        ));
    }
    let mut counters = chosen(&args.counters)?;
    if args.counters.is_empty() && !args.uncore {
        counters.retain(|counter| !counter.name().starts_with("unc_"));
    }
    let (root, library) = (Root::live(), EventLibrary::builtin());
    let table = perf::table(&root, &library);
    let mut notes = Vec::new();
    if let Err(why) = &table {
        notes.push(format!("only what the kernel keeps is counted: {why}"));
    }
    let table = table.ok();
    let targets = match (args.all, args.pid) {
        (true, _) => perf::every_cpu(&root),
        (false, Some(pid)) => perf::threads_of(&root, pid),
        (false, None) => Ok(vec![Target::Children]),
    };
    let targets = targets.map_err(|why| Failure::request(why.reason))?;
    let (program, arguments) = args.command.split_first().unzip();
    let mut command = Command::new(program.map_or("", String::as_str));
    command.args(arguments.unwrap_or_default());
    let every = args.interval.map(Duration::from_millis);
    let counted =
        perf::command::run(&root, table, &counters, &targets, every, command).map_err(|error| {
            let name = program.map_or("", String::as_str);
            Failure::request(format!("cannot run `{name}`: {error}"))
        })?;
    notes.extend(counted.notes.iter().cloned());
    if counted.elapsed < Nanos(1e6) {
        notes.push("it ended within a millisecond: its start is most of what was counted".into());
    }
    let code = match (counted.status.code(), counted.status.signal()) {
        (Some(code), _) => code,
        (None, signal) => 128 + signal.unwrap_or(0),
    };
    if code != 0 {
        notes.push(format!("the command failed: exit status {code}"));
    }
    let document = document(args, table, &counters, &counted, code, notes);
    for note in &document.notes {
        say(&format!("note: {note}"));
    }
    let format = match (&args.out, context.global.format) {
        // A file is to be read again.
        (Some(_), Format::Table) => Format::Json,
        (_, format) => format,
    };
    super::write(args.out.as_ref(), &show::text(&document, format, false)?)?;
    match u8::try_from(code) {
        Ok(0) => Ok(()),
        Ok(code) => Err(Failure::Command(code)),
        Err(_) => Err(Failure::Command(1)),
    }
}

fn document(
    args: &Args,
    table: Option<&EventTable>,
    counters: &[Counter],
    counted: &perf::command::Counted,
    code: i32,
    notes: Vec<String>,
) -> CountersDocument {
    let set = |amounts: &Amounts, of_all| perf::Session::counters(table, amounts, of_all);
    let mut before = Nanos(0.0);
    let intervals = counted.intervals.iter().map(|(end, amounts)| {
        let length = Nanos(end.get() - before.get());
        before = *end;
        CounterInterval {
            end: *end,
            length,
            counters: set(amounts, false),
        }
    });
    let events = counted.total.iter().map(|(name, amount)| CountedEvent {
        event: name.clone(),
        known_as: Some(name.clone()),
        value: amount.value.clone().ok(),
        running: amount.running,
        why: amount.value.as_ref().err().map(|why| why.reason.clone()),
        line: None,
    });
    // Of what was not asked for nothing is said but what this processor cannot count at all.
    let of_all = counters.len() == Counter::ALL.len();
    CountersDocument {
        schema: CountersDocument::SCHEMA.to_owned(),
        cpu: table.map(|table| table.name.clone()),
        cpu_known_by: match table {
            Some(_) => KnownBy::Processor,
            None => KnownBy::Nothing,
        },
        of: match (args.all, args.pid) {
            (true, _) => format!("this machine, during {}", args.command.join(" ")),
            (false, Some(pid)) => format!("process {pid}, during {}", args.command.join(" ")),
            (false, None) => args.command.join(" "),
        },
        exit_status: Some(code),
        elapsed: Some(counted.elapsed),
        total: set(&counted.total, of_all),
        intervals: intervals.collect(),
        events: events.collect(),
        notes,
    }
}
