//! Caption (Sun et al., MICRO 2023, Algorithm 1): the share of new pages on the slow tier climbs towards throughput.

use super::{Placing, Policy, Seen};
use crate::tier::Tier;

/// Ten pages on the fast tier to m on the slow one. m changes by a step; the step is halved and turned round when
/// throughput has fallen. Only new pages are placed by it.
#[derive(Debug, Clone, Copy)]
pub struct Caption {
    slow: u64,
    step: i64,
    before: Option<f64>,
    /// Pages that were placed, and their number at the last change.
    placed: u64,
    placed_before: u64,
    since_s: f64,
    accesses: f64,
}

/// The weight of the fast tier (the authors' code).
const FAST: u64 = 10;
/// Bounds of m (the authors' code): 9 to 67 % of pages.
const RANGE: [i64; 2] = [1, 20];
const FIRST_STEP: i64 = 3;
/// A change of throughput by less keeps m. The authors' 0.2 is of a value around 50.
const DEAD_BAND: f64 = 0.004;
/// More than 20 samples, one in a second, are needed for a change (the authors' code).
const EVERY_S: f64 = 21.0;

impl Default for Caption {
    fn default() -> Self {
        Self {
            slow: 1,
            step: FIRST_STEP,
            before: None,
            placed: 0,
            placed_before: 0,
            since_s: 0.0,
            accesses: 0.0,
        }
    }
}

impl Caption {
    /// Takes a throughput, after pages were placed.
    fn tune(&mut self, now: f64) {
        let step = match self.before {
            Some(before) if (now - before).abs() < DEAD_BAND * before => {
                self.step = self.step.signum();
                self.before = Some(now);
                return;
            }
            // The step is cut off towards zero, and at least one.
            Some(before) if now < before => match -self.step / 2 {
                0 => -self.step.signum(),
                half => half,
            },
            _ => self.step,
        };
        let [low, high] = RANGE;
        self.slow = (self.slow as i64 + step).clamp(low, high) as u64;
        (self.step, self.before) = (step, Some(now));
    }
}

impl Policy for Caption {
    fn place(&mut self, page: &Placing) -> Tier {
        self.placed += 1;
        match page.nth % (FAST + self.slow) < FAST {
            true => Tier::Fast,
            false => Tier::Slow,
        }
    }

    fn observe(&mut self, seen: &Seen<'_>) {
        self.since_s += seen.interval_s;
        let per_s: f64 = seen.regions.iter().flat_map(|r| r.per_s).sum();
        self.accesses += per_s * seen.interval_s;
        if self.since_s < EVERY_S {
            return;
        }
        let throughput = self.accesses / self.since_s;
        (self.since_s, self.accesses) = (0.0, 0.0);
        // History goes on only where pages were placed by the last ratio.
        if self.placed > self.placed_before {
            self.placed_before = self.placed;
            self.tune(throughput);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_takes_the_path_of_the_paper_s_figure_12() {
        let mut caption = Caption::default();
        let mut path = vec![caption.slow];
        // Better, better, worse, better.
        for now in [1.0, 2.0, 1.5, 2.5] {
            caption.tune(now);
            path.push(caption.slow);
        }
        assert_eq!(path, [1, 4, 7, 6, 5]);
    }
}
