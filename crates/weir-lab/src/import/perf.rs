//! What `perf stat` prints, which the readers of `weir counters` and `weir explain` read.

use std::sync::LazyLock;

use weir_model::counter_file::{self, CountersDocument, ReadOptions};
use weir_model::events::EventLibrary;

use super::found::{Found, Hints, ImportError};
use super::readings::Reading;

static LIBRARY: LazyLock<EventLibrary> = LazyLock::new(EventLibrary::builtin);

/// Whether a text has the head of one, or is read without a mistake.
pub(super) fn is(text: &str) -> bool {
    let head = text.lines().take(40).any(|line| {
        let line = line.trim_start();
        line.starts_with("Performance counter stats for")
            || line.starts_with("# weir cpu")
            || line.contains("\"counter-value\"")
    });
    let options = ReadOptions::default();
    head || counter_file::read("", text, &options, &LIBRARY).is_ok_and(|d| !d.events.is_empty())
}

pub(super) fn read(file: &str, text: &str, hints: &Hints) -> Result<Found, ImportError> {
    let options = ReadOptions {
        cpu: hints.cpu.clone(),
        cgroup: None,
    };
    let document = counter_file::read(file, text, &options, &LIBRARY)?;
    Ok(Found {
        tool: "perf stat".into(),
        readings: readings(file, &document),
        counters: Some(document),
        ..Found::default()
    })
}

/// Every event over the whole time, and the counters of each interval.
fn readings(file: &str, document: &CountersDocument) -> Vec<Reading> {
    let reading = |name: &str| Reading {
        name: name.to_owned(),
        of: String::new(),
        socket: None,
        channel: None,
        at_s: None,
        value: None,
        // Readers take it in milliseconds or nanoseconds, and give it in the latter.
        unit: match name.split(':').next() {
            Some("task-clock") => "ns".into(),
            _ => String::new(),
        },
        known_as: None,
        running_pct: None,
        why: None,
        file: file.to_owned(),
        line: 0,
    };
    let events = document.events.iter().map(|event| Reading {
        value: event.value.map(|value| value as f64),
        known_as: event.known_as.clone(),
        running_pct: (event.value.is_some()).then(|| event.running.get() * 100.0),
        why: event.why.clone(),
        line: event.line.unwrap_or(0),
        ..reading(&event.event)
    });
    let intervals = document.intervals.iter().flat_map(|interval| {
        interval.counters.iter().map(|(counter, value)| Reading {
            at_s: Some(interval.end.get() / 1e9),
            value: Some(value as f64),
            known_as: Some(counter.name().into()),
            running_pct: Some(interval.counters.running_share(counter).get() * 100.0),
            ..reading(counter.name())
        })
    });
    events.chain(intervals).collect()
}
