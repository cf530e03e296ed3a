//! Scenarios: which tenants run at the same time, and for how long, on any server with a slow tier.
//!
//! A scenario is a list of phases, laid out on a topology: tenants on DRAM are protected, tenants on the slow
//! tier may be limited. The first scenarios are MIKU's evaluation (arXiv 2503.17864 section 6). The last two
//! are hard cases for an operator: many small tenants with one that takes everything, and one tenant that
//! changes its behaviour.

mod asked;
mod programs;
mod streams;
mod two_groups;

use weir_model::topology::Topology;

use crate::steered::Phase;
pub use asked::{ASKED, asked};
pub use two_groups::ScenarioError;
use two_groups::TwoGroups;

/// Tenants that start, run at the same time and end.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The name: `alternate100s`, `llm-decode` ...
    pub name: &'static str,
    /// One line for lists.
    pub about: &'static str,
    /// Its phases, in order.
    pub phases: Vec<Phase>,
}

/// Lays out the phases of a scenario on a machine.
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
        "a model of 70 B weights decodes on DRAM while one of 8 B decodes on CXL",
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
        "six small tenants on CXL, and one that writes to CXL with all its cores",
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
    /// There is no scenario of that name, or the machine lacks something that it needs.
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
