//! The counts and latencies of a running thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use weir_model::latency::LatencyHistogram;
use weir_model::units::Nanos;

use super::timer::Timer;
use crate::pin;

/// A sample of many accesses that took longer than this is checked: did something else run on the processor?
const SUSPECT: Nanos = Nanos(50_000.0);
/// The same for a sample of one access, on which a short interruption has more effect.
const SUSPECT_ALONE: Nanos = Nanos(3_000.0);
/// Samples that are kept before they are recorded, so that the memory of the distribution does not disturb
/// the measured lines after each sample.
const RING: usize = 256;

/// The progress of a thread while it runs. Alone on its cache lines, two of them because a prefetcher fetches
/// pairs.
#[repr(align(128))]
pub(super) struct Progress {
    pub lines: AtomicU64,
    pub latency: Mutex<LatencyHistogram>,
}

impl Progress {
    pub fn new() -> Self {
        Self {
            lines: AtomicU64::new(0),
            latency: Mutex::new(LatencyHistogram::new()),
        }
    }

    pub fn add(&self, lines: usize) {
        // There is only one writer, so a load and a store are enough.
        let before = self.lines.load(Ordering::Relaxed);
        self.lines.store(before + lines as u64, Ordering::Relaxed);
    }

    /// Takes the recorded distribution and leaves an empty one; the new one is made before the lock is taken,
    /// so that the thread is not delayed.
    pub fn take_latencies(&self) -> LatencyHistogram {
        let mut latencies = LatencyHistogram::new();
        let mut shared = self.latency.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *shared, &mut latencies);
        drop(shared);
        latencies
    }
}

/// Samples that say nothing about memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// The kernel ran something else on the processor.
    pub preempted: u64,
    /// The clock ran backwards.
    pub backwards: u64,
}

/// Records samples, except those in which the kernel ran something else on the processor, or the clock ran
/// backwards: they are no latency of memory.
pub(super) struct Recorder<'a> {
    progress: &'a Progress,
    timer: Timer,
    suspect: u64,
    suspect_alone: u64,
    preemptions: i64,
    pub left_out: LeftOut,
}

impl<'a> Recorder<'a> {
    pub fn new(progress: &'a Progress, timer: Timer) -> Self {
        Self {
            progress,
            timer,
            suspect: timer.clock.ticks(SUSPECT) as u64,
            suspect_alone: timer.clock.ticks(SUSPECT_ALONE) as u64,
            preemptions: pin::preemptions(),
            left_out: LeftOut::default(),
        }
    }

    /// A sample over `accesses` accesses together.
    pub fn record(&mut self, began: u64, ended: u64, accesses: usize) {
        self.progress.add(accesses);
        let limit = if accesses == 1 {
            self.suspect_alone
        } else {
            self.suspect
        };
        if let Some(ticks) = self.sound(began, ended, limit) {
            let latency = self.timer.net(ticks) / accesses as f64;
            let mut shared = self.lock();
            shared.record(latency);
        }
    }

    /// Samples of one access each: `sample` returns when one began and ended, `Ring::SIZE` times. They are
    /// kept in a ring of 2 KiB, and recorded when it is full.
    #[inline(always)]
    pub fn record_each(&mut self, mut sample: impl FnMut() -> (u64, u64)) {
        let mut ring = [0; RING];
        let mut kept = 0;
        for _ in 0..RING {
            let (began, ended) = sample();
            if let Some(ticks) = self.sound(began, ended, self.suspect_alone) {
                ring[kept] = ticks;
                kept += 1;
            }
        }
        self.progress.add(RING);
        let mut shared = self.lock();
        for &ticks in &ring[..kept] {
            shared.record(self.timer.net(ticks));
        }
    }

    /// The duration of a sample, unless it says nothing about memory.
    #[inline(always)]
    fn sound(&mut self, began: u64, ended: u64, limit: u64) -> Option<u64> {
        match ended.checked_sub(began) {
            Some(ticks) if ticks <= limit => Some(ticks),
            Some(ticks) => (!self.was_preempted()).then_some(ticks),
            None => {
                self.left_out.backwards += 1;
                None
            }
        }
    }

    #[cold]
    fn was_preempted(&mut self) -> bool {
        let before = std::mem::replace(&mut self.preemptions, pin::preemptions());
        let preempted = self.preemptions != before;
        self.left_out.preempted += u64::from(preempted);
        preempted
    }

    fn lock(&self) -> std::sync::MutexGuard<'a, LatencyHistogram> {
        let progress: &'a Progress = self.progress;
        progress
            .latency
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn timer(cost: f64) -> Timer {
        Timer {
            clock: Clock::Raw,
            cost: Nanos(cost),
            spread: (Nanos(cost), Nanos(cost)),
            step: Nanos(1.0),
        }
    }

    #[test]
    fn every_single_sample_is_recorded_without_the_timer() {
        let progress = Progress::new();
        let mut recorder = Recorder::new(&progress, timer(20.0));
        let mut turn = 0;
        recorder.record_each(|| {
            turn += 1;
            (1000, 1000 + 20 + turn)
        });
        let seen = progress.take_latencies();
        assert_eq!((seen.len(), turn), (RING as u64, RING as u64));
        assert_eq!(seen.buckets()[0].0, Nanos(1.0));
        assert_eq!(progress.lines.load(Ordering::Relaxed), RING as u64);
        assert!(progress.take_latencies().is_empty());
    }

    #[test]
    fn a_clock_that_runs_backwards_gives_no_sample_and_is_counted() {
        let progress = Progress::new();
        let mut recorder = Recorder::new(&progress, timer(0.0));
        recorder.record(500, 400, 8);
        recorder.record(400, 500, 8);
        assert_eq!(recorder.left_out.backwards, 1);
        let seen = progress.take_latencies();
        assert_eq!((seen.len(), seen.mean()), (1, Nanos(12.5)));
        assert_eq!(progress.lines.load(Ordering::Relaxed), 16);
    }

    #[test]
    fn a_long_sample_stays_where_nobody_else_ran() {
        let progress = Progress::new();
        let mut recorder = Recorder::new(&progress, timer(0.0));
        // A preemption between the two readings of the kernel's count is rare.
        for _ in 0..100 {
            recorder.record(0, 60_000, 1);
        }
        let left_out = recorder.left_out.preempted;
        assert_eq!(progress.take_latencies().len() + left_out, 100);
        assert!(left_out < 50, "{left_out}");
    }
}
