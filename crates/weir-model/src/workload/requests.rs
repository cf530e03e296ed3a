//! The requests that a program answers: when they arrive, how long they are, and what they exclude each other from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// A program that answers requests. A thread works on one at a time, and halts while there is none for it.
///
/// The requests of a program are a queue with one server a thread. Where the time that a thread works on a request
/// does not depend on memory, the laws of queues hold exactly: M/M/c, M/D/1 and M/G/1 (Kleinrock, *Queueing Systems*,
/// volume 1, chapters 3 and 5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// What one is called: `request`, `query`, `token`.
    pub unit: String,
    /// Instructions of one, the mean of all.
    pub instructions: u64,
    /// How the instructions of single ones are spread about the mean.
    pub spread: Spread,
    /// Requests that arrive in a second for all threads together, at random times (Poisson), whether or not earlier
    /// ones are answered: an open loop. Without it the loop is closed: each thread has its next request as soon as it has
    /// thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    /// Clients that send the requests of `per_second` in equal parts, at equal intervals each, as YCSB does with a target. A
    /// client has one request under way: if its turn comes before the answer, it sends the next request when it has the
    /// answer, and the latency counts from then. A timer wakes it up to 50 us late (Linux, `PR_SET_TIMERSLACK`). Without
    /// clients requests arrive at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// In a closed loop, the mean time from an answer to the thread's next request, spread exponentially. During that time
    /// the thread waits for something other than memory: a client, the network, another service.
    #[serde(default)]
    pub think: Nanos,
    /// Share of the instructions of a request that a thread runs while it has the program's lock, which one thread has at
    /// a time. They come first. Threads wait for it in the order in which they came.
    #[serde(default)]
    pub locked: f64,
    /// Share of the requests that write, where the data's `stores` do not say it; the real application gets as many. The
    /// model does not use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<f64>,
}

crate::named! {
    /// How the lengths of requests are spread.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Spread {
        /// All have the same length.
        #[default]
        Fixed = "fixed",
        /// Exponential: most are short, a few are long.
        Exponential = "exponential",
    }
}

impl Requests {
    /// Whether requests arrive whether or not earlier ones are answered.
    pub fn is_open(&self) -> bool {
        self.per_second.is_some()
    }
}
