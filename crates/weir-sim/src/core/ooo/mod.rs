//! An out-of-order core that runs a described program.
//!
//! Instructions are dispatched in order at the rate which they would have if memory took no time. Dispatch
//! stalls when a resource is used up: the reorder buffer, whose oldest load has no data yet; the scheduler,
//! full of instructions that wait for that load; the registers for results; the load buffer; the store
//! buffer; or at a mispredicted branch that waits for a load. The whole cost of memory is time in which
//! dispatch stalls. This time is classified by what is outstanding in the meantime, as the stall events of
//! the hardware do.
//!
//! | file | content |
//! |---|---|
//! | `script`, `visit`, `parts`, `ranks`, `pieces` | the line that the program accesses next |
//! | `dispatch` | time: which instructions are dispatched, what stalls them |
//! | `window` | the pace of a phase: instructions that are dispatched, and how many behind a load without data |
//! | `loads`, `stores` | from dispatch through the caches to the line |
//! | `prefetch`, `streamer` | lines that prefetchers request |
//! | `throttle` | the rate of requests to the mesh under a bandwidth allocation |
//! | `misses` | which misses are waited for, and the time of it |
//! | `in_order` | loads that have not retired |
//! | `super_queue` | outstanding lines: super queue and fill buffers |
//! | `tags` | the lines of one cache |
//! | `alike` | a search of many bytes at once |
//! | `che_approximation`, `tlb` | which lines the last-level cache has, and which pages the TLBs |
//! | `agenda` | events at a known time |
//! | `tally` | counters |
//! | `uses` | what each region reads and writes, and how long the core waits for it |
//! | `skip` | time in which the program goes on and is not simulated |
//! | `halt` | time in which the program does not run: it has no request, or is paused |

mod agenda;
mod alike;
mod caches;
mod che_approximation;
mod dispatch;
mod halt;
mod in_order;
mod loads;
mod misses;
mod parts;
mod pieces;
mod prefetch;
mod ranks;
mod script;
mod skip;
mod stores;
mod streamer;
mod super_queue;
mod tags;
mod tally;
mod throttle;
mod tlb;
mod uses;
mod visit;
mod window;

use std::collections::VecDeque;

use self::agenda::{Agenda, Event};
use self::caches::{Caches, Victim};
use self::halt::Halt;
use self::in_order::InOrder;
use self::loads::Load;
use self::misses::Misses;
use self::skip::Kept;
use self::stores::{Absent, Store};
use self::streamer::Streamer;
use self::super_queue::{SuperQueue, SuperQueueEntry};
use self::throttle::Throttle;
use self::uses::Uses;
use self::visit::Visit;
use self::window::Pace;
use crate::clock::Ps;
use crate::line::{Kind, Place};
use crate::params::PrivateConfig;

pub use self::che_approximation::{Flow, Law};
pub use self::parts::CacheCapacity;
pub use self::script::Script;
pub use self::tally::Tally;
pub use self::uses::Use;

/// The number of no phase.
const NO_PHASE: u32 = u32::MAX;

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
    /// What walks of a hypervisor's tables add to a page walk, besides the line with the entry of the data's page.
    pub nested: Ps,
    pub load_buffer: u32,
    pub store_buffer: u32,
    pub fill_buffers: u32,
    /// Of these, the ones that L1's prefetchers leave to demand.
    pub spared_buffers: u32,
    pub super_queue: u32,
    pub l1_hit: Ps,
    pub l2_hit: Ps,
    /// Time from a mispredicted branch to the first instruction after it.
    pub redirect: Ps,
    /// The time of the fault at the first access to a page.
    pub fault: Ps,
    /// Accesses before the L2 streamer is trained, the lines that it requests at once, the number of
    /// outstanding lines up to which they enter L2, and whether more enter the last-level cache alone.
    pub training: u32,
    pub degree: u32,
    pub streamer_yields: u32,
    pub llc_prefetch: bool,
    pub private: PrivateConfig,
}

/// Lines that the prefetchers run ahead; zero if they are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    pub l1: u64,
    pub l2: u64,
}

/// A request that the core sends.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// The slot of the outstanding line; the answer must name it.
    pub slot: u64,
    /// The place of the line.
    pub place: Place,
    pub kind: Kind,
    pub at: Ps,
    /// Whether the last-level cache has the line, or keeps it if it is written back.
    pub cached: bool,
}

