//! The memory of a machine without the machine: no core, no cache, no mesh, only what a tier's
//! lines meet behind the home agent. For streams that come from elsewhere, such as those that
//! simulators of DRAM are compared on.

use weir_model::machine::MachineError;
use weir_model::platform::Platform;
use weir_model::topology::TierName;
use weir_model::units::Nanos;

use crate::clock::{nanos, ps};
use crate::memory::{Shared, Tier, TierConfig};
use crate::params::{Params, SimError};

/// One tier of a platform, idle at first.
pub struct MemoryAlone {
    tier: Tier,
    shared: Shared,
}

/// Why there is no such memory.
#[derive(Debug, thiserror::Error)]
pub enum AloneError {
    /// The platform cannot be simulated.
    #[error(transparent)]
    Platform(#[from] SimError),
    /// It has no tier of this name.
    #[error(transparent)]
    Tier(#[from] MachineError),
}

impl MemoryAlone {
    /// The tier of this name, its links, controllers and channels as in the whole machine. The fixed
    /// time of the way to it is left out.
    ///
    /// # Errors
    /// The platform has no such tier, or its numbers contradict each other.
    pub fn new(platform: &Platform, tier: &TierName, seed: u64) -> Result<Self, AloneError> {
        let topology = platform.topology();
        let index = (topology.tiers.iter().position(|t| t.name == *tier))
            .ok_or_else(|| MachineError::no_such_tier(tier, &topology))?;
        let config = TierConfig {
            way_out: 0,
            way_back: 0,
            ..Params::derive(platform)?.tiers[index].config.clone()
        };
        Ok(Self {
            shared: Shared::of(std::iter::once(&config)),
            tier: Tier::new(config, seed),
        })
    }

    /// Reads the `line`th line of the tier's lines, asked for `at` this time since the start, and
    /// returns when its data is there. Questions come in the order of their times.
    pub fn read(&mut self, line: u64, at: Nanos) -> Nanos {
        nanos(self.tier.read(line, false, ps(at), &mut self.shared))
    }
}
