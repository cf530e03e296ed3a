//! The whole part of a smooth function, piece by piece by a polynomial. Where the polynomial is too close to a whole
//! number to say which side the function is on, the caller computes the function.

/// Where a piece is fitted: the zeros of Chebyshev's polynomial of this degree.
const NODES: [f64; 7] = [
    0.974_927_912_181_823_6,
    0.781_831_482_468_029_8,
    0.433_883_739_117_558_1,
    0.0,
    -0.433_883_739_117_558_1,
    -0.781_831_482_468_029_8,
    -0.974_927_912_181_823_6,
];

/// A function over -1 to 1.
#[derive(Clone, Copy)]
pub struct Piece {
    /// The coefficients of the powers, the lowest first.
    powers: [f64; NODES.len()],
    /// How far from a half the rest of a value may be.
    certain: f64,
}

impl Piece {
    /// One of which nothing is certain.
    pub const UNKNOWN: Self = Self {
        powers: [0.0; NODES.len()],
        certain: 0.0,
    };

    /// Fits a function.
    pub fn of(function: impl Fn(f64) -> f64) -> Self {
        let mut powers = [0.0; NODES.len()];
        let values = NODES.map(&function);
        // Chebyshev's polynomial and the one before, at the nodes and as powers.
        let (mut before, mut here) = (NODES, [1.0; NODES.len()]);
        let (mut powers_before, mut powers_here) = ([0.0; NODES.len()], [0.0; NODES.len()]);
        (powers_before[1], powers_here[0]) = (1.0, 1.0);
        for n in 0..NODES.len() {
            let sum: f64 = values.iter().zip(here).map(|(value, at)| value * at).sum();
            let share = sum * if n == 0 { 1.0 } else { 2.0 } / NODES.len() as f64;
            for (power, of) in powers.iter_mut().zip(powers_here) {
                *power += share * of;
            }
            let next = std::array::from_fn(|k| 2.0 * NODES[k] * here[k] - before[k]);
            (before, here) = (here, next);
            let below = |k: usize| k.checked_sub(1).map_or(0.0, |k| powers_here[k]);
            let next = std::array::from_fn(|k| 2.0 * below(k) - powers_before[k]);
            (powers_before, powers_here) = (powers_here, next);
        }
        let piece = Self {
            powers,
            certain: 0.0,
        };
        // A polynomial that is fitted at these nodes is furthest from a smooth function at the ends. Both are computed
        // with some rounding.
        let size = powers.iter().map(|power| power.abs()).sum::<f64>();
        let furthest = [-1.0, 1.0]
            .map(|x| (piece.at(x) - function(x)).abs())
            .into_iter()
            .sum::<f64>();
        let certain = 0.5 - 4.0 * furthest - size * 2.0_f64.powi(-44);
        Self { powers, certain }
    }

    /// The polynomial at x.
    #[inline(always)]
    fn at(&self, x: f64) -> f64 {
        let [first @ .., last] = &self.powers;
        first.iter().rev().fold(*last, |sum, power| sum * x + power)
    }

    /// The whole part of the function at x, if it is certain and less than 2^32.
    #[inline(always)]
    pub fn whole(&self, x: f64) -> Option<u32> {
        let value = self.at(x);
        let whole = value as u32;
        let rest = value - f64::from(whole);
        ((rest - 0.5).abs() < self.certain).then_some(whole)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_whole_part_that_is_certain_is_right(
            size in 0.0..1e9f64,
            power in -3.0..20.0f64,
            width in 0.0..0.9f64,
            places in prop::collection::vec(-1.0..1.0f64, 200),
        ) {
            let function = |x: f64| size * (1.0 + width * x).powf(power);
            let piece = Piece::of(function);
            let mut certain = 0;
            for x in places {
                if let Some(whole) = piece.whole(x) {
                    prop_assert_eq!(u64::from(whole), function(x) as u64);
                    certain += 1;
                }
            }
            prop_assert!(certain > 150 || width > 0.01 || size < 1.0);
        }
    }
}
