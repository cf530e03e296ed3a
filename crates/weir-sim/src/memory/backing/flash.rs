//! The medium: dies that read and program, and the channels to them.
//!
//! A die does one thing after another, in the order in which it is asked; so its time is booked when it is asked. A channel
//! is booked when the data is there. Copies of garbage collection are done while a die has nothing else to do: a read
//! waits for the one under way, and a program for all of its die. A read that must not wait for internal tasks suspends
//! what its die does, and all else is later by the time that it takes (Wu and He, *Reducing SSD Read Latency via NAND
//! Flash Program and Erase Suspension*, FAST 2012).

use std::collections::{HashSet, VecDeque};

use super::collect::{BlockConfig, DieBlocks};
use crate::clock::Ps;
use crate::rng;

/// Constants of the medium.
#[derive(Debug, Clone)]
pub struct FlashConfig {
    /// Dies and planes, each of which works on its own.
    pub dies: u32,
    pub channels: u32,
    /// Time of a read, and of a program.
    pub read: Ps,
    pub program: Ps,
    /// Dies over which a page of the cache is spread, and pages of the cache that a die programs together. One of the two
    /// is 1.
    pub spread: u32,
    pub together: u32,
    /// Time of a page of the cache on a channel.
    pub cross: Ps,
    /// Programs under way.
    pub programs: u32,
    /// Time to suspend what a die does for a read.
    pub suspend: Ps,
    /// Time to erase a block, and the blocks, for media that have them.
    pub erase: Ps,
    pub blocks: Option<BlockConfig>,
}

/// Counts of a medium and its cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct MediaCounts {
    /// Lines whose page was in the cache, and lines that waited for it.
    pub hits: u64,
    pub misses: u64,
    /// Pages that came into the cache.
    pub fills: u64,
    /// Pages that were written to the medium because of tenants.
    pub written: u64,
    /// Pages that were read from it and programmed, with those that garbage collection copied.
    pub reads: u64,
    pub programs: u64,
    pub copies: u64,
    pub erases: u64,
    /// Pages that a worn-out medium could not program.
    pub lost: u64,
    /// Time of dies, summed, and the part of garbage collection.
    pub busy: u64,
    pub collecting: u64,
}

impl MediaCounts {
    /// Adds the counts of another device.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.hits, other.hits),
            (&mut self.misses, other.misses),
            (&mut self.fills, other.fills),
            (&mut self.written, other.written),
            (&mut self.reads, other.reads),
            (&mut self.programs, other.programs),
            (&mut self.copies, other.copies),
            (&mut self.erases, other.erases),
            (&mut self.lost, other.lost),
            (&mut self.busy, other.busy),
            (&mut self.collecting, other.collecting),
        ];
        for (sum, more) in pairs {
            *sum += more;
        }
    }
}

/// A program under way.
#[derive(Debug, Clone, Copy)]
struct Program {
    page: u64,
    starts: Ps,
    ends: Ps,
}

/// The medium in use.
pub struct Flash {
    config: FlashConfig,
    /// When each die and each channel is free.
    dies: Vec<Ps>,
    channels: Vec<Ps>,
    /// Until when each die reads for those that must not wait.
    reading: Vec<Ps>,
    /// Copies and erases that each die has before it, and the crossings of these on each channel.
    pending: Vec<VecDeque<Ps>>,
    owed: Vec<Ps>,
    /// Pages that wait in the register of each die until it programs several together.
    gathered: Vec<u32>,
    programs: VecDeque<Program>,
    /// Of each die, made when it first programs something.
    blocks: Vec<Option<DieBlocks>>,
    /// Pages that could not be programmed: what the medium has of them is old.
    lost: HashSet<u64>,
    seed: u64,
    pub counts: MediaCounts,
}

impl Flash {
    /// An idle medium.
    pub fn new(config: FlashConfig, seed: u64) -> Self {
        Self {
            dies: vec![0; config.dies as usize],
            channels: vec![0; config.channels as usize],
            reading: vec![0; config.dies as usize],
            pending: vec![VecDeque::new(); config.dies as usize],
            owed: vec![0; config.channels as usize],
            gathered: vec![0; config.dies as usize],
            programs: VecDeque::new(),
            blocks: (0..config.dies).map(|_| None).collect(),
            lost: HashSet::new(),
            seed,
            counts: MediaCounts::default(),
            config,
        }
    }

