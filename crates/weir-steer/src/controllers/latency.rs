//! A controller for machines without a counted table, such as most virtual machines: it uses only the fast
//! tier's latency, which the controller's process probes.
//!
//! A high latency does not say whose requests cause it; the cause may be the protected tenant itself. So a
//! limit is a trial: if the fast tier does not become faster, the limit is removed, and the next trial comes
//! later. The latency under a narrow limit is what the fast tier can give now, and wider limits are compared
//! with it. How busy the slow tier is remains unknown, so the slow tier gives less than under a controller
//! with counters.

use weir_model::units::Nanos;

use super::division::{Division, SMALL};
use crate::controller::{Controller, Decision, Needs, Why};
use crate::limit::{Grain, Share};
use crate::readings::Readings;

/// Settings of the controller.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyConfig {
    /// Latency of a load from the fast tier without load, if it was measured; otherwise the first trial shows
    /// it.
    pub rest: Option<Nanos>,
    /// Step of the hardware's bandwidth allocation, if it has any.
    pub step: Option<Share>,
}

/// Loads that take this multiple of the unloaded latency start a trial.
const SLOW: f64 = 1.3;
/// A change of latency by this factor is not by chance: a probe is a few hundred loads.
const NOTICED: f64 = 1.1;
/// Share of all cores that the first trial leaves.
const FIRST: f64 = 1.0 / 8.0;
/// The least running that is left, in cores.
const LEAST: f64 = 1.0 / 16.0;
/// The factor of a narrower step, and of a wider step.
const NARROWER: f64 = 0.5;
const WIDER: f64 = 1.25;
/// Windows without harm before a wider step.
const PATIENCE: u32 = 2;
/// Windows before a failed trial, or a step that was too wide, is repeated; the number doubles each time, up
/// to the second value.
const AGAIN: u32 = 40;
const MOST_AGAIN: u32 = 960;

/// The controller.
#[derive(Debug, Clone)]
pub struct Latency {
    config: LatencyConfig,
    /// The shortest latency that was measured.
    rest: Option<Nanos>,
    held: Option<ActiveLimit>,
    in_vain: Wait,
    division: Division,
}

/// A step that is not repeated yet.
#[derive(Debug, Clone, Copy, Default)]
struct Wait {
    left: u32,
    next: u32,
}

impl Wait {
    fn begin(&mut self) {
        self.left = self.next.clamp(AGAIN, MOST_AGAIN);
        self.next = self.left * 2;
    }

    /// A window passes; returns whether the wait is over.
    fn is_over(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }
}

/// A hold in force.
#[derive(Debug, Clone, Copy)]
struct ActiveLimit {
    units: f64,
    /// The fast tier's latency under limits that do no harm.
    good: Nanos,
    /// Before the last narrower step: the limit, if there was one, and the latency.
    trial: Option<(Option<f64>, Nanos)>,
    calm: u32,
    too_wide: f64,
    wait: Wait,
}

impl Latency {
    /// No tenant limited.
    pub fn new(config: LatencyConfig) -> Self {
        Self {
            rest: config.rest,
            config,
            held: None,
            in_vain: Wait::default(),
            division: Division::default(),
        }
    }

    fn grain(&self) -> Grain {
        self.config.step.map_or(Grain::Time, Grain::Wide)
    }

    /// The value with which the latency is compared, and the action.
    fn decide(&mut self, cores: f64, now: Nanos) -> (&'static str, Nanos) {
        let is_known = self.rest.is_some();
        let rest = self.rest.map_or(now, |rest| rest.min(now));
        self.rest = Some(rest);
        let Some(held) = self.held.take() else {
            return self.free(cores, now, rest, is_known);
        };
        let threshold = held.good * NOTICED;
        let (rule, held) = match held.trial {
            Some(before) if now * NOTICED > before.1 => self.failed(held, before, now),
            Some(_) => (
                "the fast tier is faster: the limit stays",
                Some(held.settled(now)),
            ),
            None => held.go_on(now),
        };
        self.held = held.filter(|held| held.units < cores);
        (rule, threshold)
    }

