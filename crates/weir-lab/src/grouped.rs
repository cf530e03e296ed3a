//! Quantiles of means of several accesses, from a distribution of single ones.
//!
//! A probe that reads its timer once for several dependent hops logs their mean: one long hop among
//! eight shows an eighth of its length, and is met eight times as often. What such a probe would
//! log is computed from single hops that are taken to be independent.

use weir_model::units::Nanos;

/// Places of the logarithm's scale in one octave: values are distinguished to 0.3 %.
const PLACES: f64 = 256.0;

/// The distribution of the sum of some independent accesses: latency in ns, and its probability.
#[derive(Debug, Clone, PartialEq)]
struct Sums(Vec<(f64, f64)>);

impl Sums {
    /// Values from `least` to `most`, joined at their mean where they lie close, so that the mean of
    /// all stays what it is.
    fn joined(least: f64, most: f64, values: impl Iterator<Item = (f64, f64)>) -> Self {
        let place = |value: f64| (value.max(1e-3).log2() * PLACES).floor() as i64;
        let first = place(least);
        let mut places = vec![(0.0, 0.0); (place(most) - first).max(0) as usize + 1];
        let last = places.len() - 1;
        for (value, probability) in values {
            let at = ((place(value) - first).max(0) as usize).min(last);
            if let Some((sum, weight)) = places.get_mut(at) {
                *sum += value * probability;
                *weight += probability;
            }
        }
        let joined = places.into_iter().filter(|&(_, weight)| weight > 0.0);
        Self(joined.map(|(sum, weight)| (sum / weight, weight)).collect())
    }

    fn least(&self) -> f64 {
        self.0.first().map_or(0.0, |&(value, _)| value)
    }

    fn most(&self) -> f64 {
        self.0.last().map_or(0.0, |&(value, _)| value)
    }

    /// The sum of one of these and one of those.
    fn plus(&self, other: &Self) -> Self {
        let pairs = self.0.iter().flat_map(|&(a, p)| {
            let sums = other.0.iter().map(move |&(b, q)| (a + b, p * q));
            // Below what a thousand times the accesses ever recorded could show.
            sums.filter(|&(_, probability)| probability > 1e-15)
        });
        Self::joined(
            self.least() + other.least(),
            self.most() + other.most(),
            pairs,
        )
    }
}

/// The distribution of the mean of a number of independent accesses.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupMeans {
    sums: Sums,
    size: u32,
}

impl GroupMeans {
    /// From single accesses, as latencies with their counts; `None` if there are none, or if a
    /// group of `size` has no member.
    pub fn of(singles: &[(Nanos, u64)], size: u32) -> Option<Self> {
        let all: u64 = singles.iter().map(|&(_, count)| count).sum();
        if all == 0 || size == 0 {
            return None;
        }
        let probability = |count: u64| count as f64 / all as f64;
        let values = || singles.iter().map(|&(ns, _)| ns.get());
        let one = Sums::joined(
            values().fold(f64::INFINITY, f64::min),
            values().fold(0.0, f64::max),
            singles.iter().map(|&(ns, n)| (ns.get(), probability(n))),
        );
        // Squares and products, as for a power.
        let mut power = one;
        let mut sums: Option<Sums> = None;
        let mut left = size;
        loop {
            if left % 2 == 1 {
                sums = Some(sums.map_or_else(|| power.clone(), |sums| sums.plus(&power)));
            }
            left /= 2;
            if left == 0 {
                break;
            }
            power = power.plus(&power);
        }
        Some(Self { sums: sums?, size })
    }

    /// The mean that `share` (0 to 1) of all groups do not exceed.
    pub fn quantile(&self, share: f64) -> Nanos {
        let total: f64 = self.sums.0.iter().map(|&(_, p)| p).sum();
        let mut seen = 0.0;
        let found = self.sums.0.iter().find(|&&(_, probability)| {
            seen += probability;
            seen >= share * total
        });
        let sum = found.or(self.sums.0.last()).map_or(0.0, |&(sum, _)| sum);
        Nanos(sum / f64::from(self.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: Nanos, b: f64) -> bool {
        (a.get() - b).abs() <= 0.004 * b
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn means_of_groups_lie_within_the_singles_and_keep_their_mean(
            singles in prop::collection::vec((50.0..5000.0_f64, 1..1000_u64), 1..40),
            size in 1_u32..12,
        ) {
            let singles: Vec<_> = singles.into_iter().map(|(ns, n)| (Nanos(ns), n)).collect();
            let groups = GroupMeans::of(&singles, size).unwrap();
            let all: u64 = singles.iter().map(|s| s.1).sum();
            let mean = singles.iter().map(|s| s.0.get() * s.1 as f64).sum::<f64>() / all as f64;
            let ours: f64 = groups.sums.0.iter().map(|(sum, p)| sum * p).sum();
            prop_assert!(near(Nanos(ours / f64::from(size)), mean));
            let least = singles.iter().map(|s| s.0.get()).fold(f64::INFINITY, f64::min);
            let most = singles.iter().map(|s| s.0.get()).fold(0.0, f64::max);
            let mut before = 0.0;
            for share in [0.0, 0.1, 0.5, 0.9, 0.999, 1.0] {
                let at = groups.quantile(share).get();
                prop_assert!(at >= before && at >= 0.999 * least && at <= 1.001 * most);
                before = at;
            }
        }
    }

    #[test]
    fn a_group_of_one_is_the_access_itself() {
        let singles: Vec<_> = (1..=1000).map(|i| (Nanos(f64::from(i)), 1)).collect();
        let groups = GroupMeans::of(&singles, 1).unwrap();
        for share in [0.5, 0.9, 0.99] {
            assert!(near(groups.quantile(share), 1000.0 * share), "{share}");
        }
    }

    #[test]
    fn one_rare_long_access_among_eight_shows_an_eighth_of_it_eight_times_as_often() {
        // One access in 4000 takes 8100 ns instead of 100: one group in 500 has one.
        let singles = [(Nanos(100.0), 3999), (Nanos(8100.0), 1)];
        let groups = GroupMeans::of(&singles, 8).unwrap();
        assert!(near(groups.quantile(0.5), 100.0));
        assert!(near(groups.quantile(0.9975), 100.0));
        assert!(near(groups.quantile(0.9985), 1100.0));
        // Two in one group are met once in 572 000: 8 x 7 / 2 pairs, each once in 16 million.
        assert!(near(groups.quantile(0.999_997), 1100.0));
        assert!(near(groups.quantile(0.999_999), 2100.0));
    }

    #[test]
    fn nothing_has_no_means() {
        assert_eq!(GroupMeans::of(&[], 8), None);
        assert_eq!(GroupMeans::of(&[(Nanos(1.0), 1)], 0), None);
    }
}
