//! Regions whose pages are alike: no hint fault needs to say which of their pages gain most.

use super::spread::MOVES_SHARE;
use super::{ALIKE, Move, Payback, Region, Seen};
use crate::tier::Tier;

/// The part of the fast node that is swapped or reclaimed in an interval at most, because counters are of the last one.
pub(super) const PART: f64 = 16.0;

impl Payback {
    /// Asks for moves of the region whose pages on the slow tier gain most: they take room that is free, and then that of the
    /// region whose pages on the fast tier gain least, where the swap pays for both moves.
    pub(super) fn swap(&mut self, seen: &Seen<'_>) {
        let regions = || self.regions.iter().zip(seen.regions).enumerate();
        let on = |t: usize| {
            regions()
                .filter(move |(_, (own, of))| {
                    own.target.is_none() && own.are_alike() && of.pages[t] > 0
                })
                .map(move |(n, (own, of))| (own.gains_on(t, of.pages), n))
        };
        let most = on(1).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((gains, n)) = most.filter(|(gains, _)| *gains > 0.0) else {
            return;
        };
        let comes = &self.regions[n];
        let cost = |own: &Region| {
            (self.costs.moving(own.base_pages as u64) + self.flushes).get() / own.base_pages
        };
        let stays_s = self.stays_s.min(comes.lives_s / 2.0);
        let saved = |instead: f64| (gains * (1.0 - ALIKE) - instead) * stays_s;
        let most = (MOVES_SHARE * seen.interval_s * 1e9 / self.costs.moving(1).get())
            .min(self.node / PART)
            .min(seen.regions[n].pages[1] as f64);
        let mut wanted = match saved(self.price) > cost(comes) {
            true => most.min(seen.free_fast.saturating_sub(2 * self.room) as f64),
            false => 0.0,
        };
        let least = on(0).min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((less, from)) = least {
            let leaves = &self.regions[from];
            if saved(less) > cost(comes) + cost(leaves) {
                let whole = leaves.base_pages.max(comes.base_pages);
                let pages = (most - wanted).min(seen.regions[from].pages[0] as f64);
                let pages = (pages / whole).floor() * whole;
                self.moves.push(Move {
                    region: from,
                    to: Tier::Slow,
                    base_pages: pages as u64,
                });
                wanted += pages;
            }
        }
        self.moves.push(Move {
            region: n,
            to: Tier::Fast,
            base_pages: wanted as u64,
        });
    }
}
