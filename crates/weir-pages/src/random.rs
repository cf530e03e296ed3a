//! Random values that are functions of a seed and an index.

/// Mixes 64 bits (the finaliser of SplitMix64, Steele, Lea and Flood, OOPSLA 2014).
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A draw for each call, from a seed.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    state: u64,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    /// Uniform above 0 and at most 1.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((mix(self.state) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// The exponential distribution of mean 1.
    #[inline]
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }

    /// The Poisson distribution; of large means its normal approximation.
    pub(crate) fn poisson(&mut self, mean: f64) -> f64 {
        if mean > 30.0 {
            // Box and Muller.
            let (r, angle) = (self.exponential(), self.unit() * std::f64::consts::TAU);
            return (mean + (2.0 * r * mean).sqrt() * angle.cos())
                .round()
                .max(0.0);
        }
        let (mut count, mut left) = (0.0, mean - self.exponential());
        while left > 0.0 {
            count += 1.0;
            left -= self.exponential();
        }
        count
    }
}