/// A request that waited at its slice for a line that was on its way there already.
#[derive(Debug, Clone, Copy)]
pub struct Joined {
    pub kind: Kind,
    pub from: Ps,
    pub to: Ps,
}

impl Ask {
    /// Whether it writes a modified line back; then no answer follows.
    fn is_write_back(&self) -> bool {
        !self.kind.is_read() && !self.kind.is_posted()
    }
}

/// A core and its program.
pub struct Ooo {
    params: OooParams,
    script: Script,
    caches: Caches,
    /// Whether others were put in their place, which may have lines that were outstanding.
    exchanged: bool,
    flights: SuperQueue,
    streamer: Streamer,
    ahead: Ahead,
    /// Everything before this time is done.
    clock: Ps,
    /// Instructions dispatched.
    position: f64,
    /// Picoseconds of an instruction; while a load has no data, the share of cycles in which nothing is
    /// executed, and the number of instructions that may be dispatched behind it.
    pace: f64,
    quiet: f64,
    window: f64,
    /// Mispredicted branches in the slice of a load, per instruction.
    mispredicts: f64,
    /// The phase that they are of; [`NO_PHASE`] if they are not known.
    phase: u32,
    /// What each phase makes of these.
    paces: Vec<Pace>,
    /// The next visit, and the instruction that it begins with.
    next: Visit,
    next_at: f64,
    /// Loads that were dispatched and have not retired, the oldest first.
    loads: InOrder<Load>,
    /// Accesses of these loads.
    load_entries: u32,
    /// Loads that wait for a buffer.
    starved: VecDeque<u64>,
    /// The latest load of every chain.
    chains: Vec<u64>,
    /// Stores that have not left the store buffer, their accesses, and how many of them have requested their
    /// lines.
    stores: VecDeque<Store>,
    store_entries: u32,
    asked: usize,
    /// The instruction of the oldest of them; infinite if there is none.
    oldest_store: f64,
    /// The line that the oldest of them waits for, if it is outstanding; else [`stores::NO_LINE`].
    awaited: u64,
    /// The line of the next store to request one, while no buffer is free for it: in no cache, and outstanding for L2
    /// alone or not at all.
    absent: Absent,
    /// The number of the instruction that is the next mispredicted branch in a load's slice.
    branch_at: f64,
    /// The load for which a mispredicted branch waits, and the extra time after it.
    branch: Option<(u64, Ps)>,
    /// When that load's data arrived, and when dispatch continues after it.
    known: Ps,
    resumes: Ps,
    /// Until when the kernel handles a fault.
    kernel: Ps,
    /// When it halts.
    halt: Halt,
    /// Until when dispatch is held by one of these.
    held: Ps,
    /// When the oldest load has its data; [`Ps::MAX`] if that is unknown, or there is none.
    back: Ps,
    /// The instruction up to which dispatch goes on.
    goal: f64,
    /// The instruction of the oldest load; infinite if there is none.
    oldest_load: f64,
    misses: Misses,
    events: Agenda,
    /// Requests to send.
    pub asks: Vec<Ask>,
    /// Requests that have ended and waited at the slice for a line that was on its way there already.
    pub joined: Vec<Joined>,
    /// Requests that wait to leave the core.
    pub throttle: Throttle,
    /// Write-backs that the uncore has not accepted yet.
    pub write_backs: u32,
    /// Tiers whose prefetches are throttled, one bit each.
    pub held_back: u32,
    tally: Tally,
    uses: Uses,
    kept: Kept,
}

