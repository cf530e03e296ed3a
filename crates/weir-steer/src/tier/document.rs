//! What `weir tier simulate` finds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::latency::LatencySummary;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_pages::{Interval, TierCurve, Vmstat};

/// Policies of page placement on a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Simulated {
    /// The policies, in the order in which they were asked for.
    pub policies: Vec<PolicyOutcome>,
    /// Each policy over time.
    pub over_time: Vec<PolicyAt>,
    /// The workload's preset.
    pub workload: String,
    /// What it is.
    pub about: String,
    /// What is assumed of it.
    pub assumed: String,
    /// Its size.
    pub size_bytes: Bytes,
    /// The fast tier.
    pub fast: TierName,
    /// The slow tier.
    pub slow: TierName,
    /// Capacities of the fast to the slow tier.
    pub ratio: String,
    /// Simulated time in seconds.
    pub seconds: f64,
    /// Until when the memory of the workload grows or shrinks, in seconds, where that is after the last quarter has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grows_s: Option<f64>,
    /// The length of an interval, each of which has a fixed point of latency and traffic.
    pub interval_s: f64,
    /// Latency of requests with all memory in the fast tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_requests: Option<RequestLatency>,
    /// Why the latency of requests is unknown, where the program answers some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_latency: Option<String>,
    /// Latency under load that the simulation used, of the fast and the slow tier.
    pub curves: [TierCurve; 2],
}

/// A policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyOutcome {
    /// Its name.
    pub policy: String,
    /// The time it takes for what all-local memory does in the simulated time.
    pub runtime_ns: Nanos,
    /// How much longer that is than with all memory in the fast tier.
    #[schemars(extend("x-unit" = "%"))]
    pub vs_all_local_pct: f64,
    /// The same in the last quarter.
    #[schemars(extend("x-unit" = "%"))]
    pub settled_vs_all_local_pct: f64,
    /// Throughput of the last quarter, of that with all memory in the fast tier.
    #[schemars(extend("x-unit" = "%"))]
    pub settled_throughput_pct: f64,
    /// Share of accesses that the fast tier served.
    #[schemars(extend("x-unit" = "%"))]
    pub local_pct: f64,
    /// The same in the last quarter.
    #[schemars(extend("x-unit" = "%"))]
    pub settled_local_pct: f64,
    /// Share of anonymous memory on the fast node at the end.
    #[schemars(extend("x-unit" = "%"))]
    pub anon_local_pct: f64,
    /// Pages of 4 KiB that were promoted.
    pub promoted_pages: u64,
    /// Pages of 4 KiB that were demoted.
    pub demoted_pages: u64,
    /// Hint faults.
    pub hint_faults: u64,
    /// Share of candidates for promotion that had been demoted before; absent without candidates.
    #[schemars(extend("x-unit" = "%"))]
    pub ping_pong_pct: Option<f64>,
    /// Pages of 4 KiB written to swap, or dropped from the page cache.
    pub swapped_pages: u64,
    /// Thread time that the kernel's work on pages took.
    #[schemars(extend("x-unit" = "%"))]
    pub kernel_pct: f64,
    /// The largest disagreement of accesses and the latencies that they cause, relative.
    pub fixed_point_error: f64,
    /// Latency of the requests that a described program answers one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestLatency>,
    /// What the kernel would count.
    pub vmstat: Vmstat,
}

/// Latency of requests under a policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestLatency {
    /// Median of the whole run.
    pub p50_ns: Nanos,
    /// 99 % take at most this.
    pub p99_ns: Nanos,
    /// 99.9 % take at most this.
    pub p999_ns: Nanos,
    /// Median of the last quarter.
    pub settled_p50_ns: Nanos,
    /// 99 % of the last quarter.
    pub settled_p99_ns: Nanos,
}

impl RequestLatency {
    pub(super) fn of([whole, settled]: [LatencySummary; 2]) -> Self {
        let p99 = |of: &LatencySummary| of.p99.unwrap_or(of.max);
        Self {
            p50_ns: whole.p50,
            p99_ns: p99(&whole),
            p999_ns: whole.p999.unwrap_or(whole.max),
            settled_p50_ns: settled.p50,
            settled_p99_ns: p99(&settled),
        }
    }
}

/// A policy in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyAt {
    /// Its name.
    pub policy: String,
    /// The interval.
    #[serde(flatten)]
    pub interval: Interval,
}
