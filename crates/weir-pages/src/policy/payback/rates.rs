//! How often a page is accessed, as far as a hint fault says.
//!
//! One time until a fault says little about a page: of pages that are all accessed once in a second, one in a hundred faults
//! within 10 ms. So what is known of all pages of the region on the tier counts as well. Their rates are taken to have a
//! gamma distribution: its mean is what counters say, accesses by pages, and its shape is how equal they are, which the
//! share of early faults says. A page's expected rate after its fault follows by Bayes' rule.

use super::ALIKE;

/// Pages of a region on a tier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    /// Accesses to a page in a second, on average.
    mean: f64,
    /// Pages that were sampled, and those of them that faulted early. Both are forgotten in time.
    sampled: f64,
    early: f64,
    /// Pages that were sampled in this interval; they are counted when they had an interval's time to fault.
    fresh: f64,
    /// A fault is early before the time that pages which are alike take on average, but within an interval.
    early_s: f64,
    /// The shape of the distribution: small where few pages have most of the accesses, large where all are alike.
    shape: f64,
    /// The shape that is most likely.
    likely: f64,
}

/// The shape before faults are known: rates are distributed exponentially.
const SHAPE: f64 = 1.0;
/// Faults that this guess counts for.
const GUESSED: f64 = 20.0;
/// Standard errors of the share of early faults within which pages are taken to be alike.
const SURE: f64 = 2.0;
/// Between one page of a hundred with all accesses, and pages that are alike.
const SHAPES: [f64; 2] = [0.01, 100.0];
/// Counts are forgotten within this long.
const FORGET_S: f64 = 20.0;

impl Default for Rates {
    fn default() -> Self {
        Self {
            mean: 0.0,
            sampled: 0.0,
            early: 0.0,
            fresh: 0.0,
            early_s: 0.0,
            shape: SHAPE,
            likely: SHAPE,
        }
    }
}

impl Rates {
    pub(super) fn sampled(&mut self) {
        self.fresh += 1.0;
    }

    pub(super) fn fault(&mut self, latency_s: f64) {
        if latency_s < self.early_s {
            self.early += 1.0;
        }
    }

    /// Accesses in a second that are expected of a page that faulted this long after it was unmapped.
    pub(super) fn expected(&self, latency_s: f64) -> f64 {
        (self.shape + 1.0) / (self.shape / self.mean.max(1e-9) + latency_s.max(1e-6))
    }

    /// The share of pages that have all accesses, if rates have the variance of the distribution and a page either is
    /// accessed as often as others or is not.
    pub(super) fn hot(&self) -> Option<f64> {
        let share = self.likely / (1.0 + self.likely);
        let hot = if share > 1.0 - ALIKE { 1.0 } else { share };
        (self.sampled > GUESSED).then_some(hot)
    }

    /// Whether pages may all be alike, as far as samples say.
    pub(super) fn may_be_alike(&self) -> bool {
        self.sampled <= GUESSED || self.shape / (1.0 + self.shape) > 1.0 - ALIKE
    }

    /// An interval in which a page was accessed this often in a second.
    pub(super) fn observe(&mut self, mean: f64, interval_s: f64) {
        let keeps = (-interval_s / FORGET_S).exp();
        self.sampled *= keeps;
        self.early *= keeps;
        // What was counted early was so by the mean before.
        let along = self.mean * self.early_s;
        let share = |shape: f64| 1.0 - (1.0 + along / shape).powf(-shape);
        let counted = self.sampled + GUESSED;
        let seen = (self.early + GUESSED * share(SHAPE)) / counted;
        // The share of early faults rises with the shape.
        let shape_of = |seen: f64| {
            let [mut low, mut high] = SHAPES;
            for _ in 0..12 {
                let middle = (low * high).sqrt();
                match share(middle) < seen {
                    true => low = middle,
                    false => high = middle,
                }
            }
            (low * high).sqrt()
        };
        self.likely = shape_of(seen);
        // A swap costs for certain and gains only if pages differ: they are as alike as the few samples leave possible.
        self.shape = shape_of(seen + SURE * (seen * (1.0 - seen) / counted).sqrt());
        self.sampled += std::mem::take(&mut self.fresh);
        self.mean = mean;
        self.early_s = (1.0 / mean.max(1e-9)).min(interval_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Draws;

    /// Pages of which a share has all accesses: 10 in a second on average, sampled for 20 s.
    fn seen(share: f64) -> Rates {
        let (mut rates, mut draws) = (Rates::default(), Draws::new(1));
        for _ in 0..80 {
            rates.observe(10.0, 0.25);
            for _ in 0..500 {
                rates.sampled();
                if draws.unit() <= share {
                    rates.fault(draws.exponential() * share / 10.0);
                }
            }
        }
        rates
    }

    #[test]
    fn a_fault_says_little_of_pages_that_are_alike_and_much_of_others() {
        let (alike, few) = (seen(1.0), seen(0.05));
        for latency in [0.001, 0.1, 0.5] {
            let expected = alike.expected(latency);
            assert!((expected / 10.0 - 1.0).abs() < 0.2, "{expected} {alike:?}");
        }
        // Those with accesses have 200 in a second each.
        assert!((100.0..400.0).contains(&few.expected(0.005)), "{few:?}");
        assert!(few.expected(1.0) < 10.0, "{few:?}");
    }
}
