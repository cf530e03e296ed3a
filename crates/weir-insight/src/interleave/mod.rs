//! What share of a workload's pages should lie on the slower tier.
//!
//! | module | asks for | gives |
//! |---|---|---|
//! | [`proportional()`] | bandwidths of both tiers | the ratio at which both are full at once |
//! | [`best_shot`] | one run on local memory | ratio and gain, by queues that [`kernels`] calibrate (SupMario §6) |
//! | [`closed_form`] | stalls on either tier alone | the curve over all ratios, and its minimum (CAMP) |
//! | [`caption`] | figures of a running workload | the next ratio to try (Caption, MICRO 2023) |
//!
//! A share `x` is that of pages on the slower tier: 0 is all local, 1 is none.

pub mod best_shot;
pub mod caption;
pub mod closed_form;
pub mod estimate;
pub mod kernels;
pub mod latency;

/// Weights of a page-by-page interleaving (Linux weighted interleave): this many pages local, then this many
/// on the slower tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Weights {
    /// Pages on local memory.
    pub local: u32,
    /// Pages on the slower tier.
    pub slow: u32,
}

impl Weights {
    /// The share of pages on the slower tier.
    pub fn share(self) -> f64 {
        f64::from(self.slow) / f64::from(self.local + self.slow)
    }

    /// The same in percent, as near as a number comes: 11 of 20 pages are 55 %.
    pub fn share_pct(self) -> f64 {
        100.0 * f64::from(self.slow) / f64::from(self.local + self.slow)
    }

    /// The weights closest to a share, in rounds of at most `most` pages; the smaller round where several
    /// are as close.
    pub fn nearest(share: f64, most: u32) -> Self {
        let share = if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        };
        let rounded = |round: u32| {
            let slow = (share * f64::from(round)).round() as u32;
            Self {
                local: round - slow,
                slow,
            }
        };
        (1..=most.max(1))
            .map(rounded)
            .min_by(|a, b| {
                let off = |w: &Self| (w.share() - share).abs();
                off(a).total_cmp(&off(b))
            })
            .unwrap_or(Self { local: 1, slow: 0 })
    }
}

/// The share at which both tiers are full at once: the slower one's part of the bandwidth of both.
pub fn proportional(
    local: weir_model::units::GbPerSec,
    slow: weir_model::units::GbPerSec,
) -> Option<f64> {
    let share = slow / (local + slow);
    (0.0..=1.0).contains(&share).then_some(share)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_model::units::GbPerSec;

    use super::*;

    proptest! {
        #[test]
        fn weights_are_as_close_as_their_round_allows(share in 0.0..=1.0_f64) {
            let weights = Weights::nearest(share, 20);
            prop_assert!((weights.share() - share).abs() <= 0.5 / 20.0 + 1e-12);
            prop_assert!((1..=20).contains(&(weights.local + weights.slow)));
        }
    }

    #[test]
    fn the_papers_server_has_the_papers_share() {
        // SKX2S: 52 and 32 GB/s, which the paper rounds to 5 : 3.
        let share = proportional(GbPerSec(52.0), GbPerSec(32.0)).unwrap();
        assert_eq!(Weights::nearest(share, 8), Weights { local: 5, slow: 3 });
        assert_eq!(proportional(GbPerSec(0.0), GbPerSec(0.0)), None);
    }
}
