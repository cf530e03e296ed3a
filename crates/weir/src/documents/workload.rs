//! Documents of `weir workload`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::{PhaseRun, WorkloadRun};
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::Identity;
use weir_model::tenant::Placement;
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};
use weir_model::workload::Workload;

/// The workloads that come with Weir: `weir/workloads/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadsDocument {
    /// `weir/workloads/1`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// By name.
    pub workloads: Vec<WorkloadLine>,
}

impl WorkloadsDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/workloads/1";
}

/// A workload in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadLine {
    /// Its name.
    pub name: String,
    /// Bytes of all its regions.
    pub bytes: u64,
    /// How many phases it has.
    pub phases: usize,
    /// What it does.
    pub summary: String,
}

/// A workload: `weir/workload/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadDocument {
    /// `weir/workload/1`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// What it does.
    pub workload: Workload,
}

impl WorkloadDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/workload/1";
}

/// What a workload cost: `weir/workload-run/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadRunDocument {
    /// `weir/workload-run/1`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// Which machine.
    pub machine: Identity,
    /// The workload's name.
    pub workload: String,
    /// Where its pages were.
    pub placement: Placement,
    /// Whether the hardware prefetchers ran.
    pub prefetch: bool,
    /// Threads.
    pub threads: u32,
    /// All phases together.
    pub whole: PhaseLine,
    /// Each of them.
    pub phases: Vec<PhaseLine>,
    /// What was counted in all phases: the cores of this workload, and the uncore.
    pub counters: CounterSet,
}

impl WorkloadRunDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/workload-run/1";

    /// The phases, and all of them together if there are several.
    pub fn lines(&self) -> impl Iterator<Item = &PhaseLine> {
        let whole = (self.phases.len() != 1).then_some(&self.whole);
        self.phases.iter().chain(whole)
    }
}

/// What a phase cost. Shares are of all cycles.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseLine {
    /// Its name.
    pub phase: String,
    /// Instructions of all threads.
    pub instructions: u64,
    /// How long it takes.
    pub time_ns: Nanos,
    /// Core cycles of an instruction.
    pub cpi: f64,
    /// Share in which nothing was executed because the store buffer was full.
    pub stores: f64,
    /// Share in which nothing was executed while loads were under way that all hit L1, ...
    pub l1: f64,
    /// ... of which one had missed L1, ...
    pub l2: f64,
    /// ... L2, ...
    pub l3: f64,
    /// ... and the last-level cache.
    pub dram: f64,
    /// Lines that crossed the memory interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps: Option<f64>,
    /// Mean latency of demand reads beyond L2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
}

impl PhaseLine {
    /// Of one phase, that so many threads run.
    pub fn of_phase(run: &PhaseRun, threads: u32) -> Self {
        let (time, counters) = (run.time, &run.counters);
        Self::of(&run.phase, (run.instructions, threads), time, counters)
    }

    /// Of all of them.
    pub fn of_run(run: &WorkloadRun, threads: u32) -> Self {
        Self::of("all", (run.instructions, threads), run.time, &run.counters)
    }

    fn of(
        phase: &str,
        (instructions, threads): (u64, u32),
        time: Nanos,
        counters: &CounterSet,
    ) -> Self {
        let count = |counter| counters.get(counter).map_or(0.0, |n| n as f64);
        let cycles = count(Counter::Cycles).max(1.0);
        let share = |of: f64, without: f64| ((of - without) / cycles).max(0.0);
        let [any, l1, l2, l3] = [
            Counter::StallsMemAny,
            Counter::StallsL1dMiss,
            Counter::StallsL2Miss,
            Counter::StallsL3Miss,
        ]
        .map(count);
        let lines = counters.get(Counter::TorInsertsIaMiss).ok();
        let bytes = lines.map(|lines| Bytes(lines * LINE_BYTES));
        let outstanding = counters.ratio(
            Counter::OffcoreOutstandingDemandDataRd,
            Counter::OffcoreDemandDataRd,
        );
        let cycle = time.get() * f64::from(threads) / cycles;
        Self {
            phase: phase.to_owned(),
            instructions,
            time_ns: time,
            cpi: cycles / (instructions.max(1) as f64),
            stores: share(count(Counter::BoundOnStores), 0.0),
            l1: share(any, l1),
            l2: share(l1, l2),
            l3: share(l2, l3),
            dram: share(l3, 0.0),
            gbps: bytes.map(|bytes| GbPerSec::from_bytes_in(bytes, time).get()),
            latency_ns: outstanding.ok().map(|cycles| cycles * cycle),
        }
    }
}
