//! `weir reproduce --sensitivity`: what the assumed numbers do to the answers.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::json;
use weir_lab::reproduce::Engine;
use weir_lab::reproduce::sensitivity::{self, Assumption, End, Sensitivity};
use weir_model::document::{ParameterEffect, RowEffect, SensitivityDocument};
use weir_model::published::Published;
use weir_model::published::rule::{On, Watch};

use super::keep_and_print;
use crate::cli::Format;
use crate::context::Context;
use crate::failure::Result;
use crate::interrupt::Stop;
use crate::machine;
use crate::output::{Column, Table, figure, percent, to_csv, to_json, wrap};
use crate::progress::Progress;
use crate::store::Store;

/// A parameter that changes no row by this much changes nothing, in percent.
const NOTHING: f64 = 0.05;
/// A row counts as moved when it changes by more than this, in percent.
const MOVED: f64 = 5.0;

/// Tries every assumption, keeps and prints what they do.
///
/// # Errors
/// The work was stopped before its end, or the store does not take it.
pub(super) fn run(engine: Engine<'_>, chosen: &[Published], context: &Context) -> Result<()> {
    let store = Store::open(&context.store_path()?)?;
    let began = Instant::now();
    let answered = try_all(engine, chosen, context)?;
    let document = SensitivityDocument {
        schema: SensitivityDocument::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        seed: context.global.seed,
        elapsed_s: began.elapsed().as_secs_f64(),
        platforms: answered.usual.platforms,
        warnings: answered.usual.warnings,
        partial: answered.partial,
        effects: answered.effects,
    };
    let text = match context.global.format {
        Format::Table => table(&document),
        Format::Json => to_json(&document)?,
        Format::Csv => to_csv(lines(&document))?,
    };
    let missing = "parameters that were not tried";
    keep_and_print(store, context, "effects", json!(document), &text, missing)
}

fn try_all(engine: Engine<'_>, chosen: &[Published], context: &Context) -> Result<Sensitivity> {
    let progress = Mutex::new(None);
    let engine = Engine {
        with_slow: false,
        watch: &Quiet(&context.stop),
        ..engine
    };
    let asked = engine.asks(chosen).flat_map(|(_, asked)| asked);
    let platforms: BTreeSet<&str> = asked.map(|asked| asked.on.platform).collect();
    let platforms = platforms.into_iter().map(machine::compose);
    let assumptions = sensitivity::assumptions(&platforms.collect::<Result<Vec<_>>>()?);
    let open = |on: On, change: Option<(&Assumption, End)>| {
        let changes = change.into_iter().flat_map(|(assumption, end)| {
            (assumption.ranges.iter()).map(move |range| machine::Change {
                part: &range.part,
                key: &assumption.key,
                value: end.of(range),
            })
        });
        machine::simulate_changed(on.platform, &changes.collect::<Vec<_>>())
            .map_err(|failure| failure.message().unwrap_or_default())
    };
    let tried = |done: usize, of: usize| {
        if let Ok(mut progress) = progress.lock() {
            let begin = || Progress::begin("reproduce --sensitivity", of, context.global.quiet);
            progress.get_or_insert_with(begin).step(done, of);
        }
    };
    let answered = sensitivity::sensitivity(engine, chosen, &assumptions, &open, &tried);
    if let Ok(Some(progress)) = progress.into_inner() {
        progress.end();
    }
    Ok(answered)
}

/// Ends on request; single points are too many to show.
struct Quiet<'a>(&'a Stop);

impl Watch for Quiet<'_> {
    fn step(&self, _: usize) {}

    fn stop(&self) -> bool {
        self.0.requested()
    }
}

/// The parameters, the one that matters most first, and the row that each moves most.
fn table(document: &SensitivityDocument) -> String {
    let mut table = Table::new(&[
        Column::words("assumed"),
        Column::words("range"),
        Column::number("most\n%"),
        Column::words("row"),
        Column::number("at low"),
        Column::number("usual"),
        Column::number("at high"),
        Column::number("rows\nmoved"),
    ]);
    let (moving, still): (Vec<_>, Vec<_>) =
        (document.effects.iter()).partition(|effect| effect.largest_pct >= NOTHING);
    for effect in moving {
        let worst = effect.rows.first();
        let shown = |value: Option<f64>| value.map_or("-".into(), figure);
        table.row([
            effect.key.clone(),
            range(effect),
            percent(effect.largest_pct),
            worst.map_or("-".into(), |row| row.id.clone()),
            shown(worst.and_then(|row| row.at_low)),
            shown(worst.map(|row| row.ours)),
            shown(worst.and_then(|row| row.at_high)),
            moved(effect).to_string(),
        ]);
    }
    let mut text = table.to_string();
    let matter = document.effects.iter().filter(|e| moved(e) > 0).count();
    let _ = write!(
        text,
        "\n{}",
        wrap(
            &format!(
                "{} assumed parameters were set to both ends of their ranges, one at a time; \
                 {matter} of them move a row by more than {MOVED} %",
                document.effects.len()
            ),
            "",
            "  "
        )
    );
    if !still.is_empty() {
        let names: Vec<&str> = still.iter().map(|effect| effect.key.as_str()).collect();
        let line = format!("{} change nothing here: {}", names.len(), names.join(", "));
        text.push_str(&wrap(&line, "", "  "));
    }
    for effect in document.effects.iter().filter(|e| !e.note.is_empty()) {
        text.push_str(&wrap(
            &format!("{}: {}", effect.key, effect.note),
            "- ",
            "  ",
        ));
    }
    text
}

/// The widest range over all parts that assume it.
fn range(effect: &ParameterEffect) -> String {
    let mut ranges: Vec<String> = effect
        .ranges
        .iter()
        .map(|range| format!("{}..{}", range.low, range.high))
        .collect();
    ranges.dedup();
    match ranges.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

fn moved(effect: &ParameterEffect) -> usize {
    let moves = |row: &&RowEffect| row.change_pct > MOVED;
    effect.rows.iter().filter(moves).count()
}

/// A row of CSV: one published row under one parameter.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Line<'a> {
    key: &'a str,
    row: &'a str,
    published: f64,
    ours: f64,
    at_low: Option<f64>,
    at_high: Option<f64>,
    change_pct: f64,
}

fn lines(document: &SensitivityDocument) -> impl Iterator<Item = Line<'_>> {
    let effects = document.effects.iter();
    effects.flat_map(|effect| effect.rows.iter().map(|row| line(&effect.key, row)))
}

fn line<'a>(key: &'a str, row: &'a RowEffect) -> Line<'a> {
    Line {
        key,
        row: &row.id,
        published: row.published,
        ours: row.ours,
        at_low: row.at_low,
        at_high: row.at_high,
        change_pct: row.change_pct,
    }
}
