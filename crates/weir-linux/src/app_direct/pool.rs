//! The file of a pool, mapped.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::{fs, io};

use weir_loops::kernels::durable::WriteBack;
use weir_model::machine::MachineError;
use weir_model::number::count;
use weir_model::units::Bytes;

use super::layout::{Header, Layout, Log};
use crate::locked::Locked;

/// The file of a pool in a folder.
const NAME: &str = "weir-stream.pool";

weir_model::named! {
    /// How the system maps a file.
    pub enum Mapping {
        /// A DAX device of persistent memory: loads and stores reach it.
        DeviceDax = "a DAX device",
        /// A DAX device of other memory, as a region of a CXL device: it keeps nothing without power.
        VolatileDax = "a DAX device of volatile memory",
        /// A file of a DAX mount, mapped with `MAP_SYNC`: what is written back is durable without a system call.
        Sync = "MAP_SYNC",
        /// Without `MAP_SYNC`: durable only by `msync`.
        Shared = "a shared mapping without MAP_SYNC",
    }
}

impl Mapping {
    /// Whether a line that was written back is durable without a system call.
    pub const fn is_durable(self) -> bool {
        matches!(self, Mapping::DeviceDax | Mapping::Sync)
    }

    const fn is_device(self) -> bool {
        matches!(self, Mapping::DeviceDax | Mapping::VolatileDax)
    }
}

/// The pool that is wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// A folder, a file or a DAX device.
    pub path: PathBuf,
    /// Elements of an array.
    pub elements: u64,
    /// Bytes of a block.
    pub block: Bytes,
}

/// A mapped pool. Another process cannot open it at the same time.
#[derive(Debug)]
pub struct Pool {
    base: NonNull<u8>,
    pub(super) layout: Layout,
    mapping: Mapping,
    path: PathBuf,
    /// Whether the file had a pool already.
    existed: bool,
    pub(super) write_back: WriteBack,
    _file: Locked,
}

// SAFETY: the mapping is shared memory; which thread writes what is up to `stream`, which gives each its own blocks.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

fn failed(what: &str, path: &Path, error: &io::Error) -> MachineError {
    MachineError::System {
        what: format!("{what} {}", path.display()),
        cause: error.to_string(),
    }
}

