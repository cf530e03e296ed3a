//! The machine in motion: requests travel from queue to queue, one event at a time.
//!
//! A read costs two events: it arrives at its slice, and it gives its ToR entry back when its tier
//! has answered. What happens between (tag look-up, links, DRAM) is booked ahead when it is
//! admitted, since every tier serves in about the order in which it is asked. Between giving back
//! the entry and the core's next request nothing is decided, so that the core acts in the same
//! event, a mesh crossing ahead of the clock.

use std::sync::Arc;

use weir_model::access::{Op, Pattern};

use crate::clock::Ps;
use crate::core::{Level, Place, Private, Thread};
use crate::memory::Tier;
use crate::params::Params;
use crate::pmu::{Pmu, TorClass};
use crate::rng;
use crate::uncore::{
    Arrival, Kind, LastLevel, Mesh, Pool, Request, RequestId, Slice, Stage, slice_of,
};
use crate::wheel::Wheel;

/// Accesses that hit private caches are worked off in batches of this many, so that other cores get
/// their turn.
const BATCH: u32 = 64;
/// Quiet time around a timed access on a flushed line, in which the pipeline drains (MEMO §4.2).
const SETTLE: Ps = 400_000;
/// Core cycles of an atomic itself, beyond getting the line.
const ATOMIC_CYCLES: f64 = 20.0;

/// A machine with its tenants' threads.
pub struct Engine {
    params: Arc<Params>,
    now: Ps,
    wheel: Wheel,
    pool: Pool,
    mesh: Mesh,
    slices: Vec<Slice>,
    tiers: Vec<Tier>,
    /// The ToR class of misses to each tier.
    classes: Vec<TorClass>,
    /// `None` while no tenant's lines can survive in it.
    llc: Option<LastLevel>,
    threads: Vec<Thread>,
    pmu: Pmu,
    seed: u64,
}

impl Engine {
    /// An idle machine with these threads, which start when time does.
    pub fn new(
        params: Arc<Params>,
        threads: Vec<Thread>,
        llc: Option<LastLevel>,
        seed: u64,
    ) -> Self {
        let u = &params.uncore;
        let mut engine = Self {
            now: 0,
            wheel: Wheel::new(),
            pool: Pool::default(),
            mesh: Mesh::new(params.core.count, u.slices, u.hop),
            slices: (0..u.slices).map(|_| Slice::new(u.tor, u.irq)).collect(),
            tiers: params
                .tiers
                .iter()
                .enumerate()
                .map(|(i, t)| Tier::new(t.config.clone(), rng::mix(seed ^ i as u64)))
                .collect(),
            classes: params
                .tiers
                .iter()
                .map(|t| TorClass::miss(t.class))
                .collect(),
            llc,
            pmu: Pmu::default(),
            seed,
            threads,
            params,
        };
        for t in 0..engine.threads.len() {
            // Threads of a real program do not start in the same nanosecond either.
            let start = rng::below(engine.seed, t as u64, 1_000_000);
            engine.sleep(t, start);
        }
        engine
    }

    /// Moves time on to `until`.
    pub fn run(&mut self, until: Ps) {
        while let Some(mut bucket) = self.wheel.take(until) {
            while let Some((time, id)) = self.wheel.next(&mut bucket) {
                match self.pool[id].stage {
                    Stage::Arrives => self.arrive(id, time),
                    Stage::Answered => self.release(id, time),
                    Stage::Pulled => self.buffer_free(id, time),
                    Stage::Wakes => {
                        let t = self.pool[id].core as usize;
                        self.pool.remove(id);
                        self.threads[t].asleep = false;
                        self.pump(t, time);
                    }
                }
            }
        }
        self.now = self.now.max(until);
    }

    /// Virtual time.
    pub fn now(&self) -> Ps {
        self.now
    }

    /// The threads.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The threads, to change their limits or take their histograms.
    pub fn threads_mut(&mut self) -> &mut [Thread] {
        &mut self.threads
    }

    /// Everything counted so far.
    pub fn counters(&mut self) -> weir_model::counters::CounterSet {
        let tiers: Vec<_> = self.tiers.iter().map(Tier::counts).collect();
        self.pmu
            .read(self.now, self.threads.len(), &tiers, &self.params)
    }

