//! What a real application did on a Linux host: the outcome of `weir workload run` there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::number::seconds;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::Application;

use crate::study::{About, Outcome};
use crate::view::{Only, View, col};
use crate::{Severity, Verdict};

/// The verb by which its runs are stored.
pub const VERB: &str = "workload run on host";
/// The largest part of its pages that may be elsewhere: a kernel without free memory on a node takes another one.
const ELSEWHERE: f64 = 0.01;
/// How far shares of interleaved pages may be from those that were asked for, besides a few huge pages: the kernel takes turns
/// by page, whether small or huge.
const APART: f64 = 0.1;
const HUGE: Bytes = Bytes(8 << 21);
/// The part of the latency that the lateness of the generator may have.
const LATE: f64 = 0.1;
/// The share of offered requests that a server answers if it keeps up.
const KEEPS_UP: f64 = 0.95;

/// The figures of an application: the own part of a `workload-application` document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationRun {
    /// The workload's name.
    pub workload: String,
    /// The application that it describes.
    pub application: Application,
    /// What it says of its version.
    pub version: String,
    /// Its threads.
    pub threads: u32,
    /// Processors that it could use.
    pub processors: u32,
    /// Bytes of its data, without what it needs besides.
    pub bytes: Bytes,
    /// Connections of the generator of requests, where it answers requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Figures, a row each.
    pub figures: Vec<ApplicationFigure>,
    /// Where its pages were, a row for each node.
    pub memory: Vec<ApplicationMemory>,
}

/// A figure of an application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationFigure {
    /// The tiers of its pages: `cxl0`, or `dram=3,cxl0=1`.
    pub placement: String,
    /// What was done: `closed loop`, `open loop`, `q1`.
    pub what: String,
    /// Requests that were to arrive in a second, in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Requests that were due in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
    /// Answers in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_per_s: Option<f64>,
    /// Mean latency, from the time at which a request was due to its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<Nanos>,
    /// Its median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<Nanos>,
    /// 99 % are at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<Nanos>,
    /// 99.9 % are at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<Nanos>,
    /// 99 % of the requests were sent no later than this after they were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_p99_ns: Option<Nanos>,
    /// For this long the generator did nothing, where that is a tenth of the time or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_ns: Option<Nanos>,
    /// Requests without an answer when the run ended; each has the latency that it had waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<u64>,
    /// How long it ran, for what has one run time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<Nanos>,
    /// How many were done in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_per_s: Option<f64>,
    /// Of what: `tokens`, `transactions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Rows of its answer, or vertices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Wrong answers.
    pub wrong: u64,
    /// The first wrong answer, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_wrong: Option<String>,
    /// Why there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The pages of an application on a node, as `/proc/PID/numa_maps` has them. Pages of files are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationMemory {
    /// The tiers of its pages, as they were asked for.
    pub placement: String,
    /// The tier of the node, where one has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierName>,
    /// The node.
    pub node: u32,
    /// Bytes there.
    pub resident_bytes: Bytes,
    /// Their share of all its bytes.
    pub share: f64,
    /// The share that was asked for.
    pub asked: f64,
}

impl ApplicationFigure {
    /// Whether the generator of requests was late itself.
    pub fn is_late(&self) -> bool {
        match (self.late_p99_ns, self.p99_ns) {
            (Some(late), Some(p99)) => late > p99 * LATE,
            _ => false,
        }
    }

    fn falls_behind(&self) -> bool {
        let offered = self.rate_per_s.and(self.offered_per_s);
        offered
            .zip(self.answered_per_s)
            .is_some_and(|(offered, answered)| answered < KEEPS_UP * offered)
    }

    /// What it is, among others.
    fn name(&self) -> String {
        match self.rate_per_s {
            Some(rate) => format!("{} {rate:.0}/s", self.placement),
            None => format!("{} {}", self.placement, self.what),
        }
    }
}

impl ApplicationRun {
    /// Wrong answers of all figures.
    pub fn wrong(&self) -> u64 {
        self.figures.iter().map(|figure| figure.wrong).sum()
    }

