//! What can be wrong with a store, and what to do about it.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::failure::Failure;

/// Why the store did not do as asked. Weir never deletes or replaces a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nowhere to keep it.
    #[error(
        "there is no home directory with an absolute path to keep runs in; name a file with --store or WEIR_STORE"
    )]
    NoHome,
    /// The file cannot be made or opened.
    #[error("cannot open the store {path}: {cause}; name another file with --store or WEIR_STORE")]
    Open {
        /// The store.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// A later version of Weir made it.
    #[error(
        "the store {path} has format {found}, but this Weir knows formats up to {known}; update Weir, or name another file with --store"
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this version reads.
        known: i64,
    },
    /// An earlier version of Weir made it, and it may not be written.
    #[error(
        "the store {path} has format {found}, which must be upgraded to be read, and it may not be written; name a copy with --store"
    )]
    Older {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: i64,
    },
    /// An SQLite file of another program.
    #[error("{path} is a database, but not a store of Weir; name another file with --store")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Half-written, truncated, or no database at all.
    #[error(
        "the store {path} is damaged or is no store ({cause}); move it aside or restore a copy, and run again: Weir starts a new one and leaves the old file alone"
    )]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        cause: String,
    },
    /// No room.
    #[error(
        "no room to write the store {path} ({cause}); make room, or name a file elsewhere with --store"
    )]
    Full {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        cause: String,
    },
    /// Another process holds it for too long.
    #[error(
        "the store {path} is still held by another process; try again, or name another file with --store"
    )]
    Busy {
        /// The store.
        path: PathBuf,
    },
    /// Another program removed, moved or replaced it while it was open.
    #[error(
        "the store {path} was removed, moved or replaced while a run was written to it, and does not have that run"
    )]
    Gone {
        /// The store.
        path: PathBuf,
    },
    /// A store that is to be merged is this one.
    #[error("{path} is the store that others are merged into; name another one")]
    Same {
        /// The store.
        path: PathBuf,
    },
    /// A store that is to be merged is none that can be read.
    #[error("{path} cannot be merged: {why}")]
    Unmerged {
        /// The store.
        path: PathBuf,
        /// What it is.
        why: String,
    },
    /// No such run.
    #[error("the store {path} has no run `{name}`; {known}")]
    NoSuchRun {
        /// The store.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// What there is, in words.
        known: String,
    },
    /// Anything else.
    #[error("the store {path} failed: {cause}")]
    Other {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        cause: String,
    },
}

impl StoreError {
    /// Of a store that is to be merged, which has no option that names it.
    pub(super) fn of_another(self) -> Self {
        let (path, why) = match self {
            Self::Open { path, cause } => (path, format!("it cannot be opened ({cause})")),
            Self::Newer { path, found, known } => {
                let why =
                    format!("it has format {found}, but this Weir knows formats up to {known}");
                (path, format!("{why}; update Weir"))
            }
            Self::Older { path, found } => {
                let why = "which must be upgraded to be read, and it may not be written";
                (path, format!("it has format {found}, {why}; name a copy"))
            }
            Self::Foreign { path } => (path, "it is a database, but not a store of Weir".into()),
            Self::Damaged { path, cause } => {
                (path, format!("it is damaged or is no store ({cause})"))
            }
            Self::Busy { path } => (
                path,
                "it is still held by another process; try again".into(),
            ),
            other => return other,
        };
        Self::Unmerged { path, why }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full { .. }
            | StoreError::Busy { .. }
            | StoreError::Gone { .. }
            | StoreError::Other { .. } => Failure::Work(error.into()),
            _ => Failure::Request(error.into()),
        }
    }
}

/// Gives SQLite's errors the name of the file.
pub(super) trait Located<T> {
    fn at(self, path: &Path) -> Result<T, StoreError>;
}

impl<T> Located<T> for rusqlite::Result<T> {
    fn at(self, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| {
            let path = path.to_path_buf();
            let cause = error.to_string();
            match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    StoreError::Damaged { path, cause }
                }
                Some(ErrorCode::DiskFull) => StoreError::Full { path, cause },
                // Writes that a quota or a file-size limit refuses arrive as I/O errors.
                Some(ErrorCode::SystemIoFailure) => StoreError::Full { path, cause },
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                    StoreError::Busy { path }
                }
                Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                    StoreError::Open { path, cause }
                }
                _ => StoreError::Other { path, cause },
            }
        })
    }
}
