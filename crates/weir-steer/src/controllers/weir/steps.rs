//! Limits that exist, near a limit that is asked for.

use crate::limit::{Grain, Limit};

/// Least running, in cores.
pub const LEAST: f64 = 1.0 / 16.0;
/// The next limit is searched in steps of this part of the present one.
const PART: f64 = 0.02;
/// The number of such steps.
const STEPS: u32 = 101;

/// The nearest limit that can be set.
pub fn nearest(units: f64, cores: f64, grain: Grain) -> f64 {
    let units = units.max(LEAST);
    let whole = match grain {
        // Cores with a part of their time run it at the same time.
        Grain::Time if units > 1.0 => units.round(),
        _ => units,
    };
    Limit::to_units(whole, cores as u32, grain).units(cores as u32)
}

/// The limit nearest to `to` among those below `units`.
pub fn below(units: f64, to: f64, cores: f64, grain: Grain) -> f64 {
    let tries = (0..STEPS).map(|n| to - f64::from(n) * PART * units);
    let mut held = tries.map(|to| nearest(to, cores, grain));
    held.find(|&to| to < units).unwrap_or(LEAST)
}

/// The limit nearest to `to` among those above `units`.
pub fn above(units: f64, to: f64, cores: f64, grain: Grain) -> f64 {
    let tries = (0..STEPS).map(|n| to + f64::from(n) * PART * units);
    let mut held = tries.map(|to| nearest(to, cores, grain));
    held.find(|&to| to > units).unwrap_or(cores)
}
