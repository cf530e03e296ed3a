//! What a thread does to memory: the instruction, and the order of the lines it touches.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// The instruction that touches memory, one cache line at a time (MEMO §4, Interplay §III-A), or the
/// request to a storage device.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Ordinary load.
    Ld,
    /// Load with the hint that the line will not be used again (`movntdqa`, `ldnp`). In ordinary (write-back)
    /// memory processors are free to ignore it (Intel SDM volume 2, MOVNTDQA), and then it is a load.
    NtLd,
    /// Load of a mapping that no cache keeps, such as a BAR of a PCIe device: a core has one on its way, in the order of the
    /// program (Intel SDM volume 3, strong uncacheable memory).
    UcLd,
    /// Temporal store: reads the line for ownership, writes it back later.
    St,
    /// Temporal store followed by `clwb`: the line is written back at once.
    StClwb,
    /// Non-temporal store: a full line, write-combined and posted, no read for ownership.
    NtSt,
    /// 64-byte direct store: as a non-temporal store, but from a source line and never combined.
    Movdir64b,
    /// Locked read-modify-write of one word of the line.
    Cas,
    /// Memory move by the Data Streaming Accelerator: a descriptor names source, destination and
    /// length, and the core only submits it.
    Dsa,
    /// Blocks read from a storage device at random.
    #[serde(rename = "randread", alias = "rand_read")]
    RandRead,
    /// Blocks written to a storage device at random.
    #[serde(rename = "randwrite", alias = "rand_write")]
    RandWrite,
    /// Blocks read from a storage device in order.
    #[serde(rename = "seqread", alias = "seq_read")]
    SeqRead,
    /// Blocks written to a storage device in order.
    #[serde(rename = "seqwrite", alias = "seq_write")]
    SeqWrite,
}

impl Op {
    /// The instructions of the core that are measured unless others are named, in the order in which tables list
    /// them. An accelerator is none of them.
    pub const ALL: [Op; 6] = [Op::Ld, Op::St, Op::StClwb, Op::NtSt, Op::Movdir64b, Op::Cas];

    /// Everything else that touches memory: by name only.
    pub const BY_NAME: [Op; 3] = [Op::NtLd, Op::UcLd, Op::Dsa];

    /// Every request to a storage device.
    pub const STORAGE: [Op; 4] = [Op::RandRead, Op::RandWrite, Op::SeqRead, Op::SeqWrite];

    /// The stable name used on the command line, in files and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Ld => "ld",
            Op::NtLd => "nt_ld",
            Op::UcLd => "uc_ld",
            Op::St => "st",
            Op::StClwb => "st_clwb",
            Op::NtSt => "nt_st",
            Op::Movdir64b => "movdir64b",
            Op::Cas => "cas",
            Op::Dsa => "dsa",
            Op::RandRead => "randread",
            Op::RandWrite => "randwrite",
            Op::SeqRead => "seqread",
            Op::SeqWrite => "seqwrite",
        }
    }

    /// Whether it reads a line and writes none.
    pub const fn is_load(self) -> bool {
        matches!(self, Op::Ld | Op::NtLd | Op::UcLd)
    }

    /// What a processor that ignores the hint of a non-temporal load executes.
    #[must_use]
    pub const fn without_load_hint(self) -> Self {
        match self {
            Op::NtLd => Op::Ld,
            other => other,
        }
    }

    /// Whether the line is read for ownership before it is written.
    pub const fn reads_for_ownership(self) -> bool {
        matches!(self, Op::St | Op::StClwb | Op::Cas)
    }

    /// Whether the write bypasses the caches and is posted.
    pub const fn is_posted(self) -> bool {
        matches!(self, Op::NtSt | Op::Movdir64b)
    }

    /// Whether it is a request to a storage device and no instruction.
    pub const fn is_storage(self) -> bool {
        matches!(
            self,
            Op::RandRead | Op::RandWrite | Op::SeqRead | Op::SeqWrite
        )
    }

    /// Bytes that cross the memory interface for each byte the program touches, once the caches
    /// are full: 2 for a temporal store (read for ownership and write-back), else 1.
    pub const fn traffic_factor(self) -> f64 {
        if self.reads_for_ownership() { 2.0 } else { 1.0 }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no instruction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no instruction is called `{0}`; known are ld, nt_ld, uc_ld, st, st_clwb, nt_st, movdir64b, cas and dsa, and for \
     storage randread, randwrite, seqread and seqwrite"
)]
pub struct UnknownOp(pub String);

impl FromStr for Op {
    type Err = UnknownOp;

    /// Accepts the stable names, with `-`, `_` and `+` alike (`nt-st`, `st+clwb`), and `ntst`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain: String = text
            .chars()
            .filter(|c| !matches!(c, '-' | '_' | '+'))
            .flat_map(char::to_lowercase)
            .collect();
        Op::ALL
            .into_iter()
            .chain(Op::BY_NAME)
            .chain(Op::STORAGE)
            .find(|op| op.name().replace('_', "") == plain)
            .ok_or_else(|| UnknownOp(text.into()))
    }
}