    /// The first figure that could not be taken, and how many.
    pub fn failed(&self) -> Option<(&str, usize)> {
        let mut errors = self
            .figures
            .iter()
            .filter_map(|figure| figure.error.as_deref());
        errors.next().map(|first| (first, 1 + errors.count()))
    }

    /// The first row of memory which is not where it was asked for.
    pub fn misplaced(&self) -> Option<&ApplicationMemory> {
        self.memory.iter().find(|memory| !self.is_right(memory))
    }

    /// Whether this much of the memory of a placement is on a node as was asked for.
    fn is_right(&self, memory: &ApplicationMemory) -> bool {
        let apart = (memory.share - memory.asked).abs();
        if memory.asked == 0.0 || memory.asked >= 1.0 {
            return apart <= ELSEWHERE;
        }
        let same = self
            .memory
            .iter()
            .filter(|other| other.placement == memory.placement);
        let all: u64 = same.map(|other| other.resident_bytes.get()).sum();
        apart <= APART + HUGE.get() as f64 / all.max(1) as f64
    }

    /// Counts as wrong each figure whose rows or digest differ from those of the same question before.
    pub fn compare_answers(&mut self, checks: &[String]) {
        let mut known: Vec<(String, (Option<u64>, &str))> = Vec::new();
        for (figure, check) in self.figures.iter_mut().zip(checks) {
            if figure.rows.is_none() || matches!(check.as_str(), "" | "-") {
                continue;
            }
            let answer = (figure.rows, check.as_str());
            match known.iter().find(|(what, _)| *what == figure.what) {
                None => known.push((figure.what.clone(), answer)),
                Some((_, first)) if *first == answer => {}
                Some((_, first)) => {
                    figure.wrong += 1;
                    let count = |rows: Option<u64>| rows.unwrap_or_default();
                    figure.first_wrong.get_or_insert(format!(
                        "{} rows with digest {}, but {} with {} before",
                        count(answer.0),
                        answer.1,
                        count(first.0),
                        first.1
                    ));
                }
            }
        }
    }

    fn sentence(&self) -> String {
        let best = |figure: &&ApplicationFigure| figure.error.is_none();
        let mut parts: Vec<String> = Vec::new();
        for figure in self.figures.iter().filter(best) {
            let part = match (figure.answered_per_s, figure.p99_ns, figure.time_ns) {
                (Some(rate), Some(p99), _) => format!(
                    "{rate:.0} answers/s with 99 % within {} ({})",
                    short(p99),
                    figure.name()
                ),
                (Some(rate), None, _) => format!("{rate:.0} answers/s ({})", figure.name()),
                (_, p99, Some(_)) if figure.done_per_s.is_some() => {
                    let within = p99.map_or_else(String::new, |p99| {
                        format!(" with 99 % within {}", short(p99))
                    });
                    format!(
                        "{:.0} {}/s{within} ({})",
                        figure.done_per_s.unwrap_or_default(),
                        figure.unit.as_deref().unwrap_or_default(),
                        figure.name()
                    )
                }
                (_, _, Some(time)) => format!("{:.3} s ({})", time.get() / 1e9, figure.name()),
                _ => continue,
            };
            parts.push(part);
        }
        let more = parts.len().saturating_sub(3);
        parts.truncate(3);
        match (parts.is_empty(), more) {
            (true, _) => "no figure could be taken".to_owned(),
            (_, 0) => parts.join("; "),
            (_, more) => format!("{}; and {more} more", parts.join("; ")),
        }
    }
}

/// A latency in a sentence: `950 µs`, `926 ms`.
fn short(latency: Nanos) -> String {
    match latency.get() {
        ns if ns < 1e7 => format!("{:.0} µs", ns / 1e3),
        ns => format!("{:.0} ms", ns / 1e6),
    }
}

