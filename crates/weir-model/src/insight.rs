//! Why a workload is slow on a tier, and how slow it would be on another: what breakdowns say, and the
//! file that a calibration leaves.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counters::{Counter, CounterSet};
use crate::machine::Identity;
use crate::topology::TierName;
use crate::units::{Cycles, GbPerSec};

/// Slowdown or lost cycles by cause, in percent of the cycles on the tier that is compared with. A cause
/// is absent where its counters are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Components {
    /// The store buffer was full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<f64>,
    /// A load waited for a line that was in L1 or on its way there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l1: Option<f64>,
    /// A load that missed L1 waited for L2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2: Option<f64>,
    /// A load that missed L2 waited for the last-level cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3: Option<f64>,
    /// All cache levels together; predictions tell them no further apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<f64>,
    /// A load that missed the last-level cache waited for memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dram: Option<f64>,
    /// What the causes leave unexplained; absent where one of them is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<f64>,
}

/// Cycles in which nothing was executed, by what was waited for; `None` where a counter is missing.
///
/// Stalls by level are nested: a cycle stalled with a miss of L2 under way is one stalled with a miss of L1 too. So each
/// level's own is a difference, and no cycle is counted twice (SupMario §4.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stalls {
    /// The store buffer was full (BOUND_ON_STORES).
    pub store: Option<f64>,
    /// STALLS_MEM_ANY without STALLS_L1D_MISS.
    pub l1: Option<f64>,
    /// STALLS_L1D_MISS without STALLS_L2_MISS.
    pub l2: Option<f64>,
    /// STALLS_L2_MISS without STALLS_L3_MISS.
    pub l3: Option<f64>,
    /// STALLS_MEM_ANY without STALLS_L3_MISS, also where the levels between are not known.
    pub cache: Option<f64>,
    /// STALLS_L3_MISS.
    pub dram: Option<f64>,
}

impl Stalls {
    /// Those of a run, in cycles.
    pub fn of(counters: &CounterSet) -> Self {
        let count = |counter| Some(counters.get(counter).ok()? as f64);
        let [any, l1d, l2, l3] = [
            Counter::StallsMemAny,
            Counter::StallsL1dMiss,
            Counter::StallsL2Miss,
            Counter::StallsL3Miss,
        ]
        .map(count);
        let without = |outer: Option<f64>, inner: Option<f64>| Some(outer? - inner?);
        Self {
            store: count(Counter::BoundOnStores),
            l1: without(any, l1d),
            l2: without(l1d, l2),
            l3: without(l2, l3),
            cache: without(any, l3),
            dram: l3,
        }
    }

    fn each(self, with: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        let both = |a: Option<f64>, b: Option<f64>| Some(of(a?, b?));
        Self {
            store: both(self.store, with.store),
            l1: both(self.l1, with.l1),
            l2: both(self.l2, with.l2),
            l3: both(self.l3, with.l3),
            cache: both(self.cache, with.cache),
            dram: both(self.dram, with.dram),
        }
    }

    /// For each of this many cycles or instructions.
    #[must_use]
    pub fn over(self, all: f64) -> Self {
        self.each(&self, |cycles, _| cycles / all)
    }

    /// What is lost beyond `local`, if each of these cycles is worth this many local ones.
    #[must_use]
    pub fn beyond(self, local: &Self, worth: f64) -> Self {
        self.each(local, |here, there| here * worth - there)
    }

    /// All causes together; `None` where one is unknown.
    pub fn sum(&self) -> Option<f64> {
        Some(self.store? + self.cache? + self.dram?)
    }

    /// In percent, with what is left of `whole`.
    pub fn components(&self, whole: f64) -> Components {
        let percent = |share: Option<f64>| share.map(|s| s * 100.0);
        Components {
            store: percent(self.store),
            l1: percent(self.l1),
            l2: percent(self.l2),
            l3: percent(self.l3),
            cache: percent(self.cache),
            dram: percent(self.dram),
            other: percent(self.sum().map(|sum| whole - sum)),
        }
    }