/// The order in which a thread touches the lines of its working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Pattern {
    /// Ascending lines, again from the start at the end.
    Sequential,
    /// Independent lines drawn at random.
    RandomLine,
    /// Blocks at random, ascending lines inside a block (MEMO §4.3.2). Posted stores are fenced
    /// after each block.
    RandomBlock {
        /// Bytes in a block, a multiple of the line.
        block: Bytes,
    },
    /// Dependent loads: each line holds the address of the next, one in flight.
    Chase {
        /// How far a hop may reach.
        locality: Locality,
    },
    /// One access at a time on a line that was just flushed, fenced before and after, each timed
    /// (MEMO §4.2).
    FlushedLine,
    /// This many accesses at once, on different lines that were all just flushed, fenced before and
    /// after; a sample is what they take together over their number (MEMO at MICRO 2023, §3.2).
    FlushedBurst {
        /// Accesses of a burst, 1 to [`Pattern::MOST_IN_BURST`].
        lines: u32,
    },
    /// All threads of the tenant take turns on one line that they share; each turn is timed, from
    /// one thread's change of the line to the next one's.
    SharedLine,
    /// Descriptors for an accelerator, ascending through the working set.
    Descriptors {
        /// Bytes that one descriptor moves, a multiple of the line.
        bytes: Bytes,
        /// Descriptors that are submitted together; 1 for no batch.
        batch: u32,
        /// Submissions under way before the thread waits for the oldest; 1 for a synchronous use.
        in_flight: u32,
    },
    /// Requests to a storage device, at random or in order as the instruction says.
    Requests {
        /// Bytes of one, a multiple of the line.
        bytes: Bytes,
        /// Requests that one thread keeps under way.
        depth: u32,
        /// Whether the kernel copies data between its page cache and the program (buffered I/O); if not,
        /// the device moves it from and to the program's own buffers (direct I/O).
        #[serde(default)]
        buffered: bool,
    },
}

impl Pattern {
    /// The stable name used in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Sequential => "sequential",
            Pattern::RandomLine => "random_line",
            Pattern::RandomBlock { .. } => "random_block",
            Pattern::Chase {
                locality: Locality::TlbFriendly,
            } => "chase_tlb_friendly",
            Pattern::Chase {
                locality: Locality::Random,
            } => "chase_random",
            Pattern::FlushedLine => "flushed_line",
            Pattern::FlushedBurst { .. } => "flushed_burst",
            Pattern::SharedLine => "shared_line",
            Pattern::Descriptors { .. } => "descriptors",
            Pattern::Requests { buffered: true, .. } => "buffered_requests",
            Pattern::Requests { .. } => "requests",
        }
    }

    /// The longest burst: as many accesses as a core has under way at once, and then some.
    pub const MOST_IN_BURST: u32 = 64;

    /// Whether each access is timed, so that the tenant reports latency.
    pub const fn is_timed(self) -> bool {
        matches!(
            self,
            Pattern::Chase { .. }
                | Pattern::FlushedLine
                | Pattern::FlushedBurst { .. }
                | Pattern::SharedLine
        )
    }
}

/// How far a pointer chase may jump, which decides whether address translation is in the figure.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Locality {
    /// Hops stay inside a window that the translation look-aside buffers cover, and the window
    /// moves on when every line in it was visited: memory latency without page walks.
    TlbFriendly,
    /// Any line of the working set next: page walks are in the figure.
    Random,
}

/// What one sample of a timed pattern covers, where the machine has the choice. A model times every
/// access and nothing else.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// Enough dependent accesses that reading the clock costs next to nothing: means are exact,
    /// tails are blurred.
    #[default]
    Averaged,
    /// One access, less what the timer itself costs: true tails.
    Each,
}

crate::named! {
    /// What becomes of lines that are loaded along with those that a tenant's instruction touches.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Dataflow {
        /// Nothing: reads and writes that have nothing to do with each other.
        Apart = "apart",
        /// They are what is written (STREAM copy, memcpy).
        Copy = "copy",
        /// Times a constant (STREAM scale).
        Scale = "scale",
        /// The sum of two (STREAM add).
        Add = "add",
        /// The sum of one and a constant times the other (STREAM triad).
        Triad = "triad",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_is_read_back_from_its_name() {
        for op in Op::ALL.into_iter().chain(Op::BY_NAME).chain(Op::STORAGE) {
            assert_eq!(op.name().parse(), Ok(op));
            assert_eq!(op.name().replace('_', "-").parse(), Ok(op));
            let json = serde_json::to_value(op).unwrap();
            assert_eq!(json, op.name(), "JSON has names that the command takes");
        }
        assert_eq!("st+clwb".parse(), Ok(Op::StClwb));
        assert_eq!("ntst".parse(), Ok(Op::NtSt));
        assert!(
            "prefetch"
                .parse::<Op>()
                .unwrap_err()
                .to_string()
                .contains("`prefetch`")
        );
    }
}
