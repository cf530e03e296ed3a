//! A load, from its dispatch to its line.

use super::Ooo;
use super::agenda::Event;
use super::dispatch::least;
use super::super_queue::NONE;
use crate::clock::Ps;
use crate::line::Kind;

/// A load that was dispatched and not retired.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// Its instruction.
    pub at: f64,
    /// When its line arrives; [`Ps::MAX`] while this is unknown.
    pub done: Ps,
    /// Accesses to its line; none if it is the page walk of a store.
    pub accesses: u32,
    pub line: u64,
    end: u64,
    stride: u64,
    cached: u32,
    /// Time from the first of its accesses to the next visit.
    lasts: f64,
    /// The line of the page tables that it needs first; zero if it needs none any more.
    table: u64,
    table_cached: u32,
    host_cached: u32,
    /// Whether what it waits for comes from memory, or a buffer is free only when other lines came from there.
    pub from_memory: bool,
    /// When it was sent.
    issued: Ps,
    /// The last load that waits for its value.
    waiter: u32,
    /// The next load that waits for the same value, or later for the same line.
    before: u32,
}

/// How many caches its line missed, if it left the core.
fn missed(cached: bool) -> u8 {
    if cached { 2 } else { 3 }
}

impl Ooo {
    /// The next visit, a load, enters the load buffer. Returns its number, and that of the load whose value is its
    /// address.
    #[inline(always)]
    pub(super) fn enter_load(&mut self) -> (u64, u64) {
        let visit = &self.next;
        let number = self.loads.numbers().1;
        self.load_entries += visit.accesses;
        self.oldest_load = least(self.oldest_load, self.position);
        self.loads.push(Load {
            at: self.position,
            done: Ps::MAX,
            accesses: visit.accesses,
            line: visit.line,
            end: visit.end,
            stride: visit.stride,
            cached: visit.cached,
            lasts: visit.gap * self.pace,
            table: match visit.walks {
                true => self.script.table(visit.line),
                false => 0,
            },
            table_cached: visit.table_cached,
            host_cached: visit.host_cached,
            from_memory: false,
            issued: 0,
            waiter: NONE,
            before: NONE,
        });
        let after = visit.after.map_or(0, |chain| self.chains[chain as usize]);
        self.chains[visit.chain as usize] = number;
        if visit.mispredicted {
            self.branch = Some((number, self.params.redirect));
            self.hold();
        }
        (number, after)
    }

