//! A segment: 4 MiB of memory, or one large allocation, and what is known of it. That is kept elsewhere, in memory without a
//! policy: freeing an object touches nothing on its node.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of a segment, and what it is aligned to.
pub const BYTES: usize = 4 << 20;
/// The unit of allocations that are not small.
pub const PAGE: usize = 4096;
pub const PAGES: usize = BYTES / PAGE;
/// Small objects of one size share a run of pages.
pub const RUN: usize = 16;
const RUN_BYTES: usize = RUN * PAGE;
/// Larger objects have pages of their own.
pub const SMALL: usize = 8192;
/// Larger objects have a mapping of their own.
pub const MEDIUM: usize = 2 << 20;
/// Sizes of small objects.
pub const BINS: usize = 32;

const WORDS: usize = RUN_BYTES / 16 / 64;
const USED_BY_RUN: u16 = 1 << 15;
const INSIDE: u16 = 1 << 14;

/// The size of small objects of a bin: up to 128 in steps of 16, then four sizes for each doubling.
pub const fn size_of_bin(bin: usize) -> usize {
    if bin < 8 {
        return 16 * (bin + 1);
    }
    let doubling = (bin - 8) / 4;
    (5 + (bin - 8) % 4) << (5 + doubling)
}

/// The bin for a size and an alignment, if a small object can have it.
pub fn bin_of(bytes: usize, align: usize) -> Option<usize> {
    let first = match bytes {
        0..=128 => bytes.saturating_sub(1) / 16,
        // The highest bit says which doubling, the two bits below which quarter.
        _ => {
            let bit = (bytes - 1).ilog2() as usize;
            8 + (bit - 7) * 4 + (((bytes - 1) >> (bit - 2)) & 3)
        }
    };
    (first..BINS).find(|&bin| size_of_bin(bin).is_multiple_of(align))
}

/// Pages that hold small objects of one size.
#[repr(C)]
pub struct Run {
    pub segment: *mut Segment,
    pub next: *mut Run,
    pub prev: *mut Run,
    pub bin: u8,
    used: u16,
    hint: u16,
    bits: [u64; WORDS],
}

impl Run {
    fn slots(&self) -> usize {
        RUN_BYTES / size_of_bin(usize::from(self.bin))
    }

    pub fn is_full(&self) -> bool {
        usize::from(self.used) == self.slots()
    }

    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The number of a free slot, which is used now.
    pub fn take(&mut self) -> Option<usize> {
        let slots = self.slots();
        let words = slots.div_ceil(64);
        for i in 0..words {
            let word = (usize::from(self.hint) + i) % words;
            let free = (!self.bits[word]).trailing_zeros() as usize;
            let slot = word * 64 + free;
            if free < 64 && slot < slots {
                self.bits[word] |= 1 << free;
                self.used += 1;
                self.hint = word as u16;
                return Some(slot);
            }
        }
        None
    }

    /// Frees a slot; whether it was used.
    pub fn give(&mut self, slot: usize) -> bool {
        let (word, bit) = (slot / 64, 1 << (slot % 64));
        let was = self.bits[word] & bit != 0;
        if was {
            self.bits[word] &= !bit;
            self.used -= 1;
            self.hint = word as u16;
        }
        was
    }

    pub fn has(&self, slot: usize) -> bool {
        self.bits[slot / 64] & (1 << (slot % 64)) != 0
    }
}

/// What a segment belongs to. The file that maps segments knows its type.
pub struct Owner(());

/// What is known of a segment. All zeros but for the first four is an empty one.
#[repr(C)]
pub struct Segment {
    pub owner: *const Owner,
    pub base: *mut u8,
    /// Its mapping.
    pub bytes: usize,
    /// Its entry in the table of names.
    pub slot: u32,
    /// The list of its shard.
    pub next: *mut Segment,
    pub prev: *mut Segment,
    /// Bytes of its one allocation, if it is a large one.
    pub large: usize,
    pub used: u16,
    /// For each page 0, the pages of an allocation that begins there, or what it is part of.
    pages: [u16; PAGES],
    runs: [Run; PAGES / RUN],
}

/// What an address is.
pub enum Object {
    Small { run: *mut Run, slot: usize },
    Medium { page: usize, pages: usize },
    Large,
}

impl Segment {
    /// Pages in a row from a multiple of `align` pages, which are used now.
    pub fn take(&mut self, pages: usize, align: usize) -> Option<usize> {
        let mut first = 0;
        while first + pages <= PAGES {
            // The last page in the way says where to go on.
            let Some(taken) = (first..first + pages)
                .rev()
                .find(|&page| self.pages[page] != 0)
            else {
                self.pages[first] = pages as u16;
                self.pages[first + 1..first + pages].fill(INSIDE);
                self.used += pages as u16;
                return Some(first);
            };
            first = (taken + 1).next_multiple_of(align);
        }
        None
    }

    /// Frees what [`Segment::take`] gave.
    pub fn give(&mut self, first: usize, pages: usize) {
        self.pages[first..first + pages].fill(0);
        self.used -= pages as u16;
    }

    /// Pages for small objects.
    pub fn run(&mut self, bin: usize) -> Option<*mut Run> {
        let segment = ptr::from_mut(self);
        let first = self.take(RUN, RUN)?;
        self.pages[first..first + RUN].fill(USED_BY_RUN);
        let run = &mut self.runs[first / RUN];
        (run.bin, run.used, run.hint) = (bin as u8, 0, 0);
        run.bits.fill(0);
        run.segment = segment;
        Some(run)
    }

