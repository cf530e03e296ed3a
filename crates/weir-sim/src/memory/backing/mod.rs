//! A device whose DRAM is a cache of pages of a slower medium.
//!
//! | file | content |
//! |---|---|
//! | `page_cache` | tags of the DRAM, and which page leaves |
//! | `footprint` | which pages are in it when a run begins |
//! | `flash` | dies and channels of the medium |
//! | `collect` | the map of flash pages, and garbage collection |
//!
//! A line whose page is in the cache is one of the DRAM. A miss reads its page: the controller's firmware, a die, a
//! channel. All lines of the page that come meanwhile wait for the same read. The number of such reads is limited, and so
//! are programs of written pages that left; what finds no place waits in order. A read line keeps its credit meanwhile, a
//! written line its place in the device's write buffer.

mod collect;
mod flash;
mod footprint;
mod page_cache;

use std::collections::VecDeque;
use std::ops::Range;

pub use collect::{BlockConfig, WearConfig};
pub use flash::FlashConfig;
pub use footprint::{Footprint, Reuse};
pub use page_cache::PageCacheConfig;

use self::flash::Flash;
pub use self::flash::MediaCounts;
use self::page_cache::{Found, PageCache, Victim};
use super::credits::Ticket;
use crate::clock::Ps;
use crate::rng;

/// Constants of a medium behind DRAM.
#[derive(Debug, Clone)]
pub struct BackingConfig {
    /// log2 of the lines of a page.
    pub page_bits: u32,
    pub cache: PageCacheConfig,
    /// Pages that are read at once.
    pub misses: u32,
    /// Time of a miss in the controller.
    pub firmware: Ps,
    /// Share of the pages that the medium cannot read.
    pub failing: f64,
    /// Whether a written page goes to the medium at once.
    pub writes_through: bool,
    pub flash: FlashConfig,
}

/// What waits for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiter {
    /// A line that is read: it came to the device's link at `sent`, and to the cache at `at`.
    Read {
        ticket: Ticket,
        line: u64,
        sent: Ps,
        at: Ps,
    },
    /// A written line in the write buffer since then.
    Write { line: u64, since: Ps },
    /// Nothing: the page is only fetched.
    Fetch,
}

impl Waiter {
    fn writes(self) -> bool {
        matches!(self, Waiter::Write { .. })
    }
}

/// What the DRAM moves because of the medium, and what may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moves {
    /// This page was read from the DRAM, to be programmed.
    Out(u64),
    /// This page was written into the DRAM.
    In(u64),
    /// The page of this one is in the cache, or cannot be read.
    Ready { waiter: Waiter, poison: bool },
}

/// The event at which what waits looks again for a place; smaller numbers are reads of pages.
const RETRY: u32 = 0xffff;

/// A page that is being read.
#[derive(Debug, Default)]
struct Fill {
    page: u64,
    /// Whether it is under way, and whether it has left its die.
    reads: bool,
    crosses: bool,
    waiters: Vec<Waiter>,
}

/// A medium in use.
pub struct Backing {
    config: BackingConfig,
    cache: PageCache,
    flash: Flash,
    fills: Vec<Fill>,
    free: Vec<u32>,
    waiting: VecDeque<(u64, Waiter)>,
    /// Pages whose reads must not wait for internal tasks, and how many of those that wait are of such pages: they are in
    /// front.
    first: Vec<Range<u64>>,
    first_waiting: usize,
    retries: bool,
    /// Events that must happen, and when.
    due: Vec<(u32, Ps)>,
    seed: u64,
    hits: u64,
    misses: u64,
    fill_count: u64,
}

impl Backing {
    /// An idle medium behind a cache whose pages are drawn from footprints.
    pub fn new(config: &BackingConfig, seed: u64) -> Self {
        // As many again for reads that must not wait.
        let misses = 2 * config.misses.clamp(1, RETRY / 2);
        Self {
            cache: PageCache::new(config.cache.clone(), seed),
            flash: Flash::new(config.flash.clone(), seed),
            fills: (0..misses).map(|_| Fill::default()).collect(),
            free: (0..misses).rev().collect(),
            waiting: VecDeque::new(),
            first: Vec::new(),
            first_waiting: 0,
            retries: false,
            due: Vec::new(),
            seed: rng::mix(seed),
            hits: 0,
            misses: 0,
            fill_count: 0,
            config: config.clone(),
        }
    }

    /// What tenants use of the device, before the first access.
    pub fn warm(&mut self, footprints: Vec<Footprint>) {
        self.first = (footprints.iter())
            .filter(|footprint| footprint.deterministic)
            .map(|footprint| footprint.first..footprint.first + footprint.pages)
            .collect();
        self.cache.warm(footprints);
    }

    /// Whether reads of a page must not wait for internal tasks.
    fn is_first(&self, page: u64) -> bool {
        self.first.iter().any(|pages| pages.contains(&page))
    }

    /// log2 of the lines of a page.
    pub fn page_bits(&self) -> u32 {
        self.config.page_bits
    }

    /// What was counted so far.
    pub fn counts(&self) -> MediaCounts {
        MediaCounts {
            hits: self.hits,
            misses: self.misses,
            fills: self.fill_count,
            ..self.flash.counts
        }
    }

    /// A line of a page that is in the cache was written.
    pub fn written(&mut self, line: u64) {
        self.cache.touch(line >> self.config.page_bits, true);
    }

    /// An event that must happen, and when.
    pub fn due(&mut self) -> Option<(u32, Ps)> {
        self.due.pop()
    }

