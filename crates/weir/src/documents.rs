//! Documents that the command prints besides those of experiments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::access::Op;
use weir_model::capability::Capability;
use weir_model::machine::Identity;
use weir_model::platform::ParameterRow;
use weir_model::topology::{TierName, Topology};
use weir_model::workload::{Application, Workload};

use crate::store::{RunId, RunLine};

/// Declares documents: their kind, and what they have besides their kind and version.
macro_rules! documents {
    ($($(#[$meta:meta])* $name:ident is $schema:literal { $($fields:tt)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            /// `weir/KIND/VERSION`.
            pub schema: String,
            /// The version of Weir that wrote this.
            pub weir: String,
            $($fields)*
        }

        impl $name {
            /// The value of `schema` in documents that this version writes.
            pub const SCHEMA: &'static str = $schema;
        }
    )*};
}

documents! {
    /// A `topo` document: `weir/topo/1`.
    TopoDocument is "weir/topo/1" {
        /// Which machine.
        pub machine: Identity,
        /// What it is made of.
        pub topology: Topology,
        /// Its memory nodes as the kernel describes them; empty for a model.
        #[serde(default)]
        pub nodes: Vec<NodeLine>,
        /// What it offers and lacks.
        pub capabilities: Vec<Capability>,
        /// What makes results on it less than trustworthy.
        #[serde(default)]
        pub warnings: Vec<String>,
    }

    /// A `place` document: `weir/place/1`.
    PlaceDocument is "weir/place/1" {
        /// Which machine.
        pub machine: Identity,
        /// `bind`, `preferred`, `interleave` or `weighted-interleave`.
        pub policy: String,
        /// Bytes that were placed.
        pub bytes: u64,
        /// Bytes in a page.
        pub page_bytes: u64,
        /// What was done, and where the pages were after it.
        pub steps: Vec<PlaceStep>,
    }

    /// A `platforms list` document: `weir/platforms/1`.
    PlatformsDocument is "weir/platforms/1" {
        /// What is known, hosts first.
        pub platforms: Vec<PlatformLine>,
    }

    /// A `runs list` document: `weir/runs/1`.
    RunsDocument is "weir/runs/1" {
        /// Every run in the store, newest first.
        pub runs: Vec<RunLine>,
    }

    /// A `runs compare` document: `weir/compare/1`.
    CompareDocument is "weir/compare/1" {
        /// The first run with each of the others.
        pub comparisons: Vec<ComparedRuns>,
    }

    /// A `runs merge` document: `weir/merge/1`.
    MergeDocument is "weir/merge/1" {
        /// Each store that was merged.
        pub stores: Vec<MergedStore>,
    }

    /// What a microarchitecture counts: `weir/counters-list/1`.
    CountersListDocument is "weir/counters-list/1" {
        /// The table's name: `sapphire-rapids`.
        pub cpu: String,
        /// For people.
        pub title: String,
        /// Where the encodings come from.
        pub source: String,
        /// Every counter that was asked for.
        pub counters: Vec<CounterLine>,
        /// Shell commands that count them with `perf` alone.
        pub commands: Vec<String>,
    }

    /// The workloads that come with Weir: `weir/workloads/1`.
    WorkloadsDocument is "weir/workloads/1" {
        /// By name.
        pub workloads: Vec<WorkloadLine>,
    }

    /// A workload: `weir/workload/1`.
    WorkloadDocument is "weir/workload/1" {
        /// What it does.
        pub workload: Workload,
    }

    /// Files that were checked: `weir/check/1`.
    CheckDocument is "weir/check/1" {
        /// In the order in which they were named.
        pub files: Vec<CheckedFile>,
    }

    /// A `steer restore` document: `weir/steer-restore/1`.
    RestoreDocument is "weir/steer-restore/1" {
        /// Files, registers and folders that were changed, and are restored.
        pub put_back: Vec<String>,
        /// What could not be restored, and why.
        pub not_put_back: Vec<String>,
        /// Other facts.
        pub notes: Vec<String>,
    }

    /// A trace of VMs that was written: `weir/plan-trace/1`.
    TraceDocument is "weir/plan-trace/1" {
        /// The file.
        pub file: String,
        /// The VMs in it.
        pub vms: u64,
        /// Days until the last of them arrives.
        pub days: f64,
        /// What is missing from it.
        pub left_out: Vec<String>,
    }
}

/// A memory node of a real machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeLine {
    /// Linux's number.
    pub node: u32,
    /// The tier that it is; absent if this program may not use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierName>,
    /// The kernel's distance to it from the nearest node with processors, by the firmware's table (SLIT): 10 is local.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<u32>,
    /// CXL memory devices behind it, in the order of their interleaving.
    pub memdevs: Vec<String>,
    /// The CXL region that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Bytes of the region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region_bytes: Option<u64>,
    /// Bytes that one device serves before the next one's turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interleave_bytes: Option<u64>,
    /// CXL switches on the way to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<usize>,
    /// What the kernel says of accesses to it, from the firmware's table (HMAT) and, for CXL, the
    /// device's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmat: Option<AccessLine>,
    /// What each device says of its own memory (CDAT), without the way to it.
    pub cdat: Vec<AccessLine>,
    /// The kernel's memory tier: the lower, the faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_tier: Option<u32>,
    /// The nodes that its cold pages go down to first, where demotion is on.
    pub demotes_to: Vec<u32>,
    /// Whether the kernel keeps its own structures off it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub movable: Option<bool>,
    /// What could not be found out, and why.
    pub missing: Vec<String>,
}

