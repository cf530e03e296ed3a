//! What a simulation records: intervals, and their summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::{Bytes, GbPerSec, Nanos};

use crate::Vmstat;

/// An interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Its end, in seconds from the start.
    pub t_s: f64,
    /// Accesses in it, in millions.
    pub maccesses: f64,
    /// Share of accesses that the fast tier served, in percent.
    #[schemars(extend("x-unit" = "%"))]
    pub local_pct: f64,
    /// Latency of the fast tier.
    pub fast_ns: Nanos,
    /// Latency of the slow tier.
    pub slow_ns: Nanos,
    /// Traffic of the fast tier, with copies of migration.
    pub fast_gbps: GbPerSec,
    /// Traffic of the slow tier, with copies of migration.
    pub slow_gbps: GbPerSec,
    /// Thread time that the kernel's work on pages took, in percent.
    #[schemars(extend("x-unit" = "%"))]
    pub kernel_pct: f64,
    /// By how much accesses and the latencies that they cause disagree, relative.
    pub fixed_point_error: f64,
    /// Pages of 4 KiB that were promoted.
    pub promoted: u64,
    /// Pages of 4 KiB that were demoted.
    pub demoted: u64,
    /// Hint faults.
    pub hint_faults: u64,
    /// Free memory of the fast node.
    pub fast_free: Bytes,
    /// Allocated anonymous memory on the fast node.
    pub fast_anon: Bytes,
    /// Allocated anonymous memory.
    pub anon: Bytes,
}

/// A part of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Its length in seconds.
    pub seconds: f64,
    /// Accesses in a second, in millions.
    pub maccesses_per_s: f64,
    /// Share of accesses that the fast tier served, in percent.
    #[schemars(extend("x-unit" = "%"))]
    pub local_pct: f64,
    /// Share of anonymous memory on the fast node at the end, in percent.
    #[schemars(extend("x-unit" = "%"))]
    pub anon_local_pct: f64,
    /// Thread time that the kernel's work on pages took, in percent.
    #[schemars(extend("x-unit" = "%"))]
    pub kernel_pct: f64,
    /// The largest disagreement of a fixed point, relative.
    pub fixed_point_error: f64,
    /// Counters, of this part.
    pub counters: Vmstat,
}

impl Summary {
    /// Of intervals in a row, with the counters before and after them.
    pub fn of(intervals: &[Interval], interval_s: f64, counters: Vmstat) -> Self {
        let seconds = intervals.len() as f64 * interval_s;
        let sum = |of: fn(&Interval) -> f64| intervals.iter().map(of).sum::<f64>();
        let accesses = sum(|i| i.maccesses);
        let last = intervals.last().copied().unwrap_or_default();
        let all = last.anon.get().max(1) as f64;
        let mean = |total: f64| total / intervals.len().max(1) as f64;
        Self {
            seconds,
            maccesses_per_s: accesses / seconds.max(1e-9),
            local_pct: sum(|i| i.local_pct * i.maccesses) / accesses.max(1e-9),
            anon_local_pct: last.fast_anon.get() as f64 / all * 100.0,
            kernel_pct: mean(sum(|i| i.kernel_pct)),
            fixed_point_error: intervals
                .iter()
                .map(|i| i.fixed_point_error)
                .fold(0.0, f64::max),
            counters,
        }
    }
}
