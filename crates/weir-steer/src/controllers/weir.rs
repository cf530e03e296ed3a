//! Weir's own: hold as many requests to the slow tier outstanding as its device can serve, and no more.
//!
//! A device serves `peak` bytes a second as soon as its bandwidth-delay product is under way:
//! `peak x idle latency` (Little's law). Whatever cores ask for beyond that waits, and waits in the Table of
//! Requests, where everybody else's requests have to pass. So there is a range of concurrency in which the
//! device is busy and the table is free; it is wide, since a table holds the products of many devices, and
//! the controller stays where it is inside. Outside, it goes there in one step, by the ratio of what is
//! outstanding to what should be, and corrects once the answer is seen.

use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};

use super::share_units;
use crate::controller::{Controller, Decision, Why};
use crate::hold::Share;
use crate::sight::Sight;

/// What the controller is told of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct WeirConfig {
    /// Residency of a request for DRAM that nobody disturbs.
    pub fast: Nanos,
    /// Residency of a request for the slow tier at rest, if it was measured; learnt otherwise.
    pub slow: Option<Nanos>,
    /// The table is short of entries once requests wait before it for more than this.
    pub wait: Nanos,
    /// Outstanding requests aimed at, in bandwidth-delay products.
    pub products: f64,
    /// A device whose requests stay this many times as long as at rest has a queue, and is busy.
    pub queued: f64,
    /// Step of the hardware's bandwidth allocation, if it has any; a part of a core is a part of its time
    /// otherwise.
    pub step: Option<Share>,
    /// It is busy as well with this share of the most that it was seen to give.
    pub full: f64,
}

impl WeirConfig {
    /// Two products: one under way, one in the device's queue, so that it never runs dry between a
    /// core's requests.
    pub fn new(fast: Nanos, slow: Option<Nanos>) -> Self {
        Self {
            fast,
            slow,
            wait: fast * 0.02,
            products: 2.0,
            queued: 1.5,
            step: None,
            full: 0.97,
        }
    }
}

/// Narrower by at most this in one window, so that one wrong count cannot stop a tenant.
const NARROWEST_STEP: f64 = 1.0 / 16.0;
/// Wider by at most this.
const WIDEST_STEP: f64 = 4.0;
/// What is seen of the device's peak fades by this a window, since tenants change what they do.
const FADE: f64 = 0.998;
/// Least running, in cores.
const LEAST: f64 = 1.0 / 16.0;
/// A queue at a loaded device was seen to be eight to ten times its idle latency (MIKU section 3): the
/// first guess where nothing is known.
const LOADED: f64 = 8.0;
/// What is seen of the fast tier's best fades by this: who is protected changes what it does as well.
const FORGIVE: f64 = 0.98;
/// A change of the fast tier by this factor is none by chance.
const NOTICED: f64 = 1.02;
/// The table is full with this share of the entries that were ever seen in use.
const FULL: f64 = 0.9;
/// The slow tier is to blame only if it holds this share of the table.
const BLAME: f64 = 0.2;

/// Windows after which what was too wide is tried again.
const FORGET: u32 = 40;

/// The controller.
#[derive(Debug, Clone)]
pub struct Weir {
    config: WeirConfig,
    /// Cores' worth of running that those who may be held share; `None` for free.
    units: Option<f64>,
    /// The hold that fitted last.
    remembered: Option<f64>,
    /// The least that was too much, and windows since.
    too_wide: Option<(f64, u32)>,
    /// The shortest residency seen while somebody was held.
    rest: Option<Nanos>,
    /// Entries of the table, as far as they were seen in use.
    capacity: f64,
    /// The most that the slow tier gave.
    peak: GbPerSec,
    /// What the fast tier gave before the last step narrower.
    before: Option<GbPerSec>,
    /// The most that the fast tier gave lately while somebody was held.
    best: GbPerSec,
}

/// The tiers in one window.
struct View {
    residency: Nanos,
    outstanding: f64,
    gives: GbPerSec,
    fast: GbPerSec,
    /// Entries in use.
    entries: f64,
    /// Part of them that wait for the slow tier.
    share: f64,
}

impl Weir {
    /// Everybody free.
    pub fn new(config: WeirConfig) -> Self {
        Self {
            config,
            units: None,
            remembered: None,
            too_wide: None,
            rest: None,
            capacity: 0.0,
            peak: GbPerSec(0.0),
            before: None,
            best: GbPerSec(0.0),
        }
    }

    fn look(&self, sight: &Sight) -> Option<View> {
        let residency = sight.slow_residency(self.config.fast).ok()?;
        let gives = sight.slow.as_ref().ok()?.total();
        let fast = sight.fast.as_ref().ok()?.total();
        // Little's law, where the table does not count by tier.
        let in_table = match &sight.slow_table {
            Ok(table) => table.entries,
            Err(_) => gives.get() / LINE_BYTES as f64 * residency.get(),
        };
        let entries = sight.table.as_ref().map_or(in_table, |t| t.entries);
        let share = in_table / entries.max(in_table);
        let waiting = sight.ingress.as_ref().map_or(0.0, |q| q.entries);
        Some(View {
            residency,
            outstanding: in_table + waiting * share,
            gives,
            fast,
            entries,
            share,
        })
    }

