//! A controller: sight in, decision out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::Nanos;

use crate::limit::Limit;
use crate::readings::Readings;

/// A policy as a state machine. It sees windows of equal length, one after another, and knows neither
/// clock nor machine: the same windows give the same decisions.
pub trait Controller {
    /// The stable name: `weir`, `miku`, `quota` …
    fn name(&self) -> &'static str;

    /// What has to be seen for its decisions to mean anything.
    fn needs(&self) -> Needs {
        Needs::Table
    }

    /// Sees a window and says to what every tenant of [`Readings::tenants`] is held from now on, in their
    /// order.
    fn observe(&mut self, readings: &Readings) -> Decision;
}

/// What a controller has to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it decides the same whatever is seen.
    Nothing,
    /// The Table of Requests, counted.
    Table,
    /// How long loads from the fast tier take.
    Probe,
    /// One of both.
    TableOrProbe,
}

impl Needs {
    /// Whether a window shows it.
    pub fn are_met_by(self, readings: &Readings) -> bool {
        match self {
            Needs::Nothing => true,
            Needs::Table => readings.table.is_ok(),
            Needs::Probe => readings.probe.is_ok(),
            Needs::TableOrProbe => readings.table.is_ok() || readings.probe.is_ok(),
        }
    }
}

/// What a controller decided, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// What each tenant is held to, in the order in which they were seen.
    pub limits: Vec<Limit>,
    /// Why.
    pub why: Why,
}

impl Decision {
    /// Nobody is held.
    pub fn free(tenants: usize, why: Why) -> Self {
        Self {
            limits: vec![Limit::FREE; tenants],
            why,
        }
    }
}

/// Why a controller decided as it did: what it compared, and the state that it is in now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// The rule that applied, in words.
    pub rule: String,
    /// How long a request to the slow tier holds its entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Nanos>,
    /// How long a load from the fast tier took, where that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Nanos>,
    /// What that was compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Nanos>,
    /// The controller's level, where it has any; 0 for free.
    pub level: u32,
}

impl Why {
    /// A rule that compared nothing.
    pub fn rule(rule: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            slow: None,
            probe: None,
            target: None,
            level: 0,
        }
    }

    /// A rule that compared the slow tier's residency with a target.
    pub fn compared(rule: impl Into<String>, slow: Nanos, target: Nanos) -> Self {
        Self {
            slow: Some(slow),
            target: Some(target),
            ..Self::rule(rule)
        }
    }

    /// The same, at a level.
    pub fn at_level(self, level: u32) -> Self {
        Self { level, ..self }
    }
}
