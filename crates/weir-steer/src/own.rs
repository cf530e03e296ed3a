//! What the programs of a scenario get done, in their own metric: with their side alone, without limits, and under the
//! controller.

use weir_model::latency::LatencyHistogram;
use weir_model::machine::TenantProgress;
use weir_model::metric::OwnMetric;
use weir_model::tenant::{Tenant, Work};
use weir_model::units::Nanos;

/// What a described program did in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    unit: String,
    /// How much of that in a second.
    rate: f64,
    window: Nanos,
    /// The latency of its requests, as far as the window was simulated.
    latency: Vec<(Nanos, u64)>,
}

impl Done {
    /// Of a tenant; `None` of a stream, whose metric is its bandwidth.
    pub fn of(tenant: &Tenant, own: &TenantProgress, window: Nanos) -> Option<Self> {
        let Work::Program(_) = &tenant.work else {
            return None;
        };
        let (unit, factor) = tenant.work.unit();
        Some(Self {
            unit,
            rate: tenant.work.done(own.bytes, &own.counters) / window.get().max(1.0) * factor,
            window,
            latency: own
                .latency
                .as_ref()
                .map_or_else(Vec::new, LatencyHistogram::buckets),
        })
    }

    /// Requests that were answered in what was simulated.
    pub fn answered(&self) -> u64 {
        self.latency.iter().map(|(_, count)| count).sum()
    }

    /// Several windows together; `None` without one.
    pub fn together<'d>(windows: impl Iterator<Item = &'d Self>) -> Option<OwnMetric> {
        let (mut rate, mut time, mut unit) = (0.0, 0.0, None);
        let mut latency = LatencyHistogram::new();
        for done in windows {
            rate += done.rate * done.window.get();
            time += done.window.get();
            latency.merge(&LatencyHistogram::from_buckets(&done.latency));
            unit = Some(&done.unit);
        }
        Some(OwnMetric::of(unit?.clone(), rate / time.max(1.0), &latency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_count_by_their_length() {
        let done = |rate, seconds: f64| Done {
            unit: "requests/s".into(),
            rate,
            window: Nanos(seconds * 1e9),
            latency: Vec::new(),
        };
        let windows = [done(1.0, 1.0), done(4.0, 3.0)];
        assert_eq!(Done::together(windows.iter()).unwrap().rate, 3.25);
        assert!(Done::together([].iter()).is_none());
    }
}