impl Pool {
    /// Opens the pool of a file, or makes one where there is no file or an empty one.
    ///
    /// # Errors
    /// The file is none of Weir's, has other arrays, is in use, has no room, or cannot be mapped.
    pub fn open(wanted: &Wanted) -> Result<Self, MachineError> {
        let refuse = |why: String| Err(MachineError::Request(why));
        let path = match wanted.path.is_dir() {
            true => wanted.path.join(NAME),
            false => wanted.path.clone(),
        };
        let layout = Layout {
            elements: wanted.elements,
            block: (wanted.block.get() / 8).max(1),
        };
        // A file in /dev would be in memory, whatever its name.
        let creates = !path.starts_with("/dev") || path.starts_with("/dev/shm");
        if !creates && !path.exists() {
            return refuse(format!("there is no device {}", path.display()));
        }
        let was_there = path.exists();
        // To open a named pipe would wait for its reader.
        let file = (OpenOptions::new().read(true).write(true).create(creates))
            .truncate(false)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => {
                    MachineError::Request(format!("cannot open {}: {e}", path.display()))
                }
                _ => failed("cannot open", &path, &e),
            })?;
        let file = match Locked::new(file) {
            Err(TryLockError::WouldBlock) => {
                return refuse(format!("{} is in use by another process", path.display()));
            }
            locked => locked.map_err(|e| failed("cannot lock", &path, &e.into()))?,
        };
        let meta = file
            .metadata()
            .map_err(|e| failed("cannot look at", &path, &e))?;
        let is_neither = || {
            let path = path.display();
            MachineError::Request(format!("{path} is neither a file nor a DAX device"))
        };
        let device = match meta.file_type().is_char_device() {
            true => Some(Device::of(meta.rdev()).map_err(|_| is_neither())?),
            false if !meta.is_file() => return Err(is_neither()),
            false => None,
        };
        let is_device = device.is_some();
        let had = device.as_ref().map_or(meta.len(), |device| device.bytes);
        let bytes = layout.bytes();
        if is_device && had < bytes {
            return refuse(format!(
                "{} has {}, and the arrays need {}; take fewer --elements",
                path.display(),
                Bytes(had),
                Bytes(bytes)
            ));
        }
        if !is_device && had == 0 {
            make_room(&file, bytes).map_err(|e| {
                // An empty file would only be in the way.
                if !was_there {
                    let _ = fs::remove_file(&path);
                }
                failed(&format!("no room for {} in", Bytes(bytes)), &path, &e)
            })?;
        } else if !is_device && had != bytes {
            return refuse(format!(
                "{} has {}, and a pool of these arrays has {}; name another file, or remove it",
                path.display(),
                count(had, "byte"),
                count(bytes, "byte")
            ));
        }
        let (base, mapping) =
            map(&file, bytes as usize, device).map_err(|e| failed("cannot map", &path, &e))?;
        let mut pool = Self {
            base,
            layout,
            mapping,
            path,
            existed: false,
            write_back: WriteBack::best(),
            _file: file,
        };
        let header = pool.header();
        pool.existed = header.is_whole();
        let is_blank = header.magic == 0;
        if !pool.existed && !(is_blank && (is_device || had == 0)) {
            return refuse(format!(
                "{} has data that are no pool of Weir; name another file, or remove it",
                pool.path.display()
            ));
        }
        if pool.existed && (header.elements, header.block) != (layout.elements, layout.block) {
            return refuse(format!(
                "{} has arrays of {} elements and blocks of {} B; ask for the same, or remove it",
                pool.path.display(),
                header.elements,
                header.block * 8
            ));
        }
        if !pool.existed {
            pool.put_header(Header::new(layout.elements, layout.block));
        }
        Ok(pool)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the pool up, and removes its file if this made it.
    pub fn discard(self) {
        if !self.existed && !self.mapping.is_device() {
            // A file that stays does no harm: the next run opens it.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// How it is mapped.
    pub fn mapping(&self) -> Mapping {
        self.mapping
    }

    /// Whether the file had a pool before.
    pub fn existed(&self) -> bool {
        self.existed
    }

    /// The instruction that writes lines back.
    pub fn write_back(&self) -> &'static str {
        self.write_back.name()
    }

    fn at(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset < self.layout.bytes());
        self.base.as_ptr().wrapping_add(offset as usize)
    }

    pub(super) fn header(&self) -> Header {
        // SAFETY: the mapping is longer than a header and aligned; any bytes are a header.
        unsafe { self.at(0).cast::<Header>().read_volatile() }
    }

    /// Writes the header durably.
    pub(super) fn put_header(&self, header: Header) {
        // SAFETY: as for `header`; one thread writes it.
        unsafe {
            self.at(0).cast::<Header>().write_volatile(header);
            self.write_back.persist(self.at(0), size_of::<Header>());
        }
    }

    /// An array's first element.
    pub(super) fn array(&self, array: u64) -> *mut f64 {
        self.at(self.layout.array_at(array)).cast()
    }

    /// A thread's log, and where its old bytes are.
    pub(super) fn log(&self, thread: u64) -> (*mut Log, *mut f64) {
        let at = self.layout.log_at(thread);
        let old = at + weir_model::units::LINE_BYTES;
        (self.at(at).cast(), self.at(old).cast())
    }

    /// The elements of an array, while no thread writes.
    pub(super) fn elements(&self, array: u64) -> &[f64] {
        // SAFETY: the array is inside the mapping, and any bytes are numbers.
        unsafe { std::slice::from_raw_parts(self.array(array), self.layout.elements as usize) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the mapping is this pool's own, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.layout.bytes() as usize) };
    }
}

/// Gives a new file its blocks, so that no store fails for want of room.
fn make_room(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// A DAX device (Documentation/ABI/testing/sysfs-bus-dax).
struct Device {
    bytes: u64,
    mapping: Mapping,
}

impl Device {
    fn of(device: u64) -> io::Result<Self> {
        let (major, minor) = (libc::major(device), libc::minor(device));
        let folder = fs::canonicalize(format!("/sys/dev/char/{major}:{minor}"))?;
        let size = fs::read_to_string(folder.join("size"))?;
        // Devices of persistent memory are below a bus of NVDIMMs; others are memory that was set aside.
        let mapping = match folder.to_string_lossy().contains("/ndbus") {
            true => Mapping::DeviceDax,
            false => Mapping::VolatileDax,
        };
        Ok(Self {
            bytes: size.trim().parse().map_err(io::Error::other)?,
            mapping,
        })
    }
}

fn map(file: &File, bytes: usize, device: Option<Device>) -> io::Result<(NonNull<u8>, Mapping)> {
    let of_device = device.map(|device| device.mapping);
    let kinds = [
        (
            libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC,
            of_device.unwrap_or(Mapping::Sync),
        ),
        (libc::MAP_SHARED, of_device.unwrap_or(Mapping::Shared)),
    ];
    let mut last = io::Error::from_raw_os_error(libc::EINVAL);
    for (flags, mapping) in kinds {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                file.as_raw_fd(),
                0,
            )
        };
        if base != libc::MAP_FAILED {
            let base = NonNull::new(base.cast()).ok_or(last)?;
            return Ok((base, mapping));
        }
        last = io::Error::last_os_error();
    }
    Err(last)
}
