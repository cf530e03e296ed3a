//! Values over time and counts of events, as a tool printed them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::counter_file::CountersDocument;

use crate::study::{About, Outcome};
use crate::view::{Axis, Medium, Only, View, col};
use crate::{Severity, Verdict};

/// A text's table has this many rows at most.
const SHOWN: usize = 40;

/// What another tool read from counters of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Readings {
    /// The values, in the order of the file.
    pub readings: Vec<Reading>,
    /// The files, in the order in which they were named.
    pub sources: Vec<Source>,
    /// The counters by their portable names, of a file of `perf stat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<CountersDocument>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Its name.
    pub file: String,
    /// The tool, with its version where the file has it.
    pub tool: String,
    /// Lines that were not understood.
    pub not_understood: usize,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// What was read: an event, or a column.
    pub name: String,
    /// What it is of: `SKT0`, `System`; empty for all that was counted.
    pub of: String,
    /// The socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<u32>,
    /// The channel of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<u32>,
    /// Seconds since the first of them; absent for the whole time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
    /// The value; bandwidths in GB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Its unit; empty for a count or a ratio.
    pub unit: String,
    /// The portable counter that an event is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_as: Option<String>,
    /// Share of the time in which an event was counted; its value is scaled to all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "%"))]
    pub running_pct: Option<f64>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The file.
    pub file: String,
    /// Its line.
    pub line: u32,
}

impl Readings {
    /// The mean of a column over time, and how often it was read.
    fn mean(&self, of: &str, name: &str) -> Option<(f64, usize)> {
        let own = |r: &&Reading| r.of == of && r.name == name && r.at_s.is_some();
        let values = || self.readings.iter().filter(own).filter_map(|r| r.value);
        let count = values().count();
        (count > 0).then(|| (values().sum::<f64>() / count as f64, count))
    }
}

impl Outcome for Readings {
    const SCHEMA: &'static str = "weir/readings/1";
    const TITLE: &'static str = "Readings of another tool";
    const WORDS: &'static str = "Values as the tool printed them; each has the line of its file.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let tool = self.sources.first().map_or("", |s| s.tool.as_str());
        let traffic = self.mean("System", "Read").or(self.mean("System", "READ"));
        let written = self
            .mean("System", "Write")
            .or(self.mean("System", "WRITE"));
        let missing = self.readings.iter().filter(|r| r.value.is_none()).count();
        let without = match missing {
            0 => String::new(),
            n => format!("; {n} have no value"),
        };
        let text = match (traffic, written) {
            (Some((read, count)), Some((write, _))) => format!(
                "{read:.2} GB/s read and {write:.2} GB/s written on average, read {count} times{without}"
            ),
            _ => {
                let known = self.readings.iter().filter(|r| r.known_as.is_some());
                format!(
                    "{} values, {} of counters that Weir knows{without}",
                    self.readings.len(),
                    known.count()
                )
            }
        };
        vec![Verdict::new(Severity::Note, tool, text)]
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let mut kinds: BTreeMap<bool, usize> = BTreeMap::new();
        for reading in &self.readings {
            *kinds.entry(reading.at_s.is_some()).or_default() += 1;
        }
        let mut views = vec![
            View::table(
                "readings",
                "What was read",
                vec![
                    col("of").if_any(),
                    col("at_s").head("at").if_any(),
                    col("name"),
                    col("value").empty("-"),
                    col("unit").if_any(),
                    col("known_as").head("counter").if_any(),
                    col("running_pct").head("counted in").if_any(),
                    col("why").head("no value because").if_any(),
                    col("line"),
                ],
            )
            .at_most(SHOWN)
            .on(Medium::Text),
        ];
        if kinds.contains_key(&true) {
            views.push(
                View::lines(
                    "readings",
                    "Bandwidth over time, {of}",
                    ("at_s", "time [s]"),
                    ("value", "bandwidth [GB/s]"),
                    &["name"],
                )
                .only(Only::Is("unit", serde_json::json!("GB/s")))
                .each(&["of"])
                .axes(Axis::Linear, Axis::Linear),
            );
        }
        views
    }
}