    /// The page walk of the next visit, a store: as a load, it must be over before the store retires. Returns as
    /// [`enter_load`](Self::enter_load) does.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_walk(&mut self) -> (u64, u64) {
        let visit = &self.next;
        let number = self.loads.numbers().1;
        self.oldest_load = least(self.oldest_load, self.position);
        self.loads.push(Load {
            at: self.position,
            done: Ps::MAX,
            line: visit.line,
            table: self.script.table(visit.line),
            table_cached: visit.table_cached,
            host_cached: visit.host_cached,
            waiter: NONE,
            before: NONE,
            ..Load::default()
        });
        let after = visit.after.map_or(0, |chain| self.chains[chain as usize]);
        (number, after)
    }

    /// A load that was dispatched starts, or waits for the value of the load `after`.
    #[inline(always)]
    pub(super) fn begin_load(&mut self, number: u64, after: u64) {
        let is_here = after >= self.loads.numbers().0;
        match is_here.then(|| self.loads.get_mut(after)) {
            Some(producer) if producer.done == Ps::MAX => {
                let before = std::mem::replace(&mut producer.waiter, number as u32);
                self.load_mut(number).before = before;
            }
            Some(producer) => {
                let ready = producer.done.max(self.clock);
                self.events.add(ready, Event::Starts(number));
            }
            None => self.start_load(number),
        }
    }

    fn load_mut(&mut self, number: u64) -> &mut Load {
        self.loads.get_mut(number)
    }

    /// The number of the load with this lower half.
    fn whole(&self, number: u32) -> u64 {
        let oldest = self.loads.numbers().0;
        oldest + u64::from(number.wrapping_sub(oldest as u32))
    }

    /// A load needs the entry of its page: the walk is a load of the line that has it. The upper levels of the
    /// tables are in the caches of the walker.
    fn walk(&mut self, number: u64, table: u64, cached: u32) {
        let here = if self.caches.find_l1(table, false) {
            self.params.l1_hit
        } else if let Some(slot) = self.flights.find(table) {
            self.wait_for(number, slot, 2);
            return;
        } else if self.caches.find_l2(table) {
            self.fill_l1::<false>(table);
            self.params.l2_hit
        } else if self.has_fill_buffer() && self.has_super_queue() {
            if let Some(slot) = self.send(table, Kind::Drd, cached, true) {
                self.wait_for(number, slot, missed(self.flights[slot].cached));
            }
            return;
        } else {
            self.starve(number);
            return;
        };
        self.translate(number, here);
    }

    /// A load has the entry of the page tables that it waited for `after` this time. In a virtual machine it needs that of the
    /// hypervisor's tables then.
    fn translate(&mut self, number: u64, after: Ps) {
        let load = *self.load_mut(number);
        let next = self.script.host_table(load.line, load.table);
        let nested = if next == 0 { 0 } else { self.params.nested };
        let own = self.load_mut(number);
        (own.table, own.table_cached) = (next, load.host_cached);
        own.from_memory = false;
        let walked = self.clock + after + nested;
        self.events.add(walked, Event::Starts(number));
    }

    /// A load has its address and looks up the caches.
    pub(super) fn start_load(&mut self, number: u64) {
        let load = *self.load_mut(number);
        if load.table != 0 {
            return self.walk(number, load.table, load.table_cached);
        }
        if load.accesses == 0 {
            return self.finish(number, self.clock);
        }
        let line = load.line;
        if self.caches.find_l1(line, false) {
            self.tally.l1_hits += u64::from(load.accesses);
            self.finish(number, self.clock + self.params.l1_hit);
        } else if let Some(slot) = self.flights.find(line) {
            if !self.find_under_way(number, slot) {
                return;
            }
        } else if self.caches.find_l2(line) {
            self.fill_l1::<false>(line);
            self.tally.l1_misses += 1;
            self.tally.l2_hits += 1;
            self.tally.l1_hits += u64::from(load.accesses - 1);
            let done = self.clock + self.params.l2_hit;
            self.misses.l2_hit_until = self.misses.l2_hit_until.max(done);
            self.finish(number, done);
            self.stream(line, load.end, load.cached, Kind::DrdL2Pref);
        } else if self.has_fill_buffer() && self.has_super_queue() {
            self.tally.l1_misses += 1;
            let Some(slot) = self.send(line, Kind::Drd, load.cached, true) else {
                return;
            };
            self.wait_for(number, slot, missed(self.flights[slot].cached));
            self.stream(line, load.end, load.cached, Kind::DrdL2Pref);
        } else {
            self.starve(number);
            return;
        }
        self.stride_ahead(line, load.stride, load.end, load.cached);
    }

    /// A load waits for a buffer.
    fn starve(&mut self, number: u64) {
        self.load_mut(number).from_memory = true;
        self.starved.push_back(number);
    }

    /// A load's line is already outstanding. Returns whether the load waits for it: without a fill buffer it
    /// cannot.
    fn find_under_way(&mut self, number: u64, slot: usize) -> bool {
        let load = *self.load_mut(number);
        // A buffer that a prefetcher took counts as a demand miss from its first hit on
        // (L1D_PEND_MISS.PENDING in Intel's event lists), but not as a miss of the last-level cache.
        let flight = &self.flights[slot];
        if flight.fill_buffer {
            let level = match flight.kind {
                Kind::DrdL2Pref | Kind::RfoPref => 1,
                Kind::DrdL1Pref => 2,
                _ => missed(flight.cached),
            };
            self.tally.fill_buffer_hits += 1;
            self.wait_for(number, slot, level);
            return true;
        }
        // It is the L2 prefetcher's line, and late.
        if !self.has_fill_buffer() || !self.may_join(slot) {
            self.starve(number);
            return false;
        }
        let level = match self.flights[slot].kind {
            Kind::LlcPref => 2,
            _ => 1,
        };
        self.join(slot, Kind::Drd);
        self.tally.l1_misses += 1;
        self.wait_for(number, slot, level);
        self.stream(load.line, load.end, load.cached, Kind::DrdL2Pref);
        true
    }

    /// A load waits for an outstanding line, which now counts as a miss of `level` caches.
    fn wait_for(&mut self, number: u64, slot: usize, level: u8) {
        let flight = &mut self.flights[slot];
        if level > flight.level {
            self.misses.begin(flight.level, level);
            flight.level = level;
        }
        let before = std::mem::replace(&mut flight.loads, number as u32);
        let from_memory = !flight.cached;
        let now = self.clock;
        let load = self.load_mut(number);
        load.before = before;
        load.issued = now;
        load.from_memory = from_memory;
    }

    /// The line of these loads has arrived.
    pub(super) fn answer_loads(&mut self, mut last: u32) {
        while last != NONE {
            let number = self.whole(last);
            let load = *self.load_mut(number);
            last = load.before;
            if load.table != 0 {
                self.translate(number, 0);
                continue;
            }
            let others = load.accesses - 1;
            if others > 0 {
                // Accesses before the line arrived found it in its fill buffer.
                let waited = (self.clock - load.issued) as f64;
                let between = load.lasts / f64::from(load.accesses);
                let early = ((waited / between.max(1.0)) as u32).min(others);
                self.tally.fill_buffer_hits += u64::from(early);
                self.tally.l1_hits += u64::from(others - early);
            }
            self.finish(number, self.clock);
        }
    }

    /// It is known that a load's value arrives at `done`.
    #[inline(always)]
    fn finish(&mut self, number: u64, done: Ps) {
        let load = self.load_mut(number);
        load.done = done;
        let waiter = std::mem::replace(&mut load.waiter, NONE);
        if number == self.loads.numbers().0 {
            self.back = done;
        }
        if waiter != NONE {
            self.start_waiters(waiter, done);
        }
        if let Some((load, redirect)) = self.branch
            && load == number
        {
            self.resolve(done, redirect);
        }
    }

    /// The loads that wait for a value have their address at `done`.
    #[inline(never)]
    fn start_waiters(&mut self, mut waiter: u32, done: Ps) {
        while waiter != NONE {
            let next = self.whole(waiter);
            self.events.add(done, Event::Starts(next));
            waiter = self.load_mut(next).before;
        }
    }

    /// The load for which a mispredicted branch waits has its value at `done`.
    #[inline(never)]
    fn resolve(&mut self, done: Ps, redirect: Ps) {
        self.branch = None;
        self.known = done;
        self.resumes = self.resumes.max(done + redirect);
        self.hold();
    }

    /// Loads that waited for a buffer continue.
    pub(super) fn feed_starved(&mut self) {
        while self.has_fill_buffer()
            && self.has_super_queue()
            && let Some(number) = self.starved.pop_front()
        {
            self.start_load(number);
        }
    }
}
