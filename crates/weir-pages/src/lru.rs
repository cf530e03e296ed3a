//! Which pages a node gives up: Linux' active and inactive lists as a clock with two hands.
//!
//! A front hand takes pages from the active list and clears their accessed bit, a back hand follows and evicts pages
//! that were not touched meanwhile. Both go by address. So a page has as long to be touched again as on Linux' lists,
//! but pages leave in the order of addresses and not in that of arrival, and a page that arrives on the inactive list
//! just before the back hand is looked at early.

use crate::Tier;
use crate::page::{ACTIVE, At, Pages, REFERENCED};
use crate::random::Draws;
use crate::workload::PageKind;

/// What a hand finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) extent: usize,
    pub(crate) page: u64,
}

/// A place among the pages of a kind.
#[derive(Debug, Clone, Copy, Default)]
struct Hand {
    extent: usize,
    index: u64,
}

impl Hand {
    /// The next page on this tier and list, at most once round.
    fn next(&mut self, pages: &Pages, kind: PageKind, at: At, active: bool) -> Option<Found> {
        if pages.lists[at as usize][kind as usize][usize::from(active)] == 0 {
            return None;
        }
        let wanted = at as u8 | if active { ACTIVE } else { 0 };
        // Once round ends in the extent where it began.
        for _ in 0..=pages.extents.len() {
            let extent = &pages.extents[self.extent];
            if extent.kind == kind && self.index < extent.pages {
                let from = (extent.start + self.index) as usize;
                let to = (extent.start + extent.pages) as usize;
                let mut rest = pages.flags()[from..to].iter();
                if let Some(n) = rest.position(|flags| flags & (0b11 | ACTIVE) == wanted) {
                    self.index += n as u64 + 1;
                    return Some(Found {
                        extent: self.extent,
                        page: (from + n) as u64,
                    });
                }
            }
            self.index = 0;
            self.extent = (self.extent + 1) % pages.extents.len();
        }
        None
    }
}

/// A look at a page of the inactive list.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Look {
    /// The page, if it is to be evicted.
    pub(crate) evicted: Option<Found>,
    /// Pages that were looked at.
    pub(crate) looked: u32,
    /// Whether nothing can be known of the page before the next interval.
    pub(crate) is_early: bool,
}

/// The lists of a node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lru {
    front: [Hand; 2],
    back: [Hand; 2],
    /// Pages that were looked at since the last pass began, by kind.
    scanned: [u64; 2],
}

/// Linux' `swappiness` by default: anonymous to file pages are looked at as 60 to 140 (`get_scan_count`).
const SCANNED_ANON: u64 = 60;
const SCANNED_FILE: u64 = 140;
/// Inactive file pages from which only they are looked at: a page at the first priority, 2^-12 of the list
/// (`cache_trim_mode` in `mm/vmscan.c`).
const CACHE_TRIM: u64 = 1 << 12;
/// Pages that leave the active list at a time (`SWAP_CLUSTER_MAX`).
const BATCH: u32 = 32;

fn inactive_is_low(pages: &Pages, at: At, kind: PageKind) -> bool {
    let [inactive, active] = pages.lists[at as usize][kind as usize];
    let gib = (inactive + active) >> 18;
    let ratio = ((10 * gib) as f64).sqrt().floor().max(1.0) as u64;
    inactive * ratio < active
}

impl Lru {
    /// Begins a pass of reclaim.
    pub(crate) fn begin(&mut self) {
        self.scanned = [0; 2];
    }

    fn choose(&self, pages: &Pages, at: At, anon: bool) -> Option<PageKind> {
        let lists = &pages.lists[at as usize];
        let file = lists[PageKind::File as usize];
        if !anon || (file[0] >= CACHE_TRIM && !inactive_is_low(pages, at, PageKind::File)) {
            return (file[0] + file[1] > 0).then_some(PageKind::File);
        }
        let weights = [SCANNED_ANON, SCANNED_FILE];
        let size = |k: PageKind| lists[k as usize].iter().sum::<u64>();
        let turn = |k: &PageKind| {
            let of = *k as usize;
            self.scanned[of] as f64 / (size(*k) * weights[of]) as f64
        };
        let there = PageKind::ALL.into_iter().filter(|k| size(*k) > 0);
        there.min_by(|a, b| turn(a).total_cmp(&turn(b)))
    }

