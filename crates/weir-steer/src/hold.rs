//! What a tenant may be held to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::Gigahertz;

/// A part of a whole, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Share(f64);

impl Share {
    /// All of it.
    pub const ALL: Share = Share(1.0);
    /// Nothing of it.
    pub const NONE: Share = Share(0.0);

    /// So much of it; what lies outside 0 to 1 is brought to the nearer end, and what is no number to
    /// all, since a hold that nobody computed must hold nothing back.
    pub fn of(part: f64) -> Self {
        if part.is_nan() {
            return Self::ALL;
        }
        Self(part.clamp(0.0, 1.0))
    }

    /// The bare number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// What one tenant is held to. Whatever is `None` or [`Share::ALL`] is left as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hold {
    /// Cores that it may run on at once (cpuset).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Processor time, as a share of what those cores give (CPU quota).
    pub time: Share,
    /// Memory bandwidth allocation, as a share of the hardware's scale (MBA; SMBA for slow memory).
    pub allocation: Share,
    /// Clock of its cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Gigahertz>,
}

impl Hold {
    /// Held to nothing.
    pub const FREE: Hold = Hold {
        cores: None,
        time: Share::ALL,
        allocation: Share::ALL,
        clock: None,
    };

    /// Whether it is held to nothing.
    pub fn is_free(&self) -> bool {
        *self == Self::FREE
    }

    /// Held to so many cores' worth of running, of `all`: whole cores, and of all of them a part of their
    /// bandwidth where the machine allocates it in steps of `step`, else of their time. More than `all`
    /// cores is free.
    pub fn to_units(units: f64, all: u32, step: Option<Share>) -> Self {
        if units.is_nan() || units >= f64::from(all) {
            return Self::FREE;
        }
        let cores = units.ceil().max(1.0);
        let part = units / cores;
        let held = Self {
            cores: Some(cores as u32),
            ..Self::FREE
        };
        match step {
            Some(Share(step)) if step > 0.0 && part < 1.0 => Self {
                allocation: Share::of(((part / step).round() * step).max(step)),
                ..held
            },
            _ => Self {
                time: Share::of(part),
                ..held
            },
        }
    }

    /// Cores' worth of running that it leaves a tenant with `all` cores.
    pub fn units(&self, all: u32) -> f64 {
        f64::from(self.cores.map_or(all, |c| c.min(all))) * self.time.get() * self.allocation.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_what_was_asked_for() {
        for units in [0.2, 1.0, 1.5, 7.25] {
            let hold = Hold::to_units(units, 16, None);
            assert!((hold.units(16) - units).abs() < 1e-12, "{hold:?}");
            let tenths = Hold::to_units(units, 16, Some(Share::of(0.1)));
            assert!(
                (tenths.units(16) - units).abs() <= 0.05 * units.ceil() + 1e-9,
                "{tenths:?}"
            );
        }
        assert!(Hold::to_units(16.0, 16, None).is_free());
        assert!(Hold::to_units(f64::NAN, 16, None).is_free());
    }

    #[test]
    fn what_is_no_number_holds_nothing_back() {
        assert_eq!(Share::of(f64::NAN), Share::ALL);
        assert_eq!(Share::of(-1.0), Share::NONE);
        assert_eq!(Share::of(7.0), Share::ALL);
    }
}
