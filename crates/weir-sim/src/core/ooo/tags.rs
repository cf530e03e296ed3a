//! The tags of one cache, each set in one line of the processor's cache.
//!
//! A set has at most 16 tags of 24 bits; it is searched by comparing eight bits of all of them at once. Tags stay in their
//! ways, and a number has the order of their last uses.
//! The number of sets is a power of two. Other caches are kept as lists.

use super::super::private;
use super::alike::{alike, first};

/// The most ways, the bits of a tag, and the tag of no line.
const WAYS: usize = 16;
const TAG_BITS: u32 = 24;
const NO_TAG: u32 = (1 << TAG_BITS) - 1;

/// One level.
#[derive(Clone)]
pub struct Tags {
    set_bits: u32,
    set_mask: u64,
    /// Where in the order of a set's ways the last of them is.
    last: u32,
    /// The sets; none if the lines are kept as lists, so that a look-up decides by one comparison.
    sets: Vec<Set>,
    lists: private::Tags,
}

impl Tags {
    /// Empty tags for lines below `end`.
    pub fn new((lines, ways): (u64, u32), end: u64) -> Self {
        let sets = (lines / u64::from(ways.max(1))).max(1);
        let fits = ways as usize <= WAYS && end / sets < u64::from(NO_TAG);
        let packs = fits && sets.is_power_of_two();
        Self {
            set_bits: sets.ilog2(),
            set_mask: sets - 1,
            last: 4 * (ways.max(1) - 1) % 64,
            sets: vec![Set::EMPTY; if packs { sets as usize } else { 0 }],
            lists: private::Tags::new(if packs { (0, 0) } else { (lines, ways) }),
        }
    }

    /// The set of a line, and its tag there.
    #[inline(always)]
    fn place(&self, line: u64) -> (usize, u32) {
        let (above, set) = (line >> self.set_bits, line & self.set_mask);
        debug_assert!(
            self.sets.is_empty() || above < u64::from(NO_TAG),
            "line {line} has no tag"
        );
        (set as usize, above as u32)
    }

    /// Looks up a line and makes it most recent. A write marks it modified.
    #[inline(always)]
    pub fn touch(&mut self, line: u64, write: bool) -> bool {
        let (set, tag) = self.place(line);
        match self.sets.get_mut(set) {
            Some(set) => set.touch(tag, write),
            None => self.lists.touch(line, write),
        }
    }

    /// Whether a line is there.
    #[inline(always)]
    pub fn has(&self, line: u64) -> bool {
        let (set, tag) = self.place(line);
        match self.sets.get(set) {
            Some(set) => set.find(tag).is_some(),
            None => self.lists.has(line),
        }
    }

    /// Inserts a line that is not there, if the line that is evicted is not modified; else, or if the lines are kept as
    /// lists, does nothing. Returns whether it did.
    #[inline(always)]
    pub fn insert_over_clean(&mut self, line: u64, write: bool) -> bool {
        debug_assert!(!self.has(line), "line {line} is there");
        let (at, tag) = self.place(line);
        let last = self.last;
        match self.sets.get_mut(at) {
            Some(set) => set.replace_clean(tag, write, last),
            None => false,
        }
    }

    /// Inserts a line; returns the line that is evicted, if it is modified. A line that is `absent` for certain is not
    /// looked up before.
    #[inline(always)]
    pub fn insert(&mut self, line: u64, write: bool, absent: bool) -> Option<u64> {
        debug_assert!(!absent || !self.has(line), "line {line} is there");
        let (at, tag) = self.place(line);
        let Some(set) = self.sets.get_mut(at) else {
            return self.insert_in_list(line, write);
        };
        if !absent && set.touch(tag, write) {
            return None;
        }
        let old = set.replace(tag, write, self.last)?;
        Some(u64::from(old) << self.set_bits | at as u64)
    }

    #[cold]
    #[inline(never)]
    fn insert_in_list(&mut self, line: u64, write: bool) -> Option<u64> {
        let (line, dirty) = self.lists.insert(line, write)?;
        dirty.then_some(line)
    }
}

/// The tags of a set; a way that has no line has [`NO_TAG`].
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Set {
    /// The lowest eight bits of each.
    low: [u8; WAYS],
    /// The other bits of each.
    high: [u16; WAYS],
    /// The ways from the most recent on, four bits each. Those beyond the ways in use have no meaning.
    order: u64,
    /// Which lines are modified, one bit each.
    dirty: u16,
}

