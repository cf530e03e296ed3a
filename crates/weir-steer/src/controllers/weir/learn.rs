//! Learns a device that was not measured alone.
//!
//! While more is requested than the device can serve, its bandwidth is the most that it can give. A limit
//! under which the device is surely not busy shows the unloaded residency of a request, the bandwidth of the
//! fast tier without interference, and the bandwidth of a core's worth of running. Bandwidth grows with the
//! running cores until the device is busy, so the next limit can be computed.

use weir_model::units::{GbPerSec, Nanos};

use super::Tuning;
use super::steps::Steps;
use super::view::View;
use crate::knee::Knee;
use crate::limit::Grain;

/// The values learned so far.
#[derive(Debug, Clone, Copy)]
pub struct Learning {
    /// The device's bandwidth without limits, and the residency of a request.
    full: GbPerSec,
    loaded: Nanos,
    /// The share of writes without limits.
    writes: f64,
    /// The most bandwidth of the fast tier while a tenant was limited.
    fast: GbPerSec,
    /// The shortest residency without a queue.
    rest: Option<Nanos>,
    /// The widest limit without one.
    little: Option<Fits>,
    /// The narrowest limit with a queue.
    much: Option<f64>,
    /// The limit of the window before, and that window, if it had a queue.
    queued: Option<(f64, View)>,
    /// A limit under which the device was busy while its unloaded residency was not known, and that window.
    doubted: Option<(f64, View)>,
    windows: u32,
}

/// A limit under which the device has no queue, or one that no limit makes shorter.
#[derive(Debug, Clone, Copy)]
struct Fits {
    units: f64,
    gives: GbPerSec,
    residency: Nanos,
}

impl Fits {
    fn of(units: f64, view: &View) -> Self {
        Self {
            units,
            gives: view.gives,
            residency: view.residency,
        }
    }
}

/// The result of a window.
pub enum Lesson {
    /// Apply this limit, and observe again.
    Next(f64),
    /// The device is known.
    Known(Knee),
}

impl Learning {
    /// Begins with a window in which no tenant was limited and the slow tier filled the table, and the unloaded
    /// residency, if it is known.
    pub fn from_free(view: &View, rest: Option<Nanos>) -> Self {
        Self {
            full: view.gives,
            loaded: view.residency,
            writes: view.writes,
            fast: GbPerSec(0.0),
            rest,
            little: None,
            much: None,
            queued: None,
            doubted: None,
            windows: 0,
        }
    }

    /// The share of writes without limits.
    pub fn writes(&self) -> f64 {
        self.writes
    }

    /// Whether no limit was observed yet.
    pub fn is_new(&self) -> bool {
        self.windows == 0
    }

    /// The most bandwidth of the fast tier while a tenant was limited.
    pub fn fast(&self) -> GbPerSec {
        self.fast
    }

    /// The first limit.
    pub fn first(steps: &Steps<'_>) -> f64 {
        let least = match steps.grain {
            Grain::Time => 1.0,
            Grain::Wide(step) | Grain::Narrow(step) => step.get(),
        };
        steps.nearest((steps.cores * steps.tuning.probe).max(least))
    }

    /// A window under a limit.
    pub fn observe(&mut self, view: &View, units: f64, steps: &Steps<'_>) -> Lesson {
        let (tuning, grain) = (steps.tuning, steps.grain);
        self.windows += 1;
        if self.is_queued(view, tuning) {
            // One core can fill a small device. With less of its time it fills the queue as far, and less often.
            if let Some((wider, seen)) = self.queued.replace((units, *view))
                && is_only_slower(view, &seen, tuning)
            {
                self.fast = GbPerSec(self.fast.get().max(seen.fast.get()));
                self.much = None;
                self.little = Some(Fits::of(wider, &seen));
                return self.known(view, wider, grain);
            }
            self.much = Some(self.much.map_or(units, |much| much.min(units)));
            let to = self.between().unwrap_or(0.5 * units);
            let next = steps.below(units, to);
            return match self.is_untried(next, tuning) && next < units {
                true => Lesson::Next(next),
                false => self.known(view, next, grain),
            };
        }
        self.queued = None;
        let is_busy = view.gives >= self.full * tuning.learn_busy;
        if self.rest.is_none() && is_busy && self.doubted.is_none() {
            // Requests may wait in a queue, though a shorter one than without limits: half of the limit shows it.
            let next = steps.below(units, 0.5 * units);
            if next < units {
                self.doubted = Some((units, *view));
                return Lesson::Next(next);
            }
        }
        self.rest = Some(self.rest.map_or(view.residency, |r| r.min(view.residency)));
        self.fast = GbPerSec(self.fast.get().max(view.fast.get()));
        self.full = GbPerSec(self.full.get().max(view.gives.get()));
        if self.little.is_none_or(|so_far| view.gives > so_far.gives) {
            self.little = Some(Fits::of(units, view));
        }
        if let Some((wider, seen)) = self.doubted.take() {
            if self.is_queued(&seen, tuning) {
                self.much = Some(wider);
            } else {
                self.little = Some(Fits::of(wider, &seen));
                return self.known(&seen, wider, grain);
            }
        }
        if is_busy {
            return self.known(view, units, grain);
        }
        let missing = self.full.get() * tuning.aim / view.gives.get().max(f64::MIN_POSITIVE);
        let to = units * missing.min(tuning.learn_widest);
        let to = match self.between() {
            Some(between) => to.min(between),
            None => to,
        };
        let next = steps.above(units, to);
        // Whole cores bound the number of outstanding requests; an allocation bounds their rate, and a rate
        // slightly above the service rate fills every queue.
        let expected = view.gives.get() * next / units;
        let is_too_much = grain != Grain::Time
            && view.gives >= self.full * tuning.near_enough
            && expected > self.full.get() * tuning.beyond;
        match self.is_untried(next, tuning) && next < steps.cores && !is_too_much {
            true => Lesson::Next(next),
            false => self.known(view, units, grain),
        }
    }

    /// Whether requests wait in a queue, or others were harmed.
    fn is_queued(&self, view: &View, tuning: &Tuning) -> bool {
        match self.rest {
            Some(rest) => {
                view.residency > rest * tuning.learn_queued
                    || view.fast.get() * tuning.learn_harmed < self.fast.get()
            }
            None => {
                view.gives >= self.full * tuning.learn_busy
                    && view.residency > self.loaded * tuning.as_before
            }
        }
    }

    /// Half-way between a limit without a queue and one with a queue.
    fn between(&self) -> Option<f64> {
        Some(0.5 * (self.little?.units + self.much?))
    }

    /// Whether there is an untried limit between the known ones, and time to try it.
    fn is_untried(&self, units: f64, tuning: &Tuning) -> bool {
        self.windows < tuning.learn_patience
            && self.much.is_none_or(|much| units < much)
            && self.little.is_none_or(|little| units > little.units)
    }

    /// The values that are known now; `units` if every limit so far had a queue.
    fn known(&self, view: &View, units: f64, grain: Grain) -> Lesson {
        let fits = self.little.unwrap_or(Fits::of(units, view));
        Lesson::Known(Knee {
            writes: view.writes,
            rest: self.rest.unwrap_or(view.residency),
            residency: fits.residency,
            gives: fits.gives,
            units: fits.units,
            much: self.much,
            grain,
        })
    }
}

/// Whether a limit brought nothing but less bandwidth of the slow tier than the one before.
fn is_only_slower(view: &View, before: &View, tuning: &Tuning) -> bool {
    let noticed = tuning.noticed;
    view.residency * noticed > before.residency
        && view.gives * noticed < before.gives
        && view.fast < before.fast * noticed
}
