//! The JSON that Weir prints and keeps: stable, versioned, generated from these types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Op;
use crate::capability::Capability;
use crate::counters::{Counter, CounterSet};
use crate::latency::LatencySummary;
use crate::machine::Identity;
use crate::tenant::Arrivals;
use crate::topology::{Affinity, TierName, Topology};
use crate::units::{Bytes, GbPerSec, Nanos};

/// What every document starts with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// `weir/KIND/VERSION`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// What was measured; absent where counters come from files.
    #[serde(default, skip_serializing_if = "Identity::is_unknown")]
    pub machine: Identity,
    /// The processor, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub processor: String,
    /// The machine's topology, so that a report needs nothing else; absent where counters come from files.
    #[serde(default, skip_serializing_if = "Topology::is_unknown")]
    pub topology: Topology,
    /// Seed of every random choice.
    pub seed: u64,
    /// Wall time of the whole command, in seconds.
    pub elapsed_s: f64,
    /// What the machine offers and lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Capability>,
    /// What makes the figures less than trustworthy.
    pub warnings: Vec<String>,
    /// Whether the command was stopped before it had all its points.
    pub partial: bool,
}

impl Header {
    /// The machine's name; the processor's where only its counters are known.
    pub fn name(&self) -> &str {
        match self.machine.is_unknown() {
            true => &self.processor,
            false => &self.machine.name,
        }
    }
}

/// A study's document: the common part, then what the study found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document<O> {
    /// The common part.
    #[serde(flatten)]
    pub header: Header,
    /// The study's own part.
    #[serde(flatten)]
    pub output: O,
}

/// A `bench` document: `weir/bench/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchDocument {
    /// The common part.
    #[serde(flatten)]
    pub header: Header,
    /// The figures.
    pub points: Vec<Point>,
    /// How bad the tail of each tier is, where it was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailScore>,
}

/// How bad the tail of a tier is. A gap is how far the 99.9th percentile of single requests lies above
/// their median.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailScore {
    /// The tier.
    pub tier: TierName,
    /// The median of a request that is alone.
    pub p50_ns: Nanos,
    /// The gap of requests that are alone.
    pub alone_ns: Nanos,
    /// The widest gap with others that do the same; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chasers_ns: Option<Nanos>,
    /// The widest with readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readers_ns: Option<Nanos>,
    /// The widest with writers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writers_ns: Option<Nanos>,
    /// The widest gap of all over that alone; absent where there is none alone, or no company.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<f64>,
    /// The widest gap of all over the median alone: how many usual requests long the slow one in a
    /// thousand is late.
    pub score: f64,
}

impl BenchDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/bench/1";
}

