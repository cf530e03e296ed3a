//! Frames as comma-separated values: every column, absent values empty.

use schemars::JsonSchema;
use serde::Serialize;
use weir_model::document::Point;
use weir_model::frame::{Frame, with_prefix, words};

use crate::failure::{Failure, Result};

/// A frame with its head.
///
/// # Errors
/// A value cannot be written.
pub fn to_csv(frame: &Frame) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed =
        |error: csv::Error| Failure::Work(anyhow::Error::new(error).context("cannot write CSV"));
    writer
        .write_record(frame.columns.iter().map(|c| c.name.as_str()))
        .map_err(failed)?;
    for row in &frame.rows {
        writer.write_record(row.iter().map(words)).map_err(failed)?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| Failure::work(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Rows of a type with its columns in the head, whether there are rows or not.
///
/// # Errors
/// A value cannot be written.
pub fn of_rows<R: Serialize + JsonSchema>(rows: impl IntoIterator<Item = R>) -> Result<String> {
    to_csv(&Frame::of("rows", &rows.into_iter().collect::<Vec<_>>()))
}

/// Figures of a machine, as rows.
pub fn point_rows(machine: &str, points: &[Point]) -> Frame {
    with_prefix(&[("machine", machine.into())], &Frame::of("points", points))
}
