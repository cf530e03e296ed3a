//! The state of every page: three bytes, and counts that follow every change.
//!
//! A page is on a tier, on its active or inactive list, and has the bits that the kernel keeps in the page table and in
//! the page's flags. Whether it was touched since its accessed bit was last read is drawn when the bit is
//! read, from the accesses that its band had since then; so the cost is of pages that are looked at, not of accesses.

use crate::Tier;
use crate::order::Order;
use crate::random::Draws;
use crate::tier::BASE;
use crate::workload::{PageKind, PagedWorkload};

/// Where a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// Not allocated.
    Free = 0,
    /// In the fast tier.
    Fast = 1,
    /// In the slow tier.
    Slow = 2,
    /// In swap, or dropped from the page cache.
    Out = 3,
}

impl From<Tier> for At {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Fast => Self::Fast,
            Tier::Slow => Self::Slow,
        }
    }
}

const AT: u8 = 0b11;
/// On the active list.
pub(crate) const ACTIVE: u8 = 1 << 2;
/// PG_referenced: found touched once.
pub(crate) const REFERENCED: u8 = 1 << 3;
/// The accessed bit of the page table, as far as it is known.
pub(crate) const ACCESSED: u8 = 1 << 4;
/// Out of the page table: the next touch is a hint fault.
pub(crate) const HINTED: u8 = 1 << 5;
/// The time of its next touch is drawn.
pub(crate) const PENDING: u8 = 1 << 6;
/// PG_demoted of the TPP patches.
pub(crate) const DEMOTED: u8 = 1 << 7;

/// A region's pages.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    pub(crate) kind: PageKind,
    /// Position of its first page.
    pub(crate) start: u64,
    /// How many it has.
    pub(crate) pages: u64,
    /// Base pages in each.
    pub(crate) base: u64,
    /// How many pages were freed so far, in the order of addresses, round the end; and how many are allocated.
    freed: u64,
    pub(crate) allocated: u64,
    /// The number of its first band, and the rank at which each begins, with the end.
    pub(crate) first_band: usize,
    ends: Vec<u64>,
    order: Order,
    /// By how much ranks have drifted.
    pub(crate) drifted: u64,
}

impl Extent {
    fn rank(&self, index: u64) -> u64 {
        let n = self.pages;
        let rank = self.order.rank(index) + self.drifted;
        if rank >= n { rank - n } else { rank }
    }

    /// The band of its n-th page.
    pub(crate) fn band(&self, index: u64) -> usize {
        let rank = self.rank(index);
        let ends = self.ends.iter();
        self.first_band + ends.take_while(|end| rank >= **end).count()
    }

    /// The page of a rank.
    fn index(&self, rank: u64) -> u64 {
        let n = self.pages;
        self.order.index((rank + n - self.drifted) % n)
    }

    fn is_allocated(&self, index: u64) -> bool {
        (index + self.pages - self.head()) % self.pages < self.allocated
    }

    /// The oldest allocated page, from the start.
    fn head(&self) -> u64 {
        self.freed % self.pages
    }

    /// How often its n-th page was freed.
    pub(crate) fn times_freed(&self, index: u64) -> u64 {
        self.freed / self.pages + u64::from(index < self.head())
    }
}

/// All pages.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    flags: Vec<u8>,
    /// The interval in which the accessed bit was last cleared or the page unmapped, modulo 2^16.
    stamps: Vec<u16>,
    pub(crate) extents: Vec<Extent>,
    /// Base pages by band and place.
    pub(crate) counts: Vec<[u64; 4]>,
    /// Base pages by place, kind and list: inactive, active.
    pub(crate) lists: [[[u64; 2]; 2]; 4],
    /// Visits to a page of each band up to the end of each interval.
    touched: Vec<Vec<f64>>,
    pub(crate) now: usize,
}

// A terabyte of pages of 4 KiB fits into 2 GB.
const _: () = assert!(Pages::BYTES_A_PAGE <= 7);

