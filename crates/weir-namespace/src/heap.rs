//! An allocator in a namespace, as malloc(3), by offsets: every process and host may map the namespace elsewhere.
//!
//! The namespace has a word for each chunk of 16 KiB: free, a slab of objects of one size, or a part of a run of chunks.
//! A slab begins with a bit for each object. An allocation is one compare-and-swap of a word of bits, so that a process
//! which is killed leaves an object that is allocated or free, and no list that is broken. What it had allocated and not
//! yet linked to anything is found by [`Heap::sweep`]. Processes of hosts without hardware coherence must not allocate
//! from one heap at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{NamespaceError, Result};
use crate::mapping::Mapping;
use crate::namespace::Namespace;

const MAGIC: u64 = u64::from_le_bytes(*b"WEIRHEA1");
const CHUNK: usize = 16 << 10;
/// Bits of a slab: one for each 16 bytes.
const BITS: usize = CHUNK / 16 / 8;
/// Sizes of objects in slabs, multiples of 16.
const SIZES: [usize; 15] = [
    16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2032, 4064,
];
/// Words that the program may use to find its data again.
pub const ROOTS: usize = 8;
const CHUNKS_AT: usize = 128;

const SLAB: u64 = 1 << 56;
const RUN: u64 = 2 << 56;
const PART: u64 = 3 << 56;
const KIND: u64 = 0xff << 56;

/// A heap in a namespace that is open to be written.
pub struct Heap<'a> {
    map: &'a Mapping,
    skip: usize,
    chunks: usize,
    /// Where its chunks begin.
    data: usize,
    /// The chunk in which an object of a size was found last.
    last: [AtomicUsize; SIZES.len()],
}

/// What a heap has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeapStats {
    /// Objects that are allocated.
    pub objects: u64,
    /// Their bytes, rounded up to the sizes that the heap has.
    pub bytes: u64,
    /// Chunks of 16 KiB that nothing is in.
    pub free_chunks: u64,
    /// All chunks.
    pub chunks: u64,
}

fn wrong<T>(why: impl Into<String>) -> Result<T> {
    Err(NamespaceError::Heap(why.into()))
}

impl<'a> Heap<'a> {
    /// Makes a heap in a namespace whose bytes are zero, as those of a new one are.
    ///
    /// # Errors
    /// The namespace is too small, not zero, or open to be read only.
    pub fn make(namespace: &'a Namespace) -> Result<Self> {
        let heap = Self::over(namespace)?;
        if (0..heap.data).step_by(8).any(|at| heap.load(at) != 0) {
            return wrong(
                "the namespace is not zero at its beginning: it has a heap, or other data",
            );
        }
        heap.map.publish(heap.skip + 8, namespace.bytes());
        heap.map.publish(heap.skip, MAGIC);
        Ok(heap)
    }

    /// Opens the heap of a namespace.
    ///
    /// # Errors
    /// There is none, or the namespace is open to be read only.
    pub fn open(namespace: &'a Namespace) -> Result<Self> {
        let heap = Self::over(namespace)?;
        if heap.load(0) != MAGIC {
            return wrong("the namespace has none");
        }
        let bytes = heap.load(8);
        if bytes > namespace.bytes() {
            let now = namespace.bytes();
            return wrong(format!("it has {bytes} bytes, and the namespace {now}"));
        }
        Self::sized(namespace, bytes as usize)
    }

    fn over(namespace: &'a Namespace) -> Result<Self> {
        Self::sized(namespace, namespace.bytes() as usize)
    }

    fn sized(namespace: &'a Namespace, bytes: usize) -> Result<Self> {
        if !namespace.is_writable() {
            return Err(NamespaceError::ReadOnly(namespace.name().to_owned()));
        }
        let (map, skip) = namespace.words();
        let chunks = bytes.saturating_sub(CHUNKS_AT + 64) / (CHUNK + 8);
        if chunks == 0 || bytes > map.bytes() - skip {
            return wrong(format!("{bytes} bytes have no room for a chunk of {CHUNK}"));
        }
        Ok(Self {
            map,
            skip,
            chunks,
            data: (CHUNKS_AT + 8 * chunks).next_multiple_of(64),
            last: Default::default(),
        })
    }

    fn load(&self, at: usize) -> u64 {
        self.map.load(self.skip + at)
    }

    fn store(&self, at: usize, value: u64) {
        self.map.publish(self.skip + at, value);
    }