    /// The dies of a page.
    fn dies_of(&self, page: u64) -> impl Iterator<Item = usize> + use<> {
        let dies = u64::from(self.config.dies);
        let spread = u64::from(self.config.spread);
        (0..spread).map(move |n| ((page * spread + n) % dies) as usize)
    }

    /// A die works from `at` on; returns when it is done.
    fn work(&mut self, die: usize, at: Ps, time: Ps) -> Ps {
        self.counts.busy += time;
        self.dies[die] = self.dies[die].max(at) + time;
        self.dies[die]
    }

    /// Copies that a die begins before `at`.
    fn go_on(&mut self, die: usize, at: Ps) {
        while self.dies[die] < at
            && let Some(step) = self.pending[die].pop_front()
        {
            self.dies[die] += step;
        }
    }

    /// Reads a page into the registers of its dies, possibly before all else; returns when it is there.
    pub fn read(&mut self, page: u64, at: Ps, first: bool) -> Ps {
        self.counts.reads += 1;
        let read = self.config.read;
        self.dies_of(page).fold(at, |end, die| {
            self.go_on(die, at);
            if !first {
                return end.max(self.work(die, at, read));
            }
            let done = match self.dies[die] > at {
                true => self.read_first(die, at),
                false => self.work(die, at, read),
            };
            self.reading[die] = done;
            end.max(done)
        })
    }

    /// Reads with a die that is busy until later, once it has suspended what it does. What was booked ends later.
    fn read_first(&mut self, die: usize, at: Ps) -> Ps {
        let suspended = self.reading[die] > at;
        let taken = self.config.read + if suspended { 0 } else { self.config.suspend };
        let end = self.reading[die].max(at) + taken;
        self.counts.busy += taken;
        self.dies[die] += taken;
        let (dies, spread) = (u64::from(self.config.dies), u64::from(self.config.spread));
        for program in self.programs.iter_mut().filter(|program| program.ends > at) {
            let first = program.page * spread % dies;
            if (die as u64 + dies - first) % dies < spread {
                program.ends += taken;
                program.starts += if program.starts > at { taken } else { 0 };
            }
        }
        end
    }

    /// Sends a page between dies and controller; returns when it is there.
    pub fn cross(&mut self, page: u64, at: Ps) -> Ps {
        let part = self.config.cross / Ps::from(self.config.spread);
        self.dies_of(page).fold(at, |end, die| {
            let number = die % self.channels.len();
            let copied = self.owed[number].min(part);
            self.owed[number] -= copied;
            let channel = &mut self.channels[number];
            *channel = (*channel).max(at) + copied + part;
            end.max(*channel)
        })
    }

    /// Whether another program finds a place at `at`. There are as many again for pages that leave for reads that must not
    /// wait.
    pub fn has_room(&mut self, at: Ps, first: bool) -> bool {
        self.programs.retain(|program| program.ends > at);
        let places = self.config.programs as usize;
        self.programs.len() < if first { 2 * places } else { places }
    }

    /// When the next place is free.
    pub fn next_room(&self) -> Ps {
        self.programs
            .iter()
            .map(|program| program.ends)
            .min()
            .unwrap_or(0)
    }

    /// Whether a page that is programmed next has not been sent to its die yet.
    pub fn waits(&self, page: u64, at: Ps) -> bool {
        self.programs
            .iter()
            .any(|program| program.page == page && program.starts > at)
    }

    /// Whether the newest lines of a page are lost, since it could not be programmed.
    pub fn has_lost(&self, page: u64) -> bool {
        !self.lost.is_empty() && self.lost.contains(&page)
    }

    /// The blocks of a die.
    fn blocks(&mut self, die: usize) -> Option<&mut DieBlocks> {
        let config = self.config.blocks?;
        let seed = self.seed ^ die as u64;
        Some(self.blocks[die].get_or_insert_with(|| DieBlocks::new(config, rng::mix(seed))))
    }

    /// Whether the dies of a page take no more programs.
    fn is_read_only(&mut self, page: u64) -> bool {
        let first = self.dies_of(page).next();
        let blocks = first.and_then(|die| self.blocks(die));
        blocks.is_some_and(|blocks| blocks.is_read_only())
    }

