//! A platform that can be simulated any number of times, and what tenants cannot ask of it.

use std::sync::Arc;

use weir_model::access::Op;
use weir_model::capability::{Capability, Feature};
use weir_model::machine::{Identity, Machine, MachineError, MachineKind, Testbed};
use weir_model::platform::Platform;
use weir_model::region::DATA;
use weir_model::tenant::Tenant;
use weir_model::topology::{TierName, Topology};

use super::SimMachine;
use crate::params::{Params, SimError};
use crate::sampling::Sampling;

/// A platform that can be simulated any number of times.
#[derive(Clone)]
pub struct SimTestbed {
    pub(super) model: Arc<Model>,
    pub(super) sampling: Option<Sampling>,
    pub(super) error: Option<f64>,
}

pub(super) struct Model {
    pub(super) identity: Identity,
    pub(super) topology: Topology,
    pub(super) capabilities: Vec<Capability>,
    pub(super) params: Arc<Params>,
}

impl Model {
    /// Refuses a mask of ways that the last-level cache does not have.
    pub(super) fn check_ways(&self, mask: u32) -> Result<(), MachineError> {
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
    pub(super) fn check_hints(&self, tenants: &[Tenant]) -> Result<(), MachineError> {
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

impl SimTestbed {
    /// Derives a machine from a platform.
    ///
    /// # Errors
    /// The platform's numbers contradict each other.
    pub fn new(platform: &Platform) -> Result<Self, SimError> {
        let params = Arc::new(Params::derive(platform)?);
        let identity = Identity {
            kind: MachineKind::Sim,
            name: platform.name.clone(),
            digest: platform.digest(),
        };
        let capabilities = vec![
            movdir64b(platform),
            dsa(platform),
            storage(platform),
            Capability::present(Feature::PrefetchControl, "modelled"),
            Capability::present(Feature::UncorePmu, "counted in the model's queues"),
            Capability::present(Feature::Pinning, "every thread has a core"),
        ];
        let topology = platform.topology();
        Ok(Self {
            model: Arc::new(Model {
                identity,
                topology,
                capabilities,
                params,
            }),
            sampling: None,
            error: None,
        })
    }

    /// The same machine for long experiments: windows longer than the detailed part are sampled.
    pub fn sampled(self, sampling: Sampling) -> Self {
        Self {
            sampling: Some(sampling),
            ..self
        }
    }

    /// The same machine; windows that are sampled have parts until half of the 95 % interval of each figure is at most
    /// this share of it.
    pub fn to_error(self, error: Option<f64>) -> Self {
        Self { error, ..self }
    }
}

/// Whether the platform's processor has 64-byte direct stores.
fn movdir64b(platform: &Platform) -> Capability {
    let core = &platform.host.core;
    if core.movdir64b_share.value > 0.0 {
        return Capability::present(Feature::Movdir64b, "modelled");
    }
    Capability::missing(
        Feature::Movdir64b,
        format!("{} does not have it", core.microarchitecture.value),
        "the platform has no figures of direct stores",
        "",
    )
}

/// Whether the platform's processor has an accelerator that copies.
fn dsa(platform: &Platform) -> Capability {
    if *platform.host.accelerator.devices > 0 {
        return Capability::present(Feature::Dsa, "modelled, one device");
    }
    Capability::missing(
        Feature::Dsa,
        format!(
            "{} does not have it",
            platform.host.core.microarchitecture.value
        ),
        "the platform has no figures of copies by an accelerator",
        "",
    )
}

/// Whether the platform has a storage device.
fn storage(platform: &Platform) -> Capability {
    match platform.storage.as_slice() {
        [] => Capability::missing(
            Feature::Storage,
            "the platform has no storage device",
            "the platform has no figures of requests",
            "name one: `--on emr2s+cxl-a+ssd-nvme4`",
        ),
        devices => {
            let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
            Capability::present(Feature::Storage, format!("modelled: {}", names.join(", ")))
        }
    }
}

/// The version of what the simulator computes. Stored answers of another version are not reused; a test says when it
/// must be raised.
pub const PHYSICS: u32 = 7;

impl Testbed for SimTestbed {
    fn open(&self, seed: u64) -> Result<Box<dyn Machine>, MachineError> {
        Ok(Box::new(SimMachine::new(self, seed)))
    }

    fn physics(&self) -> Option<u32> {
        Some(PHYSICS)
    }

    /// As many as there are processors, or as `WEIR_THREADS` says.
    fn parallelism(&self) -> usize {
        let asked = std::env::var("WEIR_THREADS").ok();
        let asked = asked.and_then(|threads| threads.parse().ok());
        asked
            .filter(|&threads| threads > 0)
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}
