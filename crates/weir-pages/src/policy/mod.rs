//! Policies: where a page is allocated, which pages are sampled, which are promoted, when a node is reclaimed.

use weir_model::units::{GbPerSec, Nanos};

use crate::Costs;
use crate::tier::{Tier, TierCurve, Watermarks};
use crate::workload::PageKind;

/// Calls that a policy with an inner one passes on.
macro_rules! left_to_inner {
    () => {
        fn place(&mut self, page: &Placing) -> Tier {
            self.inner.place(page)
        }

        fn scan(&self) -> Option<Scan> {
            self.inner.scan()
        }

        fn marks(&self, watermarks: &Watermarks) -> Marks {
            self.inner.marks(watermarks)
        }

        fn demotes(&self) -> bool {
            self.inner.demotes()
        }

        fn samples_demoted(&self) -> bool {
            self.inner.samples_demoted()
        }

        fn transactional(&self) -> bool {
            self.inner.transactional()
        }
    };
}

mod alto;
mod auto_tiering;
mod best_shot;
mod caption;
mod colloid;
mod first_touch;
mod interleave;
mod neomem;
mod nomad;
mod numa_balancing;
mod payback;
mod registry;
mod tiering;
mod tmo;
mod tpp;

pub use alto::{Alto, Thresholds};
pub use auto_tiering::AutoTiering;
pub use best_shot::BestShot;
pub use caption::Caption;
pub use colloid::Colloid;
pub use first_touch::FirstTouch;
pub use interleave::Interleave;
pub use neomem::NeoMem;
pub use nomad::Nomad;
pub use numa_balancing::NumaBalancing;
pub use payback::Payback;
pub use registry::{NAMES, by_name};
pub use tiering::Tiering;
pub use tmo::Tmo;
pub use tpp::Tpp;

/// Sampling by hint faults: pages are taken out of the page table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scan {
    /// Pages of the fast tier as well.
    pub toptier: bool,
    /// How much of the address space is passed in a second. Linux: 256 MiB (`numa_balancing_scan_size_mb`) in a period
    /// between 1 s and 60 s.
    pub bytes_per_s: f64,
    /// How often this much is passed at most, since a stretch without a page to take out does not count.
    pub passes: f64,
}

impl Scan {
    /// Linux' window of 256 MiB, each second, and eight times as much that does not count (`virtpages` in
    /// `kernel/sched/fair.c`).
    pub const LINUX: Self = Self {
        toptier: true,
        bytes_per_s: (256u64 << 20) as f64,
        passes: 8.0,
    };
}

/// Levels of free memory of the fast node at which the kernel acts, in base pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// Threads allocate here while as much stays free.
    pub allocate: u64,
    /// Background reclaim begins below it; none where only a full machine wakes it.
    pub wake: Option<u64>,
    /// Background reclaim ends at it.
    pub stop: u64,
    /// Nothing is allocated here until background reclaim has ended.
    pub coupled: bool,
    /// A promotion must leave as much free.
    pub promote: u64,
    /// A promotion that finds no room wakes background reclaim.
    pub wake_when_full: bool,
}

impl Marks {
    /// Plain Linux: another node is preferred to reclaim.
    pub fn linux(marks: &Watermarks) -> Self {
        Self {
            allocate: marks.low,
            wake: None,
            stop: marks.high,
            coupled: false,
            promote: marks.high,
            wake_when_full: false,
        }
    }
}

/// A page that is to be allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placing {
    /// Its region, by number: the mapping in which the fault happens.
    pub region: usize,
    /// What it is to hold.
    pub kind: PageKind,
    /// Its size in base pages.
    pub base_pages: u64,
    /// How many pages were allocated before it.
    pub nth: u64,
    /// Free base pages of the fast node.
    pub free_fast: u64,
    /// Whether the fast node has room for it above the mark for allocation.
    pub fits: bool,
}

/// A hint fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// Its region, by number.
    pub region: usize,
    /// Where the page is.
    pub tier: Tier,
    /// What it holds.
    pub kind: PageKind,
    /// Its size in base pages.
    pub base_pages: u64,
    /// Whether it is on the active list.
    pub active: bool,
    /// Whether it was demoted.
    pub demoted: bool,
    /// Seconds from the time when it was taken out of the page table.
    pub latency_s: f64,
}

/// What a hint fault leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The page is mapped again.
    Keep,
    /// It goes to the active list.
    Activate,
    /// It is a candidate, and beyond a rate limit.
    Limited,
    /// It is a candidate, and moves if there is room.
    Promote,
    /// It moves to the slow node, however hot it is.
    Demote,
}

