//! Which key a request is for.

use crate::kernels::Random;

/// The order of popularity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Popular {
    /// Scattered over all keys, as YCSB's scrambled Zipf order has them.
    Scattered,
    /// The newest keys, as in YCSB's order `latest`.
    Newest,
}

/// Draws keys by Zipf's law (Gray et al., Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994, as YCSB
/// draws them).
#[derive(Debug, Clone)]
pub struct Keys {
    popular: Popular,
    /// Keys that were there at first; the law is that of this many.
    of: u64,
    skew: f64,
    zeta: f64,
    eta: f64,
}

impl Keys {
    /// Of this many keys; a skew of 0 draws all with equal chance.
    pub fn new(popular: Popular, of: u64, skew: f64) -> Self {
        let of = of.max(2);
        // At 1 the exponent of the inverse has no value; no user means so exact a number.
        let skew = if (skew - 1.0).abs() < 1e-3 {
            0.999
        } else {
            skew.clamp(0.0, 3.0)
        };
        let term = |rank: u64| (rank as f64).powf(-skew);
        // Beyond a million terms the sum is an integral to eight digits.
        let exact = of.min(1 << 20);
        let mut zeta: f64 = (1..=exact).map(term).sum();
        if of > exact {
            let primitive = |x: f64| x.powf(1.0 - skew) / (1.0 - skew);
            zeta += primitive(of as f64 + 0.5) - primitive(exact as f64 + 0.5);
        }
        let two = 1.0 + term(2);
        let eta = (1.0 - (2.0 / of as f64).powf(1.0 - skew)) / (1.0 - two / zeta);
        Self {
            popular,
            of,
            skew,
            zeta,
            eta,
        }
    }

    /// The next one, where this many keys are there now.
    pub fn draw(&self, random: &mut Random, now: u64) -> u64 {
        let rank = self.rank(random);
        match self.popular {
            Popular::Scattered => mix(rank) % self.of,
            Popular::Newest => now.saturating_sub(1).saturating_sub(rank),
        }
    }

    /// From 0, the most popular one.
    fn rank(&self, random: &mut Random) -> u64 {
        let uniform = unit(random);
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(self.skew) {
            return 1;
        }
        let place = (self.eta * uniform - self.eta + 1.0).max(0.0);
        let rank = self.of as f64 * place.powf(1.0 / (1.0 - self.skew));
        (rank as u64).min(self.of - 1)
    }
}

/// A number from 0 to less than 1.
pub(super) fn unit(random: &mut Random) -> f64 {
    (random.word() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Scatters ranks over keys.
fn mix(rank: u64) -> u64 {
    Random::new(rank).word()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_key_exists(of in 1_u64..500_000, skew in 0.0_f64..2.0, seed: u64) {
            let mut random = Random::new(seed);
            for popular in [Popular::Scattered, Popular::Newest] {
                let keys = Keys::new(popular, of, skew);
                for _ in 0..200 {
                    prop_assert!(keys.draw(&mut random, of.max(2)) < of.max(2));
                }
            }
        }
    }

    /// The share of a rank under Zipf's law is `1 / (rank + 1)^skew / zeta`.
    #[test]
    fn the_most_popular_have_the_shares_of_the_law() {
        let (draws, of) = (200_000, 1000);
        let keys = Keys::new(Popular::Newest, of, 0.99);
        let mut random = Random::new(7);
        let mut counts = vec![0_u32; of as usize];
        for _ in 0..draws {
            counts[(of - 1 - keys.draw(&mut random, of)) as usize] += 1;
        }
        let zeta: f64 = (1..=of).map(|rank| (rank as f64).powf(-0.99)).sum();
        for rank in [0_usize, 1] {
            let law = ((rank + 1) as f64).powf(-0.99) / zeta;
            let found = f64::from(counts[rank]) / f64::from(draws);
            assert!((found / law - 1.0).abs() < 0.05, "{rank}: {found} {law}");
        }
        // The approximation of Gray et al. is a few percent off in the middle.
        let half: u32 = counts[..100].iter().sum();
        let law: f64 = (1..=100)
            .map(|rank| f64::from(rank).powf(-0.99))
            .sum::<f64>()
            / zeta;
        assert!((f64::from(half) / f64::from(draws) - law).abs() < 0.05);
    }
}
