//! What other tools wrote, read: their figures as [`Point`]s of our benches where a bench measures the same, and else as
//! [`Readings`] over time.
//!
//! A reader is a file here, a line in [`Kind`], and one in [`read`]. Each figure keeps its file and line; a line that no
//! reader knows is counted and shown; an invalid value is an error with its place.

pub mod config;
mod found;
mod mess;
mod mlc;
pub(crate) mod nodes;
mod ocp;
mod pcm;
mod perf;
mod readings;
pub mod stream;

use weir_model::document::Point;
use weir_model::topology::{Tier, Topology};

use found::whole;
pub use found::{Found, Hints, ImportError, Left};
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

#[cfg(test)]
mod tests;
