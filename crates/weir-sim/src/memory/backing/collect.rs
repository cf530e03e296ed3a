//! Pages of flash behind a map, and garbage collection.
//!
//! A page of flash is not written again before its block is erased. So a page that is programmed goes into the open block
//! of its die, and its old copy is invalid. When a die has few free blocks, the block with the fewest valid pages is
//! chosen (greedy), its valid pages are copied into the open block, and it is erased. Copies are spread over the programs
//! that follow, as many for each that twice what these programs take becomes free.
//!
//! Each die has a map of its own, for a page stays on its die. A device has more blocks than matter for the share of
//! valid pages in a victim, which depends on the spare share alone. So a die has at most [`MOST_BLOCKS`] of them here,
//! and several pages share an entry of the map where the device has more.
//!
//! A run begins in the middle of things: a device that was written at random for long collects as often at the first
//! program of a tenant as at any other, and each die is at another point of it.

use crate::rng::{self, Permutation};

/// Constants of blocks.
#[derive(Debug, Clone, Copy)]
pub struct BlockConfig {
    /// Pages of the cache in a block.
    pub pages: u32,
    /// Pages of the device's capacity on each die.
    pub of_die: u64,
    /// Blocks beyond those that hold the capacity, as a share of these.
    pub spare: f64,
    /// Shares of free blocks between which a die collects.
    pub collect_at: f64,
    pub collect_to: f64,
}

/// Blocks of a die that hold data here.
const MOST_BLOCKS: u64 = 32;
const NOTHING: u32 = u32::MAX;

/// What a die does besides programming a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Pages that it reads and programs elsewhere.
    pub copies: u32,
    pub erases: u32,
}

/// The blocks of one die.
pub struct DieBlocks {
    config: BlockConfig,
    /// Where each entry of the map is: a page among all blocks.
    place: Vec<u32>,
    /// Which entry a page holds, or none.
    holds: Vec<u32>,
    valid: Vec<u32>,
    free: Vec<u32>,
    /// The open block, and its next page.
    open: (u32, u32),
    /// The victim, its next page, and copies for each program.
    victim: Option<(u32, u32, u32)>,
    collects: bool,
    low: usize,
    high: usize,
}

impl DieBlocks {
    /// The blocks of a device that has been written at random for long: from the newest block to the oldest, ever fewer
    /// pages are valid.
    pub fn new(config: BlockConfig, seed: u64) -> Self {
        let pages = config.pages.max(2);
        let blocks = config
            .of_die
            .div_ceil(u64::from(pages))
            .clamp(8, MOST_BLOCKS);
        let closed =
            ((blocks as f64 * (1.0 + config.spare)).ceil() as usize).max(blocks as usize + 1);
        // As many as leave the spare share, which is no whole number of blocks.
        let room = (closed as f64 * f64::from(pages) / (1.0 + config.spare)) as u64;
        let entries = room.min(config.of_die.max(1)) as usize;
        let share = |of: f64| (of * closed as f64).ceil() as usize;
        let low = share(config.collect_at).max(2);
        let high = share(config.collect_to).max(low + 1);
        let all = closed + 1 + low;
        let mut die = Self {
            config: BlockConfig { pages, ..config },
            place: vec![NOTHING; entries],
            holds: vec![NOTHING; all * pages as usize],
            valid: vec![0; all],
            free: (closed as u32 + 1..all as u32).collect(),
            open: (closed as u32, 0),
            victim: None,
            collects: false,
            low,
            high,
        };
        die.fill(closed, seed);
        die.settle(seed);
        die
    }

    /// Writes at random until a block is erased, and then for as long as chance has it within a round of collecting.
    fn settle(&mut self, seed: u64) {
        let (seed, pages) = (rng::mix(seed), u64::from(self.config.pages));
        let round = pages * (self.high - self.low + 1) as u64;
        let mut left = rng::below(seed, 0, round);
        let mut collected = false;
        for n in 1.. {
            collected |= self
                .program(rng::below(seed, n, self.config.of_die.max(1)))
                .erases
                > 0;
            if collected {
                if left == 0 {
                    return;
                }
                left -= 1;
            }
        }
    }

