//! Weir's own controller: it keeps as many requests to the slow tier outstanding as its device can serve, and
//! no more.
//!
//! A device serves `peak` bytes a second as soon as its bandwidth-delay product is outstanding: `peak x idle
//! latency` (Little's law). Further requests only wait, and they wait in the Table of Requests, which the
//! requests of all other tenants must pass. So there is a range of running in which the device is busy and
//! the table is free. If the device was measured alone, its knee is known, and the first step goes there;
//! otherwise it is learned first (`learn`), once for each mix of reads and writes. From there the controller
//! searches between limits that were too narrow (the device could give more) and limits that were too wide
//! (its queue grew, or more brought no more), and then stays.

mod learn;
mod range;
mod steps;
mod view;

use weir_model::units::{GbPerSec, Nanos};

use super::share_units;
use crate::controller::{Controller, Decision, Why};
use crate::knee::Knee;
use crate::limit::{Grain, Share};
use crate::readings::Readings;
use learn::{Learning, Lesson};
use range::Range;
use view::View;

/// Settings of the controller.
#[derive(Debug, Clone, PartialEq)]
pub struct WeirConfig {
    /// Residency of a request for DRAM without interference.
    pub fast: Nanos,
    /// Residency of a request for the slow tier without load, if it was measured; otherwise it is learned.
    pub slow: Option<Nanos>,
    /// The slow tier's knees in order of their share of writes, as far as they were measured.
    pub knees: Vec<Knee>,
    /// The table is short of entries if requests wait before it for longer than this.
    pub wait: Nanos,
    /// Requests that stay this multiple of the unloaded residency wait in a queue.
    pub queued: f64,
    /// Step of the hardware's bandwidth allocation, if it has any; otherwise a part of a core is a part of
    /// its time.
    pub step: Option<Share>,
    /// A device is busy at this share of its bandwidth at the knee: together with other tenants, whose
    /// requests wait before the table as well, cores draw a little less than alone.
    pub full: f64,
}

impl WeirConfig {
    /// Requests that stay four times the unloaded residency wait in a queue that slows other tenants.
    pub fn new(fast: Nanos, slow: Option<Nanos>) -> Self {
        Self {
            fast,
            slow,
            knees: Vec::new(),
            wait: fast * 0.02,
            queued: 4.0,
            step: None,
            full: 0.88,
        }
    }
}

/// The queue of a loaded device was measured at eight to ten times its idle latency (MIKU section 3): the
/// first guess for an unknown device.
const LOADED: f64 = 8.0;
/// The table is full at this share of the most entries that were ever in use.
const FULL: f64 = 0.9;
/// The slow tier is the cause only if it holds this share of the table.
const BLAME: f64 = 0.2;
/// A change of a tier's bandwidth by this factor is not by chance.
const NOTICED: f64 = 1.02;
/// A fast tier with this factor less bandwidth was harmed.
const HARMED: f64 = 1.03;
/// Beyond this difference the mix of reads and writes is another one, for which the learned values do not
/// hold.
const OTHER_MIX: f64 = 0.15;
/// Only posted stores alone write more than this share of lines: other stores read each line that they write.
const POSTED: f64 = 0.6;
/// Mixes for which the last good limit is stored, from reads alone to writes alone.
const MIXES: usize = 11;
/// A limit under which the device was busy stays until the device was not busy for this many windows.
const PATIENCE: u32 = 4;
/// Weight of the past windows in the mean of a device's bandwidth.
const REMEMBERED: f64 = 0.75;
/// Windows without limits after a limit that did not help.
const IN_VAIN: u32 = 40;
/// If outstanding requests are fewer than in the window before by this factor, the queue drains.
const DRAINS: f64 = 0.99;
/// Factor for a limit that was a little too wide.
const TRIM: f64 = 0.92;
/// Two limits that differ by less than this factor are not refined further.
const NEAR: f64 = 1.15;
/// The largest factor of a wider step.
const WIDEST_STEP: f64 = 4.0;

/// The controller.
#[derive(Debug, Clone)]
pub struct Weir {
    config: WeirConfig,
    /// The units that all limited tenants share; `None` if no tenant is limited.
    held: Option<ActiveLimit>,
    /// The last good limit, by the mix of reads and writes.
    remembered: [Option<f64>; MIXES],
    /// The learned values of devices that were not measured, by the mix.
    learnt: [Option<Knee>; MIXES],
    /// The device that is being learned.
    learning: Option<Learning>,
    /// The most entries of the table that were ever in use.
    capacity: f64,
    /// Windows without limits, because a limit did not help.
    in_vain: u32,
}

