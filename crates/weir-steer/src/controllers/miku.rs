//! MIKU (arXiv 2503.17864 section 4): when requests for CXL stay in the Table of Requests longer than its
//! device can serve them, everybody who uses CXL goes to one core at once, and comes back level by level.

use weir_model::units::Nanos;

use super::hold_all;
use crate::controller::{Controller, Decision, Why};
use crate::hold::{Hold, Share};
use crate::sight::Sight;

/// What limits the rate at the narrowest level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Processor time.
    Quota,
    /// Memory bandwidth allocation.
    Allocation,
}

/// What MIKU is told of a machine, measured with each tier alone (section 4.1).
#[derive(Debug, Clone, PartialEq)]
pub struct MikuConfig {
    /// Residency of a request for DRAM.
    pub fast: Nanos,
    /// Residency of a load from CXL from which on more loads bring no more bandwidth.
    pub slow_read: Nanos,
    /// The same of a write; the paper finds twice that of a load.
    pub slow_write: Nanos,
    /// Cores at levels 1, 2 and 3: the most that loads, stores and non-temporal stores may use without
    /// backlog.
    pub levels: [u32; 3],
    /// What limits the rate at level 3.
    pub rate: Rate,
}

impl MikuConfig {
    /// The paper's levels, and a write that takes twice as long as a read.
    pub fn with_residencies(fast: Nanos, slow_read: Nanos) -> Self {
        Self {
            fast,
            slow_read,
            slow_write: slow_read * 2.0,
            levels: [8, 4, 1],
            rate: Rate::Quota,
        }
    }
}

// The paper gives none of these.
/// Rate after a window with backlog at level 3, of what it was.
const TIGHTEN: f64 = 0.5;
/// Rate given back by a window without.
const LOOSEN: f64 = 0.1;
/// Least rate.
const LEAST: f64 = 0.05;
/// Below so much of the target there is room for more.
const ROOM: f64 = 0.9;
/// Windows with room before a promotion.
const PATIENCE: u32 = 2;
/// A promotion that brings backlog back within so many windows doubles the patience, ...
const REGRET: u32 = 5;
/// ... up to this.
const MOST_PATIENCE: u32 = 64;

/// The controller. Level 0 is free, 3 the narrowest.
#[derive(Debug, Clone)]
pub struct Miku {
    config: MikuConfig,
    level: u32,
    rate: f64,
    calm: u32,
    patience: u32,
    since_promotion: u32,
}

impl Miku {
    /// Everybody free.
    pub fn new(config: MikuConfig) -> Self {
        Self {
            config,
            level: 0,
            rate: 1.0,
            calm: 0,
            patience: PATIENCE,
            since_promotion: u32::MAX,
        }
    }

    fn backlog(&mut self) -> &'static str {
        self.calm = 0;
        if self.since_promotion < REGRET {
            self.patience = (self.patience * 2).min(MOST_PATIENCE);
        }
        self.since_promotion = u32::MAX;
        if self.level == 3 {
            self.rate = (self.rate * TIGHTEN).max(LEAST);
            return "backlog at the narrowest level: a lower rate";
        }
        self.level = 3;
        "backlog: all who use the slow tier to the narrowest level"
    }

    fn room(&mut self) -> &'static str {
        self.calm += 1;
        if self.level == 0 || self.calm < self.patience {
            return "no backlog";
        }
        if self.rate < 1.0 {
            self.rate = (self.rate + LOOSEN).min(1.0);
            return "no backlog: rate given back";
        }
        self.calm = 0;
        self.level -= 1;
        self.since_promotion = 0;
        "no backlog: a level wider"
    }

    fn hold(&self) -> Hold {
        let Some(level) = self.level.checked_sub(1) else {
            return Hold::FREE;
        };
        let cores = self.config.levels[level as usize];
        let rate = Share::of(self.rate);
        let (time, allocation) = match self.config.rate {
            Rate::Quota => (rate, Share::ALL),
            Rate::Allocation => (Share::ALL, rate),
        };
        Hold {
            cores: Some(cores),
            time,
            allocation,
            ..Hold::FREE
        }
    }
}

impl Controller for Miku {
    fn name(&self) -> &'static str {
        "miku"
    }

    fn observe(&mut self, sight: &Sight) -> Decision {
        self.since_promotion = self.since_promotion.saturating_add(1);
        if !sight.protected_busy() {
            *self = Self::new(self.config.clone());
            return Decision::free(sight.tenants.len(), Why::rule("nobody to protect runs"));
        }
        let slow = match sight.slow_residency(self.config.fast) {
            Ok(slow) => slow,
            // Nothing goes to the slow tier: there is room.
            Err(why) => {
                let rule = format!("{}: {why}", self.room());
                return hold_all(sight, self.hold(), Why::rule(rule).at_level(self.level));
            }
        };
        let writes = sight.slow.as_ref().map_or(0.0, |t| t.write_share());
        let target = self.config.slow_read * (1.0 - writes) + self.config.slow_write * writes;
        let rule = if slow > target {
            self.backlog()
        } else if slow < target * ROOM {
            self.room()
        } else {
            self.calm = 0;
            "about as long as the device can serve"
        };
        let why = Why::compared(rule, slow, target).at_level(self.level);
        hold_all(sight, self.hold(), why)
    }
}
