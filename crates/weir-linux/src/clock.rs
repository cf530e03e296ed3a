//! Time: the processor's own counter, calibrated against the kernel's raw clock, or that clock.

use std::sync::OnceLock;
use std::time::Duration;

use weir_model::units::Nanos;

/// How long the counter is compared with the kernel's clock.
const CALIBRATION_NS: u64 = 10_000_000;

/// Attempts to read both clocks at one moment; the closest pair counts.
const ATTEMPTS: usize = 16;

/// A source of time that is cheap to read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clock {
    /// The invariant time-stamp counter (x86) or the generic timer (Arm).
    Counter {
        /// Nanoseconds in a tick.
        tick: f64,
    },
    /// `CLOCK_MONOTONIC_RAW`: a call, and therefore accurate to some tens of nanoseconds.
    Raw,
}

impl Clock {
    /// The best clock of this machine, calibrated once for each process.
    pub fn best() -> Self {
        static BEST: OnceLock<Clock> = OnceLock::new();
        *BEST.get_or_init(Self::calibrate)
    }

    /// Compares the counter with the kernel's clock. Takes about ten milliseconds.
    pub fn calibrate() -> Self {
        if !counter_is_invariant() {
            return Clock::Raw;
        }
        let (ticks0, ns0) = both();
        while raw_nanos().saturating_sub(ns0) < CALIBRATION_NS {
            std::thread::yield_now();
        }
        let (ticks1, ns1) = both();
        let ticks = ticks1.saturating_sub(ticks0);
        if ticks == 0 {
            return Clock::Raw;
        }
        Clock::Counter {
            tick: (ns1 - ns0) as f64 / ticks as f64,
        }
    }

    /// The time now, in ticks, after everything before it in the program has completed.
    #[inline(always)]
    pub fn start(self) -> u64 {
        match self {
            Clock::Counter { .. } => counter::before(),
            Clock::Raw => raw_nanos(),
        }
    }

    /// The time now, in ticks, after everything before it has completed and before anything after it starts.
    #[inline(always)]
    pub fn stop(self) -> u64 {
        match self {
            Clock::Counter { .. } => counter::after(),
            Clock::Raw => raw_nanos(),
        }
    }

    /// The approximate time now, in ticks: older and younger accesses may be outstanding. For pauses that
    /// must not delay anything.
    #[inline(always)]
    pub fn glance(self) -> u64 {
        match self {
            Clock::Counter { .. } => counter::glance(),
            Clock::Raw => raw_nanos(),
        }
    }

    /// A length of time in ticks.
    pub fn ticks(self, time: Nanos) -> f64 {
        match self {
            Clock::Counter { tick } => time.get() / tick,
            Clock::Raw => time.get(),
        }
    }

    /// A number of ticks as time.
    #[inline]
    pub fn time(self, ticks: u64) -> Nanos {
        match self {
            Clock::Counter { tick } => Nanos(ticks as f64 * tick),
            Clock::Raw => Nanos(ticks as f64),
        }
    }

    /// In words, for the notes of a run.
    pub fn describe(self) -> String {
        match self {
            Clock::Counter { tick } => {
                format!("{} at {:.4} GHz", counter::NAME, 1.0 / tick)
            }
            Clock::Raw => "timed with CLOCK_MONOTONIC_RAW".to_owned(),
        }
    }
}

/// Shares and times by which counter and kernel may differ over a run: the errors of calibration and reading.
/// A step of either clock is far larger.
const TOLERANCE: (f64, f64) = (0.01, 100_000.0);

/// Counter and kernel's clock at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    ticks: u64,
    ns: u64,
}

impl Moment {
    /// Both clocks now, on the current processor.
    pub fn now(clock: Clock) -> Self {
        let (ticks, ns) = match clock {
            Clock::Counter { .. } => both(),
            Clock::Raw => (0, raw_nanos()),
        };
        Self { ticks, ns }
    }

    /// Whether both clocks advanced together since `began`.
    ///
    /// # Errors
    /// One ran backwards, stepped, or ticks at another rate than when it was calibrated: how far they
    /// advanced.
    pub fn check_since(self, began: Self, clock: Clock) -> Result<(), String> {
        if self.ns < began.ns {
            return Err("CLOCK_MONOTONIC_RAW ran backwards".to_owned());
        }
        let Clock::Counter { .. } = clock else {
            return Ok(());
        };
        let Some(ticks) = self.ticks.checked_sub(began.ticks) else {
            return Err("the processor's counter ran backwards".to_owned());
        };
        let (counted, raw) = (clock.time(ticks), Nanos((self.ns - began.ns) as f64));
        let (share, least) = TOLERANCE;
        if (counted.get() - raw.get()).abs() > share * raw.get() + least {
            return Err(format!(
                "the processor's counter advanced by {counted} while CLOCK_MONOTONIC_RAW advanced by \
                 {raw}: one of them stepped, or the rate of the counter changed"
            ));
        }
        Ok(())
    }
}

