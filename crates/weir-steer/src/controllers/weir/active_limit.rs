//! A limit in force.

use weir_model::units::GbPerSec;

use super::Tuning;
use super::range::Range;
use super::view::{Most, View};
use crate::limit::Grain;

/// How far it is known whether limits help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// No limit was seen that empties the table.
    Begun,
    /// The fast tier gained; the limit that is worth most is searched.
    Gained,
    /// The limit that was found is worth more than none.
    Ended,
}

/// A limit in force, and its history.
#[derive(Debug, Clone, Copy)]
pub struct ActiveLimit {
    /// Cores' worth of running.
    pub units: f64,
    /// How they make a part of a core.
    pub grain: Grain,
    /// The mix for which it is set.
    pub writes: f64,
    /// Whether the limits of tenants changed before this window. Then the mix changes too, if their mixes
    /// differ, though no tenant changed its own.
    pub is_moved: bool,
    pub range: Range,
    /// The limit before the last step, and its window, until the step is judged.
    pub before: Option<(f64, View)>,
    /// The last window without limits.
    pub free: View,
    /// How far it is known whether limits help.
    pub trial: Trial,
    /// The most bandwidth of the fast tier under a limit.
    pub fast: GbPerSec,
    /// The same of the slow tier.
    pub slow: GbPerSec,
    /// Outstanding requests in the window before.
    pub outstanding: f64,
    /// Whether other tenants run than when no tenant was limited.
    pub is_stale: bool,
    /// Windows since no tenant was limited.
    pub age: u32,
    /// The device's mean bandwidth since it was busy under this limit, if it was.
    pub busy: Option<GbPerSec>,
    /// For how many windows the device was not busy since then.
    pub short: u32,
}

impl ActiveLimit {
    /// The most that each tier gave, with and without limits.
    pub fn most(&self) -> Most {
        Most {
            fast: GbPerSec(self.fast.get().max(self.free.fast.get())),
            slow: GbPerSec(self.slow.get().max(self.free.slow.get())),
        }
    }

    /// Whether the device is busy under this limit. Its bandwidth varies from window to window, above all if
    /// rows of its DRAM are opened and closed often: one window alone does not refute a limit that was good.
    pub fn is_busy(&mut self, gives: GbPerSec, enough: GbPerSec, tuning: &Tuning) -> bool {
        let past = tuning.remembered;
        let mean = match self.busy {
            Some(before) => before * past + gives * (1.0 - past),
            None => gives,
        };
        self.short = if gives < enough { self.short + 1 } else { 0 };
        let is_busy = mean >= enough || (self.busy.is_some() && self.short < tuning.patience);
        self.busy = is_busy.then_some(mean);
        is_busy
    }
}
