//! A limit in force.

use weir_model::units::GbPerSec;

use super::Tuning;
use super::range::Range;
use crate::knee::Knee;

/// A limit in force, and its history.
#[derive(Debug, Clone, Copy)]
pub struct ActiveLimit {
    /// Cores' worth of running.
    pub units: f64,
    /// The mix for which it is set.
    pub writes: f64,
    /// Whether the limits of tenants changed before this window. Then the mix changes too, if their mixes
    /// differ, though no tenant changed its own.
    pub is_moved: bool,
    pub range: Range,
    /// Before the last wider step: the limit, and the bandwidths of the slow and the fast tier.
    pub narrower: Option<(f64, GbPerSec, GbPerSec)>,
    /// Before the last narrower step: the bandwidth of the fast tier.
    pub wider: Option<GbPerSec>,
    /// Outstanding requests in the window before.
    pub outstanding: f64,
    /// Whether no tenant was limited in the window before.
    pub is_new: bool,
    /// The device's mean bandwidth since it was busy under this limit, if it was.
    pub busy: Option<GbPerSec>,
    /// For how many windows the device was not busy since then.
    pub short: u32,
}

impl ActiveLimit {
    /// Other tenants run: what was too wide or too narrow for those before says nothing of them.
    pub fn seek_again(&mut self, device: &Knee, cores: f64) {
        self.range = Range::below(device.much, cores);
        self.narrower = None;
        self.busy = None;
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
