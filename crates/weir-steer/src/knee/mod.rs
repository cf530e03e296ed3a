//! Where a device is busy and has no queue yet: what was measured of the slow tier with one tenant alone.
//!
//! Up to its knee a device gives more the more is asked of it; beyond, requests only wait longer, and wait in
//! the Table of Requests. Loads, stores and non-temporal stores have knees of their own (MIKU section 4.1,
//! levels); what tenants mix lies between.

mod measure;
mod threads;

pub use measure::Measure;
pub use threads::{Measured, Threads};

use weir_model::units::{GbPerSec, Nanos};

use crate::limit::{Grain, Share};

/// A device under one mix of reads and writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// Share of the lines that are written: 0 for loads, 1 for non-temporal stores.
    pub writes: f64,
    /// Residency of its requests at rest.
    pub rest: Nanos,
    /// Residency of its requests at the knee.
    pub residency: Nanos,
    /// What the device gives at the knee.
    pub gives: GbPerSec,
    /// Cores' worth of running at the knee, of cores that do nothing else.
    pub units: f64,
    /// The least that filled its queue, if that was reached.
    pub much: Option<f64>,
    /// What a part of a core is best made of.
    pub grain: Grain,
}

impl Knee {
    /// The knee of a mix, from those of other mixes in order of their writes: in proportion between the two
    /// next to it. Nothing is known of what lies beyond them.
    pub fn of_mix(knees: &[Knee], writes: f64) -> Option<Knee> {
        let above = knees.iter().find(|knee| knee.writes >= writes);
        let below = knees.iter().rev().find(|knee| knee.writes <= writes);
        let (low, high) = match (below, above) {
            (Some(low), Some(high)) => (low, high),
            (Some(only), None) | (None, Some(only)) if (only.writes - writes).abs() < PURE => {
                (only, only)
            }
            _ => return None,
        };
        let between = high.writes - low.writes;
        let part = if between > 0.0 {
            (writes - low.writes) / between
        } else {
            0.0
        };
        let mix = |a: f64, b: f64| a + part * (b - a);
        let nearer = if part < 0.5 { low } else { high };
        Some(Knee {
            writes,
            rest: Nanos(mix(low.rest.get(), high.rest.get())),
            residency: Nanos(mix(low.residency.get(), high.residency.get())),
            gives: GbPerSec(mix(low.gives.get(), high.gives.get())),
            units: mix(low.units, high.units),
            // Of a mix nothing is known to be too much.
            much: nearer
                .much
                .filter(|_| (nearer.writes - writes).abs() < PURE),
            grain: nearer.grain,
        })
    }
}

/// Nearer than this a mix counts as one that was measured.
const PURE: f64 = 0.1;

/// A step of bandwidth allocation as a grain, for cores that are many or few.
pub fn grains(step: Option<Share>) -> Vec<Grain> {
    match step {
        Some(step) => vec![Grain::Wide(step), Grain::Narrow(step)],
        None => vec![Grain::Time],
    }
}
