//! A pool on disk: the file or device, and next to it the table of owners.
//!
//! The table is written before anything that it permits is done, and replaced whole, so that a manager which is killed
//! at any moment leaves one that says what may be in use.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use weir_linux::vm::PoolFile;
use weir_model::number::count;
use weir_model::units::Bytes;
use weir_plan::pool::owners::{Owners, WrongStep};

use crate::failure::{Failure, Result};
use crate::files;

/// The value of `schema` in tables that this version writes.
const SCHEMA: &str = "weir/pool-table/1";
/// The longest table: some 200 bytes for a slice.
const LONGEST: usize = 64 << 20;
/// How long another manager is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// The interval at which it is looked for.
const LOOK: Duration = Duration::from_millis(10);
/// The most slices of a pool.
const MOST_SLICES: u64 = 1 << 16;
/// Slices are a multiple of this: no page is larger than 2 MiB without being asked for, and tests use files of one.
pub const UNIT: u64 = 1 << 20;

/// The table as it is on disk.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    schema: String,
    slice_bytes: u64,
    slices: Owners,
}

/// A pool that this process alone may change.
#[derive(Debug)]
pub struct Pool {
    /// Its memory.
    pub file: PoolFile,
    /// The size of a slice.
    pub slice: Bytes,
    table: PathBuf,
    owners: Owners,
}

/// The table of a pool, unless another one is named.
pub fn table_of(file: &Path, named: Option<&Path>) -> PathBuf {
    let beside = || {
        let mut name = OsString::from(file);
        name.push(".slices");
        name.into()
    };
    named.map_or_else(beside, Path::to_path_buf)
}

impl Pool {
    /// Makes a pool of a new file, all of whose slices are free.
    ///
    /// # Errors
    /// A size is wrong, there is such a file already, or it cannot be written.
    pub fn create(path: &Path, table: &Path, size: Bytes, slice: Bytes) -> Result<Self> {
        let slices = slices_of(size, slice)?;
        if table.exists() {
            return Err(Failure::request(format!(
                "{} exists: it is the table of a pool; `weir pool create {} --scrub` makes that pool anew",
                table.display(),
                path.display()
            )));
        }
        let file = PoolFile::create(path, size.get()).map_err(|error| {
            let name = path.display();
            match error.kind() {
                io::ErrorKind::AlreadyExists => Failure::request(format!(
                    "{name} exists; name another file, or add --scrub to overwrite all of it"
                )),
                _ => Failure::work(format!("cannot make the pool {name}: {error}")),
            }
        })?;
        let owners = Owners::free(slices);
        Self::begin(file, table, slice, owners)
    }

    /// Makes a pool of a file or device that is there. The content of its slices is unknown, and any process may map them.
    ///
    /// # Errors
    /// A size is wrong, or the file cannot be opened.
    pub fn over(path: &Path, table: &Path, size: Option<Bytes>, slice: Bytes) -> Result<Self> {
        let file = open(path)?;
        let whole = bytes_of(&file)?;
        let size = size.unwrap_or(Bytes(whole - whole % slice.get().max(1)));
        if size.get() > whole {
            return Err(Failure::request(format!(
                "{} has {}, which is less than {size}",
                path.display(),
                Bytes(whole)
            )));
        }
        let owners = Owners::unknown(slices_of(size, slice)?);
        Self::begin(file, table, slice, owners)
    }

    fn begin(file: PoolFile, table: &Path, slice: Bytes, owners: Owners) -> Result<Self> {
        let pool = Self {
            file,
            slice,
            table: table.to_owned(),
            owners,
        };
        pool.take_lock()?;
        pool.write()?;
        Ok(pool)
    }

    /// Opens a pool to change it.
    ///
    /// # Errors
    /// There is none, its table is damaged, or another manager is at work.
    pub fn open(path: &Path, table: &Path) -> Result<Self> {
        let mut pool = Self::read(path, table)?;
        pool.take_lock()?;
        // What was read before the lock may be old.
        pool.owners = Self::read(path, table)?.owners;
        Ok(pool)
    }