    /// Requests in flight anywhere.
    pub fn in_flight(&self) -> usize {
        self.pool.in_flight()
    }

    // ----- cores -----

    /// Lets a thread issue what it may, from `time` on.
    fn pump(&mut self, t: usize, time: Ps) {
        if self.threads[t].asleep {
            return;
        }
        if self.threads[t].timed {
            return self.pump_timed(t, time);
        }
        let mut budget = BATCH;
        while self.threads[t].may_issue() {
            let thread = &mut self.threads[t];
            let index = thread.window.next();
            let place = thread.walk.place(index);
            let at = thread.next_issue.max(time);
            thread.window.start();
            if let Some(level) = find(&mut thread.private, thread.op, place) {
                thread.next_issue = at + hit_gap(&self.params, thread.op, level);
                thread.window.complete(index);
                thread.progress.accesses += 1;
                count_hit(&mut self.pmu, thread.op, level);
                budget -= 1;
                if budget == 0 {
                    let wake = thread.next_issue;
                    self.sleep(t, wake);
                    return;
                }
                continue;
            }
            thread.next_issue = at + thread.limits.gap;
            thread.outstanding += 1;
            let ahead = thread.window.ahead(index);
            let kind = kind_of(thread, ahead);
            self.pmu.l1_misses += u64::from(kind == Kind::Drd);
            thread.unobserved += u32::from(kind == Kind::Wcilf);
            self.issue(t, index, place, kind, at);
        }
    }

    /// Timed accesses: one at a time.
    fn pump_timed(&mut self, t: usize, time: Ps) {
        let chase = matches!(self.threads[t].pattern, Pattern::Chase { .. });
        let mut budget = BATCH;
        let mut at = time;
        while self.threads[t].window.span() == 0 {
            let thread = &mut self.threads[t];
            let index = thread.window.next();
            let place = thread.walk.place(index);
            thread.window.start();
            thread.began = at;
            if chase && let Some(level) = find(&mut thread.private, Op::Ld, place) {
                let latency = match level {
                    Level::L1 => self.params.core.l1_hit,
                    Level::L2 => self.params.core.l2_hit,
                };
                thread.window.complete(index);
                thread.progress.accesses += 1;
                thread.progress.record(latency);
                count_hit(&mut self.pmu, Op::Ld, level);
                at += latency;
                budget -= 1;
                if budget == 0 {
                    self.sleep(t, at);
                    return;
                }
                continue;
            }
            let extra = if chase {
                self.translation(t, index)
            } else if self.threads[t].op.is_posted() {
                0
            } else {
                self.params.core.flushed
            };
            let thread = &mut self.threads[t];
            thread.outstanding += 1;
            let kind = kind_of(thread, 0);
            if kind == Kind::Drd {
                self.pmu.l1_misses += 1;
            } else if kind == Kind::Wcilf {
                thread.unobserved += 1;
            }
            self.issue(t, index, place, kind, at + extra);
        }
    }

    /// Lets a thread do nothing until `time`.
    fn sleep(&mut self, t: usize, time: Ps) {
        self.threads[t].asleep = true;
        let id = self.pool.insert(Request {
            line: 0,
            index: 0,
            issued: time,
            next: 0,
            core: t as u16,
            slice: 0,
            tier: 0,
            kind: Kind::Drd,
            stage: Stage::Wakes,
            class: TorClass::Hit,
        });
        self.wheel.push(time, id);
    }

    /// What address translation adds to a hop of a chase.
    fn translation(&self, t: usize, index: u64) -> Ps {
        let (thread, core) = (&self.threads[t], &self.params.core);
        if thread.walk.is_local() {
            return 0;
        }
        let reach = core.tlb_reach.lines() as f64 / thread.walk.lines() as f64;
        if rng::unit(self.seed ^ 0x71b, index) < reach {
            0
        } else {
            core.walk
        }
    }

