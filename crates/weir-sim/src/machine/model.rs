//! What machines of one platform share, and what tenants cannot ask of it.

use std::sync::Arc;

use weir_model::access::Op;
use weir_model::capability::Capability;
use weir_model::machine::{Identity, MachineError};
use weir_model::region::DATA;
use weir_model::tenant::Tenant;
use weir_model::topology::{TierName, Topology};

use crate::params::Params;

/// What is known of a platform before anything runs.
pub(super) struct Model {
    pub identity: Identity,
    pub topology: Topology,
    pub capabilities: Vec<Capability>,
    pub params: Arc<Params>,
}

impl Model {
    /// Refuses a mask of ways that the last-level cache does not have.
    pub fn check_ways(&self, mask: u32) -> Result<(), MachineError> {
        let ways = self.params.uncore.llc.ways;
        let all = u32::MAX >> (32 - ways.min(32));
        if mask == 0 || mask & !all != 0 {
            return Err(MachineError::Request(format!(
                "the mask {mask:#x} must set at least one of the cache's {ways} ways and no other"
            )));
        }
        Ok(())
    }

    /// Refuses loads without a cache of memory that has no such mapping.
    fn check_uncached(&self, tenant: &Tenant) -> Result<(), MachineError> {
        if tenant.work.stream().is_none_or(|s| s.op != Op::UcLd) {
            return Ok(());
        }
        let local = self
            .topology
            .local_tier(tenant.cores.first().copied().unwrap_or(0));
        let weights = tenant.placement_of(DATA).weights(&local);
        let lacks = |name: &TierName| {
            let at = (self.topology.tiers.iter()).position(|tier| tier.name == *name);
            at.and_then(|at| self.params.uncached(at as u8)).is_none()
        };
        match weights.iter().find(|(name, _)| lacks(name)) {
            None => Ok(()),
            Some((name, _)) => Err(MachineError::Request(format!(
                "tenant `{}` loads past the caches, and {name} has no such mapping: a device whose file has `uncached` \
                 has one, such as hotstorage22-ssd",
                tenant.name
            ))),
        }
    }

    /// Refuses hints for memory that no medium is behind.
    pub fn check_hints(&self, tenants: &[Tenant]) -> Result<(), MachineError> {
        let has_medium = |name: &TierName| {
            let at = self
                .topology
                .tiers
                .iter()
                .position(|tier| tier.name == *name);
            let tier = at.and_then(|at| self.params.tiers.get(at));
            tier.is_some_and(|t| {
                t.config
                    .device
                    .as_ref()
                    .is_some_and(|d| d.backing.is_some())
            })
        };
        for tenant in tenants {
            self.check_uncached(tenant)?;
        }
        let hinted =
            |tenant: &&Tenant| tenant.deterministic && !tenant.placement.tiers().any(has_medium);
        match tenants.iter().find(hinted) {
            None => Ok(()),
            Some(tenant) => Err(MachineError::Request(format!(
                "tenant `{}` is to be deterministic, but no medium is behind its memory: the hint is for devices with a \
                 group [backing], such as cxl-ssd-znand",
                tenant.name
            ))),
        }
    }
}
