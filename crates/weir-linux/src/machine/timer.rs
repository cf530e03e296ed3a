//! The cost of reading the clock, measured on the same processor.

use weir_model::units::Nanos;

use crate::clock::Clock;
use weir_loops::kernels;

/// Readings that measure the cost of the timer.
const READINGS: usize = 2001;
/// Hops that measure the cost of a hop in the first-level cache.
const L1_HOPS: usize = 4096;

/// A clock and the cost of timing with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Timer {
    pub clock: Clock,
    /// The cost that is subtracted from a time.
    pub cost: Nanos,
    /// The range of nine in ten readings of that cost.
    pub spread: (Nanos, Nanos),
    /// The smallest difference between two readings.
    pub step: Nanos,
}

impl Timer {
    /// Calls `nothing`, a reading in ticks of everything around an access without the access, some thousand
    /// times.
    ///
    /// The cost is the mean without the tenth at either end, and not the median: that would be one of the
    /// clock's own steps, which are 10 ns on some machines.
    pub fn of(clock: Clock, mut nothing: impl FnMut() -> u64) -> Self {
        let mut readings: Vec<u64> = (0..READINGS).map(|_| nothing()).collect();
        readings.sort_unstable();
        let tenth = READINGS / 10;
        let middle = &readings[tenth..READINGS - tenth];
        let step = readings
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .filter(|&step| step > 0)
            .min();
        Self {
            clock,
            cost: clock.time(middle.iter().sum()) / middle.len() as f64,
            spread: (
                clock.time(readings[READINGS / 20]),
                clock.time(readings[READINGS - 1 - READINGS / 20]),
            ),
            step: clock.time(step.unwrap_or(1)),
        }
    }

    /// Takes empty pairs of readings.
    pub fn alone(clock: Clock) -> Self {
        Self::of(clock, || {
            let began = clock.start();
            clock.stop().saturating_sub(began)
        })
    }

    /// Measures what surrounds a hop without the hop: a hop on a line that points at itself, and so is in the
    /// first-level cache, minus the cost of such a hop in a chain of them.
    pub fn around_a_hop(clock: Clock) -> Self {
        let mut own: *mut u8 = std::ptr::null_mut();
        let itself: *mut *mut u8 = &raw mut own;
        let mut line: *mut u8 = itself.cast();
        // SAFETY: the pointer is on this stack, and nothing else uses it.
        unsafe { itself.write(line) };
        let timer = Self::of(clock, || {
            let began = clock.start();
            // SAFETY: the line points at itself.
            line = unsafe { kernels::hop(line) };
            clock.stop().saturating_sub(began)
        });
        let best = (0..16)
            .map(|_| {
                let began = clock.start();
                // SAFETY: the line points at itself.
                line = unsafe { kernels::hops(line, L1_HOPS / 8) };
                clock.stop().saturating_sub(began)
            })
            .min();
        timer.less(clock.time(best.unwrap_or(0)) / L1_HOPS as f64)
    }

    /// The same with a part of the cost returned, because that part belongs to the timed access.
    pub fn less(self, part: Nanos) -> Self {
        Self {
            cost: (self.cost - part).max(Nanos(0.0)),
            ..self
        }
    }

    /// A number of ticks as time, without the cost of the timer, and never negative.
    pub fn net(&self, ticks: u64) -> Nanos {
        (self.clock.time(ticks) - self.cost).max(Nanos(0.0))
    }

    /// In words, for the notes of a run.
    pub fn describe(&self) -> String {
        format!(
            "timer {:.1} (90 % of readings {:.1} to {:.1}), subtracted; steps of {:.1}",
            self.cost, self.spread.0, self.spread.1, self.step
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_lies_within_its_spread_and_a_net_time_is_never_negative() {
        for clock in [Clock::best(), Clock::Raw] {
            let timer = Timer::alone(clock);
            assert!(timer.spread.0 <= timer.spread.1, "{timer:?}");
            assert!(timer.cost <= timer.spread.1.max(timer.step), "{timer:?}");
            assert!(timer.step.get() > 0.0);
            assert_eq!(timer.net(0), Nanos(0.0));
            let text = timer.describe();
            assert!(
                text.contains("subtracted") && text.contains("steps"),
                "{text}"
            );
        }
    }

    #[test]
    fn one_slow_reading_in_a_hundred_changes_nothing() {
        let mut turn = 0;
        let timer = Timer::of(Clock::Raw, || {
            turn += 1;
            if turn % 100 == 0 { 1_000_000 } else { 20 }
        });
        assert_eq!(
            (timer.cost, timer.spread),
            (Nanos(20.0), (Nanos(20.0), Nanos(20.0)))
        );
        assert_eq!(timer.less(Nanos(5.0)).net(30), Nanos(15.0));
    }
}
