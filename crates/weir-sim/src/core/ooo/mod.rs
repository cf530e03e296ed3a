//! An out-of-order core that runs a described program.
//!
//! Instructions are dispatched in order at the rate that they would have if memory took no time. The
//! *frontier*, up to which they are, stops where a resource is spent: the reorder buffer, whose oldest
//! load is not back; the scheduler, full of what waits for that; the registers for results; the load
//! buffer; the store buffer; or a branch that was predicted wrong and waits for a load. Everything that
//! memory costs is time in which the frontier stands still, and that time is told apart by what is under
//! way meanwhile, as the stall events of the hardware do.
//!
//! | file | what |
//! |---|---|
//! | `script`, `parts` | which line the program touches next |
//! | `dispatch` | time: what is dispatched, what stops it |
//! | `window` | instructions that are dispatched behind a load which is not back |
//! | `loads`, `stores` | from dispatch through the caches to the line |
//! | `prefetch`, `streamer` | lines that nobody asked for yet |
//! | `throttle` | what a bandwidth allocation lets pass to the mesh |
//! | `super_queue` | lines under way: super queue and fill buffers |
//! | `che_approximation` | what the last-level cache has |
//! | `tally` | counters |

mod caches;
mod che_approximation;
mod dispatch;
mod loads;
mod parts;
mod prefetch;
mod script;
mod stores;
mod streamer;
mod super_queue;
mod tally;
mod throttle;
mod window;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use self::caches::{Caches, Victim};
use self::loads::Load;
use self::script::Visit;
use self::stores::Store;
use self::streamer::Streamer;
use self::super_queue::{SuperQueue, SuperQueueEntry};
use self::throttle::Throttle;
use super::private::PrivateConfig;
use super::walk::Place;
use crate::clock::Ps;
use crate::uncore::Kind;

pub use self::parts::CacheCapacity;
pub use self::script::Script;
pub use self::tally::Tally;

/// Constants of a core, times in picoseconds.
#[derive(Debug, Clone, Copy)]
pub struct OooParams {
    /// Picoseconds of a cycle.
    pub cycle: f64,
    pub reorder_buffer: f64,
    /// Instructions that wait for operands.
    pub scheduler: f64,
    /// Results that its integer registers hold before they retire, and its vector registers.
    pub integer_renames: f64,
    pub vector_renames: f64,
    pub load_buffer: u32,
    pub store_buffer: u32,
    pub fill_buffers: u32,
    pub super_queue: u32,
    pub l1_hit: Ps,
    pub l2_hit: Ps,
    /// From a mispredicted branch to the first instruction after it.
    pub redirect: Ps,
    /// A page walk, and the fault of a page's first touch.
    pub walk: Ps,
    pub fault: Ps,
    /// As the miss of which cache a load counts that waits for the L2 prefetcher's line.
    pub late_level: u8,
    /// Accesses that train the L2 streamer, the lines it asks for at once, and those under way at which
    /// it stops asking.
    pub training: u32,
    pub degree: u32,
    pub streamer_yields: u32,
    pub private: PrivateConfig,
}

/// Lines that the prefetchers run ahead; zero for those that are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    pub l1: u64,
    pub l2: u64,
}

/// A request that the core wants to send.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// What the answer is to be called: a slot of the lines under way.
    pub slot: u64,
    /// Where the line lies.
    pub place: Place,
    pub kind: Kind,
    pub at: Ps,
    /// Whether the last-level cache has the line, or keeps it if it is written back.
    pub cached: bool,
}

impl Ask {
    /// Whether it brings a modified line back, which no answer follows.
    fn is_write_back(&self) -> bool {
        !self.kind.is_read() && !self.kind.is_posted()
    }
}

/// Something that happens at a known time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The line in a slot is there, or its data was pulled.
    Arrives(u32),
    /// The uncore has taken a write-back.
    Freed,
    /// A load has its address.
    Starts(u64),
}

