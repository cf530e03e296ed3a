//! How much memory points need: working sets that leave the caches behind, and whether all of them fit the tiers.

use weir_model::topology::{Tier, TierKind, TierName, Topology};
use weir_model::units::Bytes;

use crate::plan::caches_in_reach;
use crate::{LabError, PointSpec};

/// A thread's working set is at least this.
const LEAST_SET: Bytes = Bytes::mib(64);
/// And all threads' together this many times the caches in reach, so that memory is measured.
pub const TIMES_CACHES: u64 = 2;
/// Working sets are multiples of this, the usual huge page.
const GRANULE: Bytes = Bytes::mib(2);
/// All threads' working sets together take at most this part of a tier.
const PART_OF_TIER: u64 = 2;

/// Bytes for each of `threads` threads that together leave the caches behind, within the tier.
pub fn working_set(topology: &Topology, tier: &Tier, threads: u32) -> Bytes {
    beyond_caches(topology, tier, threads, TIMES_CACHES)
}

/// Bytes for each of `threads` threads that together are this many times the caches in their reach,
/// within the tier.
pub fn beyond_caches(topology: &Topology, tier: &Tier, threads: u32, times: u64) -> Bytes {
    let threads_wide = u64::from(threads.max(1));
    let granule = GRANULE.get();
    let caches = caches_in_reach(topology, threads)
        .get()
        .saturating_mul(times);
    let wanted = caches
        .div_ceil(threads_wide)
        .max(LEAST_SET.get())
        .next_multiple_of(granule);
    let room = tier.capacity.get() / PART_OF_TIER / threads_wide;
    let room = (room - room % granule).max(granule.min(tier.capacity.get()));
    Bytes(wanted.min(room))
}

/// Refuses points that need more memory than their tiers have.
pub(crate) fn check(plan: &[PointSpec], topology: &Topology) -> Result<(), LabError> {
    plan.iter().try_for_each(|spec| {
        for load in spec.loads() {
            let wanted = |tier: &TierName| -> u64 {
                let of_tier = spec.loads().filter(|load| load.tier == *tier);
                of_tier.fold(0, |sum, load| {
                    let all = load.working_set.get().saturating_mul(load.threads.into());
                    sum.saturating_add(all)
                })
            };
            // An array that is read may be on other tiers.
            let others = load.reads.iter().flat_map(|reads| reads.from.tiers());
            let memory = std::iter::once(&load.tier).chain(others);
            let known = memory.filter_map(|name| topology.tier(name));
            let memory: u64 = (known.filter(|tier| tier.kind != TierKind::Ssd))
                .map(|tier| tier.capacity.get())
                .sum();
            let wanted = wanted(&load.tier);
            if memory > 0 && wanted > memory {
                return Err(LabError::Room {
                    what: spec.to_string(),
                    wanted: Bytes(wanted),
                    tier: load.tier.clone(),
                    memory: Bytes(memory),
                });
            }
        }
        Ok(())
    })
}

/// Refuses regions of a program that a tier has no room for, in words that name them. Regions are some pages apart, so that
/// as much as the tier has does not fit either.
pub(crate) fn check_regions(what: &str, bytes: Bytes, tier: &Tier) -> Result<(), LabError> {
    match bytes < tier.capacity {
        true => Ok(()),
        false => Err(LabError::Nothing(format!(
            "{what} take {bytes} and the pages between them, and {} has {}; take another machine, or other tiers",
            tier.name, tier.capacity
        ))),
    }
}
