//! From the number of an access to its line.
//!
//! The order is a function of the number, so any access can be located without walking to it: an access
//! thousands of accesses ago, to which a write-back belongs, as easily as the next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use weir_model::access::{Locality, Pattern};
use weir_model::units::{Bytes, LINE_BYTES};

use crate::divide::Divisor;
use crate::line::Place;
use crate::rng::{self, Permutation};

/// A part of a thread's memory on one tier.
#[derive(Debug, Clone, Copy)]
pub struct Region {
    /// The tier.
    pub tier: u8,
    /// First line, within the tier.
    pub first: u64,
    /// Consecutive pages that are here before the next region's turn.
    pub weight: u64,
}

/// The order in which a thread accesses its lines.
#[derive(Debug, Clone)]
pub struct Walk {
    order: Order,
    lines: Divisor,
    regions: Vec<Region>,
    total_weight: u64,
    lines_per_page: u64,
    page_shift: u32,
    seed: u64,
    /// Pages that are elsewhere than in its regions; its copies share them.
    moved: Arc<OnceLock<MovedPages>>,
}

/// The place of the first line of each page that is elsewhere, as a key.
#[derive(Debug)]
struct MovedPages(Vec<AtomicU64>);

impl MovedPages {
    const NONE: u64 = u64::MAX;

    #[inline]
    fn place(&self, page: u64) -> Option<Place> {
        let key = self.0.get(page as usize)?.load(Ordering::Relaxed);
        (key != Self::NONE).then(|| Place::from_key(key))
    }
}

/// Pages of a block within which frames are assigned in another order than pages.
const BLOCK_PAGES: u64 = 512;

/// The position of a thread that accesses a page line by line.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    place: Place,
    /// Lines after it that follow in the same page.
    left: u64,
}

impl Cursor {
    /// Looks for the next line's page again: it may have moved.
    pub fn forget(&mut self) {
        self.left = 0;
    }
}

impl Cursor {
    /// The tier of its current line.
    #[inline]
    pub fn tier(&self) -> u8 {
        self.place.tier
    }
}

