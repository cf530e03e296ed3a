//! Limits that exist, near a limit that is asked for.

use super::Tuning;
use crate::limit::{Grain, Limit};

/// The search covers this factor.
const REACH: f64 = 2.0;

/// The limits of tenants with this many cores together.
#[derive(Debug, Clone, Copy)]
pub struct Steps<'a> {
    pub cores: f64,
    pub grain: Grain,
    pub tuning: &'a Tuning,
}

impl Steps<'_> {
    /// The nearest limit that can be set.
    pub fn nearest(&self, units: f64) -> f64 {
        let all = self.cores as u32;
        Limit::to_units(units.max(self.tuning.least), all, self.grain).units(all)
    }

    /// The limit nearest to `to` among those below `units`.
    pub fn below(&self, units: f64, to: f64) -> f64 {
        let mut held = self.offsets(units).map(|off| self.nearest(to - off));
        held.find(|&to| to < units).unwrap_or(self.tuning.least)
    }

    /// The limit nearest to `to` among those above `units`.
    pub fn above(&self, units: f64, to: f64) -> f64 {
        let mut held = self.offsets(units).map(|off| self.nearest(to + off));
        held.find(|&to| to > units).unwrap_or(self.cores)
    }

    fn offsets(&self, units: f64) -> impl Iterator<Item = f64> {
        let part = self.tuning.part;
        (0..=(REACH / part) as u32).map(move |n| f64::from(n) * part * units)
    }
}
