//! Requests between their slice and their tier: those that wait for a credit of a device or for an entry of a
//! write queue, and what follows when they get it.

use super::Uncore;
use crate::clock::Ps;
use crate::line::{Kind, Place};
use crate::memory::{Footprint, Resumed, Sent, Tier, Written};
use crate::uncore::request::{Credit, Request, RequestId, Sender, Stage};

impl Uncore {
    /// A read of a tier that gives credits has one, and its `data` comes at this time.
    #[inline]
    pub(super) fn with_credit(&mut self, id: RequestId, data: Ps) {
        let request = &mut self.pool[id];
        request.credit = Credit::Read;
        let (tier, thread) = (request.tier, request.thread);
        if self.memory(tier).is_gone(data) {
            self.pmu.cores[usize::from(thread)].poisoned += 1;
        }
        if self.memory(tier).has_hops() {
            self.pool[id].stage = Stage::Returns;
        } else if !self.is_whole {
            return self.read(id, data);
        }
        self.wheel.push(data, id, &mut self.pool);
    }

    /// The device's link has returned a line, which has other links to cross: they are booked when it comes to
    /// them, and the credit is free.
    pub fn returned(&mut self, id: RequestId, now: Ps) {
        let request = self.pool[id];
        self.pool[id].credit = Credit::None;
        self.pool[id].stage = Stage::Answered;
        self.credit_back(&request, now);
        let (memory, links) = self.behind(request.tier);
        let data = memory.bring_home(request.line, now, links);
        self.read(id, data);
    }

    /// A request that had a credit has its answer; another one may get the credit.
    #[inline]
    pub(super) fn credit_back(&mut self, request: &Request, now: Ps) {
        let is_write = request.credit == Credit::Write;
        let memory = self.memory(request.tier);
        match memory.credit_back(request.line, is_write, now) {
            None if memory.is_due() => self.waits(request.tier),
            None => {}
            Some((next, Sent::Data(data))) => self.with_credit(next, data),
            Some((next, Sent::Arrives(at))) => self.on_the_way(next, at),
        }
    }

    /// A written line has a credit, and comes to its device at `at`.
    fn on_the_way(&mut self, id: RequestId, at: Ps) {
        let request = &mut self.pool[id];
        request.credit = Credit::Write;
        request.stage = Stage::Arrives;
        self.wheel.push(at, id, &mut self.pool);
    }

    /// The home agent has the data of a request at `data`.
    #[inline]
    pub(super) fn read(&mut self, id: RequestId, data: Ps) {
        let request = &self.pool[id];
        if request.kind == Kind::Remote {
            return self.read_for_far(id, data);
        }
        let link = match request.kind {
            Kind::IoRead => None,
            _ => self.links.get_mut(request.slice as usize),
        };
        let data = link.map_or(data, |link| link.return_line(data));
        self.wheel.push(data, id, &mut self.pool);
    }

    /// A tier was asked for the line of a request: it comes at `data`, or the request waits for a credit or a medium.
    #[inline]
    pub(super) fn asked(&mut self, id: RequestId, data: Option<Ps>) {
        let Some(data) = data else {
            return self.waits(self.pool[id].tier);
        };
        let tier = self.pool[id].tier;
        match self.memory(tier).has_credits() {
            true => self.with_credit(id, data),
            false => self.read(id, data),
        }
    }

    /// Sends a line to the tier of its request, from `at` on. Returns whether it is certain at once that it need not
    /// wait: for a credit, an entry of a write queue, or the limit for lines of another socket.
    pub(super) fn write(&mut self, id: RequestId, line: u64, at: Ps) -> bool {
        let request = &mut self.pool[id];
        request.line = line;
        let (tier, crossing) = (request.tier, request.kind.crossing());
        let (memory, links) = self.behind(tier);
        let has_limit = memory.has_far_limit();
        match memory.write(id, crossing, line, at, links) {
            Written::Queued { done, waited } => {
                self.written(id, done);
                return !waited;
            }
            Written::Arrives(at) => self.on_the_way(id, at),
            Written::Waits => return false,
        }
        // Where the lines of another socket have a limit, its answer says that the line has passed it.
        !has_limit
    }

