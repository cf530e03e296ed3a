//! Which accesses leave the first-level cache: tags of 32 KiB in 8 ways, as in most x86-64 cores before 2019.
//!
//! A described program counts accesses to its regions without those that never leave L1. Larger L1 caches of later
//! cores change little: what 48 KiB hold and 32 KiB do not is in L2 of all of them.

/// Lines of the cache.
pub const LINES: u64 = 512;
const WAYS: usize = 8;
const SETS: usize = LINES as usize / WAYS;
/// No line: addresses have 58 bits above those within a line.
const NONE: u64 = u64::MAX;
/// Set in a tag whose line was stored to.
const DIRTY: u64 = 1 << 63;

/// Tags in the order of use, the latest first.
#[derive(Debug)]
pub struct L1 {
    sets: Box<[[u64; WAYS]; SETS]>,
}

/// What an access did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Its line was there.
    Hit,
    /// It was not; the line that was stored to and had to leave for it, if there was one.
    Miss {
        /// That line.
        written: Option<u64>,
    },
}

impl L1 {
    pub fn new() -> Self {
        Self {
            sets: Box::new([[NONE; WAYS]; SETS]),
        }
    }

    /// Accesses a line.
    #[inline]
    pub fn access(&mut self, line: u64, store: bool) -> Found {
        let set = &mut self.sets[(line % SETS as u64) as usize];
        let dirty = if store { DIRTY } else { 0 };
        if set[0] & !DIRTY == line {
            set[0] |= dirty;
            return Found::Hit;
        }
        for way in 1..WAYS {
            if set[way] & !DIRTY == line {
                let tag = set[way] | dirty;
                set.copy_within(..way, 1);
                set[0] = tag;
                return Found::Hit;
            }
        }
        let last = set[WAYS - 1];
        set.copy_within(..WAYS - 1, 1);
        set[0] = line | dirty;
        let written = (last != NONE && last & DIRTY != 0).then_some(last & !DIRTY);
        Found::Miss { written }
    }

    /// The lines that were stored to and are still there.
    pub fn written(&self) -> impl Iterator<Item = u64> {
        let tags = self.sets.iter().flatten().copied();
        tags.filter(|&tag| tag != NONE && tag & DIRTY != 0)
            .map(|tag| tag & !DIRTY)
    }
}