    /// Fills the closed blocks. The `n`th oldest has the share e^(-k n) of its pages valid, where k gives all entries a
    /// place (blocks written at random and collected in turn).
    fn fill(&mut self, closed: usize, seed: u64) {
        let pages = self.config.pages as usize;
        let entries = self.place.len();
        let mean = entries as f64 / (closed * pages) as f64;
        let of = |k: f64| (1.0 - (-k).exp()) / k;
        let (mut low, mut high) = (1e-9, 64.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            match of(middle) > mean {
                true => low = middle,
                false => high = middle,
            }
        }
        let order = Permutation::new(entries as u64, seed);
        let mut next = 0;
        for block in 0..closed {
            // What is left must fit into the blocks that are left.
            let least = (entries - next).saturating_sub((closed - block - 1) * pages);
            let share = (-low * (closed - block) as f64 / closed as f64).exp();
            let count = ((share * pages as f64) as usize)
                .max(least)
                .min(pages)
                .min(entries - next);
            for page in 0..count {
                let entry = order.at((next + page) as u64) as usize;
                self.put(entry, block * pages + page);
            }
            next += count;
        }
    }

    fn put(&mut self, entry: usize, page: usize) {
        self.place[entry] = page as u32;
        self.holds[page] = entry as u32;
        self.valid[page / self.config.pages as usize] += 1;
    }

    /// The entry of the `n`th page of this die.
    fn entry(&self, n: u64) -> usize {
        let entries = self.place.len() as u128;
        let entry = u128::from(n) * entries / u128::from(self.config.of_die.max(1));
        entry.min(entries - 1) as usize
    }

    /// Programs the `n`th page of this die again.
    pub fn program(&mut self, n: u64) -> Work {
        let entry = self.entry(n);
        let mut work = Work::default();
        self.append(entry, &mut work);
        self.collects = match self.collects {
            false => self.free.len() < self.low,
            true => self.free.len() < self.high,
        };
        if self.collects || self.victim.is_some() {
            self.collect(&mut work);
        }
        work
    }

    /// Puts an entry into the open block.
    fn append(&mut self, entry: usize, work: &mut Work) {
        let pages = self.config.pages;
        if self.open.1 == pages {
            self.open_block(work);
        }
        let old = self.place[entry] as usize;
        if let Some(holds) = self.holds.get_mut(old) {
            *holds = NOTHING;
            self.valid[old / pages as usize] -= 1;
        }
        let (block, page) = self.open;
        self.open.1 += 1;
        self.put(entry, (block * pages + page) as usize);
    }

    /// Opens a free block. If there is none, the rest of the victim goes through the controller's memory and back into its
    /// block, which becomes the open one.
    fn open_block(&mut self, work: &mut Work) {
        if let Some(block) = self.free.pop() {
            self.open = (block, 0);
            return;
        }
        let victim = self.victim.take().map(|(block, ..)| block);
        let block = victim.unwrap_or_else(|| self.greedy());
        let pages = self.config.pages as usize;
        let from = block as usize * pages;
        let kept: Vec<u32> = (self.holds[from..from + pages].iter_mut())
            .map(|page| std::mem::replace(page, NOTHING))
            .filter(|&entry| entry != NOTHING)
            .collect();
        work.copies += kept.len() as u32;
        work.erases += 1;
        self.valid[block as usize] = 0;
        for (page, &entry) in kept.iter().enumerate() {
            self.put(entry as usize, from + page);
        }
        self.open = (block, kept.len() as u32);
    }

    /// The closed block with the fewest valid pages.
    fn greedy(&self) -> u32 {
        let closed = (0..self.valid.len() as u32)
            .filter(|block| *block != self.open.0 && !self.free.contains(block));
        closed
            .min_by_key(|&block| self.valid[block as usize])
            .unwrap_or(0)
    }

