//! A lower clock for the cores that load the slow tier (CXL-Interplay section V-B), for comparison: a core
//! that waits for memory is hardly slowed.

use weir_model::units::{Gigahertz, Nanos};

use super::hold_all;
use crate::controller::{Controller, Decision, Why};
use crate::limit::Limit;
use crate::readings::Readings;

/// Settings of the loop.
#[derive(Debug, Clone, PartialEq)]
pub struct FrequencyConfig {
    /// Residency of a request without interference.
    pub undisturbed: Nanos,
    /// Impact is severe beyond this multiple.
    pub severe: f64,
    /// Clocks that the cores support, highest first.
    pub clocks: Vec<Gigahertz>,
}

/// The controller: a step down for a window with severe impact, a step up for one without.
#[derive(Debug, Clone)]
pub struct Frequency {
    config: FrequencyConfig,
    step: usize,
}

impl Frequency {
    /// No tenant limited.
    pub fn new(config: FrequencyConfig) -> Self {
        Self { config, step: 0 }
    }
}

impl Controller for Frequency {
    fn observe(&mut self, readings: &Readings) -> Decision {
        if !readings.protected_busy() {
            self.step = 0;
            return Decision::free(
                readings.tenants.len(),
                Why::rule("no protected tenant runs"),
            );
        }
        let why = match &readings.table {
            Ok(table) => {
                let target = self.config.undisturbed * self.config.severe;
                let lowest = self.config.clocks.len().saturating_sub(1);
                if table.mean > target {
                    self.step = (self.step + 1).min(lowest);
                    Why::compared("severe impact: a lower clock", table.mean, target)
                } else {
                    self.step = self.step.saturating_sub(1);
                    Why::compared("no severe impact: a higher clock", table.mean, target)
                }
            }
            Err(why) => Why::rule(format!("as before: {why}")),
        };
        let clock = (self.step > 0)
            .then(|| self.config.clocks.get(self.step))
            .flatten();
        let limit = Limit {
            clock: clock.copied(),
            ..Limit::FREE
        };
        hold_all(readings, limit, why.at_level(self.step as u32))
    }
}
