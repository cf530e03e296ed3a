//! An open file with an flock(2) of its own, for one process at a time.

use std::fs::{File, TryLockError};
use std::ops::{Deref, DerefMut};

/// A locked file. The lock ends with the process, or when this value is dropped.
#[derive(Debug)]
pub(crate) struct Locked(File);

impl Locked {
    /// Locks a file that is open, without waiting.
    ///
    /// # Errors
    /// Another process has the lock, or the file system has no locks.
    pub fn new(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self(file))
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for Locked {
    /// Closing is not enough: a child that is being started has a copy of the file until it executes its program, and
    /// the lock would last as long.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_has_a_copy_of_is_free_once_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let open = || File::create(&path).unwrap();
        let first = Locked::new(open()).unwrap();
        let copy = first.try_clone().unwrap();
        assert!(matches!(Locked::new(open()), Err(TryLockError::WouldBlock)));
        drop(first);
        Locked::new(open()).unwrap();
        drop(copy);
    }
}
