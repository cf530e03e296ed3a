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
//! Where blocks wear, each stands a number of erases of its own. One that has had them is retired, so that less is spare; when
//! the rest holds no more than the data, the die takes no more programs. Blocks are levelled: the one that was erased least is
//! opened first, and becomes the victim once it is [`LEVELLED`] erases behind the one that was erased most.
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
    /// How long blocks last, where a run begins with worn ones.
    pub wear: Option<WearConfig>,
}

/// How long blocks last.
#[derive(Debug, Clone, Copy)]
pub struct WearConfig {
    /// Erases that a block stands on average.
    pub endurance: u32,
    /// Share of that by which the best and the worst block differ from it.
    pub spread: f64,
    /// Share of it that each block has had when a run begins.
    pub worn: f64,
}

impl WearConfig {
    /// Erases that the `n`th block still stands.
    fn left(&self, seed: u64, n: usize) -> u64 {
        let own = 1.0 + self.spread * (2.0 * rng::unit(seed ^ 0x0077_6561_7200, n as u64) - 1.0);
        ((own - self.worn).max(0.0) * f64::from(self.endurance)).floor() as u64
    }
}

/// Blocks of a die that hold data here.
const MOST_BLOCKS: u64 = 32;
/// Erases by which a block is behind another one at most before it is collected whatever it holds. Assumed: fewer cost copies
/// of data that rest, more let blocks differ.
const LEVELLED: u32 = 16;
const NOTHING: u32 = u32::MAX;

/// What a die does besides programming a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Pages that it reads and programs elsewhere.
    pub copies: u32,
    pub erases: u32,
}

