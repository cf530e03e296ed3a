//! The private caches of a core: L1 and L2, least recently used.
//!
//! A thread whose working set is several times its L2 and which accesses it in a fixed order never hits: the
//! line that leaves is the one that entered one cache size ago. Tags are kept only for threads that can hit.

use crate::line::Level;
use crate::params::PrivateConfig;

/// How a thread's private caches are modelled.
pub enum Private {
    /// Without tags: every line is new. Dirty lines leave this many accesses later.
    Streaming {
        /// Lines of L2.
        delay: u64,
    },
    /// With tags: lines are kept and found.
    Tagged(Box<Tagged>),
}

impl Private {
    /// Whether lines are kept and found.
    pub fn is_tagged(&self) -> bool {
        matches!(self, Private::Tagged(_))
    }
}

/// L1 and L2 with tags.
pub struct Tagged {
    l1: Tags,
    l2: Tags,
}

impl Tagged {
    /// Empty caches.
    pub fn new(config: PrivateConfig) -> Self {
        Self {
            l1: Tags::new(config.l1),
            l2: Tags::new(config.l2),
        }
    }

    /// Looks up a line, and makes it most recent. A write marks it modified.
    #[inline(never)]
    pub fn find(&mut self, line: u64, write: bool) -> Option<Level> {
        if self.l1.touch(line, write) {
            return Some(Level::L1);
        }
        if self.l2.touch(line, write) {
            self.fill_l1(line, write);
            return Some(Level::L2);
        }
        None
    }

    /// Inserts a line; returns the line that L2 evicts, and whether it is modified.
    pub fn fill(&mut self, line: u64, write: bool) -> Option<(u64, bool)> {
        self.fill_l1(line, write);
        self.l2.insert(line, write)
    }

    fn fill_l1(&mut self, line: u64, write: bool) {
        if let Some((victim, true)) = self.l1.insert(line, write) {
            // A modified L1 line is written back into L2, which may have evicted it already; then it left
            // modified with the successor of the L2 copy, and is counted there.
            self.l2.touch(victim, true);
        }
    }
}

const DIRTY: u64 = 1 << 63;

/// One level: sets of ways, most recent first. An empty way is zero; keys are never zero.
#[derive(Clone)]
pub struct Tags {
    ways: usize,
    sets: u64,
    keys: Vec<u64>,
}

impl Tags {
    /// Empty tags.
    pub fn new((lines, ways): (u64, u32)) -> Self {
        let ways = ways.max(1) as usize;
        let sets = (lines / ways as u64).max(1);
        Self {
            ways,
            sets,
            keys: vec![0; sets as usize * ways],
        }
    }

    fn set(&mut self, line: u64) -> &mut [u64] {
        let set = (line % self.sets) as usize;
        &mut self.keys[set * self.ways..(set + 1) * self.ways]
    }

    /// Looks up a line and makes it most recent. A write marks it modified.
    #[inline(never)]
    pub fn touch(&mut self, line: u64, write: bool) -> bool {
        let set = self.set(line);
        let Some(way) = set.iter().position(|&k| k & !DIRTY == line + 1) else {
            return false;
        };
        set[..=way].rotate_right(1);
        if write {
            set[0] |= DIRTY;
        }
        true
    }

    /// Whether a line is there.
    #[inline(never)]
    pub fn has(&self, line: u64) -> bool {
        let set = (line % self.sets) as usize;
        let keys = &self.keys[set * self.ways..(set + 1) * self.ways];
        keys.iter().any(|&k| k & !DIRTY == line + 1)
    }

    /// Inserts a line; returns the line that is evicted, and whether it is modified.
    #[inline(never)]
    pub fn insert(&mut self, line: u64, write: bool) -> Option<(u64, bool)> {
        if self.touch(line, write) {
            return None;
        }
        let set = self.set(line);
        set.rotate_right(1);
        let old = std::mem::replace(&mut set[0], (line + 1) | if write { DIRTY } else { 0 });
        (old != 0).then(|| ((old & !DIRTY) - 1, old & DIRTY != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: PrivateConfig = PrivateConfig {
        l1: (64, 4),
        l2: (512, 8),
    };

    #[test]
    fn a_set_that_fits_is_found_and_one_that_does_not_is_never() {
        for (lines, expected) in [(64, Some(Level::L1)), (512, Some(Level::L2)), (576, None)] {
            let mut caches = Tagged::new(CONFIG);
            for _ in 0..3 {
                for line in 0..lines {
                    if caches.find(line, false).is_none() {
                        caches.fill(line, false);
                    }
                }
            }
            let found = caches.find(0, false);
            assert_eq!(found, expected, "{lines} lines");
        }
    }

    #[test]
    fn a_modified_line_leaves_modified_one_cache_size_later() {
        let mut caches = Tagged::new(CONFIG);
        for line in 0..2000u64 {
            let victim = caches.fill(line, true);
            match victim {
                None => assert!(line < 512),
                Some((v, dirty)) => {
                    assert!(dirty);
                    assert_eq!(v, line - 512);
                }
            }
        }
    }
}
