//! A file or a device whose slices are the memory of VMs, one VM at a time.

use std::fs::{self, File, TryLockError};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::ptr;

use crate::root::Root;

/// Bytes that are read or written at once.
const CHUNK: usize = 1 << 20;

/// An open pool. A lock that ends with this value keeps other managers away.
#[derive(Debug)]
pub struct PoolFile {
    file: File,
    path: PathBuf,
    /// Whether it is a character device such as `/dev/dax0.0`, which can only be mapped.
    device: bool,
}

impl PoolFile {
    /// Makes a file of this size, which is zero everywhere.
    ///
    /// # Errors
    /// There is such a file already, or it cannot be made.
    pub fn create(path: &Path, bytes: u64) -> io::Result<Self> {
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(path)?;
        let made = file.set_len(bytes).and_then(|()| Self::of(file, path));
        if made.is_err() {
            // A file of the wrong size is of no use.
            let _ = fs::remove_file(path);
        }
        made
    }

    /// Opens a pool.
    ///
    /// # Errors
    /// It cannot be opened for writing, or is neither a file nor a character device.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        Self::of(file, path)
    }

    fn of(file: File, path: &Path) -> io::Result<Self> {
        let kind = file.metadata()?.file_type();
        if !kind.is_file() && !kind.is_char_device() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is neither a file nor a character device",
            ));
        }
        Ok(Self {
            device: kind.is_char_device(),
            path: fs::canonicalize(path)?,
            file,
        })
    }

    /// Keeps other managers away as long as this value lives; `false` if one is at work.
    ///
    /// # Errors
    /// The file system has no locks.
    pub fn lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Its absolute path, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a device.
    pub fn is_device(&self) -> bool {
        self.device
    }

    /// Its size.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn bytes(&self) -> io::Result<u64> {
        let metadata = self.file.metadata()?;
        if !self.device {
            return Ok(metadata.len());
        }
        let (major, minor) = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
        let size = format!("/sys/dev/char/{major}:{minor}/size");
        let known = Root::live().value(&size).known().copied();
        known.ok_or_else(|| io::Error::other(format!("{size} has no number of bytes")))
    }

    /// Has the file system keep room for a range, so that a VM does not end for want of it. A file system that cannot
    /// is no error.
    ///
    /// # Errors
    /// There is no room.
    pub fn reserve(&self, range: &Range<u64>) -> io::Result<()> {
        match self.allocate(range, 0) {
            Err(error) if is_unsupported(&error) => Ok(()),
            other => other,
        }
    }

    /// Makes a range zero, by giving its pages back where that can be done. Whether it is zero then is for
    /// [`Self::first_not_zero`] to say.
    ///
    /// # Errors
    /// The range cannot be written.
    pub fn scrub(&self, range: &Range<u64>) -> io::Result<()> {
        if self.device {
            return self.map(range, |bytes| bytes.fill(0));
        }
        match self.allocate(
            range,
            libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
        ) {
            Err(error) if is_unsupported(&error) => {}
            other => return other,
        }
        let zeros = vec![0; CHUNK];
        for (at, length) in chunks(range) {
            self.file.write_all_at(&zeros[..length], at)?;
        }
        self.file.sync_data()
    }

    /// Where the first byte of a range is that is not zero.
    ///
    /// # Errors
    /// The range cannot be read.
    pub fn first_not_zero(&self, range: &Range<u64>) -> io::Result<Option<u64>> {
        if self.device {
            let mut found = None;
            self.map(range, |bytes| found = not_zero(bytes))?;
            return Ok(found.map(|at| range.start + at as u64));
        }
        let mut bytes = vec![0; CHUNK];
        for (at, length) in chunks(range) {
            self.file.read_exact_at(&mut bytes[..length], at)?;
            if let Some(within) = not_zero(&bytes[..length]) {
                return Ok(Some(at + within as u64));
            }
        }
        Ok(None)
    }

    /// The processes of this host, without this one, which have a part of a range mapped.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn mapped_by(&self, range: &Range<u64>) -> io::Result<Vec<u32>> {
        self.mapped_except(range, std::process::id())
    }

    /// The same without another process.
    fn mapped_except(&self, range: &Range<u64>, except: u32) -> io::Result<Vec<u32>> {
        let metadata = self.file.metadata()?;
        let (device, inode) = (metadata.dev(), metadata.ino());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            // A process that has ended maps nothing. That of another user can have it mapped only if it may open it.
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            let mut lines = maps.lines().filter_map(Mapping::of);
            let is_ours = |mapping: &Mapping| {
                let same = mapping.inode == inode && mapping.device == device;
                // Some file systems show another device number there than in stat(2).
                let same = same || Path::new(mapping.path) == self.path;
                same && mapping.offset < range.end && mapping.offset + mapping.bytes > range.start
            };
            if pid != except && lines.any(|mapping| is_ours(&mapping)) {
                found.push(pid);
            }
        }
        Ok(found)
    }

    fn allocate(&self, range: &Range<u64>, mode: libc::c_int) -> io::Result<()> {
        if self.device {
            return Ok(());
        }
        let [start, length] = [range.start, range.end - range.start].map(libc::off_t::try_from);
        let (Ok(start), Ok(length)) = (start, length) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // SAFETY: the call takes no pointer.
        match unsafe { libc::fallocate(self.file.as_raw_fd(), mode, start, length) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Maps a range for as long as `work` has it.
    fn map(&self, range: &Range<u64>, work: impl FnOnce(&mut [u8])) -> io::Result<()> {
        let length = usize::try_from(range.end - range.start);
        let start = libc::off_t::try_from(range.start);
        let (Ok(length), Ok(start)) = (length, start) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                self.file.as_raw_fd(),
                start,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping has `length` bytes that may be read and written, and lives until it is unmapped below. No
        // other process writes to it: `mapped_by` has said so, and the lock keeps managers away.
        work(unsafe { std::slice::from_raw_parts_mut(address.cast::<u8>(), length) });
        // SAFETY: it is the mapping made above, and nothing refers to it any more.
        unsafe { libc::munmap(address, length) };
        Ok(())
    }
}

/// Whether a file system lacks an operation, rather than room for it.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::ENODEV)
    )
}