impl Outcome for ApplicationRun {
    const SCHEMA: &'static str = "weir/workload-application/1";
    const TITLE: &'static str = "Applications";
    const WORDS: &'static str = "A latency counts from the time at which a request was due.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let of = |severity, about: &str, text: String| Verdict::new(severity, about, text);
        let mut all = vec![of(Severity::Note, &self.workload, self.sentence())];
        for figure in &self.figures {
            let name = figure.name();
            if let Some(why) = &figure.error {
                all.push(of(Severity::Doubt, &name, format!("no figure: {why}")));
            }
            if figure.wrong > 0 {
                let first = figure
                    .first_wrong
                    .as_deref()
                    .unwrap_or("the first was not kept");
                let text = format!("{} answers are wrong, the first: {first}", figure.wrong);
                all.push(of(Severity::Wrong, &name, text));
            }
            if figure.is_late() {
                let late = short(figure.late_p99_ns.unwrap_or_default());
                let text = format!(
                    "the generator was itself late by up to {late} for 99 % of the requests, more than a tenth of \
                     their latency: its processor has other work, or the rate is too high for it"
                );
                all.push(of(Severity::Doubt, &name, text));
            }
            if let Some(held) = figure.held_ns {
                let text = format!(
                    "the generator did nothing for {} of the run: it was stopped, or found no processor, and the figures \
                     are too low",
                    seconds(held.as_secs())
                );
                all.push(of(Severity::Doubt, &name, text));
            }
            if figure.falls_behind() {
                let text = "the server does not keep up: latencies grow as long as the run lasts"
                    .to_owned();
                all.push(of(Severity::Doubt, &name, text));
            }
        }
        if self.processors < 2 && self.connections.is_some() {
            let text = "the server and the generator share one processor: latencies include turns of the other";
            all.push(of(Severity::Doubt, "processor", text.into()));
        }
        for memory in self.memory.iter().filter(|memory| !self.is_right(memory)) {
            let text = format!(
                "{:.1} % of its pages are on node {}, {:.1} % were asked for",
                memory.share * 100.0,
                memory.node,
                memory.asked * 100.0
            );
            all.push(of(Severity::Wrong, &memory.placement, text));
        }
        if !self.memory.is_empty() && self.misplaced().is_none() {
            let text =
                "its pages are where they were asked for, by the kernel's numa_maps".to_owned();
            all.push(of(Severity::Note, "placement", text));
        }
        let data = match self.version.is_empty() {
            true => format!("{} of data", self.bytes),
            false => format!("{}, {} of data", self.version, self.bytes),
        };
        all.push(of(Severity::Note, self.application.name(), data));
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let requests = vec![
            col("placement").head("tier"),
            col("rate_per_s").head("asked").if_any(),
            col("answered_per_s").head("answered"),
            col("mean_ns").head("mean"),
            col("p50_ns").head("p50"),
            col("p99_ns").head("p99"),
            col("p999_ns").head("p99.9"),
            col("wrong"),
        ];
        let times = vec![
            col("placement").head("tier"),
            col("what"),
            col("time_ns").head("time"),
            col("done_per_s").head("done").if_any(),
            col("unit").head("of").if_any(),
            col("rows"),
            col("wrong"),
        ];
        let latencies = vec![
            col("placement").head("tier"),
            col("what"),
            col("done_per_s").head("done"),
            col("unit").head("of"),
            col("p50_ns").head("p50"),
            col("p99_ns").head("p99"),
            col("p999_ns").head("p99.9"),
            col("wrong"),
        ];
        let memory = vec![
            col("placement").head("asked for"),
            col("tier"),
            col("node"),
            col("resident_bytes").head("resident"),
            col("share").share(),
            col("asked").head("of it").share(),
        ];
        let only = |mut view: View, column| {
            view.only = vec![Only::Has(column)];
            view
        };
        vec![
            only(
                View::table("figures", "Requests", requests),
                "answered_per_s",
            ),
            View {
                only: vec![Only::Has("time_ns"), Only::Lacks("mean_ns")],
                ..View::table("figures", "Run times", times)
            },
            View {
                only: vec![Only::Has("time_ns"), Only::Has("mean_ns")],
                ..View::table("figures", "Operations", latencies)
            },
            only(
                View::lines(
                    "figures",
                    "Latency under load",
                    ("rate_per_s", "requests/s"),
                    ("p99_ns", "99 % within, ns"),
                    &["placement"],
                ),
                "rate_per_s",
            ),
            View::table("memory", "Memory", memory),
        ]
    }
}

#[cfg(test)]
mod tests;
