//! Which addresses are large allocations: a table of two levels by page, without locks.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::names;

/// Steps in which mappings begin, whatever the size of a page.
const STEP_BITS: u32 = 12;
/// Addresses of a leaf, in bits.
const LEAF_BITS: u32 = 30;
/// User addresses of x86-64 and aarch64, unless a program asks for more.
const ADDRESS_BITS: u32 = 48;

/// A large allocation.
pub struct Page {
    /// Its bytes; 0 where no allocation begins.
    pub bytes: AtomicUsize,
    /// Its entry in the table of names.
    pub slot: AtomicU32,
    /// Its site.
    pub site: AtomicU32,
}

type Leaf = [Page; 1 << (LEAF_BITS - STEP_BITS)];

static LEAVES: [AtomicPtr<Leaf>; 1 << (ADDRESS_BITS - LEAF_BITS)] =
    [const { AtomicPtr::new(ptr::null_mut()) }; 1 << (ADDRESS_BITS - LEAF_BITS)];

/// The entry of an address, if it begins a step for which there is a leaf.
#[inline]
pub fn at(address: usize) -> Option<&'static Page> {
    if address & ((1 << STEP_BITS) - 1) != 0 {
        return None;
    }
    let leaf = LEAVES.get(address >> LEAF_BITS)?.load(Ordering::Acquire);
    // SAFETY: a leaf is never unmapped.
    let leaf = unsafe { leaf.as_ref() }?;
    leaf.get((address & ((1 << LEAF_BITS) - 1)) >> STEP_BITS)
}

/// The same; its leaf is made where there is none.
pub fn made(address: usize) -> Option<&'static Page> {
    let place = LEAVES.get(address >> LEAF_BITS)?;
    if place.load(Ordering::Acquire).is_null() {
        let (prot, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping, whose zeros are a valid leaf; of two that are made at once, one is unmapped unseen.
        unsafe {
            let leaf = libc::mmap(ptr::null_mut(), size_of::<Leaf>(), prot, flags, -1, 0);
            if leaf == libc::MAP_FAILED {
                return None;
            }
            let none = ptr::null_mut();
            let seen =
                place.compare_exchange(none, leaf.cast(), Ordering::AcqRel, Ordering::Acquire);
            if seen.is_err() {
                libc::munmap(leaf, size_of::<Leaf>());
            }
        }
    }
    at(address)
}

/// Gives a mapping that is unused back. What is noted of it goes first: its address may be another's at once.
pub fn unmap(at: usize, page: &Page) {
    let bytes = page.bytes.swap(0, Ordering::AcqRel);
    names::ended(page.slot.load(Ordering::Relaxed));
    // SAFETY: a mapping of this library that its owner has freed. It fails only where the kernel has no room to split a
    // merged mapping; then the memory is lost.
    unsafe { libc::munmap(ptr::with_exposed_provenance_mut(at), bytes) };
}