/// Where the first byte is that is not zero. Whole pages are compared first, which is many times faster.
fn not_zero(bytes: &[u8]) -> Option<usize> {
    const ZEROS: [u8; 4096] = [0; 4096];
    let differs = |page: &[u8]| page != &ZEROS[..page.len()];
    let start = bytes.chunks(ZEROS.len()).position(differs)? * ZEROS.len();
    let within = bytes[start..].iter().position(|&byte| byte != 0)?;
    Some(start + within)
}

/// A range in parts, each with its start and length.
fn chunks(range: &Range<u64>) -> impl Iterator<Item = (u64, usize)> {
    let end = range.end;
    (range.start..end)
        .step_by(CHUNK)
        .map(move |at| (at, (end - at).min(CHUNK as u64) as usize))
}

/// A line of `/proc/PID/maps` (proc(5)).
struct Mapping<'a> {
    bytes: u64,
    offset: u64,
    device: u64,
    inode: u64,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let hex = |word: &str| u64::from_str_radix(word, 16).ok();
        let (start, end) = words.next()?.split_once('-')?;
        let offset = hex(words.nth(1)?)?;
        let (major, minor) = words.next()?.split_once(':')?;
        let number = |word: &str| u32::from_str_radix(word, 16).ok();
        Some(Self {
            bytes: hex(end)?.checked_sub(hex(start)?)?,
            offset,
            device: libc::makedev(number(major)?, number(minor)?),
            inode: words.next()?.parse().ok()?,
            path: words.next().unwrap_or("").trim_start(),
        })
    }
}

