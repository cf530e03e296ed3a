//! Allocation: regions that grow, pages that live for a while, hot sets that drift.

use super::Simulation;
use crate::page::{ACCESSED, At, HINTED, PENDING};
use crate::policy::Placing;
use crate::tier::Tier;
use crate::workload::PageKind;

/// Parts of an interval: allocation and background reclaim take turns, so that reclaim has as long to react as on a
/// machine where both run at the same time.
const PARTS: u32 = 16;
/// Turns in which regions that grow at the same time are allocated.
const TURNS: u64 = 64;

impl Simulation<'_> {
    pub(super) fn allocate_and_reclaim(&mut self) {
        let dt = self.options.interval_s;
        let from = self.pages.now as f64 * dt;
        for part in 1..=PARTS {
            let along = f64::from(part) / f64::from(PARTS);
            for extent in 0..self.pages.extents.len() {
                self.drift(extent, dt / f64::from(PARTS));
                self.renew(extent, dt / f64::from(PARTS));
            }
            self.resize(from + dt * along);
            self.background(dt * 1e9 / f64::from(PARTS));
        }
    }

    /// Allocates and frees pages until each region has the size of the time. Regions that grow take turns, so that none
    /// has the fast node first.
    fn resize(&mut self, t: f64) {
        let extents = self.pages.extents.len();
        let mut wanted = vec![0; extents];
        let mut turn = vec![0; extents];
        for extent in 0..extents {
            let share = self.workload.regions[extent].growth.share_at(t);
            wanted[extent] = (share * self.pages.extents[extent].pages as f64).round() as u64;
            while self.pages.extents[extent].allocated > wanted[extent] {
                self.free_oldest(extent);
            }
            let more = wanted[extent] - self.pages.extents[extent].allocated;
            turn[extent] = more.div_ceil(TURNS);
        }
        for _ in 0..TURNS {
            for extent in 0..extents {
                let allocated = self.pages.extents[extent].allocated;
                for _ in 0..turn[extent].min(wanted[extent] - allocated) {
                    if !self.allocate_next(extent) {
                        break;
                    }
                }
            }
        }
    }

    /// Frees the pages whose life has ended, and allocates as many.
    fn renew(&mut self, extent: usize, seconds: f64) {
        let Some(lifetime) = self.workload.regions[extent].lifetime_s else {
            return;
        };
        let pages = self.pages.extents[extent].allocated as f64 * seconds / lifetime;
        self.renewing[extent] += pages;
        while self.renewing[extent] >= 1.0 {
            self.renewing[extent] -= 1.0;
            self.free_oldest(extent);
            self.allocate_next(extent);
        }
    }

    fn drift(&mut self, extent: usize, seconds: f64) {
        let region = &self.workload.regions[extent];
        let hot = region.hot_share() * self.pages.extents[extent].pages as f64;
        self.drifting[extent] += region.drift_per_hour * hot * seconds / 3600.0;
        let mut crossed = Vec::new();
        while self.drifting[extent] >= 1.0 {
            self.drifting[extent] -= 1.0;
            self.pages.drift(extent, &mut self.draws, &mut crossed);
        }
        for page in crossed {
            // Its next touch comes at another rate now.
            if self.pages.has(page, HINTED | PENDING) || self.pages.at(page) == At::Out {
                self.draw_touch(extent, page);
            }
        }
    }

    fn free_oldest(&mut self, extent: usize) {
        if let Some(page) = self.pages.oldest(extent) {
            self.pages.put(extent, page, At::Free, 0);
        }
    }

    fn allocate_next(&mut self, extent: usize) -> bool {
        let Some(page) = self.pages.grow(extent) else {
            return false;
        };
        let placed = self.allocate(extent, page);
        if !placed {
            self.counters.alloc_failed += self.pages.extents[extent].base;
            self.pages.shrink_back(extent);
        }
        placed
    }

    /// Puts a page that is nowhere on a node.
    pub(super) fn allocate(&mut self, extent: usize, page: u64) -> bool {
        let (kind, base) = (
            self.pages.extents[extent].kind,
            self.pages.extents[extent].base,
        );
        let preferred = self.policy.place(&Placing {
            region: extent,
            kind,
            base_pages: base,
            nth: self.nth,
            free_fast: self.free(Tier::Fast),
            fits: self.has_room(Tier::Fast, base),
        });
        self.nth += 1;
        let order = [preferred, preferred.other()];
        let mut found = order.into_iter().find(|tier| self.has_room(*tier, base));
        if found.is_none() {
            // All nodes are below their marks: every kswapd is woken, and the reserves down to min are used.
            self.kswapd.iter_mut().for_each(|k| k.awake = true);
            let above_min =
                |s: &Self, tier: Tier| s.free(tier) >= s.marks[tier as usize].min + base;
            found = order.into_iter().find(|tier| above_min(self, *tier));
            if found.is_none() {
                self.direct_reclaim(base);
                found = order.into_iter().find(|tier| above_min(self, *tier));
            }
        }
        let Some(tier) = found else { return false };
        // The fault that allocates an anonymous page touches it; a file page is read by a system call.
        let bits = if kind == PageKind::Anon { ACCESSED } else { 0 };
        self.pages.put(extent, page, At::from(tier), bits);
        match tier {
            Tier::Fast => self.counters.pgalloc_fast += base,
            Tier::Slow => self.counters.pgalloc_slow += base,
        }
        if tier == Tier::Fast {
            let free = self.free(Tier::Fast);
            if self.acts.wake.is_some_and(|wake| free < wake) {
                self.kswapd[0].awake = true;
            }
        }
        true
    }

    fn has_room(&self, tier: Tier, base: u64) -> bool {
        let mark = match tier {
            Tier::Fast if self.acts.coupled && self.kswapd[0].awake => return false,
            Tier::Fast => self.acts.allocate,
            Tier::Slow => self.marks[1].low,
        };
        self.free(tier) >= mark + base
    }
}
