//! A part of a class's memory, under a lock of its own: runs of small objects by size, and segments by the room in them.

use std::cell::UnsafeCell;
use std::ptr;

use crate::forks::ForkLock;
use crate::segment::{self, BINS, Object, Owner, PAGE, Run, SMALL, Segment};
use crate::source::{Refused, Source};

/// Segments that are asked for pages before a new one is mapped.
const TRIES: usize = 8;

/// A part of a class's memory.
pub struct Shard {
    pub lock: ForkLock,
    inner: UnsafeCell<Inner>,
}

// SAFETY: `inner` is reached only under the lock.
unsafe impl Sync for Shard {}
// SAFETY: what it points to is mapped memory, which belongs to no thread.
unsafe impl Send for Shard {}

pub struct Inner {
    /// For each size, runs with a free slot.
    bins: [*mut Run; BINS],
    /// Segments with and without a free page, and large allocations.
    pub open: List,
    pub full: List,
    pub large: List,
    pub used: usize,
    pub count: usize,
}

/// Where a shard's segments come from, and what they belong to.
#[derive(Clone, Copy)]
pub struct Supply<'a> {
    pub source: &'a Source,
    pub owner: *const Owner,
}

impl Supply<'_> {
    fn map(self, bytes: usize) -> Result<*mut Segment, Refused> {
        self.source.map(self.owner, bytes)
    }
}

/// A list of segments.
pub struct List {
    pub head: *mut Segment,
    tail: *mut Segment,
}

impl List {
    const NEW: Self = Self {
        head: ptr::null_mut(),
        tail: ptr::null_mut(),
    };

    /// # Safety
    /// The segment is in no list.
    unsafe fn push(&mut self, segment: *mut Segment) {
        // SAFETY: segments in lists exist, and are this shard's.
        unsafe {
            (*segment).next = ptr::null_mut();
            (*segment).prev = self.tail;
            match self.tail.as_mut() {
                Some(tail) => tail.next = segment,
                None => self.head = segment,
            }
            self.tail = segment;
        }
    }

    /// # Safety
    /// The segment is in this list.
    unsafe fn remove(&mut self, segment: *mut Segment) {
        // SAFETY: as in `push`.
        unsafe {
            let (next, prev) = ((*segment).next, (*segment).prev);
            match next.as_mut() {
                Some(next) => next.prev = prev,
                None => self.tail = prev,
            }
            match prev.as_mut() {
                Some(prev) => prev.next = next,
                None => self.head = next,
            }
        }
    }
}

impl Shard {
    pub const fn new() -> Self {
        Self {
            lock: ForkLock::new(),
            inner: UnsafeCell::new(Inner {
                bins: [ptr::null_mut(); BINS],
                open: List::NEW,
                full: List::NEW,
                large: List::NEW,
                used: 0,
                count: 0,
            }),
        }
    }

    pub fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        // SAFETY: only under the lock, and `work` is of this file and does not come here again.
        self.lock.with(|| work(unsafe { &mut *self.inner.get() }))
    }
}

/// The bin for an object, if it is small.
pub fn bin_for(bytes: usize, align: usize) -> Option<usize> {
    (bytes <= SMALL)
        .then(|| segment::bin_of(bytes, align))
        .flatten()
}

impl Inner {
    pub unsafe fn small(&mut self, supply: Supply<'_>, bin: usize) -> Result<*mut u8, Refused> {
        // SAFETY: of the callee and of `alloc_in`: all pointers are to runs and segments of this shard.
        unsafe {
            if self.bins[bin].is_null() {
                let run = self.pages(supply, segment::RUN, |segment| (*segment).run(bin))?;
                self.link(run);
            }
            let run = self.bins[bin];
            let slot = (*run).take().ok_or(Refused::Kernel(0))?;
            if (*run).is_full() {
                self.unlink(run);
            }
            self.used += segment::size_of_bin(bin);
            self.count += 1;
            Ok((*(*run).segment).slot(&*run, slot))
        }
    }

    pub unsafe fn medium(
        &mut self,
        supply: Supply<'_>,
        bytes: usize,
        align: usize,
    ) -> Result<*mut u8, Refused> {
        let (pages, align) = (bytes.div_ceil(PAGE), align.div_ceil(PAGE));
        // SAFETY: as in `small`.
        unsafe {
            let take = |segment: *mut Segment| {
                let first = (*segment).take(pages, align)?;
                Some((*segment).base.wrapping_add(first * PAGE))
            };
            let at = self.pages(supply, pages, take)?;
            self.used += pages * PAGE;
            self.count += 1;
            Ok(at)
        }
    }

