//! Best-shot interleaving (SupMario, arXiv 2409.14317, section 6.2): one share of pages for the slow tier, from one look.

use weir_model::units::{GbPerSec, LINE_BYTES};

use super::{Move, Placing, Policy, Seen};
use crate::tier::{BASE, Tier, TierCurve};

/// Pages are allocated on the fast tier until the workload's memory has stopped growing for a window. Traffic, MLP and
/// latency of that window, with the measured curves of both tiers, give the run time at each share of pages on the slow
/// tier. The best share is kept from then on: pages that are there move to it once, new ones are interleaved by it. The
/// paper runs the program a second time in place of the moves.
#[derive(Debug, Clone, Copy, Default)]
pub struct BestShot {
    /// Percent of pages on the slow tier, once it is chosen.
    share: Option<u64>,
    window: Window,
    /// Base pages that there were when the window began.
    pages: u64,
    interval_s: f64,
    /// By region how many pages are to move, and where.
    left: [i64; REGIONS],
}

/// Sums over a window.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    seconds: f64,
    accesses: f64,
    /// Thread time, waits, writes, and accesses divided by MLP.
    thread_ns: f64,
    waited_ns: f64,
    writes: f64,
    alone: f64,
}

/// Regions beyond this many are left where they are.
const REGIONS: usize = 32;
/// Memory that grows by less in a window, as a share, is all allocated (assumed, 0.5 to 5 %).
const GREW: f64 = 0.01;
/// The length of a window in seconds: ten readings of counters, one in a second (assumed, 5 to 30 s).
const WINDOW_S: f64 = 10.0;
/// A lesser gain is not worth moving pages for (assumed, 0.5 to 3 %: the error of curves).
const GAINS: f64 = 0.01;
/// How fast pages move, in bytes a second: a core copies 8 GB/s (see `Costs::copy_4k`), of which an eighth is taken.
const MOVED_PER_S: f64 = 1e9;
/// Halvings of the range of rates.
const HALVINGS: u32 = 40;

impl Window {
    /// Time of a thread for an access, with a share of accesses on the slow tier: a fixed point of traffic and latency.
    fn time_ns(&self, curves: [&TierCurve; 2], threads: f64, share: f64) -> f64 {
        let by_access = |sum: f64| sum / self.accesses;
        let compute = by_access(self.thread_ns - self.waited_ns).max(0.0);
        let (writes, alone) = (by_access(self.writes), by_access(self.alone));
        let at = |time: f64| {
            let gbps = threads / time * LINE_BYTES as f64 * (1.0 + writes);
            let wait = |curve: &TierCurve, part: f64| {
                let reads = 1.0 / (1.0 + writes);
                part * curve.latency(GbPerSec(gbps * part), reads).get()
            };
            compute + alone * (wait(curves[0], 1.0 - share) + wait(curves[1], share))
        };
        // With a longer time there is less traffic and a shorter wait, so that halving finds where both agree.
        let idle = curves.map(|curve| curve.idle().get());
        let mut low = compute + alone * ((1.0 - share) * idle[0] + share * idle[1]);
        let mut high = at(low).max(low);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            match at(middle) > middle {
                true => low = middle,
                false => high = middle,
            }
        }
        high
    }

    /// The percentage of pages on the slow tier with the least run time; none where little is gained.
    fn best(&self, curves: [&TierCurve; 2], threads: f64) -> u64 {
        let time = |percent: u64| self.time_ns(curves, threads, percent as f64 / 100.0);
        let all_fast = time(0);
        let times = (1..=100).map(|percent| (percent, time(percent)));
        let best = times.min_by(|a, b| a.1.total_cmp(&b.1));
        let pays = best.filter(|(_, time)| *time < all_fast * (1.0 - GAINS));
        pays.map_or(0, |(percent, _)| percent)
    }
}