    fn free(
        &mut self,
        cores: f64,
        now: Nanos,
        rest: Nanos,
        is_known: bool,
    ) -> (&'static str, Nanos) {
        let threshold = rest * SLOW;
        if self.in_vain.left > 0 && !self.in_vain.is_over() {
            return ("a limit did not help", threshold);
        }
        if is_known && now <= threshold {
            return ("the fast tier is fast", threshold);
        }
        self.held = Some(ActiveLimit {
            units: (cores * FIRST).max(LEAST),
            good: now,
            trial: Some((None, now)),
            calm: 0,
            too_wide: cores,
            wait: Wait::default(),
        });
        match is_known {
            true => ("the fast tier is slow: a trial", threshold),
            false => (
                "what the fast tier can give is not known: a trial",
                threshold,
            ),
        }
    }

    /// A narrower step made nothing faster: the limit before it returns, and the present latency is accepted.
    fn failed(
        &mut self,
        held: ActiveLimit,
        (before, was): (Option<f64>, Nanos),
        now: Nanos,
    ) -> (&'static str, Option<ActiveLimit>) {
        let Some(units) = before else {
            self.in_vain.begin();
            return ("the limit did not help: removed", None);
        };
        let held = ActiveLimit {
            units,
            good: was.min(now),
            trial: None,
            // The limited tenant was not the cause.
            too_wide: f64::INFINITY,
            wait: Wait::default(),
            ..held
        };
        (
            "a narrower limit made nothing faster: as before",
            Some(held),
        )
    }
}

impl ActiveLimit {
    /// A narrower limit that helped.
    fn settled(self, now: Nanos) -> Self {
        Self {
            good: now.min(self.good),
            trial: None,
            calm: 0,
            ..self
        }
    }

    /// Steps get wider as long as they do no harm.
    fn go_on(mut self, now: Nanos) -> (&'static str, Option<Self>) {
        if now > self.good * NOTICED {
            self.too_wide = self.units;
            self.wait.begin();
            self.trial = Some((Some(self.units), now));
            self.units = (self.units * NARROWER).max(LEAST);
            return ("the fast tier is slower: less", Some(self));
        }
        self.good = self.good.min(now);
        self.calm += 1;
        if self.wait.left > 0 && self.wait.is_over() {
            self.too_wide = f64::INFINITY;
        }
        let wider = self.units * WIDER;
        if self.calm < PATIENCE || wider >= self.too_wide {
            return ("the fast tier is fast", Some(self));
        }
        self.calm = 0;
        self.units = wider;
        ("the fast tier is fast: a step wider", Some(self))
    }
}

impl Controller for Latency {
    fn needs(&self) -> Needs {
        Needs::Probe
    }

    fn observe(&mut self, readings: &Readings) -> Decision {
        let tenants = readings.tenants.len();
        if !readings.protected_busy() {
            self.held = None;
            self.in_vain = Wait::default();
            return Decision::free(tenants, Why::rule("no protected tenant runs"));
        }
        let cores = f64::from(readings.restrained_cores());
        let why = match &readings.probe {
            _ if cores == 0.0 => {
                self.held = None;
                return Decision::free(tenants, Why::rule("no tenant that may be limited runs"));
            }
            Ok(now) => {
                let (rule, threshold) = self.decide(cores, *now);
                Why {
                    probe: Some(*now),
                    target: Some(threshold),
                    ..Why::rule(rule)
                }
            }
            Err(why) => Why::rule(format!("as before: {why}")),
        };
        let Some(held) = self.held else {
            self.division = Division::default();
            return Decision::free(tenants, why);
        };
        let grain = self.grain();
        self.division
            .share(readings, held.units, grain, SMALL, why.at_level(1))
    }
}