    /// Store buffer, L1, L2, last-level cache, memory: each at least zero, as counters that take turns may differ a
    /// little; `None` where one is unknown.
    pub fn causes(&self) -> Option<[f64; 5]> {
        let all = [self.store?, self.l1?, self.l2?, self.l3?, self.dram?];
        Some(all.map(|cycles| cycles.max(0.0)))
    }
}

/// What [`Stalls::causes`] wait for.
pub const WAITS_FOR: [&str; 5] = [
    "a full store buffer",
    "L1",
    "L2",
    "the last-level cache",
    "memory",
];

/// What holds a workload back on the memory that it was counted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// How long a request takes.
    Latency,
    /// How many requests the memory serves: they queue.
    Bandwidth,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Bound::Latency => "latency",
            Bound::Bandwidth => "bandwidth",
        })
    }
}

/// Which counters tell how many prefetches come from memory (SupMario §5.4; the families differ in what
/// their cores count).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrefetchForm {
    /// L1 prefetches and those that hit the last-level cache, counted in the core. The level that the
    /// prefetchers fail is L2.
    Skylake,
    /// Prefetches that miss counted in the uncore, shares of the prefetchers in the core. The level is
    /// the last-level cache. Sapphire and Emerald Rapids.
    SapphireRapids,
}

impl PrefetchForm {
    /// That of a microarchitecture, by the name in a platform file or a table of events; `None` where
    /// neither form's counters are known to exist.
    pub fn of(microarchitecture: &str) -> Option<Self> {
        let name = microarchitecture.to_ascii_lowercase();
        let is_one = |of: &[&str]| of.iter().any(|part| name.contains(part));
        if is_one(&["skylake", "cascade", "ice-lake", "ice lake"]) {
            Some(PrefetchForm::Skylake)
        } else if is_one(&["sapphire", "emerald", "granite"]) {
            Some(PrefetchForm::SapphireRapids)
        } else {
            None
        }
    }

    /// In words.
    pub const fn describe(self) -> &'static str {
        match self {
            PrefetchForm::Skylake => "Skylake",
            PrefetchForm::SapphireRapids => "Sapphire Rapids",
        }
    }
}

impl fmt::Display for PrefetchForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.describe())
    }
}

/// Constants of the slowdown model, for one pair of processor and memory (SupMario §5).
///
/// `S = k1 M_DRAM + k2 M_cache + k3 M_store + k4`, all as shares of the cycles on local memory, and
/// `M_DRAM` is the share of cycles stalled on misses, divided by `p / AOL + q`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Constants {
    /// Of the DRAM component.
    pub k1: f64,
    /// Of the cache component.
    pub k2: f64,
    /// Of the store component.
    pub k3: f64,
    /// What every workload loses.
    pub k4: f64,
    /// What overlap takes off, in cycles of the core.
    pub p: Cycles,
    /// The reciprocal of what a lone miss loses, without overlap.
    pub q: f64,
}

/// Constants of the DRAM component by exposed cycles, for one pair of processor and memory:
///
/// `S_DRAM = growth x (P4 + exposed x hidden / MLP) / (1 + beside x (1 - 1 / MLP))`
///
/// with the shares of cycles stalled (P4) and worked on (`hidden`) while a demand load is under way that
/// missed the last-level cache, and the demand reads under way at once (MLP).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exposed {
    /// By what share the wait for a lone miss grows.
    pub growth: f64,
    /// The share of hidden cycles that the longer latency exposes.
    pub exposed: f64,
    /// What misses with another take off.
    pub beside: f64,
}

/// Constants of the cache component by exposed cycles, for one pair of processor and memory:
///
/// `S_cache = (level + growth x late x (level + exposed x hidden / MLP)) / (1 + S_DRAM) - level`
///
/// with the shares of cycles stalled (`level`) and worked on (`hidden`) while a demand load is under way
/// that missed L2 and none that missed the last-level cache (Skylake: L1, and L2), the share of those loads
/// whose line a prefetcher has asked memory for (`late`), and the demand reads under way at once (MLP).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Late {
    /// By what share the wait for a prefetched line grows.
    pub growth: f64,
    /// The share of hidden cycles that the longer latency exposes.
    pub exposed: f64,
}

