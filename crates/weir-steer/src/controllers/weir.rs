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
    /// The least that filled the table, and windows since.
    too_wide: Option<(f64, u32)>,
    /// The shortest residency seen while somebody was held.
    rest: Option<Nanos>,
    /// The most that the slow tier gave.
    peak: GbPerSec,
}

/// The slow tier in one window.
struct Slow {
    residency: Nanos,
    outstanding: f64,
    gives: GbPerSec,
    holds_the_table: bool,
}

impl Weir {
    /// Everybody free.
    pub fn new(config: WeirConfig) -> Self {
        Self {
            units: None,
            remembered: None,
            too_wide: None,
            rest: None,
            peak: GbPerSec(0.0),
            config,
        }
    }

    fn look(&self, sight: &Sight) -> Option<Slow> {
        let residency = sight.slow_residency(self.config.fast).ok()?;
        let gives = sight.slow.as_ref().ok()?.total();
        // Little's law, where the table does not count by tier.
        let in_table = match &sight.slow_table {
            Ok(table) => table.entries,
            Err(_) => gives.get() / LINE_BYTES as f64 * residency.get(),
        };
        let all = sight.table.as_ref().map_or(in_table, |t| t.entries);
        let share = in_table / all.max(in_table);
        let waiting = sight.ingress.as_ref().map_or(0.0, |q| q.entries);
        Some(Slow {
            residency,
            outstanding: in_table + waiting * share,
            gives,
            holds_the_table: share > BLAME,
        })
    }

    /// Whether requests wait for entries of the table that the slow tier holds; where the ingress queues
    /// are not counted, whether its requests stay far longer than at rest.
    fn harmed(&self, sight: &Sight, slow: &Slow, rest: Nanos) -> bool {
        slow.holds_the_table
            && match &sight.ingress {
                Ok(ingress) => ingress.mean > self.config.wait,
                Err(_) => slow.residency > rest * (2.0 * self.config.products),
            }
    }

    /// Residency at rest: as measured, else the shortest seen; until somebody was held, a guess.
    fn learn(&mut self, slow: &Slow) -> Nanos {
        if let Some(known) = self.config.slow {
            return known;
        }
        if self.units.is_none() && self.rest.is_none() {
            return slow.residency / LOADED;
        }
        let shortest = self.rest.map_or(slow.residency, |r| r.min(slow.residency));
        self.rest = Some(shortest);
        shortest
    }

    fn decide(&mut self, sight: &Sight, slow: &Slow) -> (&'static str, Nanos) {
        let rest = self.learn(slow);
        self.peak = (self.peak * FADE).max(slow.gives);
        let product = self.peak.get() / LINE_BYTES as f64 * rest.get();
        let ratio = self.config.products * product / slow.outstanding.max(f64::MIN_POSITIVE);
        let cores = f64::from(sight.restrained_cores());
        let harmed = self.harmed(sight, slow, rest);
        let target = rest * self.config.queued;

        let Some(units) = self.units else {
            if !harmed {
                return ("the table has room", target);
            }
            let to = cores * ratio.clamp(NARROWEST_STEP, 1.0);
            let to = self.remembered.map_or(to.max(1.0), |r| r.min(cores));
            self.units = Some(whole(to));
            return (
                "the slow tier fills the table: held to what its device serves",
                target,
            );
        };
        if harmed {
            self.too_wide = Some((units, 0));
            self.units = Some(whole(units * ratio.clamp(NARROWEST_STEP, 0.75)));
            return ("the slow tier still fills the table: fewer", target);
        }
        self.remembered = Some(units);
        // Whoever runs a part of its time leaves a queue behind when it pauses, and no busy device.
        let queued = units >= 1.0 && slow.residency > target;
        if queued || slow.gives >= self.peak * self.config.full {
            return ("the device is busy and the table has room", target);
        }
        let wider = (units * ratio.clamp(1.0, WIDEST_STEP)).max(units + units.min(1.0));
        let Some(wider) = self.below_too_wide(units, whole(wider)) else {
            return (
                "the device could serve more, but more filled the table",
                target,
            );
        };
        self.units = (wider < cores).then_some(wider);
        ("the device could serve more", target)
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
        let middle = whole(0.5 * (units + bad));
        (middle > units * 1.1 && middle < bad).then_some(middle)
    }
}

/// Whole cores, or a part of one: cores that run part of their time run it together.
fn whole(units: f64) -> f64 {
    if units < 1.0 {
        units.max(LEAST)
    } else {
        units.round()
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
            Some(slow) => {
                let (rule, target) = self.decide(sight, &slow);
                Why::compared(rule, slow.residency, target)
            }
            None => Why::rule("as before: nothing seen of the slow tier"),
        };
        let Some(units) = self.units else {
            return Decision::free(tenants, why);
        };
        share_units(sight, units, why.at_level(1))
    }
}
