//! Weir's own controller: it keeps as many requests to the slow tier outstanding as its device can serve, and
//! no more.
//!
//! A device serves `peak` bytes a second as soon as its bandwidth-delay product is outstanding: `peak x idle
//! latency` (Little's law). Further requests only wait, and they wait in the Table of Requests, which the
//! requests of all other tenants must pass. So there is a range of running in which the device is busy and
//! the table is free. If the device was measured alone, its knee is known, and the first step goes there.
//! That knee is of one stream: if it leaves the table full, or if it was not measured, the device is learned
//! from the tenants (`learn`), once for each mix of reads and writes. From there the controller searches
//! between limits that were too narrow (the device could give more) and limits that were too wide (its queue
//! grew, or more brought no more), and then stays. A step is kept if less is missing of what both
//! tiers are to keep or, where nothing is, if one gains a larger part than the other loses; if the limit that was found is
//! worth less than none by the same measure, it is removed.

mod active_limit;
mod learn;
mod range;
mod running;
mod steps;
mod tuning;
mod view;

pub use tuning::Tuning;

use weir_model::units::{GbPerSec, Nanos};

use super::division::Division;
use crate::controller::{Controller, Decision, Why};
use crate::guard::Keep;
use crate::knee::Knee;
use crate::limit::{Grain, Limit, Share};
use crate::readings::Readings;
use active_limit::{ActiveLimit, Trial};
use learn::{Learning, Lesson};
use range::Range;
use running::RunningTenants;
use steps::Steps;
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
    /// Step of the hardware's bandwidth allocation, if it has any; otherwise a part of a core is a part of
    /// its time.
    pub step: Option<Share>,
    /// What both tiers are to keep.
    pub keep: Keep,
    /// The constants.
    pub tuning: Tuning,
}

impl WeirConfig {
    /// Only these residencies are known, and there is no bandwidth allocation.
    pub fn new(fast: Nanos, slow: Option<Nanos>) -> Self {
        Self {
            fast,
            slow,
            knees: Vec::new(),
            step: None,
            keep: Keep::default(),
            tuning: Tuning::default(),
        }
    }
}

