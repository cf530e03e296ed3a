//! What a machine can do, and what it lacks: absence is a value with a name, never a zero.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something a machine may or may not offer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// 512-bit vector loads and stores.
    Avx512,
    /// 256-bit vector loads and stores.
    Avx2,
    /// 64-byte direct stores.
    Movdir64b,
    /// Cache-line write-back without eviction.
    Clwb,
    /// A work queue of the Data Streaming Accelerator that this user may submit to.
    Dsa,
    /// A storage device that requests may be put to.
    Storage,
    /// A time-stamp counter that ticks at one rate whatever the core does.
    InvariantTsc,
    /// Core performance counters.
    CorePmu,
    /// Performance counters of the uncore (CHA, memory controllers, CXL ports).
    UncorePmu,
    /// Performance counters of a CXL device itself.
    CxlPmu,
    /// Bytes to and from memory counted for each group of threads (MBM).
    BandwidthMonitoring,
    /// Weights by which pages are interleaved over nodes.
    InterleaveWeights,
    /// Control of the hardware prefetchers.
    PrefetchControl,
    /// Control groups (version 2), by which processes are observed and limited.
    ControlGroups,
    /// Bounds of the clock of processors (cpufreq).
    ClockControl,
    /// Cache and bandwidth allocation through resctrl.
    Resctrl,
    /// More than one memory node.
    MultipleNodes,
    /// A CXL memory device.
    CxlMemory,
    /// Latency and bandwidth attributes from the firmware.
    Hmat,
    /// Kernel memory tiers.
    MemoryTiers,
    /// Huge pages on demand (transparent).
    TransparentHugePages,
    /// Reserved huge pages.
    ReservedHugePages,
    /// Placement of pages by node, and asking where they are.
    NumaPolicy,
    /// Pinning a thread to a core.
    Pinning,
    /// A machine that is not virtual, so that its counters and clocks are its own.
    BareMetal,
}

impl Feature {
    /// A short name for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Feature::Avx512 => "avx512",
            Feature::Avx2 => "avx2",
            Feature::Movdir64b => "movdir64b",
            Feature::Clwb => "clwb",
            Feature::Dsa => "dsa",
            Feature::Storage => "storage",
            Feature::InvariantTsc => "invariant_tsc",
            Feature::CorePmu => "core_pmu",
            Feature::UncorePmu => "uncore_pmu",
            Feature::CxlPmu => "cxl_pmu",
            Feature::BandwidthMonitoring => "bandwidth_monitoring",
            Feature::InterleaveWeights => "interleave_weights",
            Feature::PrefetchControl => "prefetch_control",
            Feature::ControlGroups => "control_groups",
            Feature::ClockControl => "clock_control",
            Feature::Resctrl => "resctrl",
            Feature::MultipleNodes => "multiple_nodes",
            Feature::CxlMemory => "cxl_memory",
            Feature::Hmat => "hmat",
            Feature::MemoryTiers => "memory_tiers",
            Feature::TransparentHugePages => "transparent_huge_pages",
            Feature::ReservedHugePages => "reserved_huge_pages",
            Feature::NumaPolicy => "numa_policy",
            Feature::Pinning => "pinning",
            Feature::BareMetal => "bare_metal",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