/// A core and the program that it runs.
pub struct Ooo {
    params: OooParams,
    script: Script,
    caches: Caches,
    flights: SuperQueue,
    streamer: Streamer,
    ahead: Ahead,
    /// Everything before this is done.
    clock: Ps,
    /// Instructions dispatched.
    position: f64,
    /// Picoseconds of an instruction; while a load is not back, the share of cycles in which none is
    /// executed all the same, and the instructions that may be dispatched behind it.
    pace: f64,
    quiet: f64,
    window: f64,
    /// The next visit, and the instruction that it begins with.
    next: Visit,
    next_at: f64,
    /// Loads that were dispatched and not retired, the oldest first, and its number.
    loads: VecDeque<Load>,
    oldest: u64,
    /// Accesses of those.
    load_entries: u32,
    /// Loads that wait for a buffer.
    starved: VecDeque<u64>,
    /// The latest load of every chain.
    chains: Vec<u64>,
    /// Stores that have not left the store buffer, accesses of those, and how many of them have asked
    /// for their lines.
    stores: VecDeque<Store>,
    store_entries: u32,
    asked: usize,
    /// The instruction that is the next mispredicted branch in a load's slice.
    branch_at: f64,
    /// The load that a mispredicted branch waits for, and what follows beyond.
    branch: Option<(u64, Ps)>,
    /// When that came, and when the frontier goes on after it.
    known: Ps,
    resumes: Ps,
    /// Until when the kernel is at work on a fault.
    kernel: Ps,
    /// Demand loads under way that missed L1, L2, the last-level cache: lines of theirs.
    missing: [u32; 4],
    /// Until when one is under way that hits L2.
    l2_hit_until: Ps,
    events: BinaryHeap<Reverse<(Ps, Event)>>,
    /// Requests to send.
    pub asks: Vec<Ask>,
    /// Those that wait to leave the core.
    pub throttle: Throttle,
    /// Write-backs that the uncore has not taken yet.
    pub write_backs: u32,
    /// Tiers that nothing is prefetched from, a bit each.
    pub held_back: u32,
    tally: Tally,
}

impl Ooo {
    /// A core that starts its program, with caches as after a while.
    pub fn new(params: OooParams, mut script: Script, ahead: Ahead) -> Self {
        let next = script.next();
        let mut core = Self {
            caches: Caches::new(params.private),
            flights: SuperQueue::new(params.super_queue),
            streamer: Streamer::new(params.training, ahead.l2, params.degree),
            ahead,
            clock: 0,
            position: 0.0,
            pace: next.cpi * params.cycle,
            quiet: 0.0,
            window: params.reorder_buffer,
            next,
            next_at: 0.0,
            loads: VecDeque::with_capacity(params.load_buffer as usize),
            oldest: 1,
            load_entries: 0,
            starved: VecDeque::new(),
            chains: vec![0; script.chains() as usize],
            stores: VecDeque::with_capacity(params.store_buffer as usize),
            store_entries: 0,
            asked: 0,
            branch_at: f64::INFINITY,
            branch: None,
            known: 0,
            resumes: 0,
            kernel: 0,
            missing: [0; 4],
            l2_hit_until: 0,
            events: BinaryHeap::new(),
            asks: Vec::new(),
            throttle: Throttle::default(),
            write_backs: 0,
            held_back: 0,
            tally: Tally::default(),
            params,
            script,
        };
        core.warm();
        core
    }

    /// Goes through the caches untimed until they have forgotten how they started.
    fn warm(&mut self) {
        /// Hits say little about what else the caches hold.
        const MOST_VISITS: u64 = 100_000;
        let wanted = self.params.private.l2.0 + self.params.private.l2.0 / 4;
        let mut missed = 0;
        for _ in 0..MOST_VISITS {
            if missed >= wanted {
                break;
            }
            let visit = self.script.next();
            if visit.non_temporal {
                continue;
            }
            if self.caches.find_l1(visit.line, visit.store) {
                continue;
            }
            if !self.caches.find_l2(visit.line) {
                self.caches.fill_l2(visit.line);
                missed += 1;
            }
            self.caches.fill_l1(visit.line, visit.store);
        }
    }