/// Mixes for which the last good limit is stored, from reads alone to writes alone.
const MIXES: usize = 11;

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
    /// The tenants that run.
    running: RunningTenants,
    /// The limits in force.
    limits: Vec<Limit>,
    /// The division of the limit among tenants; what it found of them is true for as long as they run.
    division: Division,
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
            running: RunningTenants::default(),
            limits: Vec::new(),
            division: Division::default(),
        }
    }

    /// The device under the present mix: as learned from these tenants, otherwise as measured with one stream.
    fn device(&mut self, view: &View) -> Knee {
        self.capacity = self.capacity.max(view.entries);
        let given = || Knee::of_mix(&self.config.knees, view.writes);
        if let Some(knee) = self.learnt(view.writes).or_else(given) {
            return knee;
        }
        let rest = self
            .rest()
            .unwrap_or(view.residency / self.config.tuning.loaded);
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

    /// The shortest residency without load that is known; it hardly depends on the mix.
    fn rest(&self) -> Option<Nanos> {
        let knees = self.learnt.iter().flatten().chain(&self.config.knees);
        let known = knees.map(|knee| knee.rest).chain(self.config.slow);
        known.reduce(|a, b| if b < a { b } else { a })
    }

    /// The device as it was learned for the nearest mix, unless that is another one.
    fn learnt(&self, writes: f64) -> Option<Knee> {
        let off = |knee: &Knee| (knee.writes - writes).abs();
        let near = self.learnt.iter().flatten().copied();
        let near = near.filter(|knee| off(knee) <= self.config.tuning.other_mix);
        near.min_by(|a, b| off(a).total_cmp(&off(b)))
    }

    /// The grain of a part of a core, if it was not measured. Few cores keep few rows of a device's DRAM
    /// open; but few cores with posted stores keep more requests outstanding than many cores that each issue
    /// rarely.
    fn grain(&self, writes: f64) -> Grain {
        match self.config.step {
            None => Grain::Time,
            Some(step) if writes > self.config.tuning.posted => Grain::Wide(step),
            Some(step) => Grain::Narrow(step),
        }
    }

    /// Whether requests of the slow tier fill the table, so that others wait before it; if the ingress queues
    /// are not counted, whether requests stay far longer than without load.
    fn fills(&self, view: &View, device: &Knee) -> bool {
        let tuning = &self.config.tuning;
        let crowded = match view.wait {
            Some(wait) => {
                wait > self.config.fast * tuning.wait
                    && view.entries > tuning.full_table * self.capacity
            }
            None => view.residency > device.rest * tuning.queued,
        };
        crowded && view.share > tuning.blame
    }

    /// Whether the device has a queue that slows other tenants.
    fn overflows(&self, view: &View, device: &Knee) -> bool {
        let tuning = &self.config.tuning;
        view.residency > device.rest * tuning.queued && view.share > tuning.blame
    }

    /// Whether the requests in excess of those that may wait drain, of `before` in the window before: noticeably, since
    /// a queue that is hardly too long seems to drain by chance.
    fn drains(&self, view: &View, before: f64, device: &Knee) -> bool {
        let tuning = &self.config.tuning;
        // Little's law, at this bandwidth.
        let may = view.outstanding * (device.rest * tuning.queued / view.residency);
        let has_shrunk = before > view.outstanding * tuning.noticed;
        has_shrunk && view.outstanding - may < (before - view.outstanding) * tuning.drains
    }

    fn decide(&mut self, cores: f64, view: &View, has_grown: bool) -> (&'static str, Nanos) {
        let device = self.device(view);
        let queue = device.rest * self.config.tuning.queued;
        let are_others = self.running.are_others();
        let Some(mut held) = self.held else {
            if self.in_vain > 0 {
                self.in_vain -= 1;
                return ("a limit did not help", queue);
            }
            // Other parts of a processor than the table may be full; of a device that is not known no queue
            // is known.
            let is_queued = device.units.is_finite() && self.overflows(view, &device);
            if !self.fills(view, &device) && !is_queued {
                return ("the table has free entries", queue);
            }
            self.held = self.first(cores, view, &device, None);
            return (
                "the slow tier fills the table: limited to what its device serves",
                queue,
            );
        };
        // With another grain, as many units are another limit.
        let device = Knee {
            grain: held.grain,
            ..device
        };
        held.age = held.age.saturating_add(1);
        held.is_stale |= are_others;
        if has_grown && !are_others {
            self.held = Some(held);
            return (
                "a tenant without a limit drew much: it is limited, too",
                queue,
            );
        }
        if held.is_stale && held.age >= self.config.tuning.look {
            self.held = None;
            self.learning = None;
            // What was too wide for others may not be for these.
            for knee in self.learnt.iter_mut().flatten() {
                knee.much = None;
            }
            return ("other tenants run: a window without limits", queue);
        }
        if held.is_moved {
            held.writes = view.writes;
        } else if (held.writes - view.writes).abs() > self.config.tuning.other_mix {
            self.learning = None;
            let device = self.device(view);
            self.held = self.first(cores, view, &device, Some(&held));
            return ("the mix of reads and writes changed: a new limit", queue);
        }
        if are_others {
            held.range = Range::below(device.much, cores);
            held.before = None;
            // The window without limits was that of others.
            held.trial = Trial::Ended;
        }
        held.range.grow_older(self.config.tuning.forget);
        let rule = match (self.learning, held.trial) {
            (Some(learning), _) => self.learn(learning, cores, view, &device, &mut held),
            (None, Trial::Begun) => self.judge(cores, view, &device, &mut held),
            (None, _) => self.seek(cores, view, &device, &mut held),
        };
        let Some(rule) = rule else {
            self.held = None;
            self.learning = None;
            self.in_vain = self.config.tuning.in_vain;
            return ("the limit did not help: removed", queue);
        };
        self.held = (held.units < cores).then_some(held);
        (rule, queue)
    }

    /// The first limit: the last good one, the knee, or the first one for learning. An unknown device is not
    /// limited while it has fewer requests than it can serve. `last` is the limit in force, if there is one.
    fn first(
        &mut self,
        cores: f64,
        view: &View,
        device: &Knee,
        last: Option<&ActiveLimit>,
    ) -> Option<ActiveLimit> {
        let steps = Steps {
            cores,
            grain: device.grain,
            tuning: &self.config.tuning,
        };
        let known = self.remembered[mix(view.writes)].unwrap_or(device.units);
        let units = if known.is_finite() && steps.nearest(known) < cores {
            steps.nearest(known)
        } else if last.is_none() {
            // Where all cores of these tenants do not reach the knee, they fill the table nevertheless.
            self.learning = Some(Learning::from_free(view, self.rest()));
            Learning::first(&steps)
        } else {
            return None;
        };
        (units < cores).then_some(ActiveLimit {
            units,
            grain: device.grain,
            writes: view.writes,
            is_moved: true,
            range: Range::below(device.much, cores),
            before: None,
            free: last.map_or(*view, |last| last.free),
            trial: last.map_or(Trial::Begun, |_| Trial::Ended),
            fast: GbPerSec(0.0),
            slow: GbPerSec(0.0),
            outstanding: last.map_or(view.outstanding, |_| f64::INFINITY),
            is_stale: last.is_some_and(|last| last.is_stale),
            age: last.map_or(0, |last| last.age),
            busy: None,
            short: 0,
        })
    }

    /// Learns a device of which nothing is known, or not enough. `None` if the first limit, which is narrow,
    /// empties the table and brings the fast tier nothing.
    fn learn(
        &mut self,
        mut learning: Learning,
        cores: f64,
        view: &View,
        device: &Knee,
        held: &mut ActiveLimit,
    ) -> Option<&'static str> {
        let is_full = self.fills(view, device);
        if learning.is_new() && !is_full && !self.gained(view.fast, held.free.fast) {
            return None;
        }
        let steps = Steps {
            cores,
            grain: device.grain,
            tuning: &self.config.tuning,
        };
        match learning.observe(view, held.units, &steps) {
            Lesson::Next(units) => {
                held.units = units;
                self.learning = Some(learning);
                Some("the device is not known yet: another limit is measured")
            }
            Lesson::Known(knee) => {
                held.units = knee.units;
                held.range = Range::below(knee.much, cores);
                held.fast = learning.fast();
                self.learning = None;
                // The mix without limits is another one, if the mixes of tenants differ.
                let (free, held) = (learning.writes(), view.writes);
                for writes in [free, held] {
                    self.learnt[mix(writes)] = Some(Knee { writes, ..knee });
                }
                Some("the device is known")
            }
        }
    }

    /// The first limit of a known device. `None` if it empties the table and brings the fast tier nothing.
    fn judge(
        &mut self,
        cores: f64,
        view: &View,
        device: &Knee,
        held: &mut ActiveLimit,
    ) -> Option<&'static str> {
        let tuning = self.config.tuning;
        let overflows = self.overflows(view, device);
        let before = std::mem::replace(&mut held.outstanding, view.outstanding);
        if overflows && self.drains(view, before, device) {
            return Some("requests from before the limit drain");
        }
        let has_gained = self.gained(view.fast, held.free.fast);
        let is_full = overflows || (self.fills(view, device) && !has_gained);
        let is_given = held.fast.get() == 0.0;
        if is_full && is_given {
            // The knee of one stream is not that of these tenants.
            let steps = Steps {
                cores,
                grain: device.grain,
                tuning: &tuning,
            };
            self.learning = Some(Learning::from_free(&held.free, self.rest()));
            held.units = Learning::first(&steps);
            return Some("the table is still full at the knee: the device is learned");
        }
        if !has_gained {
            return None;
        }
        held.trial = Trial::Gained;
        self.seek(cores, view, device, held)
    }

    /// The search has ended here. `None` if this limit is worth less than none.
    fn ended(
        &self,
        view: &View,
        held: &mut ActiveLimit,
        rule: &'static str,
    ) -> Option<&'static str> {
        let most = held.most();
        let is_worse = held.trial == Trial::Gained
            && !view.is_better_than(&held.free, &most, &self.config.keep);
        held.trial = Trial::Ended;
        (!is_worse).then_some(rule)
    }

    /// Whether a bandwidth is more than another, and not by chance.
    fn gained(&self, after: GbPerSec, before: GbPerSec) -> bool {
        after.get() > before.get() * self.config.tuning.noticed
    }

    /// Between too narrow and too wide.
    fn seek(
        &mut self,
        cores: f64,
        view: &View,
        device: &Knee,
        held: &mut ActiveLimit,
    ) -> Option<&'static str> {
        let tuning = self.config.tuning;
        let steps = Steps {
            cores,
            grain: device.grain,
            tuning: &tuning,
        };
        let units = held.units;
        let last = held.before.take();
        let outstanding = std::mem::replace(&mut held.outstanding, view.outstanding);
        if held.is_moved {
            held.busy = None;
        }
        held.fast = GbPerSec(held.fast.get().max(view.fast.get()));
        held.slow = GbPerSec(held.slow.get().max(view.slow.get()));
        let most = held.most();
        let overflows = self.overflows(view, device);
        if overflows && self.drains(view, outstanding, device) {
            held.before = last;
            return Some("requests from before the limit drain");
        }
        if overflows {
            held.busy = None;
            held.range.too_much(units);
            held.units = match last {
                Some((before, _)) if before < units => {
                    if units < before * tuning.near {
                        held.range.just(before);
                    }
                    before
                }
                _ => {
                    // A narrower limit that left the queue as it was does not bind.
                    let part = if last.is_some() {
                        tuning.least_part
                    } else {
                        tuning.trim
                    };
                    let to = held.range.narrower(units, units * part);
                    held.before = Some((units, *view));
                    steps.below(units, to)
                }
            };
            return Some("more requests are outstanding than the device serves: less");
        }
        if let Some((before, seen)) = last {
            if before < units {
                let is_harmed = view.fast.get() * tuning.harmed < held.fast.get();
                let wider = steps.above(units, units);
                let is_same = view.outstanding < seen.outstanding * tuning.noticed && !is_harmed;
                if is_same && wider < cores && held.range.has_room_for(wider) {
                    held.range.too_little(units);
                    held.before = last;
                    held.units = wider;
                    return Some("this let no more requests through: the next step");
                }
                if !self.gained(view.gives, seen.gives)
                    || (is_harmed && !view.is_better_than(&seen, &most, &self.config.keep))
                {
                    if is_harmed && units > before * tuning.near {
                        held.range.too_much(units);
                    } else {
                        held.range.just(before);
                    }
                    held.units = before;
                    return Some("more brought no more, or slowed the fast tier: as before");
                }
            } else if !self.gained(view.fast, seen.fast)
                || !view.is_better_than(&seen, &most, &self.config.keep)
            {
                held.range.narrowest(units);
                held.units = before;
                return Some("less brought the fast tier no more: as before");
            } else {
                held.range.too_much(before);
            }
        }
        // A shorter wait costs the fast tier less than a narrower step costs the slow tier.
        let shortest = self.config.fast * (1.0 - tuning.trim);
        let costs = view.wait.is_some_and(|wait| wait > shortest);
        if costs && self.fills(view, device) && held.range.may_narrow() {
            let part = (1.0 - view.excess).clamp(tuning.least_part, tuning.trim);
            let to = steps.below(units, held.range.narrower(units, units * part));
            if to < units {
                held.before = Some((units, *view));
                held.units = to;
                held.busy = None;
                return Some("the table is still full: less");
            }
        }
        // Without limits the device gave this much, whatever it was measured to give.
        let is_other = (held.free.writes - view.writes).abs() > tuning.other_mix;
        let gives = match is_other && device.units.is_finite() {
            true => device.gives,
            false => GbPerSec(device.gives.get().max(held.free.gives.get())),
        };
        let enough = gives * tuning.busy;
        self.remembered[mix(view.writes)] = Some(units);
        if held.is_busy(view.gives, enough, &tuning) {
            let rule = "the device is busy, and the table has free entries";
            return self.ended(view, held, rule);
        }
        held.range.too_little(units);
        let measured = device.gives.get() / device.units;
        let drawn = view.gives.get() / units;
        held.range
            .stretch(measured / drawn.max(f64::MIN_POSITIVE), tuning.slower);
        // Below the knee, bandwidth grows with the running cores.
        let missing = gives.get() / view.gives.get().max(f64::MIN_POSITIVE);
        let to = units * missing.min(tuning.widest);
        let wider = steps.above(units, held.range.wider(to));
        if !held.range.has_room_for(wider) {
            let rule = "the device could serve more, but the next step was too much";
            return self.ended(view, held, rule);
        }
        held.before = Some((units, *view));
        held.units = wider;
        held.busy = None;
        Some("the device could serve more")
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
        let why = match View::of(readings, self.config.fast) {
            Some(view) => {
                let is_limited = self.held.is_some();
                if self.running.observe(readings, is_limited, self.in_vain > 0) {
                    self.in_vain = 0;
                }
                let cores = f64::from(readings.restrained_cores());
                let wait = view.wait.filter(|_| self.held.is_none());
                let has_grown = self.division.has_grown(readings, self.config.tuning.small);
                let (rule, queue) = self.decide(cores, &view, has_grown);
                match wait {
                    // What decides while no tenant is limited, see `fills`.
                    Some(wait) => Why {
                        wait: Some(wait),
                        target: Some(self.config.fast * self.config.tuning.wait),
                        ..Why::rule(rule)
                    },
                    None => Why::compared(rule, view.residency, queue),
                }
            }
            None => Why::rule("as before: no readings of the slow tier"),
        };
        let Some(held) = self.held else {
            self.limits.clear();
            return Decision::free(tenants, why);
        };
        let small = self.config.tuning.small;
        let decision =
            self.division
                .share(readings, held.units, held.grain, small, why.at_level(1));
        let is_moved = decision.limits != self.limits;
        self.limits.clone_from(&decision.limits);
        self.held = Some(ActiveLimit { is_moved, ..held });
        decision
    }
}
