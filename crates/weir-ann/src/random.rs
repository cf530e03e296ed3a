//! Chance from a seed.

/// A generator of random numbers (SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
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
}
