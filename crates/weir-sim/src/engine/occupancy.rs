//! How much of the last-level cache each tenant has filled (CMT): counted where the cache has tags, by a formula
//! where a described program has it for itself, and absent otherwise.

use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::units::LINE_BYTES;

use super::Engine;
use crate::core::Thread;

impl Engine {
    /// Adds the occupancy of each tenant, and of all together on the host that is observed, to their counters.
    pub(super) fn count_occupancy(&self, all: &mut CounterSet, of_tenants: &mut [CounterSet]) {
        let of: Vec<_> = (0..of_tenants.len()).map(|i| self.occupancy(i)).collect();
        let own = of.iter().enumerate().filter(|(i, _)| self.is_observed(*i));
        let sum = own
            .map(|(_, bytes)| bytes.clone())
            .sum::<Result<u64, Unavailable>>();
        let sets = of_tenants.iter_mut().chain([all]);
        for (set, bytes) in sets.zip(of.into_iter().chain([sum])) {
            match bytes {
                Ok(bytes) => set.set(Counter::LlcOccupancy, bytes),
                Err(why) => set.set_unavailable(Counter::LlcOccupancy, why),
            }
        }
    }

    fn occupancy(&self, tenant: usize) -> Result<u64, Unavailable> {
        let own = || (self.threads.iter()).filter(|t| usize::from(t.tenant) == tenant);
        let lines = if own().any(|t| t.ooo.is_some()) {
            self.occupied_by_program(tenant)?
        } else if self.uncore.keeps_lines() {
            let number = u16::try_from(tenant).ok();
            let held = number.and_then(|number| self.uncore.held_by(number));
            held.ok_or_else(|| {
                Unavailable::because("the model counts the lines of the first 31 tenants only")
            })?
        } else {
            return Err(Unavailable::because(
                "the model keeps no tags of the last-level cache if no tenant's lines survive in it",
            ));
        };
        Ok(lines * LINE_BYTES)
    }

    fn occupied_by_program(&self, tenant: usize) -> Result<u64, Unavailable> {
        let host = |t: &Thread| self.params.host_of(t.core);
        let own = self
            .threads
            .iter()
            .find(|t| usize::from(t.tenant) == tenant)
            .map(host);
        let is_alone = (self.threads.iter())
            .filter(|t| Some(host(t)) == own)
            .all(|t| usize::from(t.tenant) == tenant && !self.params.is_beyond(t.core));
        if !is_alone || self.params.uncore.complex.is_some() {
            return Err(Unavailable::because(
                "a formula gives what a described program finds in the last-level cache, and how much of it \
                 the program holds only if it has one cache for itself",
            ));
        }
        let held = self.threads.iter().find_map(|t| t.ooo.as_ref()?.held());
        held.map(|lines| lines as u64).ok_or_else(|| {
            Unavailable::because(
                "so much of what the program holds may be in an L2 or in the last-level cache that the \
                 formula does not say how much the latter has",
            )
        })
    }
}
