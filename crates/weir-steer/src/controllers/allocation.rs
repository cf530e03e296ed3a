//! Memory bandwidth allocation: the delay between a core's L2 and the mesh that processors offer (Intel MBA;
//! AMD SMBA and Intel's region-aware allocation, which throttle the slow tier alone).

use weir_model::units::Nanos;

use super::hold_all;
use crate::controller::{Controller, Decision, Why};
use crate::limit::{Limit, Share};
use crate::readings::Readings;

/// Settings of the loop.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocationConfig {
    /// Residency of a request for DRAM.
    pub fast: Nanos,
    /// Residency of a request for the slow tier at the point from which more requests bring no more
    /// bandwidth.
    pub target: Nanos,
    /// The hardware's step, as a share of its scale (a tenth on Intel).
    pub step: f64,
    /// The smallest setting.
    pub least: f64,
    /// Windows before a setting has an effect (seconds, CXL-Interplay section V-C).
    pub settling: u32,
}

/// The controller: a step down if there is backlog, a step up if there is none.
#[derive(Debug, Clone)]
pub struct Allocation {
    config: AllocationConfig,
    setting: f64,
    wait: u32,
}

impl Allocation {
    /// No tenant limited.
    pub fn new(config: AllocationConfig) -> Self {
        Self {
            config,
            setting: 1.0,
            wait: 0,
        }
    }

    fn steer(&mut self, slow: Nanos) -> &'static str {
        if self.wait > 0 {
            self.wait -= 1;
            return "the last setting has no effect yet";
        }
        let before = self.setting;
        if slow > self.config.target {
            self.setting = (self.setting - self.config.step).max(self.config.least);
        } else if slow < self.config.target * 0.8 {
            self.setting = (self.setting + self.config.step).min(1.0);
        }
        if self.setting == before {
            return "as before";
        }
        self.wait = self.config.settling;
        if self.setting < before {
            "backlog: a step less"
        } else {
            "headroom: a step more"
        }
    }
}

impl Controller for Allocation {
    fn observe(&mut self, readings: &Readings) -> Decision {
        if !readings.protected_busy() {
            self.setting = 1.0;
            self.wait = 0;
            return Decision::free(
                readings.tenants.len(),
                Why::rule("no protected tenant runs"),
            );
        }
        let why = match readings.slow_residency(self.config.fast) {
            Ok(slow) => Why::compared(self.steer(slow), slow, self.config.target),
            Err(why) => Why::rule(format!("as before: {why}")),
        };
        let limit = Limit {
            allocation: Share::of(self.setting),
            ..Limit::FREE
        };
        hold_all(readings, limit, why)
    }
}
