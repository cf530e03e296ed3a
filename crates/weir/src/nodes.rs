//! Tiers of this host as the kernel's nodes, on which programs' memory is placed.

use weir_insight::two_tiers::Tiers;
use weir_lab::LabError;
use weir_linux::memory::ProgramPolicy;
use weir_linux::steer::SystemSettings;
use weir_model::capability::Unavailable;
use weir_model::machine::MachineError;
use weir_model::topology::{TierName, Topology};
use weir_steer::config::Config;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::insight;
use crate::machine;
use crate::machine::say_restored;
use crate::session::say;
use crate::system::{self, System};

/// This host, where commands run.
///
/// # Errors
/// Another machine was named.
pub fn here(context: &Context) -> Result<System> {
    let host = system::find(&context.global.on)?.filter(|system| !system.is_recorded());
    host.ok_or_else(|| Failure::request("this works on this host alone; remove `--on`"))
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
            let text = LabError::unknown_tier(name, topology).to_string();
            Err(machine::no_tier(name, text, &system.view.capabilities()))
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

/// The system's weights of interleaving while they are changed.
pub struct Held(SystemSettings);

impl Held {
    /// Restores them.
    ///
    /// # Errors
    /// They cannot be written; the journal keeps them.
    pub fn restore(self) -> Result<()> {
        let restored = self.0.restore();
        let left = restored.map_err(|why| Failure::work(format!("the system's weights: {why}")))?;
        for different in left {
            say(&format!("weir: {different}"));
        }
        Ok(())
    }
}

/// The policy of pages that are spread over nodes by weights. Unequal weights are those of the system, which are held
/// meanwhile.
///
/// # Errors
/// The kernel has no weights, or they cannot be written.
pub fn spread(host: &System, weights: &[(u32, u32)]) -> Result<(ProgramPolicy, Option<Held>)> {
    let missing = |why: Unavailable| Failure::Missing(anyhow::anyhow!("{why}"));
    let used: Vec<(u32, u32)> = weights
        .iter()
        .copied()
        .filter(|(_, weight)| *weight > 0)
        .collect();
    let nodes: Vec<u32> = used.iter().map(|(node, _)| *node).collect();
    if let [node] = nodes.as_slice() {
        return Ok((ProgramPolicy::bind(*node), None));
    }
    if used.windows(2).all(|two| two[0].1 == two[1].1) {
        return Ok((ProgramPolicy::interleave(&nodes), None));
    }
    SystemSettings::weights_available(&host.root).map_err(missing)?;
    let opened = SystemSettings::open(&host.root, &Config::default().journal);
    let (mut settings, restored) = opened.map_err(|why| Failure::Missing(why.into()))?;
    say_restored(&restored);
    let found = settings.set_weights(&used).map_err(missing)?;
    if found != used {
        return Err(missing(Unavailable::because(format!(
            "the kernel changed the weights {used:?} to {found:?}"
        ))));
    }
    Ok((ProgramPolicy::weighted(&nodes), Some(Held(settings))))
}
