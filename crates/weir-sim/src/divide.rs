//! Division by a number that stays the same: a multiplication, and at most one correction.

/// A divisor that is used over and over.
#[derive(Debug, Clone, Copy)]
pub struct Divisor {
    by: u64,
    /// floor(2^64 / by), or 2^64 - 1 for 1: never more than one quotient too small.
    reciprocal: u64,
}

impl Divisor {
    /// Divides by `by`; zero counts as one.
    pub fn new(by: u64) -> Self {
        let by = by.max(1);
        let reciprocal = ((1u128 << 64) / u128::from(by)).min(u128::from(u64::MAX)) as u64;
        Self { by, reciprocal }
    }

    /// The number.
    #[inline]
    pub fn get(&self) -> u64 {
        self.by
    }

    /// Quotient and remainder.
    #[inline]
    pub fn div_rem(&self, n: u64) -> (u64, u64) {
        let q = ((u128::from(n) * u128::from(self.reciprocal)) >> 64) as u64;
        let r = n - q * self.by;
        if r >= self.by {
            (q + 1, r - self.by)
        } else {
            (q, r)
        }
    }

    /// The least multiple's factor that is not below `n`.
    #[inline]
    pub fn div_ceil(&self, n: u64) -> u64 {
        let (q, r) = self.div_rem(n);
        q + u64::from(r > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_divides_as_the_processor_does(n: u64, by in 1u64.., small in 1u64..10_000) {
            for by in [by, small, 1, u64::MAX] {
                prop_assert_eq!(Divisor::new(by).div_rem(n), (n / by, n % by));
            }
            prop_assert_eq!(Divisor::new(small).div_ceil(n >> 1), (n >> 1).div_ceil(small));
        }
    }
}
