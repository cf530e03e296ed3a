//! Pauses between lines, timed by the processor's counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weir_model::tenant::Arrivals;
use weir_model::units::Nanos;

use crate::clock::{self, Clock};

/// Most lines between two pauses: few enough that memory sees a steady stream.
const BLOCK_LINES: f64 = 16.0;
/// In a shorter pause most of the time is the reading of the counter, so lines share one.
const SHORTEST: Nanos = Nanos(200.0);

/// What limits a thread: whether it may run at all, and in which part of each period.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Whether anything limits it.
    limited: AtomicBool,
    closed: AtomicBool,
    /// Nanoseconds of each period in which it may run; all if the period is zero.
    open: AtomicU64,
    period: AtomicU64,
}

/// The longest sleep of a thread that may not run: it has to hear of the end.
const LONGEST_WAIT: u64 = 1_000_000;

impl Gate {
    /// Lets the thread run, or not.
    pub fn close(&self, closed: bool) {
        self.closed.store(closed, Ordering::Relaxed);
        self.update();
    }

    /// Lets the thread run for a part of each period, from its start on.
    pub fn share(&self, share: f64, period: Nanos) {
        let period = period.get() as u64;
        self.open
            .store((share * period as f64) as u64, Ordering::Relaxed);
        let period = if share < 1.0 { period } else { 0 };
        self.period.store(period, Ordering::Relaxed);
        self.update();
    }

    fn update(&self) {
        let closed = self.closed.load(Ordering::Relaxed);
        let limited = closed || self.period.load(Ordering::Relaxed) > 0;
        self.limited.store(limited, Ordering::Relaxed);
    }

    /// Waits until the thread may run, or until the stop flag is up.
    #[cold]
    fn wait(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let period = self.period.load(Ordering::Relaxed);
            let left = match period {
                _ if self.closed.load(Ordering::Relaxed) => LONGEST_WAIT,
                0 => return,
                // All threads share one clock, and so one period.
                _ => match clock::raw_nanos() % period {
                    at if at < self.open.load(Ordering::Relaxed) => return,
                    at => period - at,
                },
            };
            std::thread::sleep(Duration::from_nanos(left.min(LONGEST_WAIT)));
        }
    }
}

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
    /// Whether the time that lines took is a part of their pause.
    open: bool,
    /// The end of the last pause, if there was one.
    since: Option<u64>,
    gate: Arc<Gate>,
}

impl Pacer {
    /// A pause of `pause` for each line; zero for none.
    pub fn new(pause: Nanos, arrivals: Arrivals, gate: Arc<Gate>) -> Self {
        let clock = Clock::best();
        let block = (SHORTEST.get() / pause.get().max(1e-3)).clamp(1.0, BLOCK_LINES);
        Self {
            clock,
            per_line: clock.ticks(pause),
            block: block as usize,
            owed: 0.0,
            open: arrivals == Arrivals::Open,
            since: None,
            gate,
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
        if self.gate.limited.load(Ordering::Relaxed) {
            self.gate.wait(stop);
            // Nothing was due while the thread might not run.
            self.since = None;
        }
    }

    fn spend(&mut self, lines: usize, stop: &AtomicBool) {
        let called = self.per_line * lines as f64;
        self.owed += called;
        let mut now = self.clock.glance();
        let began = self.since.filter(|_| self.open).unwrap_or(now);
        let mut spent = now.saturating_sub(began) as f64;
        while spent < self.owed && !stop.load(Ordering::Relaxed) {
            now = self.clock.glance();
            spent = now.saturating_sub(began) as f64;
        }
        self.since = Some(now);
        self.owed -= spent;
        if !self.open {
            // A thread that lost its processor in the meantime does not make up for it in a burst.
            self.owed = self.owed.max(-called);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pause_costs_no_reading_and_leaves_blocks_as_they_are() {
        let mut pacer = Pacer::new(Nanos(0.0), Arrivals::Closed, Arc::default());
        assert_eq!(pacer.lines(1024), 1024);
        pacer.rest(1 << 40, &AtomicBool::new(false));
    }

    #[test]
    fn short_pauses_are_shared_by_lines_and_long_ones_are_not() {
        assert_eq!(
            Pacer::new(Nanos(5.0), Arrivals::Closed, Arc::default()).lines(1024),
            16
        );
        assert_eq!(
            Pacer::new(Nanos(50.0), Arrivals::Closed, Arc::default()).lines(1024),
            4
        );
        assert_eq!(
            Pacer::new(Nanos(5000.0), Arrivals::Closed, Arc::default()).lines(1024),
            1
        );
        assert_eq!(
            Pacer::new(Nanos(5.0), Arrivals::Closed, Arc::default()).lines(3),
            3
        );
    }

    #[test]
    fn rests_take_what_was_called_for_together() {
        let (clock, stop) = (Clock::best(), AtomicBool::new(false));
        let mut pacer = Pacer::new(Nanos(100.0), Arrivals::Closed, Arc::default());
        let began = clock.start();
        for _ in 0..10_000 {
            pacer.rest(2, &stop);
        }
        let took = clock.time(clock.stop() - began);
        // Never less; how much more depends on the machine.
        assert!(took.get() >= 0.98 * 2e6, "{took}");
    }

    #[test]
    fn lines_that_were_late_shorten_the_rests_after_them_at_a_fixed_rate_alone() {
        let (clock, stop) = (Clock::best(), AtomicBool::new(false));
        for (arrivals, least) in [(Arrivals::Open, 4e6), (Arrivals::Closed, 6e6)] {
            let mut pacer = Pacer::new(Nanos(1e6), arrivals, Arc::default());
            let began = clock.start();
            pacer.rest(1, &stop);
            // Memory was slow for two lines.
            std::thread::sleep(Duration::from_millis(2));
            for _ in 0..3 {
                pacer.rest(1, &stop);
            }
            let took = clock.time(clock.stop() - began);
            // Never less; how much more depends on the machine.
            assert!(took.get() >= 0.98 * least, "{arrivals}: {took}");
        }
        let mut pacer = Pacer::new(Nanos(1e6), Arrivals::Open, Arc::default());
        pacer.rest(1, &stop);
        std::thread::sleep(Duration::from_millis(20));
        let before = pacer.since;
        pacer.rest(1, &stop);
        assert!(
            pacer.owed <= -pacer.clock.ticks(Nanos(17e6)),
            "{}",
            pacer.owed
        );
        assert!(pacer.since > before);
    }

    #[test]
    fn a_stop_ends_a_rest_of_any_length() {
        let mut pacer = Pacer::new(Nanos(1e18), Arrivals::Closed, Arc::default());
        pacer.rest(1, &AtomicBool::new(true));
    }

    #[test]
    fn a_limited_thread_waits_for_its_part_of_the_period_and_ends_when_asked() {
        let (gate, stop) = (Arc::new(Gate::default()), AtomicBool::new(false));
        let period = 4_000_000;
        gate.share(0.25, Nanos(period as f64));
        let mut pacer = Pacer::new(Nanos(0.0), Arrivals::Closed, Arc::clone(&gate));
        let outside = (0..200).filter(|_| {
            pacer.rest(1, &stop);
            clock::raw_nanos() % period > period / 2
        });
        // A thread that loses its processor just then is rare.
        assert!(outside.count() < 100);
        gate.close(true);
        gate.share(1.0, Nanos(period as f64));
        gate.close(false);
        pacer.rest(1, &stop);
        gate.close(true);
        pacer.rest(1, &AtomicBool::new(true));
    }
}
