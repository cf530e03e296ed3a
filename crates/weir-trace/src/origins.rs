//! Where addresses were loaded: a sample of pairs, an access beyond L1 and the load that its address comes from.

use crate::reuse::hash;

/// Pairs that are kept.
const MOST: usize = 4096;

/// A sample in which each pair has the same chance to be (reservoir sampling).
#[derive(Debug, Clone, Default)]
pub struct Origins {
    seen: u64,
    /// The address, and where it was loaded.
    pairs: Vec<(u64, u64)>,
}

impl Origins {
    /// Notes a pair.
    pub fn note(&mut self, address: u64, from: u64) {
        self.seen += 1;
        if self.pairs.len() < MOST {
            self.pairs.push((address, from));
            return;
        }
        let place = hash(self.seen) % self.seen;
        if let Some(kept) = self.pairs.get_mut(place as usize) {
            *kept = (address, from);
        }
    }

    /// Adds those of another stretch, each with the chance that it would have had in one.
    pub fn merge(&mut self, other: &Origins) {
        let all = self.seen + other.seen;
        if self.pairs.len() + other.pairs.len() <= MOST {
            self.pairs.extend_from_slice(&other.pairs);
        } else {
            let of_other = |n: &usize| hash(all ^ (*n as u64) << 32) % all < other.seen;
            let kept = (0..MOST).filter_map(|n| {
                let from = if of_other(&n) {
                    &other.pairs
                } else {
                    &self.pairs
                };
                from.get(hash(n as u64) as usize % from.len().max(1))
                    .copied()
            });
            self.pairs = kept.collect();
        }
        self.seen = all;
    }

    /// The pairs.
    pub fn pairs(&self) -> &[(u64, u64)] {
        &self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stretches_have_as_many_pairs_of_each_kind_as_were_seen(of_each in prop::collection::vec(1_u64..60_000, 1..8)) {
            let mut all = Origins::default();
            for (kind, &count) in of_each.iter().enumerate() {
                let mut one = Origins::default();
                (0..count).for_each(|n| one.note(n, kind as u64));
                all.merge(&one);
            }
            let seen: u64 = of_each.iter().sum();
            prop_assert_eq!(all.seen, seen);
            for (kind, &count) in of_each.iter().enumerate() {
                let kept = all.pairs().iter().filter(|(_, from)| *from == kind as u64).count();
                let (found, wanted) = (kept as f64 / all.pairs().len() as f64, count as f64 / seen as f64);
                prop_assert!((found - wanted).abs() < 0.06, "{} {}", found, wanted);
            }
        }
    }
}
