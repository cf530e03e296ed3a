//! Scenarios: who runs beside whom, and for how long, on any server with a slow tier.
//!
//! A scenario is phases of parties, laid out on a topology: those on DRAM are protected, those on the slow
//! tier may be held. The first are MIKU's evaluation (arXiv 2503.17864 section 6); the last two are what an
//! operator fears: many small tenants beside one that takes everything, and one that changes what it does.

mod programs;
mod streams;
mod two_groups;

use weir_model::topology::Topology;

use crate::control_loop::Phase;
use two_groups::TwoGroups;

/// Tenants that come, run beside each other and go.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The name: `alternate100s`, `llm-decode` ...
    pub name: &'static str,
    /// One line for lists.
    pub about: &'static str,
    /// What happens, one phase after the other.
    pub phases: Vec<Phase>,
}

/// Why a scenario cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// There is none of that name.
    #[error("no scenario is called `{name}`; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The machine has no memory behind CXL on this socket.
    #[error("a scenario needs a CXL tier on this socket, and the machine has none")]
    NoSlowTier,
    /// The machine has too few cores.
    #[error("a scenario needs {needed} cores on one socket, and the machine has {there}")]
    TooFewCores {
        /// Least number of cores.
        needed: u32,
        /// What the machine has.
        there: u32,
    },
    /// A program that it runs is not described.
    #[error("the workload `{0}` is not in the library")]
    NoWorkload(&'static str),
}

/// Lays the phases of a scenario out on a machine.
type MakePhases = fn(&TwoGroups) -> Result<Vec<Phase>, ScenarioError>;

/// Every scenario: name, summary, phases.
const ALL: &[(&str, &str, MakePhases)] = &[
    (
        "alternate100s",
        "two bandwidth tests swap tiers every 100 s: ld, then st, then nt_st",
        streams::alternate,
    ),
    (
        "alternate100s-ld",
        "two bandwidth tests swap tiers every 100 s: ld",
        streams::alternate_ld,
    ),
    (
        "alternate100s-st",
        "two bandwidth tests swap tiers every 100 s: st",
        streams::alternate_st,
    ),
    (
        "alternate100s-nt-st",
        "two bandwidth tests swap tiers every 100 s: nt_st",
        streams::alternate_nt_st,
    ),
    (
        "llm-decode",
        "a model of 70 B weights decodes on DRAM beside one of 8 B on CXL",
        programs::llm_decode,
    ),
    (
        "sql-scan",
        "a scan-heavy query on each tier",
        programs::sql_scan,
    ),
    (
        "hash-map-r0",
        "a concurrent hash map on each tier: inserts alone",
        programs::hash_map_inserts,
    ),
    (
        "hash-map-r1",
        "a concurrent hash map on each tier: a read for each insert",
        programs::hash_map_even,
    ),
    (
        "hash-map-r4",
        "a concurrent hash map on each tier: four reads for each insert",
        programs::hash_map_reads,
    ),
    (
        "small-and-bully",
        "six small tenants on CXL beside one that writes to it with all its cores",
        streams::small_and_bully,
    ),
    (
        "adaptive-bully",
        "a tenant on CXL that changes instruction and cores every few seconds",
        streams::adaptive_bully,
    ),
];

impl Scenario {
    /// Names and summaries of all.
    pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
        ALL.iter().map(|&(name, about, _)| (name, about))
    }

    /// The scenario of this name, laid out on a machine.
    ///
    /// # Errors
    /// There is none of that name, or the machine lacks what it needs.
    pub fn builtin(name: &str, on: &Topology) -> Result<Self, ScenarioError> {
        let Some(&(name, about, play)) = ALL.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<&str> = Self::list().map(|(known, _)| known).collect();
            return Err(ScenarioError::Unknown {
                name: name.into(),
                known: known.join(", "),
            });
        };
        Ok(Self {
            name,
            about,
            phases: play(&TwoGroups::on(on)?)?,
        })
    }
}
