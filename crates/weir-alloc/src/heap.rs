//! The memory of a class: shards with a lock each, so that threads rarely wait for each other.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::node::Place;
use crate::segment::{self, MEDIUM, Object, Owner, PAGE, Segment};
use crate::shard::{Shard, Supply, bin_for};
use crate::source::{Refused, Source};

const SHARDS: usize = 8;

/// A class of objects.
pub struct Heap {
    source: Source,
    parts: [Part; SHARDS],
}

/// A shard with the class that it is of: what segments belong to.
struct Part {
    shard: Shard,
    heap: AtomicPtr<Heap>,
}

impl Part {
    const fn new() -> Self {
        Self {
            shard: Shard::new(),
            heap: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// As segments keep it.
    const fn as_owner(&self) -> *const Owner {
        ptr::from_ref(self).cast()
    }
}

/// What a class has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Bytes that it has mapped.
    pub mapped: usize,
    /// Bytes of its objects, each with what it may use.
    pub used: usize,
    /// Its objects.
    pub objects: usize,
}

impl Heap {
    pub fn new(name: &str, place: Place, limit: Option<usize>) -> Arc<Self> {
        let heap = Arc::new(Self {
            source: Source::new(name, place, limit),
            parts: [const { Part::new() }; SHARDS],
        });
        let at = Arc::as_ptr(&heap).cast_mut();
        for part in &heap.parts {
            part.heap.store(at, Ordering::Release);
            // SAFETY: it does not move in its `Arc`, and leaves the list when that is dropped.
            unsafe { part.shard.lock.add() };
        }
        heap
    }

    pub fn name(&self) -> &str {
        &self.source.name
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
        let part = &self.parts[shard];
        let supply = Supply {
            source: &self.source,
            owner: part.as_owner(),
        };
        let at = part.shard.with(|inner| {
            // SAFETY: runs and segments in the lists of a shard exist until it removes them, under its lock.
            unsafe {
                match (bin_for(bytes, align), bytes) {
                    (Some(bin), _) => inner.small(supply, bin),
                    (None, ..=MEDIUM) => inner.medium(supply, bytes, align),
                    _ => inner.large(supply, bytes),
                }
            }
        })?;
        ptr::NonNull::new(at).ok_or(Refused::Kernel(0))
    }

    pub fn stats(&self) -> Stats {
        let mut all = Stats {
            mapped: self.source.mapped(),
            ..Stats::default()
        };
        for part in &self.parts {
            let (used, count) = part.shard.with(|inner| (inner.used, inner.count));
            all.used += used;
            all.objects += count;
        }
        all
    }

    /// Gives segments without objects back.
    pub fn trim(&self) {
        for part in &self.parts {
            // SAFETY: as in `alloc_in`.
            part.shard.with(|inner| unsafe { inner.trim(&self.source) });
        }
    }
}

/// The shard of an address, if it is of this library.
fn owner(at: *const u8) -> Option<(&'static Shard, &'static Heap, *mut Segment)> {
    let segment = segment::of(at);
    // SAFETY: a registered segment exists, and so do its part and class: what holds an allocation holds its class. Its owner is
    // a part, since segments are mapped in `alloc_in` alone.
    unsafe {
        let part = segment.as_ref()?.owner.cast::<Part>().as_ref()?;
        let heap = part.heap.load(Ordering::Acquire).as_ref()?;
        Some((&part.shard, heap, segment))
    }
}

/// Frees an allocation of any class; `false` where there is none at this address.
///
/// # Safety
/// The caller uses it no more.
pub unsafe fn free(at: *const u8) -> bool {
    // SAFETY: the segment is this shard's.
    owner(at).is_some_and(|(shard, heap, segment)| {
        shard.with(|inner| unsafe { inner.free(&heap.source, segment, at) })
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
        for part in &self.parts {
            part.shard.lock.remove();
            let lists = part
                .shard
                .with(|inner| [inner.open.head, inner.full.head, inner.large.head]);
            for mut at in lists {
                // SAFETY: no thread holds this class, so that none of its objects is used any more.
                while let Some(segment) = unsafe { at.as_mut() } {
                    let next = segment.next;
                    // SAFETY: as above; the lists go with the shard.
                    unsafe { self.source.unmap(at) };
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
