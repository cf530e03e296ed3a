//! The limits of a tenant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::action::{Action, Applied};
use weir_model::units::{Gigahertz, Nanos};

pub use weir_model::action::Share;

/// How a part of a core is made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Grain {
    /// Processor time: whole cores; less than one core is a part of its time.
    Time,
    /// Memory bandwidth allocation in steps of this size, over as many cores as there are, so that each core
    /// issues rarely.
    Wide(Share),
    /// The same over few cores, so that runs of lines reach the device one after another: a device that keeps
    /// few rows of its DRAM open serves them faster.
    Narrow(Share),
}

/// The largest allocation for few cores: a core that waits for a slow tier never draws more than about half
/// of its peak, so a larger allocation has no effect.
const NARROW: f64 = 0.5;

/// The limits of one tenant. A value of `None` or [`Share::ALL`] changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// Cores that it may run on at once (cpuset).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Processor time, as a share of the time of those cores (CPU quota).
    pub time: Share,
    /// Memory bandwidth allocation, as a share of the hardware's scale (MBA; SMBA for slow memory).
    pub allocation: Share,
    /// Clock of its cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Gigahertz>,
}

impl Limit {
    /// No limit.
    pub const FREE: Limit = Limit {
        cores: None,
        time: Share::ALL,
        allocation: Share::ALL,
        clock: None,
    };

    /// Whether there is no limit.
    pub fn is_free(&self) -> bool {
        *self == Self::FREE
    }

    /// A limit of about `units` cores' worth of running, of `all` cores; a value of `all` or more is no
    /// limit.
    pub fn to_units(units: f64, all: u32, grain: Grain) -> Self {
        // Cores with a part of their time run it at the same time, and together fill a device that serves fewer of them.
        let units = match grain {
            Grain::Time if units > 1.0 => units.round(),
            _ => units,
        };
        if units.is_nan() || units >= f64::from(all) {
            return Self::FREE;
        }
        match grain {
            Grain::Time => Self::to_time(units),
            Grain::Wide(step) | Grain::Narrow(step) if step.get() <= 0.0 => Self::to_time(units),
            Grain::Wide(step) => {
                let step = step.get();
                let most = (1.0 / step).round().max(1.0);
                let fewest = (units / step / f64::from(all)).ceil().clamp(1.0, most);
                let steps = (0..3).map(|n| (fewest + f64::from(n)).min(most));
                let of = |steps: f64| (units / step / steps).round();
                Self::nearest(units, all, step, steps.map(|k| (of(k), k)))
            }
            Grain::Narrow(step) => {
                let step = step.get();
                let most = (NARROW / step).round().max(1.0);
                let fewest = (units / step / most).ceil().max(1.0);
                let cores = (0..3).map(|n| fewest + f64::from(n));
                let of = |cores: f64| (units / step / cores).round().min(most);
                Self::nearest(units, all, step, cores.map(|c| (c, of(c))))
            }
        }
    }

    /// Whole cores, and a part of their time.
    fn to_time(units: f64) -> Self {
        let cores = units.ceil().max(1.0);
        Self {
            cores: Some(cores as u32),
            time: Share::of(units / cores),
            ..Self::FREE
        }
    }

    /// The first of the candidates that are nearest to `units`.
    fn nearest(
        units: f64,
        all: u32,
        step: f64,
        candidates: impl Iterator<Item = (f64, f64)>,
    ) -> Self {
        let held = candidates.map(|(cores, steps)| Self {
            cores: Some((cores as u32).clamp(1, all.max(1))),
            allocation: Share::of((steps.max(1.0) * step).min(1.0)),
            ..Self::FREE
        });
        let off = |limit: &Self| (limit.units(all) - units).abs();
        let better = |best: Self, next: Self| {
            // Rounding must not decide between two that are equally near.
            if off(&next) < off(&best) - 1e-9 {
                next
            } else {
                best
            }
        };
        held.reduce(better).unwrap_or(Self::FREE)
    }

    /// Cores' worth of running that the limit leaves a tenant with `all` cores.
    pub fn units(&self, all: u32) -> f64 {
        f64::from(self.cores.map_or(all, |c| c.min(all))) * self.time.get() * self.allocation.get()
    }
}

/// A limit in words: `2 cores, 50 % of their time`.
pub fn words(limit: &Limit) -> String {
    if limit.is_free() {
        return "free".into();
    }
    let percent = |share: Share| (share.get() * 1000.0).round() / 10.0;
    let mut parts = Vec::new();
    match limit.cores {
        Some(1) => parts.push("1 core".to_owned()),
        Some(cores) => parts.push(format!("{cores} cores")),
        None => {}
    }
    if limit.time != Share::ALL {
        parts.push(format!("{} % of the time", percent(limit.time)));
    }
    if limit.allocation != Share::ALL {
        parts.push(format!("{} % of the bandwidth", percent(limit.allocation)));
    }
    if let Some(clock) = limit.clock {
        parts.push(format!("{clock:.1}"));
    }
    parts.join(", ")
}

/// A limit that was requested, and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct AppliedLimit {
    /// The requested limit.
    pub requested: Limit,
    /// The limit in force, read back.
    pub applied: Limit,
    /// What was refused, each with its reason.
    pub refused: Vec<String>,
}

