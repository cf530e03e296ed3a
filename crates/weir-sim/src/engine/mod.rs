//! The simulation loop: threads issue and the uncore answers, one event at a time.
//!
//! No decision is made between the release of a ToR entry and the core's next request. So a core acts in the
//! event of its answer, one mesh crossing ahead of the clock.

mod burst;
mod llc_sharing;
mod mover;
mod occupancy;
mod offload;
mod program;
mod shared;
mod siblings;
mod skip;
mod storage;
mod stream;
mod timed;
mod work;

use std::sync::Arc;

use weir_model::access::Op;
use weir_model::counters::CounterSet;
use weir_model::stop;

use self::llc_sharing::LlcSharing;
use self::offload::Accelerator;
pub use self::skip::Chance;
use self::stream::pump_stream;
use crate::clock::Ps;
use crate::core::{Private, Service, Style, Tally, Thread, Use};
use crate::line::{Kind, Place};
use crate::pages::PageTable;
use crate::params::Params;
use crate::pmu::CoreCounts;
use crate::rng;
use crate::storage::Attached;
use crate::uncore::{Class, Data, LastLevel, Request, Sender, Stage, Uncore};

/// Buckets of events between two looks whether the user gave up.
const LOOK_EVERY: u32 = 4096;

/// A machine with its tenants' threads.
pub struct Engine {
    params: Arc<Params>,
    now: Ps,
    threads: Vec<Thread>,
    uncore: Uncore,
    accelerator: Accelerator,
    drives: Vec<Attached>,
    /// The requests of each tenant that answers some.
    services: Vec<Option<Service>>,
    sharing: LlcSharing,
    pages: PageTable,
    /// Whether an event will go on with moving pages.
    is_moving: bool,
    seed: u64,
}

impl Engine {
    /// An idle machine with these threads, which start at time zero.
    pub fn new(
        params: Arc<Params>,
        threads: Vec<Thread>,
        llc: Option<LastLevel>,
        seed: u64,
    ) -> Self {
        let spans = threads.iter().any(|t| params.is_beyond(t.core));
        let classes = threads.iter().map(|t| Class::of(t.tenant)).collect();
        let last = threads.iter().map(|t| params.host_of(t.core)).max();
        let hosts = last.unwrap_or(0) + 1;
        let uncore = Uncore::new(Arc::clone(&params), classes, llc, seed, spans, hosts);
        let mut threads = threads;
        for thread in &mut threads {
            thread.is_plain = thread.style == Style::Stream
                && thread.op == Op::Ld
                && !thread.private.is_tagged()
                && thread.beside.is_none()
                && !uncore.keeps_lines();
        }
        let mut engine = Self {
            params,
            now: 0,
            threads,
            uncore,
            accelerator: Accelerator::default(),
            drives: Vec::new(),
            services: Vec::new(),
            sharing: LlcSharing::default(),
            pages: PageTable::default(),
            is_moving: false,
            seed,
        };
        engine.attach_drives();
        // Storage has been busy for a long time when a run begins, as the caches are warm.
        let lead = engine.lead();
        for t in 0..engine.threads.len() {
            // The threads of a real program do not start in the same nanosecond either.
            let start = rng::below(engine.seed, t as u64, 1_000_000);
            let waits = engine.threads[t].requests.is_none();
            engine.sleep(t, start + lead * u64::from(waits));
        }
        if lead > 0 {
            engine.run(lead);
        }
        engine.begin_sharing();
        engine
    }

