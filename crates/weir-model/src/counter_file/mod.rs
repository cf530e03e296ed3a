//! Files of counters: what `perf stat` writes, as text, CSV or JSON, and Weir's own document.
//!
//! Events are found in the [tables](crate::events) of a microarchitecture, which the reader states,
//! the file's header states, or the events give away. What cannot be taken for a number is a reason:
//! `<not counted>`, a share below a tenth, a negative difference, a wrapped counter.

mod assemble;
mod csv;
mod document;
mod form;
mod json;
mod line;
mod number;
mod processor;
mod sum;
mod text;

pub use document::{
    CountedEvent, CounterFileError, CounterInterval, CountersDocument, KnownBy, ReadOptions,
};

use crate::events::EventLibrary;

/// Larger files are refused unread.
pub const MOST_BYTES: usize = 256 << 20;

/// Reads a file of counters. `file` is its name, for messages.
///
/// # Errors
/// It has no counters, a line that is broken, or events of another microarchitecture than stated.
pub fn read(
    file: &str,
    text: &str,
    options: &ReadOptions,
    library: &EventLibrary,
) -> Result<CountersDocument, CounterFileError> {
    if text.len() > MOST_BYTES {
        return Err(CounterFileError::file(file, "it is larger than 256 MiB"));
    }
    if let Some(own) = json::own(file, text)? {
        return assemble::own(file, own, options, library);
    }
    let lines = form::read(file, text)?;
    assemble::document(file, lines, options, library)
}

#[cfg(test)]
mod tests;