impl Set {
    const EMPTY: Self = Self {
        low: [NO_TAG as u8; WAYS],
        high: [(NO_TAG >> 8) as u16; WAYS],
        order: 0xfedc_ba98_7654_3210,
        dirty: 0,
    };

    /// The way of a tag.
    #[inline(always)]
    fn find(&self, tag: u32) -> Option<usize> {
        let mut found = alike(&self.low, tag as u8);
        while found != 0 {
            let way = first(found) % WAYS;
            if self.high[way] == (tag >> 8) as u16 && self.low[way] == tag as u8 {
                return Some(way);
            }
            found &= found - 1;
        }
        None
    }

    /// Makes a tag the most recent, if it is there.
    #[inline(always)]
    fn touch(&mut self, tag: u32, write: bool) -> bool {
        let Some(way) = self.find(tag) else {
            return false;
        };
        self.dirty |= u16::from(write) << way;
        let way = way as u64;
        if self.order % WAYS as u64 != way {
            self.order = to_front(self.order, way);
        }
        true
    }

    /// Puts a tag into the way that is at `last` in the order, if its line is not modified. Returns whether it did.
    #[inline(always)]
    fn replace_clean(&mut self, tag: u32, write: bool, last: u32) -> bool {
        let last = self.order >> last & (WAYS as u64 - 1);
        let way = last as usize % WAYS;
        if self.dirty >> way & 1 != 0 {
            return false;
        }
        self.order = self.order << 4 | last;
        (self.low[way], self.high[way]) = (tag as u8, (tag >> 8) as u16);
        if write {
            self.dirty |= 1 << way;
        }
        true
    }

    /// Puts a tag into the way that is at `last` in the order. Returns the tag that leaves, if its line is modified.
    #[inline(always)]
    fn replace(&mut self, tag: u32, write: bool, last: u32) -> Option<u32> {
        let last = self.order >> last & (WAYS as u64 - 1);
        self.order = self.order << 4 | last;
        let (way, bit) = (last as usize % WAYS, 1_u32 << last);
        let new = (tag as u8, (tag >> 8) as u16);
        let old = (u32::from(self.dirty) & bit != 0).then(|| {
            self.dirty ^= bit as u16;
            u32::from(self.high[way]) << 8 | u32::from(self.low[way])
        });
        (self.low[way], self.high[way]) = new;
        if write {
            self.dirty |= bit as u16;
        }
        old
    }
}

/// An order of ways in which one of them is the first.
#[inline(always)]
fn to_front(order: u64, way: u64) -> u64 {
    /// The lowest bit of each four.
    const ONES: u64 = u64::MAX / 15;
    let other = order ^ (way * ONES);
    // The lowest bit of these is the highest of the first four bits that are the way; it may have others above.
    let found = other.wrapping_sub(ONES) & !other & (ONES << 3);
    let found = found & found.wrapping_neg();
    let (before, upto) = ((found >> 3).wrapping_sub(1), (found << 1).wrapping_sub(1));
    order & !upto | (order & before) << 4 | way
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packed_sets_do_as_lists_do(
            ways in 1u32..20,
            sets in prop_oneof![Just(1u64), Just(3), Just(4)],
            spread in prop_oneof![Just(1u64), Just(1021), Just(1 << 13)],
            uses in prop::collection::vec((0u64..300, any::<bool>(), any::<bool>()), 1..800),
        ) {
            let config = (sets * u64::from(ways), ways);
            let mut tags = Tags::new(config, 300 << 13);
            let mut list = private::Tags::new(config);
            let packs = ways as usize <= WAYS && sets != 3 && (300 << 13) / sets < 1 << TAG_BITS;
            prop_assert_eq!(!tags.sets.is_empty(), packs);
            for (line, write, inserts) in uses {
                let line = line * spread;
                prop_assert_eq!(tags.has(line), list.has(line));
                match inserts {
                    true => {
                        let absent = write && !tags.has(line);
                        if absent && line % 2 == 0 && tags.insert_over_clean(line, write) {
                            let clean = list.insert(line, write).is_none_or(|(_, dirty)| !dirty);
                            prop_assert!(clean);
                            continue;
                        }
                        let out = list.insert(line, write).filter(|&(_, dirty)| dirty);
                        prop_assert_eq!(tags.insert(line, write, absent), out.map(|(line, _)| line));
                    }
                    false => prop_assert_eq!(tags.touch(line, write), list.touch(line, write)),
                }
            }
        }
    }
}
