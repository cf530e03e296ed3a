//! The medium: dies that read and program, and the channels to them.
//!
//! A die does one thing after another, in the order in which it is asked; so its time is booked when it is asked. A channel
//! is booked when the data is there. Copies of garbage collection are done while a die has nothing else to do: a read
//! waits for the one under way, and a program for all of its die.

use std::collections::VecDeque;

use super::MediaCounts;
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
    /// Time to erase a block, and the blocks, for media that have them.
    pub erase: Ps,
    pub blocks: Option<BlockConfig>,
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
    /// Copies and erases that each die has before it, and the crossings of these on each channel.
    pending: Vec<VecDeque<Ps>>,
    owed: Vec<Ps>,
    /// Pages that wait in the register of each die until it programs several together.
    gathered: Vec<u32>,
    programs: VecDeque<Program>,
    /// Of each die, made when it first programs something.
    blocks: Vec<Option<DieBlocks>>,
    seed: u64,
    pub counts: MediaCounts,
}

impl Flash {
    /// An idle medium.
    pub fn new(config: FlashConfig, seed: u64) -> Self {
        Self {
            dies: vec![0; config.dies as usize],
            channels: vec![0; config.channels as usize],
            pending: vec![VecDeque::new(); config.dies as usize],
            owed: vec![0; config.channels as usize],
            gathered: vec![0; config.dies as usize],
            programs: VecDeque::new(),
            blocks: (0..config.dies).map(|_| None).collect(),
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

    /// Reads a page into the registers of its dies; returns when it is there.
    pub fn read(&mut self, page: u64, at: Ps) -> Ps {
        self.counts.reads += 1;
        let read = self.config.read;
        self.dies_of(page).fold(at, |end, die| {
            self.go_on(die, at);
            end.max(self.work(die, at, read))
        })
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

    /// Whether another program finds a place at `at`.
    pub fn has_room(&mut self, at: Ps) -> bool {
        self.programs.retain(|program| program.ends > at);
        self.programs.len() < self.config.programs as usize
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

    /// Takes a page that was written, for which there is a place.
    pub fn program(&mut self, page: u64, at: Ps) {
        self.counts.written += 1;
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
        let Some(config) = self.config.blocks else {
            return;
        };
        let seed = self.seed ^ die as u64;
        let blocks = self.blocks[die].get_or_insert_with(|| DieBlocks::new(config, rng::mix(seed)));
        let work = blocks.program(page / u64::from(self.config.dies));
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