    /// Takes a page that was written, for which there is a place.
    pub fn program(&mut self, page: u64, at: Ps) {
        self.counts.written += 1;
        if self
            .config
            .blocks
            .is_some_and(|blocks| blocks.wear.is_some())
            && self.is_read_only(page)
        {
            self.counts.lost += 1;
            self.lost.insert(page);
            return;
        }
        self.lost.remove(&page);
        self.counts.programs += 1;
        let sent = self.cross(page, at);
        let Some(first) = self.dies_of(page).next() else {
            return;
        };
        self.gathered[first] += 1;
        if self.gathered[first] >= self.config.together {
            self.gathered[first] = 0;
            let time = self.config.program;
            let mut ends = sent;
            for die in self.dies_of(page) {
                self.go_on(die, Ps::MAX);
                ends = ends.max(self.work(die, sent, time));
            }
            let starts = ends - time;
            self.programs.push_back(Program { page, starts, ends });
        }
        self.map(page, first, sent);
    }

    /// A page of flash has another place now, and garbage may have to be collected.
    fn map(&mut self, page: u64, die: usize, at: Ps) {
        let of_die = page / u64::from(self.config.dies);
        let Some(blocks) = self.blocks(die) else {
            return;
        };
        let work = blocks.program(of_die);
        let (copies, erases) = (Ps::from(work.copies), Ps::from(work.erases));
        if copies + erases == 0 {
            return;
        }
        self.counts.reads += copies;
        self.counts.programs += copies;
        self.counts.copies += copies;
        self.counts.erases += erases;
        let c = &self.config;
        let copy = c.read + 2 * c.cross + c.program / Ps::from(c.together);
        let time = copies * copy + erases * c.erase;
        self.owed[die % c.channels as usize] += 2 * copies * c.cross;
        if self.pending[die].is_empty() {
            self.dies[die] = self.dies[die].max(at);
        }
        self.pending[die].extend((0..copies).map(|_| copy));
        self.pending[die].extend((0..erases).map(|_| c.erase));
        self.counts.busy += time;
        self.counts.collecting += time;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const US: Ps = 1_000_000;

    fn flash() -> Flash {
        let config = FlashConfig {
            dies: 4,
            channels: 2,
            read: 3 * US,
            program: 100 * US,
            spread: 1,
            together: 1,
            cross: US,
            programs: 64,
            suspend: 2 * US,
            erase: 3000 * US,
            blocks: Some(BlockConfig {
                pages: 16,
                of_die: 200,
                spare: 0.1,
                collect_at: 0.02,
                collect_to: 0.04,
                wear: None,
            }),
        };
        Flash::new(config, 1)
    }

    proptest! {
        /// Reads wait for reads and for one suspension; programs and copies take no less time than without reads.
        #[test]
        fn a_read_that_goes_first_waits_for_reads_alone_and_takes_no_work_away(
            asked in prop::collection::vec((0u64..800, 0u64..60, any::<bool>()), 1..300),
        ) {
            let mut flash = flash();
            let (mut at, mut last) = (0, [0; 4]);
            for (page, pause, writes) in asked {
                at += pause * US;
                let die = (page % 4) as usize;
                if writes {
                    flash.program(page, at);
                    continue;
                }
                let before = flash.dies[die].max(at);
                let done = flash.read(page, at, true);
                prop_assert!(flash.dies[die] >= before + 3 * US, "what was booked is later");
                prop_assert!(done >= at + 3 * US && done >= last[die] + 3 * US);
                prop_assert!(done <= last[die].max(at) + 5 * US, "{done} at {at}");
                last[die] = done;
            }
            // Each die has worked or will have worked for what it was asked.
            let booked: Ps = (0..4)
                .map(|die| flash.dies[die] + flash.pending[die].iter().sum::<Ps>())
                .sum();
            prop_assert!(booked >= flash.counts.busy);
            prop_assert!(flash.programs.iter().all(|p| p.ends - p.starts >= 100 * US));
        }
    }

    #[test]
    fn a_read_waits_for_the_program_under_way_unless_it_goes_first() {
        // The page has crossed its channel after a microsecond, and is programmed then.
        for (first, done) in [(false, 1 + 100 + 3), (true, 2 + 2 + 3)] {
            let mut flash = flash();
            flash.program(0, 0);
            assert_eq!(flash.read(0, 2 * US, first), done * US);
        }
    }
}