    pub unsafe fn large(&mut self, supply: Supply<'_>, bytes: usize) -> Result<*mut u8, Refused> {
        let bytes = bytes
            .checked_next_multiple_of(PAGE.max(page_size()))
            .ok_or(Refused::Kernel(libc::ENOMEM))?;
        let segment = supply.map(bytes)?;
        // SAFETY: as in `small`.
        unsafe {
            (*segment).large = bytes;
            self.large.push(segment);
            self.used += bytes;
            self.count += 1;
            Ok((*segment).base)
        }
    }

    /// Pages of one of the first segments that have some, else of a new one.
    unsafe fn pages<T>(
        &mut self,
        supply: Supply<'_>,
        pages: usize,
        take: impl Fn(*mut Segment) -> Option<T>,
    ) -> Result<T, Refused> {
        // SAFETY: as in `small`.
        unsafe {
            for _ in 0..TRIES {
                let segment = self.open.head;
                if segment.is_null() {
                    break;
                }
                let room = segment::PAGES - usize::from((*segment).used);
                if room >= pages
                    && let Some(found) = take(segment)
                {
                    self.sort(segment);
                    return Ok(found);
                }
                self.open.remove(segment);
                self.open.push(segment);
            }
            let segment = supply.map(segment::BYTES)?;
            let found = take(segment);
            self.open.push(segment);
            // It is asked first next time.
            self.sort(segment);
            found.ok_or(Refused::Kernel(0))
        }
    }

    /// Puts a segment of the open ones that has no page left among the full ones.
    unsafe fn sort(&mut self, segment: *mut Segment) {
        // SAFETY: as in `small`.
        unsafe {
            if usize::from((*segment).used) == segment::PAGES {
                self.open.remove(segment);
                self.full.push(segment);
            }
        }
    }

    unsafe fn link(&mut self, run: *mut Run) {
        // SAFETY: as in `small`; the run is not linked.
        unsafe {
            let head = &mut self.bins[usize::from((*run).bin)];
            (*run).next = *head;
            (*run).prev = ptr::null_mut();
            if let Some(next) = head.as_mut() {
                next.prev = run;
            }
            *head = run;
        }
    }

    unsafe fn unlink(&mut self, run: *mut Run) {
        // SAFETY: as in `small`; the run is linked.
        unsafe {
            let (next, prev) = ((*run).next, (*run).prev);
            if let Some(next) = next.as_mut() {
                next.prev = prev;
            }
            match prev.as_mut() {
                Some(prev) => prev.next = next,
                None => self.bins[usize::from((*run).bin)] = next,
            }
        }
    }

    /// Frees what begins at an address of a segment; `false` where nothing does.
    pub unsafe fn free(&mut self, source: &Source, segment: *mut Segment, at: *const u8) -> bool {
        // SAFETY: as in `small`.
        unsafe {
            let was_full = usize::from((*segment).used) == segment::PAGES;
            match (*segment).object(at) {
                None => return false,
                Some(Object::Large) => {
                    self.used -= (*segment).large;
                    self.count -= 1;
                    self.large.remove(segment);
                    source.unmap(segment);
                    return true;
                }
                Some(Object::Medium { page, pages }) => {
                    (*segment).give(page, pages);
                    self.used -= pages * PAGE;
                }
                Some(Object::Small { run, slot }) => {
                    if (*run).is_full() {
                        self.link(run);
                    }
                    (*run).give(slot);
                    self.used -= segment::size_of_bin(usize::from((*run).bin));
                    if (*run).is_empty() {
                        self.unlink(run);
                        (*segment).give_run(run);
                    }
                }
            }
            self.count -= 1;
            if was_full && usize::from((*segment).used) < segment::PAGES {
                self.full.remove(segment);
                self.open.push(segment);
            }
            // One that is empty is kept, the last: it would be mapped again for the next object.
            if (*segment).used == 0 && self.open.head != self.open.tail {
                self.open.remove(segment);
                source.unmap(segment);
            }
        }
        true
    }

    pub unsafe fn trim(&mut self, source: &Source) {
        // SAFETY: as in `small`.
        unsafe {
            let mut at = self.open.head;
            while let Some(segment) = at.as_mut() {
                let next = segment.next;
                if segment.used == 0 {
                    self.open.remove(at);
                    source.unmap(at);
                }
                at = next;
            }
        }
    }
}

/// Of the kernel: 4, 16 or 64 KiB.
fn page_size() -> usize {
    // SAFETY: it asks for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE)
}
