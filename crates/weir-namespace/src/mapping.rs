//! Shared memory, word by word: other processes and hosts change it at any time.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Called before each store, so that tests can kill a process there.
pub type Fault = Arc<dyn Fn() + Send + Sync>;

/// Bytes of a line of the caches that Weir knows.
const LINE: usize = 64;

/// The smallest page of any kernel.
const PAGE: usize = 4096;

/// The answer of the kernel where an access would end in SIGBUS, in words.
pub(crate) fn gone() -> io::Error {
    io::Error::other("its device is gone, or its file was cut off")
}

/// A shared mapping of a part of a file or device.
pub(crate) struct Mapping {
    base: *mut u8,
    bytes: usize,
    fault: Option<Fault>,
}

// SAFETY: the mapping lives as long as the value, and its words are accessed atomically.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Mapped bytes, of which the first ones may be a neighbour's: a device maps whole units only.
pub(crate) struct Window {
    pub map: Mapping,
    pub skip: usize,
}

impl Mapping {
    /// Maps `bytes` from `offset` on, both multiples of what the file demands. `MAP_SYNC` where the file system has it,
    /// so that a store needs only a flush of its line to be durable (mmap(2)); whether it has is the second value.
    pub fn new(
        file: &File,
        offset: u64,
        bytes: usize,
        write: bool,
        fault: Option<Fault>,
    ) -> io::Result<(Self, bool)> {
        let access = libc::PROT_READ | if write { libc::PROT_WRITE } else { 0 };
        let map = |flags| {
            // SAFETY: the kernel chooses the addresses; nothing of ours is there.
            unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    access,
                    flags,
                    file.as_raw_fd(),
                    offset as libc::off_t,
                )
            }
        };
        let mut sync = true;
        let mut base = map(libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC);
        if base == libc::MAP_FAILED {
            sync = false;
            base = map(libc::MAP_SHARED);
        }
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = base.cast();
        Ok((Self { base, bytes, fault }, sync))
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn pointer(&self) -> *mut u8 {
        self.base
    }

    /// The word at a byte, which is a multiple of 8 within the mapping.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes);
        // SAFETY: aligned and within the mapping, which lives as long as `self`; all of this crate accesses these words
        // atomically.
        unsafe { &*self.base.add(at).cast::<AtomicU64>() }
    }

    pub fn load(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    /// The word as memory has it, not a copy in this host's caches.
    pub fn load_fresh(&self, at: usize) -> u64 {
        self.flush(at, 8);
        self.load(at)
    }

    pub fn store(&self, at: usize, value: u64) {
        if let Some(fault) = &self.fault {
            fault();
        }
        self.word(at).store(value, Ordering::Release);
    }

    /// Stores a word, and writes its line back.
    pub fn publish(&self, at: usize, value: u64) {
        self.store(at, value);
        self.flush(at, 8);
    }

    /// Copies from memory, after dropping what this host's caches have of it.
    pub fn read(&self, at: usize, into: &mut [u8]) {
        self.flush(at, into.len());
        for (nth, part) in into.chunks_mut(8).enumerate() {
            let word = self.load(at + 8 * nth).to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
    }

    /// Copies to memory, the last word padded with zeros, and writes the lines back.
    pub fn write(&self, at: usize, from: &[u8]) {
        for (nth, part) in from.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.store(at + 8 * nth, u64::from_le_bytes(word));
        }
        self.flush(at, from.len());
    }

    /// Zeros, written back.
    pub fn zero(&self, at: usize, bytes: usize) {
        for at in (at..at + bytes).step_by(8) {
            self.store(at, 0);
        }
        self.flush(at, bytes);
    }

    /// The first byte of a range that is not zero.
    pub fn not_zero(&self, at: usize, bytes: usize) -> Option<usize> {
        self.flush(at, bytes);
        (at..at + bytes).step_by(8).find(|at| self.load(*at) != 0)
    }

    /// Writes the lines of a range back to memory, and drops them from the caches of this host (Intel SDM, volume 2,
    /// CLFLUSH; Arm ARM, DC CIVAC). What was stored before is in memory after it, and loads after it read memory.
    pub fn flush(&self, at: usize, bytes: usize) {
        assert!(at.checked_add(bytes).is_some_and(|end| end <= self.bytes));
        fence(Ordering::SeqCst);
        let (first, end) = (self.base as usize + at, self.base as usize + at + bytes);
        for line in (first & !(LINE - 1)..end).step_by(LINE) {
            // SAFETY: the line is of this mapping; the instructions change no data.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                std::arch::x86_64::_mm_clflush(line as *const u8);
            }
            // SAFETY: as above; Linux permits it to processes (SCTLR_EL1.UCI).
            #[cfg(target_arch = "aarch64")]
            unsafe {
                std::arch::asm!("dc civac, {}", in(reg) line, options(nostack, preserves_flags));
            }
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            let _ = line;
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a barrier changes no data.
        unsafe {
            std::arch::asm!("dsb sy", options(nostack, preserves_flags));
        }
        // On x86-64 this is MFENCE or a locked instruction, with which CLFLUSH is ordered.
        fence(Ordering::SeqCst);
    }

    /// Whether every page of a range can be read. An access to one that cannot, since its device is gone or its file was cut
    /// off, would end the process with SIGBUS; the kernel, which reads a byte of each here, answers with an error.
    ///
    /// # Errors
    /// A page cannot be read.
    pub fn reach(&self, at: usize, bytes: usize) -> io::Result<()> {
        const PAGES: usize = 512;
        let (mut page, end) = (at & !(PAGE - 1), (at + bytes).min(self.bytes));
        let mut into = [0_u8; PAGES];
        while page < end {
            let pages = (end - page).div_ceil(PAGE).min(PAGES);
            let local = libc::iovec {
                iov_base: into.as_mut_ptr().cast(),
                iov_len: pages,
            };
            let remote: Vec<libc::iovec> = (0..pages)
                .map(|nth| libc::iovec {
                    iov_base: self.base.wrapping_add(page + PAGE * nth).cast(),
                    iov_len: 1,
                })
                .collect();
            // SAFETY: the bytes are of this mapping and of `into`; the kernel checks both.
            let read = unsafe {
                let (remote, count) = (remote.as_ptr(), pages as libc::c_ulong);
                libc::process_vm_readv(libc::getpid(), &raw const local, 1, remote, count, 0)
            };
            match usize::try_from(read) {
                Ok(read) if read == pages => {}
                Ok(_) => return Err(gone()),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    return match error.raw_os_error() {
                        // A kernel without the call, or a sandbox that refuses it.
                        Some(libc::ENOSYS | libc::EPERM) => Ok(()),
                        Some(libc::EFAULT) => Err(gone()),
                        _ => Err(error),
                    };
                }
            }
            page += PAGE * pages;
        }
        Ok(())
    }

    /// Waits until a file system has the pages (msync(2)).
    pub fn sync(&self, at: usize, bytes: usize) -> io::Result<()> {
        let from = at & !4095;
        // SAFETY: the pages are of this mapping.
        let done = unsafe {
            libc::msync(
                self.base.add(from).cast(),
                (at + bytes - from).min(self.bytes - from),
                libc::MS_SYNC,
            )
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing that borrowed it is left.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// Copies between a mapping and ordinary memory by the kernel, which answers with an error where an access would end in
/// SIGBUS (process_vm_readv(2) on this process).
pub(crate) fn copy_checked(
    mapped: *mut u8,
    ours: *mut u8,
    bytes: usize,
    to_mapping: bool,
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes {
        // SAFETY: the callers' ranges are within their allocations; the kernel checks both while it copies.
        let copied = unsafe {
            let local = libc::iovec {
                iov_base: ours.add(done).cast(),
                iov_len: bytes - done,
            };
            let remote = libc::iovec {
                iov_base: mapped.add(done).cast(),
                iov_len: bytes - done,
            };
            let own = libc::getpid();
            if to_mapping {
                libc::process_vm_writev(own, &raw const local, 1, &raw const remote, 1, 0)
            } else {
                libc::process_vm_readv(own, &raw const local, 1, &raw const remote, 1, 0)
            }
        };
        match copied {
            1.. => done += copied as usize,
            0 => return Err(gone()),
            _ => {
                let error = io::Error::last_os_error();
                if error.raw_os_error() == Some(libc::EFAULT) {
                    return Err(gone());
                }
                // A kernel without the call, or a sandbox that refuses it.
                if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) {
                    let (mapped, ours) = (mapped.wrapping_add(done), ours.wrapping_add(done));
                    let (from, to) = if to_mapping {
                        (ours, mapped)
                    } else {
                        (mapped, ours)
                    };
                    // SAFETY: as above; a device that is gone ends the process here.
                    unsafe { std::ptr::copy(from, to, bytes - done) };
                    return Ok(());
                }
                return Err(error);
            }
        }
    }
    Ok(())
}
