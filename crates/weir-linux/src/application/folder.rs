//! The private folder of an application. A later start removes it if the process that made it was killed.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Trouble;

/// How the names of these folders begin.
pub(super) const NAME: &str = "weir-application-";
/// The file which the owner of a folder holds locked as long as it lives.
const OWNER: &str = "owner";
/// The longest path of a Unix socket, without the zero at its end (unix(7)).
const LONGEST_SOCKET: usize = 107;

/// A folder that only this user can enter, removed with this value.
#[derive(Debug)]
pub(super) struct Folder {
    /// Held locked.
    _owner: File,
    folder: tempfile::TempDir,
}

impl Folder {
    /// Makes one, after those which killed runs have left are removed.
    pub fn make() -> Result<Self, Trouble> {
        Self::make_in(&std::env::temp_dir())
    }

    fn make_in(parent: &Path) -> Result<Self, Trouble> {
        remove_left(parent);
        let failed = |error: std::io::Error| {
            Trouble::system(format!("a folder in {}", parent.display()), error)
        };
        // It has mode 0700.
        let folder = tempfile::Builder::new()
            .prefix(NAME)
            .tempdir_in(parent)
            .map_err(failed)?;
        let owner = File::create_new(folder.path().join(OWNER)).map_err(failed)?;
        owner.try_lock().map_err(|error| failed(error.into()))?;
        Ok(Self {
            _owner: owner,
            folder,
        })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a socket in it.
    pub fn socket(&self) -> Result<PathBuf, Trouble> {
        let path = self.path().join("socket");
        let length = path.as_os_str().len();
        if length > LONGEST_SOCKET {
            return Err(Trouble::Request(format!(
                "the path of a Unix socket has at most {LONGEST_SOCKET} bytes, and {} has {length}; set TMPDIR to a \
                 folder with a shorter path",
                path.display()
            )));
        }
        Ok(path)
    }
}

/// Removes the folders of this user whose owners are gone. What cannot be removed is left to the next start.
fn remove_left(parent: &Path) {
    // A link is no folder, and a folder of another user is left alone.
    let own = fs::metadata("/proc/self").map(|own| own.uid());
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_one = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(NAME));
        let path = entry.path();
        let Some(about) = fs::symlink_metadata(&path).ok().filter(|_| is_one) else {
            continue;
        };
        if !about.is_dir() || own.as_ref().ok() != Some(&about.uid()) {
            continue;
        }
        // A folder without this file is about to be made.
        let Ok(owner) = File::open(path.join(OWNER)) else {
            continue;
        };
        match owner.try_lock() {
            Ok(()) => drop(fs::remove_dir_all(&path)),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_whose_owner_is_gone_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let alive = Folder::make_in(parent.path()).unwrap();
        let left = parent.path().join(format!("{NAME}killed"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join(OWNER), "").unwrap();
        fs::write(left.join("socket"), "").unwrap();
        let unfinished = parent.path().join(format!("{NAME}begun"));
        fs::create_dir(&unfinished).unwrap();
        let next = Folder::make_in(parent.path()).unwrap();
        assert!(alive.path().is_dir() && next.path().is_dir() && unfinished.is_dir());
        assert!(!left.exists());
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let long = parent.path().join("d".repeat(90));
        fs::create_dir(&long).unwrap();
        let why = Folder::make_in(&long).unwrap().socket().unwrap_err();
        assert!(why.to_string().contains("TMPDIR"), "{why}");
    }
}
