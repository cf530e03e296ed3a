//! How many accesses an interval has: a fixed point of latency and traffic.

use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};

use crate::tier::TierCurve;

/// Accesses to a part of a program's memory, by tier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) accesses: [f64; 2],
    /// Accesses that a thread has outstanding with each.
    pub(crate) mlp: f64,
    /// The share of them that writes.
    pub(crate) writes: f64,
}

/// Where accesses go, as shares of all of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Split {
    /// By tier.
    pub(crate) shares: [f64; 2],
    /// The same, each access divided by the accesses that are outstanding with it: a latency's part in the wait.
    pub(crate) waits: [f64; 2],
    /// The share of each tier's accesses that writes.
    pub(crate) writes: [f64; 2],
}

impl Split {
    /// Of all parts. Without accesses there is nothing to wait for, and all goes to the fast tier.
    pub(crate) fn of(parts: impl IntoIterator<Item = Part>) -> Self {
        let [mut shares, mut waits, mut writes] = [[0.0; 2]; 3];
        for part in parts {
            for (t, accesses) in part.accesses.into_iter().enumerate() {
                shares[t] += accesses;
                waits[t] += accesses / part.mlp;
                writes[t] += accesses * part.writes;
            }
        }
        let all = shares[0] + shares[1];
        if all <= 0.0 {
            return Self {
                shares: [1.0, 0.0],
                waits: [1.0, 0.0],
                writes: [0.0; 2],
            };
        }
        Self {
            writes: [0, 1].map(|t| writes[t] / f64::max(shares[t], f64::MIN_POSITIVE)),
            shares: shares.map(|share| share / all),
            waits: waits.map(|wait| wait / all),
        }
    }

    /// The mean wait at these latencies.
    pub(crate) fn wait(&self, latency: [Nanos; 2]) -> f64 {
        let waits = self.waits.iter().zip(latency);
        waits.map(|(part, latency)| part * latency.get()).sum()
    }
}

/// What an interval's threads do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// Thread time less the kernel's work.
    pub(crate) thread_ns: f64,
    /// Computing before each access.
    pub(crate) compute_ns: f64,
    /// The interval's length.
    pub(crate) interval_ns: f64,
    /// Where their accesses go.
    pub(crate) split: Split,
    /// Bytes that migration reads from and writes to each tier.
    pub(crate) copied_from: [f64; 2],
    pub(crate) copied_to: [f64; 2],
}

/// The solution.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Flow {
    pub(crate) accesses: f64,
    /// The mean wait for an access: latency by MLP.
    pub(crate) wait: Nanos,
    pub(crate) latency: [Nanos; 2],
    pub(crate) gbps: [GbPerSec; 2],
    /// By how much accesses at these latencies differ from those that cause them, relative.
    pub(crate) error: f64,
}

/// Halvings of the range: enough for every bit of a float's mantissa.
const STEPS: u32 = 60;

impl Demand {
    /// Of threads in a time in which no page moves and the kernel does nothing.
    pub(crate) fn steady(threads: f64, compute_ns: f64, interval_ns: f64, split: Split) -> Self {
        Self {
            thread_ns: threads * interval_ns,
            compute_ns,
            interval_ns,
            split,
            copied_from: [0.0; 2],
            copied_to: [0.0; 2],
        }
    }

    fn at(&self, curves: [&TierCurve; 2], accesses: f64) -> Flow {
        let mut flow = Flow::default();
        for (t, curve) in curves.into_iter().enumerate() {
            let lines = accesses * self.split.shares[t] * LINE_BYTES as f64;
            // A write reads its line, and writes it back.
            let read = lines + self.copied_from[t];
            let written = lines * self.split.writes[t] + self.copied_to[t];
            let all = read + written;
            flow.gbps[t] = GbPerSec(all / self.interval_ns);
            let read_share = if all > 0.0 { read / all } else { 1.0 };
            flow.latency[t] = curve.latency(flow.gbps[t], read_share);
        }
        let wait = self.split.wait(flow.latency);
        flow.wait = Nanos(wait);
        flow.accesses = self.thread_ns / (self.compute_ns + wait).max(1e-9);
        flow
    }

    /// Accesses at the latencies that they cause. More accesses never lower a latency, so halving a range finds them.
    pub(crate) fn solve(&self, curves: [&TierCurve; 2]) -> Flow {
        let (mut low, mut high) = (0.0, self.at(curves, 0.0).accesses);
        for _ in 0..STEPS {
            let middle = (low + high) / 2.0;
            match self.at(curves, middle).accesses > middle {
                true => low = middle,
                false => high = middle,
            }
        }
        let flow = self.at(curves, high);
        Flow {
            error: (flow.accesses - high).abs() / high.max(1.0),
            accesses: high,
            ..flow
        }
    }
}
