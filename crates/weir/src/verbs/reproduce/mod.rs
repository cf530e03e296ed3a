//! `weir reproduce`: published figures beside ours, row by row.

mod beyond;
mod keep;
mod regulation;
mod sensitivity;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::json;
use weir_insight::published::{Insight, POPULATION};
use weir_lab::reproduce::{self, Beyond, Reproduction};
use weir_lab::{Finished, Watcher};
use weir_model::document::{ReproduceDocument, ReproduceRow, RowKind};
use weir_model::machine::Testbed;
use weir_model::published::{self, Published};

use crate::cli::Format;
use crate::context::{Context, say};
use crate::failure::{Failure, Result};
use crate::insight::Going;
use crate::interrupt::Stop;
use crate::machine;
use crate::output::{Column, Table, alike, figure, percent, print, to_csv, to_json, wrap};
use crate::progress::Progress;
use crate::store::Store;
use beyond::{Both, Later};
use keep::{Kept, keep};
use regulation::Regulation;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir reproduce
  weir reproduce memo
  weir reproduce supmario caption
  weir reproduce supmario --only SUP-01 --format csv
  weir reproduce memo --sensitivity")]
pub struct Args {
    /// Papers, by their names in published/ [default: all, without the rows that take minutes].
    #[arg(value_name = "PAPER")]
    papers: Vec<String>,
    /// Only rows whose id begins so; may be repeated.
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,
    /// Take each assumed parameter to both ends of its range instead, and rank them by what they
    /// change.
    #[arg(long)]
    sensitivity: bool,
}

/// Answers the rows, keeps and prints them.
///
/// # Errors
/// There is no such paper or row, or the work was stopped before its end.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    if args.sensitivity {
        return sensitivity::run(args, context);
    }
    let chosen = choose(args)?;
    let mut store = Store::open(&context.store_path()?)?;
    let began = Instant::now();
    let watcher = Counting {
        stop: &context.stop,
        quiet: context.global.quiet,
        progress: Mutex::new(None),
    };
    let open = |platform: &str| -> std::result::Result<Box<dyn Testbed>, String> {
        machine::simulate(platform).map_err(|failure| failure.message().unwrap_or_default())
    };
    let going = Going::on(context, "reproduce");
    let insight = Insight {
        go_on: &|of| going.step(of),
        workloads: POPULATION,
    };
    let regulation = Regulation {
        stop: &context.stop,
    };
    let both = Both(&insight, &regulation);
    let asked_for = !args.papers.is_empty() || !args.only.is_empty();
    let later = Later(&both);
    let beyond: &dyn Beyond = if asked_for { &both } else { &later };
    let answered = reproduce::rows(&chosen, &open, context.global.seed, &watcher, beyond);
    going.end();
    watcher.end();
    let elapsed_s = began.elapsed().as_secs_f64();
    let left_out = answered.left_out;
    let document = document(answered, context, elapsed_s);
    for warning in alike(document.warnings.iter().map(String::as_str)) {
        say(&format!("weir: warning: {warning}"));
    }
    let kept = Kept {
        verb: "reproduce",
        document: json!(document),
        platforms: &document.platforms,
        list_key: "rows",
        list: &document.rows,
        seed: document.seed,
        elapsed_s: document.elapsed_s,
        warnings: &document.warnings,
        partial: document.partial,
    };
    let trouble = keep(&mut store, context, kept).err();
    print(&match context.global.format {
        Format::Table => table(&document),
        Format::Json => to_json(&document)?,
        Format::Csv => to_csv(&document.rows)?,
    })?;
    if left_out > 0 {
        context.note(&format!(
            "{left_out} more rows state a configuration or context, not a figure"
        ));
    }
    if let Some(trouble) = trouble {
        let told = anyhow::Error::new(trouble).context("the results above are not all kept");
        return Err(Failure::Work(told));
    }
    if document.partial {
        return Err(Failure::Partial(
            "stopped: rows that were not finished are missing".into(),
        ));
    }
    Ok(())
}

/// The published rows that were asked for.
fn choose(args: &Args) -> Result<Vec<Published>> {
    let mut rows = reproduce::of_papers(&args.papers, published::builtin_rows())
        .map_err(|error| Failure::Request(error.into()))?;
    if !args.only.is_empty() {
        let among = match args.papers.as_slice() {
            [] => String::new(),
            papers => format!(" among those of {}", papers.join(", ")),
        };
        let begins = |row: &Published, id: &str| {
            row.id
                .get(..id.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(id))
        };
        if let Some(id) = args
            .only
            .iter()
            .find(|id| !rows.iter().any(|row| begins(row, id)))
        {
            return Err(Failure::request(format!(
                "no published row begins with `{id}`{among}; `weir reproduce` lists them all"
            )));
        }
        rows.retain(|row| args.only.iter().any(|id| begins(row, id)));
    }
    Ok(rows)
}

