//! Standard output: results, in the format that was asked for, and nothing else.

pub mod csv;
mod prose;
mod table;

use std::io::{self, IsTerminal as _, Write};

use serde::Serialize;

use crate::context::Format;
use crate::failure::{Failure, Result};
use crate::session;

pub use self::csv::{of_rows as to_csv, point_rows};
pub use prose::{Spread, WIDTH, alike, quoted, width, wrap};
pub use table::{Column, Table};
pub use weir_lab::plan::distinct;
pub use weir_model::number::{count, figure, interval, percent, seconds, slower};

/// Prints tables and sentences, in plain ASCII where the locale is not UTF-8.
///
/// # Errors
/// As [`print()`].
pub fn print_text(text: &str) -> Result<()> {
    match prose::is_utf8() {
        true => print(text),
        false => print(&prose::ascii(text)),
    }
}

/// Prints what has a format: tables as [`print_text`] does, data as they are.
///
/// # Errors
/// As [`print()`].
pub fn print_as(format: Format, text: &str) -> Result<()> {
    match format {
        Format::Table => print_text(text),
        Format::Json | Format::Csv => print(text),
    }
}

/// Prints text as it is.
///
/// # Errors
/// Standard output cannot be written to, or is closed.
pub fn print(text: &str) -> Result<()> {
    if session::print(text) {
        return Ok(());
    }
    written(text.as_bytes())
}

/// Writes what is no text to a file or a pipe.
///
/// # Errors
/// As [`print()`], or standard output takes text only.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let only_text = if session::is_active() {
        "what another program prints"
    } else if io::stdout().is_terminal() {
        "a terminal"
    } else {
        return written(bytes);
    };
    Err(Failure::request(format!(
        "Parquet is no text for {only_text}; name a file with -o"
    )))
}

fn written(bytes: &[u8]) -> Result<()> {
    weir_linux::output::check()?;
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
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
