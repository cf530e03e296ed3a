//! Standard output: results, in the format that was asked for, and nothing else.

mod csv;
mod insight;
mod interplay;
mod number;
mod parquet;
pub mod points;
mod prose;
mod steer;
mod table;

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Result;

pub use self::csv::{Record, point_rows, rows_to_csv, to_csv};
pub use self::parquet::{Rows, to_parquet};
pub use insight::{
    advice_row, calibrate, explain, explain_rows, fit_row, predict, predicted_row, tune,
};
pub use interplay::{interplay, sentence};
pub use number::{figure, percent, seconds, slower};
pub use prose::{WIDTH, alike, wrap};
pub use steer::{steer, steer_rows};
pub use table::{Column, Table};

/// The values in the order in which they first occur.
pub fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// Prints text as it is.
///
/// # Errors
/// Standard output cannot be written to, or is closed.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// A document as indented JSON with a newline at its end.
///
/// # Errors
/// The document holds something that JSON cannot.
pub fn to_json(document: &impl Serialize) -> Result<String> {
    let mut text = serde_json::to_string_pretty(document)
        .map_err(|error| anyhow::Error::new(error).context("cannot write JSON"))?;
    text.push('\n');
    Ok(text)
}
