//! One counter of one line, whatever the form.

use super::{CounterFileError, csv, json, number, text};
use crate::counters::RunningShare;

/// The event of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub number: u32,
    /// Nanoseconds since the start, where intervals are counted.
    pub end: Option<u64>,
    /// The processor, socket or thread that counted it.
    pub place: String,
    pub cgroup: Option<String>,
    pub event: String,
    pub value: Value,
    pub running: RunningShare,
}

/// The value, or the text in its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Counted(i128),
    /// `<not counted>` while nothing ran that it could have counted.
    Idle,
    /// `<not counted>` all the same.
    NotCounted,
    /// `<not supported>`.
    NotSupported,
    /// A quantity in a unit that no counter has.
    Quantity(String),
}

/// Everything in a file.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub lines: Vec<Line>,
    /// The microarchitecture that the header states.
    pub cpu: Option<String>,
    /// `seconds time elapsed`, in nanoseconds.
    pub elapsed: Option<f64>,
    /// `perf` blames the watchdog.
    pub watchdog: bool,
    /// Lines without counters.
    pub others: Vec<u32>,
}

/// Characters that `-x` is given, the usual ones first.
const SEPARATORS: [char; 5] = [',', ';', '\t', '|', ':'];

impl Lines {
    /// Reads a file in the form that fits most of its lines.
    pub fn read(file: &str, content: &str) -> Result<Self, CounterFileError> {
        let mut lines = Self::default();
        let rest: Vec<(u32, &str)> = (1..)
            .zip(content.lines())
            .filter(|(_, line)| !lines.header(line))
            .collect();
        if rest
            .iter()
            .any(|(_, line)| line.trim_start().starts_with('{'))
        {
            json::read(file, &rest, &mut lines)?;
        } else {
            let fitting = |separator: char| {
                let fits = |(n, line): &(u32, &str)| csv::read(*n, line, separator).is_some();
                rest.iter().take(200).filter(|line| fits(line)).count()
            };
            let scores = SEPARATORS.map(|separator| (fitting(separator), separator));
            let best = scores
                .into_iter()
                .reduce(|best, next| match next.0 > best.0 {
                    true => next,
                    false => best,
                });
            let separator = best.filter(|(score, _)| *score > 0).map(|(_, s)| s);
            for (n, line) in rest {
                let read = match separator {
                    Some(separator) => csv::read(n, line, separator),
                    None => text::read(n, line),
                };
                match read {
                    Some(line) => lines.lines.push(line),
                    None => lines.others.push(n),
                }
            }
        }
        if lines.lines.is_empty() {
            return Err(CounterFileError::file(
                file,
                "no line has a counter of `perf stat` (text, `-x,` or `-j`), and it is no document of Weir's",
            ));
        }
        Ok(lines)
    }

    /// Takes a line which is not a counter but has information; returns whether it was one.
    fn header(&mut self, line: &str) -> bool {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_ascii_whitespace();
            if (words.next(), words.next()) == (Some("weir"), Some("cpu")) {
                self.cpu = words.next().map(str::to_owned);
            }
            return true;
        }
        if let Some(elapsed) = line.split("seconds time elapsed").next()
            && elapsed.len() < line.len()
        {
            let seconds = elapsed.split_ascii_whitespace().next();
            self.elapsed = seconds.and_then(number::decimal).map(|s| s * 1e9);
            return true;
        }
        if line.contains("NMI watchdog") || line.contains("nmi_watchdog") {
            self.watchdog = true;
            return true;
        }
        line.is_empty()
            || line.starts_with("Performance counter stats for")
            || line.ends_with("seconds user")
            || line.ends_with("seconds sys")
    }
}

/// `<not counted>` and `<not supported>`; a share below 1 means that the event waited for
/// a counter, and was not idle.
pub(super) fn without_value(text: &str, running: RunningShare) -> Option<Value> {
    match text {
        "<not counted>" if running == RunningShare::WHOLE => Some(Value::Idle),
        "<not counted>" => Some(Value::NotCounted),
        "<not supported>" => Some(Value::NotSupported),
        _ => None,
    }
}

/// A value with its unit: a count, or a time in nanoseconds.
pub(super) fn with_unit(text: &str, unit: &str, count: fn(&str) -> Option<i128>) -> Option<Value> {
    let scaled = |factor: f64| {
        Some(Value::Counted(
            (number::decimal(text)? * factor).round() as i128
        ))
    };
    match unit {
        "" => count(text).map(Value::Counted),
        "msec" => scaled(1e6),
        "nsec" | "ns" => count(text).map(Value::Counted),
        _ => number::decimal(text).map(|_| Value::Quantity(unit.to_owned())),
    }
}

/// A percentage as a share, if it is one.
pub(super) fn share(percent: &str) -> Option<RunningShare> {
    let percent = number::decimal(percent)?;
    (0.0..=100.0)
        .contains(&percent)
        .then(|| RunningShare(percent / 100.0))
}

/// Seconds in nanoseconds.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let seconds = number::decimal(text.trim())?;
    (0.0..1e9)
        .contains(&seconds)
        .then(|| (seconds * 1e9).round() as u64)
}
