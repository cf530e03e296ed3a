//! Renderers of frames: text, CSV, Parquet, and pictures on the page. None knows a study.

pub mod chart;
pub mod parquet;
mod parts;
pub mod picture;
pub mod text;

use serde_json::Value;
use weir_lab::view::{Only, View};
use weir_model::access::Op;
use weir_model::frame::{Column, Frame, Kind, words};
use weir_model::number;
use weir_model::units::Bytes;

pub use crate::output::csv;
use crate::output::{figure, percent};

/// Rows of a frame that a view shows.
fn rows<'f>(view: &View, frame: &'f Frame) -> Vec<&'f [Value]> {
    let all = frame.rows.iter().map(Vec::as_slice).collect();
    view.only.iter().fold(all, |left: Vec<&[Value]>, only| {
        let shown = left.iter().filter(|row| holds(frame, &left, row, only));
        shown.copied().collect()
    })
}

/// Whether a condition holds for one of these rows.
fn holds(frame: &Frame, all: &[&[Value]], row: &[Value], only: &Only) -> bool {
    let number = |row: &[Value], column: &str| frame.number(row, column).unwrap_or(0.0);
    let extreme = |column: &str, alike: &[&str], beats: &dyn Fn(f64, f64) -> bool| {
        let same = |other: &&&[Value]| {
            (alike.iter()).all(|key| frame.cell(other, key) == frame.cell(row, key))
        };
        let mut others = all.iter().filter(same);
        !others.any(|other| beats(number(other, column), number(row, column)))
    };
    match only {
        Only::Is(column, value) => frame.cell(row, column) == value,
        Only::Begins(column, start) => words(frame.cell(row, column)).starts_with(start),
        Only::Has(column) => !frame.cell(row, column).is_null(),
        Only::Lacks(column) => frame.cell(row, column).is_null(),
        Only::OneOf(column, known) => known.contains(&words(frame.cell(row, column)).as_str()),
        Only::Most(column, alike) => extreme(column, alike, &|other, own| other > own),
        Only::Least(column, alike) => extreme(column, alike, &|other, own| other < own),
    }
}

/// Values of the columns in `by` that occur together, in the order in which they first occur, each with its rows.
/// A row without a value belongs to every group that has its other values.
fn groups<'f>(
    by: &[&str],
    frame: &Frame,
    rows: &[&'f [Value]],
) -> Vec<(Vec<Value>, Vec<&'f [Value]>)> {
    let key = |row: &[Value]| -> Vec<Value> {
        by.iter()
            .map(|column| frame.cell(row, column).clone())
            .collect()
    };
    let mut keys: Vec<Vec<Value>> = Vec::new();
    for row in rows {
        let key = key(row);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let belongs = |key: &[Value], to: &[Value]| {
        (key.iter().zip(to)).all(|(value, wanted)| value.is_null() || value == wanted)
    };
    // A key with gaps that fits another one is no group of its own.
    let whole: Vec<Vec<Value>> = (keys.iter())
        .filter(|key| {
            !keys
                .iter()
                .any(|other| *key != other && belongs(key, other))
        })
        .cloned()
        .collect();
    let of_key = |wanted: Vec<Value>| {
        let own = rows.iter().filter(|row| belongs(&key(row), &wanted));
        let own = own.copied().collect();
        (wanted, own)
    };
    whole.into_iter().map(of_key).collect()
}

/// Distinct values of a column, as [`distinct`].
fn values(frame: &Frame, rows: &[&[Value]], column: &str) -> Vec<Value> {
    let all = rows.iter().map(|row| frame.cell(row, column).clone());
    distinct(all.filter(|value| !value.is_null()))
}

/// Distinct values: numbers in their order, words in the order in which they first occur.
fn distinct(values: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut all = crate::output::distinct(values);
    if all.iter().all(Value::is_number) {
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        all.sort_by(|a, b| number(a).total_cmp(&number(b)));
    }
    all
}

/// A title with the group's values in place of its `{columns}`.
fn titled(view: &View, group: &[Value]) -> String {
    let mut title = view.title.clone();
    for (column, value) in view.each.iter().zip(group) {
        title = title.replace(&format!("{{{column}}}"), &named(column, value));
    }
    title
}

/// A key as a person reads it: `8 threads`, `64 KiB`, `, prefetchers off`.
fn named(column: &str, value: &Value) -> String {
    match (column, value) {
        (_, Value::Null) => "no".into(),
        ("prefetch", Value::Bool(true)) => String::new(),
        ("prefetch", _) => ", prefetchers off".into(),
        // A file of another tool that does not say how many.
        ("beside_threads", Value::Number(count)) if count.as_u64() == Some(0) => {
            "an unknown number of threads".into()
        }
        (column, Value::Number(count)) if column.ends_with("threads") => {
            let plural = if count.as_u64() == Some(1) { "" } else { "s" };
            format!("{count} thread{plural}")
        }
        (column, _) if column.ends_with("_bytes") => bytes(value),
        _ => short(value),
    }
}

/// A value as words, a number without what its sums have rounded: `3.9` of 3.9000000000000004.
pub fn short(value: &Value) -> String {
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) => words(&Value::from((number * 1e9).round() / 1e9)),
        None => words(value),
    }
}

