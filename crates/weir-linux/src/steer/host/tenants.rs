//! Tenants that start and end while a host is steered.

use weir_model::capability::Unavailable;

use super::Host;
use crate::steer::automatic::{Candidate, Rules, candidates};
use crate::steer::config::TenantScope;
use crate::steer::release::lock;
use crate::steer::tenant::Tenant;

impl Host {
    /// Adds a tenant, in the last position or in that of one that has ended, and returns the position.
    ///
    /// # Errors
    /// It cannot be found or limited, or overlaps another.
    pub fn adopt(
        &mut self,
        asked: TenantScope,
        place: Option<usize>,
    ) -> Result<usize, Unavailable> {
        let number = place.unwrap_or(self.tenants.len());
        let before = self.config.tenants.clone();
        if number < self.config.tenants.len() {
            self.config.tenants[number] = asked;
        } else {
            self.config.tenants.push(asked);
        }
        let found = Tenant::find_beside(&self.root, &self.config, number, &self.tenants);
        let mut tenant = match found {
            Ok(tenant) => tenant,
            Err(why) => {
                self.config.tenants = before;
                return Err(why);
            }
        };
        if let Some(writes) = &self.writes {
            let mut writes = lock(writes);
            tenant.settle(&self.root, &mut writes, &self.config, &mut self.wrote);
        }
        match self.tenants.get_mut(number) {
            Some(place) => *place = tenant,
            None => self.tenants.push(tenant),
        }
        Ok(number)
    }

    /// Retires a tenant: it is not observed any more, and its group may belong to another. The caller has
    /// removed its limits before.
    pub fn retire(&mut self, tenant: usize) {
        if let Some(tenant) = self.tenants.get_mut(tenant) {
            tenant.retire();
        }
    }

    /// The control groups that could be tenants.
    pub fn candidates(&self, rules: &Rules) -> Vec<Candidate> {
        candidates(&self.root, rules)
    }
}