    /// Frees the pages of a run.
    pub fn give_run(&mut self, run: *mut Run) {
        self.give(self.number(run) * RUN, RUN);
    }

    fn number(&self, run: *const Run) -> usize {
        (run.addr() - self.runs.as_ptr().addr()) / size_of::<Run>()
    }

    /// The address of a slot.
    pub fn slot(&self, run: &Run, slot: usize) -> *mut u8 {
        let at = self.number(run) * RUN_BYTES + slot * size_of_bin(usize::from(run.bin));
        self.base.wrapping_add(at)
    }

    /// What begins at an address of this segment.
    pub fn object(&mut self, at: *const u8) -> Option<Object> {
        let offset = at.addr() - self.base.addr();
        if self.large > 0 {
            return (offset == 0).then_some(Object::Large);
        }
        let page = offset / PAGE;
        match *self.pages.get(page)? {
            USED_BY_RUN => {
                let run = &mut self.runs[page / RUN];
                let (inside, size) = (offset % RUN_BYTES, size_of_bin(usize::from(run.bin)));
                let slot = inside / size;
                let begins = inside.is_multiple_of(size) && slot < run.slots() && run.has(slot);
                begins.then_some(Object::Small { run, slot })
            }
            0 | INSIDE => None,
            pages => offset.is_multiple_of(PAGE).then_some(Object::Medium {
                page,
                pages: usize::from(pages),
            }),
        }
    }
}

type Leaf = [AtomicPtr<Segment>; 1 << 13];
/// Segments by address: two levels for the 48 bits that user addresses have.
static LEAVES: [AtomicPtr<Leaf>; 1 << 13] = [const { AtomicPtr::new(ptr::null_mut()) }; 1 << 13];

fn place(at: *const u8) -> Option<(&'static AtomicPtr<Leaf>, usize)> {
    let number = at.addr() / BYTES;
    Some((LEAVES.get(number >> 13)?, number & 0x1fff))
}

/// The segment of an address; null where it is not of this library.
pub fn of(at: *const u8) -> *mut Segment {
    let found = place(at).and_then(|(leaf, number)| {
        // SAFETY: a leaf is never unmapped.
        let leaf = unsafe { leaf.load(Ordering::Acquire).as_ref() }?;
        Some(leaf.get(number)?.load(Ordering::Acquire))
    });
    found.unwrap_or(ptr::null_mut())
}

/// Makes a segment known, or null: unknown. `false` where there is no memory for that.
pub fn register(at: *const u8, segment: *mut Segment) -> bool {
    let Some((leaf, number)) = place(at) else {
        return false;
    };
    if leaf.load(Ordering::Acquire).is_null() {
        let Some(new) = map(size_of::<Leaf>()) else {
            return false;
        };
        let none = ptr::null_mut();
        if (leaf.compare_exchange(none, new.cast(), Ordering::AcqRel, Ordering::Acquire)).is_err() {
            unmap(new, size_of::<Leaf>());
        }
    }
    // SAFETY: a leaf whose zeros are null pointers, or null no more; it is never unmapped.
    if let Some(place) =
        unsafe { leaf.load(Ordering::Acquire).as_ref() }.and_then(|leaf| leaf.get(number))
    {
        place.store(segment, Ordering::Release);
    }
    true
}

/// Private memory, filled with zeros.
pub fn map(bytes: usize) -> Option<*mut u8> {
    let (prot, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: a new mapping at an address of the kernel's choice.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, prot, flags, -1, 0) };
    (at != libc::MAP_FAILED).then_some(at.cast())
}

/// The same from a multiple of [`BYTES`].
pub fn map_aligned(bytes: usize) -> Option<*mut u8> {
    let at = map(bytes)?;
    if at.addr().is_multiple_of(BYTES) {
        return Some(at);
    }
    unmap(at, bytes);
    let all = bytes.checked_add(BYTES)?;
    let at = map(all)?;
    let before = at.addr().next_multiple_of(BYTES) - at.addr();
    if before > 0 {
        unmap(at, before);
    }
    let start = at.wrapping_add(before);
    if before < BYTES {
        unmap(start.wrapping_add(bytes), BYTES - before);
    }
    Some(start)
}

/// Gives a mapping of this library, or a part of it, back.
pub fn unmap(at: *mut u8, bytes: usize) {
    // SAFETY: callers hand what `map` gave them, and use it no more.
    unsafe { libc::munmap(at.cast(), bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bin_is_the_smallest_that_has_room_and_alignment(bytes in 1..=SMALL, shift in 0_u32..=13) {
            let align = 1 << shift;
            let found = bin_of(bytes, align);
            let expected = (0..BINS).find(|&bin| size_of_bin(bin) >= bytes && size_of_bin(bin).is_multiple_of(align));
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn sizes_grow_by_at_most_a_quarter_above_128() {
        assert_eq!(size_of_bin(BINS - 1), SMALL);
        for bin in 8..BINS {
            let (before, size) = (size_of_bin(bin - 1), size_of_bin(bin));
            assert!(size > before && size * 4 <= before * 5, "{before} {size}");
        }
    }
}
