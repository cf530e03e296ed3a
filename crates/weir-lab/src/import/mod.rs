//! What other tools wrote, read: their figures as [`Point`]s of our benches where a bench measures the same, and else as
//! [`Readings`] over time.
//!
//! A reader is a file here, a line in [`Kind`], and one in [`read`]. Each figure keeps its file and line; a line that no
//! reader knows is counted and shown; an invalid value is an error with its place.

pub mod config;
mod mess;
mod mlc;
pub(crate) mod nodes;
mod ocp;
mod pcm;
mod perf;
mod readings;
pub mod stream;

use weir_model::access::{Dataflow, Locality, Op, Pattern};
use weir_model::diagnostic::quote;
use weir_model::document::Point;
use weir_model::latency::LatencySummary;
use weir_model::published::measured::Traffic;
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::{Bytes, GbPerSec, Gigahertz, Nanos};

use crate::figure;
use crate::{Load, PointSpec};

pub use nodes::Places;
pub use readings::{Reading, Readings, Source};

weir_model::named! {
    /// The tool that wrote a file.
    #[derive(Default)]
    pub enum Kind {
        /// What Intel Memory Latency Checker prints.
        #[default]
        Mlc = "mlc",
        /// What `perf stat` prints: text, `-x`, `-j`.
        PerfStat = "perf-stat",
        /// CSV of Intel PCM: `pcm -csv`, `pcm-memory -csv`.
        Pcm = "pcm",
        /// What STREAM prints.
        Stream = "stream",
        /// STREAMer's CSV.
        Streamer = "streamer",
        /// Results of OCP's benchmarks of composable memory systems: CSV or JSON of MLC and STREAM.
        Ocp = "ocp-cms",
        /// A bandwidth-latency curve of Mess: `bwlat_N.txt`.
        Mess = "mess",
    }
}

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

    fn line(&mut self, file: &str, number: usize, text: &str) {
        self.lines += 1;
        if self.first.len() < Self::SHOWN {
            self.first.push(format!(
                "{file}:{number}: {}",
                quote(&text.trim().replace('\t', " "))
            ));
        }
    }

    fn known(&mut self, what: &str) {
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

/// The tool that wrote a text, where that is clear.
pub fn kind_of(file: &str, text: &str) -> Option<Kind> {
    let is = |kind: Kind| match kind {
        Kind::Mlc => mlc::is(text),
        Kind::PerfStat => perf::is(text),
        Kind::Pcm => pcm::is(text),
        Kind::Stream => stream::is_output(text),
        Kind::Streamer => stream::is_csv(text),
        Kind::Ocp => ocp::is(text),
        Kind::Mess => mess::is(file, text),
    };
    // Results of OCP are CSV and JSON, of which others see a part.
    let order = [
        Kind::Ocp,
        Kind::Streamer,
        Kind::Pcm,
        Kind::Mess,
        Kind::Stream,
        Kind::Mlc,
        Kind::PerfStat,
    ];
    order.into_iter().find(|&kind| is(kind))
}

/// Reads the text of a file.
///
/// # Errors
/// A value is invalid, or the text has nothing of this kind.
pub fn read(kind: Kind, file: &str, text: &str, hints: &Hints) -> Result<Found, ImportError> {
    let found = match kind {
        Kind::Mlc => mlc::read(file, text, hints),
        Kind::PerfStat => perf::read(file, text, hints),
        Kind::Pcm => pcm::read(file, text),
        Kind::Stream => stream::read_output(file, text, hints),
        Kind::Streamer => stream::read_csv(file, text, hints),
        Kind::Ocp => ocp::read(file, text, hints),
        Kind::Mess => mess::read(file, text, hints),
    }?;
    if found.points.is_empty() && found.readings.is_empty() {
        let wanted = match kind {
            Kind::Mlc => {
                "an idle latency, a matrix of latencies or bandwidths, peak bandwidths, or latencies under load"
            }
            Kind::PerfStat => "events with their counts",
            Kind::Pcm => "two header lines (`Date,Time`) and lines of values below",
            Kind::Stream => "lines such as `Copy: 17253.7`",
            Kind::Streamer => "lines of threads, copy, scale, add, triad",
            Kind::Ocp => "rows of MLC or STREAM with a single tier of memory",
            Kind::Mess => "lines of two numbers, bandwidth and latency",
        };
        let left = found.left.warnings().join("; ");
        let left = if left.is_empty() {
            left
        } else {
            format!(" ({left})")
        };
        return Err(whole(
            file,
            format!(
                "nothing in it is of {}: wanted are {wanted}{left}",
                kind.name()
            ),
        ));
    }
    Ok(found)
}

/// The topology that figures alone say: their tiers.
pub fn topology(points: &[Point]) -> Topology {
    let mut tiers: Vec<Tier> = Vec::new();
    for point in points {
        if !tiers.iter().any(|tier| tier.name == point.tier) {
            tiers.push(nodes::tier(&point.tier));
        }
    }
    tiers.sort_by_key(|tier| (tier.kind, tier.name.clone()));
    Topology {
        sockets: 1,
        tiers,
        ..Topology::default()
    }
}

fn line(file: &str, line: usize, message: impl Into<String>) -> ImportError {
    ImportError::Line {
        file: file.into(),
        line,
        message: message.into(),
    }
}

fn whole(file: &str, message: impl Into<String>) -> ImportError {
    ImportError::File {
        file: file.into(),
        message: message.into(),
    }
}

/// A positive number, or what is wrong with the text of a key.
fn number(file: &str, at: usize, key: &str, text: &str) -> Result<f64, ImportError> {
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
struct Origin<'a> {
    file: &'a str,
    tool: &'a str,
}

impl Origin<'_> {
    fn conditions(&self, place: impl std::fmt::Display, more: &[&str]) -> Vec<String> {
        let mut all = vec![format!("{}:{place}", self.file), self.tool.to_owned()];
        all.extend(more.iter().filter(|m| !m.is_empty()).map(|&m| m.to_owned()));
        all
    }
}

/// Threads that a file does not say.
const UNKNOWN: u32 = 0;

/// The load of a traffic on a tier.
fn traffic_load(traffic: Traffic, tier: &TierName, threads: u32, random: bool) -> Load {
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
fn latency(experiment: &str, tier: &TierName, socket: u32, ns: f64) -> Point {
    let spec = PointSpec::alone(experiment, chase(tier).on_socket(socket));
    with_latency(unmeasured(&spec), ns)
}

/// The bandwidth of a traffic, whose lines at the memory interface are counted.
fn bandwidth(experiment: &str, load: Load, traffic: GbPerSec) -> Point {
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
fn loaded(load: Load, pause: Nanos, ns: f64, traffic: GbPerSec) -> Point {
    let factor = load.traffic_factor();
    let spec = PointSpec::alone("loaded", chase(&load.tier)).beside(load.pausing(pause));
    let mut point = with_latency(unmeasured(&spec), ns);
    if let Some(beside) = &mut point.beside {
        beside.gbps = Some(traffic / factor);
        beside.traffic_gbps = Some(traffic);
    }
    point
}

fn unmeasured(spec: &PointSpec) -> Point {
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

#[cfg(test)]
mod tests;