    /// Handles the events up to `until`.
    #[inline(never)]
    fn run_events(&mut self, until: Ps) {
        let mut before_look = LOOK_EVERY;
        while let Some(mut bucket) = self.uncore.take(until) {
            before_look -= 1;
            if before_look == 0 {
                // The user gave up the run: what observes it looks as well.
                if stop::requested() {
                    return;
                }
                before_look = LOOK_EVERY;
            }
            while let Some((time, id, stage)) = self.uncore.next(&mut bucket) {
                match stage {
                    Stage::Answered => {
                        let request = self.uncore.request(id);
                        let (at, taken) = self.uncore.release(id, &request, time);
                        if request.data != Data::Passed
                            && let Some(t) = self.uncore.evicted(id, &request, time)
                        {
                            self.write_back_taken(t as usize, time);
                        }
                        if let Some(t) = taken {
                            self.write_back_taken(t as usize, time);
                        }
                        self.answered(&request, time, at);
                    }
                    Stage::Pulled => {
                        let (t, index) = self.uncore.pulled(id, time);
                        self.buffer_free(t, index, time);
                    }
                    Stage::Arrives => self.uncore.arrive(id, time),
                    Stage::Returns => self.uncore.returned(id, time),
                    Stage::Refills => self.uncore.refill(id, time),
                    Stage::Leaves => {
                        if let Some(t) = self.uncore.leave(id, time) {
                            self.write_back_taken(t as usize, time);
                        }
                    }
                    // A waiting request is in a line, not among the events.
                    Stage::Waits | Stage::Abroad => {}
                    Stage::Wakes => {
                        let t = self.uncore.woken(id);
                        self.wake(t, time);
                    }
                }
            }
        }
        self.now = self.now.max(until);
        self.settle_work();
    }

    /// The event wakes a thread; numbers after the threads are the accelerator, then the storage devices, and
    /// last the page copies.
    #[inline(always)]
    fn wake(&mut self, t: usize, time: Ps) {
        match self.threads.get_mut(t) {
            Some(thread) => {
                thread.asleep = thread.paused;
                match thread.style {
                    Style::Work => self.pump_work(t, time),
                    _ => self.pump(t, time),
                }
            }
            None => match t - self.threads.len() {
                0 => self.accelerator_woken(time),
                drive if drive <= self.drives.len() => self.drive_woken(drive - 1, time),
                _ => self.mover_woken(time),
            },
        }
    }

    /// Virtual time.
    pub fn now(&self) -> Ps {
        self.now
    }

    /// The threads, to change their limits or take their histograms.
    pub fn threads_mut(&mut self) -> &mut [Thread] {
        &mut self.threads
    }

    /// Lets exactly those threads run for which `runs` is true; its arguments are the tenant, and the
    /// thread's number within the tenant. Outstanding requests of the others are still answered. Returns
    /// whether anything changed.
    pub fn let_run(&mut self, runs: impl Fn(u16, u32) -> bool) -> bool {
        let mut numbers: Vec<u32> = Vec::new();
        let mut changed = false;
        for t in 0..self.threads.len() {
            let thread = &mut self.threads[t];
            let tenant = usize::from(thread.tenant);
            numbers.resize(numbers.len().max(tenant + 1), 0);
            let number = &mut numbers[tenant];
            let paused = !runs(thread.tenant, *number);
            *number += 1;
            if paused == thread.paused {
                continue;
            }
            changed = true;
            thread.paused = paused;
            thread.asleep = paused;
            if let Some(core) = &mut thread.ooo {
                core.pause(paused);
            }
            if !paused {
                // The thread does not make up for the time in which it might not run.
                thread.next_issue = thread.next_issue.max(self.now);
                if let Some(program) = &mut thread.program {
                    program.resume(self.now);
                }
                self.pump(t, self.now);
            }
        }
        changed
    }

    /// Restricts the ways of the last-level cache that the threads of a tenant fill.
    pub fn set_mask(&mut self, tenant: u16, mask: u32) {
        let llc = self.params.uncore.llc;
        let lines = (llc.lines / u64::from(llc.complexes)) as f64 / f64::from(llc.ways);
        for (t, thread) in self.threads.iter_mut().enumerate() {
            if thread.tenant == tenant {
                self.uncore.set_mask(t, mask);
                if let Some(core) = &mut thread.ooo {
                    core.script_mut()
                        .set_llc(lines * f64::from(mask.count_ones().min(llc.ways)));
                }
            }
        }
    }

    /// The host whose counters are read: that of the first tenant.
    fn observed(&self) -> u32 {
        let first = self.threads.first();
        first.map_or(0, |thread| self.params.host_of(thread.core))
    }

    /// Whether a tenant is on that host.
    fn is_observed(&self, tenant: usize) -> bool {
        let own = self
            .threads
            .iter()
            .find(|t| usize::from(t.tenant) == tenant);
        own.is_none_or(|thread| self.params.host_of(thread.core) == self.observed())
    }

