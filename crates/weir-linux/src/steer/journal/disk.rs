//! The files of a journal: one in a folder, and another that names its owner.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file that grows at its end, or is replaced as a whole.
pub(crate) trait Storage: std::fmt::Debug + Send {
    /// All bytes; none if there is no file yet.
    fn read(&mut self) -> io::Result<Vec<u8>>;

    /// Appends bytes; with `sync` they are on disk when this returns. After a failure the file is as before.
    fn append(&mut self, bytes: &[u8], sync: bool) -> io::Result<()>;

    /// Replaces all bytes, on disk: a later reader finds either the old or the new ones.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// A folder of this machine's disks.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    file: Option<File>,
    /// The lock, held as long as this value lives.
    lock: File,
}

/// Why a folder is not available.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotOurs {
    /// Another process keeps the journal.
    #[error("{0}")]
    Kept(String),
    /// A call failed.
    #[error("{0}: {1}")]
    Failed(String, io::Error),
}

const JOURNAL: &str = "journal";

impl Disk {
    /// Takes a folder, which is made if it does not exist.
    ///
    /// # Errors
    /// Another process has it, or a call failed.
    pub fn take(folder: &Path) -> Result<Self, NotOurs> {
        let failed = |what: &str| {
            let what = format!("{what} {}", folder.display());
            move |error| NotOurs::Failed(what, error)
        };
        if !folder.is_dir() {
            std::fs::create_dir_all(folder).map_err(failed("making"))?;
            let above = folder.parent().filter(|above| *above != Path::new(""));
            let above = File::open(above.unwrap_or(Path::new(".")));
            above
                .and_then(|above| above.sync_all())
                .map_err(failed("syncing the folder above"))?;
        }
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(folder.join("lock"))
            .map_err(failed("opening the lock in"))?;
        if let Err(error) = lock.try_lock() {
            let TryLockError::WouldBlock = error else {
                return Err(failed("locking")(error.into()));
            };
            let mut who = String::new();
            // The process with the lock may not have signed yet.
            let _ = lock.read_to_string(&mut who);
            let who = who.trim();
            let who = if who.is_empty() { "another one" } else { who };
            return Err(NotOurs::Kept(format!(
                "{who} steers this host, by the lock in {}: end it first",
                folder.display()
            )));
        }
        let sign = |lock: &mut File| {
            lock.set_len(0)?;
            lock.seek(SeekFrom::Start(0))?;
            writeln!(lock, "process {}", std::process::id())
        };
        // A signature is for people; on a full disk there is none.
        let _ = sign(&mut lock);
        Ok(Self {
            folder: folder.to_owned(),
            file: None,
            lock,
        })
    }

    fn path(&self) -> PathBuf {
        self.folder.join(JOURNAL)
    }
}

impl Drop for Disk {
    /// A child that is being started has a copy of the file until it executes its program, and the lock would
    /// last as long.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

impl Storage for Disk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        match std::fs::read(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            result => result,
        }
    }

    fn append(&mut self, bytes: &[u8], sync: bool) -> io::Result<()> {
        let path = self.path();
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::options().append(true).open(path)?),
        };
        let length = file.metadata()?.len();
        let put = |file: &mut File| {
            file.write_all(bytes)?;
            if sync { file.sync_data() } else { Ok(()) }
        };
        put(file).inspect_err(|_| {
            // Half a line would spoil the next one.
            let _ = file.set_len(length);
        })
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let new = self.folder.join("journal.new");
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&new, self.path())?;
        File::open(&self.folder)?.sync_all()?;
        self.file = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_has_a_copy_of_is_free_once_it_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let first = Disk::take(folder.path()).unwrap();
        let copy = first.lock.try_clone().unwrap();
        assert!(matches!(Disk::take(folder.path()), Err(NotOurs::Kept(_))));
        drop(first);
        Disk::take(folder.path()).unwrap();
        drop(copy);
    }
}
