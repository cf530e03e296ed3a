//! Linux' NUMA balancing: a page moves to the node of the thread that touches it.

use super::{Decision, Fault, Policy, Scan};
use crate::tier::Tier;

/// Pages of both nodes are sampled, and every page of the slow one moves at its first hint fault if the fast node
/// stays above its high watermark (`migrate_balanced_pgdat`). Nothing makes room for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct NumaBalancing;

impl Policy for NumaBalancing {
    fn scan(&self) -> Option<Scan> {
        Some(Scan::LINUX)
    }

    fn fault(&mut self, fault: &Fault) -> Decision {
        match fault.tier {
            Tier::Fast => Decision::Keep,
            Tier::Slow => Decision::Promote,
        }
    }
}
