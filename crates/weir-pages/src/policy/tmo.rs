//! TMO (Weiner et al., ASPLOS 2022): memory is reclaimed ahead of need while the program hardly waits for it.

use super::{Decision, Fault, HotCounters, Marks, Move, Placing, Policy, Scan, Seen};
use crate::tier::{Tier, Watermarks};

/// Any policy, with Senpai added: every six seconds a share of the memory is reclaimed, the smaller the closer pressure
/// is to a threshold. With demotion, pages go to the slow tier; otherwise they are swapped out.
pub struct Tmo {
    inner: Box<dyn Policy>,
    since_s: f64,
    pressure: f64,
    used: u64,
    wanted: u64,
}

/// How often (TMO section 3.3), ...
const EVERY_S: f64 = 6.0;
/// ... which share of the memory, ...
const SHARE: f64 = 0.0005;
/// ... and the pressure at which nothing is reclaimed: 0.1 % of the time.
const THRESHOLD: f64 = 0.001;

impl Tmo {
    /// With a policy.
    pub fn beside(inner: Box<dyn Policy>) -> Self {
        Self {
            inner,
            since_s: 0.0,
            pressure: 0.0,
            used: 0,
            wanted: 0,
        }
    }
}

impl Policy for Tmo {
    left_to_inner!();

    fn counters(&self) -> Option<HotCounters> {
        self.inner.counters()
    }

    fn fault(&mut self, fault: &Fault) -> Decision {
        self.inner.fault(fault)
    }

    fn observe(&mut self, seen: &Seen<'_>) {
        self.inner.observe(seen);
        self.since_s += seen.interval_s;
        self.pressure += seen.pressure * seen.interval_s;
        self.used = seen.regions.iter().map(|r| r.pages[0]).sum();
        if self.since_s < EVERY_S {
            return;
        }
        let pressure = self.pressure / self.since_s;
        let share = SHARE * (1.0 - pressure / THRESHOLD).max(0.0);
        self.wanted = (self.used as f64 * share) as u64;
        (self.since_s, self.pressure) = (0.0, 0.0);
    }

    fn moves(&mut self) -> Vec<Move> {
        self.inner.moves()
    }

    fn reclaims(&mut self) -> u64 {
        self.inner.reclaims() + std::mem::take(&mut self.wanted)
    }
}
