//! Large allocations: a mapping each, with a name.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering;

use crate::{held, names, pages, sites};

const PAGE: usize = 4096;

/// The bytes of a large allocation that begins here.
#[inline]
pub fn length(at: *mut c_void) -> Option<usize> {
    let bytes = pages::at(at.addr())?.bytes.load(Ordering::Acquire);
    (bytes != 0).then_some(bytes)
}

/// Memory for a caller that returns to `site`; `None` where the kernel refuses, or the alignment is none.
#[cold]
#[inline(never)]
pub fn alloc(bytes: usize, align: usize, cleared: bool, site: usize) -> Option<*mut c_void> {
    let bytes = bytes.checked_next_multiple_of(page_size())?;
    if !align.is_power_of_two() {
        return None;
    }
    let site = sites::of(site);
    if let Some(at) = held::take(site.number, bytes, align) {
        let page = pages::at(at)?;
        let length = page.bytes.load(Ordering::Relaxed);
        let had = page.site.swap(site.number, Ordering::Relaxed);
        if had != site.number || had == sites::MOST as u32 {
            let slot = page.slot.load(Ordering::Relaxed);
            let slot = names::renamed(slot, at, length, site.name());
            page.slot.store(slot, Ordering::Relaxed);
        }
        let at = ptr::with_exposed_provenance_mut::<u8>(at);
        if cleared {
            // SAFETY: a mapping of `length` bytes that was freed and is this call's alone.
            unsafe { at.write_bytes(0, length) };
        }
        return Some(at.cast());
    }
    let at = map(bytes, align)?;
    let Some(page) = pages::made(at.addr()) else {
        // SAFETY: just mapped, and shown to no thread.
        unsafe { libc::munmap(at, bytes) };
        return None;
    };
    page.site.store(site.number, Ordering::Relaxed);
    let slot = names::name(at.expose_provenance(), bytes, site.name());
    page.slot.store(slot, Ordering::Relaxed);
    page.bytes.store(bytes, Ordering::Release);
    Some(at)
}

/// Frees what [`length`] knows.
///
/// # Safety
/// The caller uses it no more.
#[cold]
#[inline(never)]
pub unsafe fn free(at: *mut c_void) {
    if let Some(page) = pages::at(at.addr())
        && !held::keep(at.addr(), page.bytes.load(Ordering::Relaxed))
    {
        pages::unmap(at.addr(), page);
    }
}

/// Another size for a large allocation; `None` where it has to be copied.
///
/// # Safety
/// The allocation is the caller's, which uses the new address only.
pub unsafe fn resize(old: *mut c_void, bytes: usize) -> Option<*mut c_void> {
    let bytes = bytes.checked_next_multiple_of(page_size())?;
    let page = pages::at(old.addr())?;
    let had = page.bytes.load(Ordering::Relaxed);
    if bytes == had {
        return Some(old);
    }
    let (slot, site) = (
        page.slot.load(Ordering::Relaxed),
        page.site.load(Ordering::Relaxed),
    );
    page.bytes.store(0, Ordering::Release);
    // SAFETY: the mapping is this allocation's, and its pages stay what they are.
    let new = unsafe { libc::mremap(old, had, bytes, libc::MREMAP_MAYMOVE) };
    let made = (new != libc::MAP_FAILED)
        .then(|| pages::made(new.addr()))
        .flatten();
    let Some(made) = made else {
        // Refused. Or it has moved to where no leaf could be made, and moves back: nothing else is there yet, or it is lost.
        if new != libc::MAP_FAILED {
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            // SAFETY: back over its old addresses, which this mapping had.
            unsafe { libc::mremap(new, bytes, had, flags, old) };
        }
        page.bytes.store(had, Ordering::Release);
        return None;
    };
    names::moved(slot, new.expose_provenance(), bytes);
    made.slot.store(slot, Ordering::Relaxed);
    made.site.store(site, Ordering::Relaxed);
    made.bytes.store(bytes, Ordering::Release);
    Some(new)
}

fn map(bytes: usize, align: usize) -> Option<*mut c_void> {
    let spare = if align > page_size() { align } else { 0 };
    let all = bytes.checked_add(spare)?;
    let (prot, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping, of which what lies before and behind the aligned part goes back.
    unsafe {
        let at = libc::mmap(ptr::null_mut(), all, prot, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return None;
        }
        let before = at.addr().next_multiple_of(align.max(1)) - at.addr();
        if spare > 0 && before > 0 {
            libc::munmap(at, before);
        }
        if spare > before {
            libc::munmap(at.byte_add(before + bytes), spare - before);
        }
        Some(at.byte_add(before))
    }
}

/// Of the kernel: 4, 16 or 64 KiB.
fn page_size() -> usize {
    use std::sync::atomic::AtomicUsize;
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    match SIZE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: it asks for a number.
            let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            let size = usize::try_from(size).unwrap_or(PAGE).max(PAGE);
            SIZE.store(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}
