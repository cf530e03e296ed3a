//! Reuse distances: how many other lines are used between two uses of a line.
//!
//! A cache of LRU order with so many lines misses exactly the accesses whose distance is not below it. The last uses of
//! lines are kept in their order: the latest few in a list, the others in a set of bits that counts from its end. Once
//! more lines are known than the profile follows at once, only those are kept whose hash is below a threshold that halves, and
//! each stands for as many others (SHARDS, Waldspurger et al., FAST 2015). So memory is constant, and distances are exact
//! for traces with fewer lines.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The latest lines, which are kept in a list.
const LATEST: usize = 16;

/// The hash of a line, which decides whether it is kept (SplitMix64's finaliser).
#[inline]
pub fn hash(line: u64) -> u64 {
    let mut x = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Lines are hashed already.
#[derive(Debug, Default, Clone, Copy)]
pub struct OfLine(u64);

impl Hasher for OfLine {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, line: u64) {
        self.0 = line.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// What is known of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Line {
    /// Its place among the last uses; none in the list.
    place: u32,
    /// How often it was used, without uses that follow another at once.
    pub uses: u32,
    /// When it was used last.
    time: u64,
}

/// A use of a line that is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    /// Other lines since its last use; `None` for the first.
    pub distance: Option<u64>,
    /// Accesses since its last use.
    pub time: u64,
    /// Accesses that this one stands for.
    pub weight: f64,
}

/// Last uses of lines, in order.
#[derive(Debug)]
pub struct Reuse {
    most: usize,
    /// Lines with a hash from here on are not kept.
    below: u64,
    weight: f64,
    lines: HashMap<u64, Line, BuildHasherDefault<OfLine>>,
    latest: [u64; LATEST],
    latest_known: [Line; LATEST],
    older: Order,
}

impl Reuse {
    /// Keeps at most so many lines.
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(2 * LATEST),
            below: u64::MAX,
            weight: 1.0,
            lines: HashMap::default(),
            latest: [u64::MAX; LATEST],
            latest_known: [Line::default(); LATEST],
            older: Order::new(2 * most.max(2 * LATEST)),
        }
    }

    /// Lines that each line that is kept stands for.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The lines that are kept, with what is known of each.
    pub fn lines(&self) -> impl Iterator<Item = (u64, Line)> {
        let latest = self.latest.into_iter().zip(self.latest_known);
        let latest = latest.filter(|(line, _)| *line != u64::MAX);
        latest.chain(self.lines.iter().map(|(line, known)| (*line, *known)))
    }

    /// A line is used, after so many accesses since the start. `None` for one that is not kept.
    #[inline]
    pub fn use_line(&mut self, line: u64, now: u64) -> Option<Use> {
        if hash(line) >= self.below {
            return None;
        }
        if self.latest[0] == line {
            let before = std::mem::replace(&mut self.latest_known[0].time, now);
            return Some(Use {
                distance: Some(0),
                time: now - before,
                weight: self.weight,
            });
        }
        Some(self.use_another(line, now))
    }

    fn use_another(&mut self, line: u64, now: u64) -> Use {
        let weight = self.weight;
        let scaled = |distance: u64| Some((distance as f64 * weight) as u64);
        let found = self.latest.iter().position(|&one| one == line);
        let (known, distance, from) = match found {
            Some(at) => (self.latest_known[at], scaled(at as u64), at),
            None => match self.lines.remove(&line) {
                Some(known) => {
                    let newer = self.older.remove(known.place);
                    (known, scaled(newer + LATEST as u64), LATEST - 1)
                }
                None => (Line::default(), None, LATEST - 1),
            },
        };
        if found.is_none() {
            self.leave_list(LATEST - 1);
        }
        self.latest.copy_within(..from, 1);
        self.latest_known.copy_within(..from, 1);
        self.latest[0] = line;
        self.latest_known[0] = Line {
            place: u32::MAX,
            uses: known.uses.saturating_add(1),
            time: now,
        };
        if distance.is_none() && self.lines.len() > self.most {
            self.halve();
        }
        Use {
            distance,
            time: now - known.time,
            weight,
        }
    }

    /// The line at this place of the list becomes the latest of the others.
    fn leave_list(&mut self, at: usize) {
        let line = self.latest[at];
        if line == u64::MAX {
            return;
        }
        if self.older.is_full() {
            self.compact();
        }
        let place = self.older.add();
        let known = self.latest_known[at];
        self.lines.insert(line, Line { place, ..known });
    }

    /// Gives all lines places from the start.
    fn compact(&mut self) {
        let mut all: Vec<(u32, u64)> = self
            .lines
            .iter()
            .map(|(&line, known)| (known.place, line))
            .collect();
        all.sort_unstable();
        self.older.clear();
        for (_, line) in all {
            let place = self.older.add();
            if let Some(known) = self.lines.get_mut(&line) {
                known.place = place;
            }
        }
    }

    /// Keeps about half of the lines.
    fn halve(&mut self) {
        self.below /= 2;
        self.weight *= 2.0;
        let below = self.below;
        self.lines.retain(|line, _| hash(*line) < below);
        self.compact();
        // Lines of the list that are not kept any more leave it; the order of the others stays.
        let mut kept = 0;
        for at in 0..LATEST {
            if self.latest[at] != u64::MAX && hash(self.latest[at]) < below {
                self.latest.swap(kept, at);
                self.latest_known.swap(kept, at);
                kept += 1;
            }
        }
        // Distances count a list that is full, so the latest of the others fill it.
        let mut newest: Vec<(u32, u64)> = self
            .lines
            .iter()
            .map(|(&line, known)| (known.place, line))
            .collect();
        newest.sort_unstable_by(|a, b| b.cmp(a));
        let mut newest = newest.into_iter();
        for at in kept..LATEST {
            self.latest[at] = u64::MAX;
            if let Some((place, line)) = newest.next()
                && let Some(known) = self.lines.remove(&line)
            {
                self.older.remove(place);
                self.latest[at] = line;
                self.latest_known[at] = known;
            }
        }
    }

    /// Forgets all uses, as before a part of a trace that does not follow the one before.
    pub fn forget(&mut self) {
        self.lines.clear();
        self.latest = [u64::MAX; LATEST];
        self.older.clear();
    }
}

