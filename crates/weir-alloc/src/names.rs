//! Names of stretches of memory: the kernel's where it keeps names (`CONFIG_ANON_VMA_NAME`), else a table of this process.
//!
//! Debian's kernels keep none, nor does QEMU's user mode pass them on. The table is then a private mapping of the memory
//! file `weir-names`: `weir` finds it in `/proc/PID/maps` and reads it through `/proc/PID/mem`, it ends with the process, and
//! after a fork each process has its own. `weir_linux::memory::names` is the reader.
//!
//! Nothing here allocates or locks. `weir-tag` compiles this file, too: what is preloaded links nothing else of Weir.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// The longest name with its final zero, as in the kernel (`ANON_VMA_NAME_MAX_LEN`).
pub const LONGEST: usize = 80;
/// Entries of the table: the kernel allows about as many mappings (`vm.max_map_count`).
const SLOTS: usize = 1 << 16;
/// The first word of the table: `weirnam1`.
const MAGIC: usize = usize::from_le_bytes(*b"weirnam1");

/// An entry of 96 bytes. The first of the table has [`MAGIC`] and the number of entries that were ever used. One that is free
/// starts at 0, and has the number of the next free one for its bytes.
#[repr(C)]
struct Slot {
    start: AtomicUsize,
    bytes: AtomicUsize,
    name: [AtomicU8; LONGEST],
}

const UNKNOWN: u8 = 0;
const KERNEL: u8 = 1;
const TABLE: u8 = 2;
const NONE: u8 = 3;
static KEPT: AtomicU8 = AtomicU8::new(UNKNOWN);
static AT: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());
/// The first free entry, or 0, in the lower half. The upper half counts changes, so that none is taken for an earlier state.
static FREE: AtomicU64 = AtomicU64::new(0);

/// Names a mapping of this process. The number is for [`moved`] and [`ended`]; 0 where none is needed.
///
/// Of a longer name the first 79 bytes are taken.
pub fn name(start: usize, bytes: usize, name: &[u8]) -> u32 {
    let name = name.get(..LONGEST - 1).unwrap_or(name);
    match kept() {
        KERNEL => by_kernel(start, bytes, name),
        TABLE => return in_table(start, bytes, name),
        _ => false,
    };
    0
}

/// Whether names are kept at all.
pub fn are_kept() -> bool {
    kept() != NONE
}

/// A mapping has moved, or has another size.
pub fn moved(slot: u32, start: usize, bytes: usize) {
    if let Some(slot) = of(slot) {
        slot.bytes.store(bytes, Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
    }
}

/// A mapping is about to be unmapped.
pub fn ended(number: u32) {
    let Some(slot) = of(number) else { return };
    if slot.start.swap(0, Ordering::AcqRel) == 0 {
        return;
    }
    let _ = FREE.fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| {
        slot.bytes.store(free as u32 as usize, Ordering::Relaxed);
        Some(changed(free, number))
    });
}

/// Another name for a mapping.
pub fn renamed(slot: u32, start: usize, bytes: usize, to: &[u8]) -> u32 {
    ended(slot);
    name(start, bytes, to)
}

fn kept() -> u8 {
    match KEPT.load(Ordering::Acquire) {
        UNKNOWN => {
            let page = map(4096, -1);
            let found = match page {
                Some(page) if by_kernel(page, 4096, b"weir") => KERNEL,
                _ if table() => TABLE,
                _ => NONE,
            };
            if let Some(page) = page {
                // SAFETY: this function mapped the page, and nothing else knows of it.
                unsafe { libc::munmap(page as *mut _, 4096) };
            }
            KEPT.store(found, Ordering::Release);
            found
        }
        known => known,
    }
}

fn by_kernel(start: usize, bytes: usize, name: &[u8]) -> bool {
    let mut text = [0_u8; LONGEST];
    text[..name.len()].copy_from_slice(name);
    let [start, bytes] = [start, bytes].map(|word| word as libc::c_ulong);
    let (set, anon) = (0x5356_4d41_u32 as libc::c_int, 0 as libc::c_ulong);
    // SAFETY: PR_SET_VMA_ANON_NAME (prctl(2)) reads a text that ends with zero, and changes no memory.
    unsafe { libc::prctl(set, anon, start, bytes, text.as_ptr()) == 0 }
}

