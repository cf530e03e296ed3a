//! What `weir tier advise` finds: `weir/tier-advice/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::topology::TierName;
use weir_model::units::Bytes;

/// What a profile says of tiering before it is switched on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advised {
    /// Policies at the memory that was asked for.
    pub policies: Vec<PolicyGain>,
    /// Fast memory against loss.
    pub sizes: Vec<SizeLoss>,
    /// What the profile does not say.
    pub assumed: Vec<Assumed>,
    /// What was profiled.
    pub of: String,
    /// How long, in seconds.
    pub profile_s: f64,
    /// Its memory.
    pub memory: Bytes,
    /// The share of its touches of which the profile does not tell the rate.
    #[schemars(extend("x-unit" = "%"))]
    pub unknown_pct: f64,
    /// The fast tier.
    pub fast: TierName,
    /// The slow tier.
    pub slow: TierName,
    /// The fast tier's memory.
    pub fast_memory: Bytes,
    /// The loss that is accepted.
    #[schemars(extend("x-unit" = "%"))]
    pub loss_pct: f64,
    /// The least of the sizes that loses no more, under the best policy.
    pub needed: Option<Bytes>,
    /// Workloads that would have the profile; each was simulated under each policy.
    pub variations: u32,
    /// Simulated time in seconds.
    pub seconds: f64,
}

/// A policy against first touch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyGain {
    /// The policy.
    pub policy: String,
    /// By how much more is accessed in a second than under first touch: the median of all variations.
    #[schemars(extend("x-unit" = "%"))]
    pub gain_pct: f64,
    /// The least of all variations, less `rebuilt_pct`.
    #[schemars(extend("x-unit" = "%"))]
    pub low_pct: f64,
    /// The largest, and `rebuilt_pct` more.
    #[schemars(extend("x-unit" = "%"))]
    pub high_pct: f64,
    /// By how much a gain may be wrong because the workload is rebuilt from a profile, in 9 of 10 cases: found by profiling
    /// workloads that are known, and rebuilding them from that.
    #[schemars(extend("x-unit" = "%"))]
    pub rebuilt_pct: f64,
    /// By how much less is accessed than with all memory in the fast tier: the median.
    #[schemars(extend("x-unit" = "%"))]
    pub loss_pct: f64,
    /// The share of accesses that the fast tier serves, in the middle of all ranges.
    #[schemars(extend("x-unit" = "%"))]
    pub local_pct: f64,
}

/// A size of the fast tier under a policy, in the middle of all ranges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeLoss {
    /// The policy.
    pub policy: String,
    /// The fast tier's memory.
    pub fast: Bytes,
    /// As a share of the workload's.
    #[schemars(extend("x-unit" = "%"))]
    pub fast_pct: f64,
    /// By how much less is accessed than with all memory in the fast tier.
    #[schemars(extend("x-unit" = "%"))]
    pub loss_pct: f64,
}

/// A range of what the profile does not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Assumed {
    /// What.
    pub what: String,
    /// The least.
    pub low: f64,
    /// The largest.
    pub high: f64,
}
