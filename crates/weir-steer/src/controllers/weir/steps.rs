//! Holds that there are, near those that are asked for.

use crate::limit::{Grain, Limit};

/// Least running, in cores.
pub const LEAST: f64 = 1.0 / 16.0;
/// The next hold is looked for in steps of this part of the present one, ...
const PART: f64 = 0.02;
/// ... so many of them.
const STEPS: u32 = 101;

/// What can be held that is nearest.
pub fn nearest(units: f64, cores: f64, grain: Grain) -> f64 {
    let units = units.max(LEAST);
    let whole = match grain {
        // Cores that run a part of their time run it together.
        Grain::Time if units > 1.0 => units.round(),
        _ => units,
    };
    Limit::to_units(whole, cores as u32, grain).units(cores as u32)
}

/// What can be held that is nearest to `to` and less than `units`.
pub fn below(units: f64, to: f64, cores: f64, grain: Grain) -> f64 {
    let tries = (0..STEPS).map(|n| to - f64::from(n) * PART * units);
    let mut held = tries.map(|to| nearest(to, cores, grain));
    held.find(|&to| to < units).unwrap_or(LEAST)
}

/// What can be held that is nearest to `to` and more than `units`.
pub fn above(units: f64, to: f64, cores: f64, grain: Grain) -> f64 {
    let tries = (0..STEPS).map(|n| to + f64::from(n) * PART * units);
    let mut held = tries.map(|to| nearest(to, cores, grain));
    held.find(|&to| to > units).unwrap_or(cores)
}