/// One figure of a study, with everything that names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-intervals" = {"gbps": "ci95", "mean_ns": "ci95"}))]
pub struct Point {
    /// The study: `latency`, `bandwidth`, `interplay`.
    pub experiment: String,
    /// The tier.
    pub tier: TierName,
    /// The instruction.
    pub op: Op,
    /// The order of lines: `sequential`, `chase_random`, `flushed_line` ….
    pub pattern: String,
    /// Threads.
    pub threads: u32,
    /// The cores they ran on, where the figure is about which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u32>,
    /// The socket they are of: 0 for the one whose DRAM is tier `dram`, and absent then.
    #[serde(default, skip_serializing_if = "crate::topology::is_first")]
    pub socket: u32,
    /// The host they are of, on a model of several: 0 for the first, and absent then.
    #[serde(default, skip_serializing_if = "crate::topology::is_first")]
    pub host: u32,
    /// In which order they took the cores of both sockets; absent where one socket has all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Bytes in a block, for random blocks, or of a descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<Bytes>,
    /// Bytes that one thread touches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wss_bytes: Option<Bytes>,
    /// Share of the lines crossing the memory interface that are read, for mixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_share: Option<f64>,
    /// Where copied lines come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<TierName>,
    /// The kernel or method: `copy` … `triad` of STREAM; `memcpy`, `nt_copy`, `movdir64b`,
    /// `dsa_sync`, `dsa_async` of movement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// What the study calls it among others of one table: `3:1`, `4 readers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Descriptors submitted together, for accelerators; accesses of a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// What ran with the tenant that the figure is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// Ways of the last-level cache that its lines could fill, a bit each; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_ways: Option<u32>,
    /// Whether the hardware prefetchers ran.
    pub prefetch: bool,
    /// Bandwidth of the program, all threads together, in GB/s: bytes that its instructions touch,
    /// loaded and written ones alike; for movement the bytes that are moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps: Option<GbPerSec>,
    /// Latency of single accesses, in ns; of a burst, its time over its accesses; of a storage device,
    /// what a request takes from submission to completion, with all that are under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-names" = "after"))]
    pub ns: Option<LatencySummary>,
    /// Half-width of the 95 % confidence interval of the main figure, in its unit; absent where
    /// fewer than two samples were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<f64>,
    /// How many samples the interval is made from: windows, or repetitions where the point was
    /// measured several times.
    pub samples: u32,
    /// How often the point was measured from start to stop, other points in between.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub repetitions: u32,
    /// How its repetitions agree; absent where there are too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steadiness: Option<Steadiness>,
    /// The known limit of the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theory: Option<Theory>,
    /// What CXL devices did whose DRAM is a cache of a slower medium, where there are such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<MediumUse>,
    /// How it was measured: page size, instruction set, verified placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// Why there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

fn once() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_once(repetitions: &u32) -> bool {
    *repetitions == 1
}

/// What CXL devices did whose DRAM is a cache of a slower medium, while a figure was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MediumUse {
    /// Share of the lines that came to such a device whose page was in its DRAM.
    pub hit_share: f64,
    /// Pages that it read from its medium, for tenants and for garbage collection.
    pub reads: u64,
    /// Pages that it programmed, for both.
    pub programs: u64,
    /// The same in a second.
    #[serde(default)]
    pub programs_per_s: f64,
    /// Blocks that it erased.
    pub erases: u64,
    /// Pages programmed for each that tenants wrote, which garbage collection makes more than one; absent if they wrote
    /// none back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_amplification: Option<f64>,
    /// Lines that came with poison, since the medium could not read their page.
    #[serde(default, skip_serializing_if = "is_none_of")]
    pub poisoned: u64,
    /// Pages whose newest lines are lost, since the medium is worn out and could not program them.
    #[serde(default, skip_serializing_if = "is_none_of")]
    pub lost: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_none_of(count: &u64) -> bool {
    *count == 0
}

impl MediumUse {
    /// What counters of this long say of it; `None` where there is no such device, or no line came to it.
    pub fn of(counters: &CounterSet, window: Nanos) -> Option<Self> {
        let get = |counter| counters.get(counter).ok();
        let (hits, misses) = (get(Counter::MediumHits)?, get(Counter::MediumMisses)?);
        let (programs, copies) = (get(Counter::MediumPrograms)?, get(Counter::MediumCopies)?);
        let written = programs.saturating_sub(copies);
        (hits + misses > 0).then(|| Self {
            hit_share: hits as f64 / (hits + misses) as f64,
            reads: get(Counter::MediumReads).unwrap_or(0),
            programs,
            programs_per_s: match window.get() > 0.0 {
                true => programs as f64 / window.get() * 1e9,
                false => 0.0,
            },
            lost: get(Counter::MediumLost).unwrap_or(0),
            erases: get(Counter::MediumErases).unwrap_or(0),
            poisoned: get(Counter::MediumPoison).unwrap_or(0),
            write_amplification: (written > 0).then(|| programs as f64 / written as f64),
        })
    }
}

/// The load that ran with the tenant that a figure is about, and what it drew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    /// Its tier.
    pub tier: TierName,
    /// Its instruction.
    pub op: Op,
    /// Its order of lines.
    pub pattern: String,
    /// Its threads.
    pub threads: u32,
    /// The socket they are on; absent for the first.
    #[serde(default, skip_serializing_if = "crate::topology::is_first")]
    pub socket: u32,
    /// The host they are on; absent for the first.
    #[serde(default, skip_serializing_if = "crate::topology::is_first")]
    pub host: u32,
    /// Where copied lines come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<TierName>,
    /// Ways of the last-level cache that its lines could fill, a bit each; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_ways: Option<u32>,
    /// Share of the lines crossing the memory interface that are read.
    pub read_share: f64,
    /// How long each of its threads pauses between two lines, in ns.
    pub pause_ns: Nanos,
    /// What the pause is counted from; absent for the line before.
    #[serde(default, skip_serializing_if = "Arrivals::is_closed")]
    pub arrivals: Arrivals,
    /// Bandwidth of its program, all threads together, in GB/s; absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps: Option<GbPerSec>,
    /// What crossed the memory interface for it, in GB/s: a temporal store counts twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_gbps: Option<GbPerSec>,
}