    /// Opens a pool to look at it.
    ///
    /// # Errors
    /// There is none, or its table is damaged.
    pub fn read(path: &Path, table: &Path) -> Result<Self> {
        let file = open(path)?;
        if !table.exists() {
            return Err(Failure::request(format!(
                "{} is no pool: there is no table {}; `weir pool create` makes one, --table names another place",
                path.display(),
                table.display()
            )));
        }
        let text = files::text(table, "table of a pool", LONGEST)?;
        let damaged = |why: String| {
            Failure::request(format!(
                "the table {} is damaged: {why}; when the VMs that use the pool have ended, `weir pool create {} --scrub` \
                 makes it anew",
                table.display(),
                path.display()
            ))
        };
        let kept: Kept = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if kept.schema != SCHEMA {
            return Err(Failure::request(format!(
                "the table {} is of the kind `{}`; this version reads {SCHEMA}",
                table.display(),
                kept.schema
            )));
        }
        let slices = kept.slices.slices().len() as u64;
        let whole = bytes_of(&file)?;
        if kept.slice_bytes == 0 || !kept.slice_bytes.is_multiple_of(UNIT) {
            return Err(damaged(format!("a slice has {} bytes", kept.slice_bytes)));
        }
        if slices
            .checked_mul(kept.slice_bytes)
            .is_none_or(|b| b > whole)
        {
            return Err(damaged(format!(
                "it has {} of {}, and {} has {}",
                count(slices, "slice"),
                Bytes(kept.slice_bytes),
                path.display(),
                Bytes(whole)
            )));
        }
        if !kept.slices.is_sound() {
            return Err(damaged(
                "a slice that is in use has no VM, or one that is free has one".into(),
            ));
        }
        Ok(Self {
            file,
            slice: Bytes(kept.slice_bytes),
            table: table.to_owned(),
            owners: kept.slices,
        })
    }

    /// Waits a while for a manager that is at work: most take milliseconds, and VMs start at the same time.
    fn take_lock(&self) -> Result<()> {
        let name = self.file.path().display();
        let until = Instant::now() + PATIENCE;
        loop {
            match self.file.lock() {
                Ok(true) => return Ok(()),
                Ok(false) if Instant::now() < until => std::thread::sleep(LOOK),
                Ok(false) => {
                    return Err(Failure::work(format!(
                        "another weir is changing the pool {name}; try again when it has ended"
                    )));
                }
                Err(error) => {
                    return Err(Failure::work(format!(
                        "cannot lock the pool {name}: {error}"
                    )));
                }
            }
        }
    }

    /// Which VM owns what.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Changes which VM owns what; it is on disk when this returns.
    ///
    /// # Errors
    /// It cannot be written; then it is as before.
    pub fn change(
        &mut self,
        step: impl FnOnce(&mut Owners) -> std::result::Result<(), WrongStep>,
    ) -> Result<()> {
        let before = self.owners.clone();
        let stepped = step(&mut self.owners);
        let stepped = stepped.map_err(|wrong| Failure::work(wrong.to_string()));
        let kept = stepped.and_then(|()| self.write());
        kept.inspect_err(|_| self.owners = before)
    }

    fn write(&self) -> Result<()> {
        let kept = Kept {
            schema: SCHEMA.into(),
            slice_bytes: self.slice.get(),
            slices: self.owners.clone(),
        };
        let text = serde_json::to_string(&kept).context("cannot write JSON")?;
        files::write(&self.table, text + "\n")?;
        // Only then does the new table survive a loss of power.
        let folder = self
            .table
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.with_context(|| format!("cannot write {}", folder.display()))?;
        Ok(())
    }

    /// Where a slice is in the file.
    pub fn range(&self, slice: usize) -> Range<u64> {
        let start = slice as u64 * self.slice.get();
        start..start + self.slice.get()
    }
}

fn open(path: &Path) -> Result<PoolFile> {
    PoolFile::open(path)
        .with_context(|| format!("cannot open the pool {}", path.display()))
        .map_err(Failure::Request)
}

fn bytes_of(file: &PoolFile) -> Result<u64> {
    let bytes = file.bytes();
    Ok(bytes.with_context(|| format!("cannot tell the size of {}", file.path().display()))?)
}

/// How many slices a pool has.
fn slices_of(size: Bytes, slice: Bytes) -> Result<usize> {
    if slice.get() == 0 || !slice.get().is_multiple_of(UNIT) {
        return Err(Failure::request(format!(
            "--slice is {slice}; it must be a multiple of {}",
            Bytes(UNIT)
        )));
    }
    let slices = size.get() / slice.get();
    if !size.get().is_multiple_of(slice.get()) || !(1..=MOST_SLICES).contains(&slices) {
        return Err(Failure::request(format!(
            "--size is {size}; it must be 1 to {MOST_SLICES} slices of {slice}"
        )));
    }
    Ok(slices as usize)
}