/// Places that count up; each is taken or free, and those taken above a place are counted.
#[derive(Debug)]
struct Order {
    bits: Vec<u64>,
    /// Taken places in each word, and in each block of [`BLOCK`] words.
    in_word: Vec<u8>,
    in_block: Vec<u32>,
    next: u32,
}

/// Words of a block.
const BLOCK: usize = 32;

impl Order {
    fn new(places: usize) -> Self {
        let blocks = places.div_ceil(64 * BLOCK);
        Self {
            bits: vec![0; blocks * BLOCK],
            in_word: vec![0; blocks * BLOCK],
            in_block: vec![0; blocks],
            next: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.next as usize == self.bits.len() * 64
    }

    fn clear(&mut self) {
        self.bits.fill(0);
        self.in_word.fill(0);
        self.in_block.fill(0);
        self.next = 0;
    }

    /// Takes the next place.
    fn add(&mut self) -> u32 {
        let place = self.next;
        let word = place as usize / 64;
        self.bits[word] |= 1 << (place % 64);
        self.in_word[word] += 1;
        self.in_block[word / BLOCK] += 1;
        self.next += 1;
        place
    }

    /// Frees a place that is taken; how many above it are taken.
    fn remove(&mut self, place: u32) -> u64 {
        let word = place as usize / 64;
        let block = word / BLOCK;
        self.bits[word] &= !(1 << (place % 64));
        self.in_word[word] -= 1;
        self.in_block[block] -= 1;
        let above = u64::from((self.bits[word] >> (place % 64)).count_ones());
        let words: u64 = (self.in_word[word + 1..(block + 1) * BLOCK].iter())
            .map(|&n| u64::from(n))
            .sum();
        let last = self.next as usize / (64 * BLOCK);
        let blocks = &self.in_block[block + 1..=last.max(block).min(self.in_block.len() - 1)];
        above + words + blocks.iter().map(|&n| u64::from(n)).sum::<u64>()
    }
}

/// Accesses by reuse distance: eight ranges for each doubling, whose ends include every power of two.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Accesses of each range, weighted.
    ranges: Vec<f64>,
    /// First uses.
    pub first: f64,
}

/// Ranges of a doubling.
const FINE: u64 = 8;

impl Default for Profile {
    fn default() -> Self {
        Self {
            ranges: vec![0.0; 64 * FINE as usize],
            first: 0.0,
        }
    }
}

