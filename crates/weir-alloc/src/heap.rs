//! The memory of a class: shards with a lock each, so that threads rarely wait for each other.

use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use crate::lock::Lock;
use crate::node::{self, Place, STRETCH};
use crate::segment::{self, BINS, MEDIUM, Object, PAGE, Run, SMALL, Segment};
use crate::{Refused, Stats, names};

const SHARDS: usize = 8;
/// Segments that are asked for pages before a new one is mapped.
const TRIES: usize = 8;

/// A class of objects.
pub struct Heap {
    pub name: Arc<str>,
    place: Place,
    limit: usize,
    mapped: AtomicUsize,
    turn: AtomicUsize,
    shards: [Shard; SHARDS],
    next: AtomicPtr<Heap>,
}

/// A part of a class's memory.
pub struct Shard {
    lock: Lock,
    heap: AtomicPtr<Heap>,
    inner: UnsafeCell<Inner>,
}

// SAFETY: `inner` is reached only under the lock.
unsafe impl Sync for Shard {}
// SAFETY: what it points to is mapped memory, which belongs to no thread.
unsafe impl Send for Shard {}

struct Inner {
    /// For each size, runs with a free slot.
    bins: [*mut Run; BINS],
    /// Segments with and without a free page, and large allocations.
    open: List,
    full: List,
    large: List,
    used: usize,
    count: usize,
}

/// A list of segments.
struct List {
    head: *mut Segment,
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
    const fn new() -> Self {
        Self {
            lock: Lock::new(),
            heap: AtomicPtr::new(ptr::null_mut()),
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

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        // SAFETY: only under the lock, and `work` is of this file and does not come here again.
        self.lock.with(|| work(unsafe { &mut *self.inner.get() }))
    }
}

impl Heap {
    pub fn new(name: &str, place: Place, limit: Option<usize>) -> Arc<Self> {
        let heap = Arc::new(Self {
            name: name.into(),
            place,
            limit: limit.unwrap_or(usize::MAX),
            mapped: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
            shards: [const { Shard::new() }; SHARDS],
            next: AtomicPtr::new(ptr::null_mut()),
        });
        let at = Arc::as_ptr(&heap).cast_mut();
        for shard in &heap.shards {
            shard.heap.store(at, Ordering::Release);
        }
        forks::add(&heap);
        heap
    }

    pub fn alloc(&self, bytes: usize, align: usize) -> Result<ptr::NonNull<u8>, Refused> {
        let bytes = bytes.max(1);
        if !align.is_power_of_two() || align > segment::BYTES {
            return Err(Refused::Alignment(align));
        }
        let own = shard_of_thread();
        let mut result = self.alloc_in(own, bytes, align);
        // What this shard may not map, another may have left.
        if let Err(Refused::Limit { .. } | Refused::Full { .. }) = result
            && bytes <= MEDIUM
        {
            let others = (1..SHARDS).map(|i| (own + i) % SHARDS);
            let found = others
                .map(|shard| self.alloc_in(shard, bytes, align))
                .find(Result::is_ok);
            result = found.unwrap_or(result);
        }
        result
    }

    fn alloc_in(
        &self,
        shard: usize,
        bytes: usize,
        align: usize,
    ) -> Result<ptr::NonNull<u8>, Refused> {
        let shard = &self.shards[shard];
        let at = shard.with(|inner| {
            // SAFETY: runs and segments in the lists of a shard exist until it removes them, under its lock.
            unsafe {
                match (bin_for(bytes, align), bytes) {
                    (Some(bin), _) => inner.small(self, shard, bin),
                    (None, ..=MEDIUM) => inner.medium(self, shard, bytes, align),
                    _ => inner.large(self, shard, bytes),
                }
            }
        })?;
        ptr::NonNull::new(at).ok_or(Refused::Kernel(0))
    }

    /// Memory from the kernel, with this class's place and name.
    fn map(&self, shard: &Shard, bytes: usize) -> Result<*mut Segment, Refused> {
        let add = |sum: usize| sum.checked_add(bytes).filter(|&sum| sum <= self.limit);
        if let Err(mapped) = (self.mapped).fetch_update(Ordering::AcqRel, Ordering::Relaxed, add) {
            return Err(Refused::Limit {
                class: self.name.clone(),
                limit: self.limit,
                mapped,
                asked: bytes,
            });
        }
        let made = self.map_within_limit(shard, bytes);
        if made.is_err() {
            self.mapped.fetch_sub(bytes, Ordering::AcqRel);
        }
        made
    }

