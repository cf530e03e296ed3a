//! Mixes of reads and writes, as they cross the memory interface.
//!
//! A mix says which store writes: a temporal store reads its line before it writes it back, so that stores alone are one
//! read for each write; a non-temporal store reads nothing, so that any ratio is possible.

use std::fmt;
use std::str::FromStr;

use weir_model::access::{Dataflow, Op, Pattern};
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use crate::plan::Load;

/// What the threads with the chase draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mix {
    /// Loads only.
    Reads,
    /// This many lines read for this many written, by loads and temporal stores. Reads are at least as
    /// many as writes and writes at least one.
    Temporal {
        /// Lines read from memory.
        reads: u32,
        /// Lines written to memory.
        writes: u32,
    },
    /// This many lines loaded for this many written by non-temporal stores, at least one of each.
    NonTemporal {
        /// Lines read from memory.
        reads: u32,
        /// Lines written to memory.
        writes: u32,
    },
    /// Non-temporal stores only.
    Posted,
}

impl Mix {
    /// The mixes of the experiment, with what MLC's option `-W` calls them: 0, 3, 2, 4, 5 and 6.
    pub const ALL: [Mix; 6] = [
        Mix::Reads,
        Mix::temporal(3, 1),
        Mix::temporal(2, 1),
        Mix::temporal(3, 2),
        Mix::temporal(1, 1),
        Mix::Posted,
    ];

    pub(super) const fn temporal(reads: u32, writes: u32) -> Self {
        Mix::Temporal { reads, writes }
    }

    /// The name of a share of reads where `op` writes: the smallest whole numbers that give it.
    pub fn named(op: Op, read_share: f64) -> String {
        if read_share >= 1.0 {
            return Mix::Reads.to_string();
        }
        if read_share <= 0.0 {
            return Mix::Posted.to_string();
        }
        let store = if op.is_posted() { NON_TEMPORAL } else { "" };
        let ratio = read_share / (1.0 - read_share);
        let whole = (1..=1000_u32)
            .map(|writes| ((ratio * f64::from(writes)).round(), writes))
            .find(|&(reads, writes)| (reads / f64::from(writes) / ratio - 1.0).abs() < 1e-9);
        match whole {
            Some((reads, writes)) => format!("{reads:.0}:{writes}{store}"),
            None => format!("{:.0} % reads{store}", read_share * 100.0),
        }
    }

    /// Threads on a tier that draw this mix in order.
    pub fn load(self, tier: &TierName, threads: u32, set: Bytes) -> Load {
        let op = match self {
            Mix::Reads => Op::Ld,
            Mix::Temporal { .. } => Op::St,
            Mix::NonTemporal { .. } | Mix::Posted => Op::NtSt,
        };
        let load = Load::new(tier, op, Pattern::Sequential, threads, set);
        let (lines, per) = match self {
            // Each temporal store brings a read of its own.
            Mix::Temporal { reads, writes } if reads > writes => (reads - writes, writes),
            Mix::NonTemporal { reads, writes } => (reads, writes),
            _ => return load,
        };
        let common = gcd(lines, per);
        load.reading(lines / common, per / common, tier, Dataflow::Apart)
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What follows a ratio whose lines are written by non-temporal stores.
const NON_TEMPORAL: &str = "nt";

/// `reads`, `3:1`, `2:1nt`, `nt_writes`.
impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mix::Reads => f.pad("reads"),
            Mix::Temporal { reads, writes } => f.pad(&format!("{reads}:{writes}")),
            Mix::NonTemporal { reads, writes } => f.pad(&format!("{reads}:{writes}{NON_TEMPORAL}")),
            Mix::Posted => f.pad("nt_writes"),
        }
    }
}

impl FromStr for Mix {
    type Err = String;

    /// Accepts `reads`, `nt_writes`, ratios of reads to writes by temporal stores with at least as
    /// many reads (`3:1`), and any ratio to writes by non-temporal stores (`1:3nt`).
    fn from_str(text: &str) -> Result<Self, String> {
        /// More than this is reads only, near enough.
        const MOST: u32 = 1000;
        let wrong = || {
            format!(
                "`{text}` is no mix: write reads, nt_writes, reads:writes such as 3:1 or 1:1, or \
                 2:1nt where non-temporal stores write"
            )
        };
        let plain = text.replace('-', "_");
        match plain.as_str() {
            "reads" | "1:0" => return Ok(Mix::Reads),
            "nt_writes" | "0:1" | "0:1nt" => return Ok(Mix::Posted),
            _ => {}
        }
        let non_temporal = plain.strip_suffix(NON_TEMPORAL);
        let (reads, writes) = (non_temporal.unwrap_or(&plain).split_once(':')).ok_or_else(wrong)?;
        let part = |part: &str| part.parse::<u32>().ok().filter(|n| (1..=MOST).contains(n));
        let (reads, writes) = (part(reads).zip(part(writes))).ok_or_else(wrong)?;
        let common = gcd(reads, writes);
        let (reads, writes) = (reads / common, writes / common);
        match non_temporal {
            Some(_) => Ok(Mix::NonTemporal { reads, writes }),
            None if reads < writes => Err(format!(
                "`{text}` writes more than it reads, which temporal stores cannot: each reads its \
                 line first; the most is 1:1. Non-temporal stores can: {reads}:{writes}nt, or \
                 nt_writes"
            )),
            None => Ok(Mix::temporal(reads, writes)),
        }
    }
}
