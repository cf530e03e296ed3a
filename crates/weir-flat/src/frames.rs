//! The frames of the cache: pages of a file in memory, which can be mapped into buffers.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::extents::{HUGE, PAGE, Run};

/// Put these pages on huge pages now (Linux 6.1, include/uapi/asm-generic/mman-common.h); not every C library has it.
const MADV_COLLAPSE: libc::c_int = 25;

/// A file in memory (memfd_create(2)), all of it mapped where the library copies edges and flushes from.
#[derive(Debug)]
pub struct Frames {
    file: OwnedFd,
    base: *mut u8,
    bytes: usize,
    /// Whether a huge page was asked for, for each 2 MiB.
    asked: Vec<AtomicBool>,
    huge: bool,
}

// SAFETY: the pointer is to a mapping that lives as long as this value; who may use which frame is decided by the
// references that the table counts.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

/// Reserves addresses aligned to 2 MiB, without access.
pub fn reserve(bytes: usize) -> io::Result<*mut u8> {
    let huge = HUGE as usize * PAGE;
    let whole = bytes + huge;
    // SAFETY: the kernel chooses the addresses; nothing is there yet.
    let at = unsafe {
        libc::mmap(
            ptr::null_mut(),
            whole,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let aligned = (at as usize).next_multiple_of(huge);
    let before = aligned - at as usize;
    // SAFETY: both ends are of the mapping that was just made, and no other code has its address.
    unsafe {
        if before > 0 {
            libc::munmap(at, before);
        }
        let end = aligned + bytes;
        if before < huge {
            libc::munmap(end as *mut libc::c_void, at as usize + whole - end);
        }
    }
    Ok(aligned as *mut u8)
}

impl Frames {
    /// This many frames, none of which takes memory yet. With `huge`, memory is asked for in pages of 2 MiB, which
    /// needs Linux 6.1 (MADV_COLLAPSE); where there is none, small pages are used.
    pub fn new(pages: u32, huge: bool) -> io::Result<Self> {
        let bytes = pages as usize * PAGE;
        // SAFETY: the name is a C string; the descriptor is ours.
        let file = unsafe {
            let fd = libc::memfd_create(c"weir-flat".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: a call on our own descriptor.
        if unsafe { libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let base = reserve(bytes)?;
        let asked = (0..pages.div_ceil(HUGE))
            .map(|_| AtomicBool::new(false))
            .collect();
        let frames = Self {
            file,
            base,
            bytes,
            asked,
            huge,
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the addresses were reserved for this.
        let at = unsafe {
            libc::mmap(
                base.cast(),
                bytes,
                access,
                libc::MAP_SHARED | libc::MAP_FIXED,
                frames.file.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(frames)
    }

    /// The file that buffers map.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Asks for huge pages under these frames, once for each 2 MiB.
    pub fn prepare(&self, run: Run) {
        if !self.huge || run.len == 0 {
            return;
        }
        for chunk in run.start / HUGE..=(run.start + run.len - 1) / HUGE {
            let at = chunk as usize * HUGE as usize * PAGE;
            if self.asked[chunk as usize].swap(true, Ordering::Relaxed)
                || at + HUGE as usize * PAGE > self.bytes
            {
                continue;
            }
            // A refusal (an older kernel, no free huge page, "deny" for files in memory) leaves small pages. The kernel
            // collapses no range that has no page yet (mm/khugepaged.c, SCAN_FAIL), so that one is made first.
            // SAFETY: it is advice on our own mapping, and keeps contents.
            unsafe {
                let at = self.base.add(at).cast();
                libc::madvise(at, PAGE, libc::MADV_POPULATE_READ);
                libc::madvise(at, HUGE as usize * PAGE, MADV_COLLAPSE);
            }
        }
    }

    /// What is in these frames.
    ///
    /// # Safety
    /// The caller holds a reference of each, and none is written meanwhile.
    pub unsafe fn bytes(&self, run: Run) -> &[u8] {
        debug_assert!((run.start + run.len) as usize * PAGE <= self.bytes);
        // SAFETY: within the mapping; the rest is the caller's.
        unsafe {
            std::slice::from_raw_parts(
                self.base.add(run.start as usize * PAGE),
                run.len as usize * PAGE,
            )
        }
    }

    /// The same, to be written.
    ///
    /// # Safety
    /// The caller has the only reference of each.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn bytes_mut(&self, run: Run) -> &mut [u8] {
        debug_assert!((run.start + run.len) as usize * PAGE <= self.bytes);
        // SAFETY: within the mapping; the rest is the caller's.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.base.add(run.start as usize * PAGE),
                run.len as usize * PAGE,
            )
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing that refers to it is left.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}
