//! The price of the fast node: what a page on it must gain in a second.
//!
//! It is the least gain of the pages that fill the node, if those that gain most are on it. It is looked for only where
//! candidates or new pages find no room: reclaim may find pages that are not accessed, and then room has no price. From there
//! it rises while there is no room, and falls while there is some.

use super::{ALIKE, HEADROOM, MOST_HEADROOM, PASS_S, Payback, SMOOTH};
use crate::policy::Seen;
use crate::tier::Tier;

/// Below this a price is 0, in ns of thread time in a second.
const NO_PRICE: f64 = 0.1;
/// By which factors the price rises in a second, and falls while room is spare; and falls otherwise. Rates of pages differ by
/// factors of thousands, so it must cross a factor of 100 in a few passes of sampling; a pass of Linux' takes 1 s or more.
const RISE: f64 = 2.0;
const FALL: f64 = 1.05;
/// The part of what is asked at which a price begins to rise.
const BEGINS: f64 = 0.01;
/// The factor by which free memory for promotion falls in an interval when no more is wanted.
const HEADROOM_FALLS: f64 = 1.1;

/// Pages that are taken to be alike.
#[derive(Debug, Clone, Copy)]
struct Kind {
    tier: Tier,
    base_pages: f64,
    /// What each gains in a second.
    gains: f64,
}

impl Payback {
    /// Pages that are not interleaved, by falling gain. Each region has two kinds on a tier: those with its accesses, and those
    /// without.
    fn kinds(&self, seen: &Seen<'_>) -> Vec<Kind> {
        let mut all = Vec::new();
        let regions = self.regions.iter().zip(seen.regions);
        for (own, of) in regions.filter(|(own, _)| own.target.is_none()) {
            let hot = own.hot().unwrap_or(1.0);
            for tier in Tier::ALL {
                let t = tier as usize;
                let gains = own.gains_on(t, of.pages) / hot;
                for (gains, share) in [(gains, hot), (0.0, 1.0 - hot)] {
                    let base_pages = of.pages[t] as f64 * share;
                    all.push(Kind {
                        tier,
                        base_pages,
                        gains,
                    });
                }
            }
        }
        all.sort_by(|a, b| b.gains.total_cmp(&a.gains));
        all
    }

    /// The least gain of the pages that fill the fast node, if those that gain most are on it.
    fn clearing(&self, kinds: &[Kind], seen: &Seen<'_>) -> f64 {
        let regions = self.regions.iter().zip(seen.regions);
        let interleaved = regions.filter(|(own, _)| own.target.is_some());
        let taken: u64 = interleaved.map(|(_, of)| of.pages[0]).sum();
        let mut room = self.node - 2.0 * self.room as f64 - taken as f64;
        let last = kinds.iter().find(|kind| {
            room -= kind.base_pages;
            room < 0.0
        });
        last.map_or(0.0, |kind| kind.gains.max(0.0))
    }

    /// Free memory beyond which room is spare.
    pub(super) fn reserve(&self) -> u64 {
        2 * self.room + self.backlog as u64
    }

    /// Sets the price, and how much memory is kept free.
    pub(super) fn set_price(&mut self, seen: &Seen<'_>) {
        let (gain, wanted) = std::mem::take(&mut self.candidates);
        let asks = gain / wanted.max(1.0);
        let missed = std::mem::take(&mut self.missed);
        // Where reclaim finds pages that are not accessed, room comes without a price.
        let unmet = seen.failed_full.saturating_sub(seen.reclaimed) as f64;
        // What found no room saves nothing.
        let moved = 1.0 - (seen.failed_full as f64 / wanted.max(1.0)).min(1.0);
        self.window.saved += std::mem::take(&mut self.saves) * moved;
        if seen.failed_full > 0 && wanted > 0.0 {
            self.asks += (asks - self.asks) * SMOOTH;
        }
        self.lacks_room = unmet > 0.0 || seen.free_fast < self.room;
        // Reclaim works ahead of promotion. Where candidates still find no room, more is kept free: what was free may be less
        // than one of their pages.
        self.headroom = match seen.failed_full > 0 {
            true => self.headroom + 10_000.0 * seen.failed_full as f64 / self.node,
            false => self.headroom / HEADROOM_FALLS,
        };
        self.headroom = self.headroom.clamp(HEADROOM, MOST_HEADROOM);
        let left = self.backlog + seen.failed_full as f64 - seen.reclaimed as f64;
        self.backlog = left.max(0.0) * (-seen.interval_s / self.pass_s).exp();
        let spare = seen.free_fast.saturating_sub(self.reserve());
        self.spare_s = match spare > 0 {
            true => self.spare_s + seen.interval_s,
            false => 0.0,
        };
        let kinds = self.kinds(seen);
        let clearing = self.clearing(&kinds, seen);
        self.admit(&kinds, self.price.max(clearing), spare);
        if unmet > 0.0 || missed > self.price {
            if missed > self.price || self.leaves(seen) < self.backlog {
                self.price *= RISE.powf(seen.interval_s);
            }
            self.price = (self.price.max(clearing)).max(BEGINS * asks.max(missed));
        } else {
            let factor = if spare > 0 { RISE } else { FALL };
            // Sampling comes to candidates once in a pass: room is spare if it was for the longest one.
            let least = match self.spare_s > PASS_S[1] {
                true => 0.0,
                false => clearing.min(self.price),
            };
            self.price = (self.price / factor.powf(seen.interval_s)).max(least);
        }
        if self.price < NO_PRICE {
            self.price = 0.0;
        }
    }

    /// Pages that gain about the price may take spare room, and that of pages below the price, unless new pages take it within a
    /// pass of sampling, which costs no move.
    fn admit(&mut self, kinds: &[Kind], price: f64, spare: u64) {
        let below = kinds
            .iter()
            .filter(|kind| kind.tier == Tier::Fast && kind.gains < price * (1.0 - ALIKE));
        let below: f64 = below.map(|kind| kind.base_pages).sum();
        let filling = std::mem::take(&mut self.waiting) && self.spare_s < self.pass_s;
        self.admits = match filling {
            true => 0.0,
            false => below + spare as f64,
        };
    }

    /// Base pages of regions that are below the price. They leave once sampling has reached them, and the price need not rise
    /// for that.
    fn leaves(&self, seen: &Seen<'_>) -> f64 {
        let regions = self.regions.iter().zip(seen.regions);
        let below = regions.filter(|(own, of)| {
            own.target.is_none() && own.gains_on(0, of.pages) * (1.0 - ALIKE) < self.price
        });
        below.map(|(_, of)| of.pages[0] as f64).sum()
    }
}
