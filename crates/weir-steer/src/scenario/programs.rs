//! Scenarios of programs, from the workload library, at the sizes of MIKU's evaluation (section 6).

use weir_model::tenant::{Placement, Tenant};
use weir_model::units::Bytes;
use weir_model::workload::{Workload, Workloads};

use super::ScenarioError;
use super::two_groups::{TwoGroups, phase, protected, restrained};
use crate::steered::Phase;

type Phases = Result<Vec<Phase>, ScenarioError>;

/// How long both run.
const TOGETHER: f64 = 30.0;
/// How long the program on the slow tier then runs alone.
const AFTER: f64 = 10.0;

/// LLaMA 3.1, four sequences each: 70 B weights of 4.5 bits on DRAM; 8 B of 16 bits on one CXL device. After a
/// while the first one ends.
pub fn llm_decode(two_groups: &TwoGroups) -> Phases {
    let large = named(preset("llama-decode-b4")?, "large");
    let small = named(preset("llama-decode-f16")?, "small");
    let large = tenant(large, two_groups.first_half(), two_groups.fast_tier());
    let small = tenant(small, two_groups.second_half(), two_groups.one_device());
    Ok(pair_then_alone(large, small))
}

/// A predicate over a column on each tier.
pub fn sql_scan(two_groups: &TwoGroups) -> Phases {
    let query = preset("spark-scan")?;
    both(two_groups, |name| named(query.clone(), name))
}

pub fn hash_map_inserts(two_groups: &TwoGroups) -> Phases {
    hash_map(two_groups, 0.0)
}

pub fn hash_map_even(two_groups: &TwoGroups) -> Phases {
    hash_map(two_groups, 1.0)
}

pub fn hash_map_reads(two_groups: &TwoGroups) -> Phases {
    hash_map(two_groups, 4.0)
}

/// A hash map of 7 GB on each tier, with this many reads per insert.
fn hash_map(two_groups: &TwoGroups, reads: f64) -> Phases {
    let mut map = preset("hash-join-build")?;
    for region in map.phases.iter_mut().flat_map(|phase| &mut phase.regions) {
        match region.name.as_str() {
            "buckets" => {
                region.bytes = Bytes(7_000_000_000);
                // An insert first finds the place: a load and a store.
                region.stores = 0.5 / (1.0 + reads);
            }
            _ => region.bytes = Bytes::mib(512),
        }
    }
    both(two_groups, |name| named(map.clone(), name))
}

fn both(two_groups: &TwoGroups, program: impl Fn(&str) -> Workload) -> Phases {
    let fast = tenant(
        program("fast"),
        two_groups.first_half(),
        two_groups.fast_tier(),
    );
    let slow = tenant(
        program("slow"),
        two_groups.second_half(),
        two_groups.slow_tier(),
    );
    Ok(pair_then_alone(fast, slow))
}

fn pair_then_alone(fast: Tenant, slow: Tenant) -> Vec<Phase> {
    vec![
        phase(TOGETHER, vec![protected(fast), restrained(slow.clone())]),
        phase(AFTER, vec![restrained(slow)]),
    ]
}

fn preset(name: &'static str) -> Result<Workload, ScenarioError> {
    let known = Workloads::builtin();
    known
        .get(name)
        .cloned()
        .ok_or(ScenarioError::NoWorkload(name))
}

fn named(mut work: Workload, name: &str) -> Workload {
    work.name = name.into();
    work
}

/// A program with a thread on each of these cores.
fn tenant(mut work: Workload, cores: Vec<u32>, placement: Placement) -> Tenant {
    work.threads = cores.len() as u32;
    Tenant::running(work, cores, placement)
}