impl Drop for PoolFile {
    /// Closing is not enough: a child that is being started has a copy of the file until it executes its program.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn pool(bytes: u64) -> (tempfile::TempDir, PoolFile) {
        let folder = tempfile::tempdir().unwrap();
        let pool = PoolFile::create(&folder.path().join("pool"), bytes).unwrap();
        (folder, pool)
    }

    #[test]
    fn a_scrubbed_range_is_zero_and_its_neighbours_keep_their_content() {
        let (_folder, pool) = pool(3 * MIB);
        pool.file.write_all_at(&[7; 3 << 20], 0).unwrap();
        let middle = MIB..2 * MIB;
        assert_eq!(pool.first_not_zero(&middle).unwrap(), Some(MIB));
        pool.scrub(&middle).unwrap();
        assert_eq!(pool.first_not_zero(&middle).unwrap(), None);
        assert_eq!(pool.first_not_zero(&(0..3 * MIB)).unwrap(), Some(0));
        assert_eq!(pool.first_not_zero(&(MIB..3 * MIB)).unwrap(), Some(2 * MIB));
        pool.reserve(&middle).unwrap();
        assert_eq!(pool.first_not_zero(&middle).unwrap(), None);
        assert_eq!(pool.bytes().unwrap(), 3 * MIB);
    }

    /// As of a device, which has neither `read` nor `fallocate`.
    #[test]
    fn a_mapped_range_is_scrubbed_and_read() {
        let (_folder, mut pool) = pool(2 * MIB);
        pool.file.write_all_at(&[7; 2 << 20], 0).unwrap();
        pool.device = true;
        let second = MIB..2 * MIB;
        assert_eq!(pool.first_not_zero(&second).unwrap(), Some(MIB));
        pool.scrub(&second).unwrap();
        assert_eq!(pool.first_not_zero(&second).unwrap(), None);
        assert_eq!(pool.first_not_zero(&(0..MIB)).unwrap(), Some(0));
    }

    /// The processes that `look` finds, once those have gone that other tests start: until such a child runs its program, it
    /// has the mappings of this process.
    fn without_children(look: impl Fn() -> Vec<u32>, wanted: &[u32]) -> Vec<u32> {
        let mut found = look();
        for _ in 0..1000 {
            if found == wanted {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            found = look();
        }
        found
    }

    #[test]
    fn who_has_a_range_mapped_is_found() {
        let (_folder, pool) = pool(4 * MIB);
        let by = |range: Range<u64>| pool.mapped_except(&range, 0).unwrap();
        let own = [std::process::id()];
        let mut found = Vec::new();
        let mapped = pool.map(&(2 * MIB..3 * MIB), |_| {
            let others = || pool.mapped_by(&(0..4 * MIB)).unwrap();
            found = vec![
                without_children(|| by(2 * MIB..3 * MIB), &own),
                by(0..2 * MIB),
                by(3 * MIB..4 * MIB),
                without_children(others, &[]),
            ];
        });
        mapped.unwrap();
        // Its own does not count for `mapped_by`.
        assert_eq!(found, [own.to_vec(), vec![], vec![], vec![]]);
        assert_eq!(without_children(|| by(0..4 * MIB), &[]), Vec::<u32>::new());
    }

    #[test]
    fn one_manager_at_a_time() {
        let (_folder, pool) = pool(MIB);
        assert!(pool.lock().unwrap());
        let second = PoolFile::open(pool.path()).unwrap();
        assert!(!second.lock().unwrap());
        // As a child has that is being started.
        let _copy = pool.file.try_clone().unwrap();
        drop(pool);
        assert!(second.lock().unwrap());
    }

    #[test]
    fn what_is_there_is_not_made_again_and_a_folder_is_no_pool() {
        let (folder, pool) = pool(MIB);
        let error = PoolFile::create(pool.path(), MIB).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(PoolFile::open(folder.path()).is_err());
    }
}
