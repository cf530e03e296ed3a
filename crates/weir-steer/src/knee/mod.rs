//! The knee of a device: the load at which it is busy and has no queue yet, measured with one tenant of the
//! slow tier alone.
//!
//! Up to its knee a device gives more if more is requested; beyond it, requests only wait longer, and they
//! wait in the Table of Requests. Loads, stores and non-temporal stores have different knees (MIKU section
//! 4.1, levels); mixes are between them.

mod criteria;
mod measure;

pub use criteria::Criteria;
pub use measure::{Chain, Measure};

use serde::{Deserialize, Serialize};
use weir_model::units::{GbPerSec, Nanos};

use crate::limit::{Grain, Share};

/// A device under one mix of reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Share of the lines that are written: 0 for loads, 1 for non-temporal stores.
    pub writes: f64,
    /// Residency of its requests without load.
    pub rest: Nanos,
    /// Residency of its requests at the knee.
    pub residency: Nanos,
    /// The device's bandwidth at the knee.
    pub gives: GbPerSec,
    /// Cores' worth of running at the knee, for cores that do nothing else.
    pub units: f64,
    /// The narrowest limit that filled its queue, if it was reached.
    pub much: Option<f64>,
    /// The best grain for a part of a core.
    pub grain: Grain,
}

impl Knee {
    /// The knee of a mix, interpolated from the knees of other mixes, in order of their share of writes.
    /// Outside their range nothing is known.
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
            // For an interpolated mix, no limit is known to be too wide.
            much: nearer
                .much
                .filter(|_| (nearer.writes - writes).abs() < PURE),
            grain: nearer.grain,
        })
    }
}

/// A mix within this distance of a measured one counts as measured.
const PURE: f64 = 0.1;

/// A step of bandwidth allocation as a grain, for many or few cores.
pub fn grains(step: Option<Share>) -> Vec<Grain> {
    match step {
        Some(step) => vec![Grain::Wide(step), Grain::Narrow(step)],
        None => vec![Grain::Time],
    }
}
