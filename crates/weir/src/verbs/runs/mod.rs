//! `weir runs`: what was measured before.

mod compare;
mod compare_rows;
mod export;
mod import;
mod list;
pub mod merge;
mod mess;
mod streamer;

use std::path::Path;

use clap::Subcommand;

use crate::context::{Context, Format};
use crate::driver::POINTS;
use crate::failure::Result;
use crate::output::{alike, count, print, print_text, quoted, seconds, to_json, wrap};
use crate::render::csv;
use crate::session;
use crate::storage;
use crate::store::{RunLine, Store, StoredRun};
use crate::stored::{frame, json, load};
use crate::studies;

pub use export::{Sample, samples};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir runs list
  weir runs show last
  weir runs compare 3 7
  weir runs resume last
  weir runs export 3 --format csv -o run3.csv
  weir runs merge worker.sqlite
  weir runs import mlc.txt

A run is named by its number, by `last`, or by the beginning of its machine's
name, which means the newest run on that machine.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List runs, newest first: all of them, or those of a machine, experiment, tier or time.
    List(list::Args),
    /// Show a run as it was printed, and how to repeat it.
    #[command(after_help = "Examples:\n  weir runs show 3\n  weir runs show emr2s")]
    Show {
        /// A number, `last`, or the beginning of a machine's name.
        run: String,
    },
    /// Compare runs, figure by figure.
    Compare(compare::Args),
    /// Measure what a run that was stopped still lacks.
    #[command(
        after_help = "Examples:\n  weir runs resume 3\n  weir runs resume last --storage /var/tmp"
    )]
    Resume {
        /// A number, `last`, or the beginning of a machine's name.
        run: String,
        #[command(flatten)]
        storage: storage::Named,
    },
    /// Write runs to a file, or to standard output: JSON, CSV, Parquet.
    Export(export::Args),
    /// Add the runs of other stores to this one.
    Merge(merge::Args),
    /// Make a run of what another tool wrote: MLC, perf stat, PCM, STREAM, STREAMer, OCP CMS, Mess.
    Import(import::Args),
}

/// What takes up a stopped run: the verbs themselves know how.
pub type Resume = fn(&StoredRun, &Context, &storage::Named) -> Result<()>;

/// Lists, shows or exports.
///
/// # Errors
/// The store cannot be read, or has no such run.
pub fn run(args: &Args, context: &Context, resume: Resume) -> Result<()> {
    let path = context.store_path()?;
    let store = Store::open_existing(&path)?;
    match &args.what {
        What::List(args) => list::run(args, store.as_ref(), &path, context),
        What::Compare(args) => {
            if let [run, file] = args.runs.as_slice()
                && file.ends_with(".csv")
            {
                let run = load(store.as_ref(), &path, run)?;
                return streamer::compare(&run, Path::new(file), context);
            }
            let runs = (args.runs.iter())
                .map(|name| load(store.as_ref(), &path, name))
                .collect::<Result<Vec<_>>>()?;
            compare::run(args, &runs, context)
        }
        What::Resume { run, storage } => {
            let stored = load(store.as_ref(), &path, run)?;
            let run = stored.summary.id;
            // A run that lacks nothing needs no machine.
            if !stored.summary.partial {
                context.note(&format!("run {run} is done, and lacks nothing"));
                return show(&stored, context, false);
            }
            // The store is opened anew for writing; two connections would wait for each other.
            drop(store);
            let verdict = resume(&stored, context, storage);
            let shown = show(&Store::open(&path)?.load(run)?, context, false);
            verdict?;
            shown
        }
        What::Show { run } => {
            let run = load(store.as_ref(), &path, run)?;
            session::is_of(run.summary.id);
            show(&run, context, true)
        }
        What::Export(args) => {
            let mut runs: Vec<StoredRun> = Vec::new();
            for name in &args.runs {
                let run = load(store.as_ref(), &path, name)?;
                // `3 last` may be one run, whose rows are written once.
                if runs.iter().all(|one| one.summary.id != run.summary.id) {
                    runs.push(run);
                }
            }
            export::run(args, runs, context)
        }
        What::Merge(args) => {
            // Two connections would wait for each other.
            drop(store);
            merge::run(args, context)
        }
        What::Import(args) => {
            drop(store);
            import::run(args, context)
        }
    }
}

