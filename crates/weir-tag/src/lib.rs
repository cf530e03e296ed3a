//! A library to preload: `LD_PRELOAD=libweir_tag.so CMD`. Allocations of a mebibyte and more get mappings of their own, which
//! are named after the code that asked for them: `site:MODULE+0xOFFSET`. So `weir place objects`, `weir place apply` and
//! recordings see them as objects. All smaller ones go to the next allocator: libc's, or one that is linked.
//!
//! | variable | meaning |
//! |---|---|
//! | `WEIR_TAG_FROM` | the least size of an allocation that is named, at least `64K` (`1M` where it is not set) |
//! | `WEIR_TAG_UP` | name the caller this many frames further up, where a program has allocating functions of its own |
//!
//! Where the kernel keeps no names they are in a table ([`names`]). Nothing here takes a lock or allocates, so that a process
//! may fork at any time; only the first allocation of a site asks the loader which module it is in.

mod held;
mod large;
// The allocator's file and no dependency on it: what is preloaded links nothing else of Weir.
#[path = "../../weir-alloc/src/names.rs"]
pub mod names;
mod next;
mod pages;
mod sites;

use std::arch::naked_asm;
use std::ffi::c_void;
use std::ptr;

use next::Next;

/// Allocations of this thread's program. Each hands the address that it returns to, to the function behind it: on stable Rust
/// only a naked function can read it.
macro_rules! with_caller {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $x86:literal, $arm:literal => $to:ident;)*) => {$(
        $(#[$doc])*
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            naked_asm!("endbr64", concat!("mov ", $x86, ", [rsp]"), "jmp {}", sym $to);
            #[cfg(target_arch = "aarch64")]
            naked_asm!("bti c", concat!("mov ", $arm, ", x30"), "b {}", sym $to);
        }
    )*};
}

with_caller! {
    /// `malloc(3)`.
    ///
    /// # Safety
    /// As of `malloc`.
    fn malloc(bytes: usize) -> *mut c_void, "rsi", "x1" => malloc_from;
    /// `calloc(3)`.
    ///
    /// # Safety
    /// As of `calloc`.
    fn calloc(count: usize, bytes: usize) -> *mut c_void, "rdx", "x2" => calloc_from;
    /// `realloc(3)`.
    ///
    /// # Safety
    /// As of `realloc`.
    fn realloc(old: *mut c_void, bytes: usize) -> *mut c_void, "rdx", "x2" => realloc_from;
    /// `memalign(3)`.
    ///
    /// # Safety
    /// As of `memalign`.
    fn memalign(align: usize, bytes: usize) -> *mut c_void, "rdx", "x2" => memalign_from;
    /// `aligned_alloc(3)`.
    ///
    /// # Safety
    /// As of `aligned_alloc`.
    fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void, "rdx", "x2" => aligned_from;
    /// `posix_memalign(3)`.
    ///
    /// # Safety
    /// As of `posix_memalign`.
    fn posix_memalign(to: *mut *mut c_void, align: usize, bytes: usize) -> i32, "rcx", "x3" => posix_from;
}

unsafe extern "C" fn malloc_from(bytes: usize, site: usize) -> *mut c_void {
    let next = Next::get();
    if bytes >= next.from
        && let Some(at) = large::alloc(bytes, 1, false, site)
    {
        return at;
    }
    // SAFETY: the caller keeps the contract of `malloc`.
    unsafe { (next.malloc)(bytes) }
}

unsafe extern "C" fn calloc_from(count: usize, bytes: usize, site: usize) -> *mut c_void {
    let next = Next::get();
    if let Some(all) = count.checked_mul(bytes)
        && all >= next.from
        && let Some(at) = large::alloc(all, 1, true, site)
    {
        return at;
    }
    // SAFETY: the caller keeps the contract of `calloc`; also of a product that is too large.
    unsafe { (next.calloc)(count, bytes) }
}

unsafe extern "C" fn realloc_from(old: *mut c_void, bytes: usize, site: usize) -> *mut c_void {
    let next = Next::get();
    if let Some(length) = large::length(old) {
        // SAFETY: `old` is a mapping of ours of `length` bytes, which the caller gives up or gets back.
        return unsafe { resize(next, old, length, bytes, site) };
    }
    // SAFETY: of the next allocator, early or null, as the caller has to see to.
    unsafe {
        if next::is_early(old) {
            let new = malloc_from(bytes, site);
            if !new.is_null() {
                let known = next::early_size(old).min(bytes);
                ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), known);
            }
            return new;
        }
        if bytes < next.from {
            return (next.realloc)(old, bytes);
        }
        let Some(new) = large::alloc(bytes, 1, false, site) else {
            return (next.realloc)(old, bytes);
        };
        if !old.is_null() {
            let known = (next.usable)(old).min(bytes);
            ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), known);
            (next.free)(old);
        }
        new
    }
}

/// Another size for a large allocation, which keeps its name as long as it is large.
unsafe fn resize(
    next: &Next,
    old: *mut c_void,
    length: usize,
    bytes: usize,
    site: usize,
) -> *mut c_void {
    // SAFETY: `old` is ours and the caller's, and is copied before it is freed.
    unsafe {
        if bytes >= next.from
            && let Some(new) = large::resize(old, bytes)
        {
            return new;
        }
        // As glibc: nothing is left.
        if bytes == 0 {
            large::free(old);
            return ptr::null_mut();
        }
        let new = malloc_from(bytes, site);
        if !new.is_null() {
            ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), length.min(bytes));
            large::free(old);
        }
        new
    }
}

unsafe extern "C" fn memalign_from(align: usize, bytes: usize, site: usize) -> *mut c_void {
    let next = Next::get();
    if bytes >= next.from
        && let Some(at) = large::alloc(bytes, align, false, site)
    {
        return at;
    }
    // SAFETY: the caller keeps the contract of `memalign`.
    unsafe { (next.memalign)(align, bytes) }
}

unsafe extern "C" fn aligned_from(align: usize, bytes: usize, site: usize) -> *mut c_void {
    let next = Next::get();
    if bytes >= next.from
        && let Some(at) = large::alloc(bytes, align, false, site)
    {
        return at;
    }
    // SAFETY: the caller keeps the contract of `aligned_alloc`.
    unsafe { (next.aligned)(align, bytes) }
}

unsafe extern "C" fn posix_from(
    to: *mut *mut c_void,
    align: usize,
    bytes: usize,
    site: usize,
) -> i32 {
    let next = Next::get();
    if bytes >= next.from
        && align.is_multiple_of(size_of::<usize>())
        && let Some(at) = large::alloc(bytes, align, false, site)
    {
        // SAFETY: the caller hands a place for a pointer.
        unsafe { to.write(at) };
        return 0;
    }
    // SAFETY: the caller keeps the contract of `posix_memalign`.
    unsafe { (next.posix)(to, align, bytes) }
}

/// `free(3)`.
///
/// # Safety
/// As of `free`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn free(old: *mut c_void) {
    // SAFETY: the caller gives up what it has from here or from the next allocator.
    unsafe {
        if large::length(old).is_some() {
            large::free(old);
        } else if !next::is_early(old) {
            (Next::get().free)(old);
        }
    }
}

/// `malloc_usable_size(3)`.
///
/// # Safety
/// As of `malloc_usable_size`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn malloc_usable_size(of: *mut c_void) -> usize {
    match large::length(of) {
        Some(length) => length,
        None if next::is_early(of) => next::early_size(of),
        // SAFETY: it is of the next allocator, or null.
        None => unsafe { (Next::get().usable)(of) },
    }
}
