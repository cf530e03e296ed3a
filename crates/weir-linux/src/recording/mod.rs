//! Recorded machines: the files of a server that Weir reads, as one text that people can read, mail and keep
//! as a test.
//!
//! ```text
//! weir/machine/1
//! # Anything that a reader should know.
//! /sys/devices/system/node/online: 0-1
//! /sys/devices/system/cpu/cpu[0-7]/topology/physical_package_id: 0
//! /proc/self/status <<
//! CapEff: 0000000000000000
//! >>
//! /sys/bus/cxl/devices/mem0 -> /sys/devices/pci0000:0c/mem0
//! /sys/bus/event_source/devices/cpu/
//! /dev/cpu/0/msr ! 13 Permission denied
//! end
//! ```
//!
//! `PATH: CONTENT` is a file of one line, `PATH <<` one of several up to `>>`, `PATH -> TARGET` a link,
//! `PATH/` a folder, `PATH ! ERRNO WORDS` something that exists and cannot be read. A set of numbers in
//! brackets means one path for each number; in its content and target `{}` is the first such number, `{+n}`
//! and `{-n}` are n more and n less. The kernel's answers to questions that are not files are below
//! `/weir/probe`. The last line is `end`: a file without it was cut.

mod make;
mod read;
mod scrub;
mod trace;
mod tree;
mod write;

use std::path::{Path, PathBuf};

pub use make::{Made, make};
pub use read::parse;
pub use scrub::Scrubbed;
pub(crate) use trace::Trace;
pub use tree::Tree;

/// The first line of every recording.
pub const SCHEMA: &str = "weir/machine/1";

/// The extension of a recording's file.
pub const EXTENSION: &str = "machine";

/// The longest recording: 8000 memory blocks are less than one MiB.
const MOST_BYTES: u64 = 16 << 20;

/// Why a file is no recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// It cannot be read.
    #[error("cannot read the recording {file}: {cause}")]
    Unreadable {
        /// The file.
        file: String,
        /// The error.
        cause: String,
    },
    /// A line is not of a valid form.
    #[error("{file}:{line}: {what}")]
    Wrong {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it, and what would be right.
        what: String,
    },
}

/// Reads a recording from a file.
///
/// # Errors
/// The file cannot be read, is of another schema, was cut, or has an invalid entry.
pub fn open(file: &Path) -> Result<Tree, RecordingError> {
    use std::io::Read;
    let name = file.display().to_string();
    let unreadable = |cause: String| RecordingError::Unreadable {
        file: name.clone(),
        cause,
    };
    let mut bytes = Vec::new();
    // A pipe would block for ever.
    let kind = std::fs::metadata(file).map_err(|e| unreadable(e.to_string()))?;
    if !kind.is_file() {
        return Err(unreadable("it is not a file".to_owned()));
    }
    std::fs::File::open(file)
        .and_then(|opened| opened.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|e| unreadable(e.to_string()))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unreadable("it is longer than 16 MiB".to_owned()));
    }
    match String::from_utf8(bytes) {
        Ok(text) => parse(&name, &text),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            Err(RecordingError::Wrong {
                file: name,
                line: valid.iter().filter(|&&b| b == b'\n').count() + 1,
                what: "this is not text in UTF-8".to_owned(),
            })
        }
    }
}

/// Whether `on` names a recording rather than a platform.
pub fn is_recording(on: &str) -> Option<PathBuf> {
    let path = Path::new(on);
    (path.extension()? == EXTENSION).then(|| path.to_owned())
}
