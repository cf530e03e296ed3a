//! Weir's own: hold as many requests to the slow tier outstanding as its device can serve, and no more.
//!
//! A device serves `peak` bytes a second as soon as its bandwidth-delay product is under way:
//! `peak x idle latency` (Little's law). Whatever cores ask for beyond that waits, and waits in the Table of
//! Requests, where everybody else's requests have to pass. So there is a range of running in which the device
//! is busy and the table is free. Where the device was measured alone, its knee is known, and is where the
//! first step goes; else it is got to know first (`learn`), once for each mix of reads and writes. From there the
//! hold is sought between what was too little (the device could give more) and what was too much (its queue grew, or
//! more brought no more), and stays.

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

/// What the controller is told of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct WeirConfig {
    /// Residency of a request for DRAM that nobody disturbs.
    pub fast: Nanos,
    /// Residency of a request for the slow tier at rest, if it was measured; learnt otherwise.
    pub slow: Option<Nanos>,
    /// The slow tier's knees in order of their writes, as far as they were measured.
    pub knees: Vec<Knee>,
    /// The table is short of entries once requests wait before it for more than this.
    pub wait: Nanos,
    /// Requests that stay so many times as long as at rest stand in a queue.
    pub queued: f64,
    /// Step of the hardware's bandwidth allocation, if it has any; a part of a core is a part of its time
    /// otherwise.
    pub step: Option<Share>,
    /// A device is busy with this share of what it gives at its knee: beside others, which wait before the table
    /// as well, cores draw a little less than alone.
    pub full: f64,
}

impl WeirConfig {
    /// Requests that stay four times as long as at rest stand in a queue that somebody else pays for.
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

/// A queue at a loaded device was seen to be eight to ten times its idle latency (MIKU section 3): the
/// first guess where nothing is known.
const LOADED: f64 = 8.0;
/// The table is full with this share of the entries that were ever seen in use.
const FULL: f64 = 0.9;
/// The slow tier is to blame only if it holds this share of the table.
const BLAME: f64 = 0.2;
/// A change of a tier's bandwidth by this factor is none by chance.
const NOTICED: f64 = 1.02;
/// A fast tier that gives less by this factor was harmed.
const HARMED: f64 = 1.03;
/// Another mix of reads and writes: what was learnt of the old one says nothing about it.
const OTHER_MIX: f64 = 0.15;
/// More than this share of lines is written by posted stores alone: others read each line that they write.
const POSTED: f64 = 0.6;
/// Mixes for which the hold that fitted is remembered, from reads alone to writes alone.
const MIXES: usize = 11;
/// A hold under which the device was busy stays until it is not for so many windows.
const PATIENCE: u32 = 4;
/// What is remembered of the windows before, in the mean of what a device gives.
const REMEMBERED: f64 = 0.75;
/// Windows for which nobody is held after a hold that helped nobody.
const IN_VAIN: u32 = 40;
/// Outstanding requests that are fewer than in the window before by this factor drain.
const DRAINS: f64 = 0.99;
/// What is left of a hold that was a little too much.
const TRIM: f64 = 0.92;
/// Between two holds that differ by less than this factor none is looked for.
const NEAR: f64 = 1.15;
/// Wider by at most this.
const WIDEST_STEP: f64 = 4.0;

/// The controller.
#[derive(Debug, Clone)]
pub struct Weir {
    config: WeirConfig,
    /// What those who may be held share; `None` for free.
    held: Option<ActiveLimit>,
    /// The hold that fitted last, by the mix of reads and writes.
    remembered: [Option<f64>; MIXES],
    /// Devices that were not measured, as they were got to know, by the mix.
    learnt: [Option<Knee>; MIXES],
    /// One that is being got to know.
    learning: Option<Learning>,
    /// Entries of the table, as far as they were seen in use.
    capacity: f64,
    /// Windows for which nobody is held, since it helped nobody.
    in_vain: u32,
}

/// A hold in force, and how it was come by.
#[derive(Debug, Clone, Copy)]
struct ActiveLimit {
    /// Cores' worth of running.
    units: f64,
    /// The mix that it is for.
    writes: f64,
    range: Range,
    /// Before the last step wider: the hold, and what the slow tier and the fast one gave.
    narrower: Option<(f64, GbPerSec, GbPerSec)>,
    /// Before the last step narrower: what the fast tier gave.
    wider: Option<GbPerSec>,
    /// What was outstanding in the window before.
    outstanding: f64,
    /// Whether nobody was held in the window before.
    is_new: bool,
    /// What the device gave in the mean since it was busy under this hold, if it was, ...
    busy: Option<GbPerSec>,
    /// ... and for how many windows it was not since.
    short: u32,
}

impl ActiveLimit {
    /// Whether the device is busy under this hold. What it gives differs from window to window, above all where
    /// rows of its DRAM are opened and closed again: one window says little against a hold that fitted.
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
    /// Everybody free.
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