impl Pages {
    /// Pages of a workload, none of them allocated.
    pub(crate) fn new(workload: &PagedWorkload) -> Self {
        let mut extents = Vec::new();
        let (mut start, mut first_band) = (0, 0);
        for region in &workload.regions {
            let pages = (region.bytes.get() / region.page.get()).max(1);
            let mut share = 0.0;
            let ends: Vec<u64> = region
                .bands
                .iter()
                .take(region.bands.len() - 1)
                .map(|band| {
                    share += band.pages;
                    (share * pages as f64).round() as u64
                })
                .collect();
            extents.push(Extent {
                kind: region.kind,
                start,
                pages,
                base: region.page.get() / BASE,
                freed: 0,
                allocated: 0,
                first_band,
                order: Order::new(pages, &ends, &region.band_places),
                ends,
                drifted: 0,
            });
            start += pages;
            first_band += region.bands.len();
        }
        Self {
            flags: vec![0; start as usize],
            stamps: vec![0; start as usize],
            extents,
            counts: vec![[0; 4]; first_band],
            lists: [[[0; 2]; 2]; 4],
            touched: vec![vec![0.0]; first_band],
            now: 0,
        }
    }

    /// Bytes that are kept for each page.
    pub(crate) const BYTES_A_PAGE: usize = size_of::<u8>() + size_of::<u16>();

    pub(crate) fn len(&self) -> u64 {
        self.flags.len() as u64
    }

    pub(crate) fn flags(&self) -> &[u8] {
        &self.flags
    }

    pub(crate) fn at(&self, page: u64) -> At {
        match self.flags[page as usize] & AT {
            0 => At::Free,
            1 => At::Fast,
            2 => At::Slow,
            _ => At::Out,
        }
    }

    pub(crate) fn has(&self, page: u64, bit: u8) -> bool {
        self.flags[page as usize] & bit != 0
    }

    /// The first rank of a band of an extent, and how many there are.
    pub(crate) fn ranks_of(&self, extent: usize, band: usize) -> (u64, u64) {
        let e = &self.extents[extent];
        let n = band - e.first_band;
        let end = |n: usize| e.ends.get(n).copied().unwrap_or(e.pages);
        let first = if n == 0 { 0 } else { end(n - 1) };
        (first, (end(n) - first).max(1))
    }

    /// The page of a rank.
    pub(crate) fn page_at(&self, extent: usize, rank: u64) -> u64 {
        let e = &self.extents[extent];
        e.start + e.index(rank % e.pages)
    }

    /// The extent of a page.
    pub(crate) fn extent_of(&self, page: u64) -> usize {
        self.extents.iter().take_while(|e| e.start <= page).count() - 1
    }

    pub(crate) fn band_of(&self, extent: usize, page: u64) -> usize {
        let extent = &self.extents[extent];
        extent.band(page - extent.start)
    }

    fn list(&mut self, flags: u8, kind: PageKind) -> &mut u64 {
        &mut self.lists[(flags & AT) as usize][kind as usize][usize::from(flags & ACTIVE != 0)]
    }

    /// Changes bits of a page; lists follow.
    pub(crate) fn change(&mut self, extent: usize, page: u64, set: u8, clear: u8) {
        let old = self.flags[page as usize];
        let new = (old & !clear) | set;
        self.flags[page as usize] = new;
        if (old ^ new) & ACTIVE != 0 {
            let Extent { kind, base, .. } = self.extents[extent];
            *self.list(old, kind) -= base;
            *self.list(new, kind) += base;
        }
    }

    /// Puts a page elsewhere; its bits other than [`PENDING`] become `bits`. Counts follow.
    pub(crate) fn put(&mut self, extent: usize, page: u64, to: At, bits: u8) {
        let old = self.flags[page as usize];
        let new = (old & PENDING) | bits | to as u8;
        let Extent { kind, base, .. } = self.extents[extent];
        let band = self.band_of(extent, page);
        self.counts[band][(old & AT) as usize] =
            self.counts[band][(old & AT) as usize].wrapping_sub(base);
        self.counts[band][to as usize] = self.counts[band][to as usize].wrapping_add(base);
        let list = self.list(old, kind);
        *list = list.wrapping_sub(base);
        let list = self.list(new, kind);
        *list = list.wrapping_add(base);
        self.flags[page as usize] = new;
        self.stamps[page as usize] = self.now as u16;
    }

    /// Base pages in a tier.
    pub(crate) fn used(&self, at: At) -> u64 {
        self.lists[at as usize].iter().flatten().sum()
    }