impl Policy for BestShot {
    fn place(&mut self, page: &Placing) -> Tier {
        let slow = |n: u64| n * self.share.unwrap_or(0) / 100;
        match slow(page.nth + 1) > slow(page.nth) {
            true => Tier::Slow,
            false => Tier::Fast,
        }
    }

    fn observe(&mut self, seen: &Seen<'_>) {
        self.interval_s = seen.interval_s;
        if self.share.is_some() {
            return;
        }
        let pages = seen.regions.iter().flat_map(|r| r.pages).sum::<u64>();
        let of = &mut self.window;
        of.seconds += seen.interval_s;
        of.thread_ns += f64::from(seen.threads) * seen.interval_s * 1e9;
        for region in seen.regions {
            let accesses = region.per_s.iter().sum::<f64>() * seen.interval_s;
            of.accesses += accesses;
            of.waited_ns += accesses * seen.wait.get();
            of.writes += accesses * region.writes;
            of.alone += accesses / region.mlp;
        }
        if of.seconds < WINDOW_S {
            return;
        }
        let of = std::mem::take(of);
        let before = std::mem::replace(&mut self.pages, pages);
        let grew = pages.saturating_sub(before) as f64 > GREW * pages as f64;
        if grew || of.accesses <= 0.0 {
            return;
        }
        let share = of.best(seen.curves, f64::from(seen.threads));
        self.share = Some(share);
        for (left, region) in self.left.iter_mut().zip(seen.regions) {
            let all: u64 = region.pages.iter().sum();
            // What the fast tier has no room for is on the slow one already.
            *left = (all * share / 100) as i64 - region.pages[1] as i64;
        }
    }

    fn moves(&mut self) -> Vec<Move> {
        let mut budget = (MOVED_PER_S * self.interval_s / BASE as f64) as i64;
        let mut moves = Vec::new();
        for (region, left) in self.left.iter_mut().enumerate() {
            let now = (*left).clamp(-budget, budget);
            if now == 0 {
                continue;
            }
            *left -= now;
            budget -= now.abs();
            moves.push(Move {
                region,
                to: if now > 0 { Tier::Slow } else { Tier::Fast },
                base_pages: now.unsigned_abs(),
            });
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use weir_model::units::Nanos;

    use super::*;

    fn curves() -> [TierCurve; 2] {
        // SupMario's Skylake machine and its other socket.
        let curve = |ns, gbps| TierCurve::of_queue(Nanos(ns), GbPerSec(gbps));
        [curve(90.0, 52.0), curve(140.0, 32.0)]
    }

    /// A second of loads that wait, with this many at once.
    fn loads(mlp: f64, threads: f64) -> Window {
        Window {
            seconds: 1.0,
            accesses: 1e6,
            thread_ns: 1e6 * threads,
            waited_ns: 1e6 * threads,
            writes: 0.0,
            alone: 1e6 / mlp,
        }
    }

    #[test]
    fn a_scan_is_spread_as_bandwidths_are_and_a_chase_is_not() {
        let [fast, slow] = curves();
        let best = |mlp, threads| loads(mlp, threads).best([&fast, &slow], threads);
        // 32 of 84 GB/s are 38 %; latency of the other socket takes a little off.
        assert!(
            (33..=39).contains(&best(16.0, 20.0)),
            "{}",
            best(16.0, 20.0)
        );
        assert_eq!(best(1.0, 4.0), 0);
    }

    #[test]
    fn new_pages_are_interleaved_by_the_share() {
        let mut policy = BestShot {
            share: Some(38),
            ..BestShot::default()
        };
        let mut of = |nth| {
            policy.place(&Placing {
                region: 0,
                kind: crate::PageKind::Anon,
                nth,
                free_fast: 0,
                fits: true,
                base_pages: 1,
            })
        };
        let slow = (0..1000).filter(|nth| of(*nth) == Tier::Slow).count();
        assert_eq!(slow, 380);
    }
}