/// Private memory, of a file where there is one.
fn map(bytes: usize, file: libc::c_int) -> Option<usize> {
    let anonymous = if file < 0 { libc::MAP_ANONYMOUS } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE | anonymous;
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, prot, flags, file, 0) };
    (at != libc::MAP_FAILED).then_some(at.addr())
}

/// Makes the table where there is none.
fn table() -> bool {
    let bytes = SLOTS * size_of::<Slot>();
    // A file above the limit on file sizes would end the program (SIGXFSZ).
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: it fills the limits that it is given.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if !is_known || limit.rlim_cur < bytes as libc::rlim_t {
        return false;
    }
    // SAFETY: the name is a text with a final zero; the descriptor is this function's until it closes it.
    let at = unsafe {
        let file = libc::memfd_create(c"weir-names".as_ptr(), libc::MFD_CLOEXEC);
        if file < 0 {
            return false;
        }
        let at = match libc::ftruncate(file, bytes as libc::off_t) {
            0 => map(bytes, file),
            _ => None,
        };
        libc::close(file);
        at
    };
    let Some(at) = at else { return false };
    let at = at as *mut Slot;
    // SAFETY: the mapping has room for all slots, its zeros are valid ones, and no other thread knows of it yet.
    let head = unsafe { &*at };
    head.bytes.store(1, Ordering::Relaxed);
    head.start.store(MAGIC, Ordering::Relaxed);
    let none = ptr::null_mut();
    if (AT.compare_exchange(none, at, Ordering::AcqRel, Ordering::Acquire)).is_err() {
        // SAFETY: another thread was first; this table was shown to no thread.
        unsafe { libc::munmap(at.cast(), bytes) };
    }
    true
}

#[cfg(test)]
thread_local! {
    /// Entries that this thread has looked at.
    static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn of(slot: u32) -> Option<&'static Slot> {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
    let at = AT.load(Ordering::Acquire);
    if at.is_null() || slot == 0 || slot as usize >= SLOTS {
        return None;
    }
    // SAFETY: the table has `SLOTS` entries, and once made it stays until the process ends.
    Some(unsafe { &*at.add(slot as usize) })
}

fn in_table(start: usize, bytes: usize, name: &[u8]) -> u32 {
    let Some(number) = claim() else { return 0 };
    let Some(slot) = of(number) else { return 0 };
    for (to, from) in slot.name.iter().zip(name.iter().chain(&[0])) {
        to.store(*from, Ordering::Relaxed);
    }
    moved(number, start, bytes);
    number
}

/// A free entry: one that has been used before, else a new one.
fn claim() -> Option<u32> {
    let old = FREE.fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| {
        let next = of(free as u32)?.bytes.load(Ordering::Relaxed);
        Some(changed(free, next as u32))
    });
    if let Ok(free) = old {
        return Some(free as u32);
    }
    // SAFETY: as in `of`; the first entry is the head.
    let used = &unsafe { AT.load(Ordering::Acquire).as_ref() }?.bytes;
    let grow = |n: usize| (n < SLOTS).then_some(n + 1);
    let new = used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, grow);
    new.ok().map(|number| number as u32)
}

/// [`FREE`] with another first entry.
fn changed(free: u64, first: u32) -> u64 {
    (free >> 32).wrapping_add(1) << 32 | u64::from(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_is_not_searched_and_takes_names_again_when_one_has_ended() {
        assert!(table());
        let looks = |what: &dyn Fn() -> u32| {
            let before = LOOKS.get();
            (what(), LOOKS.get() - before)
        };
        let one = || in_table(4096, 4096, b"one");
        // `weir-tag` names this one.
        let mut numbers = Vec::with_capacity(SLOTS);
        while let (number @ 1.., looks) = looks(&one) {
            assert!(looks < 8, "{looks} entries for {number}");
            numbers.push(number);
        }
        let (none, many) = looks(&one);
        assert!(none == 0 && many < 8, "{many} entries for none");
        // An end that is told twice frees once.
        for number in [numbers[7], numbers[60_000], numbers[60_000]] {
            ended(number);
        }
        let again = [(); 3].map(|()| looks(&one));
        assert_eq!(
            again.map(|(number, _)| number),
            [numbers[60_000], numbers[7], 0]
        );
        assert!(again.iter().all(|(_, looks)| *looks < 8), "{again:?}");
        numbers.into_iter().for_each(ended);
    }
}
