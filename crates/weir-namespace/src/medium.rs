//! What a pool is on: a device of DAX, or a file of any file system.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{NamespaceError, Result};
use crate::mapping::{Mapping, gone};

/// Longer than a child that was forked has its parent's files before it executes its program.
const FORKED: Duration = Duration::from_secs(2);
/// The interval at which users are looked for again.
const LOOK: Duration = Duration::from_millis(5);

/// Leaves nothing of what was not there before in a file that was absent or empty.
pub(crate) fn undo(path: &Path, was_there: bool) {
    let _ = match was_there {
        true => File::create(path).map(drop),
        false => std::fs::remove_file(path),
    };
}

/// A file or device that is open.
#[derive(Debug)]
pub(crate) struct Medium {
    pub file: File,
    pub path: PathBuf,
    pub bytes: u64,
    /// What mappings must be multiples of.
    pub unit: u64,
    pub device: bool,
    /// A file in memory, which nothing has to be written to a disk for.
    pub in_memory: bool,
    /// Made just now, so that it is zero.
    pub fresh: bool,
}

impl Medium {
    /// Opens it. An absent or empty file gets `create` bytes.
    pub fn open(path: &Path, write: bool, create: Option<u64>) -> Result<Self> {
        let io = |what| {
            move |source| NamespaceError::Io {
                what,
                path: path.to_owned(),
                source,
            }
        };
        let unfit = |why: String| {
            let path = path.to_owned();
            match create {
                Some(_) => NamespaceError::Unfit { path, why },
                None => NamespaceError::NoPool { path, why },
            }
        };
        // A file in /dev would be in memory, whatever its name.
        let may = !path.starts_with("/dev") || path.starts_with("/dev/shm");
        if !may && !path.exists() {
            return Err(unfit("there is no such device".into()));
        }
        let was_there = path.exists();
        let mut options = OpenOptions::new();
        // To open a named pipe would wait for its writer.
        options
            .read(true)
            .write(write)
            .mode(0o600)
            .custom_flags(libc::O_NONBLOCK);
        let file = options
            .create(create.is_some() && write && may)
            .open(path)
            .map_err(io("open"))?;
        let metadata = file.metadata().map_err(io("examine"))?;
        if metadata.file_type().is_char_device() {
            let (bytes, unit) = device(&metadata).map_err(unfit)?;
            return Ok(Self {
                file,
                path: path.to_owned(),
                bytes,
                unit,
                device: true,
                in_memory: false,
                fresh: false,
            });
        }
        if !metadata.is_file() {
            return Err(unfit("it is neither a file nor a DAX device".into()));
        }
        let mut bytes = metadata.len();
        let fresh = bytes == 0 && create.is_some();
        // A size that is too small is refused with the least one.
        if let (true, Some(wanted @ 1..)) = (fresh, create) {
            // Blocks are there before they are mapped: a full file system is an error here, and no SIGBUS later.
            if let Err(source) = allocate(&file, wanted) {
                undo(path, was_there);
                return Err(io("allocate the blocks of")(source));
            }
            bytes = wanted;
        }
        Ok(Self {
            in_memory: in_memory(&file).map_err(io("examine"))?,
            file,
            path: path.to_owned(),
            bytes,
            unit: page(),
            device: false,
            fresh,
        })
    }

    /// Whether all of a mapping's part, whose first byte is at `offset`, is still there. The last page of a file that was cut
    /// off can be accessed beyond its end, and what is stored there is lost.
    ///
    /// # Errors
    /// Some of it is not.
    pub fn reach(&self, map: &Mapping, offset: u64, at: usize, bytes: usize) -> io::Result<()> {
        if !self.device && self.file.metadata()?.len() < offset + (at + bytes) as u64 {
            return Err(gone());
        }
        map.reach(at, bytes)
    }

    /// Processes but this one that have it open for longer than a child does which another thread forks and which is
    /// yet to execute its program, as far as /proc says so to this user.
    pub fn users(&self) -> Vec<String> {
        let began = Instant::now();
        loop {
            let users = self.users_now();
            if users.is_empty() || began.elapsed() > FORKED {
                return users;
            }
            std::thread::sleep(LOOK);
        }
    }

    fn users_now(&self) -> Vec<String> {
        let Ok(own) = self.file.metadata() else {
            return Vec::new();
        };
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        let has = |pid: u32| {
            let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
            open.into_iter().flatten().flatten().any(|fd| {
                std::fs::metadata(fd.path()).is_ok_and(|m| {
                    (m.dev(), m.ino(), m.rdev()) == (own.dev(), own.ino(), own.rdev())
                })
            })
        };
        pids.filter(|pid| *pid != std::process::id() && has(*pid))
            .map(crate::identity::described)
            .collect()
    }
}

/// Size and alignment of a DAX device, by sysfs (Documentation/ABI/testing/sysfs-bus-dax of Linux).
fn device(metadata: &std::fs::Metadata) -> std::result::Result<(u64, u64), String> {
    let (major, minor) = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
    let folder = PathBuf::from(format!("/sys/dev/char/{major}:{minor}"));
    let is_dax = std::fs::canonicalize(folder.join("subsystem")).is_ok_and(|s| s.ends_with("dax"));
    if !is_dax {
        return Err("it is neither a file nor a DAX device".into());
    }
    let number = |key: &str| {
        let text = std::fs::read_to_string(folder.join(key)).map_err(|e| format!("{key}: {e}"))?;
        let number = text.trim().parse::<u64>();
        number.map_err(|_| format!("{key} of its sysfs is {text:?}"))
    };
    // Kernels before 5.10 do not say it.
    Ok((number("size")?, number("align").unwrap_or(2 << 20)))
}

/// Whether it is on tmpfs, ramfs or hugetlbfs, or is a file of sysfs that maps a device (statfs(2) lists the numbers).
fn in_memory(file: &File) -> io::Result<bool> {
    // SAFETY: a plain structure, which the call fills.
    let found = unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(file.as_raw_fd(), &raw mut found) != 0 {
            return Err(io::Error::last_os_error());
        }
        found
    };
    let kind = found.f_type as u64 & 0xffff_ffff;
    Ok(matches!(
        kind,
        0x0102_1994 | 0x8584_58f6 | 0x9584_58f6 | 0x6265_6572
    ))
}

/// Bytes of a page of this kernel.
fn page() -> u64 {
    // SAFETY: a call without effects.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(page).unwrap_or(4096).max(4096)
}

fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: a call on our own descriptor.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
        return Ok(());
    }
    let source = io::Error::last_os_error();
    match source.raw_os_error() {
        Some(libc::EOPNOTSUPP) => file.set_len(bytes),
        _ => Err(source),
    }
}