/// The range of a distance, or of a time.
#[inline]
fn range_of(distance: u64) -> usize {
    match distance {
        0..FINE => distance as usize,
        _ => {
            let octave = u64::from(distance.ilog2());
            // The highest bits of the distance, of which the first is always set.
            let fine = distance >> (octave - 3);
            ((octave - 3) * FINE + fine) as usize
        }
    }
}

impl Profile {
    /// Notes a use.
    #[inline]
    pub fn add(&mut self, of: &Use) {
        match of.distance {
            Some(distance) => self.ranges[range_of(distance)] += of.weight,
            None => self.first += of.weight,
        }
    }

    /// All accesses.
    pub fn total(&self) -> f64 {
        self.first + self.ranges.iter().sum::<f64>()
    }

    /// Accesses that miss in a cache of so many lines; exact for powers of two, as far as the distances are.
    pub fn misses(&self, lines: u64) -> f64 {
        self.first + self.ranges[range_of(lines)..].iter().sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the definition.
    fn naive(lines: &[u64]) -> Vec<Option<u64>> {
        let distance = |at: usize| {
            let before = lines[..at].iter().rposition(|line| *line == lines[at])?;
            let mut between = lines[before + 1..at].to_vec();
            between.sort_unstable();
            between.dedup();
            Some(between.len() as u64)
        };
        (0..lines.len()).map(distance).collect()
    }

    fn by(reuse: &mut Reuse, lines: &[u64]) -> Vec<Option<Option<u64>>> {
        let uses = lines.iter().enumerate();
        uses.map(|(now, &line)| reuse.use_line(line, now as u64).map(|of| of.distance))
            .collect()
    }

    proptest! {
        #[test]
        fn distances_are_those_of_the_definition(
            lines in prop::collection::vec(0_u64..90, 0..900),
            most in 91_usize..200,
        ) {
            let found: Vec<_> = by(&mut Reuse::new(most), &lines).into_iter().flatten().collect();
            prop_assert_eq!(found, naive(&lines));
        }

        #[test]
        fn distances_of_a_sample_are_those_of_the_definition_among_lines_that_are_kept(
            lines in prop::collection::vec(0_u64..400, 0..2500),
        ) {
            let mut reuse = Reuse::new(40);
            by(&mut reuse, &lines);
            // From here on no line is new, and the threshold stays.
            let (below, weight) = (reuse.below, reuse.weight);
            let before = lines.len();
            let kept = |line: &&u64| hash(**line) < below;
            let again: Vec<u64> = lines.iter().rev().chain(&lines).copied().collect();
            let found: Vec<u64> = again
                .iter()
                .enumerate()
                .filter_map(|(now, &line)| reuse.use_line(line, (before + now) as u64)?.distance)
                .collect();
            let all: Vec<u64> = lines.iter().chain(&again).filter(kept).copied().collect();
            let first = lines.iter().filter(kept).count();
            let expected: Vec<u64> = naive(&all)[first..]
                .iter()
                .map(|distance| (distance.unwrap() as f64 * weight) as u64)
                .collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn misses_are_exact_for_powers_of_two(distances in prop::collection::vec(0_u64..1 << 40, 1..50), bits in 0_u32..40) {
            let mut profile = Profile::default();
            for &distance in &distances {
                profile.add(&Use { distance: Some(distance), time: 0, weight: 1.0 });
            }
            let lines = 1_u64 << bits;
            let expected = distances.iter().filter(|&&d| d >= lines).count();
            prop_assert_eq!(profile.misses(lines), expected as f64);
            prop_assert_eq!(profile.total(), distances.len() as f64);
        }
    }

    #[test]
    fn a_sample_of_lines_stands_for_all() {
        // Random uses of 200 000 lines: an LRU cache of half of them misses half of the uses.
        let mut reuse = Reuse::new(2048);
        let mut profile = Profile::default();
        for n in 0..4_000_000_u64 {
            let line = hash(n ^ 0x1234_5678) % 200_000;
            if let Some(of) = reuse.use_line(line, n)
                && n >= 2_000_000
            {
                profile.add(&of);
            }
        }
        assert!(reuse.weight() > 60.0);
        let share = profile.misses(1 << 16) / profile.total();
        let expected = 1.0 - 65_536.0 / 200_000.0;
        assert!((share - expected).abs() < 0.03, "{share} {expected}");
    }
}