    /// Residency at rest: as measured, else the shortest seen; until somebody was held, a guess.
    fn learn(&mut self, view: &View) -> Nanos {
        self.capacity = self.capacity.max(view.entries);
        self.peak = (self.peak * FADE).max(view.gives);
        if self.units.is_some() {
            self.best = (self.best * FORGIVE).max(view.fast);
        }
        if let Some(known) = self.config.slow {
            return known;
        }
        if self.units.is_none() && self.rest.is_none() {
            return view.residency / LOADED;
        }
        let shortest = self.rest.map_or(view.residency, |r| r.min(view.residency));
        self.rest = Some(shortest);
        shortest
    }

    /// Whether requests of the slow tier fill the table, so that others wait before it; where the ingress
    /// queues are not counted, whether they stay far longer than at rest.
    fn fills(&self, sight: &Sight, view: &View, rest: Nanos) -> bool {
        let crowded = match &sight.ingress {
            Ok(ingress) => ingress.mean > self.config.wait && view.entries > FULL * self.capacity,
            Err(_) => view.residency > rest * (2.0 * self.config.products),
        };
        crowded && view.share > BLAME
    }

    /// Whether fewer would help the fast tier: the last step narrower did, or it gave more before.
    fn helps(&self, view: &View) -> bool {
        let gained = self
            .before
            .is_none_or(|b| view.fast.get() > b.get() * NOTICED);
        gained || view.fast.get() * NOTICED < self.best.get()
    }

    fn decide(&mut self, sight: &Sight, view: &View) -> (&'static str, Nanos) {
        let rest = self.learn(view);
        let product = self.peak.get() / LINE_BYTES as f64 * rest.get();
        let wanted = self.config.products * product / view.outstanding.max(f64::MIN_POSITIVE);
        let cores = f64::from(sight.restrained_cores());
        let full = self.fills(sight, view, rest);
        // Of what does not fit into the table nothing is seen.
        let narrower = if full { 0.5 * wanted } else { wanted };
        let target = rest * self.config.queued;

        let Some(units) = self.units else {
            if !full {
                return ("the table has room", target);
            }
            let to = (cores * narrower.clamp(NARROWEST_STEP, 1.0)).max(1.0);
            self.before = Some(view.fast);
            self.units = Some(self.whole(self.remembered.map_or(to, |r| r.min(cores))));
            return (
                "the slow tier fills the table: held to what its device serves",
                target,
            );
        };
        if full && self.helps(view) {
            self.too_wide = Some((units, 0));
            self.before = Some(view.fast);
            let least_step = if units >= 2.0 {
                units - 1.0
            } else {
                0.7 * units
            };
            let to = self.whole(units * narrower.clamp(NARROWEST_STEP, 1.0));
            self.units = Some(to.min(least_step).max(LEAST));
            return ("the slow tier still fills the table: fewer", target);
        }
        self.remembered = Some(units);
        // Whoever runs a part of its time leaves a queue behind when it pauses, and no busy device.
        let pauses = units < 1.0 && self.config.step.is_none();
        let queued = !pauses && view.residency > target;
        if queued || view.gives >= self.peak * self.config.full {
            return ("the device is busy, and others have room", target);
        }
        let wider = (units * wanted.clamp(1.0, WIDEST_STEP)).max(units + units.min(1.0));
        let Some(wider) = self.below_too_wide(units, self.whole(wider)) else {
            return (
                "the device could serve more, but more filled the table",
                target,
            );
        };
        self.units = (wider < cores).then_some(wider);
        ("the device could serve more", target)
    }

    /// What can be held: any part where bandwidth is allocated, else whole cores or a part of one, since
    /// cores that run a part of their time run it together.
    fn whole(&self, units: f64) -> f64 {
        if units < 1.0 || self.config.step.is_some() {
            units.max(LEAST)
        } else {
            units.round()
        }
    }

    /// `wider`, or half of the way to what was too wide; nothing if that is next to `units` already.
    fn below_too_wide(&mut self, units: f64, wider: f64) -> Option<f64> {
        let Some((bad, age)) = self.too_wide else {
            return Some(wider);
        };
        if wider < bad {
            return Some(wider);
        }
        if age > FORGET {
            self.too_wide = None;
            return Some(wider);
        }
        let middle = self.whole(0.5 * (units + bad));
        (middle > units * 1.1 && middle < bad).then_some(middle)
    }
}

impl Controller for Weir {
    fn name(&self) -> &'static str {
        "weir"
    }

    fn observe(&mut self, sight: &Sight) -> Decision {
        let tenants = sight.tenants.len();
        if !sight.protected_busy() {
            self.units = None;
            return Decision::free(tenants, Why::rule("nobody to protect runs"));
        }
        if let Some((_, age)) = &mut self.too_wide {
            *age = age.saturating_add(1);
        }
        let why = match self.look(sight) {
            Some(view) => {
                let (rule, target) = self.decide(sight, &view);
                Why::compared(rule, view.residency, target)
            }
            None => Why::rule("as before: nothing seen of the slow tier"),
        };
        let Some(units) = self.units else {
            return Decision::free(tenants, why);
        };
        share_units(sight, units, self.config.step, why.at_level(1))
    }
}
