//! Random ranks: by Zipf's law, or by that of Apex-Map.

use super::che_approximation::{Popularity, Ranking};

/// The ranks of this many elements.
pub struct Ranks {
    elements: u64,
    inverse: Inverse,
    /// How popular a rank is.
    pub popularity: Popularity,
    /// For the first ranks, which are most of the accesses, the share of them that the last-level cache answers,
    /// of 2^32.
    pub cached: Box<[u32]>,
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

impl Ranks {
    /// The most ranks of [`Ranks::cached`].
    pub const KNOWN: u64 = 2048;

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
        Self {
            elements,
            inverse,
            popularity: Popularity::new(elements as f64, ranking),
            cached: Box::default(),
        }
    }

    /// The rank that 64 random bits select.
    pub fn rank(&self, bits: u64) -> u64 {
        let u = (bits >> 11) as f64 / (1u64 << 53) as f64;
        let rank = match self.inverse {
            Inverse::Exponential { low, ratio } => low * ratio.powf(u),
            Inverse::Root { from, span, root } => (from + u * span).powf(root),
            Inverse::Power { elements, root } => elements * u.powf(root) + 0.5,
        };
        ((rank - 0.5) as u64).min(self.elements - 1)
    }
}
