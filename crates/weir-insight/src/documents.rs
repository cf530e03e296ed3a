//! What is found by `weir explain`, `predict`, `calibrate` and `tune`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use weir_model::counters::Counter;
use weir_model::insight::{Bound, Components, Rejected, SlowdownModel};
use weir_model::interplay::Reason;
use weir_model::metric::OwnMetric;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Cycles, GbPerSec, Nanos};
use weir_model::workload::Population;

/// Where runs lose their cycles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// Each run by itself, the one on local memory first.
    pub runs: Vec<ExplainedRun>,
    /// Where the second run loses more than the first; absent of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<ExplainedDifference>,
}

/// Where one run loses its cycles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedRun {
    /// The workload, or the file of its counters.
    pub workload: String,
    /// The tier that its pages lay on, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierName>,
    /// What ran with it; absent where it was alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// What it got done, in its own metric; absent where that is not known, as of a command, whose metric is its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<OwnMetric>,
    /// How long it took, or of an application of this host how long it was observed; absent where only counters are known, and of
    /// a program of a model that answers requests without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<Nanos>,
    /// Its memory, of all its processes together, each page that several have in equal parts (`Pss` of proc(5)); absent where
    /// that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// How the command ended that was counted; absent where none was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// What the kernel counted; without the processor's counters, all that is known besides the time.
    #[serde(default, skip_serializing_if = "KernelCounts::is_empty")]
    pub kernel: KernelCounts,
    /// Bandwidth that it drew from memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps: Option<GbPerSec>,
    /// Instructions in a cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipc: Option<f64>,
    /// Lost cycles, in percent of its own.
    pub lost: Components,
    /// Mean latency of reads that left the core, in cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offcore_latency: Option<Cycles>,
    /// Cycles with a demand read under way, for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aol: Option<Cycles>,
    /// Demand reads under way at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mlp: Option<f64>,
    /// What holds it back; absent where it cannot be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// What speaks for that, or what is missing.
    pub evidence: String,
    /// Whether the prefetchers come in time.
    pub prefetch: PrefetchHealth,
    /// Its phases in order; empty where it has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<ExplainedPhase>,
    /// Counters that are missing, and what is unknown without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<UntoldCounter>,
}

impl ExplainedRun {
    /// Whether cycles were counted, so that more is known than time.
    pub fn counts_cycles(&self) -> bool {
        let cycles = Counter::Cycles.name();
        self.untold.iter().all(|untold| untold.counter != cycles)
    }
}

/// A stretch of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedPhase {
    /// Its name.
    pub phase: String,
    /// Its share of the run's cycles, in percent; of its processor time where cycles are not known.
    pub share_pct: f64,
    /// Lost cycles, in percent of its own.
    pub lost: Components,
    /// What the kernel counted.
    #[serde(default, skip_serializing_if = "KernelCounts::is_empty")]
    pub kernel: KernelCounts,
}

/// What the kernel counts of a program on any machine. A field is absent where it did not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelCounts {
    /// Time on processors, of all threads together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<Nanos>,
    /// Pages that were touched and had no memory yet, or had to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_faults: Option<u64>,
    /// Times that a thread left its processor to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_switches: Option<u64>,
    /// Times that a thread went on on another processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_migrations: Option<u64>,
}

impl KernelCounts {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What the prefetchers did. A field is absent where its counters are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PrefetchHealth {
    /// Lines that the L1 prefetchers brought from beyond the last-level cache, for 1000 instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l1_misses_pki: Option<f64>,
    /// Those of the L2 prefetchers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_misses_pki: Option<f64>,
    /// Loads that found their line in flight, in percent of those that did not hit L1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_buffer_hits_pct: Option<f64>,
}

/// A counter that is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UntoldCounter {
    /// Its portable name.
    pub counter: String,
    /// Why it is missing.
    pub why: String,
    /// What it would have shown.
    pub cost: String,
}

/// Slowdown by cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedDifference {
    /// How much longer the same work takes, in percent.
    pub slowdown_pct: f64,
    /// What that was measured by.
    #[serde(default)]
    pub by: Yardstick,
    /// What each cause adds, in percent of the cycles on local memory.
    pub components: Components,
    /// Instructions of the second run for each of the first; absent where they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<f64>,
    /// What the uncore's counters say of the cause, where the second run has another tenant with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Reason>,
    /// The same for each phase; empty where the workload has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseDifference>,
}

/// What two runs are compared by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Yardstick {
    /// Cycles of one instruction.
    #[default]
    Cycles,
    /// Time from start to end, where cycles were not counted: the same work is taken for granted, and
    /// causes are unknown.
    Time,
    /// What it got done in a second, in its own metric, where cycles were not counted; causes are unknown.
    Rate,
}

/// Slowdown of a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseDifference {
    /// Its name.
    pub phase: String,
    /// How much longer it takes, in percent.
    pub slowdown_pct: f64,
    /// What each cause adds, in percent of its cycles on local memory.
    pub components: Components,
}

/// How slow workloads would be on another memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predictions {
    /// The memory that was counted on.
    pub from: TierName,
    /// The memory that is predicted.
    pub to: TierName,
    /// One for each workload.
    pub predictions: Vec<Predicted>,
    /// How good they are; absent where nothing was measured with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
}

