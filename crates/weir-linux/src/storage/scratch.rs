//! A scratch file without a name: it disappears when the process that holds it open ends, in whatever way.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weir_model::machine::MachineError;
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use super::{missing, system};
use weir_loops::kernels::Random;

/// Space that is left to other programs on the file system.
const LEFT_TO_OTHERS: Bytes = Bytes::mib(64);
/// Bytes written at once.
const CHUNK: usize = 1 << 20;

/// The file, open as long as this value lives.
pub(super) struct Scratch {
    file: File,
    folder: PathBuf,
    /// Bytes that were written.
    bytes: Bytes,
}

impl Scratch {
    /// An empty file in a folder (`O_TMPFILE`; on file systems without it, a file that loses its name at
    /// once).
    pub fn make(folder: &Path) -> Result<Self, MachineError> {
        let file = tempfile::tempfile_in(folder).map_err(|error| {
            let folder = folder.display();
            match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM | libc::EROFS) => missing(format!(
                    "a scratch file cannot be made in {folder}: {error}"
                )),
                _ => system(format!("making a scratch file in {folder}"), error),
            }
        })?;
        Ok(Self {
            file,
            folder: folder.to_owned(),
            bytes: Bytes(0),
        })
    }

    /// The path under which another process of this user finds it while this process lives (proc(5)).
    pub fn path(&self) -> PathBuf {
        let (own, file) = (std::process::id(), self.file.as_raw_fd());
        PathBuf::from(format!("/proc/{own}/fd/{file}"))
    }

    /// Makes it at least this long. Every byte is written with random data: blocks that are only reserved
    /// would be read without the device, and equal blocks may be stored once.
    pub fn grow(&mut self, wanted: Bytes) -> Result<(), MachineError> {
        let more = wanted.get().saturating_sub(self.bytes.get());
        if more == 0 {
            return Ok(());
        }
        let free = space(&self.folder)?.free;
        if free.get() < more.saturating_add(LEFT_TO_OTHERS.get()) {
            return Err(MachineError::NoMemory {
                tier: TierName::ssd(0),
                free,
                wanted,
                within: None,
            });
        }
        let filled = self.fill(more);
        if filled.is_err() {
            // The blocks are released; an error here would hide the first one.
            let _ = self.file.set_len(self.bytes.get());
        }
        filled.map_err(|error| {
            let folder = self.folder.display();
            let what = format!("filling a scratch file of {wanted} in {folder}");
            match error.raw_os_error() {
                Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => system(
                    what,
                    format!(
                        "{error}; name a folder with more free space, or use a smaller working set"
                    ),
                ),
                _ => system(what, error),
            }
        })?;
        self.bytes = wanted;
        Ok(())
    }

    fn fill(&mut self, more: u64) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(self.bytes.get()))?;
        let mut random = Random::new(self.bytes.get().wrapping_add(1));
        let mut chunk = vec![0; CHUNK];
        let mut left = more;
        while left > 0 {
            let length = left.min(CHUNK as u64) as usize;
            for word in chunk.chunks_exact_mut(8) {
                word.copy_from_slice(&random.word().to_le_bytes());
            }
            self.file.write_all(&chunk[..length])?;
            left -= length as u64;
        }
        self.file.sync_all()
    }
}

/// Free space of a file system.
pub(super) struct Space {
    pub all: Bytes,
    /// Bytes that this user may still write.
    pub free: Bytes,
}

pub(super) fn space(path: &Path) -> Result<Space, MachineError> {
    let named = || format!("room on {}", path.display());
    let text = CString::new(path.as_os_str().as_bytes()).map_err(|e| system(named(), e))?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path ends in a zero byte, and the kernel fills the structure, for which all zeros
    // are valid too.
    let (result, found) = unsafe {
        let result = libc::statvfs(text.as_ptr(), found.as_mut_ptr());
        (result, found.assume_init())
    };
    if result != 0 {
        return Err(system(named(), io::Error::last_os_error()));
    }
    // C longs, narrower than 64 bits on some machines.
    #[allow(clippy::useless_conversion)]
    let (unit, all, free) = (
        u64::from(found.f_frsize),
        u64::from(found.f_blocks),
        u64::from(found.f_bavail),
    );
    Ok(Space {
        all: Bytes(all.saturating_mul(unit)),
        free: Bytes(free.saturating_mul(unit)),
    })
}
