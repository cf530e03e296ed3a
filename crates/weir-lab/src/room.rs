//! Whether the memory of points fits the tiers, before any of them runs.

use weir_model::topology::{TierKind, TierName, Topology};
use weir_model::units::Bytes;

use crate::{LabError, PointSpec};

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
