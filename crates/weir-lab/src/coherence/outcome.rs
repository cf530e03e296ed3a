//! What `weir place share` finds, and how it is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_coherence::message::Flit;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};

use super::program::{Counted, Piece, Structure};
use crate::study::{About, Outcome};
use crate::view::{Axis, Only, View, col};
use crate::{Severity, Verdict};

/// Structures that hosts share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sharing {
    /// The tier that the hosts share.
    pub tier: TierName,
    /// A read of it.
    pub latency: Nanos,
    /// What each host's cache holds.
    pub cache_bytes: Bytes,
    /// Locks, records, or keys.
    pub items: u64,
    /// Operations that update or insert, of all.
    pub writes_pct: f64,
    /// Exponent of Zipf's law, by which items are chosen.
    pub skew: f64,
    /// Lines that the device's snoop filter tracks, where it has a limit.
    #[serde(default)]
    pub snoop_filter: Option<u64>,
    /// Structures, by the number of hosts.
    pub runs: Vec<SharedRun>,
    /// Their parts, for operations of all hosts.
    pub pieces: Vec<SharedPiece>,
}

/// Messages of an operation, in the mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedRun {
    /// The structure.
    pub structure: Structure,
    /// Hosts that use it.
    pub hosts: u32,
    /// Lines that it reads from memory.
    pub fetches: f64,
    /// Requests to write a line that the host has.
    pub upgrades: f64,
    /// Copies of other hosts that it invalidates.
    pub invalidations: f64,
    /// Hosts that lose the right to write for its reads.
    pub snoops: f64,
    /// Copies that hosts give up since a line leaves the device's snoop filter.
    #[serde(default)]
    pub back_invalidations: f64,
    /// Lines that are written to memory.
    pub write_backs: f64,
    /// Accesses that wait for other hosts.
    pub waits: f64,
    /// What the operation waits for all of them.
    pub time: Nanos,
    /// Bytes to the device, in full flits of 68 bytes.
    #[serde(default)]
    pub down: f64,
    /// Bytes from it.
    #[serde(default)]
    pub up: f64,
}

/// A part of a structure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedPiece {
    /// The structure.
    pub structure: Structure,
    /// Hosts that use it.
    pub hosts: u32,
    /// The part.
    pub part: String,
    /// Lines of it that an operation reads from memory.
    pub fetches: f64,
    /// Copies of it that an operation invalidates.
    pub invalidations: f64,
    /// Accesses to it that wait for other hosts.
    pub waits: f64,
}

impl SharedRun {
    /// What was counted, for each operation. A request to the device takes as long as a read of the tier, and one for
    /// which it asks other hosts twice as long.
    pub(super) fn of(structure: Structure, hosts: u32, counted: &Counted, latency: Nanos) -> Self {
        let sent = counted.all();
        let each = |messages: u64| messages as f64 / counted.operations.max(1) as f64;
        let bytes = |half_slots| each(Flit::B68.bytes(half_slots).get());
        Self {
            structure,
            hosts,
            fetches: each(sent.fetches),
            upgrades: each(sent.upgrades),
            invalidations: each(sent.invalidations),
            snoops: each(sent.snoops),
            back_invalidations: each(sent.back_invalidations),
            write_backs: each(sent.write_backs),
            waits: each(sent.waits),
            time: latency * each(sent.fetches + sent.upgrades + sent.waits),
            down: bytes(sent.down),
            up: bytes(sent.up),
        }
    }
}

impl SharedPiece {
    pub(super) fn all(structure: Structure, hosts: u32, counted: &Counted) -> Vec<Self> {
        let each = |messages: u64| messages as f64 / counted.operations.max(1) as f64;
        let piece = |(piece, sent): &(Piece, super::Messages)| Self {
            structure,
            hosts,
            part: piece.name().to_owned(),
            fetches: each(sent.fetches),
            invalidations: each(sent.invalidations),
            waits: each(sent.waits),
        };
        counted.messages.iter().map(piece).collect()
    }
}

impl Outcome for Sharing {
    const SCHEMA: &'static str = "weir/place-share/1";
    const TITLE: &'static str = "Sharing between hosts";
    const WORDS: &'static str = "Messages that keep the caches of several hosts coherent, for each operation on a structure \
                                 that they share.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text| Verdict::new(Severity::Note, about, text);
        let most = self.runs.iter().map(|run| run.hosts).max().unwrap_or(1);
        let with = || self.runs.iter().filter(move |run| run.hosts == most);
        let by_time = |a: &&SharedRun, b: &&SharedRun| a.time.get().total_cmp(&b.time.get());
        let mut all = Vec::new();
        if let (Some(worst), Some(best)) = (with().max_by(by_time), with().min_by(by_time)) {
            let of = |run: &SharedRun| {
                format!(
                    "{:.2} us and {:.2} invalidations an operation",
                    run.time.get() / 1e3,
                    run.invalidations
                )
            };
            let hosts = if most == 1 { "host" } else { "hosts" };
            let mut text = format!(
                "with {most} {hosts} {} costs {}",
                worst.structure.name(),
                of(worst)
            );
            if worst.structure != best.structure {
                text += &format!("; {} costs {}", best.structure.name(), of(best));
            }
            all.push(note("share", text));
        }
        let own = with().find(|run| run.structure == Structure::OwnLocks);
        if let Some(own) = own.filter(|run| run.invalidations > 0.0) {
            let text = format!(
                "locks that only one host takes cost {:.2} us where four of different hosts share a line; give each a \
                 line of its own",
                own.time.get() / 1e3
            );
            all.push(note("lines", text));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let most = self.runs.iter().map(|run| run.hosts).max().unwrap_or(1);
        vec![
            View::grid(
                "runs",
                format!(
                    "What an operation waits for {} and for other hosts, by the number of hosts",
                    self.tier
                ),
                "structure",
                &["hosts"],
                "time",
            ),
            View::grid(
                "runs",
                "Copies that an operation invalidates, by the number of hosts",
                "structure",
                &["hosts"],
                "invalidations",
            ),
            View::table(
                "runs",
                format!(
                    "Messages of an operation with {most} hosts; a read of {} takes {:.0}",
                    self.tier, self.latency
                ),
                vec![
                    col("structure"),
                    col("fetches").head("reads of\nmemory"),
                    col("upgrades").head("rights\nto write"),
                    col("invalidations").head("invali-\ndations"),
                    col("snoops").head("rights\nlost"),
                    col("write_backs").head("write-\nbacks"),
                    col("waits").head("waits for\nhosts"),
                ],
            )
            .only(Only::Most("hosts", &["structure"])),
            View::table(
                "runs",
                format!("What crosses the link to the device for an operation with {most} hosts"),
                vec![
                    col("structure"),
                    col("back_invalidations").head("taken back by\nthe filter"),
                    col("down").head("bytes to\nthe device"),
                    col("up").head("bytes\nfrom it"),
                ],
            )
            .only(Only::Most("hosts", &["structure"])),
            View::table(
                "pieces",
                format!("The parts of structures with {most} hosts"),
                vec![
                    col("structure"),
                    col("part"),
                    col("fetches").head("reads of\nmemory"),
                    col("invalidations").head("invali-\ndations"),
                    col("waits").head("waits for\nhosts"),
                ],
            )
            .only(Only::Most("hosts", &["structure", "part"])),
            View::lines(
                "runs",
                format!("What an operation waits for {}", self.tier),
                ("hosts", "hosts"),
                ("time", "ns an operation"),
                &["structure"],
            )
            .axes(Axis::Counts, Axis::Linear),
        ]
    }
}
