//! Reclaim: pages leave a node, for the slower node or for swap.

use super::Simulation;
use crate::lru::{Found, Look};
use crate::page::{At, DEMOTED, HINTED};
use crate::tier::{BASE, Tier};
use crate::workload::PageKind;

/// Pages that a thread reclaims before it allocates (`SWAP_CLUSTER_MAX`).
const DIRECT: u64 = 32;
/// After this many runs without success kswapd gives up (`MAX_RECLAIM_RETRIES`), ...
const MOST_FAILURES: u32 = 16;
/// ... and TPP's patches let it try again after 10 s. Linux would wait for a thread to reclaim first.
const RETRY_S: f64 = 10.0;
/// A run has no success if it frees less than one of this many pages that it looks at. Linux: if it frees none.
const FEW: u64 = 256;

impl Simulation<'_> {
    /// Lets each node's kswapd run for a while.
    pub(super) fn background(&mut self, ns: f64) {
        for tier in Tier::ALL {
            let stop = match tier {
                Tier::Fast => self.acts.stop,
                Tier::Slow => self.marks[1].high,
            };
            let at = At::from(tier);
            let kswapd = &mut self.kswapd[tier as usize];
            kswapd.budget_ns = (kswapd.budget_ns + ns).min(ns);
            kswapd.lru.begin();
            if !kswapd.awake || kswapd.rests_until > self.pages.now {
                continue;
            }
            let before = self.free(tier);
            // Pages of which something could be known, and such of which nothing could since.
            let (mut looked, mut early) = (0_u64, 0_u64);
            while self.kswapd[tier as usize].budget_ns > 0.0 {
                if early > self.pages.used(at) {
                    // Accesses are known by interval: the next one may tell more.
                    self.kswapd[tier as usize].rests_until = self.pages.now + 1;
                    break;
                }
                if self.free(tier) >= stop {
                    self.kswapd[tier as usize].awake = false;
                    break;
                }
                let Some((ns, look)) = self.reclaim_one(tier, true) else {
                    break;
                };
                match look.is_early {
                    true => early += 1,
                    false => (looked, early) = (looked + 1, 0),
                }
                self.kswapd[tier as usize].budget_ns -= ns;
            }
            let freed = self.free(tier).saturating_sub(before);
            if looked > 0 {
                self.rest_after(tier, freed, looked);
            }
        }
    }

    /// Gives up for a while where almost every page is hot.
    fn rest_after(&mut self, tier: Tier, freed: u64, looked: u64) {
        let wait = (RETRY_S / self.options.interval_s).ceil() as usize;
        let (awake, now) = (self.kswapd[tier as usize].awake, self.pages.now);
        let kswapd = &mut self.kswapd[tier as usize];
        if !awake || freed * FEW > looked {
            kswapd.failures = 0;
            return;
        }
        kswapd.failures += 1;
        if kswapd.failures == MOST_FAILURES {
            (kswapd.failures, kswapd.rests_until) = (0, now + wait);
        }
    }

    /// A thread frees pages itself, of the slow node first.
    pub(super) fn direct_reclaim(&mut self, base: u64) {
        self.counters.allocstall += 1;
        for tier in [Tier::Slow, Tier::Fast] {
            let enough = self.free(tier) + base.max(DIRECT);
            // Twice round the node, where every page was touched.
            let mut tries = 2 * self.pages.used(At::from(tier)) + DIRECT;
            while self.free(tier) < enough && tries > 0 {
                tries -= 1;
                match self.reclaim_one(tier, false) {
                    Some((ns, _)) => self.work.stall_ns += ns,
                    None => break,
                }
            }
            if self.free(tier) >= self.marks[tier as usize].min + base {
                return;
            }
        }
    }

    /// Looks at a page, and evicts it if it was not touched. The time in ns that takes; none if no page is left.
    pub(super) fn reclaim_one(&mut self, tier: Tier, background: bool) -> Option<(f64, Look)> {
        let demotes = tier == Tier::Fast && self.policy.demotes();
        let anon = demotes || self.host.swap;
        let lru = &mut self.kswapd[tier as usize].lru;
        let look = lru.look(&mut self.pages, tier, anon, !background, &mut self.draws)?;
        let costs = self.host.costs;
        let mut ns = costs.lru_scan.get() * f64::from(look.looked);
        if let Some(Found { extent, page }) = look.evicted {
            let (kind, base) = (
                self.pages.extents[extent].kind,
                self.pages.extents[extent].base,
            );
            if demotes && self.free(Tier::Slow) >= self.marks[1].min + base {
                self.demote(extent, page, background);
                ns += costs.moving(base).get();
            } else {
                if demotes {
                    self.kswapd[1].awake = true;
                }
                if kind == PageKind::File || self.host.swap {
                    self.evict(extent, page);
                    // A clean file page is dropped; without a share of dirty ones all are taken as clean.
                    if kind == PageKind::Anon {
                        ns += costs.swap_out.get() * base as f64;
                    }
                }
            }
        }
        Some((ns, look))
    }

    pub(super) fn demote(&mut self, extent: usize, page: u64, background: bool) {
        let (kind, base) = (
            self.pages.extents[extent].kind,
            self.pages.extents[extent].base,
        );
        let sampled = self.policy.samples_demoted();
        let bits = DEMOTED | if sampled { HINTED } else { 0 };
        self.pages.put(extent, page, At::Slow, bits);
        if sampled {
            self.draw_touch(extent, page);
        }
        let counters = &mut self.counters;
        match kind {
            PageKind::Anon => counters.pgdemote_anon += base,
            PageKind::File => counters.pgdemote_file += base,
        }
        match background {
            true => counters.pgdemote_kswapd += base,
            false => counters.pgdemote_direct += base,
        }
        self.copied(Tier::Fast, Tier::Slow, base);
    }

    fn evict(&mut self, extent: usize, page: u64) {
        let base = self.pages.extents[extent].base;
        self.pages.put(extent, page, At::Out, 0);
        self.draw_touch(extent, page);
        self.counters.pswpout += base;
    }

    /// Traffic of a copy.
    pub(super) fn copied(&mut self, from: Tier, to: Tier, base: u64) {
        let bytes = (base * BASE) as f64;
        self.work.copied_from[from as usize] += bytes;
        self.work.copied_to[to as usize] += bytes;
    }
}