    /// All counts of the host of the first tenant so far, and the counts of the cores of each of the first `tenants`
    /// tenants.
    pub fn counters(&self, tenants: usize) -> (CounterSet, Vec<CounterSet>) {
        let mut counts = self.uncore.cores(self.now);
        let mut sums = vec![(CoreCounts::default(), 0); tenants];
        for (thread, counts) in self.threads.iter().zip(&counts) {
            if let Some((sum, cores)) = sums.get_mut(thread.tenant as usize) {
                sum.add(counts);
                *cores += 1;
            }
        }
        let read = |(sum, cores): &(CoreCounts, usize)| sum.read(self.now, *cores, &self.params);
        let mut of_tenants: Vec<CounterSet> = sums.iter().map(read).collect();
        let host = self.observed();
        let mut own = self
            .threads
            .iter()
            .map(|t| self.params.host_of(t.core) == host);
        counts.retain(|_| own.next().unwrap_or(true));
        let mut all = self.uncore.counters(self.now, host, &counts);
        self.count_work(&mut all, &mut of_tenants);
        self.count_occupancy(&mut all, &mut of_tenants);
        (all, of_tenants)
    }

    /// What the program of each of the first `tenants` tenants did in its regions so far, and its instructions.
    pub fn uses(&self, tenants: usize) -> Vec<(Vec<Use>, f64)> {
        let mut all = vec![(Vec::new(), 0.0); tenants];
        for thread in &self.threads {
            let (Some(core), Some((uses, instructions))) =
                (&thread.ooo, all.get_mut(thread.tenant as usize))
            else {
                continue;
            };
            uses.resize(core.uses().len(), Use::default());
            for (sum, own) in uses.iter_mut().zip(core.uses()) {
                *sum = sum.and(*own);
            }
            *instructions += core.position();
        }
        all
    }

    /// Adds the counts of cores that run programs to the counters of their tenants and of the machine.
    fn count_work(&self, all: &mut CounterSet, of_tenants: &mut [CounterSet]) {
        let mut tallies: Vec<Option<Tally>> = vec![None; of_tenants.len()];
        for thread in &self.threads {
            if let (Some(core), Some(tally)) =
                (&thread.ooo, tallies.get_mut(thread.tenant as usize))
            {
                tally.get_or_insert_default().add(&core.tally());
            }
        }
        if tallies.iter().all(Option::is_none) {
            return;
        }
        let cycle = self.params.core.cycle * 1e3;
        for (set, tally) in of_tenants.iter_mut().zip(&tallies) {
            if let Some(tally) = tally {
                tally.put_into(set, cycle);
            }
        }
        for &counter in Tally::COUNTERS {
            let own = of_tenants
                .iter()
                .enumerate()
                .filter(|(i, _)| self.is_observed(*i));
            let sum: Result<u64, _> = own.map(|(_, set)| set.get(counter)).sum();
            match sum {
                Ok(sum) => all.set(counter, sum),
                Err(why) => all.set_unavailable(counter, why),
            }
        }
    }

    /// Lets a thread issue as many accesses as it may, from `time` on.
    #[inline(never)]
    fn pump(&mut self, t: usize, time: Ps) {
        let thread = &mut self.threads[t];
        if thread.style != Style::Stream {
            return self.pump_other(t, time);
        }
        if let Some(other) = thread.beside {
            return self.pump_siblings(t, other.into(), time);
        }
        pump_stream(thread, t, &mut self.uncore, &self.params, time);
    }

    /// The same for threads that are no plain streams.
    #[cold]
    #[inline(never)]
    fn pump_other(&mut self, t: usize, time: Ps) {
        match self.threads[t].style {
            Style::Program => self.pump_program(t, time),
            Style::Shared => self.pump_shared(t, time),
            Style::Offload => self.pump_offload(t, time),
            Style::Work => self.pump_work(t, time),
            Style::Burst => self.pump_burst(t, time),
            Style::Requests => self.pump_requests(t, time),
            Style::Stream | Style::Timed => self.pump_timed(t, time),
        }
    }

