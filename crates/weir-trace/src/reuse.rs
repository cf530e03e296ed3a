//! Reuse distances: how many other lines are used between two uses of a line.
//!
//! A cache of LRU order with this many lines misses exactly the accesses whose distance is not below it. The lines used
//! latest are in a cache in front, which takes nearly all uses at no cost here. A line that leaves it takes a
//! place behind those that left before; the distance when it comes back is the number of lines that left since, and those in front.
//! So distances are exact for a cache in front that has the latest lines, and off by less than its size for one in
//! sets. Once more lines are known than are followed at once, only those are kept whose hash is below a threshold that
//! halves, and each stands for as many others (SHARDS, Waldspurger et al., FAST 2015). So memory is constant.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::order::Order;

/// Lines that are kept, at least.
const LEAST: usize = 32;

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

    #[inline]
    fn write_u64(&mut self, line: u64) {
        self.0 = line.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// What is known of a line behind the cache in front.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Its place among those that left.
    place: u32,
    /// When it was used last.
    time: u64,
}

/// A use of a line that is kept and was not in front.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    /// Other lines since its last use; `None` for the first.
    pub distance: Option<u64>,
    /// Accesses since its last use.
    pub time: u64,
    /// Accesses that this one stands for.
    pub weight: f64,
}

/// Lines behind the cache in front, in the order in which they left it.
#[derive(Debug)]
pub struct Reuse {
    most: usize,
    /// Lines with a hash from here on are not kept.
    below: u64,
    weight: f64,
    lines: HashMap<u64, Line, BuildHasherDefault<OfLine>>,
    order: Order,
}

impl Reuse {
    /// Keeps at most this many lines.
    pub fn new(most: usize) -> Self {
        let most = most.max(LEAST);
        Self {
            most,
            below: u64::MAX,
            weight: 1.0,
            lines: HashMap::default(),
            order: Order::new(2 * most),
        }
    }

    /// Lines that each line that is kept stands for.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// A line comes to the front, where this many others are, after this many accesses since the start. `None` for one that is not
    /// kept.
    #[inline]
    pub fn enter(&mut self, line: u64, now: u64, front: u64) -> Option<Use> {
        if hash(line) >= self.below {
            return None;
        }
        let weight = self.weight;
        let Some(known) = self.lines.remove(&line) else {
            return Some(Use {
                distance: None,
                time: 0,
                weight,
            });
        };
        let newer = self.order.remove(known.place);
        let time = now - known.time;
        // A set of the cache in front may have let go of a line that was used just now.
        let distance = ((newer as f64 * weight) as u64 + front).min(time - 1);
        Some(Use {
            distance: Some(distance),
            time,
            weight,
        })
    }

    /// A line leaves the front, where it was used last at this time.
    #[inline]
    pub fn leave(&mut self, line: u64, time: u64) {
        if hash(line) >= self.below {
            return;
        }
        if self.order.is_full() {
            self.compact();
        }
        let place = self.order.add();
        // It may have left another core's cache before.
        if let Some(before) = self.lines.insert(line, Line { place, time }) {
            self.order.remove(before.place);
        }
        if self.lines.len() > self.most {
            self.halve();
        }
    }

    /// Gives all lines places from the start.
    #[cold]
    fn compact(&mut self) {
        let mut all: Vec<(u32, u64)> = self
            .lines
            .iter()
            .map(|(&line, known)| (known.place, line))
            .collect();
        all.sort_unstable();
        self.order.clear();
        for (_, line) in all {
            let place = self.order.add();
            if let Some(known) = self.lines.get_mut(&line) {
                known.place = place;
            }
        }
    }

    /// Keeps about half of the lines.
    #[cold]
    fn halve(&mut self) {
        self.below /= 2;
        self.weight *= 2.0;
        let below = self.below;
        self.lines.retain(|line, _| hash(*line) < below);
        self.compact();
    }

    /// Forgets all uses, as before a part of a trace that does not follow the one before.
    pub fn forget(&mut self) {
        self.lines.clear();
        self.order.clear();
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

    /// The latest lines of all, in front of those that are followed.
    struct Front {
        latest: Vec<(u64, u64)>,
        lines: usize,
        now: u64,
    }

    impl Front {
        /// Uses a line: `None` where it was in front.
        fn use_line(&mut self, reuse: &mut Reuse, line: u64) -> Option<Option<Use>> {
            self.now += 1;
            let found = self.latest.iter().position(|(one, _)| *one == line);
            if let Some(at) = found {
                self.latest.remove(at);
                self.latest.push((line, self.now));
                return None;
            }
            let used = reuse.enter(line, self.now, self.latest.len() as u64);
            self.latest.push((line, self.now));
            if self.latest.len() > self.lines {
                let (line, time) = self.latest.remove(0);
                reuse.leave(line, time);
            }
            Some(used)
        }
    }

    proptest! {
        #[test]
        fn distances_behind_the_latest_lines_are_those_of_the_definition(
            lines in prop::collection::vec(0_u64..90, 0..900),
            front in 1_usize..8,
            most in 91_usize..200,
        ) {
            let mut reuse = Reuse::new(most);
            let mut latest = Front { latest: Vec::new(), lines: front, now: 0 };
            for (line, distance) in lines.iter().zip(naive(&lines)) {
                match latest.use_line(&mut reuse, *line) {
                    Some(used) => prop_assert_eq!(used.unwrap().distance, distance),
                    None => prop_assert!(distance.unwrap() < front as u64),
                }
            }
        }

        #[test]
        fn times_are_accesses_since_the_last_use(lines in prop::collection::vec(0_u64..90, 0..900)) {
            let mut reuse = Reuse::new(200);
            let mut latest = Front { latest: Vec::new(), lines: 4, now: 0 };
            for (at, line) in lines.iter().enumerate() {
                if let Some(Some(Use { distance: Some(_), time, .. })) = latest.use_line(&mut reuse, *line) {
                    let before = lines[..at].iter().rposition(|one| one == line).unwrap();
                    prop_assert_eq!(time, (at - before) as u64);
                }
            }
        }
    }

    #[test]
    fn a_sample_of_lines_stands_for_all() {
        // Random uses of 200 000 lines: an LRU cache of a third of them misses two thirds of the uses.
        let mut reuse = Reuse::new(2048);
        let mut latest = Front {
            latest: Vec::new(),
            lines: 8,
            now: 0,
        };
        let (mut all, mut far) = (0.0, 0.0);
        for n in 0..4_000_000_u64 {
            let line = hash(n ^ 0x1234_5678) % 200_000;
            if let Some(Some(of)) = latest.use_line(&mut reuse, line)
                && n >= 2_000_000
            {
                all += of.weight;
                if of.distance.is_none_or(|distance| distance >= 1 << 16) {
                    far += of.weight;
                }
            }
        }
        assert!(reuse.weight() > 60.0);
        let expected = 1.0 - 65_536.0 / 200_000.0;
        assert!(
            (far / all - expected).abs() < 0.03,
            "{far} {all} {expected}"
        );
    }
}
