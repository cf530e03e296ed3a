//! Policies: where a page is allocated, which pages are sampled, which are promoted, when a node is reclaimed.

use weir_model::units::{GbPerSec, Nanos};

use crate::tier::{Tier, Watermarks};
use crate::workload::PageKind;

mod auto_tiering;
mod first_touch;
mod interleave;
mod numa_balancing;
mod registry;
mod tiering;
mod tpp;

pub use auto_tiering::AutoTiering;
pub use first_touch::FirstTouch;
pub use interleave::Interleave;
pub use numa_balancing::NumaBalancing;
pub use registry::{NAMES, by_name};
pub use tiering::Tiering;
pub use tpp::Tpp;

/// Sampling by hint faults: pages are taken out of the page table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scan {
    /// Pages of the fast tier as well.
    pub toptier: bool,
    /// How much of the address space is passed in a second. Linux: 256 MiB (`numa_balancing_scan_size_mb`) in a period
    /// between 1 s and 60 s.
    pub bytes_per_s: f64,
}

impl Scan {
    /// Linux' window of 256 MiB, each second.
    pub const LINUX: Self = Self {
        toptier: true,
        bytes_per_s: (256u64 << 20) as f64,
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

/// A hint fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// Where the page is.
    pub tier: Tier,
    /// What it holds.
    pub kind: PageKind,
    /// Its size in base pages.
    pub base_pages: u64,
    /// Whether it is on the active list.
    pub active: bool,
    /// Whether it was found touched once before.
    pub referenced: bool,
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
}

/// An interval as a policy sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Its length in seconds.
    pub interval_s: f64,
    /// Latency by tier.
    pub latency: [Nanos; 2],
    /// Traffic by tier.
    pub gbps: [GbPerSec; 2],
    /// Share of accesses by tier.
    pub shares: [f64; 2],
    /// Accesses that a thread has outstanding.
    pub mlp: f64,
    /// Free base pages of the fast node.
    pub free_fast: u64,
    /// Pages that were demoted in it.
    pub demoted: u64,
    /// Candidates in it.
    pub candidates: u64,
}

/// A policy of page placement.
pub trait Policy: Send {
    /// The node on which the n-th page is to be allocated.
    fn place(&self, _kind: PageKind, _nth: u64) -> Tier {
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

    /// What a hint fault leads to.
    fn fault(&mut self, _fault: &Fault) -> Decision {
        Decision::Keep
    }

    /// The interval that has ended.
    fn observe(&mut self, _seen: &Seen) {}
}
