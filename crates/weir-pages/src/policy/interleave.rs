//! Interleaving by weights: `MPOL_INTERLEAVE`, `MPOL_WEIGHTED_INTERLEAVE`.

use super::Policy;
use crate::tier::Tier;
use crate::workload::PageKind;

/// So many pages on the fast node, then so many on the slow one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interleave {
    /// Weights of the fast and the slow node, 1 to 255 in Linux.
    pub weights: [u8; 2],
}

impl Policy for Interleave {
    fn place(&self, _: PageKind, nth: u64) -> Tier {
        let [fast, slow] = self.weights.map(u64::from);
        match nth % (fast + slow).max(1) < fast {
            true => Tier::Fast,
            false => Tier::Slow,
        }
    }
}
