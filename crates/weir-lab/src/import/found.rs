//! What a file of another tool gives: figures as points, readings, and what was left, with the place of each.

use weir_model::access::{Dataflow, Locality, Op, Pattern};
use weir_model::diagnostic::quote;
use weir_model::document::Point;
use weir_model::latency::LatencySummary;
use weir_model::published::measured::Traffic;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Gigahertz, Nanos};

use super::readings::Reading;
use crate::{Load, PointSpec, figure};

/// What the user says of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hints {
    /// The tier of each NUMA node; that of an empty name is the tier of all figures.
    pub tiers: Vec<(String, TierName)>,
    /// Loading threads.
    pub threads: Option<u32>,
    /// MLC's `-W`.
    pub traffic: Option<u32>,
    /// The clock whose cycles a curve of Mess counts.
    pub clock: Option<Gigahertz>,
    /// Share of reads of a curve of Mess, in percent.
    pub reads: Option<u32>,
    /// The microarchitecture whose events were counted.
    pub cpu: Option<String>,
}

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The tool, with its version where the file has it.
    pub tool: String,
    /// Figures that a bench of ours measures.
    pub points: Vec<Point>,
    /// All else.
    pub readings: Vec<Reading>,
    /// Counters by their portable names, of `perf stat`.
    pub counters: Option<weir_model::counter_file::CountersDocument>,
    /// What was not taken over.
    pub left: Left,
}

/// Lines that were not taken over.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Left {
    /// How many.
    pub lines: usize,
    /// The first three, with their place.
    pub first: Vec<String>,
    /// What is known, and has no figure of ours: `cache-to-cache latencies (4 lines)`.
    pub known: Vec<(String, usize)>,
}

impl Left {
    const SHOWN: usize = 3;

    pub(super) fn line(&mut self, file: &str, number: usize, text: &str) {
        self.lines += 1;
        if self.first.len() < Self::SHOWN {
            self.first.push(format!(
                "{file}:{number}: {}",
                quote(&text.trim().replace('\t', " "))
            ));
        }
    }

    pub(super) fn known(&mut self, what: &str) {
        match self.known.iter_mut().find(|(known, _)| known == what) {
            Some((_, count)) => *count += 1,
            None => self.known.push((what.to_owned(), 1)),
        }
    }

    /// In words, for the warnings of a run.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.lines > 0 {
            let first = self.first.join("; ");
            all.push(match self.lines {
                1 => format!("1 line was not understood: {first}"),
                n => format!("{n} lines were not understood, first {first}"),
            });
        }
        for (what, count) in &self.known {
            all.push(match count {
                1 => format!("left out: {what}"),
                n => format!("left out, {n} times: {what}"),
            });
        }
        all
    }
}

/// Why a file is not taken over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// A line has an invalid value.
    #[error("{file}:{line}: {message}")]
    Line {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: usize,
        /// The key or column, and what is wrong.
        message: String,
    },
    /// The file as a whole does not do.
    #[error("{file}: {message}")]
    File {
        /// The file.
        file: String,
        /// What is wrong, and what was looked for.
        message: String,
    },
    /// A file of counters has a mistake.
    #[error(transparent)]
    Counters(#[from] weir_model::counter_file::CounterFileError),
}

pub(super) fn line(file: &str, line: usize, message: impl Into<String>) -> ImportError {
    ImportError::Line {
        file: file.into(),
        line,
        message: message.into(),
    }
}

pub(super) fn whole(file: &str, message: impl Into<String>) -> ImportError {
    ImportError::File {
        file: file.into(),
        message: message.into(),
    }
}

/// A positive number, or what is wrong with the text of a key.
pub(super) fn number(file: &str, at: usize, key: &str, text: &str) -> Result<f64, ImportError> {
    let number: Option<f64> = text.trim().parse().ok();
    let number = number.filter(|n| n.is_finite() && *n > 0.0 && *n < 1e12);
    number.ok_or_else(|| {
        let why = format!(
            "`{key}` is `{}`, but a positive number is wanted",
            quote(text.trim())
        );
        line(file, at, why)
    })
}

/// Where a figure is from: its file and line, and the tool.
pub(super) struct Origin<'a> {
    pub file: &'a str,
    pub tool: &'a str,
}

impl Origin<'_> {
    pub fn conditions(&self, place: impl std::fmt::Display, more: &[&str]) -> Vec<String> {
        let mut all = vec![format!("{}:{place}", self.file), self.tool.to_owned()];
        all.extend(more.iter().filter(|m| !m.is_empty()).map(|&m| m.to_owned()));
        all
    }
}

/// Threads that a file does not say.
pub(super) const UNKNOWN: u32 = 0;

/// The load of a traffic on a tier.
pub(super) fn traffic_load(traffic: Traffic, tier: &TierName, threads: u32, random: bool) -> Load {
    let pattern = match random {
        true => Pattern::RandomLine,
        false => Pattern::Sequential,
    };
    let load = Load::new(tier, traffic.op, pattern, threads, Bytes(0));
    match traffic.mix {
        Some((lines, per)) => load.reading(lines, per, tier, Dataflow::Apart),
        None => load,
    }
}

/// The chase whose latency is timed.
fn chase(tier: &TierName) -> Load {
    let pattern = Pattern::Chase {
        locality: Locality::TlbFriendly,
    };
    Load::new(tier, Op::Ld, pattern, 1, Bytes(0)).prefetch(false)
}

/// The latency of a chase on a tier, alone.
pub(super) fn latency(experiment: &str, tier: &TierName, socket: u32, ns: f64) -> Point {
    let spec = PointSpec::alone(experiment, chase(tier).on_socket(socket));
    with_latency(unmeasured(&spec), ns)
}

/// The bandwidth of a traffic, whose lines at the memory interface are counted.
pub(super) fn bandwidth(experiment: &str, load: Load, traffic: GbPerSec) -> Point {
    let factor = load.traffic_factor();
    let mut point = unmeasured(&PointSpec::alone(experiment, load));
    if (factor - 1.0).abs() > 1e-9 {
        let words = format!("{traffic:.3} at the memory, as it counts reads and writes there");
        point.conditions.push(words);
    }
    point.gbps = Some(traffic / factor);
    point.samples = 1;
    point
}

/// The latency of a chase with a traffic on the same tier.
pub(super) fn loaded(load: Load, pause: Nanos, ns: f64, traffic: GbPerSec) -> Point {
    let factor = load.traffic_factor();
    let spec = PointSpec::alone("loaded", chase(&load.tier)).beside(load.pausing(pause));
    let mut point = with_latency(unmeasured(&spec), ns);
    if let Some(beside) = &mut point.beside {
        beside.gbps = Some(traffic / factor);
        beside.traffic_gbps = Some(traffic);
    }
    point
}

pub(super) fn unmeasured(spec: &PointSpec) -> Point {
    Point {
        wss_bytes: None,
        ..figure::unmeasured(spec)
    }
}

fn with_latency(mut point: Point, ns: f64) -> Point {
    let mean = Nanos(ns);
    point.ns = Some(LatencySummary {
        mean,
        p50: mean,
        p90: None,
        p99: None,
        p999: None,
        p9999: None,
        p99999: None,
        max: mean,
        samples: 1,
    });
    point.samples = 1;
    point
}
