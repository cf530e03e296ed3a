//! The loop of CXL-Interplay (section V-A): as long as requests stay in the Table of Requests far longer than
//! without interference, tenants that load the slow tier get less processor time.

use weir_model::units::Nanos;

use super::hold_all;
use crate::controller::{Controller, Decision, Why};
use crate::limit::{Limit, Share};
use crate::readings::Readings;

/// Settings of the loop. The paper gives neither step nor floor nor a rule for release.
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaConfig {
    /// Residency of a request without interference.
    pub undisturbed: Nanos,
    /// Impact is severe beyond this multiple.
    pub severe: f64,
    /// Factor of the processor time after a window with severe impact.
    pub tighten: f64,
    /// Processor time that is returned after a window without.
    pub loosen: f64,
    /// Least processor time.
    pub least: f64,
}

impl QuotaConfig {
    /// Halves, returns a twentieth, and leaves a sixteenth: the quota that the paper highlights.
    pub fn undisturbed(undisturbed: Nanos) -> Self {
        Self {
            undisturbed,
            severe: 2.0,
            tighten: 0.5,
            loosen: 0.05,
            least: 1.0 / 16.0,
        }
    }
}

/// The controller.
#[derive(Debug, Clone)]
pub struct Quota {
    config: QuotaConfig,
    time: f64,
}

impl Quota {
    /// No tenant limited.
    pub fn new(config: QuotaConfig) -> Self {
        Self { config, time: 1.0 }
    }
}

impl Controller for Quota {
    fn observe(&mut self, readings: &Readings) -> Decision {
        if !readings.protected_busy() {
            self.time = 1.0;
            return Decision::free(
                readings.tenants.len(),
                Why::rule("no protected tenant runs"),
            );
        }
        let why = match &readings.table {
            Ok(table) => {
                let target = self.config.undisturbed * self.config.severe;
                let severe = table.mean > target;
                self.time = if severe {
                    (self.time * self.config.tighten).max(self.config.least)
                } else {
                    (self.time + self.config.loosen).min(1.0)
                };
                let rule = if severe {
                    "severe impact: less processor time"
                } else {
                    "no severe impact: processor time returned"
                };
                Why::compared(rule, table.mean, target)
            }
            Err(why) => Why::rule(format!("as before: {why}")),
        };
        let limit = Limit {
            time: Share::of(self.time),
            ..Limit::FREE
        };
        hold_all(readings, limit, why)
    }
}
