//! What is seen of requests during a stretch of time.

use std::time::{Duration, Instant};

use weir_model::latency::LatencyHistogram;
use weir_model::units::Nanos;

/// How requests are sent.
#[derive(Debug, Clone, Copy)]
pub struct Drive {
    /// Requests in a second, or as fast as answers come.
    pub rate: Option<f64>,
    /// Time that is not counted, at first.
    pub warm_up: Duration,
    /// Time that is counted.
    pub length: Duration,
}

/// What was seen.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Time that was counted.
    pub time: Nanos,
    /// Requests that were due in it.
    pub offered: u64,
    /// Answers that came in it.
    pub answered: u64,
    /// Requests that were due in it and never answered. Their latency is the time that they waited.
    pub unanswered: u64,
    /// Answers that are wrong, or refusals.
    pub wrong: u64,
    /// The first of them.
    pub first_wrong: Option<String>,
    /// From the time at which each request was due to its answer.
    pub latency: LatencyHistogram,
    /// How much later than due each was sent.
    pub late: LatencyHistogram,
    /// The longest time for which the generator did nothing: it looks at its connections ten times in a second.
    pub held: Duration,
}

/// One stretch of requests.
pub(super) struct Stretch<'a> {
    pub began: Instant,
    /// The part that is counted.
    pub from: Duration,
    pub to: Duration,
    pub seen: Seen,
    pub last_answer: Duration,
    pub stop: &'a dyn Fn() -> bool,
}

impl<'a> Stretch<'a> {
    pub fn new(from: Duration, to: Duration, stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            began: Instant::now(),
            from,
            to,
            last_answer: Duration::ZERO,
            stop,
            seen: Seen {
                time: Nanos(0.0),
                offered: 0,
                answered: 0,
                unanswered: 0,
                wrong: 0,
                first_wrong: None,
                latency: LatencyHistogram::new(),
                late: LatencyHistogram::new(),
                held: Duration::ZERO,
            },
        }
    }

    /// An operation has its last answer.
    pub fn answered(&mut self, due: Duration, now: Duration) {
        self.seen.answered += u64::from(now >= self.from && now < self.to);
        if due >= self.from {
            self.seen.latency.record(nanos(now.saturating_sub(due)));
        }
    }

    /// An operation was never answered.
    pub fn unanswered(&mut self, due: Duration, end: Duration) {
        self.seen.unanswered += 1;
        self.seen.latency.record(nanos(end.saturating_sub(due)));
    }
}

pub(super) fn nanos(time: Duration) -> Nanos {
    Nanos(time.as_secs_f64() * 1e9)
}