    /// The device under the mix that is seen: as it was measured, else as it was got to know.
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

    /// What a part of a core is made of where that was not measured. Few cores keep few rows of a device's DRAM
    /// open; but of posted stores they put more under way than many that put each one seldom.
    fn grain(&self, writes: f64) -> Grain {
        match self.config.step {
            None => Grain::Time,
            Some(step) if writes > POSTED => Grain::Wide(step),
            Some(step) => Grain::Narrow(step),
        }
    }

    /// Whether requests of the slow tier fill the table, so that others wait before it; where the ingress
    /// queues are not counted, whether they stay far longer than at rest.
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
                return ("to hold somebody helped nobody", queue);
            }
            if !self.fills(view, &device) {
                return ("the table has room", queue);
            }
            self.held = self.first(cores, view, &device, true);
            return (
                "the slow tier fills the table: held to what its device serves",
                queue,
            );
        };
        if (held.writes - view.writes).abs() > OTHER_MIX {
            self.learning = None;
            self.held = self.first(cores, view, &device, false);
            return ("reads and writes are mixed otherwise: held anew", queue);
        }
        held.range.grow_older();
        if held.is_new && !self.helped(view, &held) {
            self.held = None;
            self.learning = None;
            self.in_vain = IN_VAIN;
            return ("to hold somebody helped nobody: let go", queue);
        }
        let rule = match self.learning {
            Some(learning) => self.learn(learning, cores, view, &device, &mut held),
            None => self.seek(cores, view, &device, &mut held),
        };
        self.held = (held.units < cores).then_some(held);
        (rule, queue)
    }

    /// Where to begin: at what fitted before, at the knee, or where a device is got to know. Nobody is held where
    /// all cores together do not reach it, nor while a device that is not known has less than it can serve.
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

    /// A device that was not measured is got to know.
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
                "the device is not known yet: what it gives under another hold"
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

    /// Whether the fast tier gained by the first hold.
    fn helped(&self, view: &View, held: &ActiveLimit) -> bool {
        let free = held.wider.unwrap_or(view.fast);
        view.fast.get() > free.get() * NOTICED
    }

    /// Between too little and too much.
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
            return "what was under way before drains";
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
            return "more is under way than the device serves: less";
        }
        if let Some((before, gave, fast)) = narrower {
            let gained = view.gives.get() > gave.get() * NOTICED;
            let harmed = view.fast.get() * HARMED < fast.get();
            if harmed || !gained {
                held.range.just(before);
                held.units = before;
                return "more brought no more, or cost the fast tier: as before";
            }
        }
        let enough = device.gives * self.config.full;
        self.remembered[mix(view.writes)] = Some(units);
        if held.is_busy(view.gives, enough) {
            return "the device is busy, and others have room";
        }
        held.range.too_little(units);
        let measured = device.gives.get() / device.units;
        let drawn = view.gives.get() / units;
        held.range.stretch(measured / drawn.max(f64::MIN_POSITIVE));
        // Below the knee bandwidth grows with those who run.
        let missing = device.gives.get() / view.gives.get().max(f64::MIN_POSITIVE);
        let to = units * missing.min(WIDEST_STEP);
        let wider = steps::above(units, held.range.wider(to), cores, device.grain);
        if !held.range.has_room_for(wider) {
            return "the device could serve more, but a step more was too much";
        }
        held.narrower = Some((units, view.gives, view.fast));
        held.units = wider;
        held.busy = None;
        "the device could serve more"
    }
}

/// Which of the remembered mixes it is.
fn mix(writes: f64) -> usize {
    (writes * (MIXES - 1) as f64)
        .round()
        .clamp(0.0, (MIXES - 1) as f64) as usize
}

impl Controller for Weir {
    fn name(&self) -> &'static str {
        "weir"
    }

    fn observe(&mut self, readings: &Readings) -> Decision {
        let tenants = readings.tenants.len();
        if !readings.protected_busy() {
            self.held = None;
            self.learning = None;
            self.in_vain = 0;
            return Decision::free(tenants, Why::rule("nobody to protect runs"));
        }
        let (why, grain) = match View::of(readings, self.config.fast) {
            Some(view) => {
                let cores = f64::from(readings.restrained_cores());
                let (rule, target) = self.decide(cores, &view);
                let grain = self.device(&view).grain;
                (Why::compared(rule, view.residency, target), grain)
            }
            None => (
                Why::rule("as before: nothing seen of the slow tier"),
                self.config.step.map_or(Grain::Time, Grain::Wide),
            ),
        };
        let Some(held) = self.held else {
            return Decision::free(tenants, why);
        };
        share_units(readings, held.units, grain, why.at_level(1))
    }
}