    /// Sends a request from a core to its slice. If the slice has an entry for it, nobody else can
    /// take it before the request arrives: then the arrival needs no event of its own.
    #[inline(always)]
    fn issue(&mut self, t: usize, index: u64, place: Place, kind: Kind, at: Ps) {
        let core = self.threads[t].core;
        let slice = slice_of(place.line, place.tier, self.params.uncore.slices);
        let miss = if kind.is_read() {
            self.params.core.l2_hit
        } else {
            0
        };
        let id = self.pool.insert(Request {
            line: place.line,
            index,
            issued: at,
            next: 0,
            core: t as u16,
            slice,
            tier: place.tier,
            kind,
            stage: Stage::Arrives,
            class: TorClass::Hit,
        });
        self.pmu.leaves_core(kind);
        let arrives = at + miss + self.mesh.delay(core, slice);
        if kind.is_read() && self.slices[slice as usize].reserve() {
            self.pmu.irq.pass();
            self.admit_read(id, arrives);
        } else {
            self.wheel.push(arrives, id);
        }
    }

    // ----- slices -----

    fn arrive(&mut self, id: RequestId, now: Ps) {
        let slice = self.pool[id].slice as usize;
        match self.slices[slice].arrive(id, &mut self.pool) {
            Arrival::Admitted => {
                self.pmu.irq.pass();
                self.admit(id, now);
            }
            Arrival::Queued => self.pmu.irq.up(now),
            Arrival::PushedBack => self.pmu.irq_rejected += 1,
        }
    }

    fn release(&mut self, id: RequestId, now: Ps) {
        let request = self.pool[id];
        self.pmu.tor(request.class).down(now);
        self.pool.remove(id);
        let slice = &mut self.slices[request.slice as usize];
        if slice.release() {
            self.admit_next(request.slice, now);
        }
        let core = self.threads[request.core as usize].core;
        self.answered(&request, now + self.mesh.delay(core, request.slice));
    }

    /// The request that has waited longest gets the entry that became free.
    fn admit_next(&mut self, slice: u16, now: Ps) {
        let slice = &mut self.slices[slice as usize];
        let queued = slice.queued();
        let next = slice.next(&self.pool);
        // One leaves the ingress queue; if one was pushed back, it moves up.
        if slice.queued() < queued {
            self.pmu.irq.down(now);
        } else {
            self.pmu.irq.pass();
        }
        self.admit(next, now);
    }

    /// A request gets its ToR entry: everything up to giving it back is booked.
    fn admit(&mut self, id: RequestId, now: Ps) {
        match self.pool[id].kind {
            Kind::Wcilf => self.admit_streaming(id, now),
            Kind::WbMtoI | Kind::Clwb => self.admit_write_back(id, now),
            _ => self.admit_read(id, now),
        }
    }

    /// A read: its data is at the slice when its tier, or the last-level cache, has answered.
    #[inline(always)]
    fn admit_read(&mut self, id: RequestId, now: Ps) {
        let request = &mut self.pool[id];
        let u = &self.params.uncore;
        let hit = match &mut self.llc {
            Some(llc) => llc.take(request.line, request.tier, false).is_some(),
            None => false,
        };
        request.stage = Stage::Answered;
        let demand = request.kind == Kind::Drd;
        self.pmu.l3_hits += u64::from(demand & hit);
        self.pmu.l3_misses += u64::from(demand & !hit);
        let (class, answered) = if hit {
            (TorClass::Hit, now + u.hit)
        } else {
            let tier = request.tier as usize;
            let answered = self.tiers[tier].read(request.line, now + u.lookup);
            (self.classes[tier], answered)
        };
        request.class = class;
        self.pmu.tor(class).up(now);
        self.wheel.push(answered, id);
    }

    /// A streaming write: the slice pulls the data, which frees the core's buffer, and passes it to
    /// memory; the entry stays until memory has it.
    fn admit_streaming(&mut self, id: RequestId, now: Ps) {
        let request = &mut self.pool[id];
        let mesh = self
            .mesh
            .delay(self.threads[request.core as usize].core, request.slice);
        if let Some(llc) = &mut self.llc {
            llc.take(request.line, request.tier, true);
        }
        // The unloaded hold includes the way here.
        let free = now + self.params.core.nt_hold.saturating_sub(mesh).max(1_000);
        let tier = request.tier as usize;
        let written = self.tiers[tier].write(request.line, free + mesh);
        request.class = self.classes[tier];
        request.stage = Stage::Pulled;
        request.issued = written.max(free + 1_000);
        self.pmu.tor(request.class).up(now);
        self.wheel.push(free, id);
    }

