//! Tenants: what loads the machine, with what, from where, into which tier.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{Dataflow, Op, Pattern, Timing};
use crate::scope::Scope;
use crate::topology::TierName;
use crate::units::{Bytes, Nanos};
use crate::workload::Workload;

/// One load on the machine: what runs, on which cores, with its memory where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tenant {
    /// A name that is unique among the tenants of a run.
    pub name: String,
    /// What it does.
    pub work: Work,
    /// The cores to use, disjoint between tenants, but for second threads. A stream and a program have one thread on each.
    pub cores: Vec<u32>,
    /// Where its pages are when it starts.
    pub placement: Placement,
    /// Where the pages of single [regions](Tenant::regions) are instead, by the region's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placements: BTreeMap<String, Placement>,
    /// Whether the hardware prefetchers run on its cores, where the machine can tell.
    pub prefetch: bool,
    /// Ways of the last-level cache that its lines may fill from the start, a bit each (CAT); `None` for
    /// all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_ways: Option<u32>,
    /// Whether its memory has the hint that a device with a medium must not let its reads wait for internal tasks such as
    /// garbage collection (*determinism*, CXL-SSD, HotStorage 2022, section 5).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
    /// Whether its threads are the second ones of its cores, of which another tenant may have the first (hyper-threads).
    /// Only a model takes that: a host has numbers of their own for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub second_threads: bool,
}

/// What a tenant does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Every thread repeats one instruction in one order.
    Stream(Stream),
    /// It runs a described program, whose threads share its regions.
    Program(Box<Workload>),
    /// It runs a command of the host, from its start to its end.
    Command(Command),
    /// It is what runs on the host already. Its cores and its placement stay as they are.
    Scope(Scope),
}

/// One instruction in one order of lines, repeated without end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// The instruction.
    pub op: Op,
    /// The order of lines.
    pub pattern: Pattern,
    /// Bytes that one thread touches, private to it, all its arrays together.
    pub working_set: Bytes,
    /// Lines that are loaded along with those that the instruction touches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
    /// How long a thread is busy elsewhere between two lines; zero for as fast as it can.
    #[serde(default)]
    pub pause: Nanos,
    /// What the pause is counted from.
    #[serde(default, skip_serializing_if = "Arrivals::is_closed")]
    pub arrivals: Arrivals,
    /// What one sample covers, where the pattern is timed.
    #[serde(default)]
    pub timing: Timing,
}

crate::named! {
    /// What a stream's pause is counted from.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Arrivals {
        /// From the line before: a thread that had to wait is later with all that follows, so that the load
        /// falls when memory is slow.
        #[default]
        Closed = "closed",
        /// From when the line before was due: lines are due at a fixed rate, and a thread that had to wait makes
        /// up for it as fast as it can.
        Open = "open",
    }
}

impl Arrivals {
    /// Whether a wait delays what follows.
    #[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
    pub const fn is_closed(&self) -> bool {
        matches!(self, Arrivals::Closed)
    }
}

/// A command of the host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// The program, by path or by name.
    pub program: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Vec<String>,
}

impl Stream {
    /// Lines of one instruction that never pauses.
    pub fn new(op: Op, pattern: Pattern, working_set: Bytes) -> Self {
        Self {
            op,
            pattern,
            working_set,
            reads: None,
            pause: Nanos(0.0),
            arrivals: Arrivals::Closed,
            timing: Timing::default(),
        }
    }
}

impl Stream {
    /// Why its lines cannot be due at a fixed rate though it asks for that, if so.
    pub fn never_open(&self) -> Option<String> {
        let independent = matches!(
            self.pattern,
            Pattern::Sequential | Pattern::RandomLine | Pattern::RandomBlock { .. }
        );
        (self.arrivals == Arrivals::Open && !independent).then(|| {
            format!(
                "has accesses that wait for each other ({}), which cannot begin at a fixed rate",
                self.pattern.name()
            )
        })
    }
}

impl Work {
    /// Whether it is what only a host runs: a command or a scope.
    pub const fn is_of_host(&self) -> bool {
        matches!(self, Work::Command(_) | Work::Scope(_))
    }

