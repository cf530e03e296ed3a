//! The shared last-level cache: non-inclusive, filled by lines that leave a private cache, divided into
//! slices, with a mask of ways for each class of tenants (CAT).
//!
//! Lines are tracked only if it matters: when lines of a tenant can survive in the cache. A stream larger
//! than the cache evicts its own old lines. Then every line that enters evicts a line of the same stream, and
//! no tags are needed to find it.

use crate::params::LlcConfig;

/// The mask of a class that may fill every way.
pub const ALL_WAYS: u32 = u32::MAX;

/// What fills the cache: the ways that may be filled (CAT), and for which tenant lines are counted (CMT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// One bit for each way.
    pub mask: u32,
    owner: u8,
}

impl Class {
    /// Of a tenant, in every way.
    pub fn of(tenant: u16) -> Self {
        Self {
            mask: ALL_WAYS,
            owner: u8::try_from(tenant).map_or(NOBODY, |tenant| tenant.min(NOBODY)),
        }
    }

    /// The same in some ways.
    pub fn within(self, mask: u32) -> Self {
        Self { mask, ..self }
    }

    /// Of devices, whose lines belong to no tenant.
    pub fn of_devices(mask: u32) -> Self {
        Self {
            mask,
            owner: NOBODY,
        }
    }
}

/// A line that left the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim {
    /// The line, numbered within its tier.
    pub line: u64,
    /// Its tier.
    pub tier: u8,
    /// Whether it must be written to memory.
    pub dirty: bool,
}

const VALID: u64 = 1 << 63;
const DIRTY: u64 = 1 << 62;
const USED: u64 = 1 << 61;
/// The owner of lines that are counted for no tenant: there are five bits.
const NOBODY: u8 = 31;
const OWNER_SHIFT: u32 = 56;
const OWNER: u64 = (NOBODY as u64) << OWNER_SHIFT;
const TIER_SHIFT: u32 = 48;
const LINE: u64 = (1 << TIER_SHIFT) - 1;

/// The cache's tags. Allocated on first use, a page at a time.
pub struct LastLevel {
    config: LlcConfig,
    sets: u64,
    /// Sets in which lines of a cluster's own DRAM may be.
    cluster_sets: u64,
    /// Sets from one complex's part to the next; zero if all cores share the cache.
    stride: usize,
    tags: Vec<u64>,
    hands: Vec<u8>,
    /// Lines of each owner.
    held: [u64; NOBODY as usize + 1],
}

impl LastLevel {
    /// An empty cache.
    pub fn new(config: LlcConfig) -> Self {
        let complexes = u64::from(config.complexes);
        let sets = (config.lines / u64::from(config.ways) / complexes).max(1);
        let all = (sets * complexes) as usize;
        Self {
            config,
            sets,
            cluster_sets: (sets / u64::from(config.clusters)).max(1),
            stride: if complexes > 1 { sets as usize } else { 0 },
            tags: vec![0; all * config.ways as usize],
            hands: vec![0; all],
            held: [0; NOBODY as usize + 1],
        }
    }