    /// A written line comes to its device.
    pub fn arrive(&mut self, id: RequestId, now: Ps) {
        let request = &mut self.pool[id];
        request.stage = Stage::Answered;
        let (tier, line) = (request.tier, request.line);
        let (memory, links) = self.behind(tier);
        if let Some(done) = memory.arrive(id, line, now, links) {
            self.came(id, now, done);
        }
        self.plan_refills(tier);
    }

    /// A written line is in the buffer of its device at `now`, or is lost if the device is gone; the home agent knows so at
    /// `done`.
    #[inline]
    fn came(&mut self, id: RequestId, now: Ps, done: Ps) {
        let Request { tier, thread, .. } = self.pool[id];
        if self.memory(tier).is_gone(now) {
            self.pmu.cores[usize::from(thread)].lost += 1;
        }
        self.written(id, done);
    }

    /// The home agent knows at `done` that the line of a request is safe.
    fn written(&mut self, id: RequestId, done: Ps) {
        let request = &self.pool[id];
        if request.kind == Kind::Remote {
            return self.written_for_far(id, done);
        }
        self.wheel.push(done, id, &mut self.pool);
    }

    /// The core's part of a write-back ends; returns its thread.
    pub(super) fn end_write_back(&mut self, id: RequestId, now: Ps) -> u16 {
        let request = &self.pool[id];
        let core = &mut self.pmu.cores[request.thread as usize];
        core.ended(request.kind, now - request.issued);
        request.thread
    }

    /// The memories of all hosts.
    pub fn number_of_memories(&self) -> usize {
        self.memories.len()
    }

    /// The position of a tier's memory.
    pub fn memory_of(&self, tier: u8) -> usize {
        usize::from(self.targets[tier].memory)
    }

    /// What tenants use of a memory, before time starts.
    pub fn warm(&mut self, memory: usize, footprints: &[Footprint]) {
        self.memories[memory].warm(footprints);
    }

    /// Whether there is a medium behind the DRAM of a memory.
    pub fn has_medium(&self, memory: usize) -> bool {
        self.memories[memory].has_medium()
    }

    /// A request waits: perhaps for a medium, which has begun to read. Apart from the common way, where lines come.
    #[cold]
    #[inline(never)]
    pub(super) fn waits(&mut self, tier: u8) {
        self.plan_refills(tier);
    }

    /// Sends an event for each write queue for which lines began to wait, and for what a medium does.
    #[inline]
    fn plan_refills(&mut self, tier: u8) {
        while let Some((channel, at)) = self.memory(tier).due() {
            let from = Sender { thread: 0, core: 0 };
            let place = Place { tier, line: 0 };
            let index = u64::from(channel);
            let event = Request::new(from, index, place, Kind::Drd, 0, Stage::Refills, at);
            let id = self.pool.insert(event);
            self.wheel.push(at, id, &mut self.pool);
        }
    }

    /// A write queue has room for lines that wait.
    pub fn refill(&mut self, event: RequestId, now: Ps) {
        let Request { tier, index, .. } = self.pool[event];
        self.pool.remove(event);
        if Tier::is_medium(index as u32) {
            return self.media(tier, index as u32, now);
        }
        loop {
            let (memory, links) = self.behind(tier);
            let Some((id, done)) = memory.refill(index as u32, now, links) else {
                break;
            };
            self.came(id, now, done);
        }
        self.plan_refills(tier);
    }

    /// A medium behind the DRAM of a tier has done something.
    #[cold]
    fn media(&mut self, tier: u8, event: u32, now: Ps) {
        let (memory, links) = self.behind(tier);
        for resumed in memory.media(event, now, links) {
            match resumed {
                Resumed::Data { ticket, at, poison } => {
                    let Request { tier, thread, .. } = self.pool[ticket];
                    // What a device that is gone would have answered is counted with the rest.
                    let poison = poison && !self.memory(tier).is_gone(at);
                    self.pmu.cores[thread as usize].poisoned += u64::from(poison);
                    self.with_credit(ticket, at);
                }
                Resumed::Written(id, done) => self.came(id, now, done),
            }
        }
        self.plan_refills(tier);
    }
}