    /// The stream, where it is one.
    pub fn stream(&self) -> Option<&Stream> {
        match self {
            Work::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// The stream, where it is one, to change.
    pub fn stream_mut(&mut self) -> Option<&mut Stream> {
        match self {
            Work::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// The kind of work, for errors.
    pub const fn describe(&self) -> &'static str {
        match self {
            Work::Stream(_) => "a stream",
            Work::Program(_) => "the description of a program",
            Work::Command(_) => "a command",
            Work::Scope(_) => "a scope of the host",
        }
    }
}

/// Lines that a thread loads along with those that its instruction touches: `lines` of them, then
/// `per` lines of the instruction, and again. They come from arrays of their own, one for each line
/// in a round, so that STREAM's add is two arrays read and one written.
///
/// A mix for a loaded-latency curve, a copy between tiers and STREAM are all this.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Reads {
    /// Lines loaded in a round.
    pub lines: u32,
    /// Lines that the instruction touches in a round.
    pub per: u32,
    /// Where the loaded arrays lie.
    pub from: Placement,
    /// What becomes of what was loaded.
    pub dataflow: Dataflow,
}

impl Reads {
    /// Share of the lines crossing the memory interface that are read, once the caches are full,
    /// if `op` writes the others: a temporal store reads its line too.
    pub fn share(&self, op: Op) -> f64 {
        let (loaded, touched) = (f64::from(self.lines), f64::from(self.per));
        let owned = if op.reads_for_ownership() {
            touched
        } else {
            0.0
        };
        let read_by_op = if op.is_load() { touched } else { owned };
        let written = if op.is_load() { 0.0 } else { touched };
        (loaded + read_by_op) / (loaded + read_by_op + written)
    }
}

impl Tenant {
    /// A tenant of `threads` threads on the first cores, bound to one tier, prefetchers on.
    pub fn on_first_cores(
        op: Op,
        pattern: Pattern,
        tier: &TierName,
        threads: u32,
        working_set: Bytes,
    ) -> Self {
        Self {
            name: format!("{op}@{tier}"),
            work: Work::Stream(Stream::new(op, pattern, working_set)),
            cores: (0..threads).collect(),
            placement: Placement::Bind(tier.clone()),
            placements: BTreeMap::new(),
            prefetch: true,
            cache_ways: None,
            deterministic: false,
            second_threads: false,
        }
    }

    /// A tenant that runs a described program on these cores, prefetchers on.
    pub fn running(work: Workload, cores: Vec<u32>, placement: Placement) -> Self {
        Self {
            name: work.name.clone(),
            work: Work::Program(Box::new(work)),
            cores,
            placement,
            placements: BTreeMap::new(),
            prefetch: true,
            cache_ways: None,
            deterministic: false,
            second_threads: false,
        }
    }

    /// A command or a scope of a host, its pages where its threads touch them first.
    pub fn of_host(name: String, work: Work, cores: Vec<u32>) -> Self {
        Self {
            name,
            work,
            cores,
            placement: Placement::FirstTouch,
            placements: BTreeMap::new(),
            prefetch: true,
            cache_ways: None,
            deterministic: false,
            second_threads: false,
        }
    }

    /// The same with another stream. A tenant that is no stream stays as it is.
    #[must_use]
    pub fn with_stream(mut self, change: impl FnOnce(&mut Stream)) -> Self {
        self.work.stream_mut().map(change);
        self
    }

    /// Whether it is a stream whose accesses are timed, so that it reports latency.
    pub fn is_timed(&self) -> bool {
        (self.work.stream()).is_some_and(|stream| stream.pattern.is_timed())
    }
}

/// Where pages are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// All on one tier; without enough memory there the tenant does not start.
    Bind(TierName),
    /// On one tier for as long as it has room, then on the nearest that has.
    Preferred(TierName),
    /// On the tier of the socket whose core touches them first, for as long as that has room.
    FirstTouch,
    /// Page by page in proportion to the weights (Linux weighted interleave).
    Interleave(Vec<(TierName, u32)>),
}

impl Placement {
    /// The tiers that are named, in order.
    pub fn tiers(&self) -> impl Iterator<Item = &TierName> {
        let (one, weights) = match self {
            Placement::Bind(tier) | Placement::Preferred(tier) => (Some(tier), [].as_slice()),
            Placement::FirstTouch => (None, [].as_slice()),
            Placement::Interleave(weights) => (None, weights.as_slice()),
        };
        one.into_iter().chain(weights.iter().map(|(tier, _)| tier))
    }

    /// The weights by which pages go to tiers while these have room, for a core of the tier `local`.
    pub fn weights(&self, local: &TierName) -> Vec<(TierName, u32)> {
        match self {
            Placement::Bind(tier) | Placement::Preferred(tier) => vec![(tier.clone(), 1)],
            Placement::FirstTouch => vec![(local.clone(), 1)],
            Placement::Interleave(weights) => weights.clone(),
        }
    }

    /// Whether pages go elsewhere where the tier is full.
    pub const fn spills(&self) -> bool {
        matches!(self, Placement::Preferred(_) | Placement::FirstTouch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporal_store_reads_its_line_too() {
        let reads = Reads {
            lines: 2,
            per: 1,
            from: Placement::FirstTouch,
            dataflow: Dataflow::Apart,
        };
        let shares = [Op::Ld, Op::St, Op::NtSt].map(|op| reads.share(op));
        assert_eq!(shares, [1.0, 3.0 / 4.0, 2.0 / 3.0]);
    }
}