    /// Visits to a page of a band until now.
    pub(crate) fn until_now(&self, band: usize) -> f64 {
        self.touched[band].last().copied().unwrap_or(0.0)
    }

    /// Ends an interval in which each page of a band was visited this often.
    pub(crate) fn advance(&mut self, visits: &[f64]) {
        for (band, more) in self.touched.iter_mut().zip(visits) {
            let last = band.last().copied().unwrap_or(0.0);
            band.push(last + more);
        }
        self.now += 1;
    }

    /// Intervals since a page was settled.
    pub(crate) fn age(&self, page: u64) -> usize {
        usize::from((self.now as u16).wrapping_sub(self.stamps[page as usize]))
    }

    /// Reads the accessed bit without clearing it: what was not known is drawn.
    pub(crate) fn settle(&mut self, extent: usize, page: u64, draws: &mut Draws) -> bool {
        let flags = self.flags[page as usize];
        // A page whose next touch is drawn was not touched before it.
        if flags & (ACCESSED | HINTED | PENDING) == 0 {
            let band = self.band_of(extent, page);
            let touched = &self.touched[band];
            let since = touched[self.now.saturating_sub(self.age(page))];
            let expected = touched[self.now] - since;
            if expected > 0.0 && (expected > 30.0 || draws.exponential() < expected) {
                self.flags[page as usize] |= ACCESSED;
            }
            self.stamps[page as usize] = self.now as u16;
        }
        self.flags[page as usize] & ACCESSED != 0
    }

    /// Reads and clears the accessed bit.
    pub(crate) fn test_and_clear(&mut self, extent: usize, page: u64, draws: &mut Draws) -> bool {
        let accessed = self.settle(extent, page, draws);
        self.flags[page as usize] &= !ACCESSED;
        if self.flags[page as usize] & HINTED == 0 {
            self.stamps[page as usize] = self.now as u16;
        }
        accessed
    }

    /// Sets the time of a page's last settling to now.
    pub(crate) fn stamp(&mut self, page: u64) {
        self.stamps[page as usize] = self.now as u16;
    }

    /// The next page of an extent to be allocated: the one behind the youngest.
    pub(crate) fn grow(&mut self, extent: usize) -> Option<u64> {
        let e = &mut self.extents[extent];
        if e.allocated == e.pages {
            return None;
        }
        let index = (e.head() + e.allocated) % e.pages;
        e.allocated += 1;
        Some(e.start + index)
    }

    /// The oldest page of an extent, which is to be freed.
    pub(crate) fn oldest(&mut self, extent: usize) -> Option<u64> {
        let e = &mut self.extents[extent];
        if e.allocated == 0 {
            return None;
        }
        let index = e.head();
        e.freed += 1;
        e.allocated -= 1;
        Some(e.start + index)
    }

    /// Frees the page that was just grown, which found no place.
    pub(crate) fn shrink_back(&mut self, extent: usize) {
        self.extents[extent].allocated -= 1;
    }

    /// Moves each page's rank by one. Pages that change bands are settled before, and returned.
    pub(crate) fn drift(&mut self, extent: usize, draws: &mut Draws, crossed: &mut Vec<u64>) {
        let e = &self.extents[extent];
        if e.ends.is_empty() {
            return;
        }
        // Of a region of few pages some bands have none.
        let ends = e.ends.iter().chain([&e.pages]);
        let mut last: Vec<u64> = ends.filter_map(|end| end.checked_sub(1)).collect();
        last.dedup();
        let mut moved = Vec::with_capacity(last.len());
        for rank in last {
            let e = &self.extents[extent];
            let index = e.index(rank);
            let page = e.start + index;
            if e.is_allocated(index) && self.at(page) != At::Free {
                self.settle(extent, page, draws);
                moved.push((page, self.band_of(extent, page)));
            }
        }
        let e = &mut self.extents[extent];
        e.drifted = (e.drifted + 1) % e.pages;
        let base = e.base;
        for (page, from) in moved {
            let (to, at) = (self.band_of(extent, page), self.at(page) as usize);
            self.counts[from][at] -= base;
            self.counts[to][at] += base;
            crossed.push(page);
        }
    }
}