fn document(answered: Reproduction, context: &Context, elapsed_s: f64) -> ReproduceDocument {
    ReproduceDocument {
        schema: ReproduceDocument::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        seed: context.global.seed,
        elapsed_s,
        platforms: answered.platforms,
        warnings: answered.warnings,
        partial: answered.partial,
        rows: answered.rows,
    }
}

/// Every row, paper by paper, and under them how many agree.
pub fn table(document: &ReproduceDocument) -> String {
    let mut text = String::new();
    let papers = published::builtin();
    for rows in document.rows.chunk_by(|a, b| a.paper == b.paper) {
        let Some(first) = rows.first() else { continue };
        let title = papers
            .iter()
            .find(|p| p.name == first.paper)
            .map(|p| p.title.as_str());
        if !text.is_empty() {
            text.push('\n');
        }
        let heading = match title {
            Some(title) => format!("{}: {title}", first.paper),
            None => first.paper.clone(),
        };
        text.push_str(&wrap(&heading, "", "  "));
        let _ = write!(text, "{}", paper(rows));
        text.push_str(&notes(rows));
    }
    let _ = write!(text, "\n{}", count(&document.rows));
    text
}

fn paper(rows: &[ReproduceRow]) -> Table {
    let mut table = Table::new(&[
        Column::words("row"),
        Column::words("what"),
        Column::number("published"),
        Column::number("ours"),
        Column::words("unit"),
        Column::number("off\n%"),
        Column::words("kind"),
    ]);
    for row in rows {
        table.row([
            row.id.clone(),
            format!("{}, {}", row.what, row.condition),
            figure(row.published),
            row.ours.map_or("-".into(), figure),
            row.unit.clone(),
            row.difference_pct.map_or("-".into(), percent),
            kind(row.kind).into(),
        ]);
    }
    table
}

fn kind(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Calibrated => "calibrated",
        RowKind::Predicted => "predicted",
        RowKind::Replayed => "replayed",
        RowKind::NotModelled => "not modelled",
    }
}

/// Reasons, each once, with the rows they hold for.
fn notes(rows: &[ReproduceRow]) -> String {
    let mut by_note: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.note.is_empty()) {
        by_note.entry(&row.note).or_default().push(&row.id);
    }
    let mut text = String::new();
    for (note, ids) in by_note {
        text.push_str(&wrap(&format!("{}: {note}", ids.join(", ")), "- ", "  "));
    }
    text
}

/// One line for each kind of row.
fn count(rows: &[ReproduceRow]) -> String {
    let mut text = String::new();
    for wanted in [
        RowKind::Calibrated,
        RowKind::Predicted,
        RowKind::Replayed,
        RowKind::NotModelled,
    ] {
        let of_kind: Vec<&ReproduceRow> = rows.iter().filter(|row| row.kind == wanted).collect();
        if wanted == RowKind::Replayed && of_kind.is_empty() {
            continue;
        }
        let mut line = format!("{} rows {}", of_kind.len(), kind(wanted));
        let off: Vec<f64> = of_kind
            .iter()
            .filter_map(|r| r.difference_pct)
            .map(f64::abs)
            .collect();
        if !off.is_empty() {
            let mean = off.iter().sum::<f64>() / off.len() as f64;
            let within = |most: f64| off.iter().filter(|o| **o <= most).count();
            let worst = off.iter().copied().fold(0.0, f64::max);
            let _ = write!(
                line,
                ": {} within 5 %, {} within 20 %, {mean:.1} % off in the mean, {worst:.1} % at worst",
                within(5.0),
                within(20.0)
            );
        }
        text.push_str(&wrap(&line, "", "  "));
    }
    text
}

/// Shows progress over points, whose number is known once the first is done.
struct Counting<'a> {
    stop: &'a Stop,
    quiet: bool,
    progress: Mutex<Option<(Progress, usize)>>,
}

impl Counting<'_> {
    fn end(self) {
        let progress = self
            .progress
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((progress, _)) = progress {
            progress.end();
        }
    }
}

impl Watcher for Counting<'_> {
    fn finished(&self, _: &Finished, of: usize) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (shown, done) =
            progress.get_or_insert_with(|| (Progress::begin("reproduce", of, self.quiet), 0));
        *done += 1;
        shown.step(*done, of);
    }

    fn stop(&self) -> bool {
        self.stop.requested()
    }
}
