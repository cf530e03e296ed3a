//! Explanations and predictions, for reading.

mod calibrate;
mod explain;
mod predict;

use weir_model::insight::Components;

use super::percent;

pub use calibrate::calibrate;
pub use explain::explain;
pub use predict::predict;

/// A part of slowdown or of lost cycles.
type Part = fn(&Components) -> Option<f64>;

fn one(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| format!("{v:.1}"))
}

fn signed(value: Option<f64>) -> String {
    value.map_or("-".into(), percent)
}
