//! How long requests take while pages are where they are: what a program that answers them one after the other, in each
//! thread as soon as it has answered the last, would measure.
//!
//! A request computes, waits for its misses, and meets hint faults. How many misses wait on each tier, and how many
//! faults it meets, are Poisson variables; each miss takes the tier's mean latency at its load. So the tail is that of
//! placement and of the kernel's work: single slow answers of a device are not in it.

use weir_model::latency::LatencyHistogram;
use weir_model::units::Nanos;
use weir_model::workload::Spread;

use crate::random::Draws;

/// What an interval offers a request.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moment {
    /// Accesses to memory in it, of all threads.
    pub accesses: f64,
    /// Waits for each tier in an access: its share of accesses, by the accesses that are outstanding at once.
    pub waits: [f64; 2],
    /// Each tier's latency.
    pub latency: [Nanos; 2],
    /// Computing before each access.
    pub compute: Nanos,
    /// Thread time that the kernel's work on pages took.
    pub kernel: Nanos,
    /// Hint faults and pages read back, among which that time is divided.
    pub faults: f64,
}

/// Requests of a workload.
#[derive(Debug, Clone)]
pub struct Requested {
    /// Accesses to memory in a request, in the mean.
    accesses: f64,
    spread: Spread,
    /// One of this many requests is drawn.
    every: Option<f64>,
    draws: Draws,
}

/// Requests that are drawn in the first interval, and about as many in each other one.
const DRAWN: f64 = 256.0;

impl Requested {
    /// Requests with this many accesses to memory in the mean.
    pub fn new(accesses: f64, spread: Spread, seed: u64) -> Self {
        Self {
            accesses,
            spread,
            every: None,
            draws: Draws::new(seed ^ 0x0072_6571_7565_7374),
        }
    }

    /// Draws requests of an interval, and adds their latencies.
    pub fn add(&mut self, of: &Moment, to: &mut LatencyHistogram) {
        let requests = of.accesses / self.accesses;
        if !(requests.is_finite() && requests > 0.0) {
            return;
        }
        let every = *self.every.get_or_insert((requests / DRAWN).max(1.0));
        let faults = of.faults / of.accesses;
        let fault = of.kernel.get() / of.faults.max(1.0);
        // Work that is no thread's fault, as flushes for pages that the kernel's threads move, delays all alike.
        let evenly = if of.faults < 1.0 {
            of.kernel.get() / of.accesses
        } else {
            0.0
        };
        for _ in 0..(requests / every).round() as u64 {
            let length = match self.spread {
                Spread::Fixed => 1.0,
                Spread::Exponential => self.draws.exponential(),
            };
            let accesses = self.accesses * length;
            let mut ns = accesses * (of.compute.get() + evenly);
            for (waits, latency) in of.waits.into_iter().zip(of.latency) {
                ns += self.draws.poisson(accesses * waits) * latency.get();
            }
            ns += self.draws.poisson(accesses * faults) * fault;
            to.record(Nanos(ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn moment(slow: f64) -> Moment {
        Moment {
            accesses: 1e6,
            waits: [(1.0 - slow) / 2.0, slow / 2.0],
            latency: [Nanos(100.0), Nanos(300.0)],
            compute: Nanos(50.0),
            ..Moment::default()
        }
    }

    proptest! {
        #[test]
        fn requests_take_as_long_in_the_mean_as_their_accesses(slow in 0.0f64..1.0, accesses in 1.0f64..200.0) {
            let mut requested = Requested::new(accesses, Spread::Fixed, 1);
            let mut all = LatencyHistogram::new();
            for _ in 0..200 {
                requested.add(&moment(slow), &mut all);
            }
            let mean = all.summary().map_or(0.0, |s| s.mean.get());
            let due = accesses * (50.0 + 100.0 * (1.0 - slow) / 2.0 + 300.0 * slow / 2.0);
            prop_assert!((mean / due - 1.0).abs() < 0.03, "{mean} {due}");
        }

        #[test]
        fn the_tail_is_at_least_the_median_and_faults_lengthen_it(faults in 1e3f64..1e5) {
            let tail = |of: &Moment| {
                let mut requested = Requested::new(40.0, Spread::Fixed, 1);
                let mut all = LatencyHistogram::new();
                requested.add(of, &mut all);
                all.summary().map(|s| (s.p50, s.p99.unwrap_or(s.max)))
            };
            let without = tail(&moment(0.5)).unwrap();
            let with = tail(&Moment { kernel: Nanos(faults * 5000.0), faults, ..moment(0.5) }).unwrap();
            prop_assert!(without.1 >= without.0 && with.1 >= with.0);
            prop_assert!(with.1 >= without.1);
        }
    }

    #[test]
    fn equal_seeds_draw_equal_requests() {
        let draw = |seed| {
            let mut requested = Requested::new(40.0, Spread::Exponential, seed);
            let mut all = LatencyHistogram::new();
            requested.add(&moment(0.3), &mut all);
            all.summary().map(|s| (s.mean, s.p99))
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
