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

mod active_limit;
mod learn;
mod range;
mod running;
mod steps;
mod tuning;
mod view;

pub use tuning::Tuning;

use weir_model::units::Nanos;

use super::division::Division;
use crate::controller::{Controller, Decision, Why};
use crate::knee::Knee;
use crate::limit::{Grain, Limit, Share};
use crate::readings::Readings;
use active_limit::ActiveLimit;
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
    /// The division of the limit among tenants.
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

    /// The device under the present mix: as measured, otherwise as learned.
    fn device(&mut self, view: &View) -> Knee {
        self.capacity = self.capacity.max(view.entries);
        let known = Knee::of_mix(&self.config.knees, view.writes);
        if let Some(knee) = known.or_else(|| self.learnt(view.writes)) {
            return knee;
        }
        let rest = self
            .config
            .slow
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

    fn decide(&mut self, cores: f64, view: &View) -> (&'static str, Nanos) {
        let device = self.device(view);
        let queue = device.rest * self.config.tuning.queued;
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
        if held.is_moved {
            held.writes = view.writes;
        } else if (held.writes - view.writes).abs() > self.config.tuning.other_mix {
            self.learning = None;
            self.held = self.first(cores, view, &device, false);
            return ("the mix of reads and writes changed: a new limit", queue);
        }
        if self.running.are_others() {
            held.seek_again(&device, cores);
        }
        held.range.grow_older(self.config.tuning.forget);
        if held.is_new && !self.helped(view, &held) {
            self.held = None;
            self.learning = None;
            self.in_vain = self.config.tuning.in_vain;
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
        let steps = Steps {
            cores,
            grain: device.grain,
            tuning: &self.config.tuning,
        };
        let units = if device.units.is_finite() {
            let units = self.remembered[mix(view.writes)].unwrap_or(device.units);
            steps.nearest(units)
        } else if is_new {
            self.learning = Some(Learning::from_free(view));
            Learning::first(&steps)
        } else {
            return None;
        };
        (units < cores).then_some(ActiveLimit {
            units,
            writes: view.writes,
            is_moved: true,
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
        let steps = Steps {
            cores,
            grain: device.grain,
            tuning: &self.config.tuning,
        };
        match learning.observe(view, held.units, &steps) {
            Lesson::Next(units) => {
                held.units = units;
                self.learning = Some(learning);
                "the device is not known yet: another limit is measured"
            }
            Lesson::Known(knee) => {
                held.units = knee.units;
                held.range = Range::below(knee.much, cores);
                self.learning = None;
                // The mix without limits is another one, if the mixes of tenants differ.
                let (free, held) = (learning.writes(), view.writes);
                for writes in [free, held] {
                    self.learnt[mix(writes)] = Some(Knee { writes, ..knee });
                }
                "the device is known"
            }
        }
    }

    /// Whether the first limit made the fast tier faster.
    fn helped(&self, view: &View, held: &ActiveLimit) -> bool {
        let free = held.wider.unwrap_or(view.fast);
        view.fast.get() > free.get() * self.config.tuning.noticed
    }

    /// Between too narrow and too wide.
    fn seek(
        &mut self,
        cores: f64,
        view: &View,
        device: &Knee,
        held: &mut ActiveLimit,
    ) -> &'static str {
        let tuning = self.config.tuning;
        let steps = Steps {
            cores,
            grain: device.grain,
            tuning: &tuning,
        };
        let queue = device.rest * tuning.queued;
        let units = held.units;
        held.is_new = false;
        let narrower = held.narrower.take();
        let before = std::mem::replace(&mut held.outstanding, view.outstanding);
        let overflows = view.residency > queue && view.share > tuning.blame;
        if overflows && view.outstanding < before * tuning.drains {
            return "requests from before the limit drain";
        }
        if overflows {
            held.wider = Some(view.fast);
            held.busy = None;
            held.range.too_much(units);
            held.units = match narrower {
                Some((before, ..)) => {
                    if units < before * tuning.near {
                        held.range.just(before);
                    }
                    before
                }
                None => {
                    let to = held.range.narrower(units * tuning.trim);
                    steps.below(units, to)
                }
            };
            return "more requests are outstanding than the device serves: less";
        }
        if let Some((before, gave, fast)) = narrower {
            let gained = view.gives.get() > gave.get() * tuning.noticed;
            let harmed = view.fast.get() * tuning.harmed < fast.get();
            if harmed || !gained {
                held.range.just(before);
                held.units = before;
                return "more brought no more, or slowed the fast tier: as before";
            }
        }
        let enough = device.gives * tuning.busy;
        self.remembered[mix(view.writes)] = Some(units);
        if held.is_busy(view.gives, enough, &tuning) {
            return "the device is busy, and the table has free entries";
        }
        held.range.too_little(units);
        let measured = device.gives.get() / device.units;
        let drawn = view.gives.get() / units;
        held.range
            .stretch(measured / drawn.max(f64::MIN_POSITIVE), tuning.slower);
        // Below the knee, bandwidth grows with the running cores.
        let missing = device.gives.get() / view.gives.get().max(f64::MIN_POSITIVE);
        let to = units * missing.min(tuning.widest);
        let wider = steps.above(units, held.range.wider(to));
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
                if self.running.observe(readings, self.in_vain > 0) {
                    self.in_vain = 0;
                }
                let cores = f64::from(readings.restrained_cores());
                let wait = view.wait.filter(|_| self.held.is_none());
                let (rule, queue) = self.decide(cores, &view);
                let why = match wait {
                    // What decides while no tenant is limited, see `fills`.
                    Some(wait) => Why {
                        wait: Some(wait),
                        target: Some(self.config.fast * self.config.tuning.wait),
                        ..Why::rule(rule)
                    },
                    None => Why::compared(rule, view.residency, queue),
                };
                (why, self.device(&view).grain)
            }
            None => (
                Why::rule("as before: no readings of the slow tier"),
                self.config.step.map_or(Grain::Time, Grain::Wide),
            ),
        };
        let Some(held) = self.held else {
            self.division = Division::default();
            self.limits.clear();
            return Decision::free(tenants, why);
        };
        let small = self.config.tuning.small;
        let decision = self
            .division
            .share(readings, held.units, grain, small, why.at_level(1));
        let is_moved = decision.limits != self.limits;
        self.limits.clone_from(&decision.limits);
        self.held = Some(ActiveLimit { is_moved, ..held });
        decision
    }
}
