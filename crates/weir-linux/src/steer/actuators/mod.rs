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

use super::journalled_writes::{JournalledWrites, Wrote};
use crate::root::Root;

/// By what a tenant may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actuator {
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

impl Actuator {
    /// Every means.
    pub const ALL: [Actuator; 5] = [
        Actuator::Cores,
        Actuator::ProcessorTime,
        Actuator::Bandwidth,
        Actuator::CacheWays,
        Actuator::Clock,
    ];

    /// A short name for tables and configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Actuator::Cores => "cores",
            Actuator::ProcessorTime => "processor_time",
            Actuator::Bandwidth => "bandwidth",
            Actuator::CacheWays => "cache_ways",
            Actuator::Clock => "clock",
        }
    }
}

impl fmt::Display for Actuator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The machine, its journal, and what was written since somebody asked.
#[derive(Debug)]
pub(super) struct KernelAccess<'h> {
    pub root: &'h Root,
    pub writes: &'h mut JournalledWrites,
    pub wrote: &'h mut Vec<Wrote>,
}

impl KernelAccess<'_> {
    /// Writes a value and says what it is now.
    pub fn set(&mut self, path: &str, text: &str) -> Result<String, Unavailable> {
        let wrote = self.writes.set(path, text);
        let applied = wrote.applied.clone();
        self.wrote.push(wrote);
        applied
    }

    /// Writes a value in a folder of our own.
    pub fn set_own(&mut self, path: &str, text: &str) -> Result<String, Unavailable> {
        let wrote = self.writes.set_own(path, text);
        let applied = wrote.applied.clone();
        self.wrote.push(wrote);
        applied
    }

    /// Puts a value back, if it was changed.
    pub fn put_back(&mut self, path: &str) -> Result<(), Unavailable> {
        let Some(before) = self.writes.before(path).map(str::to_owned) else {
            return Ok(());
        };
        let now = self.root.text(path).known().cloned().unwrap_or_default();
        let not = self.writes.put_back(path);
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
