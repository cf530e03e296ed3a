//! The tags of one cache, each set in one line of the processor's cache.
//!
//! A set has at most 16 tags of 24 bits, the most recent first; it is searched by comparing eight bits of all of them at once.
//! The number of sets is a power of two. Other caches are kept as lists.

use super::super::private;
use super::alike::{alike, first};

/// The most ways, and the bits of a tag. A tag is never zero.
const WAYS: usize = 16;
const TAG_BITS: u32 = 24;

/// One level.
#[derive(Clone)]
pub enum Tags {
    Packed(Packed),
    Listed(private::Tags),
}

impl Tags {
    /// Empty tags for lines below `end`.
    pub fn new((lines, ways): (u64, u32), end: u64) -> Self {
        let sets = (lines / u64::from(ways.max(1))).max(1);
        let fits = ways as usize <= WAYS && end / sets + 1 < 1 << TAG_BITS;
        match fits && sets.is_power_of_two() {
            true => Tags::Packed(Packed {
                ways: ways.max(1) as usize,
                set_bits: sets.ilog2(),
                set_mask: sets - 1,
                all: vec![Set::EMPTY; sets as usize],
            }),
            false => Tags::Listed(private::Tags::new((lines, ways))),
        }
    }

    /// Looks up a line and makes it most recent. A write marks it modified.
    #[inline(always)]
    pub fn touch(&mut self, line: u64, write: bool) -> bool {
        match self {
            Tags::Packed(tags) => tags.touch(line, write),
            Tags::Listed(tags) => tags.touch(line, write),
        }
    }

    /// Whether a line is there.
    #[inline(always)]
    pub fn has(&self, line: u64) -> bool {
        match self {
            Tags::Packed(tags) => tags.has(line),
            Tags::Listed(tags) => tags.has(line),
        }
    }

    /// Inserts a line; returns the line that is evicted, and whether it is modified.
    #[inline]
    pub fn insert(&mut self, line: u64, write: bool) -> Option<(u64, bool)> {
        match self {
            Tags::Packed(tags) => tags.insert(line, write),
            Tags::Listed(tags) => tags.insert(line, write),
        }
    }
}

/// The tags of a set, the most recent first; the rest is zero.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Set {
    /// The lowest eight bits of each.
    low: [u8; WAYS],
    /// The other bits of each.
    high: [u16; WAYS],
    /// Which lines are modified, one bit each.
    dirty: u16,
}

impl Set {
    const EMPTY: Self = Self {
        low: [0; WAYS],
        high: [0; WAYS],
        dirty: 0,
    };

    /// Where a tag is.
    #[inline(always)]
    fn find(&self, tag: u32) -> Option<usize> {
        let mut found = alike(&self.low, tag as u8);
        while found != 0 {
            let place = first(found) % WAYS;
            if self.high[place] == (tag >> 8) as u16 {
                return Some(place);
            }
            found &= found - 1;
        }
        None
    }

    /// Makes a tag the most recent, if it is there.
    #[inline(always)]
    fn touch(&mut self, tag: u32, write: bool) -> bool {
        let Some(place) = self.find(tag) else {
            return false;
        };
        if place > 0 {
            for later in (1..=place).rev() {
                self.low[later] = self.low[later - 1];
                self.high[later] = self.high[later - 1];
            }
            self.low[0] = tag as u8;
            self.high[0] = (tag >> 8) as u16;
            let (from, dirty) = (!1 << place, u32::from(self.dirty));
            let moved = dirty & from | dirty << 1 & !from | dirty >> place & 1;
            self.dirty = moved as u16;
        }
        self.dirty |= u16::from(write);
        true
    }

    /// The tag of the last of this many ways, and whether its line is modified.
    #[inline(always)]
    fn last(&self, ways: usize) -> (u32, bool) {
        let place = (ways - 1) % WAYS;
        let tag = u32::from(self.high[place]) << 8 | u32::from(self.low[place]);
        (tag, self.dirty >> place & 1 != 0)
    }

    /// Puts a tag before the others, of which the last of this many ways leaves.
    #[inline(always)]
    fn add(&mut self, tag: u32, write: bool, ways: usize) {
        self.low.copy_within(..WAYS - 1, 1);
        self.high.copy_within(..WAYS - 1, 1);
        (self.low[0], self.high[0]) = (tag as u8, (tag >> 8) as u16);
        self.dirty = self.dirty << 1 | u16::from(write);
        if ways < WAYS {
            (self.low[ways], self.high[ways]) = (0, 0);
        }
    }
}

/// Sets of at most [`WAYS`] ways.
#[derive(Clone)]
pub struct Packed {
    ways: usize,
    set_bits: u32,
    set_mask: u64,
    all: Vec<Set>,
}

impl Packed {
    /// The set of a line, and its tag there.
    #[inline(always)]
    fn place(&self, line: u64) -> (usize, u32) {
        let (above, set) = (line >> self.set_bits, line & self.set_mask);
        debug_assert!(above + 1 < 1 << TAG_BITS, "line {line} has no tag");
        (set as usize, above as u32 + 1)
    }

    #[inline(always)]
    fn touch(&mut self, line: u64, write: bool) -> bool {
        let (set, tag) = self.place(line);
        self.all[set].touch(tag, write)
    }

    #[inline(always)]
    fn has(&self, line: u64) -> bool {
        let (set, tag) = self.place(line);
        self.all[set].find(tag).is_some()
    }

    #[inline(always)]
    fn insert(&mut self, line: u64, write: bool) -> Option<(u64, bool)> {
        let (at, tag) = self.place(line);
        let set = &mut self.all[at];
        if set.touch(tag, write) {
            return None;
        }
        let (old, dirty) = set.last(self.ways);
        set.add(tag, write, self.ways);
        let line = || u64::from(old - 1) << self.set_bits | at as u64;
        (old != 0).then(|| (line(), dirty))
    }
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
            prop_assert_eq!(matches!(tags, Tags::Packed(_)), packs);
            for (line, write, inserts) in uses {
                let line = line * spread;
                prop_assert_eq!(tags.has(line), list.has(line));
                match inserts {
                    true => prop_assert_eq!(tags.insert(line, write), list.insert(line, write)),
                    false => prop_assert_eq!(tags.touch(line, write), list.touch(line, write)),
                }
            }
        }
    }
}
