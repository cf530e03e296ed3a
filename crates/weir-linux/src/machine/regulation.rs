//! Settings of the kernel that actions change during a run: written through the journal, and restored when the run
//! ends. `weir steer restore` restores them if this process is killed.

use weir_model::capability::{Feature, Unavailable};
use weir_model::machine::MachineError;
use weir_model::topology::TierName;
use weir_model::units::Gigahertz;

use super::HostParts;
use crate::steer::actuators::{KernelAccess, clock, weights};
use crate::steer::journalled_writes::{JournalledWrites, Wrote};

/// The changed settings of a run.
pub(super) struct Regulation {
    writes: JournalledWrites,
    wrote: Vec<Wrote>,
}

impl Regulation {
    /// Takes the journal, and restores what an earlier process left changed.
    ///
    /// # Errors
    /// This machine has no journal, or another process has it.
    pub fn open(host: &HostParts, feature: Feature) -> Result<Self, MachineError> {
        let missing = |reason: String| MachineError::Missing { feature, reason };
        let Some(folder) = &host.options.journal else {
            return Err(missing(
                "no journal was named, by which the setting would be restored".into(),
            ));
        };
        let opened = JournalledWrites::open(&host.root, folder);
        let (writes, _) = opened.map_err(|why| missing(why.to_string()))?;
        let wrote = Vec::new();
        Ok(Self { writes, wrote })
    }

    fn access<'a>(&'a mut self, host: &'a HostParts) -> KernelAccess<'a> {
        KernelAccess {
            root: &host.root,
            writes: &mut self.writes,
            wrote: &mut self.wrote,
        }
    }

    /// Bounds the clock of some processors, or lets it go; says what is in force.
    ///
    /// # Errors
    /// The kernel does not scale the clock of these processors alone.
    pub fn clock(
        &mut self,
        host: &HostParts,
        cpus: &[u32],
        wanted: Option<Gigahertz>,
    ) -> Result<Option<Gigahertz>, MachineError> {
        let mut access = self.access(host);
        let applied = match wanted {
            Some(wanted) => clock::limit(&mut access, cpus, wanted).map(Some),
            None => clock::let_go(&mut access, cpus).map(|()| None),
        };
        applied.map_err(|why| missing(Feature::ClockControl, why))
    }

    /// Sets the system's weights of interleaving; says what is in force.
    ///
    /// # Errors
    /// The kernel has no weights, or a tier has no node.
    pub fn weights(
        &mut self,
        host: &HostParts,
        weights: &[(TierName, u32)],
    ) -> Result<Vec<(TierName, u32)>, MachineError> {
        let mut wanted = Vec::with_capacity(weights.len());
        for (name, weight) in weights {
            let tier = host.topology.tier(name);
            let tier = tier.ok_or_else(|| MachineError::no_such_tier(name, &host.topology))?;
            let byte = u8::try_from(*weight).ok().filter(|weight| *weight > 0);
            match (tier.node, byte) {
                (Some(node), Some(weight)) => wanted.push((node, weight)),
                (None, _) => {
                    let why = format!("the kernel has no memory node for {name}");
                    return Err(missing(
                        Feature::InterleaveWeights,
                        Unavailable::because(why),
                    ));
                }
                (_, None) => {
                    return Err(MachineError::Request(format!(
                        "the weight {weight} of {name} is not from 1 to 255"
                    )));
                }
            }
        }
        let found = weights::set(&mut self.access(host), &wanted);
        let found = found.map_err(|why| missing(Feature::InterleaveWeights, why))?;
        let names = weights.iter().map(|(name, _)| name.clone());
        Ok(names
            .zip(found.iter().map(|(_, weight)| u32::from(*weight)))
            .collect())
    }

    /// Restores everything.
    ///
    /// # Errors
    /// What could not be restored; the journal keeps it.
    pub fn end(mut self) -> Result<(), MachineError> {
        let not: Vec<String> = self
            .writes
            .release()
            .iter()
            .map(ToString::to_string)
            .collect();
        if not.is_empty() {
            return Ok(());
        }
        Err(MachineError::System {
            what: "restoring settings of the kernel".into(),
            cause: not.join("; "),
        })
    }
}

impl Drop for Regulation {
    fn drop(&mut self) {
        // `end` reports what could not be restored.
        self.writes.release();
    }
}

fn missing(feature: Feature, why: Unavailable) -> MachineError {
    MachineError::Missing {
        feature,
        reason: why.reason,
    }
}
