//! Settings of the system that actions change during a run, and that are restored when it ends.

use weir_model::capability::{Feature, Unavailable};
use weir_model::machine::MachineError;
use weir_model::topology::TierName;

use super::HostParts;
use crate::steer::{Release, SystemSettings};

/// The settings of a run, with the journal of its tenants, or one of their own.
///
/// # Errors
/// This machine has no journal, or another process has it.
pub(super) fn settings(
    host: &HostParts,
    tenants: Option<Release>,
    feature: Feature,
) -> Result<SystemSettings, MachineError> {
    let missing = |reason: String| MachineError::Missing { feature, reason };
    if let Some(shared) = tenants.and_then(|tenants| SystemSettings::sharing(&host.root, tenants)) {
        return Ok(shared);
    }
    let Some(folder) = &host.options.journal else {
        return Err(missing(
            "no journal was named, by which the setting would be restored".into(),
        ));
    };
    let opened = SystemSettings::open(&host.root, folder);
    opened
        .map(|(settings, _)| settings)
        .map_err(|why| missing(why.to_string()))
}

/// Sets the system's weights of interleaving; says what is in force.
///
/// # Errors
/// The kernel has no weights, or a tier has no node.
pub(super) fn set_weights(
    host: &HostParts,
    settings: &mut SystemSettings,
    weights: &[(TierName, u32)],
) -> Result<Vec<(TierName, u32)>, MachineError> {
    let node = |name: &TierName| {
        let tier = host.topology.tier(name);
        let tier = tier.ok_or_else(|| MachineError::no_such_tier(name, &host.topology))?;
        tier.node.ok_or_else(|| {
            let why = format!("the kernel has no memory node for {name}");
            missing(Feature::InterleaveWeights, Unavailable::because(why))
        })
    };
    if let Some((name, weight)) = weights.iter().find(|(_, w)| !(1..=255).contains(w)) {
        return Err(MachineError::Request(format!(
            "the weight {weight} of {name} is not from 1 to 255"
        )));
    }
    let wanted = weights
        .iter()
        .map(|(name, weight)| Ok((node(name)?, *weight)));
    let wanted = wanted.collect::<Result<Vec<_>, MachineError>>()?;
    let found = settings.set_weights(&wanted);
    let found = found.map_err(|why| missing(Feature::InterleaveWeights, why))?;
    let names = weights.iter().map(|(name, _)| name.clone());
    Ok(names.zip(found.iter().map(|(_, weight)| *weight)).collect())
}

pub(super) fn missing(feature: Feature, why: Unavailable) -> MachineError {
    MachineError::Missing {
        feature,
        reason: why.reason,
    }
}
