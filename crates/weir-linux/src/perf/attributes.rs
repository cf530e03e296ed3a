//! The attribute block of `perf_event_open`.

/// What to count: the number of a unit, and the event's configuration words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoded {
    /// The unit: `type` in sysfs, or one of the kernel's own.
    pub kind: u32,
    /// `config`, `config1`, `config2`.
    pub config: [u64; 3],
}

impl Encoded {
    /// Cycles, which the kernel maps to the processor's event (PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES).
    pub const CYCLES: Self = Self {
        kind: 0,
        config: [0; 3],
    };

    /// Instructions that were completed, likewise (PERF_COUNT_HW_INSTRUCTIONS).
    pub const INSTRUCTIONS: Self = Self {
        kind: 0,
        config: [1, 0, 0],
    };

    /// One of the kernel's own events (PERF_TYPE_SOFTWARE).
    pub const fn software(config: u64) -> Self {
        Self {
            kind: 1,
            config: [config, 0, 0],
        }
    }
}

/// Bits of `flags`, from `struct perf_event_attr` (linux/perf_event.h).
pub(super) const DISABLED: u64 = 1;
pub(super) const INHERIT: u64 = 1 << 1;
pub(super) const EXCLUDE_KERNEL: u64 = 1 << 5;
pub(super) const EXCLUDE_HV: u64 = 1 << 6;
pub(super) const ENABLE_ON_EXEC: u64 = 1 << 12;

const FREQUENCY: u64 = 1 << 10;
/// The lowest of two bits.
const PRECISE: u32 = 15;

/// How often an event is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// Once in this many events.
    Times(u64),
    /// About this many times a second, on each processor.
    PerSecond(u64),
}

/// PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING.
const WITH_TIMES: u64 = 1 | 2;

/// `struct perf_event_attr` in its second published form (PERF_ATTR_SIZE_VER1), which every kernel since 3.0
/// accepts.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
}

impl Attributes {
    /// The same for samples of `what`: one of this many events, or this many a second.
    pub const fn sampling(encoded: Encoded, every: Every, what: u64, precise: u8) -> Self {
        let precise = (precise as u64) << PRECISE;
        let (period, flags) = match every {
            Every::Times(times) => (times, precise),
            Every::PerSecond(rate) => (rate, precise | FREQUENCY),
        };
        let plain = Self::new(encoded, flags);
        Self {
            period,
            sample: what,
            ..plain
        }
    }

    pub const fn new(encoded: Encoded, flags: u64) -> Self {
        let [config, config1, config2] = encoded.config;
        Self {
            kind: encoded.kind,
            size: size_of::<Self>() as u32,
            config,
            period: 0,
            sample: 0,
            read_format: WITH_TIMES,
            flags,
            wakeup: 0,
            breakpoint: 0,
            config1,
            config2,
        }
    }
}
