//! What the store is on: a file of a DAX file system, of any other one, or a device of DAX.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{FlatError, Result};
use crate::extents::PAGE;

/// Bytes that survive the process, and perhaps the machine. Implement it to put a store on something else, or to
/// test what happens when it fails.
pub trait Medium: Send + Sync {
    /// Its size in bytes.
    fn bytes(&self) -> u64;
    /// Reads all of `into` from this byte on.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
    /// Writes all of `from` from this byte on.
    fn write_at(&self, at: u64, from: &[u8]) -> io::Result<()>;
    /// What was written before is durable before it returns, as far as this medium can.
    fn barrier(&self) -> io::Result<()>;
    /// The file whose pages may be mapped privately where a read misses; `None` where reads must copy.
    fn mappable(&self) -> Option<BorrowedFd<'_>>;
    /// These bytes will be read through a mapping soon: they may be fetched ahead.
    fn will_read(&self, _at: u64, _bytes: u64) {}
    /// Whether what a barrier covers survives a loss of power.
    fn durable(&self) -> bool;
    /// What it is, for people: `ext4`, `ext4 with DAX`.
    fn kind(&self) -> String;
    /// Its name in messages.
    fn path(&self) -> &Path;
}

/// A file, or a device of DAX (`/dev/dax0.0`).
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    path: PathBuf,
    bytes: u64,
    kind: String,
    durable: bool,
    device: Option<Device>,
}

impl FileMedium {
    /// Opens the file and locks it (flock(2)). A file that is absent, or empty, gets `bytes` where they are given.
    pub fn open(path: &Path, bytes: Option<u64>) -> Result<Self> {
        let io = |what| {
            move |source| FlatError::Io {
                what,
                path: path.to_owned(),
                source,
            }
        };
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(bytes.is_some())
            .mode(0o600);
        let file = options.open(path).map_err(io("open"))?;
        // SAFETY: a call on our own descriptor.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let source = io::Error::last_os_error();
            return Err(match source.kind() {
                io::ErrorKind::WouldBlock => FlatError::InUse {
                    path: path.to_owned(),
                },
                _ => io("lock")(source),
            });
        }
        let metadata = file.metadata().map_err(io("examine"))?;
        if let Some(device) = Device::open(&file, &metadata).map_err(io("map"))? {
            let (bytes, durable) = (device.bytes as u64, device.persistent);
            let kind = if durable {
                "a DAX device of persistent memory"
            } else {
                "a DAX device of volatile memory"
            };
            return Ok(Self {
                file,
                path: path.into(),
                bytes,
                kind: kind.into(),
                durable,
                device: Some(device),
            });
        }
        if !metadata.is_file() {
            let why = "it is neither a file nor a DAX device".to_owned();
            return Err(FlatError::NoStore {
                path: path.to_owned(),
                why,
            });
        }
        let mut held = metadata.len();
        if held == 0
            && let Some(bytes) = bytes
        {
            // What has no room for a store stays empty, so that it may get more.
            if bytes < LEAST {
                return Err(too_few(path, bytes));
            }
            if let Err(source) = allocate(&file, bytes) {
                // What was just made and has no store would be refused by the next attempt.
                let _ = file.set_len(0);
                return Err(io("allocate the blocks of")(source));
            }
            file.sync_all().map_err(io("sync"))?;
            held = bytes;
        }
        let (kind, durable) = file_system(&file).map_err(io("examine"))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            bytes: held,
            kind,
            durable,
            device: None,
        })
    }
}

impl Drop for FileMedium {
    fn drop(&mut self) {
        // Closing is not enough: a child that was just forked has the descriptor too, until it starts its program.
        // SAFETY: a call on our own descriptor.
        unsafe { libc::flock(self.file.as_raw_fd(), libc::LOCK_UN) };
    }
}

impl Medium for FileMedium {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        match &self.device {
            Some(device) => device.read(at, into),
            None => self.file.read_exact_at(into, at),
        }
    }

    fn write_at(&self, at: u64, from: &[u8]) -> io::Result<()> {
        match &self.device {
            Some(device) => device.write(at, from),
            None => self.file.write_all_at(from, at),
        }
    }

    fn barrier(&self) -> io::Result<()> {
        // A device's lines were written back by each write; a file in memory has nothing to write.
        if self.device.is_some() || !self.durable {
            return Ok(());
        }
        self.file.sync_data()
    }

    fn mappable(&self) -> Option<BorrowedFd<'_>> {
        // The kernel refuses private mappings of DAX devices (drivers/dax/device.c, check_vma).
        self.device.is_none().then(|| self.file.as_fd())
    }

    fn will_read(&self, at: u64, bytes: u64) {
        // Faults would ask for 128 KB at a time. On DAX and tmpfs there is nothing to fetch.
        if self.durable && self.device.is_none() {
            let (at, bytes) = (at as libc::off_t, bytes as libc::off_t);
            // SAFETY: advice on our own descriptor.
            unsafe {
                libc::posix_fadvise(self.file.as_raw_fd(), at, bytes, libc::POSIX_FADV_WILLNEED)
            };
        }
    }

    fn durable(&self) -> bool {
        self.durable
    }

    fn kind(&self) -> String {
        self.kind.clone()
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// The least bytes of a store: two superblocks, two log areas of 64 pages, and 16 pages of files.
const LEAST: u64 = 146 * PAGE as u64;

/// Of a medium that has fewer bytes than that.
pub(crate) fn too_few(path: &Path, bytes: u64) -> FlatError {
    FlatError::NoStore {
        path: path.to_owned(),
        why: format!("{bytes} bytes are too few, a store needs {LEAST}"),
    }
}

/// Allocates blocks, so that a full file system is found here and not by a flush.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    // SAFETY: a call on our own descriptor.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes as libc::off_t) } == 0 {
        return Ok(());
    }
    let source = io::Error::last_os_error();
    if source.raw_os_error() != Some(libc::EOPNOTSUPP) {
        return Err(source);
    }
    // ext2 and others without extents.
    let zeros = vec![0; 1 << 20];
    let mut at = 0;
    while at < bytes {
        let part = (bytes - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..part as usize], at)?;
        at += part;
    }
    Ok(())
}

