//! MIKU (arXiv 2503.17864 section 4): if requests for CXL stay in the Table of Requests longer than its
//! device can serve them, all CXL tenants are limited to one core at once, and are released level by level.

use weir_model::units::Nanos;

use super::hold_all;
use crate::controller::{Controller, Decision, Why};
use crate::limit::{Limit, Share};
use crate::readings::Readings;

/// Settings of MIKU, measured with each tier alone (section 4.1).
#[derive(Debug, Clone, PartialEq)]
pub struct MikuConfig {
    /// Residency of a request for DRAM.
    pub fast: Nanos,
    /// Residency of a load from CXL at the point from which more loads bring no more bandwidth.
    pub slow_read: Nanos,
    /// The same for a write; the paper finds twice the residency of a load.
    pub slow_write: Nanos,
    /// Cores at levels 1, 2 and 3: the most that loads, stores and non-temporal stores may use without
    /// backlog.
    pub levels: [u32; 3],
}

impl MikuConfig {
    /// The paper's levels, and a write that takes twice as long as a read.
    pub fn with_residencies(fast: Nanos, slow_read: Nanos) -> Self {
        Self {
            fast,
            slow_read,
            slow_write: slow_read * 2.0,
            levels: [8, 4, 1],
        }
    }
}

// The paper gives none of these.
/// Factor of the rate after a window with backlog at level 3.
const TIGHTEN: f64 = 0.5;
/// Rate that is returned after a window without backlog.
const LOOSEN: f64 = 0.1;
/// Least rate.
const LEAST: f64 = 0.05;
/// Below this share of the target there is headroom.
const ROOM: f64 = 0.9;
/// Windows with headroom before a wider step that was not tried yet.
const PATIENCE: u32 = 2;
/// A step that brought backlog is not repeated for this many windows, a minute of the paper's.
const AGAIN: u32 = 60;
/// The number doubles each time that it brings backlog, up to this.
const MOST_AGAIN: u32 = 960;

/// The controller. Level 0 is free, 3 the narrowest.
#[derive(Debug, Clone)]
pub struct Miku {
    config: MikuConfig,
    level: u32,
    rate: f64,
    calm: u32,
    too_wide: Option<TooWide>,
}

/// A step that brought backlog.
#[derive(Debug, Clone, Copy)]
struct TooWide {
    width: f64,
    /// Windows since then.
    age: u32,
    /// Windows after which it is repeated.
    again: u32,
}

impl Miku {
    /// No tenant limited.
    pub fn new(config: MikuConfig) -> Self {
        Self {
            config,
            level: 0,
            rate: 1.0,
            calm: 0,
            too_wide: None,
        }
    }

    /// Levels and rates in one order: a greater value is a wider limit.
    fn width(level: u32, rate: f64) -> f64 {
        f64::from(3 - level) + rate
    }

    fn remember(&mut self) {
        let width = Self::width(self.level, self.rate);
        let before = self.too_wide.filter(|before| before.width == width);
        self.too_wide = Some(TooWide {
            width,
            age: 0,
            again: before.map_or(AGAIN, |before| (before.again * 2).min(MOST_AGAIN)),
        });
    }

    fn backlog(&mut self) -> &'static str {
        self.calm = 0;
        self.remember();
        if self.level == 3 {
            self.rate = (self.rate * TIGHTEN).max(LEAST);
            return "backlog at the narrowest level: a lower rate";
        }
        self.level = 3;
        "backlog: all tenants of the slow tier to the narrowest level"
    }

    fn room(&mut self) -> &'static str {
        self.calm += 1;
        if self.level == 0 {
            return "no backlog";
        }
        let (level, rate) = if self.rate < 1.0 {
            (self.level, (self.rate + LOOSEN).min(1.0))
        } else {
            (self.level - 1, 1.0)
        };
        let wider = Self::width(level, rate);
        // Levels below a step that brought backlog were climbed already.
        let patience = match self.too_wide {
            Some(too_wide) if wider < too_wide.width => 1,
            Some(too_wide) if too_wide.age < too_wide.again => {
                return "no backlog: a step wider brought it back";
            }
            _ => PATIENCE,
        };
        if self.calm < patience {
            return "no backlog";
        }
        self.calm = 0;
        (self.level, self.rate) = (level, rate);
        "no backlog: a step wider"
    }

    fn limit(&self) -> Limit {
        let Some(level) = self.level.checked_sub(1) else {
            return Limit::FREE;
        };
        let cores = self.config.levels[level as usize];
        let rate = Share::of(self.rate);
        Limit {
            cores: Some(cores),
            time: rate,
            ..Limit::FREE
        }
    }
}

impl Controller for Miku {
    fn observe(&mut self, readings: &Readings) -> Decision {
        if let Some(too_wide) = &mut self.too_wide {
            too_wide.age = too_wide.age.saturating_add(1);
        }
        if !readings.protected_busy() {
            *self = Self::new(self.config.clone());
            return Decision::free(
                readings.tenants.len(),
                Why::rule("no protected tenant runs"),
            );
        }
        let slow = match readings.slow_residency(self.config.fast) {
            Ok(slow) => slow,
            // No requests go to the slow tier: there is headroom.
            Err(why) => {
                let rule = format!("{}: {why}", self.room());
                return hold_all(readings, self.limit(), Why::rule(rule).at_level(self.level));
            }
        };
        let writes = readings.slow.as_ref().map_or(0.0, |t| t.write_share());
        let target = self.config.slow_read * (1.0 - writes) + self.config.slow_write * writes;
        let rule = if slow > target {
            self.backlog()
        } else if slow < target * ROOM {
            self.room()
        } else {
            self.calm = 0;
            "about as many requests as the device can serve"
        };
        let why = Why::compared(rule, slow, target).at_level(self.level);
        hold_all(readings, self.limit(), why)
    }
}
