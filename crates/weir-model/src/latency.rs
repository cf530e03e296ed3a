//! Latency distributions: recorded in full, summarised only when shown.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::statistics::quantile_ranks;
use crate::units::Nanos;

/// Highest latency that is kept apart from its neighbours, 10 s; longer ones are counted here. Requests to
/// a disk that turns, or that is cached by a hypervisor, take many milliseconds.
const LONGEST_PS: u64 = 10_000_000_000_000;

/// Every latency of a run, in picoseconds, to three significant digits.
#[derive(Debug, Clone)]
pub struct LatencyHistogram(Histogram<u64>);

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty distribution.
    pub fn new() -> Self {
        let bounds = Histogram::new_with_bounds(1, LONGEST_PS, 3);
        Self(bounds.unwrap_or_else(|_| unreachable!("constant bounds are valid")))
    }

    /// Adds one latency.
    pub fn record(&mut self, latency: Nanos) {
        self.record_many(latency, 1);
    }

    /// Adds `count` latencies of one length.
    pub fn record_many(&mut self, latency: Nanos, count: u64) {
        let ps = (latency.get() * 1e3).round().max(1.0) as u64;
        self.0.saturating_record_n(ps, count);
    }

    /// Adds every latency of another distribution.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same bounds, so that this cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// How many latencies were recorded.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Mean latency.
    pub fn mean(&self) -> Nanos {
        Nanos(self.0.mean() / 1e3)
    }

    /// The latency that `share` (0 to 1) of all accesses do not exceed.
    pub fn quantile(&self, share: f64) -> Nanos {
        Nanos(self.0.value_at_quantile(share) as f64 / 1e3)
    }

    /// Where the latency is which `share` (0 to 1) of all accesses do not exceed; `None` with too few accesses.
    pub fn quantile_interval(&self, share: f64) -> Option<QuantileInterval> {
        let (low, high) = quantile_ranks(self.len(), share)?;
        let at = |rank: u64| self.quantile((rank as f64 - 0.5) / self.len() as f64);
        Some(QuantileInterval {
            low: at(low),
            high: at(high),
        })
    }

    /// Every latency that occurred, to the histogram's resolution, with its count, shortest first.
    pub fn buckets(&self) -> Vec<(Nanos, u64)> {
        self.0
            .iter_recorded()
            .map(|b| {
                (
                    Nanos(b.value_iterated_to() as f64 / 1e3),
                    b.count_at_value(),
                )
            })
            .collect()
    }

    /// The distribution with these [buckets](Self::buckets).
    pub fn from_buckets(buckets: &[(Nanos, u64)]) -> Self {
        let mut histogram = Self::new();
        for &(latency, count) in buckets {
            histogram.record_many(latency, count);
        }
        histogram
    }

    /// The summary that documents carry; `None` if nothing was recorded.
    pub fn summary(&self) -> Option<LatencySummary> {
        if self.is_empty() {
            return None;
        }
        // A quantile is only reported where enough samples lie beyond it to mean something.
        let q =
            |share: f64| (self.len() as f64 * (1.0 - share) >= 10.0).then(|| self.quantile(share));
        Some(LatencySummary {
            mean: self.mean(),
            p50: self.quantile(0.5),
            p90: q(0.9),
            p99: q(0.99),
            p999: q(0.999),
            p9999: q(0.9999),
            p99999: q(0.99999),
            max: Nanos(self.0.max() as f64 / 1e3),
            samples: self.len(),
        })
    }
}

/// Between which latencies a quantile lies with a confidence of 95 %, if no access waits longer because the one before it
/// did. Where requests queue they do, and the interval is too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantileInterval {
    /// The lower end.
    pub low: Nanos,
    /// The upper end.
    pub high: Nanos,
}

/// A latency distribution in a few figures, in nanoseconds. A quantile is absent where fewer than
/// ten samples lie beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Mean.
    pub mean: Nanos,
    /// Median.
    pub p50: Nanos,
    /// 90 % are at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<Nanos>,
    /// 99 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<Nanos>,
    /// 99.9 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<Nanos>,
    /// 99.99 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p9999: Option<Nanos>,
    /// 99.999 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99999: Option<Nanos>,
    /// The longest.
    pub max: Nanos,
    /// How many latencies this summarises. On a host, one may be the mean of several hops, where a
    /// single one is shorter than its timer can tell; the point's note says so.
    #[schemars(extend("x-unit" = ""))]
    pub samples: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_need_samples_beyond_them() {
        let mut h = LatencyHistogram::new();
        for i in 1..=1000 {
            h.record(Nanos(f64::from(i)));
        }
        let s = h.summary().unwrap();
        assert!((s.mean.get() - 500.5).abs() < 1.0, "{s:?}");
        assert!((s.p50.get() - 500.0).abs() < 1.0);
        assert!(s.p99.is_some() && s.p999.is_none());
        let p99 = h.quantile_interval(0.99).unwrap();
        assert!(
            p99.low < s.p99.unwrap() && s.p99.unwrap() < p99.high,
            "{p99:?}"
        );
        assert!(LatencyHistogram::new().summary().is_none());
        // Picoseconds up to 2048 are kept apart: an interval is between the latencies of its ranks.
        for n in (400..2048).step_by(7) {
            let mut h = LatencyHistogram::new();
            (1..=n).for_each(|ps| h.record(Nanos(ps as f64 / 1e3)));
            let ranks = quantile_ranks(n, 0.99).map(|(low, high)| [low, high]);
            let found = h.quantile_interval(0.99).map(|of| [of.low, of.high]);
            let found = found.map(|ends| ends.map(|end| (end.get() * 1e3).round() as u64));
            assert_eq!(found, ranks, "{n}");
        }
    }

    #[test]
    fn a_distribution_is_rebuilt_from_its_buckets() {
        let mut h = LatencyHistogram::new();
        for i in 1..=20_000_u64 {
            h.record_many(Nanos(0.7 * (i * i % 7919) as f64), i % 5);
        }
        let rebuilt = LatencyHistogram::from_buckets(&h.buckets());
        assert_eq!(rebuilt.summary(), h.summary());
        assert_eq!(rebuilt.buckets(), h.buckets());
        assert!(LatencyHistogram::from_buckets(&[]).is_empty());
    }
}
