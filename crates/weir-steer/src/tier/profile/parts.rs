//! How regions change while they are looked at: their touches by part of the time, and pages that become hot.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_model::units::Bytes;
use weir_pages::PageKind;

use super::document::{ProfileRegion, RegionPart};
use super::history::{History, Page};

/// Regions with less memory than this share of all are taken together.
const SMALL_REGION: f64 = 0.01;
/// Samples of the average page in a part of the time, so that chance makes few pages hot or cold.
const ENOUGH: f64 = 8.0;
/// Parts of the time after which a page is looked at again.
const LAGS: usize = 3;

impl History {
    /// Whether a page's region has too little memory to be distinguished.
    pub(super) fn small(&self) -> impl Fn(&Page) -> bool {
        let all: u64 = self.pages.values().map(|page| page.bytes).sum();
        let mut regions: BTreeMap<(Arc<str>, u8), u64> = BTreeMap::new();
        for page in self.pages.values() {
            *(regions.entry((Arc::clone(&page.region), page.kind as u8))).or_default() +=
                page.bytes;
        }
        move |page: &Page| {
            let bytes = regions.get(&(Arc::clone(&page.region), page.kind as u8));
            (bytes.copied().unwrap_or(0) as f64) < SMALL_REGION * all as f64
        }
    }

    /// Pages by region and type, in the order of addresses, in which regions were most likely allocated; small regions are
    /// together.
    pub(super) fn by_region(&self) -> Vec<((&str, u8), Vec<&Page>)> {
        let mut order: Vec<(&str, u8)> = Vec::new();
        let small = self.small();
        let mut regions: BTreeMap<(&str, u8), Vec<&Page>> = BTreeMap::new();
        for page in self.pages.values() {
            let name = if small(page) { "other" } else { &page.region };
            let pages = regions.entry((name, page.kind as u8)).or_default();
            if pages.is_empty() {
                order.push((name, page.kind as u8));
            }
            pages.push(page);
        }
        let of = |key| (key, regions.remove(&key).unwrap_or_default());
        order.into_iter().map(of).collect()
    }

    pub(super) fn regions(&self) -> Vec<ProfileRegion> {
        let regions = self.by_region().into_iter();
        let row = |((region, kind), pages): ((&str, u8), Vec<&Page>)| ProfileRegion {
            region: region.to_owned(),
            kind: PageKind::ALL[usize::from(kind)],
            page: Bytes(pages.iter().map(|page| page.page).max().unwrap_or(0)),
            memory: Bytes(pages.iter().map(|page| page.bytes).sum()),
            arrived_pct: self.arrived(&pages).map(|(share, _)| share * 100.0),
        };
        regions.map(row).collect()
    }

    /// Parts of the time that are over.
    pub(super) fn parts_of_time(&self) -> usize {
        self.ended.div_ceil(self.width)
    }

    /// The intervals of a part.
    pub(super) fn span(&self, part: usize) -> (usize, usize) {
        let from = (part * self.width).min(self.ended);
        (from, (from + self.width).min(self.ended))
    }

    /// The share of memory that became hot over the profile, and the share that is hot on average.
    ///
    /// Chance makes pages hot or cold, and does so as often after one part of the time as after `LAGS`; what is more
    /// after these has become hot in the meantime. Pages in a part in which they became hot are neither.
    pub(super) fn arrived(&self, pages: &[&Page]) -> Option<(f64, f64)> {
        let all: f64 = pages.iter().map(|page| page.bytes as f64).sum();
        let parts = self.parts_of_time();
        // As many parts are one as the average page needs to be touched often enough.
        let touches: f64 = (pages.iter())
            .map(|page| page.parts.iter().map(|n| f64::from(*n)).sum::<f64>() * page.bytes as f64)
            .sum();
        let each = touches / all.max(1.0) / self.least / parts as f64;
        let wide = (ENOUGH / each).ceil().max(1.0);
        let counted = (parts as f64 / wide) as usize;
        if counted <= LAGS + 1 {
            return None;
        }
        let wide = wide as usize;
        let of = |page: &Page, n: usize| -> f64 {
            let parts = page.parts.iter().skip(n * wide).take(wide);
            parts.map(|touches| f64::from(*touches)).sum()
        };
        let mean: Vec<f64> = (0..counted)
            .map(|n| {
                pages
                    .iter()
                    .map(|page| of(page, n) * page.bytes as f64)
                    .sum::<f64>()
                    / all
            })
            .collect();
        let mut came = [0.0; 2];
        let (mut pairs, mut hot) = (0.0, 0.0);
        for n in 0..counted - LAGS {
            if [n, n + 1, n + LAGS]
                .iter()
                .any(|n| mean[*n] < ENOUGH * self.least / 2.0)
            {
                continue;
            }
            pairs += 1.0;
            for page in pages {
                let now = of(page, n);
                let bytes = page.bytes as f64;
                hot += bytes * f64::from(u8::from(now > mean[n]));
                if now < mean[n] / 2.0 {
                    for (came, after) in came.iter_mut().zip([n + 1, n + LAGS]) {
                        *came += bytes * f64::from(u8::from(of(page, after) > 2.0 * mean[after]));
                    }
                }
            }
        }
        let a_part = (came[1] - came[0]) / (LAGS - 1) as f64 / pairs / all;
        (pairs > 0.0).then(|| {
            (
                a_part.max(0.0) * parts as f64 / wide as f64,
                hot / pairs / all,
            )
        })
    }

    pub(super) fn parts(&self) -> Vec<RegionPart> {
        let mut rows = Vec::new();
        for ((region, kind), pages) in self.by_region() {
            for part in 0..self.parts_of_time() {
                let (from, to) = self.span(part);
                let (mut allocated, mut appeared, mut touches) = (0, 0, 0.0);
                for page in &pages {
                    let new = |n: &usize| {
                        page.there.has(*n) && (!page.there.has(n - 1) || page.renewed.has(*n))
                    };
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
