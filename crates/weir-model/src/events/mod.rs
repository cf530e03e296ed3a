//! Which events of a processor's counters are the portable ones: `events/*.toml`, compiled in.
//!
//! A table belongs to one microarchitecture. It has the vendor's events with their encodings, and
//! for each [`Counter`] the formula over them, or the reason why that
//! processor cannot count it. `perf` and sysfs name the fields of an encoding (`event`, `umask`,
//! `cmask`, `offcore_rsp`); the kernel defines their bits (`format/` in sysfs).

mod evaluate;
mod formula;
mod groups;
mod library;
mod read;
mod spelling;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

pub use evaluate::{Amount, Amounts, Meaning};
pub use formula::{Formula, Sign};
pub use groups::{Budget, groups};
pub use library::EventLibrary;
pub use spelling::{Spelled, Spelling};

use crate::counters::Counter;

/// The events of one microarchitecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTable {
    /// The file's name without its extension: `sapphire-rapids`.
    pub name: String,
    /// For people: `Intel Sapphire Rapids`.
    pub title: String,
    /// Other names that `--cpu` takes: `spr`.
    pub short: Vec<String>,
    /// The processors that this is about.
    pub cpus: Vec<CpuMatch>,
    /// Where the encodings come from.
    pub source: String,
    /// Counters of a core that one hardware thread has when its sibling counts too, without those
    /// that are fixed.
    pub counters_per_thread: u32,
    /// The vendor's events, by name.
    pub events: BTreeMap<String, Event>,
    /// What each portable counter is; every counter of the hardware is here.
    pub rules: BTreeMap<Counter, Rule>,
}

impl EventTable {
    /// The events that a counter's formula adds and subtracts; none if it cannot be counted here.
    pub fn events_of(&self, counter: Counter) -> Vec<&Event> {
        match self.rules.get(&counter) {
            Some(Rule::Counted(rule)) => rule
                .formula
                .terms()
                .filter_map(|(_, name)| self.events.get(name))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Whether `--cpu` may call the table so.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.name == name || self.short.contains(&name)
    }
}

/// One of the vendor's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The vendor's name.
    pub name: String,
    /// The unit that counts, as sysfs names it without a number: `cpu`, `uncore_cha`.
    pub pmu: String,
    /// The encoding: what each field of the unit's `format/` gets.
    pub fields: BTreeMap<String, u64>,
    /// Whether a fixed counter counts it, and none of those that events compete for.
    pub fixed: bool,
    /// The counters that can count it; `None` for every counter.
    pub on: Option<RangeInclusive<u32>>,
}

impl Event {
    /// Whether a core counts it, so that it can follow a task.
    pub fn is_core(&self) -> bool {
        is_core(&self.pmu)
    }

    /// How `perf` takes it on a command line, under its own name:
    /// `cpu/event=0xd1,umask=0x1,name=MEM_LOAD_RETIRED.L1_HIT/`.
    pub fn perf(&self) -> String {
        let mut text = format!("{}/", self.pmu);
        for (field, value) in &self.fields {
            text.push_str(&format!("{field}={value:#x},"));
        }
        text.push_str(&format!("name={}/", self.name));
        text
    }
}

/// Whether sysfs calls the counters of a core so.
pub fn is_core(pmu: &str) -> bool {
    pmu == "cpu" || pmu.starts_with("armv8_pmuv3")
}

/// What a portable counter is on one microarchitecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// It is counted.
    Counted(Counted),
    /// It cannot be, for this reason.
    Missing(String),
}

/// How a counter is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The events that are added and subtracted.
    pub formula: Formula,
    /// Other formulas that a file may have the events of.
    pub or: Vec<Formula>,
    /// What the result is divided by: flits of a data line, for example.
    pub divided_by: u64,
    /// Whether the units' mean is meant and not their sum: a clock is no faster for having more.
    pub mean_of_units: bool,
    /// How sure it is that the formula is the counter of this name.
    pub confidence: Confidence,
    /// How it differs from the name; required unless the confidence is high.
    pub why: Option<String>,
}

crate::named! {
    /// How sure it is that an event is the counter of the portable name.
    pub enum Confidence {
        /// Another thing, close to it.
        Low = "low",
        /// The same, except for the difference in `why`.
        Medium = "medium",
        /// The vendor documents it as that.
        High = "high",
    }
}

/// A processor, as in `/proc/cpuinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuId {
    /// `GenuineIntel`, `AuthenticAMD`; on Arm the implementer: `0x41`.
    pub vendor: String,
    /// The family; on Arm the architecture, 8.
    pub family: u32,
    /// The model; on Arm the part.
    pub model: u32,
    /// The stepping; on Arm the revision.
    pub stepping: u32,
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} family {}, model {:#x}, stepping {}",
            self.vendor, self.family, self.model, self.stepping
        )
    }
}

/// Processors that a table is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuMatch {
    /// As in [`CpuId`].
    pub vendor: String,
    /// As in [`CpuId`].
    pub family: u32,
    /// Models, both ends included.
    pub models: Vec<RangeInclusive<u32>>,
    /// Steppings; any if there are none.
    pub steppings: Vec<RangeInclusive<u32>>,
}

impl CpuMatch {
    /// Whether a processor is one of these.
    pub fn has(&self, cpu: &CpuId) -> bool {
        let within = |ranges: &[RangeInclusive<u32>], n| ranges.iter().any(|r| r.contains(&n));
        self.vendor == cpu.vendor
            && self.family == cpu.family
            && within(&self.models, cpu.model)
            && (self.steppings.is_empty() || within(&self.steppings, cpu.stepping))
    }
}

#[cfg(test)]
mod tests;
