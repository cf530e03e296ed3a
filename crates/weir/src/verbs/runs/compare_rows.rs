//! Runs whose rows are not points, compared number by number: rows match by the words that tell them apart, and by the numbers
//! that tell apart rows of the same words.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_lab::Outcome as _;
use weir_lab::accept::Acceptance;
use weir_model::frame::{Frame, Kind};

use crate::documents::{ComparedRow, ComparedRuns};
use crate::failure::{Failure, Result};
use crate::output::{Column, Table, figure, wrap};
use crate::render::short;
use crate::store::StoredRun;
use crate::stored;

/// The numbers that two runs have in common.
///
/// # Errors
/// This version does not read a run, or they are of different kinds.
pub fn compare(a: &StoredRun, b: &StoredRun) -> Result<ComparedRuns> {
    if a.schema() != b.schema() {
        return Err(Failure::request(format!(
            "run {} is of {}, run {} of {}: they have no figures in common",
            a.summary.id, a.summary.verb, b.summary.id, b.summary.verb
        )));
    }
    // The main list of an acceptance is of its checks where it has some, and the figures are in any.
    let list = (a.schema() == Acceptance::SCHEMA).then_some("figures");
    let (in_a, in_b) = (stored::frame(a, list)?, stored::frame(b, list)?);
    for (run, found) in [(a, &in_a), (b, &in_b)] {
        if found.rows.is_empty() {
            let id = run.summary.id;
            return Err(Failure::request(format!(
                "run {id} has no figures to compare; `weir runs show {id}` shows what it has"
            )));
        }
    }
    let apart = keys(&in_a, &in_b);
    let (rows_a, mut rows_b) = (named(&in_a, &apart), named(&in_b, &apart));
    let mut rows = Vec::new();
    let mut only_a = 0;
    for (name, row) in &rows_a {
        match rows_b.remove(name) {
            Some(other) => {
                let found = numbers(&in_a, (&name.0, row), &in_b, other);
                // What names a row is the same in both.
                rows.extend((found.into_iter()).filter(|one| !apart.contains(&one.field.as_str())));
            }
            None => only_a += 1,
        }
    }
    if rows.is_empty() {
        return Err(Failure::request(format!(
            "runs {} and {} have no figures in common: their rows are of different things ({only_a} rows only in the first, {} \
             only in the second)",
            a.summary.id,
            b.summary.id,
            rows_b.len()
        )));
    }
    let effect = |row: &ComparedRow| match row.a.abs().max(row.b.abs()) {
        0.0 => 0.0,
        larger => (row.b - row.a).abs() / larger,
    };
    rows.sort_by(|x, y| effect(y).total_cmp(&effect(x)));
    Ok(ComparedRuns {
        a: a.summary.clone(),
        b: b.summary.clone(),
        figures: Vec::new(),
        rows,
        only_a,
        only_b: rows_b.len(),
    })
}

/// The columns that name rows. Numbers that name a row, such as the sockets of a pool, stand before those that were found.
fn keys<'f>(a: &'f Frame, b: &Frame) -> Vec<&'f str> {
    let varied = (a.columns.iter())
        .filter(|column| varies(a, &column.name) || varies(b, &column.name))
        .filter(|column| !REASONS.contains(&column.name.as_str()));
    let (texts, others): (Vec<_>, Vec<_>) = varied.partition(|column| column.kind == Kind::Text);
    let texts: Vec<&str> = texts.iter().map(|column| column.name.as_str()).collect();
    if let Some(name) = texts.iter().find(|column| is_name(a, b, column)) {
        return vec![*name];
    }
    let mut apart = texts.clone();
    for column in others {
        if is_unique(a, &apart) && is_unique(b, &apart) {
            break;
        }
        apart.push(&column.name);
    }
    match is_unique(a, &apart) && is_unique(b, &apart) {
        true => apart,
        false => texts,
    }
}