    /// A write-back: the core's part ends here. The line goes into the last-level cache and drives
    /// another out, or, for `clwb`, through to memory; the entry stays until memory has that.
    fn admit_write_back(&mut self, id: RequestId, now: Ps) {
        let request = &mut self.pool[id];
        let t = request.core as usize;
        let after = now + self.params.uncore.lookup;
        let out = match &mut self.llc {
            Some(llc) if request.kind == Kind::WbMtoI => llc
                .put(request.line, request.tier, true, self.threads[t].llc_mask)
                .filter(|victim| victim.dirty)
                .map(|victim| (victim.tier, victim.line)),
            _ => Some((request.tier, request.line)),
        };
        request.stage = Stage::Answered;
        let (class, until) = match out {
            Some((tier, line)) => {
                let tier = tier as usize;
                (self.classes[tier], self.tiers[tier].write(line, after))
            }
            None => (TorClass::Hit, now + self.params.uncore.hit),
        };
        request.class = class;
        self.pmu.tor(class).up(now);
        self.wheel.push(until, id);
        if self.threads[t].pattern != Pattern::FlushedLine {
            self.threads[t].write_backs -= 1;
            self.pump(t, now);
        }
    }

    // ----- back at the core -----

    /// The data pull of a streaming write has freed its buffer.
    fn buffer_free(&mut self, id: RequestId, now: Ps) {
        let request = &mut self.pool[id];
        request.stage = Stage::Answered;
        let (t, index, written) = (request.core as usize, request.index, request.issued);
        self.wheel.push(written, id);
        let thread = &mut self.threads[t];
        if thread.pattern == Pattern::FlushedLine {
            return;
        }
        thread.outstanding -= 1;
        thread.window.complete(index);
        thread.progress.accesses += 1;
        self.pump(t, now);
    }

    /// The answer to a request is back at its core.
    fn answered(&mut self, request: &Request, at: Ps) {
        let t = request.core as usize;
        match request.kind {
            Kind::WbMtoI => return,
            Kind::Clwb | Kind::Wcilf => {
                let thread = &mut self.threads[t];
                if request.kind == Kind::Wcilf {
                    thread.unobserved -= 1;
                }
                if thread.pattern == Pattern::FlushedLine {
                    self.end_timed(t, request.index, at);
                } else if request.kind == Kind::Wcilf && thread.unobserved == 0 {
                    self.pump(t, at);
                }
                return;
            }
            _ => {}
        }
        self.filled(t, request, at);
    }

    /// A line arrived in the core's caches.
    fn filled(&mut self, t: usize, request: &Request, at: Ps) {
        let thread = &mut self.threads[t];
        // A prefetched line: early ones are found in L2, late ones in a fill buffer. Who asked is
        // hard to guess, so that nothing branches on it.
        let demand = request.kind == Kind::Drd;
        self.pmu.demand_read_time += (at - request.issued) * u64::from(demand);
        let early = thread.window.ahead(request.index) >= thread.limits.demand;
        let prefetched = (thread.op == Op::Ld) & !demand;
        self.pmu.l2_hits += u64::from(prefetched & early);
        self.pmu.fb_hits += u64::from(prefetched & !early);
        let place = Place {
            tier: request.tier,
            line: request.line,
        };
        match thread.op {
            Op::Ld if self.llc.is_none() && !thread.private.is_tagged() => {}
            Op::Ld => self.leave_private(t, request.index, place, false, at),
            Op::St | Op::Cas => self.leave_private(t, request.index, place, true, at),
            Op::StClwb => {
                if self.threads[t].pattern == Pattern::FlushedLine {
                    self.issue(t, request.index, place, Kind::Clwb, at);
                    return;
                }
                self.threads[t].write_backs += 1;
                self.issue(t, request.index, place, Kind::Clwb, at);
            }
            Op::NtSt | Op::Movdir64b => {}
        }
        let thread = &mut self.threads[t];
        if thread.timed {
            return self.end_timed(t, request.index, at);
        }
        thread.outstanding -= 1;
        thread.window.complete(request.index);
        thread.progress.accesses += 1;
        let mut from = at;
        if thread.op == Op::Cas {
            from += (ATOMIC_CYCLES * self.params.core.cycle * 1e3) as Ps;
            thread.next_issue = thread.next_issue.max(from);
        }
        self.pump(t, from);
    }