/// A prediction for one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// The workload, or the file of its counters.
    pub workload: String,
    /// The population that it was drawn from; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<Population>,
    /// Slowdown by cause, in percent of the cycles on local memory.
    pub components: Components,
    /// The whole, in percent.
    pub slowdown_pct: f64,
    /// Its interval; absent where the model has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_pct: Option<[f64; 2]>,
    /// What holds it back on local memory. The model is one of latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// What speaks for that.
    pub evidence: String,
    /// What the published model says; absent where that is the prediction itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedPrediction>,
    /// What the rejected predictors say.
    pub rejected: Vec<RejectedPrediction>,
    /// What was measured; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredSlowdown>,
    /// What makes this prediction less than trustworthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What the model says with its DRAM and cache components as published.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedPrediction {
    /// By DRAM, in percent of the cycles on local memory.
    pub dram_pct: f64,
    /// By the caches, in percent of them.
    pub cache_pct: f64,
    /// The whole, in percent.
    pub slowdown_pct: f64,
}

/// What a rejected predictor says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RejectedPrediction {
    /// Which.
    pub of: Rejected,
    /// Slowdown in percent; absent where its counters are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown_pct: Option<f64>,
}

/// A slowdown that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredSlowdown {
    /// The whole, in percent.
    pub slowdown_pct: f64,
    /// By cause; empty where only the time is known.
    pub components: Components,
}

/// How good predictions are, over the workloads that wait for latency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accuracy {
    /// Workloads with a prediction and a measurement; of two populations those of the whole space, as below.
    pub workloads: usize,
    /// Of those, the ones that wait for latency, which the lines below are of.
    pub latency_bound: usize,
    /// Measured slowdowns that lie in their interval, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered_pct: Option<f64>,
    /// Measured breakdowns whose causes account for the slowdown within 5 points, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained_pct: Option<f64>,
    /// A line for each component, the whole, and each rejected predictor.
    pub lines: Vec<AccuracyLine>,
    /// The whole again by population, of all workloads and of those that are slowed.
    #[serde(default)]
    pub populations: Vec<PopulationAccuracy>,
    /// The workloads that are furthest off, the worst first.
    pub worst: Vec<String>,
}

/// How good predictions of the whole slowdown are, for some of the workloads. Many workloads of a wide population are
/// hardly slowed, and are predicted well for that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PopulationAccuracy {
    /// What the workloads were drawn from; absent where they were not drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<Population>,
    /// Only those that are slowed by more than this many percent; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowed_by_pct: Option<f64>,
    /// How many of them wait for latency. The figures are of these.
    pub workloads: usize,
    /// Median error in points.
    #[schemars(extend("x-unit" = "points"))]
    pub median_error_pct: f64,
    /// Mean error in points.
    #[schemars(extend("x-unit" = "points"))]
    pub mean_error_pct: f64,
    /// Workloads within 10 points, in percent.
    pub within_10_pct: f64,
    /// Measured slowdowns that lie in their interval, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered_pct: Option<f64>,
    /// Median half-width of the intervals, in points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "points"))]
    pub half_width_pct: Option<f64>,
}

/// How good one predictor is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccuracyLine {
    /// `DRAM`, `cache`, `store`, `total`, `published DRAM`, `published cache`, `published total`, or the name
    /// of a rejected predictor of the total.
    pub what: String,
    /// Workloads within 2 points, in percent.
    pub within_2_pct: f64,
    /// Within 5 points.
    pub within_5_pct: f64,
    /// Within 10 points.
    pub within_10_pct: f64,
    /// Pearson's correlation; absent where one side does not vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pearson: Option<f64>,
    /// Mean error in points.
    #[schemars(extend("x-unit" = "points"))]
    pub mean_error_pct: f64,
}

/// The model of slowdown of a pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibrated {
    /// The file that the model was written to.
    pub file: String,
    /// The model.
    pub model: SlowdownModel,
}

/// Advice on interleaving a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tuned {
    /// The workload.
    pub workload: String,
    /// The tier of the pages that stay.
    pub from: TierName,
    /// The tier of the others.
    pub to: TierName,
    /// What holds the workload back with every page on `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// What speaks for that.
    pub evidence: String,
    /// What each method says.
    pub advice: Vec<Advice>,
    /// Shares that were tried; empty unless asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<Tried>,
}

/// What a method of interleaving says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// `best-shot`, `closed form`, `caption`, `bandwidth-proportional`, `linear law`.
    pub method: String,
    /// Runs that it needs before it can say.
    pub runs: u32,
    /// Share of pages on `to`, in percent; 0 is not to interleave.
    pub share_pct: f64,
    /// Weights of pages, `from` and `to`.
    pub weights: [u32; 2],
    /// The change of run time that it expects, in percent: below zero is faster. Absent where the
    /// method says nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_pct: Option<f64>,
    /// The change that was measured at these weights; absent unless it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_pct: Option<f64>,
    /// Why, or why not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A share that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// Share of pages on the slower tier, in percent.
    pub share_pct: f64,
    /// The change of run time against none, in percent, as measured.
    pub change_pct: f64,
    /// What the closed form says; absent where it has nothing to go by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_pct: Option<f64>,
}