    fn swap(&self, at: usize, from: u64, to: u64) -> bool {
        let word = self.map.word(self.skip + at);
        let done = word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if done.is_ok() {
            self.map.flush(self.skip + at, 8);
        }
        done.is_ok()
    }

    fn chunk_word(chunk: usize) -> usize {
        CHUNKS_AT + 8 * chunk
    }

    fn chunk_at(&self, chunk: usize) -> usize {
        self.data + CHUNK * chunk
    }

    /// Allocates this many bytes, at a multiple of 16, with any content. The result is an offset in the namespace.
    ///
    /// # Errors
    /// It has no room.
    pub fn allocate(&self, bytes: usize) -> Result<u64> {
        match SIZES.iter().position(|size| *size >= bytes) {
            Some(class) => self.allocate_object(class),
            None => self.allocate_run(bytes),
        }
    }

    fn allocate_object(&self, class: usize) -> Result<u64> {
        let from = self.last[class].load(Ordering::Relaxed);
        let in_turn = || (0..self.chunks).map(|n| (from + n) % self.chunks);
        let mine = SLAB | class as u64;
        let slabs = in_turn().filter(|chunk| self.load(Self::chunk_word(*chunk)) == mine);
        for chunk in slabs {
            if let Some(at) = self.take_bit(chunk, class) {
                return Ok(at);
            }
        }
        for chunk in in_turn() {
            // Another process may take the objects of a slab that was just made, which is then one more to look at.
            if self.swap(Self::chunk_word(chunk), 0, mine)
                && let Some(at) = self.take_bit(chunk, class)
            {
                return Ok(at);
            }
        }
        wrong(format!("it has no room for {} bytes", SIZES[class]))
    }

    fn take_bit(&self, chunk: usize, class: usize) -> Option<u64> {
        let objects = (CHUNK - BITS) / SIZES[class];
        let start = self.chunk_at(chunk);
        for word in 0..objects.div_ceil(64) {
            loop {
                let bits = self.load(start + 8 * word);
                let bit = bits.trailing_ones() as usize;
                let object = 64 * word + bit;
                if bit == 64 || object >= objects {
                    break;
                }
                if self.swap(start + 8 * word, bits, bits | 1 << bit) {
                    self.last[class].store(chunk, Ordering::Relaxed);
                    return Some((start + BITS + object * SIZES[class]) as u64);
                }
            }
        }
        None
    }

    fn allocate_run(&self, bytes: usize) -> Result<u64> {
        let count = bytes.div_ceil(CHUNK);
        let mut chunk = 0;
        while chunk + count <= self.chunks {
            // Where another one is in the way, all that was taken is given back.
            let taken =
                (chunk..chunk + count).take_while(|c| self.swap(Self::chunk_word(*c), 0, PART));
            let taken = taken.count();
            if taken == count {
                self.store(Self::chunk_word(chunk), RUN | count as u64);
                return Ok(self.chunk_at(chunk) as u64);
            }
            for given in chunk..chunk + taken {
                self.store(Self::chunk_word(given), 0);
            }
            chunk += taken + 1;
        }
        wrong(format!("it has no room for {bytes} bytes in one piece"))
    }

    /// The bytes that an allocation has room for.
    ///
    /// # Errors
    /// Nothing is allocated there.
    pub fn room(&self, offset: u64) -> Result<usize> {
        self.place(offset).map(|place| place.bytes)
    }

    /// Frees an allocation.
    ///
    /// # Errors
    /// Nothing is allocated there, as after a free.
    pub fn free(&self, offset: u64) -> Result<()> {
        let place = self.place(offset)?;
        let Some((word, bit)) = place.bit else {
            let head = Self::chunk_word(place.chunk);
            let count = place.bytes / CHUNK;
            if !self.swap(head, RUN | count as u64, PART) {
                return wrong(format!("nothing is allocated at {offset}"));
            }
            self.free_parts(place.chunk, count);
            return Ok(());
        };
        loop {
            let bits = self.load(word);
            if bits & bit == 0 {
                return wrong(format!("nothing is allocated at {offset}"));
            }
            if self.swap(word, bits, bits & !bit) {
                return Ok(());
            }
        }
    }

    fn free_parts(&self, chunk: usize, count: usize) {
        for chunk in (chunk..chunk + count).rev() {
            // The bits of a free chunk are zero.
            self.map.zero(self.skip + self.chunk_at(chunk), BITS);
            self.store(Self::chunk_word(chunk), 0);
        }
    }