/// Prints a stored run, in a terminal after how it came about where that is asked for.
fn show(run: &StoredRun, context: &Context, history: bool) -> Result<()> {
    match context.global.format {
        Format::Table if history => print_text(&format!("{}\n{}", describe(run), text(run)?)),
        Format::Table => print_text(&text(run)?),
        Format::Json => print(&to_json(&json(run)?)?),
        Format::Csv => print(&csv::to_csv(&frame(run, None)?)?),
    }
}

/// A run with its machine; runs of `weir plan` may have none.
pub fn with_machine(id: impl std::fmt::Display, machine: &str) -> String {
    match machine {
        "" => format!("run {id}"),
        machine => format!("run {id} on {machine}"),
    }
}

/// Which runs are compared, and why their figures may differ whatever was measured.
fn compared(a: &RunLine, b: &RunLine) -> String {
    let mut text = format!(
        "A is {}, B is {}",
        with_machine(a.id, &a.machine),
        with_machine(b.id, &b.machine)
    );
    if a.machine == b.machine && a.digest != b.digest {
        text += &format!(
            "; these are not the same machine, or it has changed (digests {} and {})",
            a.digest, b.digest
        );
    }
    if a.weir != b.weir {
        text += &format!("; A is of Weir {}, B of Weir {}", a.weir, b.weir);
    }
    wrap(&text, "", "  ")
}

fn describe(run: &StoredRun) -> String {
    let summary = &run.summary;
    let on = match summary.machine.as_str() {
        "" => String::new(),
        machine => format!(" on {machine}"),
    };
    // Of a run whose figures all come from earlier ones, none is its own.
    let figures = match summary.planned {
        0 => String::new(),
        // A document that is made as a whole has as many rows as it could make.
        planned if summary.partial && summary.kept >= planned => {
            format!(" {} so far,", count(summary.kept as u64, "figure"))
        }
        planned => format!(" {} of {},", summary.kept, count(planned as u64, "figure")),
    };
    let mut text = wrap(
        &format!(
            "run {} ({}): {}{on},{figures} began {} UTC, took {}",
            summary.id,
            list::state(summary),
            summary.verb,
            summary.started,
            seconds(summary.elapsed_s)
        ),
        "",
        "  ",
    );
    let words = |value: &serde_json::Value| {
        let words = value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|w| w.as_str());
        words.map(quoted).collect::<Vec<_>>().join(" ")
    };
    text.push_str(&wrap(
        &format!("weir {}", words(&run.arguments)),
        "repeat  ",
        "        ",
    ));
    let mut made = format!("Weir {}, seed {}", summary.weir, summary.seed);
    if !summary.digest.is_empty() {
        made.push_str(&format!(", machine {}", summary.digest));
    }
    text.push_str(&wrap(&made, "made by ", "        "));
    let warnings = run.document["warnings"].as_array().into_iter().flatten();
    for warning in alike(warnings.filter_map(|w| w.as_str())) {
        text.push_str(&wrap(&warning, "warning ", "        "));
    }
    text
}

/// What a run found, as its verb prints it.
fn text(run: &StoredRun) -> Result<String> {
    let RunLine {
        id,
        partial,
        planned,
        ..
    } = run.summary;
    let points = run.document.get(POINTS).and_then(|list| list.as_array());
    if partial && (planned == 0 || points.is_some_and(Vec::is_empty)) {
        let text = format!("stopped before it had an answer; `weir runs resume {id}` goes on");
        return Ok(wrap(&text, "", "  "));
    }
    Ok(match studies::reader(run) {
        Some(reader) => {
            let shown = (reader.shown)(run)?;
            match points.filter(|_| partial && shown.views.is_empty()) {
                // Points of a study that has tables of its answer alone.
                Some(points) => wrap(
                    &format!(
                        "stopped before it had an answer; `weir runs resume {id}` goes on, and --format csv shows {}",
                        count(points.len() as u64, "figure")
                    ),
                    "",
                    "  ",
                ),
                None => shown.text(),
            }
        }
        None => wrap(
            &format!(
                "a document of kind {}; see it with --format json",
                run.schema()
            ),
            "",
            "",
        ),
    })
}
