//! Random ranks: by Zipf's law, or by that of Apex-Map.

use super::che_approximation::{Popularity, Ranking};
use super::pieces::Piece;

/// The ranks of this many elements.
pub struct Ranks {
    elements: u64,
    inverse: Inverse,
    /// The inverse, by the first six of the random bits.
    ranks: Box<[Piece; 64]>,
    /// How popular a rank is.
    pub popularity: Popularity,
    /// For the first ranks, which are most of the accesses, the share of them that the last-level cache answers,
    /// of 2^32.
    first: Box<[u32]>,
    /// The same of the others, in pieces of a sixteenth of a power of two.
    others: Box<[Piece]>,
}

/// The inverse of the law's integral.
enum Inverse {
    /// For an exponent of one.
    Exponential {
        low: f64,
        ratio: f64,
    },
    Root {
        from: f64,
        span: f64,
        root: f64,
    },
    /// Of Apex-Map.
    Power {
        elements: f64,
        root: f64,
    },
}

impl Inverse {
    /// The rank at this share of the integral, a half too high.
    #[inline(always)]
    fn at(&self, u: f64) -> f64 {
        match *self {
            Inverse::Exponential { low, ratio } => low * ratio.powf(u),
            Inverse::Root { from, span, root } => (from + u * span).powf(root),
            Inverse::Power { elements, root } => elements * u.powf(root) + 0.5,
        }
    }
}

/// The ranks of which each share is known, a power of two, and the number of their piece if they were in pieces.
const FIRST: u64 = 2048;
const FIRST_PIECE: u64 = (FIRST as f64).to_bits() >> 48;

/// The middle of a piece of ranks, and the half of its width.
fn piece(n: u64) -> (f64, f64) {
    let (from, to) = (f64::from_bits(n << 48), f64::from_bits((n + 1) << 48));
    (f64::midpoint(from, to), (to - from) / 2.0)
}

impl Ranks {
    /// The ranks of this many elements.
    pub fn new(elements: u64, ranking: Ranking) -> Self {
        let (low, high) = (0.5, elements as f64 + 0.5);
        let inverse = match ranking {
            Ranking::Zipf(skew) if (skew - 1.0).abs() < 1e-6 => {
                let ratio = high / low;
                Inverse::Exponential { low, ratio }
            }
            Ranking::Zipf(skew) => {
                let e = 1.0 - skew;
                let (from, to) = (f64::powf(low, e), f64::powf(high, e));
                Inverse::Root {
                    from,
                    span: to - from,
                    root: 1.0 / e,
                }
            }
            Ranking::Apex(alpha) => Inverse::Power {
                elements: elements as f64,
                root: 1.0 / alpha,
            },
        };
        let of_bits = |n: usize| Piece::of(|x| inverse.at((n as f64 + 0.5 + x / 2.0) / 64.0) - 0.5);
        Self {
            elements,
            ranks: Box::new(std::array::from_fn(of_bits)),
            inverse,
            popularity: Popularity::new(elements as f64, ranking),
            first: Box::default(),
            others: Box::default(),
        }
    }

    /// The rank that 64 random bits select.
    #[inline(always)]
    pub fn rank(&self, bits: u64) -> u64 {
        let x = (((bits << 6) >> 17).cast_signed() - (1 << 46)) as f64 / (1_u64 << 46) as f64;
        match self.ranks[(bits >> 58) as usize].whole(x) {
            Some(rank) => u64::from(rank).min(self.elements - 1),
            None => self.rank_of(bits),
        }
    }

    /// The same where it has to be computed.
    #[inline(never)]
    fn rank_of(&self, bits: u64) -> u64 {
        let u = (bits >> 11) as f64 / (1u64 << 53) as f64;
        ((self.inverse.at(u) - 0.5) as u64).min(self.elements - 1)
    }

    /// Keeps what share of the accesses to the line of a rank the last-level cache answers, of 2^32, as computed by
    /// `share`, which is smooth from a rank on for which `is_smooth` says so.
    pub fn set_shares(&mut self, share: impl Fn(f64) -> f64, is_smooth: impl Fn(f64) -> bool) {
        let known = self.elements.min(FIRST);
        self.first = (0..known).map(|rank| share(rank as f64) as u32).collect();
        let last = (self.elements as f64).to_bits() >> 48;
        let of_ranks = |n| {
            let (middle, half) = piece(n);
            match is_smooth(middle - half) {
                true => Piece::of(|x| share(middle + half * x)),
                false => Piece::UNKNOWN,
            }
        };
        self.others = (FIRST_PIECE..=last).map(of_ranks).collect();
    }

    /// This share, if it is known.
    #[inline(always)]
    pub fn share(&self, rank: u64) -> Option<u32> {
        if rank < FIRST {
            return self.first.get(rank as usize).copied();
        }
        // Signed numbers are converted by one instruction.
        let bits = (rank.cast_signed() as f64).to_bits();
        let x = ((bits & u64::MAX >> 16).cast_signed() - (1 << 47)) as f64 / (1_u64 << 47) as f64;
        self.others
            .get((bits >> 48).wrapping_sub(FIRST_PIECE) as usize)?
            .whole(x)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranks_and_shares_are_those_that_the_functions_give(
            elements in prop_oneof![1u64..5000, Just(1 << 20), Just(300_000_001), Just(1 << 34)],
            ranking in prop_oneof![
                (0.1..2.0f64).prop_map(Ranking::Zipf),
                Just(Ranking::Zipf(1.0)),
                (0.01..1.0f64).prop_map(Ranking::Apex),
            ],
            rate in 1e-9..1e3f64,
            draws in prop::collection::vec(any::<u64>(), 200),
        ) {
            let mut ranks = Ranks::new(elements, ranking);
            let popularity = ranks.popularity;
            let share = |rank: f64| f64::from(u32::MAX) * -(-rate * popularity.of(rank)).exp_m1();
            ranks.set_shares(share, |_| true);
            for bits in draws {
                let rank = ranks.rank(bits);
                prop_assert_eq!(rank, ranks.rank_of(bits));
                if let Some(known) = ranks.share(rank) {
                    prop_assert_eq!(known, share(rank as f64) as u32);
                }
            }
        }
    }
}
