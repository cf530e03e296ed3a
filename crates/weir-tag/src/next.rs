//! The allocator behind this one, and what the environment asks for.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::{names, sites};

type One = unsafe extern "C" fn(usize) -> *mut c_void;
type Two = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Again = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Posix = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> i32;
type Free = unsafe extern "C" fn(*mut c_void);
type Usable = unsafe extern "C" fn(*mut c_void) -> usize;

/// Functions of the next allocator, and the least size that is not for it.
#[derive(Clone, Copy)]
pub struct Next {
    pub from: usize,
    pub malloc: One,
    pub calloc: Two,
    pub realloc: Again,
    pub memalign: Two,
    pub aligned: Two,
    pub posix: Posix,
    pub free: Free,
    pub usable: Usable,
}

/// Smaller allocations would have more page than content.
const LEAST: usize = 64 << 10;
const USUAL: usize = 1 << 20;

static STATE: AtomicU8 = AtomicU8::new(0);
static mut FOUND: Next = EARLY;

/// While the loader is asked for the next allocator it may allocate, and so may other threads: a few bytes from here.
const EARLY: Next = Next {
    from: usize::MAX,
    malloc: early,
    calloc: early_cleared,
    realloc: early_again,
    memalign: early_aligned,
    aligned: early_aligned,
    posix: early_posix,
    free: early_free,
    usable: early_usable,
};

impl Next {
    /// The next allocator, which is looked for at the first call.
    #[inline]
    pub fn get() -> &'static Self {
        if STATE.load(Ordering::Acquire) == 2 {
            return Self::found();
        }
        Self::find()
    }

    #[cold]
    fn find() -> &'static Self {
        let first = STATE.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            return match STATE.load(Ordering::Acquire) {
                2 => Self::found(),
                _ => &const { EARLY },
            };
        }
        // SAFETY: the names are those of functions of these types (stdlib.h, malloc.h), and only the thread that made the
        // state 1 writes `FOUND`.
        unsafe {
            macro_rules! next {
                ($name:literal, $type:ty) => {
                    match libc::dlsym(libc::RTLD_NEXT, $name.as_ptr()) {
                        at if at.is_null() => lacks($name),
                        at => std::mem::transmute::<*mut c_void, $type>(at),
                    }
                };
            }
            FOUND = Self {
                from: usize::MAX,
                malloc: next!(c"malloc", One),
                calloc: next!(c"calloc", Two),
                realloc: next!(c"realloc", Again),
                memalign: next!(c"memalign", Two),
                aligned: next!(c"aligned_alloc", Two),
                posix: next!(c"posix_memalign", Posix),
                free: next!(c"free", Free),
                usable: next!(c"malloc_usable_size", Usable),
            };
            if names::are_kept() {
                FOUND.from = variable(c"WEIR_TAG_FROM", "a size, such as 256K or 4M")
                    .map_or(USUAL, |bytes| bytes.max(LEAST));
                sites::set_up(
                    variable(c"WEIR_TAG_UP", "a number of frames, such as 2").unwrap_or(0),
                );
            } else {
                say(
                    "weir-tag: neither the kernel nor a memory file keeps names here: nothing is tagged\n",
                );
            }
        }
        STATE.store(2, Ordering::Release);
        Self::found()
    }

    #[inline]
    fn found() -> &'static Self {
        let found = &raw const FOUND;
        // SAFETY: it is written before the state becomes 2, after which this is called, and never again.
        unsafe { &*found }
    }
}

/// Before the program's own code runs, so that its threads find the allocator there.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn at_start() {
        Next::get();
    }
    at_start
};