/// Components by exposed cycles, and what predictions with them are worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExposedModel {
    /// The constants of the DRAM component.
    pub constants: Exposed,
    /// Those of the cache component; absent where the published one stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Late>,
    /// What predictions are worth; absent before anything was held out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
}

/// A workload that calibration ran on both memories.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Micro {
    /// Chases of pointers at random: every lost cycle is DRAM's.
    Chase,
    /// Stores to fresh memory, nothing read again.
    Store,
    /// A list that lies in order, fed by the prefetchers.
    List,
    /// Several of them mixed.
    Mixed,
}

impl fmt::Display for Micro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Micro::Chase => "chase",
            Micro::Store => "store",
            Micro::List => "list",
            Micro::Mixed => "mixed",
        })
    }
}

/// One workload of a calibration, and how well the constants give it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FitPoint {
    /// Its name.
    pub name: String,
    /// Which of the micro-workloads.
    pub micro: Micro,
    /// Measured slowdown in percent.
    pub slowdown_pct: f64,
    /// What the constants say: those by exposed cycles, if the model has them.
    pub fitted_pct: f64,
    /// Amortised offcore latency on local memory, in cycles; absent where no demand read left the core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aol: Option<Cycles>,
}

/// How far predictions were off on workloads that no constant was fitted to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldOut {
    /// How many workloads.
    pub workloads: u32,
    /// The share of predictions that the intervals are made to hold, in percent.
    pub coverage_pct: f64,
    /// Half-widths of the intervals by component.
    pub store: Margin,
    /// Of the caches.
    pub cache: Margin,
    /// Of DRAM.
    pub dram: Margin,
    /// Of the whole, where `near` is absent.
    pub total: Margin,
    /// Of the whole, by the workloads that were held out and are nearest in the space of counters; absent
    /// where counters were missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<Near>,
}

/// Intervals that follow the errors of the nearest workloads that were held out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Near {
    /// The workloads.
    pub neighbours: Vec<Neighbour>,
    /// The median distance of one of them to those nearest to it.
    pub usual_distance: f64,
    /// The half-width of an interval is this many times the mean error of the nearest.
    pub factor: f64,
}

/// A workload that was held out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Neighbour {
    /// Its place: shares of cycles stalled on and hidden during misses of the last-level cache, the same of L2,
    /// bound on stores; demand reads at once; hits of fill buffers; prefetches; instructions.
    pub at: Vec<f64>,
    /// Its error, as a share of `floor_pct` of `total` plus the prediction's magnitude.
    pub error: f64,
}

/// The half-width of an interval: `relative` of `floor_pct` plus the prediction's magnitude, in
/// percentage points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Margin {
    /// The share.
    pub relative: f64,
    /// What is added to the prediction before the share is taken, in percentage points.
    pub floor_pct: f64,
}

impl Margin {
    /// The half-width around a prediction, in percentage points.
    pub fn around(&self, predicted_pct: f64) -> f64 {
        self.relative * (self.floor_pct + predicted_pct.abs())
    }
}

/// A predictor of one quantity, which the paper rejects (SupMario §5.1).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Rejected {
    /// Last-level cache misses of loads for 1000 instructions.
    LlcMpki,
    /// Bytes read from memory for each cycle: bandwidth, up to the clock.
    ReadBandwidth,
    /// Share of cycles stalled on loads that missed the last-level cache (top-down analysis).
    DramBound,
}

impl Rejected {
    /// Every one.
    pub const ALL: [Rejected; 3] = [
        Rejected::LlcMpki,
        Rejected::ReadBandwidth,
        Rejected::DramBound,
    ];
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Rejected::LlcMpki => "LLC MPKI",
            Rejected::ReadBandwidth => "read bandwidth",
            Rejected::DramBound => "TMA DRAM-bound",
        })
    }
}

