//! How regions change while they are looked at: their touches by part of the time, and pages that become hot.

use std::collections::BTreeMap;

use weir_model::units::Bytes;
use weir_pages::PageKind;

use super::document::{ProfileRegion, RegionPart};
use super::history::{History, Page};

/// Touches that the average page needs in half of a profile, so that chance does not make a page hot or cold.
const ENOUGH: f64 = 16.0;

impl History {
    /// Pages by region and type; small regions are together.
    fn by_region(&self) -> BTreeMap<(&str, u8), Vec<&Page>> {
        let small = self.small();
        let mut regions: BTreeMap<(&str, u8), Vec<&Page>> = BTreeMap::new();
        for page in self.pages.values() {
            let name = if small(page) { "other" } else { &page.region };
            (regions.entry((name, page.kind as u8)).or_default()).push(page);
        }
        regions
    }

    pub(super) fn regions(&self) -> Vec<ProfileRegion> {
        let regions = self.by_region().into_iter();
        let row = |((region, kind), pages): ((&str, u8), Vec<&Page>)| ProfileRegion {
            region: region.to_owned(),
            kind: PageKind::ALL[usize::from(kind)],
            page: Bytes(pages.iter().map(|page| page.page).max().unwrap_or(0)),
            memory: Bytes(pages.iter().map(|page| page.bytes).sum()),
            arrived_pct: self.arrived(&pages).map(|share| share * 100.0),
        };
        regions.map(row).collect()
    }

    /// The share of memory that was cold in the first half and is hot in the second. Parts in the middle that belong to
    /// both are left out.
    fn arrived(&self, pages: &[&Page]) -> Option<f64> {
        let parts = self.ended / self.width;
        let half = parts / 2;
        if half == 0 {
            return None;
        }
        let halves = |page: &Page| {
            let sum = |from: usize, to: usize| {
                let of = page.parts.iter().take(to).skip(from);
                of.map(|touches| f64::from(*touches)).sum::<f64>()
            };
            [sum(0, half), sum(parts - half, parts)]
        };
        let all: f64 = pages.iter().map(|page| page.bytes as f64).sum();
        let mut mean = [0.0; 2];
        for page in pages {
            let of = halves(page);
            (0..2).for_each(|n| mean[n] += of[n] * page.bytes as f64 / all.max(1.0));
        }
        if mean[0].min(mean[1]) < ENOUGH * self.least {
            return None;
        }
        let came = pages.iter().filter(|page| {
            let [first, second] = halves(page);
            first < mean[0] / 2.0 && second > 2.0 * mean[1]
        });
        Some(came.map(|page| page.bytes as f64).sum::<f64>() / all)
    }

    pub(super) fn parts(&self) -> Vec<RegionPart> {
        let mut rows = Vec::new();
        for ((region, kind), pages) in self.by_region() {
            for part in 0..self.ended.div_ceil(self.width) {
                let (from, to) = (part * self.width, ((part + 1) * self.width).min(self.ended));
                let (mut allocated, mut appeared, mut touches) = (0, 0, 0.0);
                for page in &pages {
                    let new = |n: &usize| page.there.has(*n) && !page.there.has(n - 1);
                    allocated += page.bytes * u64::from(page.there.has(to - 1));
                    appeared += page.bytes * (from.max(1)..to).filter(new).count() as u64;
                    let pages = page.bytes as f64 / page.page.max(1) as f64;
                    touches += page.parts.get(part).map_or(0.0, |n| f64::from(*n) * pages);
                }
                rows.push(RegionPart {
                    region: region.to_owned(),
                    kind: PageKind::ALL[usize::from(kind)],
                    t_s: to as f64 * self.interval_s,
                    allocated: Bytes(allocated),
                    appeared: Bytes(appeared),
                    touches_per_s: touches / ((to - from) as f64 * self.interval_s),
                });
            }
        }
        rows
    }
}
