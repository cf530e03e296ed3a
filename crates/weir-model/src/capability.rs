//! What a machine can do, and what it lacks: absence is a value with a name, never a zero.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

crate::named! {
    /// Something a machine may or may not offer.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Feature {
        /// 512-bit vector loads and stores.
        Avx512 = "avx512",
        /// 256-bit vector loads and stores.
        Avx2 = "avx2",
        /// 64-byte direct stores.
        Movdir64b = "movdir64b",
        /// Cache-line write-back without eviction.
        Clwb = "clwb",
        /// A work queue of the Data Streaming Accelerator that this user may submit to.
        Dsa = "dsa",
        /// A storage device that requests may be put to.
        Storage = "storage",
        /// A time-stamp counter that ticks at one rate whatever the core does.
        InvariantTsc = "invariant_tsc",
        /// Core performance counters.
        CorePmu = "core_pmu",
        /// Performance counters of the uncore (CHA, memory controllers, CXL ports).
        UncorePmu = "uncore_pmu",
        /// Performance counters of a CXL device itself.
        CxlPmu = "cxl_pmu",
        /// Bytes to and from memory counted for each group of threads (MBM).
        BandwidthMonitoring = "bandwidth_monitoring",
        /// Weights by which pages are interleaved over nodes.
        InterleaveWeights = "interleave_weights",
        /// Control of the hardware prefetchers.
        PrefetchControl = "prefetch_control",
        /// Control groups (version 2), by which processes are observed and limited.
        ControlGroups = "control_groups",
        /// Bounds of the clock of processors (cpufreq).
        ClockControl = "clock_control",
        /// Cache and bandwidth allocation through resctrl.
        Resctrl = "resctrl",
        /// More than one memory node.
        MultipleNodes = "multiple_nodes",
        /// A CXL memory device.
        CxlMemory = "cxl_memory",
        /// Latency and bandwidth attributes from the firmware.
        Hmat = "hmat",
        /// Kernel memory tiers.
        MemoryTiers = "memory_tiers",
        /// Huge pages on demand (transparent).
        TransparentHugePages = "transparent_huge_pages",
        /// Reserved huge pages.
        ReservedHugePages = "reserved_huge_pages",
        /// Placement of pages by node, and asking where they are.
        NumaPolicy = "numa_policy",
        /// Pinning a thread to a core.
        Pinning = "pinning",
        /// A machine that is not virtual, so that its counters and clocks are its own.
        BareMetal = "bare_metal",
    }
}

/// Why a value cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{reason}")]
pub struct Unavailable {
    /// What was found, in words: the file, the flag, the error.
    pub reason: String,
}

impl Unavailable {
    /// A value that is missing for this reason.
    pub fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

/// One feature of a machine and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capability {
    /// Which.
    pub feature: Feature,
    /// Whether it is there.
    pub present: bool,
    /// What was found: the evidence if present, the reason if missing.
    pub detail: String,
    /// What its absence costs the user; empty if present.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cost: String,
    /// How to get it; empty if present or if there is no way.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Capability {
    /// A feature that is there.
    pub fn present(feature: Feature, detail: impl Into<String>) -> Self {
        Self {
            feature,
            present: true,
            detail: detail.into(),
            cost: String::new(),
            remedy: String::new(),
        }
    }

    /// A feature that is missing: why, what that costs, and how to get it.
    pub fn missing(
        feature: Feature,
        reason: impl Into<String>,
        cost: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            feature,
            present: false,
            detail: reason.into(),
            cost: cost.into(),
            remedy: remedy.into(),
        }
    }
}
