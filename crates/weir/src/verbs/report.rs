//! `weir report`: runs as one page.

use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_lab::interplay::{Interplay, Matrix};
use weir_lab::{Outcome as _, Study as _};
use weir_model::document::BenchDocument;
use weir_model::units::Nanos;

use crate::context::{Context, Format};
use crate::failure::{Failure, Result};
use crate::files;
use crate::output::quoted;
use crate::report::{Insight, Section, page};
use crate::shown::{self, Shown};
use crate::store::{Store, StoredRun};
use crate::stored::{bench_document, load};
use crate::studies;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir report                         the newest run that has figures
  weir report 3 4 -o compare.html     two runs side by side
  weir report host emr2s+cxl-a        the newest run on each machine
  weir report 5 6 7                   slowdown, predictions, interleaving
                                      of such runs in one page")]
pub struct Args {
    /// Numbers, `last`, or beginnings of machines' names [default: the newest that is drawn].
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// The page; `-` for standard output.
    #[arg(long, short, value_name = "FILE", default_value = "weir-report.html")]
    output: PathBuf,
}

/// Writes the page.
///
/// # Errors
/// A run is not in the store or has no figures to draw, or the file cannot be written.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    if context.global.format != Format::Table {
        return Err(Failure::request(
            "a report is a page of HTML; remove --format, or write the runs by `weir runs export`",
        ));
    }
    let path = context.store_path()?;
    let store = Store::open_existing(&path)?;
    let names = if args.runs.is_empty() {
        vec![newest_drawn(store.as_ref())?]
    } else {
        args.runs.clone()
    };
    let (mut sections, mut insights) = (Vec::new(), Vec::new());
    for name in &names {
        let run = load(store.as_ref(), &path, name)?;
        match insight_of(&run)? {
            Some(insight) => insights.push(insight),
            None => sections.push(section(&run)?),
        }
    }
    write(&sections, &insights, &args.output)?;
    context.note(&format!("wrote {}", args.output.display()));
    Ok(())
}

fn newest_drawn(store: Option<&Store>) -> Result<String> {
    let runs = store.map(Store::list).transpose()?.unwrap_or_default();
    let measured =
        |verb: &str| verb.starts_with("bench") || ["tour", Interplay::VERB].contains(&verb);
    let newest = runs.iter().find(|run| {
        let known = measured(&run.verb) && run.kept > 0;
        let whole = !run.partial || run.kept > 0;
        known || (studies::is_study(&run.verb) && whole)
    });
    // Where there is none, `last` fails with the reason.
    Ok(newest.map_or_else(|| "last".into(), |run| run.id.to_string()))
}

/// A stored run as a part of a page.
///
/// # Errors
/// It holds something that is not drawn.
pub fn section(run: &StoredRun) -> Result<Section> {
    let document: BenchDocument = bench_document(run)?;
    let interplay = (run.summary.verb == Interplay::VERB)
        .then(|| shown::document::<Matrix>(run))
        .transpose()?
        .map(|document| document.output);
    Ok(Section {
        interplay,
        run: run.summary.id,
        began: run.summary.started.clone(),
        verb: run.summary.verb.clone(),
        command: command(&run.arguments, document.header.seed),
        latencies: latencies(&run.records, document.points.len()),
        document,
    })
}

/// A stored run whose figures are no points; `None` of any other.
///
/// # Errors
/// This version does not read what it holds.
fn insight_of(run: &StoredRun) -> Result<Option<Insight>> {
    let Some(reader) = studies::reader(run).filter(|_| !is_of_points(run)) else {
        return Ok(None);
    };
    Ok(Some(insight(run, (reader.shown)(run)?)))
}

/// The same of what was read before.
pub fn insight(run: &StoredRun, shown: Shown) -> Insight {
    Insight {
        run: run.summary.id,
        began: run.summary.started.clone(),
        verb: run.summary.verb.clone(),
        command: command(&run.arguments, shown.header.seed),
        shown,
    }
}

/// Whether a run measured points, whose figures have chapters of their own.
pub fn is_of_points(run: &StoredRun) -> bool {
    [BenchDocument::SCHEMA, Matrix::SCHEMA].contains(&run.schema())
}

/// What repeats a run: its arguments as they were typed, with the seed.
fn command(arguments: &Value, seed: u64) -> String {
    let typed = arguments.as_array().into_iter().flatten();
    let mut words: Vec<String> = std::iter::once("weir".to_owned())
        .chain(typed.filter_map(Value::as_str).map(quoted))
        .collect();
    // What follows is of another command.
    let own = words
        .iter()
        .position(|word| word == "--")
        .unwrap_or(words.len());
    let is_given = |word: &String| word == "--seed" || word.starts_with("--seed=");
    if !words[..own].iter().any(is_given) {
        words.insert(own, format!("--seed {seed}"));
    }
    words.join(" ")
}

/// The latencies of each point, where a record was kept for every one of them.
fn latencies(records: &[Value], points: usize) -> Vec<Vec<(Nanos, u64)>> {
    if records.len() != points {
        return Vec::new();
    }
    let recorded = records.iter().map(|record| {
        // A record without latencies has no such field.
        serde_json::from_value(record["latency"].clone()).unwrap_or_default()
    });
    recorded.collect()
}

/// Writes runs as a page; `-` is standard output.
///
/// # Errors
/// The file cannot be written.
pub fn write(sections: &[Section], insights: &[Insight], output: &Path) -> Result<()> {
    let html = page(sections, insights);
    if output.as_os_str() == "-" {
        return crate::output::print(&html);
    }
    files::write(output, html)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_is_repeated_by_what_was_typed() {
        let typed = json!(["bench", "latency", "--on", "./my card.toml", "--op", "it's"]);
        assert_eq!(
            command(&typed, 7),
            r"weir bench latency --on './my card.toml' --op 'it'\''s' --seed 7"
        );
        assert_eq!(
            command(&json!(["tour", "--seed=3"]), 3),
            "weir tour --seed=3"
        );
        let recorded = json!(["workload", "record", "--", "ls", "--seed"]);
        assert_eq!(
            command(&recorded, 1),
            "weir workload record --seed 1 -- ls --seed"
        );
        assert_eq!(command(&json!(null), 1), "weir --seed 1");
    }

    #[test]
    fn records_that_do_not_match_the_points_are_not_drawn() {
        let records = [json!({ "latency": [[90.5, 3]] }), json!({})];
        assert_eq!(latencies(&records, 2), [vec![(Nanos(90.5), 3)], vec![]]);
        assert!(latencies(&records, 3).is_empty());
    }
}
