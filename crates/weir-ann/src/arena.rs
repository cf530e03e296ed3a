//! Memory of devices as arenas: vectors grow up from the start of each, lists of neighbours down from its end (CXL-ANNS,
//! section 4.2).
//!
//! Lists are in chunks of powers of two from 16 B to 1 KiB, which are split and merged as in Linux's buddy allocator. An
//! arena is full when the two ends would meet, for which the paper has no rule.

use std::collections::BTreeSet;

use crate::AnnError;

/// The smallest chunk.
pub const LEAST: u64 = 16;
/// The largest chunk, and what lists take from an arena at once.
pub const MOST: u64 = 1024;
/// Sizes of chunks.
const LEVELS: usize = 7;

/// Memory of one device. Addresses are bytes from its start.
#[derive(Debug, Clone)]
pub struct Arena {
    number: usize,
    vectors_end: u64,
    lists_begin: u64,
    free: [BTreeSet<u64>; LEVELS],
}

/// A chunk of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chunk {
    /// Where it begins.
    pub at: u64,
    /// How long it is.
    pub bytes: u64,
}

impl Arena {
    /// An empty arena of this many bytes, less what does not fill a largest chunk.
    pub fn new(number: usize, bytes: u64) -> Self {
        Self {
            number,
            vectors_end: 0,
            lists_begin: bytes - bytes % MOST,
            free: Default::default(),
        }
    }

    /// Room for a vector.
    ///
    /// # Errors
    /// There is none.
    pub fn vector(&mut self, bytes: u64) -> Result<u64, AnnError> {
        let at = self.vectors_end;
        if bytes > self.between() {
            return Err(self.full(bytes));
        }
        self.vectors_end += bytes;
        Ok(at)
    }

    /// Room for a list.
    ///
    /// # Errors
    /// There is none, or the list is longer than a chunk.
    pub fn list(&mut self, bytes: u64) -> Result<Chunk, AnnError> {
        if bytes > MOST {
            return Err(AnnError::Bounds(format!(
                "a list of {bytes} B is longer than the largest chunk, {MOST} B"
            )));
        }
        let wanted = level(bytes);
        let has = (wanted..LEVELS)
            .find(|&level| self.free.get(level).is_some_and(|free| !free.is_empty()));
        let (mut level, at) = match has {
            Some(level) => (
                level,
                self.free.get_mut(level).and_then(BTreeSet::pop_first),
            ),
            None if self.between() >= MOST => {
                self.lists_begin -= MOST;
                (LEVELS - 1, Some(self.lists_begin))
            }
            None => return Err(self.full(bytes)),
        };
        let at = at.unwrap_or(self.lists_begin);
        while level > wanted {
            level -= 1;
            self.give(level, at + (LEAST << level));
        }
        Ok(Chunk {
            at,
            bytes: LEAST << wanted,
        })
    }

    /// Gives a list's chunk back, and merges it with its buddies. What is free at the lower end of the lists becomes room
    /// for vectors again.
    pub fn free_list(&mut self, chunk: Chunk) {
        let (mut at, mut now) = (chunk.at, level(chunk.bytes));
        while now + 1 < LEVELS
            && self
                .free
                .get_mut(now)
                .is_some_and(|free| free.remove(&(at ^ (LEAST << now))))
        {
            at &= !(LEAST << now);
            now += 1;
        }
        self.give(now, at);
        while let Some(top) = self.free.last_mut()
            && top.remove(&self.lists_begin)
        {
            self.lists_begin += MOST;
        }
    }

    /// Bytes between vectors and lists.
    pub fn between(&self) -> u64 {
        self.lists_begin - self.vectors_end
    }

    fn give(&mut self, level: usize, at: u64) {
        if let Some(free) = self.free.get_mut(level) {
            free.insert(at);
        }
    }

    fn full(&self, wanted: u64) -> AnnError {
        AnnError::Full {
            arena: self.number,
            wanted,
            free: self.between(),
        }
    }
}

/// The smallest level whose chunks take this many bytes.
fn level(bytes: u64) -> usize {
    bytes.div_ceil(LEAST).max(1).next_power_of_two().ilog2() as usize
}

/// Where each list is: lists in the order of their nodes' hops are dealt to arenas in turn, so that each device has as many
/// lists of each hop as any other, or one more.
///
/// # Errors
/// An arena is full, or there is none.
pub fn deal(arenas: &mut [Arena], lists: &[u64]) -> Result<Vec<(usize, Chunk)>, AnnError> {
    let count = arenas.len().max(1);
    let place = |(turn, bytes): (usize, &u64)| {
        let to = turn % count;
        let arena = arenas.get_mut(to);
        let arena = arena.ok_or_else(|| AnnError::Bounds("there is no arena".into()))?;
        Ok((to, arena.list(*bytes)?))
    };
    lists.iter().enumerate().map(place).collect()
}
