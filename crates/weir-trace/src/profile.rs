//! Accesses by their reuse distance.

use crate::l1;
use crate::reuse::Use;

/// Accesses that left L1 by reuse distance: eight ranges for each doubling, whose ends include every power of two.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Accesses of each range, weighted.
    ranges: Vec<f64>,
    /// First uses.
    pub first: f64,
    /// All accesses.
    pub accesses: u64,
    /// Those that left L1.
    pub left: u64,
}

/// Ranges of a doubling.
const FINE: u64 = 8;

impl Default for Profile {
    fn default() -> Self {
        Self {
            ranges: vec![0.0; 64 * FINE as usize],
            first: 0.0,
            accesses: 0,
            left: 0,
        }
    }
}

/// The range of a distance.
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
    /// Notes a use that left L1.
    #[inline]
    pub fn add(&mut self, of: &Use) {
        match of.distance {
            Some(distance) => self.ranges[range_of(distance)] += of.weight,
            None => self.first += of.weight,
        }
    }

    /// Adds another.
    pub fn merge(&mut self, other: &Profile) {
        for (mine, theirs) in self.ranges.iter_mut().zip(&other.ranges) {
            *mine += theirs;
        }
        self.first += other.first;
        self.accesses += other.accesses;
        self.left += other.left;
    }

    /// Accesses that miss in a cache of this many lines; exact for powers of two, as far as the distances are. All that left
    /// L1 are counted, and not only those of lines that are kept.
    pub fn misses(&self, lines: u64) -> f64 {
        match lines <= l1::LINES {
            true => self.left as f64,
            false => self.first + self.ranges[range_of(lines)..].iter().sum::<f64>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn misses_are_exact_for_powers_of_two(distances in prop::collection::vec(0_u64..1 << 40, 1..50), bits in 10_u32..40) {
            let mut profile = Profile::default();
            for &distance in &distances {
                profile.add(&Use { distance: Some(distance), time: 0, weight: 1.0 });
            }
            let lines = 1_u64 << bits;
            let expected = distances.iter().filter(|&&d| d >= lines).count();
            prop_assert_eq!(profile.misses(lines), expected as f64);
        }
    }
}