    /// Blocks a thread until `time`.
    fn sleep(&mut self, t: usize, time: Ps) {
        self.threads[t].asleep = true;
        self.uncore.wake_at(t as u16, time);
    }

    /// The uncore has accepted a write-back: its buffer is free.
    fn write_back_taken(&mut self, t: usize, now: Ps) {
        if self.threads[t].style == Style::Work {
            self.threads[t].write_backs -= 1;
            return self.write_back_taken_work(t, now);
        }
        if self.threads[t].style != Style::Timed || self.threads[t].is_chase() {
            self.threads[t].write_backs -= 1;
            self.pump(t, now);
        }
    }

    /// The slice has read the data of a streaming write: its buffer is free.
    fn buffer_free(&mut self, t: usize, index: u64, now: Ps) {
        let thread = &mut self.threads[t];
        match thread.style {
            Style::Stream => thread.window.complete(index),
            Style::Program => thread.store_combined(),
            Style::Timed | Style::Shared | Style::Requests => return,
            Style::Offload => return self.device_write_taken(now),
            Style::Work => return self.filled_work(t, index, now),
            Style::Burst => return self.burst_buffer_free(t, now),
        }
        thread.outstanding -= 1;
        thread.progress.accesses += 1;
        self.pump(t, now);
    }

    /// The answer to a request, given at `now`, arrives at its core at `at`.
    #[inline]
    fn answered(&mut self, request: &Request, now: Ps, at: Ps) {
        let t = request.thread as usize;
        if request.kind.fills() {
            return self.filled(t, request, at);
        }
        match request.kind {
            Kind::Drd
            | Kind::DrdL1Pref
            | Kind::DrdL2Pref
            | Kind::Rfo
            | Kind::RfoPref
            | Kind::LlcPref => {}
            Kind::WbMtoI | Kind::LlcEvict => {}
            Kind::Clwb | Kind::Wcilf => {
                let thread = &mut self.threads[t];
                let posted = request.kind == Kind::Wcilf;
                thread.unobserved -= u32::from(posted);
                if thread.style == Style::Timed {
                    self.end_timed(t, request.index, at);
                } else if thread.style == Style::Burst {
                    self.end_in_burst(t, request.index, at);
                } else if posted && thread.unobserved == 0 && thread.style != Style::Work {
                    self.pump(t, at);
                }
            }
            Kind::Remote => {}
            Kind::RfoSnoop | Kind::PciRdCur | Kind::ItoM | Kind::IoRead | Kind::IoWrite => {
                self.answered_other(t, request.kind, request.index, request.slice, now, at)
            }
        }
    }

    /// The same for requests that hold no buffer of a core.
    #[cold]
    #[inline(never)]
    fn answered_other(&mut self, t: usize, kind: Kind, index: u64, slice: u16, now: Ps, at: Ps) {
        match kind {
            Kind::PciRdCur => self.device_read(t, index, at),
            Kind::ItoM => self.device_wrote(t, index, at),
            Kind::IoRead => self.port_read(t, index, at),
            Kind::IoWrite => self.port_wrote(t, index, at),
            _ => self.handed_over(t, index, slice, now),
        }
    }

    /// A line arrived in the core's caches.
    #[inline]
    fn filled(&mut self, t: usize, request: &Request, at: Ps) {
        let thread = &mut self.threads[t];
        let counts = &mut self.uncore.pmu.cores[t];
        // A prefetched line: an early one is found in L2, a late one in a fill buffer.
        if thread.is_plain {
            let early = request.index >= thread.reach();
            counts.filled(request.kind, early, request.issued, at);
            thread.outstanding -= 1;
            thread.window.complete(request.index);
            thread.progress.accesses += 1;
            return pump_stream(thread, t, &mut self.uncore, &self.params, at);
        }
        let reached = match &thread.program {
            Some(program) => program.reached(),
            None => thread.reach(),
        };
        let early = request.index >= reached;
        counts.filled(request.kind, early, request.issued, at);
        match thread.style {
            Style::Stream => self.filled_stream(t, request, at),
            Style::Work => self.filled_work(t, request.index, at),
            _ => self.filled_other(t, request.index, request.place(), at),
        }
    }

