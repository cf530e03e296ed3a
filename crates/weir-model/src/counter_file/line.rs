//! One counter of one line, whatever the form.

use super::number;
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
    /// Lines that say that a run begins.
    pub starts: Vec<u32>,
    /// Lines without counters.
    pub others: Vec<u32>,
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