/// Counters of accesses in the device of the slow tier (CXL 3.1's hotness monitoring unit; NeoMem, MICRO 2024), which
/// report pages that are accessed often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HotCounters {
    /// Accesses of a page in a second from which it is reported.
    pub per_s: f64,
    /// Pages that are reported in a second at most.
    pub reports_per_s: f64,
}

/// Pages of a region that user space asks the kernel to move (`move_pages`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The region, by number.
    pub region: usize,
    /// Where they are to go.
    pub to: Tier,
    /// How many base pages, in the next interval.
    pub base_pages: u64,
}

/// A region in an interval: what event samples of loads (PEBS, IBS) say by address.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RegionSeen {
    /// Accesses in a second by tier.
    pub per_s: [f64; 2],
    /// Base pages by tier.
    pub pages: [u64; 2],
    /// The share of accesses that write.
    pub writes: f64,
    /// Accesses that a thread has outstanding at once: occupancy of the super queue by demand reads over the cycles in
    /// which there are some.
    pub mlp: f64,
    /// Accesses in a visit of a page ([`crate::Region::burst`]).
    pub burst: f64,
}

/// An interval as a policy sees it: counters of the processor and of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Its length in seconds.
    pub interval_s: f64,
    /// Latency by tier.
    pub latency: [Nanos; 2],
    /// Traffic by tier.
    pub gbps: [GbPerSec; 2],
    /// Latency of each tier under load, as it was measured beforehand.
    pub curves: [&'a TierCurve; 2],
    /// The mean wait for an access, latency over accesses outstanding: amortised off-core latency.
    pub wait: Nanos,
    /// The share of thread time in which a thread waited for a page that had left memory (PSI).
    pub pressure: f64,
    /// Threads of the workload.
    pub threads: u32,
    /// Free base pages of the fast node.
    pub free_fast: u64,
    /// Base pages whose promotion failed because the fast node was full (`pgmigrate_fail_dst_node_full`).
    pub failed_full: u64,
    /// Base pages that background reclaim demoted (`pgdemote_kswapd`).
    pub reclaimed: u64,
    /// What the kernel's work on pages costs.
    pub costs: &'a Costs,
    /// Between which amortised latencies promotion is rationed, as it was calibrated for the machine.
    pub thresholds: Thresholds,
    /// Each region.
    pub regions: &'a [RegionSeen],
}

/// A policy of page placement.
pub trait Policy: Send {
    /// The node on which a page is to be allocated.
    fn place(&mut self, _page: &Placing) -> Tier {
        Tier::Fast
    }

    /// Which pages are sampled; none by default.
    fn scan(&self) -> Option<Scan> {
        None
    }

    /// When the fast node is reclaimed.
    fn marks(&self, watermarks: &Watermarks) -> Marks {
        Marks::linux(watermarks)
    }

    /// Whether reclaim of the fast node moves pages to the slow one, in place of swap.
    fn demotes(&self) -> bool {
        false
    }

    /// Whether a demoted page faults at its next touch.
    fn samples_demoted(&self) -> bool {
        false
    }

    /// Whether a page stays mapped while a thread of the kernel copies it, so that no thread of the program waits.
    fn transactional(&self) -> bool {
        false
    }

    /// Counters in the device which report hot pages; all that are reported are promoted.
    fn counters(&self) -> Option<HotCounters> {
        None
    }

    /// Accesses for each event sample that the policy reads of the processor (PEBS, IBS). With it, [`RegionSeen::per_s`]
    /// has the noise of this many samples, and each sample takes time of a thread; without it, counts are exact.
    fn event_period(&self) -> Option<f64> {
        None
    }

    /// Sampling came to a page of a region on a tier. It is out of the page table now, or has been since it was sampled
    /// before, because it was not accessed.
    fn sampled(&mut self, _region: usize, _tier: Tier) {}

    /// What a hint fault leads to.
    fn fault(&mut self, _fault: &Fault) -> Decision {
        Decision::Keep
    }

    /// The interval that has ended.
    fn observe(&mut self, _seen: &Seen<'_>) {}

    /// Pages that are to be moved in the next interval.
    fn moves(&mut self) -> Vec<Move> {
        Vec::new()
    }

    /// Base pages that are to be reclaimed ahead of need in the next interval (`memory.reclaim`).
    fn reclaims(&mut self) -> u64 {
        0
    }
}