/// A line through the same workloads as the constants: slowdown is `slope` times the quantity, and
/// `intercept`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Of what.
    pub of: Rejected,
    /// Slowdown as a share, for each unit of the quantity.
    pub slope: f64,
    /// Slowdown as a share where the quantity is zero.
    pub intercept: f64,
}

/// Which lines a program asks for, as far as its cores count that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadKind {
    /// Reads for ownership, as a share of all reads.
    pub ownership: f64,
    /// Lines written back to memory, of those read from it: more than `ownership` where a program changes lines
    /// that it has loaded. Absent where the memory controllers did not count what this program drew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<f64>,
    /// Lines that the L2 prefetchers fetched, against all reads; absent where they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<f64>,
    /// Lines written past the caches, as a share of these and of all reads; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past_caches: Option<f64>,
}

/// What memory gives to kernels of one kind that have all cores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capacity {
    /// What they ask for.
    pub kind: LoadKind,
    /// Lines that cross the memory interface either way, with every page on the slower tier.
    pub bandwidth: GbPerSec,
    /// The same with every page on local memory.
    pub local: GbPerSec,
    /// Mean latency of its reads there, above that of a lone chase.
    pub latency: Cycles,
}

/// Run time over all interleavings of two tiers, from one run on the local one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterleaveFit {
    /// Latency of a lone chase, on local memory and on the slower tier.
    pub unloaded: [Cycles; 2],
    /// How latency of local memory grows with utilisation `u`: by this times `u / (1 - u)` of the unloaded
    /// one.
    pub queueing: f64,
    /// How that of the slower tier does.
    pub slow_queueing: f64,
    /// What a cycle counts that is stalled on the caches, where prefetches are under way, against one that
    /// is stalled on a miss.
    pub prefetched: f64,
    /// What a cycle counts by which the slower tier's latency is longer, against one that is stalled on local
    /// memory.
    pub exposed: f64,
    /// What either tier gives, by kinds of streaming kernels.
    pub capacity: Vec<Capacity>,
    /// The same of kernels that the L2 prefetchers do not follow: in long strides, and in no order.
    pub unfollowed: Vec<Capacity>,
    /// By how much kernels gained less than was expected, at the shares that they were advised.
    pub error: Margin,
}

/// A calibrated model: `weir/slowdown-model/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowdownModel {
    /// `weir/slowdown-model/1`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// The machine that was calibrated. A model of another is refused.
    pub machine: Identity,
    /// Its processor, in words.
    pub processor: String,
    /// The memory that workloads are counted on.
    pub from: TierName,
    /// The memory whose slowdown is predicted.
    pub to: TierName,
    /// Which counters feed the cache component.
    pub prefetch: PrefetchForm,
    /// The constants of the published model.
    pub constants: Constants,
    /// Components by exposed cycles, which take the place of the published ones where their counters are;
    /// absent where they were not counted in the calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposed: Option<ExposedModel>,
    /// Latency of a lone chase on `from`, in cycles of the core.
    pub unloaded: Cycles,
    /// Amortised offcore latencies that the constants were fitted on: the least and the greatest.
    pub aol_range: [Cycles; 2],
    /// What the constants were fitted on.
    pub fitted_on: Vec<FitPoint>,
    /// What predictions of the published model are worth; absent before anything was held out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
    /// The rejected predictors, fitted on the same.
    pub rejected: Vec<Line>,
    /// Run time over interleavings; absent where it was not fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleave: Option<InterleaveFit>,
    /// What to know of the fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl SlowdownModel {
    /// What predictions are worth that have all counters.
    pub fn held_out_in_use(&self) -> Option<&HeldOut> {
        let published = || self.held_out.as_ref();
        (self.exposed.as_ref()).map_or_else(published, |exposed| exposed.held_out.as_ref())
    }

    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/slowdown-model/1";
}
