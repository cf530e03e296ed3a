//! Pseudo-random numbers that depend only on the seed.
//!
//! A pattern needs the value of its n-th access without drawing the n-1 values before it. Therefore a value
//! here is a function of (seed, index), and not a stream.

/// Mixes 64 bits so that every input bit reaches every output bit (the finaliser of SplitMix64,
/// Steele, Lea and Flood, OOPSLA 2014).
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The value of (seed, index), uniform in 0..n; n must not be zero.
pub fn below(seed: u64, index: u64, n: u64) -> u64 {
    ((u128::from(mix(seed ^ mix(index))) * u128::from(n)) >> 64) as u64
}

/// The value of (seed, index), uniform in 0..1.
pub fn unit(seed: u64, index: u64) -> f64 {
    (mix(seed ^ mix(index)) >> 11) as f64 / (1u64 << 53) as f64
}

/// A permutation of 0..n that a seed selects: position `index` of a random order that visits each value once.
/// It makes four Feistel rounds over the next even number of bits; values of `n` or more are mapped again.
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    seed: u64,
}

/// Steps after which no value below n will come.
const MOST_TRIES: u32 = 4096;

impl Permutation {
    /// An order of 0..n; n must not be zero.
    pub fn new(n: u64, seed: u64) -> Self {
        let bits = 64 - (n.max(2) - 1).leading_zeros();
        Self {
            n,
            half_bits: bits.div_ceil(2),
            seed,
        }
    }

    /// The value at `index`, which is below n; some other value below n for an index that is not.
    pub fn at(&self, index: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut x, mut tries) = (index, 0);
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for round in 0..4u64 {
                let f = mix(right ^ self.seed.wrapping_add(round << 56)) & mask;
                (left, right) = (right, left ^ f);
            }
            x = (left << self.half_bits) | right;
            if x < self.n {
                return x;
            }
            // At least a quarter of all numbers is below n, so that a longer way has no end; only an index that is not
            // below n may be on one.
            tries += 1;
            if tries == MOST_TRIES {
                return x % self.n;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_index_beyond_the_end_has_a_value_too(n in 1u64..50, seed: u64, index in 0u64..200) {
            let order = Permutation::new(n, seed);
            prop_assert!(order.at(index) < n);
        }

        #[test]
        fn a_permutation_visits_every_value_once(n in 1u64..2000, seed: u64) {
            let order = Permutation::new(n, seed);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let v = order.at(i) as usize;
                prop_assert!(!seen[v]);
                seen[v] = true;
            }
        }

        #[test]
        fn below_stays_below(seed: u64, index: u64, n in 1u64..u64::MAX) {
            prop_assert!(below(seed, index, n) < n);
        }
    }
}
