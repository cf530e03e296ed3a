//! What is noted of a part of the address space, for a bounded number of parts.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::l1::Noted;
use crate::reuse::OfLine;

/// Granules that are distinguished; with more, they become twice as large.
const MOST: usize = 1 << 14;
/// The smallest: a page of 4 KiB.
const FINEST: u32 = 12;
/// Places of granules that were found lately.
const LATELY: usize = 1024;
/// Ranges of a time in each doubling.
const FINE: usize = 2;
/// Ranges of times between two uses.
pub const TIMES: usize = 44 * FINE;

/// What is noted.
#[derive(Debug, Clone, PartialEq)]
pub struct Granule {
    /// Accesses, and those that store.
    pub accesses: u64,
    pub stores: u64,
    /// Accesses to another line than the access before.
    pub uses: u64,
    /// Bytes of accesses.
    pub bytes: u64,
    /// Accesses that left L1, and lines that were stored to in L1.
    pub visits: u64,
    pub written: u64,
    /// Those of the latter whose first access in L1 was a load.
    pub modified: u64,
    /// Visits whose line follows the one before, and the lines between them.
    pub follows: u64,
    pub steps: u64,
    /// Visits whose address was loaded, and those of them whose line follows none.
    pub loaded: u64,
    pub found: u64,
    /// Jumps to lines that a megabyte of cache has not, weighted, and those of them that came before each within the
    /// reach of a core, weighted likewise.
    pub far: f64,
    pub before: f64,
    /// Those of the latter in the same page of 4 KiB.
    pub near: f64,
    /// Lines that were used first, weighted.
    pub first: f64,
    /// Accesses beyond L1 by the time since the last use of their line, weighted.
    pub times: [f32; TIMES],
}

impl Default for Granule {
    fn default() -> Self {
        Self {
            accesses: 0,
            stores: 0,
            uses: 0,
            bytes: 0,
            visits: 0,
            written: 0,
            modified: 0,
            follows: 0,
            steps: 0,
            loaded: 0,
            found: 0,
            far: 0.0,
            before: 0.0,
            near: 0.0,
            first: 0.0,
            times: [0.0; TIMES],
        }
    }
}

/// The range of a time.
pub fn range_of(time: u64) -> usize {
    let time = time.max(1);
    let octave = time.ilog2() as usize;
    // The upper part of an octave begins at its geometric middle.
    let upper = time as f64 >= (octave as f64 + 0.5).exp2();
    (octave * FINE + usize::from(upper)).min(TIMES - 1)
}

/// The first time of a range; of the one behind the last, too.
pub fn begin_of(range: usize) -> f64 {
    (range as f64 / FINE as f64).exp2()
}

impl Granule {
    /// Adds what was noted of a line.
    #[inline]
    pub fn note(&mut self, noted: &Noted) {
        self.accesses += u64::from(noted.accesses);
        self.stores += u64::from(noted.stores);
        self.uses += u64::from(noted.uses);
        self.bytes += u64::from(noted.bytes);
    }

    /// Adds what was noted of another part.
    pub fn merge(&mut self, other: &Granule) {
        self.accesses += other.accesses;
        self.stores += other.stores;
        self.uses += other.uses;
        self.bytes += other.bytes;
        self.visits += other.visits;
        self.written += other.written;
        self.modified += other.modified;
        self.follows += other.follows;
        self.steps += other.steps;
        self.loaded += other.loaded;
        self.found += other.found;
        self.far += other.far;
        self.before += other.before;
        self.near += other.near;
        self.first += other.first;
        for (mine, theirs) in self.times.iter_mut().zip(other.times) {
            *mine += theirs;
        }
    }

    /// Accesses beyond L1 that were noted with their time, and first uses.
    pub fn beyond_l1(&self) -> f64 {
        self.first + self.times.iter().map(|&n| f64::from(n)).sum::<f64>()
    }
}

/// All granules.
#[derive(Debug, Clone)]
pub struct Granules {
    shift: u32,
    places: HashMap<u64, u32, BuildHasherDefault<OfLine>>,
    all: Vec<Granule>,
    keys: Vec<u64>,
    lately: Box<[(u64, u32); LATELY]>,
}

impl Granules {
    pub fn new() -> Self {
        Self {
            shift: FINEST,
            places: HashMap::default(),
            all: Vec::new(),
            keys: Vec::new(),
            lately: Box::new([(u64::MAX, 0); LATELY]),
        }
    }

    /// The bytes of one, as a power of two.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// The granule of an address.
    #[inline]
    pub fn at(&mut self, address: u64) -> &mut Granule {
        let key = address >> self.shift;
        let (found, place) = self.lately[(key % LATELY as u64) as usize];
        if found == key {
            return &mut self.all[place as usize];
        }
        self.find(address)
    }

    fn find(&mut self, address: u64) -> &mut Granule {
        let mut key = address >> self.shift;
        let known = self.places.get(&key).copied();
        let place = known.unwrap_or_else(|| {
            while self.all.len() >= MOST {
                self.coarsen();
            }
            key = address >> self.shift;
            *self.places.entry(key).or_insert_with(|| {
                self.all.push(Granule::default());
                self.keys.push(key);
                self.all.len() as u32 - 1
            })
        });
        self.lately[(key % LATELY as u64) as usize] = (key, place);
        &mut self.all[place as usize]
    }

    fn coarsen(&mut self) {
        let old = std::mem::replace(self, Self::new());
        self.shift = old.shift + 1;
        for (key, granule) in old.keys.into_iter().zip(old.all) {
            let key = key >> 1;
            let place = *self.places.entry(key).or_insert_with(|| {
                self.all.push(Granule::default());
                self.keys.push(key);
                self.all.len() as u32 - 1
            });
            self.all[place as usize].merge(&granule);
        }
    }

    /// Adds those of another stretch.
    pub fn merge(&mut self, other: &Granules) {
        for (&key, granule) in other.keys.iter().zip(&other.all) {
            while self.shift < other.shift {
                self.coarsen();
            }
            let address = key << other.shift;
            self.at(address).merge(granule);
        }
    }

    /// By address: the first of each, and what was noted; and the bytes of one.
    pub fn sorted(&self) -> (Vec<(u64, &Granule)>, u64) {
        let mut all: Vec<(u64, &Granule)> = (self.keys.iter().zip(&self.all))
            .map(|(key, granule)| (key << self.shift, granule))
            .collect();
        all.sort_unstable_by_key(|(from, _)| *from);
        (all, 1 << self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granules_keep_their_addresses_as_they_become_coarser() {
        let mut all = Granules::new();
        for page in 0..=MOST as u64 {
            all.at(page << FINEST).visits += 1;
        }
        let (sorted, size) = all.sorted();
        assert_eq!(size, 2 << FINEST);
        assert_eq!(sorted.len(), MOST / 2 + 1);
        for (nth, (from, granule)) in (0..).zip(sorted) {
            let visits = if nth == MOST as u64 / 2 { 1 } else { 2 };
            assert_eq!((from, granule.visits), (nth * size, visits));
        }
        let mut finer = Granules::new();
        finer.at(5 << FINEST).visits = 10;
        all.merge(&finer);
        assert_eq!(all.at(4 << FINEST).visits, 12);
    }
}
