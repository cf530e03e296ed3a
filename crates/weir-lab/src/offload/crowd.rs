//! Threads on the slower tier that are second threads of cores, since no core is free.

use serde::{Deserialize, Serialize};
use weir_model::tenant::Tenant;
use weir_model::topology::TierName;
use weir_model::units::GbPerSec;

use crate::together::{Operator, Together};
use crate::{Ask, Lab, LabError};

/// This many threads on either tier, more than there are cores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crowd {
    /// What they do.
    pub operator: Operator,
    /// The tier of the local threads.
    pub from: TierName,
    /// That of the others.
    pub tier: TierName,
    /// Local threads, which have the first threads of as many cores.
    pub local: u32,
    /// Others: on cores that are free, then on second threads.
    pub far: u32,
}

/// What they read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Crowded {
    /// All local threads.
    pub local: GbPerSec,
    /// All others.
    pub far: GbPerSec,
    /// The local threads on cores with two threads.
    pub sharing: GbPerSec,
    /// The same once all others are done.
    pub last: GbPerSec,
}

impl Ask for Crowd {
    type Got = Crowded;
    const KIND: &'static str = "threads on shared cores";

    fn ask(&self, lab: &Lab<'_>) -> Result<Crowded, LabError> {
        let topology = lab.topology();
        let cores = topology.cores.len() as u32;
        let part = self.operator.scan();
        let shared = (self.local + self.far).saturating_sub(cores);
        let tenant = |name: &str, tier: &TierName, at: (u32, u32)| {
            let tenant = part.tenant(topology, tier, &self.from, at)?;
            let name = format!("{name} {}", tenant.name);
            Ok::<_, LabError>(Tenant { name, ..tenant })
        };
        let sharing = tenant("sharing", &self.from, (0, shared))?;
        let second = Tenant {
            second_threads: true,
            ..tenant("second", &self.tier, (0, shared))?
        };
        let own = self.local.saturating_sub(shared);
        let free = cores.saturating_sub(self.local);
        let mut tenants = vec![sharing.clone(), second];
        let mut is_local = vec![true, false];
        for (local, tier, at) in [
            (true, &self.from, (shared, own)),
            (false, &self.tier, (self.local, free)),
        ] {
            if at.1 > 0 {
                tenants.push(tenant("own", tier, at)?);
                is_local.push(local);
            }
        }
        let seen = Together { tenants }.ask(lab)?;
        let sum = |local: bool| {
            let own = (0..is_local.len()).filter(|&at| is_local[at] == local);
            own.fold(GbPerSec(0.0), |sum, at| sum + part.rate(&seen, at))
        };
        let last = Together {
            tenants: vec![sharing],
        };
        Ok(Crowded {
            local: sum(true),
            far: sum(false),
            sharing: part.rate(&seen, 0),
            last: part.rate(&last.ask(lab)?, 0),
        })
    }
}
