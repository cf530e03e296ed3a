//! A trace of accesses in Parquet.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

use crate::failure::{Failure, Result};

/// Calls with the number of each row, its time, address and kind.
///
/// # Errors
/// The file is damaged, lacks a column, or a row is no access.
pub(super) fn read(
    path: &Path,
    mut of: impl FnMut(u64, f64, u64, &str) -> std::result::Result<(), String>,
) -> Result<()> {
    let name = path.display();
    let opened = File::open(path).map_err(anyhow::Error::new);
    let reader = opened.and_then(|file| Ok(SerializedFileReader::new(file)?));
    let reader = reader.with_context(|| format!("cannot read {name}"));
    let reader = reader.map_err(Failure::Request)?;
    let rows = reader
        .get_row_iter(None)
        .with_context(|| format!("cannot read {name}"))
        .map_err(Failure::Request)?;
    let mut before = 0.0;
    for (number, row) in rows.enumerate() {
        let number = number as u64 + 1;
        let wrong = |column: &str, why: &str| {
            Failure::request(format!("{name}, row {number}, column {column}: {why}"))
        };
        let row = row.map_err(|why| Failure::Request(anyhow!("{name}, row {number}: {why}")))?;
        let field = |wanted: &str| {
            let mut columns = row.get_column_iter();
            columns
                .find(|(column, _)| *column == wanted)
                .map(|(_, field)| field)
        };
        let time_s = match field("time_s") {
            Some(Field::Double(time)) => *time,
            Some(Field::Float(time)) => f64::from(*time),
            None => return Err(wrong("time_s", "there is none")),
            _ => return Err(wrong("time_s", "it must be a number in seconds")),
        };
        if !(time_s.is_finite() && time_s >= before) {
            return Err(wrong("time_s", "times must be finite, and never go back"));
        }
        before = time_s;
        let address = match field("address") {
            Some(Field::ULong(address)) => *address,
            Some(Field::Long(address)) => address.cast_unsigned(),
            None => return Err(wrong("address", "there is none")),
            _ => return Err(wrong("address", "it must be a whole number of 64 bits")),
        };
        let kind = match field("kind") {
            Some(Field::Str(kind)) => kind,
            None => return Err(wrong("kind", "there is none")),
            _ => return Err(wrong("kind", "it must be text: anon or file")),
        };
        of(number, time_s, address, kind).map_err(Failure::request)?;
    }
    Ok(())
}