    /// Looks for the page of a line at `at`. Returns whether it is in the cache; if not, its waiter is named when it is.
    /// What the DRAM moves for that is added to `moves`.
    #[inline]
    pub fn access(&mut self, line: u64, waiter: Waiter, at: Ps, moves: &mut Vec<Moves>) -> bool {
        let page = line >> self.config.page_bits;
        let served = self.serve(page, waiter, at, moves);
        match served {
            Served::Now => self.hits += 1,
            Served::Fills => self.misses += 1,
            Served::Waits => {
                self.misses += 1;
                self.wait(page, waiter);
            }
        }
        matches!(served, Served::Now)
    }

    /// Puts what finds no place behind those that wait, or behind those that must not wait for internal tasks.
    fn wait(&mut self, page: u64, waiter: Waiter) {
        match self.is_first(page) && !waiter.writes() {
            true => {
                self.waiting.insert(self.first_waiting, (page, waiter));
                self.first_waiting += 1;
            }
            false => self.waiting.push_back((page, waiter)),
        }
    }

    #[inline]
    fn serve(&mut self, page: u64, waiter: Waiter, at: Ps, moves: &mut Vec<Moves>) -> Served {
        let passes = waiter.writes() && self.config.writes_through;
        match self.cache.touch(page, waiter.writes() && !passes) {
            Found::Here if passes && !self.write_through(page, at) => Served::Waits,
            Found::Here => Served::Now,
            found => self.miss(found, page, waiter, at, moves),
        }
    }

    #[inline(never)]
    fn miss(
        &mut self,
        found: Found,
        page: u64,
        waiter: Waiter,
        at: Ps,
        moves: &mut Vec<Moves>,
    ) -> Served {
        if found == Found::Absent && !self.begin(page, at, moves) {
            return Served::Waits;
        }
        if let Some(fill) = self
            .fills
            .iter_mut()
            .find(|fill| fill.page == page && fill.reads)
        {
            fill.waiters.push(waiter);
        }
        Served::Fills
    }

    /// Begins to read a page. Returns whether there was a place for it, and for the page that leaves.
    fn begin(&mut self, page: u64, at: Ps, moves: &mut Vec<Moves>) -> bool {
        let first = self.is_first(page);
        let places = if first { 0 } else { self.fills.len() / 2 };
        let fill = self.free.last().filter(|_| self.free.len() > places);
        let (Some(&fill), Some((way, victim))) = (fill, self.cache.victim(page)) else {
            // The end of another read is the occasion to look again.
            return false;
        };
        if let Victim::Dirty(out) = victim {
            if !self.has_room(at, first) {
                return false;
            }
            self.flash.program(out, at);
            moves.push(Moves::Out(out));
        }
        self.free.pop();
        self.fills[fill as usize] = Fill {
            page,
            reads: true,
            ..Fill::default()
        };
        self.cache.begin(page, way);
        self.fill_count += 1;
        let sensed = self.flash.read(page, at + self.config.firmware, first);
        self.due.push((fill, sensed));
        true
    }

    /// Programs a page that was written. Returns whether there was a place, or the page waits for its die already.
    fn write_through(&mut self, page: u64, at: Ps) -> bool {
        if self.flash.waits(page, at) {
            return true;
        }
        let room = self.has_room(at, false);
        if room {
            self.flash.program(page, at);
        }
        room
    }

    /// Whether another program finds a place; if not, what waits looks again when one does.
    fn has_room(&mut self, at: Ps, first: bool) -> bool {
        let room = self.flash.has_room(at, first);
        if !room && !self.retries {
            self.retries = true;
            self.due.push((RETRY, self.flash.next_room().max(at + 1)));
        }
        room
    }

    /// An event.
    pub fn happens(&mut self, event: u32, now: Ps, moves: &mut Vec<Moves>) {
        if let Some(fill) = self.fills.get_mut(event as usize) {
            let page = fill.page;
            if !fill.crosses {
                fill.crosses = true;
                let here = self.flash.cross(page, now);
                return self.due.push((event, here));
            }
            fill.reads = false;
            let waiters = std::mem::take(&mut fill.waiters);
            self.free.push(event);
            self.end(page, waiters, now, moves);
        } else {
            self.retries = false;
        }
        while let Some(&(page, waiter)) = self.waiting.front() {
            match self.serve(page, waiter, now, moves) {
                Served::Waits => return,
                Served::Now => moves.push(Moves::Ready {
                    waiter,
                    poison: false,
                }),
                Served::Fills => {}
            }
            self.waiting.pop_front();
            self.first_waiting = self.first_waiting.saturating_sub(1);
        }
    }

    /// A page has come. One that cannot be read stays only if something writes it, which makes it whole, or moves it; else the
    /// next read asks the medium again.
    fn end(&mut self, page: u64, waiters: Vec<Waiter>, now: Ps, moves: &mut Vec<Moves>) {
        let fails = self.config.failing > 0.0 && rng::unit(self.seed, page) < self.config.failing
            || self.flash.has_lost(page);
        let reads = |waiter: &Waiter| matches!(waiter, Waiter::Read { .. });
        let ready = |waiter: Waiter| Moves::Ready {
            poison: fails && reads(&waiter),
            waiter,
        };
        if fails && waiters.iter().all(reads) {
            self.cache.forget(page);
            return moves.extend(waiters.into_iter().map(ready));
        }
        let written = waiters.iter().any(|waiter| waiter.writes());
        self.cache.end(page, written && !self.config.writes_through);
        for waiter in waiters {
            if waiter.writes() && self.config.writes_through && !self.write_through(page, now) {
                self.waiting.push_back((page, waiter));
            } else {
                moves.push(ready(waiter));
            }
        }
        moves.push(Moves::In(page));
    }
}

/// What became of a look-up.
enum Served {
    /// The page is in the cache.
    Now,
    /// It is being read.
    Fills,
    /// There is no place to read it, or to write it.
    Waits,
}