    fn map_within_limit(&self, shard: &Shard, bytes: usize) -> Result<*mut Segment, Refused> {
        // The kernel would end the program only when it touches the page for which there is no room.
        let nodes = self.place.nodes.iter().map(|one| one.0);
        if !self.place.elsewhere
            && !self.place.nodes.is_empty()
            && let Some(free) = node::free(nodes)
            && free < bytes as u64
        {
            return Err(Refused::Full {
                class: self.name.clone(),
                free,
                asked: bytes,
            });
        }
        let kernel =
            || Refused::Kernel(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
        let base = segment::map_aligned(bytes).ok_or_else(kernel)?;
        let give_back = |why: Refused| {
            segment::unmap(base, bytes);
            why
        };
        let turn = self
            .turn
            .fetch_add(bytes.div_ceil(STRETCH), Ordering::Relaxed);
        let bound = self.place.bind(base.expose_provenance(), bytes, turn);
        bound.map_err(|error| give_back(Refused::Kernel(error.raw_os_error().unwrap_or(0))))?;
        let known = segment::map(size_of::<Segment>()).ok_or_else(|| give_back(kernel()))?;
        let segment = known.cast::<Segment>();
        let mut text = [0_u8; names::LONGEST];
        let name = b"weir:".iter().chain(self.name.as_bytes());
        let length = text
            .iter_mut()
            .zip(name)
            .map(|(to, from)| *to = *from)
            .count();
        // SAFETY: a mapping of this size, whose zeros are an empty segment, and which nobody else knows yet.
        unsafe {
            (*segment).shard = shard;
            (*segment).base = base;
            (*segment).bytes = bytes;
            (*segment).slot = names::name(base.addr(), bytes, &text[..length]);
        }
        if !segment::register(base, segment) {
            // SAFETY: as above.
            unsafe { names::ended((*segment).slot) };
            segment::unmap(known, size_of::<Segment>());
            return Err(give_back(kernel()));
        }
        Ok(segment)
    }

    /// # Safety
    /// The segment is in no list, and nothing in it is used.
    unsafe fn unmap(&self, segment: *mut Segment) {
        // SAFETY: it exists, and after this nobody knows it.
        unsafe {
            let (base, bytes) = ((*segment).base, (*segment).bytes);
            segment::register(base, ptr::null_mut());
            names::ended((*segment).slot);
            segment::unmap(base, bytes);
            segment::unmap(segment.cast(), size_of::<Segment>());
            self.mapped.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    pub fn stats(&self) -> Stats {
        let mut all = Stats {
            mapped: self.mapped.load(Ordering::Acquire),
            ..Stats::default()
        };
        for shard in &self.shards {
            let (used, count) = shard.with(|inner| (inner.used, inner.count));
            all.used += used;
            all.objects += count;
        }
        all
    }

    /// Gives segments without objects back.
    pub fn trim(&self) {
        for shard in &self.shards {
            // SAFETY: as in `alloc_in`.
            shard.with(|inner| unsafe { inner.trim(self) });
        }
    }
}

fn bin_for(bytes: usize, align: usize) -> Option<usize> {
    (bytes <= SMALL)
        .then(|| segment::bin_of(bytes, align))
        .flatten()
}

impl Inner {
    unsafe fn small(&mut self, heap: &Heap, shard: &Shard, bin: usize) -> Result<*mut u8, Refused> {
        // SAFETY: of the callee and of `alloc_in`: all pointers are to runs and segments of this shard.
        unsafe {
            if self.bins[bin].is_null() {
                let run = self.pages(heap, shard, segment::RUN, |segment| (*segment).run(bin))?;
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

    unsafe fn medium(
        &mut self,
        heap: &Heap,
        shard: &Shard,
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
            let at = self.pages(heap, shard, pages, take)?;
            self.used += pages * PAGE;
            self.count += 1;
            Ok(at)
        }
    }

    unsafe fn large(
        &mut self,
        heap: &Heap,
        shard: &Shard,
        bytes: usize,
    ) -> Result<*mut u8, Refused> {
        let bytes = bytes
            .checked_next_multiple_of(PAGE.max(page_size()))
            .ok_or(Refused::Kernel(libc::ENOMEM))?;
        let segment = heap.map(shard, bytes)?;
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
        heap: &Heap,
        shard: &Shard,
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
            let segment = heap.map(shard, segment::BYTES)?;
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
    unsafe fn free(&mut self, heap: &Heap, segment: *mut Segment, at: *const u8) -> bool {
        // SAFETY: as in `small`.
        unsafe {
            let was_full = usize::from((*segment).used) == segment::PAGES;
            match (*segment).object(at) {
                None => return false,
                Some(Object::Large) => {
                    self.used -= (*segment).large;
                    self.count -= 1;
                    self.large.remove(segment);
                    heap.unmap(segment);
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
                heap.unmap(segment);
            }
        }
        true
    }

    unsafe fn trim(&mut self, heap: &Heap) {
        // SAFETY: as in `small`.
        unsafe {
            let mut at = self.open.head;
            while let Some(segment) = at.as_mut() {
                let next = segment.next;
                if segment.used == 0 {
                    self.open.remove(at);
                    heap.unmap(at);
                }
                at = next;
            }
        }
    }
}

/// The shard of an address, if it is of this library.
fn owner(at: *const u8) -> Option<(&'static Shard, &'static Heap, *mut Segment)> {
    let segment = segment::of(at);
    // SAFETY: a registered segment exists, and so do its shard and class: who holds an allocation holds its class.
    unsafe {
        let shard = segment.as_ref()?.shard.as_ref()?;
        let heap = shard.heap.load(Ordering::Acquire).as_ref()?;
        Some((shard, heap, segment))
    }
}

/// Frees an allocation of any class; `false` where there is none at this address.
///
/// # Safety
/// The caller uses it no more.
pub unsafe fn free(at: *const u8) -> bool {
    // SAFETY: the segment is this shard's.
    owner(at).is_some_and(|(shard, heap, segment)| {
        shard.with(|inner| unsafe { inner.free(heap, segment, at) })
    })
}

/// The class of an allocation, and the bytes that it may use.
pub fn usable(at: *const u8) -> Option<(&'static Heap, usize)> {
    let (shard, heap, segment) = owner(at)?;
    let bytes = shard.with(|_| {
        // SAFETY: the segment is this shard's, whose lock is held.
        Some(match unsafe { (*segment).object(at) }? {
            // SAFETY: the run is of this segment.
            Object::Small { run, .. } => segment::size_of_bin(usize::from(unsafe { (*run).bin })),
            Object::Medium { pages, .. } => pages * PAGE,
            // SAFETY: as above.
            Object::Large => unsafe { (*segment).large },
        })
    })?;
    Some((heap, bytes))
}

impl Drop for Heap {
    fn drop(&mut self) {
        forks::remove(self);
        for shard in &self.shards {
            let lists = shard.with(|inner| [inner.open.head, inner.full.head, inner.large.head]);
            for mut at in lists {
                // SAFETY: nobody holds this class, so that none of its objects is used any more.
                while let Some(segment) = unsafe { at.as_mut() } {
                    let next = segment.next;
                    // SAFETY: as above; the lists go with the shard.
                    unsafe { self.unmap(at) };
                    at = next;
                }
            }
        }
    }
}

fn shard_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    let own = OWN.try_with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        own.get()
    });
    own.unwrap_or(0)
}

/// Of the kernel: 4, 16 or 64 KiB.
fn page_size() -> usize {
    // SAFETY: it asks for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE)
}

/// All locks are held while a process forks: a child has only the thread that forked, and nobody to release the others.
mod forks {
    use super::*;

    static LIST: Lock = Lock::new();
    static HEAD: AtomicPtr<Heap> = AtomicPtr::new(ptr::null_mut());

    fn each(mut work: impl FnMut(&Heap)) {
        let mut at = HEAD.load(Ordering::Acquire);
        // SAFETY: under the lock of the list; a class leaves it before it ends.
        while let Some(heap) = unsafe { at.as_ref() } {
            work(heap);
            at = heap.next.load(Ordering::Acquire);
        }
    }

    extern "C" fn before() {
        LIST.lock();
        each(|heap| heap.shards.iter().for_each(|shard| shard.lock.lock()));
    }

    extern "C" fn after() {
        each(|heap| heap.shards.iter().for_each(|shard| shard.lock.unlock()));
        LIST.unlock();
    }

    pub fn add(heap: &Arc<Heap>) {
        static ONCE: Once = Once::new();
        // SAFETY: functions without arguments which live as long as the process.
        ONCE.call_once(|| unsafe {
            libc::pthread_atfork(Some(before), Some(after), Some(after));
        });
        LIST.with(|| {
            heap.next
                .store(HEAD.load(Ordering::Acquire), Ordering::Release);
            HEAD.store(Arc::as_ptr(heap).cast_mut(), Ordering::Release);
        });
    }

    pub fn remove(heap: &Heap) {
        LIST.with(|| {
            let mut place = &HEAD;
            // SAFETY: as in `each`.
            while let Some(one) = unsafe { place.load(Ordering::Acquire).as_ref() } {
                if ptr::eq(one, heap) {
                    place.store(heap.next.load(Ordering::Acquire), Ordering::Release);
                    return;
                }
                place = &one.next;
            }
        });
    }
}
