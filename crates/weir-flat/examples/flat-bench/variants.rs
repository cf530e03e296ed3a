//! The ways to read and write: calls on files of a file system, and a store.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_flat::{Buffer, Options, Store};

use crate::{Asked, IO};

pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

pub const FILES: usize = 16;

/// One of the ways, with 16 files that have content.
pub enum Variant {
    /// pread(2) and pwrite(2) into ordinary memory.
    Calls {
        name: String,
        files: Vec<File>,
        archive: File,
        bytes: usize,
        flushed: bool,
    },
    /// The library; with and without flushes behind the program.
    Flat {
        name: String,
        plain: Flat,
        flushing: Flat,
        bytes: usize,
    },
}

/// A store, its files, and the descriptor by which the medium's own page cache is dropped.
pub struct Flat {
    store: Store,
    files: Vec<weir_flat::File>,
    archive: weir_flat::File,
    medium: File,
}

/// What a thread reads into and writes from.
pub enum Memory {
    Plain(Vec<u8>),
    Pages(Buffer),
}

fn calls(name: &str, folder: &Path, bytes: usize, flushed: bool) -> Outcome<Variant> {
    let open = |name: &str| {
        // The name is gone at once, and the space when the program ends.
        let path = folder.join(format!("flat-bench-{}-{name}", std::process::id()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        std::fs::remove_file(&path)?;
        io::Result::Ok(file)
    };
    let content: Vec<u8> = (0..IO).map(|at| at as u8).collect();
    let mut files = Vec::new();
    for nth in 0..FILES {
        let file = open(&nth.to_string())?;
        (0..bytes / IO).try_for_each(|at| file.write_all_at(&content, (at * IO) as u64))?;
        files.push(file);
    }
    let archive = open("archive")?;
    (0..66 << 20 >> 21).try_for_each(|at| archive.write_all_at(&content, at * IO as u64))?;
    Ok(Variant::Calls {
        name: name.to_owned(),
        files,
        archive,
        bytes,
        flushed,
    })
}

fn flat(folder: &Path, bytes: usize, flush: bool) -> Outcome<Flat> {
    let path = folder.join(format!("flat-bench-{}-store-{flush}", std::process::id()));
    let whole = (bytes * FILES + (96 << 20)) as u64;
    // Room for a version of everything on the medium, for what is read or written now in DRAM.
    let options = Options {
        create: Some(whole * 5 / 2),
        cache: whole + whole / 2 + (IO * 64) as u64,
        flush_every: flush.then_some(Duration::from_millis(10)),
        ..Options::default()
    };
    let store = Store::open(&path, options)?;
    let medium = File::open(&path)?;
    std::fs::remove_file(&path)?;
    let content: Vec<u8> = (0..IO).map(|at| at as u8).collect();
    let mut files = Vec::new();
    for nth in 0..FILES {
        let file = store.create(&nth.to_string())?;
        (0..bytes / IO).try_for_each(|at| file.write_from((at * IO) as u64, &content))?;
        files.push(file);
    }
    let archive = store.create("archive")?;
    store.flush()?;
    Ok(Flat {
        store,
        files,
        archive,
        medium,
    })
}

/// The kernel's name of a file system, as `df -T` has it.
fn file_system(folder: &Path) -> Outcome<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let folder = folder.canonicalize()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    });
    let within = mounts
        .filter(|(at, _)| folder.starts_with(at))
        .max_by_key(|(at, _)| at.len());
    Ok(within.map_or("file system".to_owned(), |(_, kind)| kind))
}

/// What can be measured here.
pub fn all(asked: &Asked) -> Outcome<Vec<Variant>> {
    let bytes = asked.file;
    let store = |name: &str, folder: &Path| {
        let (plain, flushing) = (flat(folder, bytes, false)?, flat(folder, bytes, true)?);
        Outcome::Ok(Variant::Flat {
            name: name.to_owned(),
            plain,
            flushing,
            bytes,
        })
    };
    let mut variants = vec![calls(
        &file_system(&asked.folder)?,
        &asked.folder,
        bytes,
        true,
    )?];
    if let Some(folder) = &asked.tmpfs {
        variants.push(calls("tmpfs", folder, bytes, false)?);
    }
    if let Some(folder) = &asked.dax {
        variants.push(calls("dax", folder, bytes, false)?);
        variants.push(store("flat-dax", folder)?);
    }
    variants.push(store("flat", &asked.folder)?);
    Ok(variants)
}

impl Variant {
    pub fn name(&self) -> String {
        match self {
            Self::Calls { name, .. } | Self::Flat { name, .. } => name.clone(),
        }
    }

    /// Blocks of 2 MB in each file.
    pub fn blocks(&self) -> usize {
        match self {
            Self::Calls { bytes, .. } | Self::Flat { bytes, .. } => bytes / IO,
        }
    }

