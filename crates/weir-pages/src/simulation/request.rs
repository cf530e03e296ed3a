//! What a policy asks for with hint faults: moves of pages of a region, reclaim ahead of need, and promotion of pages
//! which counters in the device report.

use super::Simulation;
use crate::page::{ACCESSED, ACTIVE, At};
use crate::policy::Move;
use crate::tier::Tier;

/// Pages that are looked at for each that is to be moved.
const LOOKS: u64 = 8;
/// Ranks that the counters of a device go through in an interval: the hottest pages come first.
const RANKS: u64 = 1 << 16;

impl Simulation<'_> {
    /// Meets what the policy asks for.
    pub(super) fn requests(&mut self) {
        for request in self.policy.moves() {
            self.move_pages(&request);
        }
        let until = self.free(Tier::Fast) + self.policy.reclaims();
        let mut looks = LOOKS * (until - self.free(Tier::Fast));
        while self.free(Tier::Fast) < until && looks > 0 {
            looks -= 1;
            if self.reclaim_one(Tier::Fast, true).is_none() {
                break;
            }
        }
    }

    fn move_pages(&mut self, request: &Move) {
        let Some(extent) = self.pages.extents.get(request.region) else {
            return;
        };
        let (start, pages, base) = (extent.start, extent.pages, extent.base);
        let (from, to) = (request.to.other(), request.to);
        let mut moved = 0;
        for _ in 0..(request.base_pages / base * LOOKS).min(pages) {
            if moved + base > request.base_pages || self.free(to) < self.floor(to) + base {
                break;
            }
            let page = start + self.requested[request.region];
            self.requested[request.region] = (self.requested[request.region] + 1) % pages;
            if self.pages.at(page) != At::from(from) {
                continue;
            }
            self.move_page(request.region, page, from);
            moved += base;
        }
    }

    /// Memory that a request leaves free.
    fn floor(&self, tier: Tier) -> u64 {
        match tier {
            Tier::Fast => self.acts.promote,
            Tier::Slow => self.marks[1].high,
        }
    }

    fn move_page(&mut self, extent: usize, page: u64, from: Tier) {
        let base = self.pages.extents[extent].base;
        let kept = if self.pages.has(page, ACTIVE) {
            ACTIVE
        } else {
            0
        };
        let touched = if self.pages.has(page, ACCESSED) {
            ACCESSED
        } else {
            0
        };
        self.pages
            .put(extent, page, At::from(from.other()), kept | touched);
        match from {
            Tier::Fast => self.counters.moved_to_slow += base,
            Tier::Slow => self.counters.moved_to_fast += base,
        }
        self.copied(from, from.other(), base);
    }

    /// Promotes pages which the device reports.
    pub(super) fn count_hot(&mut self) {
        let Some(counters) = self.policy.counters() else {
            return;
        };
        let interval = self.options.interval_s;
        let mut reports = (counters.reports_per_s * interval) as u64;
        let threshold = counters.per_s * interval;
        let mut bands: Vec<usize> = (0..self.rates.len())
            .filter(|band| self.rates[*band] > threshold / 4.0)
            .collect();
        bands.sort_by(|a, b| self.rates[*b].total_cmp(&self.rates[*a]));
        let mut ranks = RANKS;
        for band in bands {
            let extent = self.pages.extents.iter();
            let number = extent.take_while(|e| e.first_band <= band).count() - 1;
            let (first, count) = self.pages.ranks_of(number, band);
            for _ in 0..count.min(ranks) {
                if reports == 0 {
                    return;
                }
                ranks -= 1;
                let rank = first + self.counted[band] % count;
                self.counted[band] = (self.counted[band] + 1) % count;
                let page = self.pages.page_at(number, rank);
                if self.pages.at(page) == At::Slow && self.counted_at_least(band, threshold) {
                    reports -= 1;
                    self.candidate(number, page);
                    self.promote(number, page);
                }
            }
        }
    }

    /// Whether a page of a band has this many accesses in an interval, which are a Poisson variable.
    fn counted_at_least(&mut self, band: usize, threshold: f64) -> bool {
        let mean = self.rates[band];
        if mean > threshold + 6.0 * threshold.sqrt() {
            return true;
        }
        let mut sum = 0.0;
        for _ in 0..threshold.ceil().max(1.0) as u64 {
            sum += self.draws.exponential();
            if sum > mean {
                return false;
            }
        }
        true
    }
}