fn bytes(value: &Value) -> String {
    value
        .as_u64()
        .map_or_else(|| words(value), |bytes| Bytes(bytes).to_string())
}

/// A figure without its interval.
fn plain(column: &Column, value: &Value, signed: bool) -> String {
    match (column.kind, value) {
        (_, Value::Null) => String::new(),
        (Kind::Text, _) if column.name == "weights" => words(value).replace('+', ":"),
        (Kind::Count, _) if column.unit == "B" => bytes(value),
        (Kind::Number, Value::Number(number)) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            if signed {
                percent(number)
            } else {
                figure(number)
            }
        }
        _ => words(value),
    }
}

/// The half-width of a figure's interval.
fn interval(frame: &Frame, row: &[Value], column: &Column) -> Option<f64> {
    frame.number(row, column.interval.as_deref()?)
}

/// A figure of a row as it stands in a table: with its interval, `?` behind one that beats its limit, `!` where
/// the row has an error in its place.
fn cell(frame: &Frame, row: &[Value], column: &Column, signed: bool, empty: &str) -> String {
    let value = frame.cell(row, &column.name);
    if value.is_null() {
        let failed = !column.unit.is_empty() && !frame.cell(row, "error").is_null();
        return if failed { "!".into() } else { empty.into() };
    }
    let mut text = plain(column, value, signed);
    text.push_str(&number::interval(interval(frame, row, column)));
    if column.interval.is_some() && frame.cell(row, "theory_beaten") == &Value::Bool(true) {
        text.push('?');
    }
    text
}

/// The number of a value's colour, the same in every picture of a page.
fn colour(column: &str, value: &Value, all: &[Value], tiers: &[String]) -> usize {
    let text = words(value);
    let known = match column {
        "op" => Op::ALL.iter().position(|op| op.name() == text),
        "tier" => tiers.iter().position(|tier| *tier == text),
        "standing" => ["front", "dominated", "infeasible", "impossible"]
            .iter()
            .position(|known| *known == text),
        "waits_for" => ["latency", "bandwidth"]
            .iter()
            .position(|known| *known == text),
        _ => None,
    };
    known
        .or_else(|| all.iter().position(|v| v == value))
        .unwrap_or(all.len())
}

/// The head of a column: its name without the unit, and the unit below.
fn head(column: &Column, named: Option<&str>) -> String {
    let suffixes = [
        "_ns", "_gbps", "gbps", "_pct", "_bytes", "_k_per_s", "_per_s", "_s",
    ];
    let bare = (suffixes.iter())
        .filter(|_| !column.unit.is_empty())
        .find_map(|suffix| column.name.strip_suffix(suffix));
    let name = match named {
        Some(name) => name.to_owned(),
        None => match bare.unwrap_or(&column.name) {
            "p999" => "p99.9".into(),
            "p9999" => "p99.99".into(),
            "p99999" => "p99.999".into(),
            other => other.replace('_', " "),
        },
    };
    match (name.as_str(), column.unit.as_str()) {
        (_, "") => name,
        ("", unit) => unit.to_owned(),
        (_, "B") => name,
        (_, unit) => format!("{name}\n{unit}"),
    }
}
