//! A scratch file without a name: it disappears when the process that holds it open ends, in whatever way.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use weir_model::machine::MachineError;
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use super::place::Folder;
use super::{missing, system};
use weir_loops::kernels::Random;

/// Space that is left to other programs on the file system.
const LEFT_TO_OTHERS: Bytes = Bytes::mib(64);
/// Bytes written at once.
const CHUNK: usize = 1 << 20;

/// The file, open as long as this value lives.
pub(super) struct Scratch {
    file: File,
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
    pub fn grow(&mut self, folder: &Folder, wanted: Bytes) -> Result<(), MachineError> {
        let more = wanted.get().saturating_sub(self.bytes.get());
        if more == 0 {
            return Ok(());
        }
        let free = folder.free()?;
        if free.get() < more.saturating_add(LEFT_TO_OTHERS.get()) {
            return Err(MachineError::NoMemory {
                tier: TierName::ssd(0),
                free,
                wanted,
            });
        }
        let filled = self.fill(more);
        if filled.is_err() {
            // The blocks are released; an error here would hide the first one.
            let _ = self.file.set_len(self.bytes.get());
        }
        filled.map_err(|error| {
            let folder = folder.path.display();
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
