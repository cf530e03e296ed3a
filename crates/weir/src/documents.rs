//! Documents that the command prints beside those of experiments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::capability::Capability;
use weir_model::machine::Identity;
use weir_model::platform::ParameterRow;
use weir_model::topology::Topology;

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
    pub id: i64,
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