/// How the repetitions of a figure agree with each other.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Steadiness {
    /// They do.
    Steady,
    /// They scatter widely around one value.
    Noisy,
    /// They gather around two values; the mean of all is neither.
    Bimodal,
    /// Later ones lie beyond the scatter of earlier ones: a real machine changed meanwhile; on a model it is chance.
    Drifting,
}

/// A limit from physics next to a measured figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Theory {
    /// The limit, in the unit of the figure (GB/s or ns).
    pub limit: f64,
    /// The figure as a share of a bandwidth limit, or the limit as a share of a latency, in percent.
    pub share_pct: f64,
    /// How the limit was got.
    pub basis: String,
    /// Whether the figure beats the limit, and so cannot be right.
    pub beaten: bool,
}

/// The raw side of a point: what was seen, before any statistics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Each window's length and figure (GB/s, or mean ns).
    pub samples: Vec<(Nanos, f64)>,
    /// How many of the samples each repetition gave, in order; empty for a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repetitions: Vec<u32>,
    /// Bandwidth of what ran with it, in GB/s, window by window; empty where nothing did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<f64>,
    /// Every latency of timed accesses or of requests to storage with its count, shortest first; empty
    /// where none is timed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<(Nanos, u64)>,
    /// Counters over all windows.
    pub counters: CounterSet,
    /// What the cores of each tenant counted over all windows, the one that the point is about first;
    /// empty sets where a machine does not tell tenants apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<CounterSet>,
}

crate::named! {
    /// How our figure for a published row came about.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum RowKind {
        /// A parameter of the platform was set from this row: agreement shows that the model reproduces
        /// what it was given.
        Calibrated = "calibrated",
        /// The row follows by arithmetic from rows or parameters that were set.
        Identity = "identity",
        /// Nothing was set from this row.
        Predicted = "predicted",
        /// The steps that were published are repeated: agreement shows that they are the same.
        Replayed = "replayed",
        /// Not answered yet; the note says why.
        NotModelled = "not modelled",
    }
}

/// One published figure and ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReproduceRow {
    /// The row's id in `published/`.
    pub id: String,
    /// The paper.
    pub paper: String,
    /// What was measured.
    pub what: String,
    /// On which platform and under which condition.
    pub condition: String,
    /// The paper's figure.
    pub published: f64,
    /// Ours; where the row judges a published model, the figure of that model as published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<f64>,
    /// The figure of Weir's own form of the model, where `ours` is that of the published form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_form: Option<f64>,
    /// The unit of all three.
    pub unit: String,
    /// (ours - published) / published, in percent; 0 if ours keeps what was published as a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_pct: Option<f64>,
    /// Whether what was published is only a bound, and ours keeps it; absent where not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_bound: bool,
    /// How ours came about.
    pub kind: RowKind,
    /// The reason for a miss, where it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What one assumed parameter does to the answers when it lies elsewhere in its range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterEffect {
    /// The dotted key, as in platform files.
    pub key: String,
    /// What the key means.
    pub meaning: String,
    /// Where it is assumed, and within which range.
    pub ranges: Vec<AssumedRange>,
    /// The largest change of any row between the two ends, in percent of our usual figure.
    pub largest_pct: f64,
    /// Every row that was computed again.
    pub rows: Vec<RowEffect>,
    /// Why an end could not be taken: it contradicts other values that were left as they are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A host or device in whose file a parameter is assumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AssumedRange {
    /// The host or device.
    pub part: String,
    /// Its usual value.
    pub value: String,
    /// Lowest plausible value.
    pub low: String,
    /// Highest plausible value.
    pub high: String,
}

/// Our figure for a published row at both ends of a parameter's range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowEffect {
    /// The row's id in `published/`.
    pub id: String,
    /// The paper's figure.
    pub published: f64,
    /// Ours with the usual value.
    pub ours: f64,
    /// With the lowest; absent if it gives no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_low: Option<f64>,
    /// With the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_high: Option<f64>,
    /// The larger distance of the two from the usual figure, or of one from the other, in percent of
    /// the usual figure.
    pub change_pct: f64,
}
