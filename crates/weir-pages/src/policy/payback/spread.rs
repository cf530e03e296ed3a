//! Which pages go to the other tier because of congestion: as many as the stall model says.

use weir_model::units::LINE_BYTES;

use super::super::{Move, RegionSeen, Seen};
use super::Payback;
use crate::tier::Tier;
use crate::traffic::{Demand, Part, Split};

/// Gains within this share of the fast tier's latency are none: curves are known to a few percent.
const DEAD_BAND: f64 = 0.04;
/// The part of the way to the best placement that is gone in an interval, because counters are of the last one.
const DAMPING: f64 = 0.5;
/// The part of a core's time in which pages are moved because of congestion, at most.
pub(super) const MOVES_SHARE: f64 = 0.5;

/// Accesses of threads to two tiers, as counters tell them.
struct Traffic<'a> {
    seen: &'a Seen<'a>,
    /// Accesses in a second of each region by tier.
    per_s: &'a [[f64; 2]],
    compute_ns: f64,
}

/// Parts of a region's pages that are tried: half of them, of the rest half, and so on.
const PARTS: i32 = 10;

impl<'a> Traffic<'a> {
    fn new(seen: &'a Seen<'a>, per_s: &'a [[f64; 2]]) -> Self {
        let mut new = Self {
            seen,
            per_s,
            compute_ns: 0.0,
        };
        // What a thread does between accesses is the time that no wait explains.
        let all: f64 = per_s.iter().flatten().sum();
        let wait = new.demand(None).split.wait(seen.latency);
        new.compute_ns = (f64::from(seen.threads) * 1e9 / all.max(1.0) - wait).max(0.0);
        new
    }

    /// In a second, with a part of a region's accesses on the other tier.
    fn demand(&self, moved: Option<(usize, Tier, f64)>) -> Demand {
        let regions = self.per_s.iter().zip(self.seen.regions).enumerate();
        let split = Split::of(regions.map(|(n, (rates, of))| {
            let mut accesses = *rates;
            if let Some((_, to, part)) = moved.filter(|(region, ..)| *region == n) {
                let more = accesses[to.other() as usize] * part;
                accesses[to.other() as usize] -= more;
                accesses[to as usize] += more;
            }
            Part {
                accesses,
                mlp: of.mlp,
                writes: of.writes,
            }
        }));
        Demand::steady(f64::from(self.seen.threads), self.compute_ns, 1e9, split)
    }

    /// The part of a region's pages on the other tier that should go to this one, so that all threads together access most.
    fn part(&self, region: usize, to: Tier) -> f64 {
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

/// What an access of each region gains on the fast tier, in ns.
pub(super) fn gains(seen: &Seen<'_>) -> Vec<f64> {
    let delays = [0, 1].map(|t| {
        // Accesses in a second, by those outstanding with each: ns that each ns of latency costs in a second.
        let exposed: f64 = seen.regions.iter().map(|r| r.per_s[t] / r.mlp).sum();
        let lines: f64 = seen.regions.iter().map(|r| r.per_s[t]).sum();
        let written: f64 = seen.regions.iter().map(|r| r.per_s[t] * r.writes).sum();
        let read_share = if lines > 0.0 {
            lines / (lines + written)
        } else {
            1.0
        };
        // ns for each byte in a second.
        seen.curves[t].slope(seen.gbps[t], read_share) * exposed / 1e9
    });
    let of = |region: &RegionSeen| {
        let own = (seen.latency[1] - seen.latency[0]).get() / region.mlp;
        let bytes = LINE_BYTES as f64 * (1.0 + region.writes);
        own + (delays[1] - delays[0]) * bytes
    };
    seen.regions.iter().map(of).collect()
}

impl Payback {
    /// Moves pages of one region, while the fast tier is congested or was.
    ///
    /// What has to change is the traffic of a tier, and each byte of it that leaves for the slower tier costs a wait. So the
    /// region with the most traffic for its wait leaves first and returns last, however few accesses a page of it has, as
    /// far as they pay for the move.
    pub(super) fn interleave(&mut self, seen: &Seen<'_>) {
        let cost = (self.costs.moving(1) + self.flushes).get();
        let mut tried: Vec<(usize, Tier, f64)> = Vec::new();
        for (n, (own, of)) in self.regions.iter_mut().zip(seen.regions).enumerate() {
            let dead = DEAD_BAND * seen.latency[0].get() / of.mlp;
            let Some(gain) = own.gain.filter(|gain| gain.abs() > dead) else {
                continue;
            };
            let (to, from) = match gain > 0.0 {
                true => (Tier::Fast, 1),
                false => (Tier::Slow, 0),
            };
            // Without congestion, hint faults say which of its pages are to be on a node that is full.
            let full = self.lacks_room || seen.free_fast < 2 * self.room + own.base_pages as u64;
            if to == Tier::Fast && (of.pages[1] == 0 || full) {
                own.target = None;
            }
            // Pages return by steps only where they had left by them; others wait for their hint faults.
            if of.pages[from] == 0 || (to == Tier::Fast && own.target.is_none()) {
                continue;
            }
            let by_page = gain.abs() * own.per_s[from] / of.pages[from] as f64;
            if by_page * self.stays_s > cost {
                let traffic_by_wait = of.mlp * (1.0 + of.writes);
                let rank = match to {
                    Tier::Slow => traffic_by_wait,
                    Tier::Fast => 1.0 / traffic_by_wait,
                };
                tried.push((n, to, rank));
            }
        }
        tried.sort_by(|a, b| b.2.total_cmp(&a.2));
        let per_s: Vec<[f64; 2]> = self.regions.iter().map(|own| own.per_s).collect();
        let traffic = Traffic::new(seen, &per_s);
        let best = tried
            .into_iter()
            .map(|(n, to, _)| (n, to, traffic.part(n, to)))
            .find(|(.., part)| *part > 0.0);
        let Some((n, to, part)) = best else { return };
        let of = &seen.regions[n];
        let (from, all) = (
            of.pages[to.other() as usize] as f64,
            (of.pages[0] + of.pages[1]) as f64,
        );
        let most = MOVES_SHARE * seen.interval_s * 1e9 / self.costs.moving(1).get();
        let own = &mut self.regions[n];
        let (sign, wanted) = match to {
            Tier::Fast => (1.0, part * from),
            Tier::Slow => (-1.0, part * from),
        };
        own.target = Some((of.pages[0] as f64 + sign * wanted) / all);
        // Large pages are owed until there is a whole one.
        if own.owed * sign < 0.0 {
            own.owed = 0.0;
        }
        own.owed += sign * (wanted * DAMPING).min(most);
        let pages = (own.owed.abs() / own.base_pages).floor() * own.base_pages;
        own.owed -= sign * pages;
        self.moves.push(Move {
            region: n,
            to,
            base_pages: pages as u64,
        });
    }
}
