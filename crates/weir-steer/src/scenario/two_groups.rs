//! Cores and memory for the two groups of tenants in a scenario.

use weir_model::access::{Op, Pattern};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::{TierKind, TierName, Topology};
use weir_model::units::{Bytes, Nanos};

use crate::readings::Role;
use crate::steered::{Phase, SteeredTenant};

/// Threads of a tenant: those of the papers' bandwidth tests.
const THREADS: u32 = 16;
/// With fewer cores there is no space for a small tenant and the others.
const LEAST_CORES: u32 = 16;
/// What a thread of a bandwidth test accesses: out of every cache's reach.
const WORKING_SET: Bytes = Bytes::mib(64);

/// Why a scenario cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// There is no scenario of that name.
    #[error("no scenario is called `{name}`; there are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The machine has no memory behind CXL on this socket.
    #[error("a scenario needs a CXL tier on this socket, and the machine has none")]
    NoSlowTier,
    /// The machine has too few cores.
    #[error("a scenario needs {needed} cores on one socket, and the machine has {there}")]
    TooFewCores {
        /// Least number of cores.
        needed: u32,
        /// Cores of the machine.
        there: u32,
    },
    /// A program of the scenario is not described.
    #[error("the workload `{0}` is not in the library")]
    NoWorkload(&'static str),
}

/// A machine, divided into two groups of tenants.
pub struct TwoGroups {
    cores: Vec<u32>,
    half: usize,
    slow: Vec<TierName>,
}

impl TwoGroups {
    /// Of a machine with a CXL tier.
    pub fn on(topology: &Topology) -> Result<Self, ScenarioError> {
        let slow: Vec<TierName> = (topology.tiers.iter())
            .filter(|tier| tier.kind == TierKind::Cxl)
            .map(|tier| tier.name.clone())
            .collect();
        if slow.is_empty() {
            return Err(ScenarioError::NoSlowTier);
        }
        let there = topology.cores.len() as u32;
        if there < LEAST_CORES {
            return Err(ScenarioError::TooFewCores {
                needed: LEAST_CORES,
                there,
            });
        }
        Ok(Self {
            cores: topology.cores.clone(),
            half: (there / 2).min(THREADS) as usize,
            slow,
        })
    }

    /// Cores of the group on the fast tier.
    pub fn first_half(&self) -> Vec<u32> {
        self.cores[..self.half].to_vec()
    }

    /// Cores of the group on the slow tier.
    pub fn second_half(&self) -> Vec<u32> {
        self.cores[self.half..2 * self.half].to_vec()
    }

    /// Pages on DRAM.
    pub fn fast_tier(&self) -> Placement {
        Placement::Bind(TierName::dram())
    }

    /// Pages interleaved over every device of the slow tier (weighted interleave).
    pub fn slow_tier(&self) -> Placement {
        match self.slow.as_slice() {
            [only] => Placement::Bind(only.clone()),
            several => Placement::Interleave(several.iter().map(|t| (t.clone(), 1)).collect()),
        }
    }

    /// Pages on the first device of the slow tier alone.
    pub fn one_device(&self) -> Placement {
        Placement::Bind(self.slow[0].clone())
    }
}

/// A bandwidth test: every thread accesses an array of its own as fast as it can.
pub fn stream(name: &str, op: Op, cores: Vec<u32>, placement: Placement) -> Tenant {
    let tier = TierName::dram();
    Tenant {
        name: name.into(),
        cores,
        placement,
        ..Tenant::on_first_cores(op, Pattern::Sequential, &tier, 1, WORKING_SET)
    }
}

/// A tenant whose fast tier is protected.
pub fn protected(tenant: Tenant) -> SteeredTenant {
    SteeredTenant {
        tenant,
        role: Role::Protected,
    }
}

/// A tenant that may be limited.
pub fn restrained(tenant: Tenant) -> SteeredTenant {
    SteeredTenant {
        tenant,
        role: Role::Restrained,
    }
}

/// Tenants that run at the same time for this many seconds.
pub fn phase(seconds: f64, participants: Vec<SteeredTenant>) -> Phase {
    Phase {
        lasts: Nanos(seconds * 1e9),
        participants,
    }
}