    /// The same for a stream whose lines displace others, or which the last-level cache may answer.
    #[inline(never)]
    fn filled_stream(&mut self, t: usize, request: &Request, at: Ps) {
        self.displace(t, request.index, request.place(), at);
        let thread = &mut self.threads[t];
        if self.uncore.keeps_lines() && thread.allocated == 0 && request.waits_for_tier() {
            // It was issued as soon as a line that the last-level cache has.
            thread.next_issue += thread.limits.gap.saturating_sub(self.params.core.llc_gap);
        }
        thread.outstanding -= 1;
        thread.window.complete(request.index);
        thread.progress.accesses += 1;
        if let Some(other) = thread.beside {
            return self.pump_siblings(t, other.into(), at);
        }
        pump_stream(thread, t, &mut self.uncore, &self.params, at);
    }

    /// The effects in the caches when a line of a stream arrives.
    #[inline(always)]
    fn displace(&mut self, t: usize, index: u64, place: Place, at: Ps) {
        match self.threads[t].op {
            Op::Ld => self.leave_private(t, index, place, false, at),
            Op::St => self.leave_private(t, index, place, true, at),
            Op::Cas => {
                self.leave_private(t, index, place, true, at);
                self.end_atomic(t, at);
            }
            Op::StClwb => self.write_through(t, index, place, at),
            // The access was posted, or a device moved the line: nothing enters a cache.
            _ => {}
        }
    }

    /// The same for threads that are no plain streams.
    #[cold]
    #[inline(never)]
    fn filled_other(&mut self, t: usize, index: u64, place: Place, at: Ps) {
        match self.threads[t].style {
            Style::Program => self.filled_program(t, index, place, at),
            Style::Burst => self.filled_burst(t, index, place, at),
            Style::Requests => self.filled_requests(t, index, place, at),
            Style::Work => self.filled_work(t, index, at),
            _ => self.filled_timed(t, index, place, at),
        }
    }

    /// An atomic instruction has its line: it takes its own time, and nothing else starts before it ends.
    #[inline(never)]
    fn end_atomic(&mut self, t: usize, at: Ps) {
        let done = at + self.params.core.atomic;
        let next = &mut self.threads[t].next_issue;
        *next = (*next).max(done);
    }

    /// A stored line goes to memory at once and stays clean.
    #[inline(never)]
    fn write_through(&mut self, t: usize, index: u64, place: Place, at: Ps) {
        let from = Sender {
            thread: t as u16,
            core: self.threads[t].core,
        };
        let taken = self.uncore.send(from, index, place, Kind::Clwb, at);
        self.threads[t].write_backs += u32::from(taken.is_none());
    }

    /// A line entered the private caches, so one leaves: a modified line goes back to the uncore; a clean
    /// line goes into the last-level cache without a message. A modified line that must be evicted there
    /// holds a buffer like any write-back, so memory can delay the core that evicts it.
    fn leave_private(&mut self, t: usize, index: u64, place: Place, write: bool, at: Ps) {
        let thread = &mut self.threads[t];
        let (victim, dirty) = match &mut thread.private {
            Private::Streaming { delay } => (thread.walk.place(index.wrapping_sub(*delay)), write),
            Private::Tagged(caches) => match caches.fill(place.key(), write) {
                Some((victim, dirty)) => (Place::from_key(victim), dirty),
                None => return,
            },
        };
        self.drive_out(t, index, victim, dirty, at);
    }

    /// A line leaves the private caches.
    #[inline]
    fn drive_out(&mut self, t: usize, index: u64, victim: Place, dirty: bool, at: Ps) {
        let thread = &mut self.threads[t];
        let (line, kind) = match (dirty, victim) {
            (true, victim) => (victim, Kind::WbMtoI),
            (false, victim) => match self.uncore.put_clean(t, thread.core, victim) {
                Some(out) => (out, Kind::LlcEvict),
                None => return,
            },
        };
        let from = Sender {
            thread: t as u16,
            core: thread.core,
        };
        let taken = self.uncore.send(from, index, line, kind, at);
        thread.write_backs += u32::from(taken.is_none());
    }
}
