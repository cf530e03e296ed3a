//! What a scenario run found: `weir/steer/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::metric::OwnMetric;
use weir_model::units::GbPerSec;

use crate::readings::Role;
use crate::record::{TierNames, WindowRecord};

/// The own part of a `steer run` document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioOutcome {
    /// The scenario.
    pub scenario: String,
    /// The controller: `weir`, `miku` ...
    pub controller: String,
    /// Whether decisions were only recorded, and no tenant was limited.
    pub dry: bool,
    /// The names of the tiers in the windows.
    pub tiers: TierNames,
    /// Every window, in order.
    pub windows: Vec<WindowRecord>,
    /// Each phase: its result, compared with no control and with each side alone.
    pub phases: Vec<PhaseSummary>,
    /// All phases together.
    pub summary: SteerSummary,
}

/// The result of all phases in which both sides ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteerSummary {
    /// The longest time that a phase took to settle, in seconds; absent if a phase did not settle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_s: Option<f64>,
    /// Bandwidth of the protected tenants once settled, in percent of alone: the mean over the phases' time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected_pct_of_solo: Option<f64>,
    /// Half of its 95 % interval, in points, where windows were sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected_error_pct: Option<f64>,
    /// The same for the tenants that may be limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restrained_pct_of_solo: Option<f64>,
    /// Half of its 95 % interval, in points, where windows were sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restrained_error_pct: Option<f64>,
    /// Bandwidth of the protected tenants next to the others without limits, in percent of alone: the mean over the
    /// phases' time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected_pct_without_limits: Option<f64>,
    /// Half of its 95 % interval, in points, where windows were sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected_error_without_limits: Option<f64>,
    /// The same for the tenants that may be limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restrained_pct_without_limits: Option<f64>,
    /// The longest time until all limits were removed when no protected tenant ran, in seconds; absent if
    /// there was no such phase, or a tenant was still limited at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_s: Option<f64>,
}

/// One phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSummary {
    /// When it began, in seconds.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// The protected tenants.
    pub protected: SideSummary,
    /// The tenants that may be limited.
    pub restrained: SideSummary,
    /// Its described programs, in their own metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramSummary>,
    /// Time until both sides stayed within 3 points of their final values, in seconds; absent if they did
    /// not, or if only one side ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_s: Option<f64>,
    /// In a phase without protected tenants: time until all limits were removed, in seconds; absent if a
    /// limit remained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_s: Option<f64>,
}

/// A described program in a phase, in its own metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramSummary {
    /// Its name.
    pub tenant: String,
    /// Its role.
    pub role: Role,
    /// With the tenants of its side alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<OwnMetric>,
    /// With the other side, and no limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<OwnMetric>,
    /// Under the controller, once settled; the second half of the phase if it did not settle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<OwnMetric>,
}

/// One side of a phase. A value is absent if it did not run or is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-intervals" = {"settled_pct_of_alone": "settled_error_pct"}))]
pub struct SideSummary {
    /// The tenants.
    pub tenants: Vec<String>,
    /// Bandwidth of the tenants while they run alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_gbps: Option<GbPerSec>,
    /// Bandwidth with the other side, and no limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_gbps: Option<GbPerSec>,
    /// Under the controller, the whole phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps: Option<GbPerSec>,
    /// Under the controller, once settled; the second half of the phase if it did not settle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_gbps: Option<GbPerSec>,
    /// The same, in percent of alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_pct_of_alone: Option<f64>,
    /// Half of its 95 % interval, in points: the sampling errors of both bandwidths. Absent if no window was sampled, or an
    /// error is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_error_pct: Option<f64>,
    /// That of the bandwidth without limits in percent of alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_error_pct: Option<f64>,
    /// The largest distance from its mean in the second half of the phase, in points of alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swing_pct: Option<f64>,
}
