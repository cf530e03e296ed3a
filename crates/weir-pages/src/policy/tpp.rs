//! TPP: Transparent Page Placement (Maruf et al., ASPLOS 2023), each mechanism switchable alone.

use super::{Decision, Fault, Marks, Placing, Policy, Scan};
use crate::tier::{DEMOTE_SCALE, Tier, Watermarks};
use crate::workload::PageKind;

/// TPP with all its mechanisms, or without some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tpp {
    /// Reclaim keeps the demotion watermark free, and allocation needs only the high watermark. Without it reclaim
    /// begins at low and allocation waits until high.
    pub decoupled: bool,
    /// A page must be on the active list to be promoted (§5.3). A fault on an inactive page activates it at once, as
    /// the paper has it; the kernel patches mark it referenced first.
    pub active_filter: bool,
    /// Only pages of the slow node are sampled.
    pub slow_only: bool,
    /// File pages are allocated on the slow node (§5.4).
    pub cache_to_slow: bool,
    /// `demote_scale_factor`: ten-thousandths of the fast node that are kept free.
    pub demote_scale_factor: u64,
}

impl Default for Tpp {
    fn default() -> Self {
        Self {
            decoupled: true,
            active_filter: true,
            slow_only: true,
            cache_to_slow: false,
            demote_scale_factor: DEMOTE_SCALE,
        }
    }
}

impl Policy for Tpp {
    fn place(&mut self, page: &Placing) -> Tier {
        match self.cache_to_slow && page.kind == PageKind::File {
            true => Tier::Slow,
            false => Tier::Fast,
        }
    }

    fn scan(&self) -> Option<Scan> {
        Some(Scan {
            toptier: !self.slow_only,
            ..Scan::LINUX
        })
    }

    fn marks(&self, marks: &Watermarks) -> Marks {
        // Promotion ignores the allocation watermark (§5.3).
        let promote = marks.min;
        match self.decoupled {
            true => Marks {
                allocate: marks.high,
                wake: Some(marks.demote(self.demote_scale_factor)),
                stop: marks.demote(self.demote_scale_factor),
                promote,
                wake_when_full: true,
                coupled: false,
            },
            false => Marks {
                allocate: marks.low,
                wake: Some(marks.low),
                stop: marks.high,
                promote,
                wake_when_full: true,
                coupled: true,
            },
        }
    }

    fn demotes(&self) -> bool {
        true
    }

    fn samples_demoted(&self) -> bool {
        true
    }

    fn fault(&mut self, fault: &Fault) -> Decision {
        match fault.tier {
            Tier::Fast => Decision::Keep,
            Tier::Slow if fault.active || !self.active_filter => Decision::Promote,
            Tier::Slow => Decision::Activate,
        }
    }
}
