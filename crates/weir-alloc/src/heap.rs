//! The memory of a class: shards with a lock each, so that threads rarely wait for each other.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::node::{self, Place, STRETCH};
use crate::segment::{self, MEDIUM, Object, PAGE, Segment};
use crate::shard::{Shard, bin_for};
use crate::{Refused, Stats, forks, names};

const SHARDS: usize = 8;

/// A class of objects.
pub struct Heap {
    pub name: Arc<str>,
    place: Place,
    limit: usize,
    mapped: AtomicUsize,
    turn: AtomicUsize,
    pub shards: [Shard; SHARDS],
    pub next: AtomicPtr<Heap>,
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
    pub fn map(&self, shard: &Shard, bytes: usize) -> Result<*mut Segment, Refused> {
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
        // SAFETY: a mapping of this size, whose zeros are an empty segment, and which no other thread knows yet.
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
    pub unsafe fn unmap(&self, segment: *mut Segment) {
        // SAFETY: it exists, and after this no thread knows it.
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

/// The shard of an address, if it is of this library.
fn owner(at: *const u8) -> Option<(&'static Shard, &'static Heap, *mut Segment)> {
    let segment = segment::of(at);
    // SAFETY: a registered segment exists, and so do its shard and class: what holds an allocation holds its class.
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
                // SAFETY: no thread holds this class, so that none of its objects is used any more.
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