    /// A line came into the private caches, so one leaves: back to the uncore if it is modified,
    /// quietly into the last-level cache if it is not.
    fn leave_private(&mut self, t: usize, index: u64, place: Place, write: bool, at: Ps) {
        let thread = &mut self.threads[t];
        let (victim, dirty) = match &mut thread.private {
            Private::Streaming { delay } => {
                if !write && self.llc.is_none() {
                    return;
                }
                let out = index.wrapping_sub(*delay);
                (thread.walk.place(out), write)
            }
            Private::Tagged(caches) => match caches.fill(key(place), write) {
                Some((victim, dirty)) => (place_of(victim), dirty),
                None => return,
            },
        };
        if dirty {
            thread.write_backs += 1;
            self.issue(t, index, victim, Kind::WbMtoI, at);
        } else if let Some(llc) = &mut self.llc
            && let Some(out) = llc.put(victim.line, victim.tier, false, thread.llc_mask)
            && out.dirty
        {
            self.tiers[out.tier as usize].write(out.line, at);
        }
    }

    /// A timed access ends; the next begins after a pause if the line is to be flushed first.
    fn end_timed(&mut self, t: usize, index: u64, at: Ps) {
        let thread = &mut self.threads[t];
        thread.outstanding -= 1;
        thread.window.complete(index);
        thread.progress.accesses += 1;
        thread.progress.record(at - thread.began);
        let pause = if thread.pattern == Pattern::FlushedLine {
            // Uneven, so that samples do not lock step with refresh.
            SETTLE + rng::below(self.seed, index, SETTLE)
        } else {
            0
        };
        if pause == 0 {
            self.pump(t, at);
        } else {
            self.sleep(t, at + pause);
        }
    }
}

/// Lines of different tiers as one key for the private caches.
fn key(place: Place) -> u64 {
    (u64::from(place.tier) << 48) | place.line
}

fn place_of(key: u64) -> Place {
    Place {
        tier: (key >> 48) as u8,
        line: key & ((1 << 48) - 1),
    }
}

fn find(private: &mut Private, op: Op, place: Place) -> Option<Level> {
    match private {
        Private::Tagged(caches) if !op.is_posted() => {
            caches.find(key(place), op.reads_for_ownership() && op != Op::StClwb)
        }
        _ => None,
    }
}

fn count_hit(pmu: &mut Pmu, op: Op, level: Level) {
    if op == Op::Ld {
        match level {
            Level::L1 => pmu.l1_hits += 1,
            Level::L2 => {
                pmu.l1_misses += 1;
                pmu.l2_hits += 1;
            }
        }
    }
}

/// Time between accesses that hit: two full-line loads or one store a cycle from L1, a line every
/// two cycles from L2 (Golden Cove: 64 B a cycle at best, 48 sustained); atomics one at a time.
fn hit_gap(params: &Params, op: Op, level: Level) -> Ps {
    let cycles = match (op, level) {
        (Op::Cas, _) => ATOMIC_CYCLES,
        (Op::Ld, Level::L1) => 0.5,
        (_, Level::L1) => 1.0,
        (_, Level::L2) => 2.0,
    };
    (cycles * params.core.cycle * 1e3) as Ps
}

/// The request that an access `ahead` of the oldest unfinished one makes.
#[inline]
fn kind_of(thread: &Thread, ahead: u64) -> Kind {
    let l = &thread.limits;
    let (demand, l1, l2) = match thread.op {
        Op::Ld => (Kind::Drd, Kind::DrdL1Pref, Kind::DrdL2Pref),
        Op::NtSt | Op::Movdir64b => return Kind::Wcilf,
        _ => (Kind::Rfo, Kind::RfoPref, Kind::RfoPref),
    };
    let who = usize::from(ahead >= l.demand) + usize::from(ahead >= l.demand + l.l1_ahead);
    [demand, l1, l2][who]
}