/// A limit in force, and its history.
#[derive(Debug, Clone, Copy)]
struct ActiveLimit {
    /// Cores' worth of running.
    units: f64,
    /// The mix for which it is set.
    writes: f64,
    range: Range,
    /// Before the last wider step: the limit, and the bandwidths of the slow and the fast tier.
    narrower: Option<(f64, GbPerSec, GbPerSec)>,
    /// Before the last narrower step: the bandwidth of the fast tier.
    wider: Option<GbPerSec>,
    /// Outstanding requests in the window before.
    outstanding: f64,
    /// Whether no tenant was limited in the window before.
    is_new: bool,
    /// The device's mean bandwidth since it was busy under this limit, if it was.
    busy: Option<GbPerSec>,
    /// For how many windows the device was not busy since then.
    short: u32,
}

impl ActiveLimit {
    /// Whether the device is busy under this limit. Its bandwidth varies from window to window, above all if
    /// rows of its DRAM are opened and closed often: one window alone does not refute a limit that was good.
    fn is_busy(&mut self, gives: GbPerSec, enough: GbPerSec) -> bool {
        let mean = match self.busy {
            Some(before) => before * REMEMBERED + gives * (1.0 - REMEMBERED),
            None => gives,
        };
        self.short = if gives < enough { self.short + 1 } else { 0 };
        let is_busy = mean >= enough || (self.busy.is_some() && self.short < PATIENCE);
        self.busy = is_busy.then_some(mean);
        is_busy
    }
}

impl Weir {
    /// No tenant limited.
    pub fn new(config: WeirConfig) -> Self {
        Self {
            config,
            held: None,
            remembered: [None; MIXES],
            learnt: [None; MIXES],
            learning: None,
            capacity: 0.0,
            in_vain: 0,
        }
    }

    /// The device under the present mix: as measured, otherwise as learned.
    fn device(&mut self, view: &View) -> Knee {
        self.capacity = self.capacity.max(view.entries);
        let known = Knee::of_mix(&self.config.knees, view.writes);
        if let Some(knee) = known.or(self.learnt[mix(view.writes)]) {
            return knee;
        }
        let rest = self.config.slow.unwrap_or(view.residency / LOADED);
        Knee {
            writes: view.writes,
            rest,
            residency: rest,
            gives: view.gives,
            units: f64::INFINITY,
            much: None,
            grain: self.grain(view.writes),
        }
    }

    /// The grain of a part of a core, if it was not measured. Few cores keep few rows of a device's DRAM
    /// open; but few cores with posted stores keep more requests outstanding than many cores that each issue
    /// rarely.
    fn grain(&self, writes: f64) -> Grain {
        match self.config.step {
            None => Grain::Time,
            Some(step) if writes > POSTED => Grain::Wide(step),
            Some(step) => Grain::Narrow(step),
        }
    }

    /// Whether requests of the slow tier fill the table, so that others wait before it; if the ingress queues
    /// are not counted, whether requests stay far longer than without load.
    fn fills(&self, view: &View, device: &Knee) -> bool {
        let crowded = match view.wait {
            Some(wait) => wait > self.config.wait && view.entries > FULL * self.capacity,
            None => view.residency > device.rest * self.config.queued,
        };
        crowded && view.share > BLAME
    }

    fn decide(&mut self, cores: f64, view: &View) -> (&'static str, Nanos) {
        let device = self.device(view);
        let queue = device.rest * self.config.queued;
        let Some(mut held) = self.held else {
            if self.in_vain > 0 {
                self.in_vain -= 1;
                return ("a limit did not help", queue);
            }
            if !self.fills(view, &device) {
                return ("the table has free entries", queue);
            }
            self.held = self.first(cores, view, &device, true);
            return (
                "the slow tier fills the table: limited to what its device serves",
                queue,
            );
        };
        if (held.writes - view.writes).abs() > OTHER_MIX {
            self.learning = None;
            self.held = self.first(cores, view, &device, false);
            return ("the mix of reads and writes changed: a new limit", queue);
        }
        held.range.grow_older();
        if held.is_new && !self.helped(view, &held) {
            self.held = None;
            self.learning = None;
            self.in_vain = IN_VAIN;
            return ("the limit did not help: removed", queue);
        }
        let rule = match self.learning {
            Some(learning) => self.learn(learning, cores, view, &device, &mut held),
            None => self.seek(cores, view, &device, &mut held),
        };
        self.held = (held.units < cores).then_some(held);
        (rule, queue)
    }

    /// The first limit: the last good one, the knee, or the first one for learning. No tenant is limited if
    /// all cores together do not reach it, nor while an unknown device has fewer requests than it can serve.
    fn first(
        &mut self,
        cores: f64,
        view: &View,
        device: &Knee,
        is_new: bool,
    ) -> Option<ActiveLimit> {
        let units = if device.units.is_finite() {
            let units = self.remembered[mix(view.writes)].unwrap_or(device.units);
            steps::nearest(units, cores, device.grain)
        } else if is_new {
            self.learning = Some(Learning::from_free(view));
            Learning::first(cores, device.grain)
        } else {
            return None;
        };
        (units < cores).then_some(ActiveLimit {
            units,
            writes: view.writes,
            range: Range::below(device.much, cores),
            narrower: None,
            wider: Some(view.fast),
            outstanding: f64::INFINITY,
            is_new,
            busy: None,
            short: 0,
        })
    }

