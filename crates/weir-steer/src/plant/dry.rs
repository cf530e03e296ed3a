//! A plant on which nothing is written: decisions are made, and nobody is held.

use weir_model::units::Nanos;

use super::{AppliedHold, NotPutBack, Plant, PlantError, TenantOf};
use crate::hold::Hold;
use crate::sight::Sight;

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

    fn observe(&mut self, window: Nanos) -> Result<Sight, PlantError> {
        self.plant.observe(window)
    }

    fn apply(&mut self, holds: &[Hold]) -> Vec<AppliedHold> {
        let after = |&requested: &Hold| AppliedHold {
            requested,
            applied: Hold::FREE,
            refused: match requested.is_free() {
                true => Vec::new(),
                false => vec!["a dry run writes nothing".to_owned()],
            },
        };
        holds.iter().map(after).collect()
    }

    fn release(&mut self) -> Vec<NotPutBack> {
        Vec::new()
    }
}