impl Ooo {
    /// A core that starts its program, with caches as after a long run.
    pub fn new(params: OooParams, mut script: Script, ahead: Ahead) -> Self {
        let mut next = Visit::default();
        script.next(&mut next);
        let paces: Vec<Pace> = (script.phases().iter())
            .map(|phase| Pace::new(&params, phase))
            .collect();
        let mut core = Self {
            caches: Caches::new(params.private, script.end()),
            exchanged: false,
            flights: SuperQueue::new(2 * params.super_queue),
            streamer: Streamer::new(params.training, ahead.l2, params.degree),
            ahead,
            clock: 0,
            position: 0.0,
            pace: paces[next.phase as usize].cpi * params.cycle,
            quiet: 0.0,
            window: params.reorder_buffer,
            mispredicts: 0.0,
            phase: NO_PHASE,
            paces,
            next,
            next_at: 0.0,
            loads: InOrder::new(),
            load_entries: 0,
            starved: VecDeque::new(),
            chains: vec![0; script.chains() as usize],
            stores: VecDeque::new(),
            store_entries: 0,
            asked: 0,
            oldest_store: f64::INFINITY,
            awaited: stores::NO_LINE,
            absent: Absent::NONE,
            branch_at: f64::INFINITY,
            branch: None,
            known: 0,
            resumes: 0,
            kernel: 0,
            halt: Halt::default(),
            held: 0,
            back: Ps::MAX,
            goal: 0.0,
            oldest_load: f64::INFINITY,
            misses: Misses::default(),
            events: Agenda::default(),
            asks: Vec::new(),
            joined: Vec::new(),
            throttle: Throttle::default(),
            write_backs: 0,
            held_back: 0,
            tally: Tally::default(),
            uses: Uses::new(script.regions()),
            kept: Kept::default(),
            params,
            script,
        };
        core.warm();
        core
    }

    /// Instructions dispatched so far.
    pub fn position(&self) -> f64 {
        self.position
    }

    /// Its program.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// Its program, to change what it finds in the last-level cache.
    pub fn script_mut(&mut self) -> &mut Script {
        &mut self.script
    }

    /// Lines of the program that the last-level cache holds in this phase, if that can be stated.
    pub fn held(&self) -> Option<f64> {
        self.script.phases()[self.script.phase()].held
    }

    /// Accesses the caches without timing until they have forgotten their first state.
    fn warm(&mut self) {
        /// Hits say little about the other lines in the caches.
        const MOST_VISITS: u64 = 100_000;
        let wanted = self.params.private.l2.0 + self.params.private.l2.0 / 4;
        let (mut missed, mut visit) = (0, Visit::default());
        for _ in 0..MOST_VISITS {
            if missed >= wanted {
                break;
            }
            self.script.next(&mut visit);
            if visit.walks {
                let table = self.script.table(visit.line);
                missed += self.touch(table, false);
                let host = self.script.host_table(visit.line, table);
                if host != 0 {
                    missed += self.touch(host, false);
                }
            }
            if !visit.non_temporal {
                missed += self.touch(visit.line, visit.store);
            }
        }
    }

    /// Accesses a line without timing. Returns how many L2 did not have.
    fn touch(&mut self, line: u64, store: bool) -> u64 {
        if self.caches.find_l1(line, store) {
            return 0;
        }
        let there = self.caches.find_l2(line);
        if !there {
            self.caches.fill_l2(line);
        }
        self.caches.fill_l1(line, store, true);
        u64::from(!there)
    }

    /// Switches the prefetchers.
    pub fn set_ahead(&mut self, ahead: Ahead) {
        self.ahead = ahead;
        self.streamer.set_distance(ahead.l2);
    }

