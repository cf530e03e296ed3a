//! The kernel's own tiering of pages: its settings, and what it counts.

pub mod promotion;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, GbPerSec};

crate::named! {
    /// What NUMA balancing does (`kernel.numa_balancing`).
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Balancing {
        /// Nothing: 0.
        Off = "off",
        /// It moves pages to the node whose processors use them: 1.
        Nodes = "nodes",
        /// It promotes hot pages of slow nodes: 2, since Linux 5.18.
        Tiering = "tiering",
        /// Both: 3.
        Both = "both",
    }
}

impl Balancing {
    /// The kernel's number.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The mode of a number.
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.number() == number)
    }
}

/// Settings of the kernel's tiering. A setting that is `None` is not to be changed, or the kernel lacks it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelTiering {
    /// Whether reclaim demotes pages to slower nodes, in place of writing them to swap; since Linux 5.15.
    pub demotion: Option<bool>,
    /// What NUMA balancing does.
    pub balancing: Option<Balancing>,
    /// Most that is promoted to a node, in whole MiB a second; since Linux 6.1.
    pub promote_limit: Option<GbPerSec>,
}

/// Counts of the whole machine since it was booted, in pages or events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TieringCounts {
    /// Pages that were promoted (`pgpromote_success`; Linux 5.18).
    pub promoted: Option<u64>,
    /// Pages that were to be promoted (`pgpromote_candidate`; Linux 6.1).
    pub candidates: Option<u64>,
    /// Pages that were demoted by any reclaim (`pgdemote_*`; Linux 5.15).
    pub demoted: Option<u64>,
    /// Accesses that met a page which NUMA balancing had unmapped (`numa_hint_faults`).
    pub hint_faults: Option<u64>,
    /// Pages that NUMA balancing unmapped to find what uses them (`numa_pte_updates`).
    pub unmapped: Option<u64>,
    /// Pages that migrated, whatever wanted it (`pgmigrate_success`).
    pub migrated: Option<u64>,
    /// Pages whose migration failed, whatever wanted it (`pgmigrate_fail`).
    pub failed: Option<u64>,
    /// Pages that were written to swap (`pswpout`).
    pub swapped: Option<u64>,
}

crate::named! {
    /// Which pages a scheme of DAMON takes.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Heat {
        /// Those that are touched often.
        Hot = "hot",
        /// Those that were not touched for a time.
        Cold = "cold",
    }
}

/// What a scheme of DAMON did (kernel documentation, mm/damon/design.rst, statistics).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchemeCounts {
    /// Regions that it tried (`nr_tried`).
    pub tried_regions: u64,
    /// Bytes of these (`sz_tried`).
    pub tried: u64,
    /// Regions of which something migrated (`nr_applied`).
    pub applied_regions: u64,
    /// Bytes that migrated (`sz_applied`).
    pub applied: u64,
    /// How often its quota was used up (`qt_exceeds`).
    pub quota_exceeded: u64,
}

impl SchemeCounts {
    /// What was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            tried_regions: self.tried_regions.saturating_sub(before.tried_regions),
            tried: self.tried.saturating_sub(before.tried),
            applied_regions: self.applied_regions.saturating_sub(before.applied_regions),
            applied: self.applied.saturating_sub(before.applied),
            quota_exceeded: self.quota_exceeded.saturating_sub(before.quota_exceeded),
        }
    }
}

/// Pages that were to move to a node, each counted as what became of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MovedPages {
    /// They moved.
    pub moved: u64,
    /// They were on the node already.
    pub there: u64,
    /// They do not exist: never touched, swapped out, or gone by now.
    pub absent: u64,
    /// The kernel or a device uses them (`EBUSY`), as a page that is pinned.
    pub busy: u64,
    /// The node has no room (`ENOMEM`).
    pub full: u64,
    /// Other processes map them, too (`EACCES`).
    pub shared: u64,
    /// The kernel refused for another reason.
    pub refused: u64,
}

impl MovedPages {
    /// All pages that were looked at.
    pub fn pages(&self) -> u64 {
        self.moved + self.there + self.absent + self.not_moved()
    }

    /// Pages that stayed where they were.
    pub fn not_moved(&self) -> u64 {
        self.busy + self.full + self.shared + self.refused
    }
}

impl std::ops::AddAssign for MovedPages {
    fn add_assign(&mut self, other: Self) {
        self.moved += other.moved;
        self.there += other.there;
        self.absent += other.absent;
        self.busy += other.busy;
        self.full += other.full;
        self.shared += other.shared;
        self.refused += other.refused;
    }
}

/// What the kernel's tiering did since the record before, under settings that a daemon keeps in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TieringRecord {
    /// Its length, in seconds.
    pub lasted_s: f64,
    /// What the kernel counted in it.
    pub counts: TieringCounts,
    /// What was promoted in a second, if the kernel counts it.
    pub promoted_gbps: Option<GbPerSec>,
    /// What the kernel was asked to demote, in bytes.
    pub asked: Bytes,
    /// The part of the configured limit that promotion gets from now on, in percent.
    pub part_pct: f64,
    /// Why it is that part.
    pub why: String,
    /// Cycles with a demand read outstanding, for each demand read, if Alto counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amortised_cycles: Option<f64>,
    /// The settings that are requested from now on.
    pub requested: KernelTiering,
    /// The settings in force, as read back.
    pub in_force: KernelTiering,
}

impl TieringCounts {
    /// Both counts together. A count that is missing on one side is that of the other.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            promoted: sum(self.promoted, other.promoted),
            candidates: sum(self.candidates, other.candidates),
            demoted: sum(self.demoted, other.demoted),
            hint_faults: sum(self.hint_faults, other.hint_faults),
            unmapped: sum(self.unmapped, other.unmapped),
            migrated: sum(self.migrated, other.migrated),
            failed: sum(self.failed, other.failed),
            swapped: sum(self.swapped, other.swapped),
        }
    }

    /// What was counted since `before`. A count that went back, or is missing on one side, is missing.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        Self {
            promoted: less(self.promoted, before.promoted),
            candidates: less(self.candidates, before.candidates),
            demoted: less(self.demoted, before.demoted),
            hint_faults: less(self.hint_faults, before.hint_faults),
            unmapped: less(self.unmapped, before.unmapped),
            migrated: less(self.migrated, before.migrated),
            failed: less(self.failed, before.failed),
            swapped: less(self.swapped, before.swapped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_what_was_counted_since() {
        let of = |promoted, demoted| TieringCounts {
            promoted,
            demoted,
            ..TieringCounts::default()
        };
        let (before, more) = (of(Some(5), Some(7)), of(Some(2), None));
        let now = before.and(&more);
        assert_eq!(now, of(Some(7), Some(7)));
        assert_eq!(now.since(&before), of(Some(2), Some(0)));
        // A count that went back began again, and one that is missing on either side is not known.
        assert_eq!(before.since(&now), of(None, Some(0)));
        assert_eq!(now.since(&more), of(Some(5), None));
        assert_eq!(more.since(&now), of(None, None));
    }

    #[test]
    fn each_page_is_counted_as_one_thing() {
        let mut all = MovedPages {
            moved: 1,
            there: 2,
            absent: 4,
            busy: 8,
            full: 16,
            shared: 32,
            refused: 64,
        };
        all += all;
        assert_eq!((all.pages(), all.not_moved()), (2 * 127, 2 * 120));
    }
}