impl Default for Cursor {
    fn default() -> Self {
        Self {
            place: Place { tier: 0, line: 0 },
            left: 0,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Order {
    Sequential,
    RandomLine,
    RandomBlock { lines: u64 },
    Burst { lines: u64 },
    Chase(Permutation),
    LocalChase { window: Permutation, windows: u64 },
}

impl Walk {
    /// A walk over `working_set` bytes in `regions`, page by page. A TLB-friendly chase stays within `reach`
    /// bytes at a time.
    pub fn new(
        pattern: Pattern,
        working_set: Bytes,
        regions: Vec<Region>,
        page: Bytes,
        reach: Bytes,
        seed: u64,
    ) -> Self {
        let lines = working_set.lines().max(1);
        let order = match pattern {
            Pattern::Sequential
            | Pattern::SharedLine
            | Pattern::Descriptors { .. }
            | Pattern::Requests { .. } => Order::Sequential,
            Pattern::RandomLine | Pattern::FlushedLine => Order::RandomLine,
            Pattern::RandomBlock { block } => Order::RandomBlock {
                lines: block.lines().max(1),
            },
            Pattern::FlushedBurst { lines: burst } => Order::Burst {
                lines: u64::from(burst).clamp(1, lines),
            },
            Pattern::Chase {
                locality: Locality::Random,
            } => Order::Chase(Permutation::new(lines, seed)),
            Pattern::Chase {
                locality: Locality::TlbFriendly,
            } => {
                // Windows of equal size, each at most the reach; fewer lines than there are windows are left over.
                let windows = lines.div_ceil(reach.lines().max(1));
                Order::LocalChase {
                    window: Permutation::new(lines / windows, seed),
                    windows,
                }
            }
        };
        Self {
            order,
            lines: Divisor::new(lines),
            total_weight: regions.iter().map(|r| r.weight).sum::<u64>().max(1),
            regions,
            lines_per_page: (page.get() / LINE_BYTES).max(1),
            page_shift: (page.get() / LINE_BYTES).max(1).ilog2(),
            seed,
            moved: Arc::default(),
        }
    }

    /// Pages of the working set.
    pub fn pages(&self) -> u64 {
        self.lines().div_ceil(self.lines_per_page)
    }

    /// The lines of each tier that it was given: the tier, the first line, and how many.
    pub fn extents(&self) -> impl Iterator<Item = (u8, u64, u64)> {
        let block = self.lines_per_page * BLOCK_PAGES;
        let among = self.regions.len() > 1;
        self.regions.iter().map(move |region| {
            let lines = (self.lines() * region.weight).div_ceil(self.total_weight);
            let lines = if among {
                lines.next_multiple_of(block)
            } else {
                lines
            };
            (region.tier, region.first, lines)
        })
    }

    /// How many of its pages are on each tier.
    pub fn pages_by_tier(&self) -> Vec<(u8, u64)> {
        let mut pages: Vec<(u8, u64)> = Vec::new();
        let mut add = |tier, more| match pages.iter_mut().find(|(of, _)| *of == tier) {
            Some((_, count)) => *count += more,
            None => pages.push((tier, more)),
        };
        if self.moved.get().is_some() {
            (0..self.pages()).for_each(|page| add(self.page(page).tier, 1));
            return pages;
        }
        let (rounds, mut rest) = (
            self.pages() / self.total_weight,
            self.pages() % self.total_weight,
        );
        for region in &self.regions {
            let last = rest.min(region.weight);
            rest -= last;
            add(region.tier, rounds * region.weight + last);
        }
        pages
    }

    /// Where a page begins.
    pub fn page(&self, page: u64) -> Place {
        self.place_of_offset(page * self.lines_per_page)
    }

    /// Puts a page elsewhere, for all copies of this walk. Its lines follow each other there.
    pub fn move_page(&self, page: u64, to: Place) {
        let moved = self.moved.get_or_init(|| {
            let none = || AtomicU64::new(MovedPages::NONE);
            MovedPages((0..self.pages()).map(|_| none()).collect())
        });
        if let Some(place) = moved.0.get(page as usize) {
            place.store(to.key(), Ordering::Relaxed);
        }
    }

    /// Lines in the working set.
    pub fn lines(&self) -> u64 {
        self.lines.get()
    }

    /// Whether it stays within reach of the TLB.
    pub fn is_local(&self) -> bool {
        !matches!(self.order, Order::Chase(_) | Order::RandomLine)
    }

    /// Lines of a block after which posted stores are fenced; `None` if they are not fenced.
    pub fn fenced_block(&self) -> Option<u64> {
        match self.order {
            Order::RandomBlock { lines } => Some(lines),
            _ => None,
        }
    }

    /// Consecutive lines that a prefetcher can follow from the start of a run; `u64::MAX` if the run never
    /// ends.
    pub fn run_lines(&self) -> u64 {
        match self.order {
            Order::Sequential => u64::MAX,
            Order::RandomBlock { lines } => lines,
            _ => 1,
        }
    }

    /// Whether a prefetcher follows the run of access `index` after it saw the requests of L1, including its
    /// prefetchers', for the accesses before `reach`: it follows a run once `training` of its lines were
    /// requested. It follows a run over several pages without a break: only single streams of the streamer
    /// stop at 4 KiB (Intel Optimization Reference Manual 248966); next-page prefetchers continue.
    #[inline]
    pub fn foresees(&self, index: u64, reach: u64, training: u64) -> bool {
        match self.order {
            Order::Sequential => true,
            _ => index - index % self.run_lines() + training <= reach,
        }
    }

    /// The line of access `index`, from the start of the working set.
    #[inline]
    pub fn offset(&self, index: u64) -> u64 {
        match self.order {
            Order::Sequential => self.lines.div_rem(index).1,
            Order::RandomLine => rng::below(self.seed, index, self.lines()),
            Order::RandomBlock { lines } => {
                let blocks = (self.lines() / lines).max(1);
                rng::below(self.seed, index / lines, blocks) * lines + index % lines
            }
            // Each thread starts in a part of its own, so that no two access the same line.
            Order::Burst { lines } => {
                let part = self.lines() / lines;
                index % lines * part + rng::below(self.seed, index, part)
            }
            Order::Chase(order) => order.at(self.lines.div_rem(index).1),
            Order::LocalChase { window, windows } => {
                let size = self.lines() / windows;
                let n = index / size % windows;
                n * size + window.at(index % size)
            }
        }
    }

    /// The place of access `index`.
    #[inline]
    pub fn place(&self, index: u64) -> Place {
        self.place_of_offset(self.offset(index))
    }

    /// The place of the line `offset` of a region. Consecutive pages have frames that are not consecutive, as
    /// the kernel assigns frames to threads that fault together. Otherwise, streams that start a whole number
    /// of rows apart would use the same banks for ever.
    #[inline]
    fn frame(&self, offset: u64) -> u64 {
        let (page, within) = (
            offset >> self.page_shift,
            offset & ((1 << self.page_shift) - 1),
        );
        let (block, page) = (page / BLOCK_PAGES, page % BLOCK_PAGES);
        // An odd factor permutes the block.
        let key = (self.seed ^ block).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let frame = (page.wrapping_mul((key >> 40) | 1).wrapping_add(key >> 20)) % BLOCK_PAGES;
        ((block * BLOCK_PAGES + frame) << self.page_shift) | within
    }

    /// The place of access `index`; `cursor` may still know it from the access before.
    #[inline(always)]
    pub fn follow(&self, cursor: &mut Cursor, index: u64) -> Place {
        if cursor.left > 0 {
            cursor.left -= 1;
            cursor.place.line += 1;
            return cursor.place;
        }
        self.seek(cursor, index)
    }

    /// The same if it does not.
    #[inline(never)]
    fn seek(&self, cursor: &mut Cursor, index: u64) -> Place {
        cursor.place = self.place(index);
        if let Order::Sequential = self.order {
            let offset = self.offset(index);
            let page_left = !offset & ((1 << self.page_shift) - 1);
            cursor.left = page_left.min(self.lines() - 1 - offset);
        }
        cursor.place
    }

    /// The place of the line `offset` of the working set.
    #[inline]
    pub fn place_of_offset(&self, offset: u64) -> Place {
        if let (None, [only]) = (self.moved.get(), self.regions.as_slice()) {
            return Place {
                tier: only.tier,
                line: only.first + offset,
            };
        }
        self.place_among(offset)
    }

    /// The same if there are several regions, or pages have moved.
    #[inline(never)]
    fn place_among(&self, offset: u64) -> Place {
        if let Some(moved) = self.moved.get()
            && let Some(page) = moved.place(offset >> self.page_shift)
        {
            let within = offset & ((1 << self.page_shift) - 1);
            return Place {
                tier: page.tier,
                line: page.line + within,
            };
        }
        if let [only] = self.regions.as_slice() {
            return Place {
                tier: only.tier,
                line: only.first + offset,
            };
        }
        let (page, within) = (offset / self.lines_per_page, offset % self.lines_per_page);
        let (round, mut turn) = (page / self.total_weight, page % self.total_weight);
        for region in &self.regions {
            if turn < region.weight {
                let page = round * region.weight + turn;
                let line = region.first + self.frame(page * self.lines_per_page + within);
                return Place {
                    tier: region.tier,
                    line,
                };
            }
            turn -= region.weight;
        }
        Place {
            tier: 0,
            line: offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn regions(weights: &[u64]) -> Vec<Region> {
        weights
            .iter()
            .enumerate()
            .map(|(i, &weight)| Region {
                tier: i as u8,
                first: 1000,
                weight,
            })
            .collect()
    }

    #[test]
    fn interleaved_pages_follow_the_weights_exactly() {
        let walk = Walk::new(
            Pattern::Sequential,
            Bytes::kib(4 * 50),
            regions(&[3, 2]),
            Bytes::kib(4),
            Bytes::mib(1),
            1,
        );
        let mut pages: HashMap<u8, HashSet<u64>> = HashMap::new();
        for i in 0..walk.lines() {
            let place = walk.place(i);
            assert!(place.line >= 1000);
            pages
                .entry(place.tier)
                .or_default()
                .insert((place.line - 1000) / 64);
        }
        assert_eq!(pages[&0].len(), 30);
        assert_eq!(pages[&1].len(), 20);
        // Each tier's pages are in the block to which its share is rounded up.
        assert!(pages.values().flatten().all(|&p| p < BLOCK_PAGES));
    }

    #[test]
    fn a_cursor_finds_what_counting_finds() {
        for (pattern, kib) in [(Pattern::Sequential, 37), (Pattern::RandomLine, 64)] {
            let walk = Walk::new(
                pattern,
                Bytes::kib(kib),
                regions(&[3, 2]),
                Bytes::kib(4),
                Bytes::mib(1),
                1,
            );
            let mut cursor = Cursor::default();
            for index in 5..3 * walk.lines() {
                assert_eq!(
                    walk.follow(&mut cursor, index),
                    walk.place(index),
                    "{index}"
                );
            }
        }
    }

    #[test]
    fn a_friendly_chase_visits_lines_once_whatever_its_memory_is_in_windows() {
        for (lines, reach) in [
            (1000, 64),
            (1000, 999),
            (1000, 1001),
            (65, 64),
            (1, 64),
            (127, 2),
        ] {
            let walk = Walk::new(
                Pattern::Chase {
                    locality: Locality::TlbFriendly,
                },
                Bytes(lines * LINE_BYTES),
                regions(&[1]),
                Bytes::kib(4),
                Bytes(reach * LINE_BYTES),
                7,
            );
            let windows = lines.div_ceil(reach);
            let round = lines / windows * windows;
            let seen: HashSet<u64> = (0..round).map(|i| walk.offset(i)).collect();
            assert_eq!(seen.len() as u64, round, "{lines} {reach}");
            assert!(round + windows > lines && seen.iter().all(|&line| line < lines));
        }
    }

    #[test]
    fn a_chase_visits_every_line_once_before_any_again() {
        for locality in [Locality::Random, Locality::TlbFriendly] {
            let walk = Walk::new(
                Pattern::Chase { locality },
                Bytes::kib(256),
                regions(&[1]),
                Bytes::kib(4),
                Bytes::kib(64),
                7,
            );
            let seen: HashSet<u64> = (0..walk.lines()).map(|i| walk.offset(i)).collect();
            assert_eq!(seen.len() as u64, walk.lines());
        }
    }

    #[test]
    fn a_friendly_chase_stays_in_its_window() {
        let walk = Walk::new(
            Pattern::Chase {
                locality: Locality::TlbFriendly,
            },
            Bytes::mib(1),
            regions(&[1]),
            Bytes::kib(4),
            Bytes::kib(64),
            7,
        );
        for i in 0..1024 {
            assert!(walk.offset(i) < 1024);
        }
    }
}
