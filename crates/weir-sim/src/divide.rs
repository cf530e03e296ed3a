//! Division by a constant, done as a multiplication.
//!
//! With m = floor((2^64 - 1) / d), floor(n / d) is floor((n + 1) m / 2^64) for every n below m: the product
//! is too small by less than the step from one quotient to the next (Robison, "N-bit unsigned division via
//! N-bit multiply-add", ARITH 2005).

/// A divisor that is used many times.
#[derive(Debug, Clone, Copy)]
pub struct Divisor {
    by: u64,
    reciprocal: u64,
    /// Numbers below this one are divided by multiplication.
    near: u64,
}

impl Divisor {
    /// Divides by `by`; zero counts as one.
    pub fn new(by: u64) -> Self {
        let by = by.max(1);
        let reciprocal = u64::MAX / by;
        Self {
            by,
            reciprocal,
            near: reciprocal.saturating_sub(by),
        }
    }

    /// The number.
    #[inline]
    pub fn get(&self) -> u64 {
        self.by
    }

    /// Quotient and remainder.
    #[inline]
    pub fn div_rem(&self, n: u64) -> (u64, u64) {
        if n >= self.near {
            return self.far(n);
        }
        let q = self.multiply(n + 1);
        (q, n - q * self.by)
    }

    /// The smallest k for which k times the divisor is not below `n`.
    #[inline]
    pub fn div_ceil(&self, n: u64) -> u64 {
        if n >= self.near {
            let (q, r) = self.far(n);
            return q + u64::from(r > 0);
        }
        self.multiply(n + self.by)
    }

    /// The upper half of a product with the reciprocal.
    #[inline]
    fn multiply(&self, n: u64) -> u64 {
        ((u128::from(n) * u128::from(self.reciprocal)) >> 64) as u64
    }

    #[cold]
    #[inline(never)]
    fn far(&self, n: u64) -> (u64, u64) {
        (n / self.by, n % self.by)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_divides_as_the_processor_does(n: u64, by in 1u64.., small in 1u64..10_000, shift in 0u32..64) {
            for by in [by, small, 1, 64, by | 1 << 63, u64::MAX] {
                let divisor = Divisor::new(by);
                for n in [n, n >> shift, (n >> shift) / by * by, divisor.near.saturating_sub(1), divisor.near] {
                    prop_assert_eq!(divisor.div_rem(n), (n / by, n % by));
                    prop_assert_eq!(divisor.div_ceil(n), n.div_ceil(by));
                }
            }
        }
    }
}
