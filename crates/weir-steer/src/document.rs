//! The document of a scenario that was played: `weir/steer/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::insight::Origin;
use weir_model::units::GbPerSec;

use crate::record::{TierNames, WindowRecord};

/// A `steer run` document: `weir/steer/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteerDocument {
    /// The common part.
    #[serde(flatten)]
    pub origin: Origin,
    /// What was played.
    pub scenario: String,
    /// Who held the tenants: `weir`, `miku` ...
    pub controller: String,
    /// Whether decisions were only written down, and nobody was held.
    pub dry: bool,
    /// What the tiers are called in the windows.
    pub tiers: TierNames,
    /// Every window, in order.
    pub windows: Vec<WindowRecord>,
    /// Each phase: what was reached, beside no control and beside each alone.
    pub phases: Vec<PhaseSummary>,
    /// All phases together.
    pub summary: SteerSummary,
}

impl SteerDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/steer/1";
}

/// What all phases in which both sides ran came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteerSummary {
    /// The longest that a phase took to settle, in seconds; absent where one did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_s: Option<f64>,
    /// Bandwidth of the protected once settled, in percent of alone: the mean over the phases' time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected_pct_of_solo: Option<f64>,
    /// The same of those who may be held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restrained_pct_of_solo: Option<f64>,
    /// The longest that it took to let everybody go when nobody was left to protect, in seconds; absent
    /// where there was no such phase, or somebody was still held at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_s: Option<f64>,
}

/// One phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSummary {
    /// When it began, in seconds.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// Those who are protected.
    pub protected: SideSummary,
    /// Those who may be held.
    pub restrained: SideSummary,
    /// Until both sides stayed within 3 points of where they ended, in seconds; absent where they did
    /// not, or only one ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_s: Option<f64>,
    /// Where nobody is protected: until everybody was let go, in seconds; absent where somebody never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_s: Option<f64>,
}

/// One side of a phase. Absent is what did not run or cannot be told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideSummary {
    /// The tenants.
    pub tenants: Vec<String>,
    /// Bandwidth of the tenants while they run alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_gbps: Option<GbPerSec>,
    /// Beside the others, and nobody is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_gbps: Option<GbPerSec>,
    /// Under the controller, the whole phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps: Option<GbPerSec>,
    /// Under the controller, once settled; the second half of the phase where it did not settle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_gbps: Option<GbPerSec>,
    /// That, in percent of alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_pct_of_alone: Option<f64>,
    /// How far it still swings in the second half of the phase, in points of alone, from its mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swing_pct: Option<f64>,
}
