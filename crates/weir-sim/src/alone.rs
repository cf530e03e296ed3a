//! The memory of a machine without cores, caches and mesh: only the part of a tier behind the home agent. It
//! takes streams from outside, such as those on which DRAM simulators are compared.

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
    /// The platform has no tier of this name.
    #[error(transparent)]
    Tier(#[from] MachineError),
}

impl MemoryAlone {
    /// The tier of this name, with links, controllers and channels as in the whole machine, but without the
    /// fixed time of the path to it.
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
            shared: Shared::of(1, std::iter::once(&config)),
            tier: Tier::new(config, 0, seed),
        })
    }

    /// Reads line number `line` of the tier. The request comes at `at`, counted from the start. Returns when
    /// the data is there. Calls must come in order of time.
    pub fn read(&mut self, line: u64, at: Nanos) -> Nanos {
        nanos(self.tier.read_at_once(line, ps(at), &mut self.shared))
    }
}
