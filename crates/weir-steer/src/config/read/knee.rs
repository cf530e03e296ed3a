//! The knees of a machine: `[[machine.knee]]`.

use toml_edit::{Item, TableLike, Value};
use weir_model::diagnostic::{closest, did_you_mean, quote};
use weir_model::units::{GbPerSec, Nanos};

use super::{File, quantity};
use crate::knee::Knee;
use crate::limit::{Grain, Share};

/// The most knees that are accepted.
const MOST: usize = 64;
/// The table's name, for messages.
const NAME: &str = "machine.knee";

const KEYS: [&str; 8] = [
    "writes",
    "rest",
    "residency",
    "gives",
    "units",
    "much",
    "grain",
    "step",
];

/// All knees, in order of their share of writes. A knee with a mistake is reported and left out.
pub(super) fn all(file: &mut File<'_, '_>) -> Vec<Knee> {
    let Some(item) = file.table("machine").and_then(|table| table.get("knee")) else {
        return Vec::new();
    };
    let span = item.span().unwrap_or(0..0);
    let Some(tables) = item.as_array_of_tables().filter(|t| t.len() <= MOST) else {
        let message = format!("`{NAME}` is a list of tables, {MOST} at most");
        file.report(span, NAME, message, Some(format!("write `[[{NAME}]]`")));
        return Vec::new();
    };
    let mut knees: Vec<Knee> = tables.iter().filter_map(|table| one(file, table)).collect();
    knees.sort_by(|a, b| a.writes.total_cmp(&b.writes));
    knees
}

fn one(file: &mut File<'_, '_>, table: &toml_edit::Table) -> Option<Knee> {
    for (key, item) in table.iter().filter(|(key, _)| !KEYS.contains(key)) {
        let message = format!("`{}` is not a key of a knee", quote(key));
        let help = did_you_mean(&closest(key, KEYS.iter().copied()));
        file.report(item.span().unwrap_or(0..0), NAME, message, help);
    }
    let whole = KEYS[..5].iter().filter(|key| !table.contains_key(key));
    let missing: Vec<&str> = whole.copied().collect();
    if !missing.is_empty() {
        let message = format!("a knee lacks {}", missing.join(", "));
        file.report(table.span().unwrap_or(0..0), NAME, message, None);
        return None;
    }
    let grain = file.value_in(table, NAME, "grain", |value| match value.as_str() {
        Some("time") => Ok(None),
        Some("wide") => Ok(Some(Grain::Wide as fn(Share) -> Grain)),
        Some("narrow") => Ok(Some(Grain::Narrow as fn(Share) -> Grain)),
        _ => Err("is time, wide or narrow".into()),
    });
    let step = number(file, table, "step", 0.001, 1.0).map(Share::of);
    let grain = match (grain.flatten(), step) {
        (Some(grain), Some(step)) => grain(step),
        (Some(_), None) => {
            let message = "a grain of bandwidth allocation needs a `step`".to_owned();
            file.report(table.span().unwrap_or(0..0), NAME, message, None);
            return None;
        }
        (None, _) => Grain::Time,
    };
    Some(Knee {
        writes: number(file, table, "writes", 0.0, 1.0)?,
        rest: time(file, table, "rest")?,
        residency: time(file, table, "residency")?,
        gives: file.value_in(table, NAME, "gives", |value| {
            let gives: GbPerSec = quantity(value, "a bandwidth as in \"24.1 GB/s\"")?;
            match gives.get() > 0.0 && gives.get() < 1e5 {
                true => Ok(gives),
                false => Err("must be above zero and below 100 TB/s".into()),
            }
        })?,
        units: number(file, table, "units", 0.001, 4096.0)?,
        much: match table.get("much") {
            Some(Item::None) | None => None,
            Some(_) => Some(number(file, table, "much", 0.001, 4096.0)?),
        },
        grain,
    })
}

fn number(
    file: &mut File<'_, '_>,
    table: &dyn TableLike,
    key: &str,
    low: f64,
    high: f64,
) -> Option<f64> {
    file.value_in(table, NAME, key, |value: &Value| {
        let number = value.as_float().or(value.as_integer().map(|n| n as f64));
        match number {
            Some(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(format!("is a number from {low} to {high}")),
        }
    })
}

fn time(file: &mut File<'_, '_>, table: &dyn TableLike, key: &str) -> Option<Nanos> {
    file.value_in(table, NAME, key, |value| {
        let time: Nanos = quantity(value, "a time as in \"250 ns\"")?;
        match (Nanos(1.0)..=Nanos(1e6)).contains(&time) {
            true => Ok(time),
            false => Err("must be between 1 ns and 1 ms".into()),
        }
    })
}