    fn place(&self, offset: u64) -> Result<Place> {
        let none = || NamespaceError::Heap(format!("nothing is allocated at {offset}"));
        let at = usize::try_from(offset).map_err(|_| none())?;
        let within = at.checked_sub(self.data).ok_or_else(none)?;
        let (chunk, within) = (within / CHUNK, within % CHUNK);
        if chunk >= self.chunks {
            return Err(none());
        }
        let word = self.load(Self::chunk_word(chunk));
        let number = (word & !KIND) as usize;
        match word & KIND {
            RUN if within == 0 && number <= self.chunks - chunk => Ok(Place {
                chunk,
                bytes: number * CHUNK,
                bit: None,
            }),
            SLAB if number < SIZES.len() && within >= BITS => {
                let (size, from) = (SIZES[number], within - BITS);
                let object = from / size;
                let bits = self.chunk_at(chunk) + object / 64 * 8;
                let bit = 1 << (object % 64);
                if !from.is_multiple_of(size)
                    || object >= (CHUNK - BITS) / size
                    || self.load(bits) & bit == 0
                {
                    return Err(none());
                }
                Ok(Place {
                    chunk,
                    bytes: size,
                    bit: Some((bits, bit)),
                })
            }
            _ => Err(none()),
        }
    }

    /// One of the words that the program uses to find its data again; 0 at first.
    ///
    /// # Errors
    /// There is no such word.
    pub fn root(&self, nth: usize) -> Result<u64> {
        Self::check_root(nth)?;
        Ok(self.load(32 + 8 * nth))
    }

    /// Stores one of those words, in one store.
    ///
    /// # Errors
    /// There is no such word.
    pub fn set_root(&self, nth: usize, offset: u64) -> Result<()> {
        Self::check_root(nth)?;
        self.store(32 + 8 * nth, offset);
        Ok(())
    }

    fn check_root(nth: usize) -> Result<()> {
        match nth < ROOTS {
            true => Ok(()),
            false => wrong(format!("root {nth}: there are {ROOTS}")),
        }
    }

    /// Every allocation: its offset and its bytes.
    fn each(&self, visit: &mut dyn FnMut(u64, usize)) {
        for chunk in 0..self.chunks {
            let word = self.load(Self::chunk_word(chunk));
            let (number, start) = ((word & !KIND) as usize, self.chunk_at(chunk));
            match word & KIND {
                RUN => visit(start as u64, number * CHUNK),
                SLAB if number < SIZES.len() => {
                    for object in 0..(CHUNK - BITS) / SIZES[number] {
                        if self.load(start + object / 64 * 8) & 1 << (object % 64) != 0 {
                            let at = start + BITS + object * SIZES[number];
                            visit(at as u64, SIZES[number]);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// After a crash, while no other process uses the heap: frees every allocation for which `keep` says no, runs that
    /// were taken or freed in part, and slabs without objects. Returns how many allocations it freed.
    ///
    /// # Errors
    /// The heap contradicts itself.
    pub fn sweep(&self, keep: &mut dyn FnMut(u64) -> bool) -> Result<u64> {
        let mut lost = Vec::new();
        self.each(&mut |offset, _| {
            if !keep(offset) {
                lost.push(offset);
            }
        });
        for offset in &lost {
            self.free(*offset)?;
        }
        let mut chunk = 0;
        while chunk < self.chunks {
            let word = self.load(Self::chunk_word(chunk));
            let start = self.chunk_at(chunk);
            let empty = (0..BITS).step_by(8).all(|at| self.load(start + at) == 0);
            match word & KIND {
                RUN => chunk += (word & !KIND) as usize,
                PART => self.free_parts(chunk, 1),
                SLAB if empty => self.store(Self::chunk_word(chunk), 0),
                _ => {}
            }
            if word & KIND != RUN {
                chunk += 1;
            }
        }
        Ok(lost.len() as u64)
    }

    /// What it has.
    pub fn stats(&self) -> HeapStats {
        let mut stats = HeapStats {
            chunks: self.chunks as u64,
            ..HeapStats::default()
        };
        self.each(&mut |_, bytes| {
            stats.objects += 1;
            stats.bytes += bytes as u64;
        });
        let words = (0..self.chunks).map(Self::chunk_word);
        stats.free_chunks = words.filter(|at| self.load(*at) == 0).count() as u64;
        stats
    }
}

struct Place {
    chunk: usize,
    bytes: usize,
    /// The word with its bit, and the bit; `None` for a run.
    bit: Option<(usize, u64)>,
}
