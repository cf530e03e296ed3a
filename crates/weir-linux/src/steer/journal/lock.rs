//! Locks: one process at a time changes a host, and one has a journal.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::locked::Locked;
use crate::root::Root;

/// Why a lock or a folder is not available.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotOurs {
    /// Another process has it.
    #[error("{0}")]
    Kept(String),
    /// The folder has no journal.
    #[error("{0}")]
    NoJournal(String),
    /// The folder had a journal, as far as can be seen.
    #[error("{0}")]
    Lost(String),
    /// A call failed.
    #[error("{0}: {1}")]
    Failed(String, io::Error),
}

/// The folder of the lock of a host.
const RUN: &str = "/run/weir";

/// A lock that ends with its process, or when it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: Locked,
}

impl Lock {
    /// Locks a host against other journals. Another user than root gets no lock, since only root may open its
    /// file: so no other user can block root, and what root steers is not delegated.
    ///
    /// # Errors
    /// Another process has the lock, or a call failed.
    pub fn of_host(root: &Root) -> Result<Option<Self>, NotOurs> {
        let Some(folder) = root.on_disk(RUN) else {
            return Ok(None);
        };
        let made = fs::create_dir_all(&folder);
        let made = made.map_err(|error| NotOurs::Failed(format!("making {RUN}"), error));
        match made.and_then(|()| Self::of_file(&folder.join("steer.lock"))) {
            Err(NotOurs::Failed(_, error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                Ok(None)
            }
            locked => locked.map(Some),
        }
    }

    /// Locks a file, which is made if it does not exist. Only its owner may open it: a process that can open a
    /// file can lock it.
    ///
    /// # Errors
    /// Another process has the lock, or a call failed.
    pub fn of_file(path: &Path) -> Result<Self, NotOurs> {
        let failed = |error| NotOurs::Failed(format!("locking {}", path.display()), error);
        let open = |write| {
            let mut options = File::options();
            options
                .read(true)
                .write(write)
                .create(write)
                .truncate(false);
            options
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(path)
        };
        // On a disk that has become read-only, an existing file can still be locked.
        let file = match open(true) {
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => open(false),
            opened => opened,
        }
        .map_err(failed)?;
        // Earlier versions made it with the permissions of any other file.
        let _ = file.set_permissions(Permissions::from_mode(0o600));
        let mut file = match Locked::new(file) {
            Err(TryLockError::WouldBlock) => {
                // The process with the lock may not have signed yet.
                let who = fs::read_to_string(path).unwrap_or_default();
                let who = match who.trim() {
                    "" => "another process",
                    who => who,
                };
                return Err(NotOurs::Kept(format!(
                    "{who} steers this host or measures on it, by the lock {}: end it first",
                    path.display()
                )));
            }
            locked => locked.map_err(|error| failed(error.into()))?,
        };
        let sign = |file: &mut File| {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            writeln!(file, "process {}", std::process::id())
        };
        // The signature is for people; on a full disk it is left out.
        let _ = sign(&mut file);
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_may_open_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let _locked = Lock::of_file(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
