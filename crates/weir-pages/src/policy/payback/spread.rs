//! Which pages go to the other tier because of congestion: as many as the stall model says.

use super::super::Seen;
use crate::tier::Tier;
use crate::traffic::Demand;

/// Accesses of threads to two tiers, as counters tell them.
pub(super) struct Traffic<'a> {
    seen: &'a Seen<'a>,
    /// Accesses in a second of each region by tier.
    per_s: &'a [[f64; 2]],
    compute_ns: f64,
}

/// Parts of a region's pages that are tried: half of them, of the rest half, and so on.
const PARTS: i32 = 10;

impl<'a> Traffic<'a> {
    pub(super) fn new(seen: &'a Seen<'a>, per_s: &'a [[f64; 2]]) -> Self {
        let mut new = Self {
            seen,
            per_s,
            compute_ns: 0.0,
        };
        // What a thread does between accesses is the time that no wait explains.
        let all: f64 = per_s.iter().flatten().sum();
        let demand = new.demand(None);
        let waits = demand.waits.iter().zip(seen.latency);
        let wait: f64 = waits.map(|(part, latency)| part * latency.get()).sum();
        new.compute_ns = (f64::from(seen.threads) * 1e9 / all.max(1.0) - wait).max(0.0);
        new
    }

    /// In a second, with a part of a region's accesses on the other tier.
    fn demand(&self, moved: Option<(usize, Tier, f64)>) -> Demand {
        let (mut shares, mut waits, mut writes) = ([0.0; 2], [0.0; 2], [0.0; 2]);
        for (n, (rates, of)) in self.per_s.iter().zip(self.seen.regions).enumerate() {
            let mut rates = *rates;
            if let Some((_, to, part)) = moved.filter(|(region, ..)| *region == n) {
                let more = rates[to.other() as usize] * part;
                rates[to.other() as usize] -= more;
                rates[to as usize] += more;
            }
            for t in 0..2 {
                shares[t] += rates[t];
                waits[t] += rates[t] / of.mlp;
                writes[t] += rates[t] * of.writes;
            }
        }
        let all = (shares[0] + shares[1]).max(f64::MIN_POSITIVE);
        for t in 0..2 {
            writes[t] /= shares[t].max(f64::MIN_POSITIVE);
            shares[t] /= all;
            waits[t] /= all;
        }
        Demand {
            thread_ns: f64::from(self.seen.threads) * 1e9,
            compute_ns: self.compute_ns,
            interval_ns: 1e9,
            shares,
            waits,
            writes,
            copied_from: [0.0; 2],
            copied_to: [0.0; 2],
        }
    }

    /// The part of a region's pages on the other tier that should go to this one, so that all threads together access most.
    pub(super) fn part(&self, region: usize, to: Tier) -> f64 {
        let speed = |part: f64| {
            let demand = self.demand(Some((region, to, part)));
            demand.solve(self.seen.curves).accesses
        };
        let parts = (0..PARTS).map(|n| 0.5f64.powi(n));
        let tried = std::iter::once(0.0)
            .chain(parts)
            .map(|part| (speed(part), part));
        let best = tried.max_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or(0.0, |(_, part)| part)
    }
}
