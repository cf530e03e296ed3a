//! How fast slices must be released so that no VM waits for one when it starts (Pond, section 6.5, finding 10).
//!
//! A pool that is as large as its peak has no buffer of free slices but what is not in use. A VM that starts takes free
//! slices; it waits if more slices are still being released than will be left once it has started. A pool releases slices at
//! one speed, in the order in which VMs left. VMs leave at the beginning of a second and start at its end.

use serde::{Deserialize, Serialize};
use weir_model::units::{Bytes, GbPerSec};

/// Speeds that are compared, in MB/s: up to 1 TB/s, three in a decade.
const SPEEDS: [f64; 19] = [
    1.0, 2.0, 5.0, 1e1, 2e1, 5e1, 1e2, 2e2, 5e2, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6,
];
/// The share of starts that must not wait (Pond, section 6.5).
const IN_TIME: f64 = 0.9999;

/// Starts of VMs, and how many of them would wait at each speed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starts {
    all: u64,
    late: [u64; SPEEDS.len()],
}

impl Starts {
    /// A VM that takes nothing from a pool.
    pub fn local(&mut self) {
        self.all += 1;
    }

    /// Adds those of another cluster.
    pub fn add(&mut self, other: &Self) {
        self.all += other.all;
        for (late, more) in self.late.iter_mut().zip(other.late) {
            *late += more;
        }
    }

    /// The least of the speeds at which 99.99 % of the starts do not wait; `None` where none is fast enough, or nothing
    /// starts.
    pub fn needed(&self) -> Option<GbPerSec> {
        let most = (1.0 - IN_TIME) * self.all as f64;
        let enough = |late: &u64| *late as f64 <= most;
        let at = self.late.iter().position(enough)?;
        (self.all > 0).then_some(GbPerSec(SPEEDS[at] / 1000.0))
    }
}

/// What one pool has yet to release at each speed, in MiB.
#[derive(Debug, Clone, Copy, Default)]
pub struct Releasing {
    left: [f64; SPEEDS.len()],
    /// Up to when, in seconds.
    time: f64,
}

impl Releasing {
    /// A VM leaves that had this much of the pool.
    pub fn leaves(&mut self, mib: u64, second: u32) {
        self.until(f64::from(second));
        self.left.iter_mut().for_each(|left| *left += mib as f64);
    }

    /// A VM starts, after which this much of the pool is not in use.
    pub fn starts(&mut self, unused_mib: u64, second: u32, starts: &mut Starts) {
        self.until(f64::from(second) + 1.0);
        starts.all += 1;
        for (late, left) in starts.late.iter_mut().zip(self.left) {
            *late += u64::from(left > unused_mib as f64);
        }
    }

    fn until(&mut self, time: f64) {
        let seconds = time - self.time;
        if seconds <= 0.0 {
            return;
        }
        self.time = time;
        for (left, speed) in self.left.iter_mut().zip(SPEEDS) {
            let released = speed * 1e6 * seconds / Bytes::mib(1).get() as f64;
            *left = (*left - released).max(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A pool of 100 GiB: 60 leave, and 80 more start half a minute later, when 20 are unused after it. So 40 GiB must have
    /// been released in 31 seconds, 1.4 GB/s.
    #[test]
    fn a_start_waits_for_what_is_not_released_in_time() {
        let mut starts = Starts::default();
        let mut pool = Releasing::default();
        pool.leaves(60 << 10, 1000);
        pool.starts(20 << 10, 1030, &mut starts);
        assert_eq!(starts.needed(), Some(GbPerSec(2.0)));
        // Much later nothing is left to release.
        for _ in 0..20_000 {
            pool.starts(0, 100_000, &mut starts);
        }
        assert_eq!(starts.needed(), Some(GbPerSec(0.001)));
        assert_eq!(Starts::default().needed(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// A start waits where more left since some moment than is released since then and unused: the backlog of a queue.
        #[test]
        fn starts_wait_where_a_sum_over_all_moments_says_so(
            events in prop::collection::vec((0..200u32, 1..4000u64, 0..8000u64, prop::bool::ANY), 1..40),
        ) {
            let (mut pool, mut found) = (Releasing::default(), Starts::default());
            let (mut second, mut left) = (0, Vec::new());
            let mut wanted = Starts::default();
            for (after, mib, unused, arrives) in events {
                // The events of a second are in their order: a VM that leaves after one has started is in the next.
                second += after + 1;
                if !arrives {
                    pool.leaves(mib, second);
                    left.push((second, mib));
                    continue;
                }
                pool.starts(unused, second, &mut found);
                wanted.all += 1;
                for (late, speed) in wanted.late.iter_mut().zip(SPEEDS) {
                    *late += u64::from((0..left.len()).any(|from| {
                        let seconds = f64::from(second + 1 - left[from].0);
                        let sum: u64 = left[from..].iter().map(|(_, mib)| mib).sum();
                        sum as f64 - speed * 1e6 * seconds / 1_048_576.0 > unused as f64 + 1e-9
                    }));
                }
            }
            prop_assert_eq!(found, wanted);
            prop_assert!(found.late.is_sorted_by(|a, b| a >= b), "faster is later: {:?}", found.late);
        }
    }
}