/// Columns that say why a figure is missing, and are no names.
const REASONS: [&str; 2] = ["error", "why"];

/// Whether each row has a name of its own.
fn is_unique(frame: &Frame, columns: &[&str]) -> bool {
    named(frame, columns).keys().all(|(_, at)| *at == 0)
}

/// Whether rows of a frame differ in a column.
fn varies(frame: &Frame, column: &str) -> bool {
    let mut cells = frame.rows.iter().map(|row| frame.cell(row, column));
    let first = cells.next();
    cells.any(|cell| Some(cell) != first)
}

/// Whether a column alone names each row, and names the same rows in both runs.
fn is_name(a: &Frame, b: &Frame, column: &str) -> bool {
    let (rows_a, rows_b) = (named(a, &[column]), named(b, &[column]));
    is_unique(a, &[column]) && is_unique(b, &[column]) && rows_a.keys().eq(rows_b.keys())
}

/// Rows by their words and numbers in some columns, and by their place among rows of the same words.
fn named<'f>(frame: &'f Frame, columns: &[&str]) -> BTreeMap<(String, usize), &'f [Value]> {
    let mut rows = BTreeMap::new();
    for row in &frame.rows {
        let text = |column: &&str| match frame.cell(row, column) {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            number => Some(format!("{column} {}", short(number))),
        };
        let texts: Vec<String> = columns.iter().filter_map(text).collect();
        let mut name = (texts.join(" "), 0);
        while rows.contains_key(&name) {
            name.1 += 1;
        }
        rows.insert(name, row.as_slice());
    }
    rows
}

fn numbers(
    in_a: &Frame,
    (name, row): (&str, &[Value]),
    in_b: &Frame,
    other: &[Value],
) -> Vec<ComparedRow> {
    let intervals: Vec<&String> = (in_a.columns.iter())
        .filter_map(|column| column.interval.as_ref())
        .collect();
    let of_column = |column: &weir_model::frame::Column| {
        let (a, b) = (
            in_a.number(row, &column.name)?,
            in_b.number(other, &column.name)?,
        );
        let half = |frame: &Frame, row: &[Value]| frame.number(row, column.interval.as_ref()?);
        let halves = half(in_a, row).zip(half(in_b, other));
        Some(ComparedRow {
            row: name.to_owned(),
            field: column.name.clone(),
            unit: column.unit.clone(),
            a,
            b,
            beyond_chance: halves.map(|(of_a, of_b)| (a - b).abs() > of_a.hypot(of_b)),
        })
    };
    (in_a.columns.iter())
        .filter(|column| column.kind == Kind::Number && !intervals.contains(&&column.name))
        .filter_map(of_column)
        .collect()
}

/// As a table of at most this many rows.
pub fn table(compared: &ComparedRuns, limit: usize) -> String {
    let ComparedRuns { a, b, rows, .. } = compared;
    let mut table = Table::new(&[
        Column::words("row"),
        Column::words("field"),
        Column::number("A"),
        Column::number("B"),
        Column::words("unit"),
        Column::words("beyond\nchance"),
    ]);
    for row in rows.iter().take(limit) {
        table.row([
            row.row.clone(),
            row.field.clone(),
            figure(row.a),
            figure(row.b),
            row.unit.clone(),
            match row.beyond_chance {
                Some(true) => "yes".into(),
                Some(false) => "no".into(),
                None => "?".into(),
            },
        ]);
    }
    let mut parts = vec![format!("{} numbers in both", rows.len())];
    if compared.only_a + compared.only_b > 0 {
        let (only_a, only_b) = (compared.only_a, compared.only_b);
        parts.push(format!("{only_a} rows only in A, {only_b} only in B"));
    }
    if rows.len() > limit {
        parts.push(format!("the {limit} largest effects are shown"));
    }
    let shown = match table.is_empty() {
        true => String::new(),
        false => table.to_string(),
    };
    super::compared(a, b) + &shown + &wrap(&parts.join("; "), "", "  ")
}