/// The name of the file system of a file, and whether fdatasync(2) makes it durable.
fn file_system(file: &File) -> io::Result<(String, bool)> {
    // SAFETY: both are plain structures that the calls fill.
    let (found, attributes) = unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(file.as_raw_fd(), &raw mut found) != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut status: libc::statx = std::mem::zeroed();
        let at = libc::AT_EMPTY_PATH;
        let code = libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            at,
            libc::STATX_BASIC_STATS,
            &raw mut status,
        );
        (found, if code == 0 { status.stx_attributes } else { 0 })
    };
    // statfs(2) lists the numbers.
    let (name, durable) = match found.f_type as u64 & 0xffff_ffff {
        0x0102_1994 => ("tmpfs", false),
        0x8584_58f6 => ("ramfs", false),
        0x9584_58f6 => ("hugetlbfs", false),
        0xef53 => ("ext4", true),
        0x5846_5342 => ("xfs", true),
        0x9123_683e => ("btrfs", true),
        _ => ("an unknown file system", true),
    };
    // STATX_ATTR_DAX, of Linux 5.8.
    let dax = attributes & 0x0020_0000 != 0;
    Ok((
        if dax {
            format!("{name} with DAX")
        } else {
            name.to_owned()
        },
        durable,
    ))
}

/// A device of DAX, all of it mapped: it has no read(2) and no write(2).
#[derive(Debug)]
struct Device {
    base: *mut u8,
    bytes: usize,
    persistent: bool,
}

// SAFETY: the mapping lives as long as the value; the store never writes what another thread reads.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// `None` where the file is no DAX device.
    fn open(file: &File, metadata: &std::fs::Metadata) -> io::Result<Option<Self>> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        if !metadata.file_type().is_char_device() {
            return Ok(None);
        }
        let (major, minor) = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
        let folder = PathBuf::from(format!("/sys/dev/char/{major}:{minor}"));
        let folder = std::fs::canonicalize(folder)?;
        if !std::fs::canonicalize(folder.join("subsystem"))
            .is_ok_and(|subsystem| subsystem.ends_with("dax"))
        {
            return Ok(None);
        }
        let size = std::fs::read_to_string(folder.join("size"))?;
        let bytes = size
            .trim()
            .parse()
            .map_err(|_| io::Error::other(format!("its size is {size:?}")))?;
        // Devices of persistent memory are below a bus of NVDIMMs; others are memory that was set aside.
        let persistent = folder.to_string_lossy().contains("/ndbus");
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the addresses.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Some(Self {
            base: base.cast(),
            bytes,
            persistent,
        }))
    }

    fn at(&self, at: u64, bytes: usize) -> io::Result<*mut u8> {
        let within = usize::try_from(at)
            .ok()
            .filter(|at| at.checked_add(bytes).is_some_and(|end| end <= self.bytes));
        let at = within.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        // SAFETY: within the mapping.
        Ok(unsafe { self.base.add(at) })
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let from = self.at(at, into.len())?;
        // SAFETY: both are valid for these bytes, and the device is not ours to alias.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let to = self.at(at, from.len())?;
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        write_back(to, from.len());
        Ok(())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// Writes cache lines back to memory, and waits (Intel SDM, volume 2, CLFLUSH and SFENCE).
#[cfg(target_arch = "x86_64")]
fn write_back(at: *mut u8, bytes: usize) {
    use std::arch::x86_64::{_mm_clflush, _mm_sfence};
    let end = at as usize + bytes;
    // SAFETY: the lines are of a mapping of the caller; the instructions change no data.
    unsafe {
        for line in (at as usize & !63..end).step_by(64) {
            _mm_clflush(line as *const u8);
        }
        _mm_sfence();
    }
}

/// Elsewhere the kernel is asked.
#[cfg(not(target_arch = "x86_64"))]
fn write_back(at: *mut u8, bytes: usize) {
    let from = at as usize & !(crate::extents::PAGE - 1);
    // SAFETY: the pages are of a mapping of the caller; the call changes no data.
    unsafe {
        libc::msync(
            from as *mut libc::c_void,
            at as usize + bytes - from,
            libc::MS_SYNC,
        )
    };
}
