//! What was found of a machine.

use serde::Serialize;
use weir_model::capability::Unavailable;
use weir_model::topology::CacheLevel;
use weir_model::units::Bytes;

use super::cxl::Cxl;
use super::node::Node;
use super::processor::{Cpu, Processor};
use crate::dsa::WorkQueue;
use crate::root::Reading;

/// Everything that was found, with a reason for everything that was not found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostView {
    /// Whether this is the machine on which the program runs, and not a recorded one.
    pub live: bool,
    /// The kernel's release.
    pub kernel: Reading<String>,
    /// Model, flags, clock.
    pub processor: Processor,
    /// Hardware threads that are online.
    pub cpus: Reading<Vec<Cpu>>,
    /// Data caches of one core of the first socket, nearest first.
    pub caches: Reading<Vec<CacheLevel>>,
    /// Memory nodes.
    pub nodes: Reading<Vec<Node>>,
    /// Total and available memory of the machine, for all nodes together.
    pub memory: (Reading<Bytes>, Reading<Bytes>),
    /// The nodes on which this program may allocate.
    pub allowed_nodes: Reading<Vec<u32>>,
    /// The nodes whose memory the kernel may use for itself; memory of other nodes is movable.
    pub unmovable_nodes: Reading<Vec<u32>>,
    /// The CXL bus.
    pub cxl: Reading<Cxl>,
    /// The kernel's memory tiers, fastest first.
    pub memory_tiers: Reading<Vec<MemoryTier>>,
    /// Weight of each node in the kernel's weighted interleave.
    pub interleave_weights: Reading<Vec<(u32, u32)>>,
    /// Whether the kernel demotes cold pages to slower tiers.
    pub demotion: Reading<bool>,
    /// `always`, `madvise` or `never`.
    pub transparent_huge_pages: Reading<String>,
    /// Event sources of the kernel.
    pub event_sources: Reading<Vec<String>>,
    /// The clock source of the kernel.
    pub clock_source: Reading<String>,
    /// Whether the file system for cache and bandwidth allocation is mounted.
    pub resctrl: Reading<bool>,
    /// A work queue of the Data Streaming Accelerator that is enabled for users.
    pub dsa: Reading<WorkQueue>,
    /// The resources that it can allocate: `L3`, `MB`, `SMBA` (slow memory, that is CXL).
    pub allocations: Vec<String>,
    /// The vendor of the machine, as its firmware states it: `QEMU` for an emulated one.
    pub maker: Reading<String>,
    /// Bytes in an ordinary page.
    pub page: Bytes,
    /// Answers of the kernel that are not in a file.
    pub probes: Probes,
}

/// Results of system calls; `None` if a recording does not have them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probes {
    /// Whether a cycle counter opens.
    pub core_pmu: Option<Result<String, Unavailable>>,
    /// Whether pages can be placed and located.
    pub placement: Option<Result<String, Unavailable>>,
    /// The processors to which a thread may be pinned.
    pub pinning: Option<Result<String, Unavailable>>,
    /// Which prefetchers can be switched.
    pub prefetch: Option<Result<String, Unavailable>>,
}

/// One of the kernel's memory tiers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryTier {
    /// The kernel's number: a lower number is faster.
    pub id: u32,
    /// Its nodes.
    pub nodes: Vec<u32>,
}
