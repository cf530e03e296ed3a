//! The tags of one cache, each set in one line of the processor's cache.
//!
//! A set has at most 16 tags of 24 bits, the most recent first; it is searched by comparing all of them at once.
//! The number of sets is a power of two. Other caches are kept as lists.

use super::super::private;

/// The most ways, and the bits of a tag. A tag is never zero.
const WAYS: usize = 16;
const TAG_BITS: u32 = 24;
/// Marks the tag of a modified line.
const DIRTY: u32 = 1 << 31;

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
                all: vec![Set([0; WAYS]); sets as usize],
            }),
            false => Tags::Listed(private::Tags::new((lines, ways))),
        }
    }

    /// Looks up a line and makes it most recent. A write marks it modified.
    #[inline]
    pub fn touch(&mut self, line: u64, write: bool) -> bool {
        match self {
            Tags::Packed(tags) => tags.touch(line, write),
            Tags::Listed(tags) => tags.touch(line, write),
        }
    }

    /// Whether a line is there.
    #[inline]
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
struct Set([u32; WAYS]);

impl Set {
    /// Whether a tag is there. The compiler makes one comparison of it.
    #[inline(always)]
    fn has(&self, tag: u32) -> bool {
        (self.0.iter()).fold(false, |found, &other| found | (other & !DIRTY == tag))
    }

    /// Makes a tag the most recent, if it is there.
    #[inline(always)]
    fn touch(&mut self, tag: u32, write: bool) -> bool {
        if !self.has(tag) {
            return false;
        }
        let mut moved = self.0[0];
        for place in 1..WAYS {
            if moved & !DIRTY == tag {
                break;
            }
            moved = std::mem::replace(&mut self.0[place], moved);
        }
        self.0[0] = moved | if write { DIRTY } else { 0 };
        true
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
        self.all[set].has(tag)
    }

    #[inline(always)]
    fn insert(&mut self, line: u64, write: bool) -> Option<(u64, bool)> {
        let (at, tag) = self.place(line);
        let set = &mut self.all[at];
        if set.touch(tag, write) {
            return None;
        }
        let old = set.0[(self.ways - 1) % WAYS];
        set.0.copy_within(..WAYS - 1, 1);
        set.0[0] = tag | if write { DIRTY } else { 0 };
        if self.ways < WAYS {
            set.0[self.ways] = 0;
        }
        let line = || u64::from((old & !DIRTY) - 1) << self.set_bits | at as u64;
        (old != 0).then(|| (line(), old & DIRTY != 0))
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
