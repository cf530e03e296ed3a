//! What goes wrong, with the file and the sizes that matter.

use std::io;
use std::path::PathBuf;

/// Why an operation failed. Sizes are bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlatError {
    /// The kernel refused a call.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Another process, or another store of this one, has the medium open.
    #[error("{path} is open in another store; close that one first, and drop its buffers")]
    InUse {
        /// The medium.
        path: PathBuf,
    },
    /// The medium has no store, and may hold something else.
    #[error("{path} has no store: {why}")]
    NoStore {
        /// The medium.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The log can be read, and says what cannot be.
    #[error("the store in {path} is damaged: {why}")]
    Damaged {
        /// The medium.
        path: PathBuf,
        /// What contradicts.
        why: String,
    },
    /// There is no such file.
    #[error("there is no file {name:?} in the store")]
    Missing {
        /// Its name.
        name: String,
    },
    /// There is such a file.
    #[error("the store has a file {name:?} already")]
    Exists {
        /// Its name.
        name: String,
    },
    /// Names have 1 to 255 bytes.
    #[error("the name of a file has 1 to 255 bytes, this one has {0}")]
    Name(usize),
    /// The medium has no room for a new version of these pages.
    #[error("{path} is full: {asked} bytes are to be written, {free} are free")]
    MediumFull {
        /// The medium.
        path: PathBuf,
        /// What a write needs.
        asked: u64,
        /// What is free and not promised to an earlier write.
        free: u64,
    },
    /// Buffers hold the frames of the cache.
    #[error(
        "the cache is full: {asked} bytes are needed, and buffers and unflushed pages hold what is not free of {limit}"
    )]
    CacheFull {
        /// What an operation needs.
        asked: u64,
        /// The size of the cache.
        limit: u64,
    },
    /// The buffer has less room than the operation needs.
    #[error(
        "the buffer has {has} bytes, {asked} are needed (an offset within a page needs a page more)"
    )]
    BufferSmall {
        /// What is needed.
        asked: u64,
        /// What it has.
        has: u64,
    },
    /// No file, and no buffer, is longer than the medium.
    #[error("{end} bytes are more than the medium has, which is {limit}")]
    TooLong {
        /// Where it would end.
        end: u64,
        /// The size of the medium.
        limit: u64,
    },
    /// The buffer's frames are those of another store.
    #[error("the buffer belongs to another store")]
    OtherStore,
    /// The medium keeps nothing when the machine stops.
    #[error(
        "{path} is on {medium}, which keeps nothing when the machine stops: the data was flushed, and outlives the process only"
    )]
    NotDurable {
        /// The medium.
        path: PathBuf,
        /// What it is.
        medium: String,
    },
    /// The log could not be written; what the medium has is known again after the store is opened again.
    #[error("an earlier write of the log of {path} failed: open the store again")]
    Failed {
        /// The medium.
        path: PathBuf,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// What operations of the store return.
pub type Result<T> = std::result::Result<T, FlatError>;