/// How worn blocks are.
struct Wear {
    /// Erases that each block still stands, and has had in this run.
    left: Vec<u64>,
    erased: Vec<u32>,
    /// Blocks that are used no more, besides those that were worn out from the start.
    retired: Vec<u32>,
    /// Blocks that must stay.
    least: usize,
    is_read_only: bool,
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
    wear: Option<Wear>,
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
        let (closed, wear) = Wear::begin(&config, seed, (closed, low), entries);
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
            wear: None,
        };
        die.fill(closed, seed);
        die.settle(seed);
        // What happened before the run is in the wear that it begins with.
        die.wear = wear;
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

    /// Whether this many blocks are worn out that it takes no more programs.
    pub fn is_read_only(&self) -> bool {
        self.wear.as_ref().is_some_and(|wear| wear.is_read_only)
    }

    /// Programs the `n`th page of this die again.
    pub fn program(&mut self, n: u64) -> Work {
        let entry = self.entry(n);
        let mut work = Work::default();
        if self.is_read_only() {
            return work;
        }
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
        let next = match &self.wear {
            None => self.free.pop(),
            Some(wear) => {
                let least =
                    (0..self.free.len()).min_by_key(|&i| wear.erased[self.free[i] as usize]);
                least.map(|i| self.free.swap_remove(i))
            }
        };
        if let Some(block) = next {
            self.open = (block, 0);
            return;
        }
        let victim = self.victim.take().map(|(block, ..)| block);
        // One that is collected because it is behind may be full, and one that is worn out is not used again.
        let fits =
            |block: &u32| self.valid[*block as usize] < self.config.pages && self.is_whole(*block);
        let whole = self.closed().filter(|&block| self.is_whole(block));
        let block = victim
            .filter(fits)
            .unwrap_or_else(|| self.fewest_valid(whole));
        let pages = self.config.pages as usize;
        let from = block as usize * pages;
        let kept: Vec<u32> = (self.holds[from..from + pages].iter_mut())
            .map(|page| std::mem::replace(page, NOTHING))
            .filter(|&entry| entry != NOTHING)
            .collect();
        work.copies += kept.len() as u32;
        work.erases += 1;
        if let Some(wear) = &mut self.wear {
            // One that is worn out is needed at once, and is retired when it is erased next.
            wear.erase(block);
        }
        self.valid[block as usize] = 0;
        for (page, &entry) in kept.iter().enumerate() {
            self.put(entry as usize, from + page);
        }
        self.open = (block, kept.len() as u32);
    }

    /// The closed blocks.
    fn closed(&self) -> impl Iterator<Item = u32> + Clone {
        let retired = self.wear.as_ref().map_or(&[][..], |wear| &wear.retired);
        (0..self.valid.len() as u32).filter(move |block| {
            *block != self.open.0 && !self.free.contains(block) && !retired.contains(block)
        })
    }

    /// Whether a block is not worn out.
    fn is_whole(&self, block: u32) -> bool {
        (self.wear.as_ref()).is_none_or(|wear| wear.left[block as usize] > 0)
    }

    /// The block with the fewest valid pages (greedy).
    fn fewest_valid(&self, blocks: impl Iterator<Item = u32>) -> u32 {
        let fewest = blocks.min_by_key(|&block| self.valid[block as usize]);
        fewest.unwrap_or(0)
    }

    /// The block that is collected next: one that is too far behind in erases, or that with the fewest valid pages.
    fn next_victim(&self) -> u32 {
        let behind = (self.wear.as_ref()).and_then(|wear| wear.behind(self.closed()));
        behind.unwrap_or_else(|| self.fewest_valid(self.closed()))
    }

    /// Goes on with the victim.
    fn collect(&mut self, work: &mut Work) {
        let pages = self.config.pages;
        let (block, first, each) = self.victim.unwrap_or_else(|| {
            let block = self.next_victim();
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
        let is_whole = self.wear.as_mut().is_none_or(|wear| wear.erase(block));
        match &mut self.wear {
            Some(wear) if !is_whole && !wear.is_read_only => wear.retired.push(block),
            _ => self.free.push(block),
        }
    }
}

impl Wear {
    /// How worn the blocks are when a run begins, and how many closed ones are left of `closed`, besides the open one and
    /// `low` free ones. Worn-out blocks are beyond those that are simulated.
    fn begin(
        config: &BlockConfig,
        seed: u64,
        (closed, low): (usize, usize),
        entries: usize,
    ) -> (usize, Option<Self>) {
        let Some(of) = config.wear else {
            return (closed, None);
        };
        let pages = config.pages.max(2) as usize;
        // With one block more than the data fill, some block always has a page that is not valid.
        let least = entries.div_ceil(pages) + 2;
        let all = closed + 1 + low;
        // A block here stands for several of the device.
        let real = config.of_die as f64 * (1.0 + config.spare) / (closed * pages) as f64;
        let erases = |left: u64| (left as f64 * real.max(1.0)) as u64;
        let mut left: Vec<u64> = (0..all).map(|n| erases(of.left(seed, n))).collect();
        left.sort_unstable_by_key(|&left| std::cmp::Reverse(left));
        let whole = left.iter().filter(|&&left| left > 0).count();
        left.truncate(whole.max(least + low).min(all));
        let wear = Self {
            erased: vec![0; left.len()],
            retired: Vec::new(),
            least,
            is_read_only: whole < least,
            left,
        };
        (wear.left.len() - 1 - low, Some(wear))
    }

    /// A block was erased. Returns whether it may be used again.
    fn erase(&mut self, block: u32) -> bool {
        self.erased[block as usize] += 1;
        let left = &mut self.left[block as usize];
        *left = left.saturating_sub(1);
        let is_whole = *left > 0;
        if !is_whole {
            let whole = self.left.iter().filter(|&&left| left > 0).count();
            self.is_read_only |= whole < self.least;
        }
        is_whole
    }

    /// The closed block that was erased least, if it is too far behind.
    fn behind(&self, closed: impl Iterator<Item = u32> + Clone) -> Option<u32> {
        let erased = |block: &u32| self.erased[*block as usize];
        let most = closed.clone().map(|block| erased(&block)).max()?;
        let least = closed.min_by_key(erased)?;
        (most - erased(&least) > LEVELLED).then_some(least)
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
            wear: None,
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

    proptest! {
        /// Blocks that are retired and those that live are all blocks, each is erased as often as it stands at most, no page
        /// is lost, and no live block is far behind another one, however few pages are written.
        #[test]
        fn blocks_wear_alike_and_the_die_is_read_only_once_the_spare_ones_are_gone(
            spare in 0.1f64..0.8,
            spread in 0.0f64..0.5,
            worn in 0.0f64..1.2,
            crowded in 1u64..30,
            seed: u64,
        ) {
            let of_die = 16 * 20;
            let wear = Some(WearConfig { endurance: 40, spread, worn });
            let new = DieBlocks::new(BlockConfig { wear: None, ..config(16, of_die, spare) }, seed);
            let mut die = DieBlocks::new(BlockConfig { wear, ..config(16, of_die, spare) }, seed);
            let all = new.valid.len();
            let (mut erases, mut programs) = (0, 0_u64);
            let stands = die.wear.as_ref().unwrap().left.clone();
            let before = all - die.valid.len();
            let mut retired = before;
            while !die.is_read_only() && programs < 1_000_000 {
                erases += u64::from(die.program(rng::below(seed, programs, of_die.div_ceil(crowded))).erases);
                programs += 1;
                let wear = die.wear.as_ref().unwrap();
                prop_assert!(before + wear.retired.len() >= retired);
                retired = before + wear.retired.len();
                let live = (0..die.valid.len()).filter(|&b| !wear.retired.contains(&(b as u32)));
                let erased = || live.clone().map(|b| wear.erased[b]);
                let behind = erased().max().unwrap() - erased().min().unwrap();
                prop_assert!(behind <= LEVELLED + 4, "{behind}");
                prop_assert_eq!(retired + live.count(), all);
            }
            check(&die)?;
            let wear = die.wear.as_ref().unwrap();
            prop_assert!(die.is_read_only(), "{programs} programs wear it out");
            prop_assert_eq!(wear.erased.iter().map(|&n| u64::from(n)).sum::<u64>(), erases);
            prop_assert!(die.valid.len() - wear.retired.len() >= wear.least);
            // A block that was needed at once has one erase more.
            let is_kept = |(&erased, &stands): (&u32, &u64)| u64::from(erased) <= stands + 1;
            prop_assert!(wear.erased.iter().zip(&stands).all(is_kept), "{:?} of {stands:?}", wear.erased);
            let work = die.program(0);
            prop_assert_eq!((work.copies, work.erases), (0, 0));
        }

        /// The more worn blocks are at first, the fewer programs are left.
        #[test]
        fn less_is_left_of_blocks_that_are_more_worn(spread in 0.0f64..0.5, seed: u64) {
            let left = [0.2, 0.5, 0.8, 1.0].map(|worn| {
                let wear = Some(WearConfig { endurance: 40, spread, worn });
                let mut die = DieBlocks::new(BlockConfig { wear, ..config(16, 320, 0.3) }, seed);
                (0_u64..).take_while(|&n| {
                    die.program(rng::below(seed, n, 320));
                    !die.is_read_only()
                }).count()
            });
            prop_assert!(left.is_sorted_by(|a, b| a > b || *a == 0 && *b == 0), "{left:?}");
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