/// A moment by the kernel's clocks since the system started (clock_gettime(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uptime {
    /// With the time for which the system was suspended (`CLOCK_BOOTTIME`).
    pub all: Duration,
    /// Without that time (`CLOCK_MONOTONIC`).
    pub awake: Duration,
}

/// A shorter difference of the two clocks is the time between reading one and the other; suspending takes longer.
const LEAST_SUSPENDED: Duration = Duration::from_millis(10);

impl Uptime {
    /// Now.
    pub fn now() -> Self {
        let read = || {
            let awake = read_clock(libc::CLOCK_MONOTONIC);
            let all = read_clock(libc::CLOCK_BOOTTIME);
            let width = read_clock(libc::CLOCK_MONOTONIC).saturating_sub(awake);
            (width, all, awake)
        };
        // The kernel may take the processor away between two readings.
        let first = read();
        let (_, all, awake) = (1..ATTEMPTS).fold(first, |best, _| best.min(read()));
        Self {
            all: Duration::from_nanos(all),
            awake: Duration::from_nanos(awake),
        }
    }

    /// The time since then, suspended or not.
    pub fn since(self, began: Self) -> Duration {
        self.all.saturating_sub(began.all)
    }

    /// For how long the system was suspended since then, if it was.
    pub fn suspended_since(self, began: Self) -> Option<Duration> {
        let awake = self.awake.saturating_sub(began.awake);
        let suspended = self.since(began).saturating_sub(awake);
        (suspended >= LEAST_SUSPENDED).then_some(suspended)
    }
}

/// The kernel's clock that is never slewed, in nanoseconds.
pub fn raw_nanos() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC_RAW)
}

/// Time that the calling thread has spent on a processor, in nanoseconds.
pub fn thread_nanos() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Sleeps for this long, or until this thread has taken a signal.
pub fn doze(time: Duration) {
    let asked = libc::timespec {
        // A longer sleep ends earlier than requested.
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: the pointer is to a timespec on this stack, and nothing is to be written.
    unsafe { libc::nanosleep(&raw const asked, std::ptr::null_mut()) };
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec on this stack. These clocks exist in every Linux that
    // Rust supports, so that the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// Both clocks at one moment: the middle of the shortest of some readings.
fn both() -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..ATTEMPTS {
        let before = counter::before();
        let ns = raw_nanos();
        let after = counter::after();
        let width = after.saturating_sub(before);
        if width < best.0 {
            best = (width, before + width / 2, ns);
        }
    }
    (best.1, best.2)
}

#[cfg(target_arch = "x86_64")]
fn counter_is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    // AMD64 and Intel 64 manuals: leaf 8000_0007h, EDX bit 8: TscInvariant.
    let advanced_power = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= advanced_power && __cpuid(advanced_power).edx >> 8 & 1 == 1
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};

    pub(super) const NAME: &str = "timed with the invariant TSC";

    #[inline(always)]
    pub(super) fn before() -> u64 {
        // SAFETY: lfence and rdtsc are in every x86-64 processor and touch no memory. The fence
        // before makes older instructions finish, the one after holds younger ones back.
        unsafe {
            _mm_lfence();
            let ticks = _rdtsc();
            _mm_lfence();
            ticks
        }
    }

    #[inline(always)]
    pub(super) fn glance() -> u64 {
        // SAFETY: rdtsc is in every x86-64 processor and touches no memory.
        unsafe { _rdtsc() }
    }

    #[inline(always)]
    pub(super) fn after() -> u64 {
        let mut processor = 0;
        // SAFETY: rdtscp is in every x86-64 processor with an invariant counter, which is the only
        // case in which this is called; it writes to the local variable alone.
        unsafe {
            let ticks = __rdtscp(&raw mut processor);
            _mm_lfence();
            ticks
        }
    }
}

/// The architecture requires one rate of the generic timer.
#[cfg(target_arch = "aarch64")]
fn counter_is_invariant() -> bool {
    true
}

#[cfg(target_arch = "aarch64")]
mod counter {
    use std::arch::asm;

