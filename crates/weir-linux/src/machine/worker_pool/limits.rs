//! Limits of the tenants that run: their threads, bandwidth, ways of the cache, and prefetchers.

use weir_model::action::{Actuators, Share};
use weir_model::capability::Unavailable;
use weir_model::machine::MachineError;
use weir_model::units::Nanos;

use super::{Member, WorkerPool};
use crate::machine::HostParts;
use crate::prefetch::{Running, Switches};
use crate::steer::actuators::{KernelAccess, allocation, clock};

impl WorkerPool {
    /// The threads of a tenant that may be limited.
    fn limitable(&self, tenant: &str) -> Result<Vec<&Member>, MachineError> {
        let index = self.tenant(tenant)?;
        let own: Vec<&Member> = self.members.iter().filter(|m| m.tenant == index).collect();
        let always = own.iter().any(|member| member.never_waits);
        if own.is_empty() || always {
            return Err(MachineError::Request(format!(
                "the threads of `{tenant}` wait for a device or for each other, and are not limited"
            )));
        }
        Ok(own)
    }

    /// Lets this many of a tenant's threads run, all of them for `None`; says how many may.
    ///
    /// # Errors
    /// There is no such tenant, or its threads cannot be limited.
    pub fn limit_cores(
        &self,
        tenant: &str,
        cores: Option<u32>,
    ) -> Result<Option<u32>, MachineError> {
        if cores == Some(0) {
            return Err(MachineError::Request(format!(
                "`{tenant}` cannot run on no core"
            )));
        }
        let own = self.limitable(tenant)?;
        let most = cores.map_or(own.len(), |cores| cores as usize);
        for (place, member) in own.iter().enumerate() {
            member.gate.close(place >= most);
        }
        Ok(cores.map(|cores| cores.min(own.len() as u32)))
    }

    /// Lets a tenant's threads run for a share of each period.
    ///
    /// # Errors
    /// There is no such tenant, its threads cannot be limited, or the share or period is invalid.
    pub fn limit_time(&self, tenant: &str, share: f64, period: Nanos) -> Result<(), MachineError> {
        if !(share > 0.0 && share <= 1.0 && period.get() >= 1e6 && period.get() <= 1e9) {
            return Err(MachineError::Request(format!(
                "`{tenant}` cannot run for {share} of each {period}: a share is above 0 and at most 1, a period 1 ms to 1 s"
            )));
        }
        for member in self.limitable(tenant)? {
            member.gate.share(share, period);
        }
        Ok(())
    }

    /// Bounds the bandwidth of a tenant's threads until the run ends, and says to how many percent.
    ///
    /// # Errors
    /// There is no such tenant, or bandwidth cannot be allocated.
    pub fn set_bandwidth(
        &mut self,
        host: &HostParts,
        tenant: &str,
        percent: u32,
    ) -> Result<u32, MachineError> {
        let index = self.tenant(tenant)?;
        let cores = self.cores_of(tenant)?.to_vec();
        let changes = &mut self.changes;
        let applied = (self.ways).bound(host, changes, index, tenant, &cores, percent)?;
        self.ways.take(changes, &self.threads)?;
        Ok(applied)
    }

    /// The actuators by which a tenant can be limited.
    pub fn actuators(&self, host: &HostParts, tenant: &str) -> Actuators {
        if let Some(processes) = self.processes.as_ref().filter(|all| all.has(tenant)) {
            return processes.actuators(tenant);
        }
        if self.limitable(tenant).is_err() {
            return Actuators::default();
        }
        let cpus = self.cores_of(tenant).unwrap_or_default();
        let journal = host.options.run_journal.as_ref();
        let scale = journal.and_then(|_| allocation::scale(&host.root, None).ok());
        Actuators {
            cores: true,
            time: true,
            allocation: scale.map(|scale| Share::of(scale.step.max(1) as f64 / scale.all)),
            clocks: match host.options.journal {
                Some(_) => clock::clocks(&host.root, cpus),
                None => Vec::new(),
            },
        }
    }

    /// Gives a tenant these ways of the last-level cache until the run ends, and returns the ways that it
    /// has.
    ///
    /// # Errors
    /// There is no such tenant, or the cache cannot be divided in this way.
    pub fn set_ways(
        &mut self,
        host: &HostParts,
        tenant: &str,
        mask: u32,
    ) -> Result<u32, MachineError> {
        let index = self.tenant(tenant)?;
        let cores = self.cores_of(tenant)?.to_vec();
        let changes = &mut self.changes;
        let applied = (self.ways).set(host, changes, index, tenant, &cores, mask)?;
        self.ways.take(changes, &self.threads)?;
        Ok(applied)
    }

    /// Switches the prefetchers of every processor that is used, until the run ends.
    pub fn switch_prefetchers(
        &mut self,
        switches: &Switches,
        wanted: Running,
    ) -> Result<Running, Unavailable> {
        let cpus: Vec<u32> = self.members.iter().map(|member| member.cpu).collect();
        let set = |access: &mut KernelAccess<'_>| switches.set(access, &cpus, wanted);
        self.changes.make(set)?;
        let mut running = Running {
            l1: false,
            l2: false,
        };
        for &cpu in &cpus {
            let found = switches.running(cpu)?;
            running.l1 |= found.l1;
            running.l2 |= found.l2;
        }
        Ok(running)
    }
}
