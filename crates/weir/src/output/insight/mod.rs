//! Explanations and predictions, for reading.

mod calibrate;
mod explain;
mod predict;
mod tune;

use weir_model::insight::Components;

use super::percent;

pub use calibrate::{calibrate, fit_row};
pub use explain::{explain, explain_rows};
pub use predict::{predict, predicted_row};
pub use tune::{advice_row, tune};

/// A part of slowdown or of lost cycles.
type Part = fn(&Components) -> Option<f64>;

fn one(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| format!("{v:.1}"))
}

fn signed(value: Option<f64>) -> String {
    value.map_or("-".into(), percent)
}
