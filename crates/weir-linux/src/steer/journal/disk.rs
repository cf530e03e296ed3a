//! The file of a journal in its folder.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::lock::{Lock, NotOurs};
use crate::root::Root;

/// A file that grows at its end, or is replaced as a whole.
pub(crate) trait Storage: std::fmt::Debug + Send {
    /// All bytes; none if there is no file yet.
    fn read(&mut self) -> io::Result<Vec<u8>>;

    /// Appends bytes; with `sync` they are on disk when this returns. After a failure the file is as before.
    fn append(&mut self, bytes: &[u8], sync: bool) -> io::Result<()>;

    /// Replaces all bytes, on disk: a later reader finds either the old or the new ones. It is a directory
    /// ([`io::ErrorKind::IsADirectory`]) where one has the place of the file.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Whether the file is still there, with the bytes that were written: another program may have removed, replaced or
    /// cut it.
    fn is_whole(&self, _length: usize) -> bool {
        true
    }

    /// Gives the file a second name, under which it stays when it is replaced; returns that name.
    fn keep_aside(&mut self) -> io::Result<String>;
}

/// What a journal names, and so which other journals may be in use at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Settings of the host and limits of its tenants: no other journal of this extent.
    Host,
    /// Registers of processors, and resctrl groups of the threads of one measurement. Only measurements change these, by
    /// one folder, so that the lock of the folder is enough.
    Run,
}

/// A folder of this machine's disks.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    file: Option<File>,
    /// Held as long as this value lives.
    _locks: Vec<Lock>,
}

const JOURNAL: &str = "journal";
const LOCK: &str = "lock";
/// A journal before it has its name; it stays where it could not be written.
const NEW: &str = "journal.new";
/// The longest journal, in bytes; it is rewritten long before.
const LONGEST: u64 = 1 << 26;

impl Disk {
    /// Takes a host and a folder, which is made if it does not exist.
    ///
    /// # Errors
    /// Another process has one of them, or a call failed.
    pub fn take(root: &Root, folder: &Path, extent: Extent) -> Result<Self, NotOurs> {
        let failed = |what: &str| {
            let what = format!("{what} {}", folder.display());
            move |error| NotOurs::Failed(what, error)
        };
        if !folder.is_dir() {
            fs::create_dir_all(folder).map_err(failed("making"))?;
            let above = folder.parent().filter(|above| *above != Path::new(""));
            let above = File::open(above.unwrap_or(Path::new(".")));
            above
                .and_then(|above| above.sync_all())
                .map_err(failed("syncing the folder above"))?;
        }
        let mut locks: Vec<Lock> = of_host(root, extent)?.into_iter().collect();
        if [LOCK, JOURNAL]
            .iter()
            .all(|name| !folder.join(name).exists())
        {
            // Of a run that is killed before its first journal this says so, once there is a lock.
            let _ = File::create_new(folder.join(NEW));
        }
        locks.push(Lock::of_file(&folder.join(LOCK))?);
        Ok(Self::with(folder, locks))
    }

    /// Takes a folder with a journal, to restore what that says. A disk on which no lock can be made has none of
    /// another process either; a lock of another user may be in use.
    ///
    /// # Errors
    /// Another process has the host or the folder, the lock of the folder is another user's, or there is no journal in it.
    pub fn take_left(root: &Root, folder: &Path, extent: Extent) -> Result<Self, NotOurs> {
        let shown = folder.display();
        match fs::symlink_metadata(folder.join(JOURNAL)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let none = format!("there is no journal in {shown}");
                return Err(lost(folder).map_or(NotOurs::NoJournal(none), NotOurs::Lost));
            }
            Err(error) => return Err(NotOurs::Failed(format!("looking into {shown}"), error)),
            Ok(_) => {}
        }
        let mut locks = Vec::new();
        let own = Lock::of_file(&folder.join(LOCK)).map(Some);
        for lock in [of_host(root, extent), own] {
            match lock {
                Ok(lock) => locks.extend(lock),
                Err(NotOurs::Failed(_, why)) if why.kind() != io::ErrorKind::PermissionDenied => {}
                Err(kept) => return Err(kept),
            }
        }
        Ok(Self::with(folder, locks))
    }

    fn with(folder: &Path, locks: Vec<Lock>) -> Self {
        Self {
            folder: folder.to_owned(),
            file: None,
            _locks: locks,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(JOURNAL)
    }
}

/// What is not known where a folder has the lock of an earlier run, and no journal: a run takes the lock first, and leaves both,
/// unless its first journal was not written.
pub(crate) fn lost(folder: &Path) -> Option<String> {
    let has = |name: &str| folder.join(name).exists();
    let is_lost = has(LOCK) && !has(JOURNAL) && !has(NEW);
    is_lost.then(|| {
        "it is not there, but the lock of a run is: either that run ended before it changed anything, or the journal was \
         removed, and what is left changed is not known"
            .to_owned()
    })
}

fn of_host(root: &Root, extent: Extent) -> Result<Option<Lock>, NotOurs> {
    match extent {
        Extent::Host => Lock::of_host(root),
        Extent::Run => Ok(None),
    }
}

impl Storage for Disk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let path = self.path();
        let is_file = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found?.is_file(),
        };
        let mut bytes = Vec::new();
        // Opening a pipe would block.
        if is_file {
            File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
        }
        match is_file && (bytes.len() as u64) < LONGEST {
            true => Ok(bytes),
            false => Err(io::Error::other("`journal` in it is not a journal of Weir")),
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
        let new = self.folder.join(NEW);
        // The folder may have been removed since it was taken.
        fs::create_dir_all(&self.folder)?;
        let mut file = File::create(&new).map_err(|error| match error.kind() {
            // `journal` itself is still there.
            io::ErrorKind::IsADirectory => io::Error::other(format!("{NEW}: {error}")),
            _ => error,
        })?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, self.path())?;
        File::open(&self.folder)?.sync_all()?;
        self.file = Some(File::options().append(true).open(self.path())?);
        Ok(())
    }

    fn is_whole(&self, length: usize) -> bool {
        let Some(file) = &self.file else {
            return true;
        };
        let facts = |file: &fs::Metadata| (file.dev(), file.ino());
        let (Ok(ours), Ok(now)) = (file.metadata(), fs::symlink_metadata(self.path())) else {
            return false;
        };
        facts(&ours) == facts(&now) && now.len() == length as u64
    }

    fn keep_aside(&mut self) -> io::Result<String> {
        let mut number = 1;
        loop {
            let name = self.folder.join(format!("journal.damaged-{number}"));
            match fs::hard_link(self.path(), &name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                linked => return linked.map(|()| name.display().to_string()),
            }
        }
    }
}