    /// Sets the clock to this part of its first value: everything within the core takes longer by the
    /// inverse.
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
        self.phase = NO_PHASE;
        self.params = to;
    }

    /// Lines that the program accessed so far.
    pub fn touched(&self) -> u64 {
        self.tally.touched
    }

    /// Whether it has nothing for the uncore: neither requests, now or later, nor what it counts.
    #[inline(always)]
    pub fn is_silent(&self) -> bool {
        self.asks.len() + self.joined.len() + self.throttle.len() == 0
    }

    /// The counts so far.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally {
            instructions: self.position,
            time: self.clock - self.halt.time,
            ..self.tally
        };
        self.misses.put_into(&mut tally);
        tally
    }

    /// The line in a slot arrives, or was read, at `at`.
    pub fn arrives(&mut self, slot: u64, at: Ps) {
        self.events.add(at, Event::Arrives(slot as u32));
    }

    /// The uncore has accepted a write-back at `at`.
    pub fn freed(&mut self, at: Ps) {
        self.events.add(at, Event::Freed);
    }

    /// Whether a line-fill buffer is free. A write-back that memory cannot accept holds one: a line cannot
    /// enter before another one leaves.
    fn has_fill_buffer(&self) -> bool {
        self.flights.fill_buffers + self.write_backs < self.params.fill_buffers
    }

    /// Whether another line may be outstanding.
    fn has_super_queue(&self) -> bool {
        self.flights.count + self.write_backs < self.params.super_queue
    }

    /// Requests a line from the uncore. Returns its slot.
    fn send(&mut self, line: u64, kind: Kind, cached: u32, fill_buffer: bool) -> Option<usize> {
        let cached = self.script.draw() < f64::from(cached) / f64::from(u32::MAX)
            || kind != Kind::LlcPref && self.streamer.take_from_llc(line);
        let flight = SuperQueueEntry {
            kind,
            cached,
            fill_buffer,
            level: 0,
            loads: super_queue::NONE,
            after_llc: 0,
        };
        let slot = self.flights.insert(line, flight)?;
        if self.absent.line == line {
            self.absent = Absent::NONE;
        }
        let (region, place) = self.script.locate(line & !stores::PAST_CACHES);
        if !cached {
            self.uses.cross(region, kind);
        }
        self.asks.push(Ask {
            slot: slot as u64,
            place,
            kind,
            at: self.clock,
            cached,
        });
        Some(slot)
    }

    /// A line has arrived.
    fn arrive(&mut self, slot: usize) {
        let (line, flight) = self.flights.remove(slot);
        if self.awaited == line {
            self.awaited = stores::NO_LINE;
        }
        if self.absent.line == line {
            self.absent = Absent::NONE;
        }
        match flight.kind {
            Kind::Wcilf => return self.after_free(),
            Kind::LlcPref => return self.streamer.fill_llc(line),
            _ => {}
        }
        if flight.level > 0 {
            self.misses.end(flight.level);
        }
        if flight.after_llc > 0 {
            let (kind, from, to) = (flight.kind, flight.after_llc, self.clock);
            self.joined.push(Joined { kind, from, to });
        }
        // L1 has it if only the streamer requested it, and L2 if L1 evicted it since.
        let absent = flight.kind.is_of_l1() && flight.after_llc == 0 && !self.exchanged;
        if (absent || !self.caches.find_l2(line)) && !self.caches.fill_clean_l2(line) {
            self.fill_l2(line);
        }
        if flight.fill_buffer {
            match self.exchanged {
                true => self.refill_l1(line, false, false),
                false => self.fill_l1::<false>(line),
            }
        }
        self.answer_loads(flight.loads);
        self.after_free();
    }

    /// A line enters L1, which does not have it: while a line is outstanding for L1, it does not come from L2.
    #[inline(never)]
    fn fill_l1<const WRITE: bool>(&mut self, line: u64) {
        if !self.caches.fill_clean_l1(line, WRITE) {
            self.refill_l1(line, WRITE, true);
        }
    }

    /// A line enters L1, which may be known not to have it, and a modified line may leave.
    #[inline(never)]
    fn refill_l1(&mut self, line: u64, write: bool, absent: bool) {
        let victim = self.caches.fill_l1(line, write, absent);
        self.drive_out(victim);
    }

    /// A line enters L2, which does not have it, and a modified line may leave.
    #[inline(never)]
    fn fill_l2(&mut self, line: u64) {
        let victim = self.caches.fill_l2(line);
        self.drive_out(victim);
    }

    /// A modified line leaves L2: it goes back to the uncore.
    #[inline(always)]
    fn drive_out(&mut self, victim: Victim) {
        if let Some(line) = victim {
            self.write_back(line);
        }
    }

    #[inline(never)]
    fn write_back(&mut self, line: u64) {
        let cached = self.script.keeps(line);
        let (region, place) = self.script.locate(line);
        if !cached {
            self.uses.cross(region, Kind::WbMtoI);
        }
        self.asks.push(Ask {
            slot: u64::MAX,
            place,
            kind: Kind::WbMtoI,
            at: self.clock,
            cached,
        });
    }

    /// A buffer is free: loads use it first, then stores.
    #[inline(always)]
    fn after_free(&mut self) {
        if !self.starved.is_empty() {
            self.feed_starved();
        }
        self.drain_stores();
    }
}
