//! Pointer chains: one pointer in each line of a working set, in one closed cycle.

use weir_model::access::Locality;

use super::{LINE, Random};

/// Pages of 4 KiB in the window of a TLB-friendly chase: within the first-level data TLB of every
/// server processor of the last decade (64 entries or more).
pub const WINDOW_PAGES: usize = 64;

/// Lines in that window.
const WINDOW_LINES: usize = WINDOW_PAGES * 4096 / LINE;

/// The order in which a chase visits `lines` lines, each once.
///
/// A TLB-friendly chase visits all lines of a window in random order, then those of the next window; a random
/// one draws the order from the whole working set, in a single cycle.
pub fn order(lines: usize, locality: Locality, random: &mut Random) -> Vec<u32> {
    let lines = lines.min(u32::MAX as usize);
    let mut order: Vec<u32> = (0..lines as u32).collect();
    let window = match locality {
        Locality::TlbFriendly => WINDOW_LINES,
        Locality::Random => lines.max(1),
    };
    for part in order.chunks_mut(window) {
        shuffle(part, random);
    }
    order
}

/// Fisher and Yates.
fn shuffle(items: &mut [u32], random: &mut Random) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last + 1));
    }
}

/// Writes the chain into memory and returns its first line.
///
/// # Safety
/// Every line of `order`, counted from `base`, is mapped, writable and not used by anything else.
pub unsafe fn link(base: *mut u8, order: &[u32]) -> *mut u8 {
    let line = |index: u32| base.wrapping_add(index as usize * LINE);
    let successors = order.iter().skip(1).chain(order.first());
    for (&here, &next) in order.iter().zip(successors) {
        // SAFETY: the line is one of those that the caller vouches for, and lines are aligned.
        unsafe { line(here).cast::<*mut u8>().write(line(next)) };
    }
    order.first().map_or(base, |&first| line(first))
}