    /// A device that was not measured is learned.
    fn learn(
        &mut self,
        mut learning: Learning,
        cores: f64,
        view: &View,
        device: &Knee,
        held: &mut ActiveLimit,
    ) -> &'static str {
        held.is_new = false;
        match learning.observe(view, held.units, cores, device.grain) {
            Lesson::Next(units) => {
                held.units = units;
                self.learning = Some(learning);
                "the device is not known yet: another limit is measured"
            }
            Lesson::Known(knee) => {
                held.units = knee.units;
                held.range = Range::below(knee.much, cores);
                self.learning = None;
                self.learnt[mix(view.writes)] = Some(knee);
                "the device is known"
            }
        }
    }

    /// Whether the first limit made the fast tier faster.
    fn helped(&self, view: &View, held: &ActiveLimit) -> bool {
        let free = held.wider.unwrap_or(view.fast);
        view.fast.get() > free.get() * NOTICED
    }

    /// Between too narrow and too wide.
    fn seek(
        &mut self,
        cores: f64,
        view: &View,
        device: &Knee,
        held: &mut ActiveLimit,
    ) -> &'static str {
        let queue = device.rest * self.config.queued;
        let units = held.units;
        held.is_new = false;
        let narrower = held.narrower.take();
        let before = std::mem::replace(&mut held.outstanding, view.outstanding);
        let overflows = view.residency > queue && view.share > BLAME;
        if overflows && view.outstanding < before * DRAINS {
            return "requests from before the limit drain";
        }
        if overflows {
            held.wider = Some(view.fast);
            held.busy = None;
            held.range.too_much(units);
            held.units = match narrower {
                Some((before, ..)) => {
                    if units < before * NEAR {
                        held.range.just(before);
                    }
                    before
                }
                None => {
                    let to = held.range.narrower(units * TRIM);
                    steps::below(units, to, cores, device.grain)
                }
            };
            return "more requests are outstanding than the device serves: less";
        }
        if let Some((before, gave, fast)) = narrower {
            let gained = view.gives.get() > gave.get() * NOTICED;
            let harmed = view.fast.get() * HARMED < fast.get();
            if harmed || !gained {
                held.range.just(before);
                held.units = before;
                return "more brought no more, or slowed the fast tier: as before";
            }
        }
        let enough = device.gives * self.config.full;
        self.remembered[mix(view.writes)] = Some(units);
        if held.is_busy(view.gives, enough) {
            return "the device is busy, and the table has free entries";
        }
        held.range.too_little(units);
        let measured = device.gives.get() / device.units;
        let drawn = view.gives.get() / units;
        held.range.stretch(measured / drawn.max(f64::MIN_POSITIVE));
        // Below the knee, bandwidth grows with the running cores.
        let missing = device.gives.get() / view.gives.get().max(f64::MIN_POSITIVE);
        let to = units * missing.min(WIDEST_STEP);
        let wider = steps::above(units, held.range.wider(to), cores, device.grain);
        if !held.range.has_room_for(wider) {
            return "the device could serve more, but the next step was too much";
        }
        held.narrower = Some((units, view.gives, view.fast));
        held.units = wider;
        held.busy = None;
        "the device could serve more"
    }
}

/// The index of the mix.
fn mix(writes: f64) -> usize {
    (writes * (MIXES - 1) as f64)
        .round()
        .clamp(0.0, (MIXES - 1) as f64) as usize
}

impl Controller for Weir {
    fn observe(&mut self, readings: &Readings) -> Decision {
        let tenants = readings.tenants.len();
        if !readings.protected_busy() {
            self.held = None;
            self.learning = None;
            self.in_vain = 0;
            return Decision::free(tenants, Why::rule("no protected tenant runs"));
        }
        let (why, grain) = match View::of(readings, self.config.fast) {
            Some(view) => {
                let cores = f64::from(readings.restrained_cores());
                let (rule, target) = self.decide(cores, &view);
                let grain = self.device(&view).grain;
                (Why::compared(rule, view.residency, target), grain)
            }
            None => (
                Why::rule("as before: no readings of the slow tier"),
                self.config.step.map_or(Grain::Time, Grain::Wide),
            ),
        };
        let Some(held) = self.held else {
            return Decision::free(tenants, why);
        };
        share_units(readings, held.units, grain, why.at_level(1))
    }
}
