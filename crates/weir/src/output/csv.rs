//! Results as rows of comma-separated values, with a head.

use schemars::JsonSchema;
use serde::Serialize;
use weir_model::document::Point;
use weir_model::frame::{Frame, with_prefix};

use crate::failure::Result;
use crate::render::csv;

/// Rows of a type with its columns in the head, whether there are rows or not.
///
/// # Errors
/// A value cannot be written.
pub fn to_csv<R: Serialize + JsonSchema>(rows: impl IntoIterator<Item = R>) -> Result<String> {
    csv::to_csv(&Frame::of("rows", &rows.into_iter().collect::<Vec<_>>()))
}

/// Figures of a machine, as rows.
pub fn point_rows(machine: &str, points: &[Point]) -> Frame {
    with_prefix(&[("machine", machine.into())], &Frame::of("points", points))
}
