//! The device's DRAM as a cache of pages: tags, and which page leaves.

use super::footprint::Footprint;
use crate::rng;

/// Constants of the cache.
#[derive(Debug, Clone)]
pub struct PageCacheConfig {
    pub sets: u64,
    pub ways: usize,
    /// Whether any page of a set leaves, and not the least recently used one.
    pub random: bool,
}

/// A page that the medium differs from.
const DIRTY: u64 = 1 << 63;
/// A page on its way from the medium.
const FILLING: u64 = 1 << 62;
const PAGE: u64 = FILLING - 1;

/// Where a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Here,
    /// On its way into the cache.
    Filling,
    Absent,
}

/// What leaves for a page that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// Nothing, or a page that the medium has as well.
    Clean,
    /// A page that must be written back.
    Dirty(u64),
}

/// The tags. A set lists its pages from the most recently used one on; zero is no page.
pub struct PageCache {
    config: PageCacheConfig,
    words: Vec<u64>,
    /// One bit for each set whose first pages are drawn.
    drawn: Vec<u64>,
    footprints: Vec<Footprint>,
    seed: u64,
    choices: u64,
}

impl PageCache {
    /// A cache whose sets are drawn from footprints when they are first used.
    pub fn new(config: PageCacheConfig, seed: u64) -> Self {
        Self {
            words: vec![0; (config.sets as usize) * config.ways],
            drawn: vec![0; config.sets.div_ceil(64) as usize],
            footprints: Vec::new(),
            seed: rng::mix(seed),
            choices: 0,
            config,
        }
    }

    /// What tenants use, before any page of it is looked up.
    pub fn warm(&mut self, footprints: Vec<Footprint>) {
        self.footprints = footprints;
    }

    #[inline]
    fn set(&mut self, page: u64) -> &mut [u64] {
        let set = page % self.config.sets;
        let (word, bit) = (set as usize / 64, 1 << (set % 64));
        if self.drawn[word] & bit == 0 {
            self.drawn[word] |= bit;
            self.draw(set);
        }
        let first = set as usize * self.config.ways;
        &mut self.words[first..first + self.config.ways]
    }

    /// A set as tenants leave it that have used their memory for long: its pages by the time of their last use.
    #[cold]
    fn draw(&mut self, set: u64) {
        let sets = self.config.sets;
        let mut pages: Vec<(f64, u64)> = Vec::new();
        for footprint in &self.footprints {
            let dirty = if footprint.written { DIRTY } else { 0 };
            let end = footprint.first + footprint.pages;
            let mut page = footprint.first + (set + sets - footprint.first % sets) % sets;
            while page < end {
                pages.push((footprint.age(page, self.seed), (page + 1) | dirty));
                page += sets;
            }
        }
        let ways = self.config.ways;
        if pages.len() > ways {
            pages.select_nth_unstable_by(ways - 1, |a, b| a.0.total_cmp(&b.0));
            pages.truncate(ways);
        }
        pages.sort_by(|a, b| a.0.total_cmp(&b.0));
        let first = set as usize * ways;
        for (word, (_, page)) in self.words[first..].iter_mut().zip(pages) {
            *word = page;
        }
    }

    /// Uses a page if it is here.
    #[inline]
    pub fn touch(&mut self, page: u64, writes: bool) -> Found {
        let random = self.config.random;
        let set = self.set(page);
        let Some(way) = set.iter().position(|word| word & PAGE == page + 1) else {
            return Found::Absent;
        };
        if set[way] & FILLING != 0 {
            return Found::Filling;
        }
        if writes {
            set[way] |= DIRTY;
        }
        if way > 0 && !random {
            set[..=way].rotate_right(1);
        }
        Found::Here
    }

    /// What would leave if this page came: the way, and the page. `None` if all pages of its set are on their way.
    pub fn victim(&mut self, page: u64) -> Option<(usize, Victim)> {
        let (random, seed, choice, ways) = (
            self.config.random,
            self.seed,
            self.choices,
            self.config.ways as u64,
        );
        let set = self.set(page);
        let goes = |way: &usize| set[*way] & FILLING == 0;
        let way = match set.iter().position(|word| *word == 0) {
            Some(empty) => empty,
            None if random => {
                let from = rng::below(seed, choice, ways) as usize;
                (from..set.len()).chain(0..from).find(goes)?
            }
            None => (0..set.len()).rev().find(goes)?,
        };
        let word = set[way];
        Some(match word & DIRTY {
            0 => (way, Victim::Clean),
            _ => (way, Victim::Dirty((word & PAGE) - 1)),
        })
    }