    /// Whether a cache stands between it and a medium.
    pub fn cached(&self) -> bool {
        matches!(self, Self::Flat { .. } | Self::Calls { flushed: true, .. })
    }

    pub fn memory(&self) -> Outcome<Memory> {
        Ok(match self {
            Self::Calls { .. } => Memory::Plain(vec![1; IO]),
            Self::Flat { plain, .. } => Memory::Pages(plain.store.buffer(IO)?),
        })
    }

    pub fn flushing_memory(&self) -> Outcome<Memory> {
        match self {
            Self::Calls { .. } => self.memory(),
            Self::Flat { flushing, .. } => Ok(Memory::Pages(flushing.store.buffer(IO)?)),
        }
    }

    /// Reads or writes a part of a file. `file` 16 is the archive.
    pub fn read(&self, file: usize, at: u64, len: usize, into: &mut Memory) -> Outcome<()> {
        match (self, into) {
            (Self::Calls { files, archive, .. }, Memory::Plain(into)) => {
                files
                    .get(file)
                    .unwrap_or(archive)
                    .read_exact_at(&mut into[..len], at)?;
            }
            (Self::Flat { plain, .. }, Memory::Pages(into)) => {
                plain
                    .files
                    .get(file)
                    .unwrap_or(&plain.archive)
                    .read(at, len, into)?;
            }
            _ => return Err("memory of another variant".into()),
        }
        Ok(())
    }

    /// The same, for a program that says that it will store into it.
    pub fn read_to_modify(
        &self,
        file: usize,
        at: u64,
        len: usize,
        into: &mut Memory,
    ) -> Outcome<()> {
        match (self, into) {
            (Self::Flat { plain, .. }, Memory::Pages(into)) => {
                plain.files[file].read_to_modify(at, len, into)?;
                Ok(())
            }
            (_, into) => self.read(file, at, len, into),
        }
    }

    pub fn write(
        &self,
        file: usize,
        at: u64,
        len: usize,
        from: &mut Memory,
        flushed: bool,
    ) -> Outcome<()> {
        match (self, from) {
            (Self::Calls { files, archive, .. }, Memory::Plain(from)) => {
                files
                    .get(file)
                    .unwrap_or(archive)
                    .write_all_at(&from[..len], at)?;
            }
            (
                Self::Flat {
                    plain, flushing, ..
                },
                Memory::Pages(from),
            ) => {
                let of = if flushed { flushing } else { plain };
                from.set_window(0, len)?;
                of.files.get(file).unwrap_or(&of.archive).write(at, from)?;
            }
            _ => return Err("memory of another variant".into()),
        }
        Ok(())
    }

    /// Makes all reads cold.
    pub fn drop_caches(&self) -> Outcome<()> {
        let forget = |file: &File| {
            file.sync_data()?;
            // SAFETY: advice on our own descriptor.
            let code =
                unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
            if code == 0 {
                Ok(())
            } else {
                Err(io::Error::from_raw_os_error(code))
            }
        };
        match self {
            Self::Calls { files, .. } => files.iter().try_for_each(forget)?,
            Self::Flat { plain, .. } => {
                plain.store.drop_caches()?;
                forget(&plain.medium)?;
            }
        }
        Ok(())
    }

    /// What the line before wrote is on the medium, and does not burden the next one.
    pub fn settle(&self) -> Outcome<()> {
        match self {
            Self::Calls {
                files,
                archive,
                flushed: true,
                ..
            } => {
                files
                    .iter()
                    .chain([archive])
                    .try_for_each(File::sync_data)?;
            }
            Self::Calls { .. } => {}
            Self::Flat {
                plain, flushing, ..
            } => {
                plain.store.flush()?;
                flushing.store.flush()?;
                plain.medium.sync_data()?;
                flushing.medium.sync_data()?;
            }
        }
        Ok(())
    }

    /// Runs work while dirty pages are flushed behind it: every 100 ms for a file system, as in the paper; a store
    /// does it itself.
    pub fn while_flushing<T>(&self, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let Self::Calls { files, .. } = self else {
            return work();
        };
        let done = AtomicBool::new(false);
        let failed = Mutex::new(None);
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    if let Err(why) = files.iter().try_for_each(File::sync_data) {
                        *failed
                            .lock()
                            .unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(why);
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
            let result = work();
            done.store(true, Ordering::Relaxed);
            result
        });
        match failed
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
        {
            Some(why) => Err(why.into()),
            None => result,
        }
    }
}

impl Memory {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Pages(buffer) => buffer.bytes(),
        }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Pages(buffer) => buffer.bytes_mut(),
        }
    }

    /// Gives it fresh frames, since the program will write all of it.
    pub fn renew(&mut self) -> Outcome<()> {
        if let Self::Pages(buffer) = self {
            buffer.renew()?;
            buffer.set_window(0, IO)?;
        }
        Ok(())
    }
}