impl AppliedLimit {
    /// A limit that is in force as requested.
    pub fn whole(limit: Limit) -> Self {
        Self {
            requested: limit,
            applied: limit,
            refused: Vec::new(),
        }
    }
}

/// Changes the limit of a tenant by `act`, which returns the reason of a refusal. What is refused stays as it was.
/// `period` is the period of its processor time.
pub fn change(
    tenant: &str,
    from: Limit,
    to: Limit,
    period: Nanos,
    mut act: impl FnMut(&Action) -> Result<Applied, String>,
) -> AppliedLimit {
    let mut after = AppliedLimit::whole(to);
    for action in changes(tenant, from, to, period) {
        match act(&action) {
            Ok(Applied { applied, .. }) => take_over(&mut after.applied, &applied),
            Err(why) => {
                undo(&mut after.applied, &action, from);
                after.refused.push(why);
            }
        }
    }
    after
}

/// The actions that change the limit of a tenant.
fn changes(tenant: &str, from: Limit, to: Limit, period: Nanos) -> Vec<Action> {
    let name = || tenant.to_owned();
    let mut actions = Vec::new();
    if from.cores != to.cores {
        actions.push(Action::Cores {
            tenant: name(),
            cores: to.cores,
        });
    }
    if from.time != to.time {
        actions.push(Action::ProcessorTime {
            tenant: name(),
            share: to.time.get(),
            period,
        });
    }
    if from.clock != to.clock {
        actions.push(Action::Clock {
            tenant: name(),
            clock: to.clock,
        });
    }
    if from.allocation != to.allocation {
        actions.push(Action::Bandwidth {
            tenant: name(),
            percent: (to.allocation.get() * 100.0).round() as u32,
        });
    }
    actions
}

/// A limit as the machine read it back.
pub(crate) fn take_over(limit: &mut Limit, applied: &Action) {
    match *applied {
        Action::Cores { cores, .. } => limit.cores = cores,
        Action::ProcessorTime { share, .. } => limit.time = Share::of(share),
        Action::Clock { clock, .. } => limit.clock = clock,
        Action::Bandwidth { percent, .. } => {
            limit.allocation = Share::of(f64::from(percent) / 100.0)
        }
        _ => {}
    }
}

/// A limit without what was refused.
fn undo(limit: &mut Limit, refused: &Action, from: Limit) {
    match refused {
        Action::Cores { .. } => limit.cores = from.cores,
        Action::ProcessorTime { .. } => limit.time = from.time,
        Action::Clock { .. } => limit.clock = from.clock,
        Action::Bandwidth { .. } => limit.allocation = from.allocation,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenth() -> Share {
        Share::of(0.1)
    }

    #[test]
    fn units_are_what_was_asked_for() {
        for units in [0.2, 1.0, 1.4, 7.25] {
            let limit = Limit::to_units(units, 16, Grain::Time);
            let whole = if units > 1.0 { units.round() } else { units };
            assert!((limit.units(16) - whole).abs() < 1e-12, "{limit:?}");
            for grain in [Grain::Wide(tenth()), Grain::Narrow(tenth())] {
                let off = (Limit::to_units(units, 16, grain).units(16) - units).abs();
                assert!(off <= 0.1 * units, "{units} {grain:?}: {off} off");
            }
        }
        assert!(Limit::to_units(16.0, 16, Grain::Time).is_free());
        assert!(Limit::to_units(f64::NAN, 16, Grain::Time).is_free());
    }

    #[test]
    fn what_is_granted_is_in_force_and_what_is_refused_stays_as_it_was() {
        let limit = |cores, time, allocation, clock| Limit {
            cores: Some(cores),
            time: Share::of(time),
            allocation: Share::of(allocation),
            clock: Some(Gigahertz(clock)),
        };
        let (from, to) = (limit(4, 0.5, 0.7, 2.0), limit(2, 0.25, 0.3, 1.5));
        let granted = change("t", from, to, Nanos(1e8), |action| {
            Ok(Applied {
                requested: action.clone(),
                applied: action.clone(),
            })
        });
        assert_eq!(granted, AppliedLimit::whole(to));
        let refused = change("t", from, to, Nanos(1e8), |_| Err("no".into()));
        assert_eq!((refused.requested, refused.applied), (to, from));
        assert_eq!(refused.refused.len(), 4);
    }

    #[test]
    fn wide_is_many_cores_and_narrow_is_few() {
        let wide = Limit::to_units(0.8, 16, Grain::Wide(tenth()));
        assert_eq!((wide.cores, wide.allocation), (Some(8), tenth()));
        let narrow = Limit::to_units(0.8, 16, Grain::Narrow(tenth()));
        assert_eq!((narrow.cores, narrow.allocation), (Some(2), Share::of(0.4)));
    }

    #[test]
    fn what_is_no_number_holds_nothing_back() {
        assert_eq!(Share::of(f64::NAN), Share::ALL);
        assert_eq!(Share::of(-1.0), Share::NONE);
        assert_eq!(Share::of(7.0), Share::ALL);
    }
}
