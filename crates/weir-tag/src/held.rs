//! Freed mappings that are kept for the next allocation of their site, as glibc keeps freed memory: a new mapping has to be
//! cleared by the kernel page by page, which takes longer than all the rest.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::pages;

/// Larger ones go back at once, as in glibc (`DEFAULT_MMAP_THRESHOLD_MAX`).
const LARGEST: usize = 32 << 20;
/// What all may have: glibc's limit for the end of its heap, which follows the largest freed mapping.
const MOST: usize = 64 << 20;

static KEPT: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Keeps a mapping; `false` where there is no room.
pub fn keep(at: usize, bytes: usize) -> bool {
    let add = |sum: usize| (sum + bytes <= MOST).then_some(sum + bytes);
    if bytes > LARGEST || (BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)).is_err() {
        return false;
    }
    let free = |place: &&AtomicUsize| {
        place.load(Ordering::Relaxed) == 0
            && (place.compare_exchange(0, at, Ordering::Release, Ordering::Relaxed)).is_ok()
    };
    let is_kept = KEPT.iter().find(free).is_some();
    if !is_kept {
        BYTES.fetch_sub(bytes, Ordering::Relaxed);
    }
    is_kept
}

/// A kept mapping for this many bytes at this alignment, of which at most a third is not needed: one of the same site, else any.
pub fn take(site: u32, bytes: usize, align: usize) -> Option<usize> {
    if bytes > LARGEST || BYTES.load(Ordering::Relaxed) < bytes {
        return None;
    }
    let fits = |at: usize, any: bool| {
        let page = (at != 0).then(|| pages::at(at)).flatten()?;
        let has = page.bytes.load(Ordering::Acquire);
        let fits = at.is_multiple_of(align)
            && (bytes..=bytes + bytes / 2).contains(&has)
            && (any || page.site.load(Ordering::Relaxed) == site);
        fits.then_some(has)
    };
    let take = |any: bool| {
        KEPT.iter().find_map(|place| {
            let at = place.load(Ordering::Acquire);
            fits(at, any)?;
            (place.compare_exchange(at, 0, Ordering::AcqRel, Ordering::Relaxed)).ok()?;
            // Another thread may have had it since, and given it back with another size.
            let page = pages::at(at)?;
            let has = page.bytes.load(Ordering::Acquire);
            BYTES.fetch_sub(has, Ordering::Relaxed);
            if fits(at, true).is_none() {
                pages::unmap(at, page);
                return None;
            }
            Some(at)
        })
    };
    take(false).or_else(|| take(true))
}
