//! Tiers of this host as the kernel's nodes, on which programs' memory is placed.

use weir_model::machine::MachineError;
use weir_model::topology::{TierName, Topology};

use crate::failure::{Failure, Result};
use crate::machine;
use crate::system::System;

/// Whether a system has all of these tiers.
///
/// # Errors
/// The first that it has not, with what it lacks for it.
pub fn all_here(system: &System, topology: &Topology, names: &[TierName]) -> Result<()> {
    let missing = names.iter().find(|name| topology.tier(name).is_none());
    match missing {
        None => Ok(()),
        Some(name) => {
            let told = MachineError::no_such_tier(name, topology).to_string();
            Err(machine::no_tier(name, told, &system.view.capabilities()))
        }
    }
}

/// The node of a tier.
///
/// # Errors
/// There is no such tier, or the kernel knows no nodes.
pub fn node_of(topology: &Topology, name: &TierName) -> Result<u32> {
    let tier = topology
        .tier(name)
        .ok_or_else(|| MachineError::no_such_tier(name, topology))?;
    tier.node.ok_or_else(|| {
        Failure::Missing(anyhow::anyhow!(
            "tier `{name}` is no node: this kernel places no pages"
        ))
    })
}
