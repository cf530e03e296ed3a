//! By what a tenant is held: one file for each means.
//!
//! | file | means |
//! |---|---|
//! | `time` | processor time: `cpu.max`, period included |
//! | `cores` | processors: `cpuset.cpus` |
//! | `allocation` | bandwidth and cache ways: a resctrl group of the tenant's own |
//! | `clock` | the clock of its processors: `scaling_max_freq` |
//! | `weights` | how pages are interleaved over nodes, for the whole machine |
//!
//! Each takes what is asked for, keeps within the floors, writes through the ledger and says what is
//! in force.

pub(super) mod allocation;
pub(super) mod clock;
pub(super) mod cores;
pub(super) mod time;
pub(super) mod weights;

use std::fmt;

use serde::{Deserialize, Serialize};
use weir_model::capability::Unavailable;

use super::ledger::{Ledger, Wrote};
use crate::root::Root;

/// By what a tenant may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// Cores that it may run on at once (`cpuset.cpus`).
    Cores,
    /// Processor time (`cpu.max`).
    ProcessorTime,
    /// Bandwidth allocation (resctrl, MBA; SMBA where the processor has it).
    Bandwidth,
    /// Ways of the last-level cache (resctrl, CAT).
    CacheWays,
    /// Clock of its cores (`scaling_max_freq`).
    Clock,
}

impl Means {
    /// Every means.
    pub const ALL: [Means; 5] = [
        Means::Cores,
        Means::ProcessorTime,
        Means::Bandwidth,
        Means::CacheWays,
        Means::Clock,
    ];

    /// A short name for tables and configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Means::Cores => "cores",
            Means::ProcessorTime => "processor_time",
            Means::Bandwidth => "bandwidth",
            Means::CacheWays => "cache_ways",
            Means::Clock => "clock",
        }
    }
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The machine, its journal, and what was written since somebody asked.
#[derive(Debug)]
pub(super) struct Hands<'h> {
    pub root: &'h Root,
    pub ledger: &'h mut Ledger,
    pub wrote: &'h mut Vec<Wrote>,
}

impl Hands<'_> {
    /// Writes a value and says what it is now.
    pub fn set(&mut self, path: &str, text: &str) -> Result<String, Unavailable> {
        let wrote = self.ledger.set(path, text);
        let applied = wrote.applied.clone();
        self.wrote.push(wrote);
        applied
    }

    /// Writes a value in a folder of our own.
    pub fn set_own(&mut self, path: &str, text: &str) -> Result<String, Unavailable> {
        let wrote = self.ledger.set_own(path, text);
        let applied = wrote.applied.clone();
        self.wrote.push(wrote);
        applied
    }

    /// Puts a value back, if it was changed.
    pub fn put_back(&mut self, path: &str) -> Result<(), Unavailable> {
        let Some(before) = self.ledger.before(path).map(str::to_owned) else {
            return Ok(());
        };
        let now = self.root.text(path).known().cloned().unwrap_or_default();
        let not = self.ledger.put_back(path);
        let applied = match not.first() {
            Some(not) => Err(Unavailable::because(not.to_string())),
            None => self.root.text(path).get().cloned(),
        };
        let result = applied.clone().map(drop);
        self.wrote.push(Wrote {
            path: path.to_owned(),
            before: now,
            requested: before,
            applied,
        });
        result
    }
}
