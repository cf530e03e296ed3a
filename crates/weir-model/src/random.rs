//! Random numbers: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), the same for a seed on every machine.

/// A sequence of random numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number below `n`; 0 where `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// A number of the normal distribution with mean 0 and variance 1: twelve uniform ones less six, which is exact in the
    /// first two moments and needs no logarithm.
    pub fn normal(&mut self) -> f32 {
        let mut sum = 0.0;
        for _ in 0..3 {
            let bits = self.bits();
            for part in 0..4 {
                sum += ((bits >> (16 * part)) & 0xffff) as f32 + 0.5;
            }
        }
        sum / 65_536.0 - 6.0
    }

    /// From 0 to below 1.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A duration of this mean, exponentially distributed.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.share()).ln()
    }

    /// One of the values by its weight; the last where rounding leaves none.
    pub fn choose<T: Copy>(&mut self, weighted: &[(T, f64)]) -> Option<T> {
        let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        let mut at = self.share() * total;
        for &(value, weight) in weighted {
            if at < weight {
                return Some(value);
            }
            at -= weight;
        }
        weighted.last().map(|(value, _)| *value)
    }
}
