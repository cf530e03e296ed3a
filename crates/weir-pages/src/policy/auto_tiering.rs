//! AutoTiering (Kim et al., ATC 2021): promotion at a hint fault into a reserve of fixed size.

use super::{Decision, Fault, Marks, Policy, Scan};
use crate::tier::{Tier, Watermarks};

/// Pages of both nodes are sampled. A page of the slow node that faults moves into free pages that only promotion may
/// use; in the background the coldest pages are demoted until the reserve is whole. Allocation does not wait for it and
/// goes to the slow node.
#[derive(Debug, Clone, Copy)]
pub struct AutoTiering {
    /// The reserve, in ten-thousandths of the node. Assumed, 50 to 400: the papers do not say it.
    pub reserve: u64,
}

impl Default for AutoTiering {
    fn default() -> Self {
        Self { reserve: 200 }
    }
}

impl Policy for AutoTiering {
    fn scan(&self) -> Option<Scan> {
        Some(Scan::LINUX)
    }

    fn marks(&self, marks: &Watermarks) -> Marks {
        let reserve = marks.managed * self.reserve / 10_000;
        Marks {
            allocate: marks.high + reserve,
            // Only promotion uses the reserve, and only promotion has it filled again.
            wake: Some(marks.high + reserve / 2),
            stop: marks.high + reserve,
            promote: marks.high,
            ..Marks::linux(marks)
        }
    }

    fn demotes(&self) -> bool {
        true
    }

    fn fault(&mut self, fault: &Fault) -> Decision {
        match fault.tier {
            Tier::Fast => Decision::Keep,
            Tier::Slow => Decision::Promote,
        }
    }
}
