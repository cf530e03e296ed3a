//! Tiers of this host as the kernel's nodes, on which programs' memory is placed.

use weir_insight::two_tiers::Tiers;
use weir_model::machine::MachineError;
use weir_model::topology::{TierName, Topology};

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::insight;
use crate::machine;
use crate::system::{self, System};

/// This host, where commands run.
///
/// # Errors
/// Another machine was named.
pub fn here(context: &Context) -> Result<System> {
    let host = system::find(&context.global.on)?.filter(|system| !system.is_recorded());
    host.ok_or_else(|| Failure::request("a command runs on this host; leave `--on` out"))
}

/// This host and two tiers of it.
///
/// # Errors
/// It has not both, and what is missing for it; or they are one.
pub fn pair_here(context: &Context, from: &TierName, to: &TierName) -> Result<(System, Tiers)> {
    let host = here(context)?;
    let topology = host.view.topology()?;
    all_here(&host, &topology, &[from.clone(), to.clone()])?;
    let tiers = insight::tiers(&topology, from, to)?;
    Ok((host, tiers))
}

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