    #[inline]
    fn set_of(&self, line: u64, tier: u8, slice: u16) -> usize {
        // Slice and set both come from hashed bits, so that one index serves for the pair.
        let h = (line ^ (u64::from(tier) << 40)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let h = (h ^ (h >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (cluster, sets) = match u32::from(tier) < self.config.cluster_tiers {
            true => (
                tier as usize * self.cluster_sets as usize,
                self.cluster_sets,
            ),
            false => (0, self.sets),
        };
        let part = cluster
            + match self.stride {
                0 => 0,
                stride => slice as usize / self.config.slices as usize * stride,
            };
        part + ((u128::from(h) * u128::from(sets)) >> 64) as usize
    }

    #[inline]
    fn key(line: u64, tier: u8) -> u64 {
        VALID | (u64::from(tier) << TIER_SHIFT) | (line & LINE)
    }

    /// Lines that were filled for a tenant and are still there, if this tenant's are counted.
    pub fn held_by(&self, tenant: u16) -> Option<u64> {
        let own = self.held.get(usize::from(tenant)).copied();
        own.filter(|_| tenant < u16::from(NOBODY))
    }

    /// Looks up a line for a core that takes it. `own` removes it, since the copy with its dirty bit moves
    /// into the private cache. With core complexes, only the part of the core's complex, `slice`, is
    /// searched. Returns whether the line was there, and whether it was dirty.
    pub fn take(&mut self, line: u64, tier: u8, own: bool, slice: u16) -> Option<bool> {
        let ways = self.config.ways as usize;
        let set = self.set_of(line, tier, slice);
        let key = Self::key(line, tier);
        let tags = &mut self.tags[set * ways..(set + 1) * ways];
        let way = tags
            .iter()
            .position(|&t| t & !(DIRTY | USED | OWNER) == key)?;
        let dirty = tags[way] & DIRTY != 0;
        if own {
            self.held[owner(tags[way])] -= 1;
            tags[way] = 0;
        } else {
            tags[way] |= USED;
        }
        Some(dirty)
    }

    /// Inserts a line that left a private cache; returns the line that is evicted. Only ways of the class are
    /// filled; a hit may be in any way, and the line then stays its owner's. `slice` as for [`LastLevel::take`].
    pub fn put(
        &mut self,
        line: u64,
        tier: u8,
        dirty: bool,
        class: Class,
        slice: u16,
    ) -> Option<Victim> {
        let mask = class.mask;
        let ways = self.config.ways as usize;
        let set = self.set_of(line, tier, slice);
        let key = Self::key(line, tier);
        let tags = &mut self.tags[set * ways..(set + 1) * ways];
        let flags = if dirty { DIRTY } else { 0 };
        if let Some(tag) = tags
            .iter_mut()
            .find(|t| **t & !(DIRTY | USED | OWNER) == key)
        {
            *tag |= flags;
            return None;
        }
        // The victim: the first allowed way from the hand on whose recently-used bit is not set. A class that
        // may fill only some ways starts at any way and does not move the hand: otherwise the next fill of
        // all other classes would go to the way after its own.
        let all = mask.count_ones() as usize >= ways;
        let hand = &mut self.hands[set];
        let start = if all {
            usize::from(*hand)
        } else {
            (line as usize).wrapping_mul(31) >> 2
        };
        let mut way = start % ways;
        for step in 0..2 * ways {
            let here = (start % ways + step) % ways;
            if mask & (1 << here) == 0 {
                continue;
            }
            way = here;
            if tags[here] & VALID == 0 || tags[here] & USED == 0 {
                break;
            }
            tags[here] &= !USED;
        }
        if mask & (1 << way) == 0 {
            // An empty mask fills nothing: the line passes through.
            return Some(Victim { line, tier, dirty });
        }
        if all {
            *hand = ((way + 1) % ways) as u8;
        }
        let new = key | flags | u64::from(class.owner) << OWNER_SHIFT;
        let old = std::mem::replace(&mut tags[way], new);
        self.held[usize::from(class.owner)] += 1;
        (old & VALID != 0).then(|| {
            self.held[owner(old)] -= 1;
            Victim {
                line: old & LINE,
                tier: (old >> TIER_SHIFT) as u8,
                dirty: old & DIRTY != 0,
            }
        })
    }
}

#[inline]
fn owner(tag: u64) -> usize {
    ((tag & OWNER) >> OWNER_SHIFT) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: LlcConfig = LlcConfig {
        lines: 1024,
        ways: 8,
        clusters: 1,
        cluster_tiers: 1,
        complexes: 1,
        slices: 1,
    };

    const ALL: Class = Class {
        mask: ALL_WAYS,
        owner: 0,
    };

    proptest! {
        #[test]
        fn every_line_is_counted_for_who_filled_it(
            puts in prop::collection::vec((0u64..3000, 0u16..40, any::<bool>()), 1..3000),
        ) {
            let mut llc = LastLevel::new(SMALL);
            let mut owners = std::collections::HashMap::new();
            for (line, tenant, takes) in puts {
                if takes {
                    llc.take(line, 1, true, 0);
                    owners.remove(&line);
                    continue;
                }
                let victim = llc.put(line, 1, false, Class::of(tenant), 0);
                owners.entry(line).or_insert(tenant);
                if let Some(victim) = victim {
                    owners.remove(&victim.line);
                }
            }
            for tenant in 0..31 {
                let held = owners.values().filter(|&&of| of == tenant).count() as u64;
                prop_assert_eq!(llc.held_by(tenant), Some(held));
            }
            prop_assert_eq!(llc.held_by(31), None);
            prop_assert_eq!(llc.held.iter().sum::<u64>(), owners.len() as u64);
        }

        #[test]
        fn what_goes_in_comes_out_once_or_stays(
            lines in prop::collection::vec(0u64..4000, 1..3000),
            mask in 1u32..256,
        ) {
            let mut llc = LastLevel::new(SMALL);
            let mut inside = std::collections::HashSet::new();
            for line in lines {
                let victim = llc.put(line, 1, line % 2 == 0, ALL.within(mask), 0);
                inside.insert(line);
                if let Some(v) = victim {
                    prop_assert!(inside.remove(&v.line));
                    prop_assert_eq!(v.dirty, v.line % 2 == 0);
                    prop_assert_eq!(v.tier, 1);
                }
            }
            for &line in &inside {
                prop_assert_eq!(llc.take(line, 1, true, 5), Some(line % 2 == 0));
                prop_assert_eq!(llc.take(line, 1, true, 5), None);
            }
        }
    }

    #[test]
    fn a_masked_class_holds_no_more_than_its_ways() {
        let mut llc = LastLevel::new(SMALL);
        for line in 0..10_000 {
            llc.put(line, 0, false, ALL.within(0b11), 0);
        }
        assert_eq!(llc.held_by(0), Some(1024 / 8 * 2));
        let held = (0..10_000)
            .filter(|&line| llc.take(line, 0, false, 0).is_some())
            .count();
        assert_eq!(held, 1024 / 8 * 2);
    }

    #[test]
    fn lines_of_a_clusters_dram_stay_in_its_part() {
        let config = LlcConfig {
            clusters: 4,
            cluster_tiers: 3,
            ..SMALL
        };
        let mut llc = LastLevel::new(config);
        for line in 0..10_000 {
            for tier in 0..3 {
                llc.put(line, tier, false, Class::of(tier.into()), 0);
            }
        }
        for tenant in 0..3 {
            assert_eq!(llc.held_by(tenant), Some(1024 / 4));
        }
    }

    #[test]
    fn a_complex_finds_only_what_its_own_cores_left() {
        let config = LlcConfig {
            complexes: 4,
            ..SMALL
        };
        let mut llc = LastLevel::new(config);
        for line in 0..100 {
            llc.put(line, 1, false, ALL, 2);
        }
        for line in 0..100 {
            assert_eq!(llc.take(line, 1, false, 1), None);
            assert_eq!(llc.take(line, 1, false, 2), Some(false));
        }
        // Each complex has a quarter of the cache.
        for line in 0..10_000 {
            llc.put(line, 1, false, ALL, 0);
        }
        let held = (0..10_000).filter(|&line| llc.take(line, 1, false, 0).is_some());
        assert_eq!(held.count(), 1024 / 4);
    }
}