    /// Switches the prefetchers.
    pub fn set_ahead(&mut self, ahead: Ahead) {
        self.ahead = ahead;
        self.streamer.set_distance(ahead.l2);
    }

    /// Sets the clock to this part of what it was made with: everything within the core takes as much longer.
    pub fn set_clock(&mut self, made: &OooParams, part: f64) {
        let slower = |time: Ps| (time as f64 / part) as Ps;
        let to = OooParams {
            cycle: made.cycle / part,
            l1_hit: slower(made.l1_hit),
            l2_hit: slower(made.l2_hit),
            redirect: slower(made.redirect),
            fault: slower(made.fault),
            ..*made
        };
        self.pace *= to.cycle / self.params.cycle;
        self.params = to;
    }

    /// Lines that the program touched so far.
    pub fn touched(&self) -> u64 {
        self.tally.touched
    }

    /// What was counted so far.
    pub fn tally(&self) -> Tally {
        Tally {
            instructions: self.position,
            time: self.clock,
            ..self.tally
        }
    }

    /// The line in a slot will be there, or was pulled, at `at`.
    pub fn arrives(&mut self, slot: u64, at: Ps) {
        self.events.push(Reverse((at, Event::Arrives(slot as u32))));
    }

    /// The uncore has taken a write-back at `at`.
    pub fn freed(&mut self, at: Ps) {
        self.events.push(Reverse((at, Event::Freed)));
    }

    /// Whether a line-fill buffer is free. A write-back that memory has no room for holds one up: a
    /// line cannot come in before another one leaves.
    fn has_fill_buffer(&self) -> bool {
        self.flights.fill_buffers + self.write_backs < self.params.fill_buffers
    }

    /// Whether another line may be under way.
    fn has_super_queue(&self) -> bool {
        self.flights.count + self.write_backs < self.params.super_queue
    }

    /// Asks the uncore for a line. Returns its slot.
    fn send(&mut self, line: u64, kind: Kind, cached: u32, fill_buffer: bool) -> Option<usize> {
        let cached = self.script.draw() < f64::from(cached) / f64::from(u32::MAX);
        let flight = SuperQueueEntry {
            kind,
            cached,
            fill_buffer,
            level: 0,
            loads: super_queue::NONE,
        };
        let slot = self.flights.insert(line, flight)?;
        self.asks.push(Ask {
            slot: slot as u64,
            place: self.script.place(line & !stores::PAST_CACHES),
            kind,
            at: self.clock,
            cached,
        });
        Some(slot)
    }

    /// A line has come.
    fn arrive(&mut self, slot: usize) {
        let (line, flight) = self.flights.remove(slot);
        if flight.kind == Kind::Wcilf {
            return self.after_free();
        }
        for missing in &mut self.missing[1..=flight.level.into()] {
            *missing -= 1;
        }
        let victim = self.caches.fill_l2(line);
        self.drive_out(victim);
        if flight.fill_buffer {
            self.fill_l1(line, false);
        }
        self.answer_loads(flight.loads);
        self.after_free();
    }

    /// A line comes into L1.
    fn fill_l1(&mut self, line: u64, write: bool) {
        let victim = self.caches.fill_l1(line, write);
        self.drive_out(victim);
    }

    /// A line leaves L2: back to the uncore if it is modified.
    fn drive_out(&mut self, victim: Victim) {
        let Some((line, true)) = victim else {
            return;
        };
        let cached = self.script.keeps(line);
        self.asks.push(Ask {
            slot: u64::MAX,
            place: self.script.place(line),
            kind: Kind::WbMtoI,
            at: self.clock,
            cached,
        });
    }

    /// A buffer is free: loads first, then stores.
    fn after_free(&mut self) {
        self.feed_starved();
        self.drain_stores();
    }
}
