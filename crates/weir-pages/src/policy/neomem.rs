//! NeoMem (Zhou et al., MICRO 2024): the device of the slow tier counts accesses and reports hot pages.

use super::{HotCounters, Marks, Policy, Seen, Tpp};
use crate::tier::{BASE, Watermarks};

/// Pages that the device reports are promoted by a thread of the kernel, without hint faults; TPP's demotion makes room.
/// The threshold is doubled while more pages are reported than may move, and halved while few are.
#[derive(Debug, Clone, Copy)]
pub struct NeoMem {
    tpp: Tpp,
    counters: HotCounters,
    last_free: u64,
    /// Pages in the slow tier, in the interval before.
    slow: u64,
    since_s: f64,
    promoted: f64,
}

/// Accesses of a page in a second from which it is hot, at first. Assumed, 16 to 1024.
const PER_S: f64 = 64.0;
/// Promotion at most. Assumed, 64 to 1024 MiB a second.
const BYTES_PER_S: f64 = 256.0 * 1048576.0;
/// How often the threshold is set. Assumed, 1 to 10 s.
const EVERY_S: f64 = 5.0;
/// The threshold stays within these.
const RANGE: [f64; 2] = [8.0, 65536.0];

impl Default for NeoMem {
    fn default() -> Self {
        Self {
            tpp: Tpp::default(),
            counters: HotCounters {
                per_s: PER_S,
                reports_per_s: BYTES_PER_S / BASE as f64,
            },
            last_free: 0,
            slow: 0,
            since_s: 0.0,
            promoted: 0.0,
        }
    }
}

impl Policy for NeoMem {
    fn marks(&self, watermarks: &Watermarks) -> Marks {
        self.tpp.marks(watermarks)
    }

    fn demotes(&self) -> bool {
        true
    }

    fn transactional(&self) -> bool {
        true
    }

    fn counters(&self) -> Option<HotCounters> {
        Some(self.counters)
    }

    fn observe(&mut self, seen: &Seen<'_>) {
        // Room that promotion used: the fast tier's free memory fell, or pages left the slow tier.
        let slow: u64 = seen.regions.iter().map(|r| r.pages[1]).sum();
        self.promoted += self.slow.saturating_sub(slow) as f64;
        self.promoted += self.last_free.saturating_sub(seen.free_fast) as f64;
        (self.slow, self.last_free) = (slow, seen.free_fast);
        self.since_s += seen.interval_s;
        if self.since_s < EVERY_S {
            return;
        }
        let most = self.counters.reports_per_s * self.since_s;
        let [low, high] = RANGE;
        if self.promoted > 0.5 * most {
            self.counters.per_s = (self.counters.per_s * 2.0).min(high);
        } else if self.promoted < 0.05 * most {
            self.counters.per_s = (self.counters.per_s / 2.0).max(low);
        }
        (self.since_s, self.promoted) = (0.0, 0.0);
    }
}
