//! NUMA-balancing tiering as in mainline Linux since 6.1 (`kernel/sched/fair.c`, `should_numa_migrate_memory`).

use super::{Decision, Fault, Marks, Policy, Scan, Seen};
use crate::tier::{BASE, Tier, Watermarks};

/// A slow page is hot if its hint fault comes soon after it was unmapped; the threshold is tuned so that candidates
/// stay within the rate limit. A promotion that would take
/// the node below high wakes demotion instead, which makes room up to a mark above high (`WMARK_PROMO`).
#[derive(Debug, Clone, Copy)]
pub struct Tiering {
    /// `numa_balancing_promote_rate_limit_MBps`: base pages in a second.
    limit: f64,
    /// The latest hint fault that is hot, in seconds.
    threshold_s: f64,
    /// Base pages that may yet be promoted in this second.
    left: f64,
    /// Since the threshold was last tuned.
    since_s: f64,
    candidates: u64,
}

/// `MSEC_PER_SEC`, the default of `numa_balancing_hot_threshold_ms`.
const THRESHOLD_S: f64 = 1.0;
/// The threshold is tuned in steps of a sixteenth, up to twice its default (`NUMA_MIGRATION_ADJUST_STEPS`).
const STEPS: f64 = 16.0;
/// How often: the largest scan period, 60 s.
const TUNED_EVERY_S: f64 = 60.0;

impl Tiering {
    /// With a rate limit in MB/s, 65536 by default in Linux.
    pub fn new(limit_mbps: f64) -> Self {
        let limit = limit_mbps * (1u64 << 20) as f64 / BASE as f64;
        Self {
            limit,
            threshold_s: THRESHOLD_S,
            left: limit,
            since_s: 0.0,
            candidates: 0,
        }
    }
}

impl Default for Tiering {
    fn default() -> Self {
        Self::new(65_536.0)
    }
}

impl Policy for Tiering {
    fn scan(&self) -> Option<Scan> {
        // Pages of the fast node are left mapped.
        Some(Scan {
            toptier: false,
            ..Scan::LINUX
        })
    }

    fn marks(&self, marks: &Watermarks) -> Marks {
        let promo = marks.high + (marks.high - marks.low);
        Marks {
            stop: promo,
            wake_when_full: true,
            ..Marks::linux(marks)
        }
    }

    fn demotes(&self) -> bool {
        true
    }

    fn fault(&mut self, fault: &Fault) -> Decision {
        if fault.tier == Tier::Fast || fault.latency_s >= self.threshold_s {
            return Decision::Keep;
        }
        self.candidates += fault.base_pages;
        if self.left < fault.base_pages as f64 {
            return Decision::Limited;
        }
        self.left -= fault.base_pages as f64;
        Decision::Promote
    }

    fn observe(&mut self, seen: &Seen<'_>) {
        self.left = (self.left + self.limit * seen.interval_s).min(self.limit);
        self.since_s += seen.interval_s;
        if self.since_s < TUNED_EVERY_S {
            return;
        }
        let wanted = self.limit * self.since_s;
        let step = THRESHOLD_S * 2.0 / STEPS;
        let candidates = self.candidates as f64;
        if candidates > wanted * 1.1 {
            self.threshold_s = (self.threshold_s - step).max(step);
        } else if candidates < wanted * 0.9 {
            self.threshold_s = (self.threshold_s + step).min(THRESHOLD_S * 2.0);
        }
        (self.since_s, self.candidates) = (0.0, 0);
    }
}
