//! `perf stat -j`, an object a line, and Weir's own document.

use serde_json::{Map, Value as Json};

use super::line::{Line, Lines, Value, share, with_unit, without_value};
use super::{CounterFileError, CountersDocument, number};
use crate::counters::RunningShare;
use crate::diagnostic::quote;

/// The document, if the text is one.
pub(super) fn own(file: &str, text: &str) -> Result<Option<CountersDocument>, CounterFileError> {
    let start: String = text
        .chars()
        .take(400)
        .filter(|c| !c.is_whitespace())
        .collect();
    if !start.starts_with("{\"schema\":\"weir/") {
        return Ok(None);
    }
    if !start.starts_with("{\"schema\":\"weir/counters/") {
        return Err(CounterFileError::file(
            file,
            "it is a document of Weir's, but not of counters",
        ));
    }
    let document: CountersDocument = serde_json::from_str(text).map_err(|error| {
        let line = error.line() as u32;
        let shown = text
            .lines()
            .nth(error.line().saturating_sub(1))
            .unwrap_or_default();
        CounterFileError::line(file, line, shown, error.to_string())
    })?;
    if document.schema != CountersDocument::SCHEMA {
        return Err(CounterFileError::file(
            file,
            format!(
                "it is a `{}`; this version reads `{}`",
                quote(&document.schema),
                CountersDocument::SCHEMA
            ),
        ));
    }
    Ok(Some(document))
}

/// Reads the lines that are objects.
pub(super) fn read(
    file: &str,
    content: &[(u32, &str)],
    lines: &mut Lines,
) -> Result<(), CounterFileError> {
    for &(n, text) in content {
        let trimmed = text.trim().trim_end_matches(',');
        if !trimmed.starts_with('{') {
            lines.others.push(n);
            continue;
        }
        let object: Map<String, Json> = serde_json::from_str(trimmed).map_err(|error| {
            CounterFileError::line(
                file,
                n,
                text,
                format!("the object does not end well: {error}"),
            )
        })?;
        if !object.contains_key("event") || !object.contains_key("counter-value") {
            // Metrics without an event of their own.
            lines.others.push(n);
            continue;
        }
        match line(n, &object) {
            Some(line) => lines.lines.push(line),
            None => {
                let message = "`counter-value`, `pcnt-running` or `interval` is no number";
                return Err(CounterFileError::line(file, n, text, message));
            }
        }
    }
    Ok(())
}

fn line(n: u32, object: &Map<String, Json>) -> Option<Line> {
    let text = |key: &str| match object.get(key) {
        Some(Json::String(text)) => Some(text.trim().to_owned()),
        Some(Json::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let running = match text("pcnt-running") {
        Some(percent) => share(&percent)?,
        None => RunningShare::WHOLE,
    };
    let end = match object.get("interval") {
        None => None,
        Some(seconds) => {
            let seconds = seconds.as_f64().filter(|s| (0.0..1e9).contains(s))?;
            Some((seconds * 1e9).round() as u64)
        }
    };
    let (value, unit) = (text("counter-value")?, text("unit").unwrap_or_default());
    let value =
        without_value(&value, running).or_else(|| with_unit(&value, &unit, number::whole))?;
    let place = [
        "cpu", "core", "die", "cluster", "cache", "socket", "node", "thread",
    ];
    let place = place.into_iter().filter_map(text).collect::<Vec<_>>();
    Some(Line {
        number: n,
        end,
        place: place.join(" "),
        cgroup: text("cgroup").filter(|group| !group.is_empty()),
        event: text("event").filter(|event| !event.is_empty())?,
        value: match value {
            // A counter cannot have a count with decimals.
            Value::Quantity(unit) if unit.is_empty() => return None,
            value => value,
        },
        running,
    })
}
