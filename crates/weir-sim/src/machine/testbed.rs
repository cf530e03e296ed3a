//! A platform that can be simulated any number of times.

use std::sync::Arc;

use weir_model::capability::{Capability, Feature};
use weir_model::machine::{Identity, Machine, MachineError, MachineKind, Testbed};
use weir_model::platform::Platform;

use super::SimMachine;
use super::model::Model;
use crate::params::{Params, SimError};
use crate::sampling::Sampling;

/// A platform that can be simulated any number of times.
#[derive(Clone)]
pub struct SimTestbed {
    pub(super) model: Arc<Model>,
    pub(super) sampling: Option<Sampling>,
    pub(super) error: Option<f64>,
}

impl SimMachine {
    /// A machine at rest.
    pub fn new(testbed: &SimTestbed, seed: u64) -> Self {
        Self {
            model: Arc::clone(&testbed.model),
            sampling: testbed.sampling,
            error: testbed.error,
            seed,
            run: None,
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
            "add one to the expression of --on, such as `+ssd-nvme4`",
        ),
        devices => {
            let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
            Capability::present(Feature::Storage, format!("modelled: {}", names.join(", ")))
        }
    }
}

/// The version of what the simulator computes. Stored answers of another version are not reused; a test says when it
/// must be raised.
pub const PHYSICS: u32 = 12;

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
