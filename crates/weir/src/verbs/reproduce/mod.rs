//! `weir reproduce`: published figures with ours, row by row.

mod sensitivity;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use serde_json::{Value, json};
use weir_lab::reproduce::{self, Engine, Reproduction};
use weir_model::document::{ReproduceDocument, ReproduceRow, RowKind};
use weir_model::machine::Testbed;
use weir_model::published::rule::{On, Rule};
use weir_model::published::{self, Published};

use crate::cli::Format;
use crate::context::{Context, say};
use crate::failure::{Failure, Result};
use crate::insight::Going;
use crate::output::{Column, Table, alike, figure, percent, print, to_csv, to_json, wrap};
use crate::store::{Figure, NewRun, RunState, Store, StoreError};
use crate::{host, machine};

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

/// The rules of every crate; the first for a row counts.
pub fn rules() -> Vec<Rule> {
    let mut rules = reproduce::rules();
    rules.extend(weir_insight::published::rules());
    rules.extend(weir_steer::published::rules());
    rules.extend(reproduce::unanswered());
    rules
}

/// Opens the model of a platform.
fn open(on: On) -> std::result::Result<Box<dyn Testbed>, String> {
    let opened = match on.sampled {
        true => machine::choose_sampled(on.platform).map(|chosen| chosen.testbed),
        false => machine::simulate(on.platform),
    };
    opened.map_err(|failure| failure.message().unwrap_or_default())
}

/// Answers the rows, keeps and prints them.
///
/// # Errors
/// There is no such paper or row, or the work was stopped before its end.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let chosen = choose(args)?;
    let going = Going::on(context, "reproduce");
    let rules = rules();
    let engine = Engine {
        rules: &rules,
        open: &open,
        seed: context.global.seed,
        with_slow: !args.papers.is_empty() || !args.only.is_empty(),
        watch: &going,
    };
    if args.sensitivity {
        return sensitivity::run(engine, &chosen, context);
    }
    let store = Store::open(&context.store_path()?)?;
    let began = Instant::now();
    let answered = engine.rows(&chosen);
    going.end();
    let left_out = answered.left_out;
    let document = document(answered, context, began.elapsed().as_secs_f64());
    for warning in alike(document.warnings.iter().map(String::as_str)) {
        say(&format!("weir: warning: {warning}"));
    }
    let text = match context.global.format {
        Format::Table => table(&document),
        Format::Json => to_json(&document)?,
        Format::Csv => to_csv(&document.rows)?,
    };
    let missing = "rows that were not finished";
    let ended = keep_and_print(store, context, "rows", json!(document), &text, missing);
    if left_out > 0 {
        context.note(&format!(
            "{left_out} more rows state a configuration or context, not a figure"
        ));
    }
    ended
}

/// Keeps a document as a run, and prints `text` whether or not it can be kept. `list_key` is the key of
/// the list of its figures; `missing` says what is missing where it was stopped before its end.
fn keep_and_print(
    mut store: Store,
    context: &Context,
    list_key: &'static str,
    document: Value,
    text: &str,
    missing: &str,
) -> Result<()> {
    let kept = keep(&mut store, context, list_key, &document);
    print(text)?;
    kept.map_err(|error| {
        Failure::Work(anyhow::Error::new(error).context("the results above are not all kept"))
    })?;
    match document["partial"] == json!(true) {
        true => Err(Failure::Partial(format!("stopped: {missing} are missing"))),
        false => Ok(()),
    }
}

fn keep(
    store: &mut Store,
    context: &Context,
    list_key: &'static str,
    document: &Value,
) -> std::result::Result<(), StoreError> {
    let list = document[list_key].as_array().map_or(&[][..], Vec::as_slice);
    let platforms: Vec<&String> = (document["platforms"].as_object().into_iter())
        .flat_map(|platforms| platforms.keys())
        .collect();
    let elapsed_s = document["elapsed_s"].as_f64().unwrap_or_default();
    let run = store.begin(&NewRun {
        verb: match list_key {
            "rows" => "reproduce".into(),
            _ => "reproduce --sensitivity".into(),
        },
        machine: match platforms.as_slice() {
            [only] => only.to_string(),
            several => format!("{} platforms", several.len()),
        },
        machine_kind: "sim".into(),
        digest: String::new(),
        seed: context.global.seed,
        arguments: json!(context.typed),
        host: host::fingerprint(),
        document: document.clone(),
        list_key,
        planned: list.len(),
    })?;
    for (seq, body) in list.iter().enumerate() {
        let figure: Figure<'_, _, ()> = Figure {
            seq,
            body,
            record: None,
            warnings: &[],
            elapsed_s,
            address: None,
        };
        store.add(run, &figure)?;
    }
    let warnings = document["warnings"].as_array().into_iter().flatten();
    let warnings: Vec<String> = (warnings.filter_map(Value::as_str))
        .map(str::to_owned)
        .collect();
    let state = match document["partial"] == json!(true) {
        true => RunState::Partial,
        false => RunState::Done,
    };
    store.finish(run, state, elapsed_s, &warnings)
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

/// Every row, paper by paper, and then how many agree.
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
    let has_own = rows.iter().any(|row| row.own_form.is_some());
    let own = has_own.then(|| Column::number("own\nform"));
    let columns = [
        Column::words("row"),
        Column::words("what"),
        Column::number("published"),
        Column::number("ours"),
    ];
    let rest = [
        Column::words("unit"),
        Column::number("off\n%"),
        Column::words("kind"),
    ];
    let columns: Vec<Column> = columns.into_iter().chain(own).chain(rest).collect();
    let mut table = Table::new(&columns);
    for row in rows {
        let shown = |value: Option<f64>| value.map_or("-".into(), figure);
        let cells = [
            row.id.clone(),
            format!("{}, {}", row.what, row.condition),
            figure(row.published),
            shown(row.ours),
        ];
        let own = has_own.then(|| shown(row.own_form));
        let rest = [
            row.unit.clone(),
            row.difference_pct.map_or("-".into(), percent),
            row.kind.name().into(),
        ];
        table.row(cells.into_iter().chain(own).chain(rest));
    }
    table
}

/// Notes, each once, with the rows that they are about.
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
    for wanted in RowKind::ALL {
        let of_kind: Vec<&ReproduceRow> = rows.iter().filter(|row| row.kind == wanted).collect();
        if of_kind.is_empty() {
            continue;
        }
        let mut line = format!("{} rows {}", of_kind.len(), wanted.name());
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
