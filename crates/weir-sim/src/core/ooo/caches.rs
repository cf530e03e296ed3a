//! L1 and L2 of a core that receives lines one by one: from the L2 prefetcher into L2 only, otherwise into
//! both.

use super::tags::Tags;
use crate::params::PrivateConfig;

/// The tags of both.
#[derive(Clone)]
pub struct Caches {
    l1: Tags,
    l2: Tags,
}

/// A modified line that L2 evicted.
pub type Victim = Option<u64>;

impl Caches {
    /// Empty caches for lines below `end`.
    pub fn new(config: PrivateConfig, end: u64) -> Self {
        Self {
            l1: Tags::new(config.l1, end),
            l2: Tags::new(config.l2, end),
        }
    }

    /// Looks up a line in L1 and makes it most recent. A write marks it modified.
    #[inline(always)]
    pub fn find_l1(&mut self, line: u64, write: bool) -> bool {
        self.l1.touch(line, write)
    }

    /// The same in L2, for a core that takes it.
    #[inline(always)]
    pub fn find_l2(&mut self, line: u64) -> bool {
        self.l2.touch(line, false)
    }

    /// Whether L1 has a line.
    #[inline(always)]
    pub fn has_l1(&self, line: u64) -> bool {
        self.l1.has(line)
    }

    /// Whether L2 has it.
    #[inline(always)]
    pub fn has_l2(&self, line: u64) -> bool {
        self.l2.has(line)
    }

    /// Whether one of them has it.
    pub fn has(&self, line: u64) -> bool {
        self.l1.has(line) || self.l2.has(line)
    }

    /// Brings a line into L1, which may be known not to have it. A modified line that is evicted goes back into L2,
    /// whether L2 still has it or not.
    #[inline(always)]
    pub fn fill_l1(&mut self, line: u64, write: bool, absent: bool) -> Victim {
        let victim = self.l1.insert(line, write, absent)?;
        self.put_back(victim)
    }

    /// L1 evicted a modified line.
    #[inline(never)]
    fn put_back(&mut self, line: u64) -> Victim {
        self.l2.insert(line, true, false)
    }

    /// Brings a line into L1, which does not have it, if no modified line leaves. Returns whether it did.
    #[inline(always)]
    pub fn fill_clean_l1(&mut self, line: u64, write: bool) -> bool {
        self.l1.insert_over_clean(line, write)
    }

    /// The same for L2.
    #[inline(always)]
    pub fn fill_clean_l2(&mut self, line: u64) -> bool {
        self.l2.insert_over_clean(line, false)
    }

    /// Brings a line into L2, which does not have it.
    #[inline(always)]
    pub fn fill_l2(&mut self, line: u64) -> Victim {
        self.l2.insert(line, false, true)
    }
}
