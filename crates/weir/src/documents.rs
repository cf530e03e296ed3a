//! Documents that the command prints beside those of experiments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::access::Op;
use weir_model::capability::Capability;
use weir_model::document::Experiment;
use weir_model::machine::Identity;
use weir_model::platform::ParameterRow;
use weir_model::topology::{TierName, Topology};

use crate::store::RunId;

/// A `topo` document: `weir/topo/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TopoDocument {
    /// `weir/topo/1`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// Which machine.
    pub machine: Identity,
    /// What it is made of.
    pub topology: Topology,
    /// What it offers and lacks.
    pub capabilities: Vec<Capability>,
}

impl TopoDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/topo/1";
}

/// A `platforms list` document: `weir/platforms/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlatformsDocument {
    /// `weir/platforms/1`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// What is known, hosts first.
    pub platforms: Vec<PlatformLine>,
}

impl PlatformsDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/platforms/1";
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

/// A `runs list` document: `weir/runs/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunsDocument {
    /// `weir/runs/1`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// Every run in the store, newest first.
    pub runs: Vec<RunLine>,
}

impl RunsDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/runs/1";
}

/// One run in the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLine {
    /// Its number.
    pub id: RunId,
    /// When it began, in UTC: `2026-03-01 14:05:09`.
    pub started: String,
    /// `bench bandwidth`, `tour`, `reproduce`.
    pub verb: String,
    /// The machine's name.
    pub machine: String,
    /// `host`, `sim`.
    pub machine_kind: String,
    /// The machine's digest; empty where there are several machines.
    pub digest: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// The version of Weir that ran it.
    pub weir: String,
    /// Figures kept.
    pub kept: usize,
    /// Figures planned.
    pub planned: usize,
    /// Whether it ended before it had all its figures, or is still under way.
    pub partial: bool,
    /// Seconds until it ended, or until its last figure.
    pub elapsed_s: f64,
    /// The largest bandwidth among the figures that were asked for, in GB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_gbps: Option<f64>,
    /// The least mean latency among the figures that were asked for, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_ns: Option<f64>,
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

/// A `runs compare` document: `weir/compare/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareDocument {
    /// `weir/compare/1`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// The first run with each of the others.
    pub comparisons: Vec<ComparedRuns>,
}

impl CompareDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/compare/1";
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
    pub experiment: Experiment,
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
