//! A controller: readings in, decision out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::Nanos;

use crate::limit::Limit;
use crate::readings::Readings;

/// A policy as a state machine. It sees windows of equal length, one after another, and knows neither clock
/// nor machine: equal windows give equal decisions.
pub trait Controller {
    /// The readings that its decisions need.
    fn needs(&self) -> Needs {
        Needs::Table
    }

    /// Sees a window and returns the limit of every tenant of [`Readings::tenants`] from now on, in their
    /// order.
    fn observe(&mut self, readings: &Readings) -> Decision;
}

/// The readings that a controller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// None: it always decides the same.
    Nothing,
    /// The Table of Requests, counted.
    Table,
    /// The latency of loads from the fast tier.
    Probe,
    /// One of the two.
    TableOrProbe,
}

impl Needs {
    /// Whether a window has these readings.
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
    /// The limit of each tenant, in the order of the readings.
    pub limits: Vec<Limit>,
    /// The reason.
    pub why: Why,
}

impl Decision {
    /// No tenant is limited.
    pub fn free(tenants: usize, why: Why) -> Self {
        Self {
            limits: vec![Limit::FREE; tenants],
            why,
        }
    }
}

/// The reason of a decision: the values that were compared, and the controller's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// The rule that applied, in words.
    pub rule: String,
    /// How long a request to the slow tier holds its entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Nanos>,
    /// How long requests waited before the table, if this was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Nanos>,
    /// The latency of a load from the fast tier, if it was probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Nanos>,
    /// The value with which it was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Nanos>,
    /// The controller's level, if it has levels; 0 is free.
    pub level: u32,
}

impl Why {
    /// A rule that compared nothing.
    pub fn rule(rule: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            slow: None,
            wait: None,
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
