//! Pauses between lines, timed by the processor's counter.

use std::sync::atomic::{AtomicBool, Ordering};

use weir_model::units::Nanos;

use crate::clock::Clock;

/// Most lines between two pauses: few enough that memory sees a steady stream.
const BLOCK_LINES: f64 = 16.0;
/// In a shorter pause most of the time is the reading of the counter, so lines share one.
const SHORTEST: Nanos = Nanos(200.0);

/// Pauses a thread after every few lines.
#[derive(Debug, Clone)]
pub(super) struct Pacer {
    clock: Clock,
    /// Ticks of pause for each line.
    per_line: f64,
    /// Lines between two pauses.
    block: usize,
    /// Ticks of pause that are due; below zero if the last pause took too long.
    owed: f64,
}

impl Pacer {
    /// A pause of `pause` for each line; zero for none.
    pub fn new(pause: Nanos) -> Self {
        let clock = Clock::best();
        let block = (SHORTEST.get() / pause.get().max(1e-3)).clamp(1.0, BLOCK_LINES);
        Self {
            clock,
            per_line: clock.ticks(pause),
            block: block as usize,
            owed: 0.0,
        }
    }

    /// Lines before the next pause, if `usual` lines are the number without pauses.
    pub fn lines(&self, usual: usize) -> usize {
        if self.per_line > 0.0 {
            usual.min(self.block)
        } else {
            usual
        }
    }

    /// Pauses for `lines` lines, or until the stop flag is set. If one pause is too long, the next is
    /// shorter. The counter is read without fences: outstanding accesses continue.
    #[inline(always)]
    pub fn rest(&mut self, lines: usize, stop: &AtomicBool) {
        if self.per_line > 0.0 {
            self.spend(lines, stop);
        }
    }

    fn spend(&mut self, lines: usize, stop: &AtomicBool) {
        let called = self.per_line * lines as f64;
        self.owed += called;
        let began = self.clock.glance();
        let mut spent = 0.0;
        while spent < self.owed && !stop.load(Ordering::Relaxed) {
            spent = self.clock.glance().saturating_sub(began) as f64;
        }
        // A thread that lost its processor in the meantime does not make up for it in a burst.
        self.owed = (self.owed - spent).max(-called);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pause_costs_no_reading_and_leaves_blocks_as_they_are() {
        let mut pacer = Pacer::new(Nanos(0.0));
        assert_eq!(pacer.lines(1024), 1024);
        pacer.rest(1 << 40, &AtomicBool::new(false));
    }

    #[test]
    fn short_pauses_are_shared_by_lines_and_long_ones_are_not() {
        assert_eq!(Pacer::new(Nanos(5.0)).lines(1024), 16);
        assert_eq!(Pacer::new(Nanos(50.0)).lines(1024), 4);
        assert_eq!(Pacer::new(Nanos(5000.0)).lines(1024), 1);
        assert_eq!(Pacer::new(Nanos(5.0)).lines(3), 3);
    }

    #[test]
    fn rests_take_what_was_called_for_together() {
        let (clock, stop) = (Clock::best(), AtomicBool::new(false));
        let mut pacer = Pacer::new(Nanos(100.0));
        let began = clock.start();
        for _ in 0..10_000 {
            pacer.rest(2, &stop);
        }
        let took = clock.time(clock.stop() - began);
        // Never less; how much more depends on the machine.
        assert!(took.get() >= 0.98 * 2e6, "{took}");
    }

    #[test]
    fn a_stop_ends_a_rest_of_any_length() {
        let mut pacer = Pacer::new(Nanos(1e18));
        pacer.rest(1, &AtomicBool::new(true));
    }
}