/// Latency and bandwidth of a node or a device, as a table describes them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccessLine {
    /// The device, where it is one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memdev: Option<String>,
    /// Read latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ns: Option<f64>,
    /// Write latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_ns: Option<f64>,
    /// Read bandwidth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_gbps: Option<f64>,
    /// Write bandwidth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_gbps: Option<f64>,
}

/// Where pages were after something was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceStep {
    /// `placed`, `moved to cxl0`, `at the end`.
    pub what: String,
    /// Every node that pages should be on, or are on.
    pub nodes: Vec<NodePages>,
    /// Pages that are not where they should be.
    pub misplaced: u64,
    /// What the kernel says of pages that it gives no node for.
    pub refused: Vec<String>,
}

/// The pages of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodePages {
    /// Linux's number.
    pub node: u32,
    /// The tier that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierName>,
    /// Pages that should be there.
    pub asked: u64,
    /// Pages that are there, by the kernel's word.
    pub found: u64,
}

/// What became of a store's runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergedStore {
    /// The store.
    pub file: String,
    /// Runs that were not here.
    pub added: u64,
    /// Runs that were here with fewer figures.
    pub continued: u64,
    /// Runs that were here as they are there.
    pub known: u64,
    /// Figures of the added runs that a run here has as well.
    pub shared: u64,
    /// Of those, figures that differ.
    pub differ: u64,
}

/// A server or a device that has a platform file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlatformLine {
    /// The name in expressions.
    pub name: String,
    /// `host` or `cxl`.
    pub kind: String,
    /// What it is, in a line.
    pub summary: String,
}

/// A `platforms show` document: `weir/platform/1`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlatformDocument {
    /// `weir/platform/1`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// The platform expression, or the name of a device.
    pub name: String,
    /// Every number, and where it comes from.
    pub parameters: Vec<ParameterRow>,
}

impl PlatformDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/platform/1";
}

/// A `runs export --raw` document: `weir/record/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordDocument {
    /// `weir/record/1`.
    pub schema: String,
    /// The run's line in the list.
    pub run: RunLine,
    /// The arguments as they were typed.
    pub arguments: Vec<String>,
    /// The computer that ran it, whichever machine was measured.
    pub host: serde_json::Value,
    /// The document that the run printed.
    pub document: serde_json::Value,
    /// Raw samples and counters, one for each figure.
    pub records: Vec<serde_json::Value>,
}

impl RecordDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/record/1";
}

/// Two runs, figure by figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRuns {
    /// The first run.
    pub a: RunLine,
    /// The other.
    pub b: RunLine,
    /// Figures in both, the largest effect first.
    pub figures: Vec<ComparedFigure>,
    /// Numbers in both, where the rows of the runs are not points; the largest effect first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<ComparedRow>,
    /// Figures that only the first has.
    pub only_a: usize,
    /// Figures that only the other has.
    pub only_b: usize,
}

/// One figure in both runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    /// The first run.
    pub run_a: RunId,
    /// The other.
    pub run_b: RunId,
    /// The experiment.
    pub experiment: String,
    /// The tier.
    pub tier: TierName,
    /// The instruction.
    pub op: Op,
    /// The order of lines.
    pub pattern: String,
    /// Threads.
    pub threads: u32,
    /// What else the point is, in words.
    pub what: String,
    /// The unit of both figures: `GB/s` or `ns`.
    pub unit: String,
    /// The figure of the first run.
    pub a: f64,
    /// The figure of the other.
    pub b: f64,
    /// The other's as a multiple of the first's.
    pub ratio: f64,
    /// Whether the difference exceeds both 95 % intervals together; absent where a figure has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_chance: Option<bool>,
}

/// A counter of a microarchitecture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterLine {
    /// The portable name.
    pub counter: String,
    /// The events that it is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
    /// How sure it is that they are what the name says: `high`, `medium`, `low`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<String>,
    /// What is not as the name says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why it cannot be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// A workload in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadLine {
    /// Its name.
    pub name: String,
    /// Bytes of all its regions.
    pub bytes: u64,
    /// How many phases it has; none where only a host runs it.
    pub phases: usize,
    /// The program that a host runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Application>,
    /// What it does.
    pub summary: String,
}

/// A number of a row that two runs have, where their rows are not points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRow {
    /// The words of the row.
    pub row: String,
    /// The field of the document.
    pub field: String,
    /// The unit of both figures.
    pub unit: String,
    /// The figure of the first run.
    pub a: f64,
    /// The figure of the other.
    pub b: f64,
    /// Whether the difference exceeds both 95 % intervals together; absent where a figure has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_chance: Option<bool>,
}

/// A file of a platform or a workload that was checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedFile {
    /// As it was named.
    pub file: String,
    /// What it describes; absent if it has mistakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Every mistake, with line and column; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mistakes: Option<String>,
}
