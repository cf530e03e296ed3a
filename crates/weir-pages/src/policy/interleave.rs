//! Interleaving by weights: `MPOL_INTERLEAVE`, `MPOL_WEIGHTED_INTERLEAVE`.

use super::{Placing, Policy};
use crate::tier::Tier;

/// This many pages on the fast node, then this many on the slow one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interleave {
    /// Weights of the fast and the slow node, 1 to 255 in Linux.
    pub weights: [u8; 2],
}

impl Policy for Interleave {
    fn place(&mut self, page: &Placing) -> Tier {
        let [fast, slow] = self.weights.map(u64::from);
        match page.nth % (fast + slow) < fast {
            true => Tier::Fast,
            false => Tier::Slow,
        }
    }
}