    /// Goes on with the victim.
    fn collect(&mut self, work: &mut Work) {
        let pages = self.config.pages;
        let (block, first, each) = self.victim.unwrap_or_else(|| {
            let block = self.greedy();
            let valid = self.valid[block as usize];
            let gain = (pages - valid).max(1);
            (block, 0, (2 * valid).div_ceil(gain))
        });
        let mut left = each;
        for page in first..pages {
            self.victim = Some((block, page, each));
            let entry = self.holds[(block * pages + page) as usize];
            if entry == NOTHING {
                continue;
            }
            if left == 0 {
                return;
            }
            left -= 1;
            work.copies += 1;
            self.append(entry as usize, work);
            if self.victim.is_none() {
                return;
            }
        }
        self.victim = None;
        work.erases += 1;
        self.free.push(block);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng;

    fn config(pages: u32, of_die: u64, spare: f64) -> BlockConfig {
        BlockConfig {
            pages,
            of_die,
            spare,
            collect_at: 0.02,
            collect_to: 0.04,
        }
    }

    /// Every entry is in one valid page, which says so.
    fn check(die: &DieBlocks) -> Result<(), TestCaseError> {
        let pages = die.config.pages as usize;
        for (entry, &page) in die.place.iter().enumerate() {
            prop_assert_eq!(die.holds[page as usize], entry as u32);
        }
        let held = die
            .holds
            .chunks(pages)
            .map(|b| b.iter().filter(|&&e| e != NOTHING).count() as u32);
        prop_assert!(held.eq(die.valid.iter().copied()));
        prop_assert_eq!(die.valid.iter().sum::<u32>() as usize, die.place.len());
        for &block in &die.free {
            prop_assert_eq!(die.valid[block as usize], 0);
            prop_assert!(block != die.open.0);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn no_page_is_lost_and_a_free_block_is_always_found(
            pages in 2u32..40,
            of_die in 10u64..4000,
            spare in 0.02f64..1.0,
            crowded in 1u64..50,
            seed: u64,
        ) {
            let mut die = DieBlocks::new(config(pages, of_die, spare), seed);
            check(&die)?;
            let (mut copies, mut erases) = (0, 0);
            let n = 4 * die.holds.len() as u64;
            for i in 0..n {
                let work = die.program(rng::below(seed, i, of_die.div_ceil(crowded)));
                copies += u64::from(work.copies);
                erases += u64::from(work.erases);
            }
            check(&die)?;
            // What was programmed went into erased pages, but for those that were free at first.
            prop_assert!(n + copies <= erases * u64::from(pages) + die.holds.len() as u64);
            prop_assert!(erases > 0);
        }
    }

    /// The write amplification of `writes` at random, after as many.
    fn amplification(spare: f64, writes: u64) -> [f64; 2] {
        let mut die = DieBlocks::new(config(128, 1 << 20, spare), 3);
        [0, 1].map(|half| {
            let of = |i| u64::from(die.program(rng::below(5, i, 1 << 20)).copies);
            let copies: u64 = (half * writes..(half + 1) * writes).map(of).sum();
            1.0 + copies as f64 / writes as f64
        })
    }

    #[test]
    fn amplification_follows_the_spare_share_and_is_steady_from_the_start() {
        // Blocks that are collected in turn have the share u of their pages valid, with u = e^((u - 1)(1 + spare)).
        for (spare, in_turn) in [(0.07, 7.5), (0.15, 3.9), (0.28, 2.4)] {
            let [first, later] = amplification(spare, 30_000);
            assert!(
                (0.7..1.1).contains(&(later / in_turn)),
                "{spare}: {later} of {in_turn}"
            );
            assert!(
                (0.7..1.4).contains(&(first / later)),
                "{spare}: {first}, then {later}"
            );
        }
    }

    #[test]
    fn pages_written_in_turn_are_hardly_copied() {
        let mut die = DieBlocks::new(config(64, 64 * 32, 0.1), 3);
        let mut copies = 0;
        for i in 0..20 * 64 * 32 {
            copies = if i == 10 * 64 * 32 { 0 } else { copies } + die.program(i % (64 * 32)).copies;
        }
        assert!(copies < 64 * 32, "{copies}");
    }
}
