//! `weir counters show`: a file of counters as a table, JSON or CSV.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;
use weir_model::counter_file::{CounterInterval, CountersDocument, KnownBy, ReadOptions};
use weir_model::counters::{Counter, CounterSet, RunningShare};

use crate::context::{Context, Format};
use crate::counting;
use crate::failure::Result;
use crate::output::{Column, Table, distinct, print_as, seconds, to_csv, to_json};
use crate::session::say;
use crate::stored;

/// How to read a file of counters.
#[derive(Debug, Clone, Default, clap::Args)]
struct Reading {
    /// The microarchitecture that was counted, if the file does not say: `spr`, `zen4`.
    #[arg(long, value_name = "NAME")]
    cpu: Option<String>,
    /// The control group to read, in a file with several.
    #[arg(long, value_name = "GROUP")]
    cgroup: Option<String>,
}

impl Reading {
    /// The same, for the parser.
    fn options(&self) -> ReadOptions {
        ReadOptions {
            cpu: self.cpu.clone(),
            cgroup: self.cgroup.clone(),
        }
    }
}

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file, `-` for standard input, or the number of a run of `weir runs import`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// Show the reason for every counter without a value.
    #[arg(long)]
    missing: bool,
}

/// Shows a file.
///
/// # Errors
/// It cannot be read, or is not a file of counters.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let document = match stored::counters(context, &args.file)? {
        Some(kept) => kept,
        None => counting::read_file(&args.file, &args.reading.options())?,
    };
    for note in &document.notes {
        say(&format!("note: {note}"));
    }
    let format = context.global.format;
    print_as(format, &text(&document, format, args.missing)?)
}

/// The document in a format.
pub(super) fn text(document: &CountersDocument, format: Format, missing: bool) -> Result<String> {
    match format {
        Format::Json => to_json(document),
        Format::Csv => to_csv(rows(document)),
        Format::Table => Ok(tables(document, missing)),
    }
}

/// A counter of an interval, or of the whole time: then without an end.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct IntervalRow {
    end_s: Option<f64>,
    counter: &'static str,
    value: Option<u64>,
    running_pct: Option<f64>,
    missing: Option<String>,
}

fn rows(document: &CountersDocument) -> Vec<IntervalRow> {
    let total = (None, &document.total);
    let interval = |i| -> (Option<f64>, &CounterSet) {
        let i: &CounterInterval = i;
        (Some(i.end.get() / 1e9), &i.counters)
    };
    std::iter::once(total)
        .chain(document.intervals.iter().map(interval))
        .flat_map(|(end_s, set)| {
            let values = set.iter().map(move |(counter, value)| IntervalRow {
                end_s,
                counter: counter.name(),
                value: Some(value),
                running_pct: Some(set.running_share(counter).get() * 100.0),
                missing: None,
            });
            let missing = set.missing().map(move |(counter, why)| IntervalRow {
                end_s,
                counter: counter.name(),
                value: None,
                running_pct: None,
                missing: Some(why.reason.clone()),
            });
            values.chain(missing).collect::<Vec<_>>()
        })
        .collect()
}

fn tables(document: &CountersDocument, missing: bool) -> String {
    let mut text = String::new();
    let known = match document.cpu_known_by {
        KnownBy::Stated => "as stated",
        KnownBy::Header => "from its header",
        KnownBy::Events => "from its events",
        KnownBy::Processor => "from the processor",
        KnownBy::Nothing => "",
    };
    let cpu = match &document.cpu {
        Some(cpu) => format!("{cpu}, {known}"),
        None => "unknown; the counters are those that all processors have".to_owned(),
    };
    let _ = writeln!(text, "counted    {}\nprocessor  {cpu}", document.of);
    if let Some(elapsed) = document.elapsed {
        let _ = writeln!(text, "elapsed    {}", seconds(elapsed.get() / 1e9));
    }
    let columns = [
        Column::words("counter"),
        Column::number("value"),
        Column::words("counted in"),
    ];
    let mut table = Table::new(&columns);
    for (counter, value) in document.total.iter() {
        let share = document.total.running_share(counter);
        let share = match share == RunningShare::WHOLE {
            true => String::new(),
            false => format!("{share} of the time"),
        };
        table.row([counter.name().to_owned(), amount(counter, value), share]);
    }
    if !table.is_empty() {
        let _ = write!(text, "\n{table}");
    }
    // A failed counter is always shown; a counter that was not requested is shown only on request.
    let tried = document.events.iter().filter_map(|event| {
        let why = event.why.as_ref()?;
        Some((event.event.clone(), why.clone()))
    });
    let mut table = Table::new(&[Column::words("no value"), Column::words("because")]);
    let all = document.total.missing();
    let all = all.map(|(counter, why)| (counter.name().to_owned(), why.reason.clone()));
    let unknown = document
        .events
        .iter()
        .filter(|event| event.known_as.is_none());
    let unknown = unknown.map(|event| {
        let why = "no portable counter uses it".to_owned();
        (event.event.clone(), why)
    });
    let lines: Vec<(String, String)> = match missing {
        true => all.chain(unknown).collect(),
        false => tried.chain(unknown).collect(),
    };
    for (names, why) in by_reason(lines) {
        table.row([names, why]);
    }
    if !table.is_empty() {
        let _ = write!(text, "\n{table}");
    }
    if !document.intervals.is_empty() {
        let _ = write!(text, "\n{}", series(document));
    }
    text
}

/// One line for each reason, with the first of the names that share it.
fn by_reason(lines: Vec<(String, String)>) -> Vec<(String, String)> {
    let reasons = distinct(lines.iter().map(|(_, why)| why.clone()));
    let line = |why: String| {
        let mut names = lines
            .iter()
            .filter(|(_, w)| *w == why)
            .map(|(name, _)| name);
        let first = names.next().cloned().unwrap_or_default();
        match names.count() {
            0 => (first, why),
            1 => (format!("{first} and another"), why),
            n => (format!("{first} and {n} others"), why),
        }
    };
    reasons.into_iter().map(line).collect()
}

/// The most important counters, interval by interval.
fn series(document: &CountersDocument) -> Table {
    const FIRST: [Counter; 6] = [
        Counter::Cycles,
        Counter::Instructions,
        Counter::StallsL3Miss,
        Counter::L3Miss,
        Counter::TaskClock,
        Counter::PageFaults,
    ];
    let has = |counter: &Counter| document.total.get(*counter).is_ok();
    let shown: Vec<Counter> = FIRST.into_iter().filter(has).take(4).collect();
    let mut columns = vec![Column::number("until s")];
    columns.extend(shown.iter().map(|counter| Column::number(counter.name())));
    let mut table = Table::new(&columns);
    for interval in &document.intervals {
        let mut cells = vec![format!("{:.3}", interval.end.get() / 1e9)];
        cells.extend(shown.iter().map(|&counter| {
            let value = interval.counters.get(counter);
            value.map_or_else(|_| "-".to_owned(), |value| amount(counter, value))
        }));
        table.row(cells);
    }
    table
}

/// A count, with its unit where it has one.
fn amount(counter: Counter, value: u64) -> String {
    let unit = if counter == Counter::TaskClock {
        " ns"
    } else {
        ""
    };
    grouped(value) + unit
}

/// Digits in groups of three.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