    pub(super) const NAME: &str = "timed with the generic timer (CNTVCT_EL0)";

    #[inline(always)]
    pub(super) fn before() -> u64 {
        let ticks: u64;
        // SAFETY: reads the virtual count, which Linux lets programs do; the barriers keep older
        // instructions before it and younger ones after it.
        unsafe {
            asm!("dsb sy", "isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack))
        };
        ticks
    }

    #[inline(always)]
    pub(super) fn glance() -> u64 {
        let ticks: u64;
        // SAFETY: reads the virtual count, which Linux lets programs do.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nostack, nomem)) };
        ticks
    }

    #[inline(always)]
    pub(super) fn after() -> u64 {
        before()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_agrees_with_the_kernels_clock_within_one_percent() {
        let clock = Clock::calibrate();
        let (ns, start) = (raw_nanos(), clock.start());
        while raw_nanos() - ns < 50_000_000 {
            std::hint::spin_loop();
        }
        let (ticks, elapsed) = (clock.stop() - start, raw_nanos() - ns);
        let ratio = clock.time(ticks).get() / elapsed as f64;
        assert!((ratio - 1.0).abs() < 0.01, "{clock:?}: {ratio}");
    }

    const MILLISECOND: u64 = 1_000_000;

    /// A counter of 2 GHz.
    const COUNTER: Clock = Clock::Counter { tick: 0.5 };

    fn moment(ticks: u64, ns: u64) -> Moment {
        Moment { ticks, ns }
    }

    #[test]
    fn clocks_of_this_machine_go_on_together() {
        let clock = Clock::best();
        let began = Moment::now(clock);
        while raw_nanos() - began.ns < 5 * MILLISECOND {
            std::hint::spin_loop();
        }
        assert_eq!(Moment::now(clock).check_since(began, clock), Ok(()));
    }

    #[test]
    fn a_clock_that_steps_stops_or_runs_backwards_is_reported() {
        let began = moment(1 << 40, 1 << 40);
        let after = |ticks: i64, ns: i64| {
            let to = moment(
                began.ticks.wrapping_add_signed(ticks),
                began.ns.wrapping_add_signed(ns),
            );
            to.check_since(began, COUNTER)
        };
        let window = 20 * MILLISECOND as i64;
        assert_eq!(after(2 * window, window), Ok(()));
        assert_eq!(after(2 * window + 1000, window), Ok(()));
        assert_eq!(after(0, 0), Ok(()));
        for (ticks, ns, said) in [
            (-1, window, "counter ran backwards"),
            (2 * window, -1, "RAW ran backwards"),
            (0, window, "stepped"),
            (window, window, "rate"),
            (2 * window, 11 * window, "stepped"),
        ] {
            let why = after(ticks, ns).unwrap_err();
            assert!(why.contains(said), "{why}");
        }
        assert_eq!(moment(0, 5).check_since(moment(9, 4), Clock::Raw), Ok(()));
    }

    proptest::proptest! {
        #[test]
        fn any_two_moments_are_judged(a: (u64, u64), b: (u64, u64), raw: bool) {
            let clock = if raw { Clock::Raw } else { COUNTER };
            let judged = moment(b.0, b.1).check_since(moment(a.0, a.1), clock);
            proptest::prop_assert!(judged.is_ok() || b != a);
            // A pair that is sound in one order is never sound in the other order, except for equal moments.
            if judged.is_ok() && b.1 > a.1 {
                proptest::prop_assert!(moment(a.0, a.1).check_since(moment(b.0, b.1), clock).is_err());
            }
        }
    }

    #[test]
    fn a_suspended_system_is_older_than_it_was_awake() {
        let now = Uptime::now();
        assert!(now.all >= now.awake);
        let later = |all_ms, awake_ms| Uptime {
            all: now.all + Duration::from_millis(all_ms),
            awake: now.awake + Duration::from_millis(awake_ms),
        };
        assert_eq!(later(250, 249).suspended_since(now), None);
        let resumed = later(600_250, 250);
        assert_eq!(resumed.since(now), Duration::from_millis(600_250));
        let suspended = Duration::from_secs(600);
        assert_eq!(resumed.suspended_since(now), Some(suspended));
        assert_eq!(now.suspended_since(resumed), None);
    }

    #[test]
    fn time_does_not_run_backwards() {
        for clock in [Clock::best(), Clock::Raw] {
            let mut last = clock.start();
            for _ in 0..10_000 {
                let now = clock.stop();
                assert!(now >= last);
                last = now;
            }
        }
    }
}
