//! The tags of one cache, each set in one line of the processor's cache.
//!
//! A set has a byte of each tag, compared eight at a time, the rest of the tags, and its order in nibbles. This
//! takes at most 16 ways, a power of two of sets, and tags of 24 bits; other caches are kept as lists.

use super::super::private;

/// The most ways, and the bits of a tag. A tag is never zero.
const WAYS: usize = 16;
const TAG_BITS: u32 = 24;
/// One in every byte.
const BYTES: u64 = 0x0101_0101_0101_0101;
/// One in every nibble, and the highest bit of every nibble.
const NIBBLES: u64 = 0x1111_1111_1111_1111;
const NIBBLE_TOPS: u64 = NIBBLES << 3;

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
                oldest: 4 * (ways.max(1) - 1),
                set_bits: sets.ilog2(),
                set_mask: sets - 1,
                all: vec![Set::EMPTY; sets as usize],
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

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Set {
    /// The low byte of each way's tag; zero tags are empty ways.
    low: [u8; WAYS],
    high: [u16; WAYS],
    /// The ways, the most recent in the lowest nibble.
    order: u64,
    /// One bit for each way.
    dirty: u16,
}

impl Set {
    const EMPTY: Self = Self {
        low: [0; WAYS],
        high: [0; WAYS],
        order: 0xfedc_ba98_7654_3210,
        dirty: 0,
    };

    #[inline(always)]
    fn find(&self, tag: u32) -> Option<usize> {
        let pattern = BYTES * u64::from(tag & 0xff);
        let low = u128::from_le_bytes(self.low);
        let alike = |ways: u64| {
            let differs = ways ^ pattern;
            differs.wrapping_sub(BYTES) & !differs & (BYTES << 7)
        };
        // One bit for each way that may be it, the lowest of a byte for the first eight, the highest for the others.
        let mut alike = alike(low as u64) >> 7 | alike((low >> 64) as u64);
        while alike != 0 {
            let bit = alike.trailing_zeros() as usize;
            let way = (bit / 8 | bit % 2 * 8) % WAYS;
            if self.high[way] == (tag >> 8) as u16 && self.low[way] == tag as u8 {
                return Some(way);
            }
            alike &= alike - 1;
        }
        None
    }

    /// Makes a way the most recent.
    #[inline(always)]
    fn renew(&mut self, way: usize) {
        let differs = self.order ^ (NIBBLES * way as u64);
        let found = differs.wrapping_sub(NIBBLES) & !differs & NIBBLE_TOPS;
        let through = found ^ found.wrapping_sub(1);
        let newer = (self.order & (through >> 4)) << 4;
        self.order = (self.order & !through) | newer | way as u64;
    }

    /// Replaces the least recent way, whose place in the order begins at the bit `oldest`, and makes it the most
    /// recent. Returns the old tag, and whether its line is modified.
    #[inline(always)]
    fn replace(&mut self, oldest: u32, tag: u32, write: bool) -> (u32, bool) {
        let way = (self.order >> oldest & 0xf) as usize;
        let used = u64::MAX >> (60 - oldest);
        self.order = (self.order & !used) | (self.order << 4 & used) | way as u64;
        let old = u32::from(self.high[way]) << 8 | u32::from(self.low[way]);
        (self.low[way], self.high[way]) = (tag as u8, (tag >> 8) as u16);
        let was_dirty = self.dirty >> way & 1 != 0;
        self.dirty = (self.dirty & !(1 << way)) | (u16::from(write) << way);
        (old, was_dirty)
    }
}

/// Sets of at most [`WAYS`] ways.
#[derive(Clone)]
pub struct Packed {
    /// The bit at which the least recent way is in the order of a set.
    oldest: u32,
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
        let set = &mut self.all[set];
        let Some(way) = set.find(tag) else {
            return false;
        };
        set.renew(way);
        set.dirty |= u16::from(write) << way;
        true
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
        if let Some(way) = set.find(tag) {
            set.renew(way);
            set.dirty |= u16::from(write) << way;
            return None;
        }
        let (old, was_dirty) = set.replace(self.oldest, tag, write);
        let line = || u64::from(old - 1) << self.set_bits | at as u64;
        (old != 0).then(|| (line(), was_dirty))
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
