//! A plant on which nothing is written: decisions are made, and nobody is held.

use weir_model::units::Nanos;

use super::{AppliedLimit, NotPutBack, Plant, PlantError, TenantOf};
use crate::limit::Limit;
use crate::readings::Readings;

/// Another plant, only looked at.
pub struct Dry<'a> {
    plant: &'a mut dyn Plant,
}

impl<'a> Dry<'a> {
    /// Looks at a plant.
    pub fn new(plant: &'a mut dyn Plant) -> Self {
        Self { plant }
    }
}

impl Plant for Dry<'_> {
    fn tenants(&self) -> &[TenantOf] {
        self.plant.tenants()
    }

    fn observe(&mut self, window: Nanos) -> Result<Readings, PlantError> {
        self.plant.observe(window)
    }

    fn apply(&mut self, limits: &[Limit]) -> Vec<AppliedLimit> {
        let after = |&requested: &Limit| AppliedLimit {
            requested,
            applied: Limit::FREE,
            refused: match requested.is_free() {
                true => Vec::new(),
                false => vec!["a dry run writes nothing".to_owned()],
            },
        };
        limits.iter().map(after).collect()
    }

    fn release(&mut self) -> Vec<NotPutBack> {
        Vec::new()
    }
}