    /// Looks at a page of the inactive list. None if there is no page to look at. Without `anon` only file pages are; a thread
    /// that waits is `urgent`.
    pub(crate) fn look(
        &mut self,
        pages: &mut Pages,
        tier: Tier,
        anon: bool,
        urgent: bool,
        draws: &mut Draws,
    ) -> Option<Look> {
        let at = At::from(tier);
        let kind = self.choose(pages, at, anon)?;
        let mut looked = 0;
        if inactive_is_low(pages, at, kind) {
            for _ in 0..BATCH {
                let Some(found) = self.front[kind as usize].next(pages, kind, at, true) else {
                    break;
                };
                pages.test_and_clear(found.extent, found.page, draws);
                pages.change(found.extent, found.page, 0, ACTIVE | REFERENCED);
                looked += 1;
            }
        }
        self.scanned[kind as usize] += 1;
        let Some(found) = self.back[kind as usize].next(pages, kind, at, false) else {
            let look = Look {
                looked,
                ..Look::default()
            };
            return (looked > 0).then_some(look);
        };
        looked += 1;
        let Found { extent, page } = found;
        // Touches are known by interval: a page whose bit was cleared in this one had no time to be touched.
        if pages.age(page) == 0 && !urgent {
            return Some(Look {
                looked,
                is_early: true,
                ..Look::default()
            });
        }
        let evicted = match pages.test_and_clear(extent, page, draws) {
            // As `page_check_references`: touched once is remembered, touched again is active.
            true if pages.has(page, REFERENCED) => {
                pages.change(extent, page, ACTIVE, REFERENCED);
                None
            }
            true => {
                pages.change(extent, page, REFERENCED, 0);
                None
            }
            false => Some(found),
        };
        Some(Look {
            evicted,
            looked,
            is_early: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use weir_model::units::Bytes;

    /// Pages of a preset, of which a node holds this many by kind and list.
    fn holding(anon: [u64; 2], file: [u64; 2]) -> Pages {
        let mut pages = Pages::new(&presets::by_name("web1", Bytes::mib(64)).unwrap());
        pages.lists[At::Fast as usize] = [anon, file];
        pages
    }

    #[test]
    fn the_inactive_list_is_low_below_a_root_of_ten_times_the_gib() {
        let gib = 1 << 18;
        for (size, ratio) in [(gib / 2, 1), (gib, 3), (10 * gib, 10), (100 * gib, 31)] {
            let least = size / (ratio + 1);
            let low = |inactive| {
                let pages = holding([inactive, size - inactive], [0; 2]);
                inactive_is_low(&pages, At::Fast, PageKind::Anon)
            };
            assert!(low(least - 1) && !low(least + 1), "{size} {ratio}");
        }
    }

    #[test]
    fn anonymous_and_file_pages_are_looked_at_by_swappiness_and_size() {
        let turns = |anon: u64, file: u64| {
            let pages = holding([0, anon], [0, file]);
            let mut lru = Lru::default();
            for _ in 0..200 {
                let kind = lru.choose(&pages, At::Fast, true).unwrap();
                lru.scanned[kind as usize] += 1;
            }
            lru.scanned
        };
        assert_eq!(turns(1000, 1000), [60, 140]);
        assert_eq!(turns(7000, 3000), [100, 100]);
        assert_eq!(turns(1000, 0), [200, 0]);
        // As long as files that were not used again abound, and where there is no swap, only files are.
        let choose =
            |anon, file, swap| Lru::default().choose(&holding([0, anon], file), At::Fast, swap);
        assert_eq!(choose(9, [CACHE_TRIM, 0], true), Some(PageKind::File));
        assert_eq!(choose(9, [CACHE_TRIM - 1, 0], true), Some(PageKind::Anon));
        assert_eq!(choose(9, [1, 0], false), Some(PageKind::File));
        assert_eq!(choose(9, [0, 0], false), None);
    }
}