    /// Puts a page that comes into this way.
    pub fn begin(&mut self, page: u64, way: usize) {
        self.choices += 1;
        let set = self.set(page);
        set[way] = (page + 1) | FILLING;
        set[..=way].rotate_right(1);
    }

    /// The page cannot be had: its place is free.
    pub fn forget(&mut self, page: u64) {
        let set = self.set(page);
        if let Some(way) = set.iter().position(|word| *word & PAGE == page + 1) {
            set[way] = 0;
            set[way..].rotate_left(1);
        }
    }

    /// The page has come.
    pub fn end(&mut self, page: u64, written: bool) {
        let set = self.set(page);
        if let Some(word) = set.iter_mut().find(|word| **word & PAGE == page + 1) {
            *word = (page + 1) | if written { DIRTY } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::super::footprint::Reuse;
    use super::*;

    fn cache(sets: u64, ways: usize, random: bool) -> PageCache {
        let config = PageCacheConfig { sets, ways, random };
        PageCache::new(config, 7)
    }

    proptest! {
        /// Every page that was written is in the cache or was written back, and none is there twice.
        #[test]
        fn no_written_page_is_lost(
            sets in 1u64..5,
            ways in 1usize..5,
            random: bool,
            uses in prop::collection::vec((0u64..40, any::<bool>()), 1..400),
        ) {
            let mut cache = cache(sets, ways, random);
            let (mut dirty, mut inside) = (HashSet::new(), HashSet::new());
            for (page, writes) in uses {
                if cache.touch(page, writes) == Found::Absent {
                    prop_assert!(!inside.contains(&page));
                    let before = inside.len();
                    let Some((way, victim)) = cache.victim(page) else {
                        return Err(TestCaseError::fail("no page may leave"));
                    };
                    if let Victim::Dirty(out) = victim {
                        prop_assert!(dirty.remove(&out), "{out} was not written");
                    }
                    cache.begin(page, way);
                    prop_assert_eq!(cache.touch(page, false), Found::Filling);
                    cache.end(page, writes);
                    inside = (0..40).filter(|&p| cache.touch_quietly(p)).collect();
                    prop_assert!(inside.len() <= before + 1);
                }
                prop_assert!(cache.touch_quietly(page));
                if writes {
                    dirty.insert(page);
                }
                for page in &dirty {
                    prop_assert!(cache.touch_quietly(*page), "{page} is lost");
                }
            }
        }

        /// A cache as large as what tenants use has all of it, and a smaller one is full of it.
        #[test]
        fn a_run_begins_with_a_full_cache(sets in 1u64..9, ways in 1usize..9, pages in 1u64..200, first in 0u64..99) {
            let mut cache = cache(sets, ways, false);
            let order = Reuse::AtRandom;
            cache.warm(vec![Footprint { first, pages, order, rate: 1.0, written: false, deterministic: false, seed: 3 }]);
            let here = (first..first + pages).filter(|&p| cache.touch_quietly(p)).count() as u64;
            let fits = (first..first + pages).fold(vec![0; sets as usize], |mut n, p| {
                n[(p % sets) as usize] += 1;
                n
            });
            let most: u64 = fits.iter().map(|&n: &u64| n.min(ways as u64)).sum();
            prop_assert_eq!(here, most);
        }
    }

    impl PageCache {
        /// Whether a page is here, without using it.
        fn touch_quietly(&mut self, page: u64) -> bool {
            self.set(page).iter().any(|word| word & PAGE == page + 1)
        }
    }

    #[test]
    fn the_least_recently_used_page_leaves() {
        let mut cache = cache(1, 2, false);
        for page in [1, 2] {
            let (way, _) = cache.victim(page).unwrap();
            cache.begin(page, way);
            cache.end(page, page == 1);
        }
        assert_eq!(cache.touch(1, false), Found::Here);
        assert_eq!(cache.victim(3).unwrap().1, Victim::Clean);
        assert_eq!(cache.touch(2, false), Found::Here);
        assert_eq!(cache.victim(3).unwrap().1, Victim::Dirty(1));
    }
}
