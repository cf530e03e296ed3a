//! Getting to know a device that was not measured alone.
//!
//! While it has more than it can serve, what it gives is all that it can give. A hold with which it is surely not
//! busy shows what it takes for a request at rest, what the fast tier gives undisturbed, and what a core's worth of
//! running draws: bandwidth grows with those who run until the device is busy, so that the next hold is known.

use weir_model::units::{GbPerSec, Nanos};

use super::steps;
use super::view::View;
use crate::knee::Knee;
use crate::limit::Grain;

/// The first hold, of all cores: most devices are not busy with it, and none gives so little that nothing is seen.
const PROBE: f64 = 1.0 / 32.0;
/// A device is busy with this share of all that it can give ...
const BUSY: f64 = 0.95;
/// ... and this share is aimed at.
const AIM: f64 = 0.99;
/// From this share on it is near enough if one step more were to bring more than it can give, by this factor.
const NEAR: f64 = 0.9;
const BEYOND: f64 = 1.05;
/// Wider by at most this in one window.
const WIDEST_STEP: f64 = 8.0;
/// Requests that stay so many times as long as at rest stand in a queue.
const QUEUED: f64 = 3.0;
/// Before it is known how long they stay at rest: those that stay as long as this part of what they stayed while
/// everybody was free.
const AS_BEFORE: f64 = 0.4;
/// A fast tier that gives less by this factor was harmed.
const HARMED: f64 = 1.06;
/// Windows after which the best so far is good enough.
const PATIENCE: u32 = 8;

/// What is known so far.
#[derive(Debug, Clone, Copy)]
pub struct Learning {
    /// What the device gave while everybody was free, and how long a request stayed.
    full: GbPerSec,
    loaded: Nanos,
    /// What the fast tier gave at most while somebody was held.
    fast: GbPerSec,
    /// The shortest residency without a queue.
    rest: Option<Nanos>,
    /// The widest hold without one.
    little: Option<Fits>,
    /// The narrowest with one.
    much: Option<f64>,
    windows: u32,
}

/// A hold under which the device has no queue.
#[derive(Debug, Clone, Copy)]
struct Fits {
    units: f64,
    gives: GbPerSec,
    residency: Nanos,
}

/// What comes of a window.
pub enum Lesson {
    /// Hold to this, and look again.
    Next(f64),
    /// The device is known.
    Known(Knee),
}

impl Learning {
    /// Begins with a window in which nobody was held and the slow tier filled the table.
    pub fn from_free(view: &View) -> Self {
        Self {
            full: view.gives,
            loaded: view.residency,
            fast: GbPerSec(0.0),
            rest: None,
            little: None,
            much: None,
            windows: 0,
        }
    }

    /// The first hold.
    pub fn first(cores: f64, grain: Grain) -> f64 {
        let least = match grain {
            Grain::Time => 1.0,
            Grain::Wide(step) | Grain::Narrow(step) => step.get(),
        };
        steps::nearest((cores * PROBE).max(least), cores, grain)
    }

    /// A window under a hold.
    pub fn observe(&mut self, view: &View, units: f64, cores: f64, grain: Grain) -> Lesson {
        self.windows += 1;
        if self.is_queued(view) {
            self.much = Some(self.much.map_or(units, |much| much.min(units)));
            let to = self.between().unwrap_or(0.5 * units);
            let next = steps::below(units, to, cores, grain);
            return match self.is_new(next) && next < units {
                true => Lesson::Next(next),
                false => self.known(view, next, grain),
            };
        }
        self.rest = Some(self.rest.map_or(view.residency, |r| r.min(view.residency)));
        self.fast = GbPerSec(self.fast.get().max(view.fast.get()));
        self.full = GbPerSec(self.full.get().max(view.gives.get()));
        if self.little.is_none_or(|so_far| view.gives > so_far.gives) {
            self.little = Some(Fits {
                units,
                gives: view.gives,
                residency: view.residency,
            });
        }
        if view.gives >= self.full * BUSY {
            return self.known(view, units, grain);
        }
        let missing = self.full.get() * AIM / view.gives.get().max(f64::MIN_POSITIVE);
        let to = units * missing.min(WIDEST_STEP);
        let to = match self.between() {
            Some(between) => to.min(between),
            None => to,
        };
        let next = steps::above(units, to, cores, grain);
        // Whole cores keep so many requests under way; an allocation lets so many come a second, and a little more
        // than is served fills every queue.
        let expected = view.gives.get() * next / units;
        let is_too_much = grain != Grain::Time
            && view.gives >= self.full * NEAR
            && expected > self.full.get() * BEYOND;
        match self.is_new(next) && next < cores && !is_too_much {
            true => Lesson::Next(next),
            false => self.known(view, units, grain),
        }
    }

    /// Whether requests stand in a queue, or others were harmed.
    fn is_queued(&self, view: &View) -> bool {
        match self.rest {
            Some(rest) => {
                view.residency > rest * QUEUED || view.fast.get() * HARMED < self.fast.get()
            }
            None => view.gives >= self.full * BUSY && view.residency > self.loaded * AS_BEFORE,
        }
    }

    /// Half-way between what has no queue and what has one.
    fn between(&self) -> Option<f64> {
        Some(0.5 * (self.little?.units + self.much?))
    }

    /// Whether a hold lies between what is known, and there is time to try it.
    fn is_new(&self, units: f64) -> bool {
        self.windows < PATIENCE
            && self.much.is_none_or(|much| units < much)
            && self.little.is_none_or(|little| units > little.units)
    }

    /// What is known now; `units` if every hold so far had a queue.
    fn known(&self, view: &View, units: f64, grain: Grain) -> Lesson {
        let fits = self.little.unwrap_or(Fits {
            units,
            gives: view.gives,
            residency: view.residency,
        });
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