fn say(text: &str) {
    // SAFETY: it writes a text that lives. Whether it is read does not matter.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

fn lacks(name: &CStr) -> ! {
    say("weir-tag: the program has no allocator behind this one: ");
    say(name.to_str().unwrap_or_default());
    say("\n");
    // SAFETY: it ends the process.
    unsafe { libc::abort() }
}

/// A number of the environment, with K, M or G; where it is none, a message says what it should be.
fn variable(name: &CStr, what: &str) -> Option<usize> {
    // SAFETY: the program has not begun, so that nothing changes the environment; its texts end with zero.
    let text = unsafe {
        let at: *const c_char = libc::getenv(name.as_ptr());
        if at.is_null() {
            return None;
        }
        CStr::from_ptr(at).to_bytes()
    };
    let number = number(text);
    if number.is_none() {
        say("weir-tag: ");
        say(name.to_str().unwrap_or_default());
        say(" is ");
        say(what);
        say("; it is not used\n");
    }
    number
}

fn number(text: &[u8]) -> Option<usize> {
    let (digits, shift) = match text.split_last()? {
        (b'K' | b'k', digits) => (digits, 10),
        (b'M' | b'm', digits) => (digits, 20),
        (b'G' | b'g', digits) => (digits, 30),
        _ => (text, 0),
    };
    let number: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    number.checked_mul(1 << shift)
}

const ROOM: usize = 64 << 10;
#[repr(align(16))]
struct Room(std::cell::UnsafeCell<[u8; ROOM]>);
// SAFETY: `early` gives each of its bytes to one caller only.
unsafe impl Sync for Room {}
static ROOM_AT: Room = Room(std::cell::UnsafeCell::new([0; ROOM]));
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Whether it was given before the next allocator was known. Such memory is never used again.
#[inline]
pub fn is_early(at: *mut c_void) -> bool {
    at.addr().wrapping_sub(ROOM_AT.0.get().addr()) < ROOM
}

/// Its size.
pub fn early_size(at: *mut c_void) -> usize {
    // SAFETY: `early` wrote its size before it.
    unsafe { at.cast::<usize>().sub(2).read() }
}

unsafe extern "C" fn early(bytes: usize) -> *mut c_void {
    // SAFETY: the same room.
    unsafe { early_aligned(16, bytes) }
}

unsafe extern "C" fn early_aligned(align: usize, bytes: usize) -> *mut c_void {
    let (Some(all), true) = (bytes.checked_add(32 + align), align.is_power_of_two()) else {
        return ptr::null_mut();
    };
    let all = all.next_multiple_of(16);
    let take = |taken: usize| taken.checked_add(all).filter(|&end| end <= ROOM);
    let taken = TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
    let Ok(from) = taken else {
        return ptr::null_mut();
    };
    // SAFETY: `from..from + all` is this call's alone, and has room for a size, the alignment and the bytes.
    unsafe {
        let begin = ROOM_AT.0.get().cast::<u8>().add(from + 16);
        let at = begin.add(begin.align_offset(align.max(16)));
        at.cast::<usize>().sub(2).write(bytes);
        at.cast()
    }
}

unsafe extern "C" fn early_cleared(count: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the room is zero, and no part of it is given twice.
    count
        .checked_mul(bytes)
        .map_or(ptr::null_mut(), |all| unsafe { early(all) })
}

/// What was given early is copied before this is asked.
unsafe extern "C" fn early_again(_: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the same room.
    unsafe { early(bytes) }
}

unsafe extern "C" fn early_posix(to: *mut *mut c_void, align: usize, bytes: usize) -> i32 {
    // SAFETY: the caller hands a place for a pointer.
    unsafe {
        let at = early_aligned(align, bytes);
        if at.is_null() {
            return libc::ENOMEM;
        }
        to.write(at);
    }
    0
}

unsafe extern "C" fn early_free(_: *mut c_void) {}

unsafe extern "C" fn early_usable(of: *mut c_void) -> usize {
    match of.is_null() {
        true => 0,
        false => early_size(of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_letter_or_none() {
        let seen = [
            &b"65536"[..],
            b"256K",
            b"4m",
            b"1G",
            b"",
            b"M",
            b"1.5M",
            b"-1",
            b"99999999999G",
        ]
        .map(number);
        let (k, m) = (Some(256 << 10), Some(4 << 20));
        assert_eq!(
            seen,
            [
                Some(65536),
                k,
                m,
                Some(1 << 30),
                None,
                None,
                None,
                None,
                None
            ]
        );
    }

    #[test]
    fn early_memory_is_aligned_apart_and_keeps_its_content() {
        // SAFETY: the pointers are used within their sizes.
        unsafe {
            let a = early_cleared(3, 7).cast::<u8>();
            let b = early_aligned(256, 10).cast::<u8>();
            assert!(is_early(a.cast()) && is_early(b.cast()) && b.addr().is_multiple_of(256));
            assert_eq!((early_size(a.cast()), early_size(b.cast())), (21, 10));
            a.write_bytes(7, 21);
            b.write_bytes(8, 10);
            assert_eq!(std::slice::from_raw_parts(a, 21), [7; 21]);
            assert!(early(ROOM).is_null());
        }
    }
}
