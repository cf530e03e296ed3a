//! A store, from its dispatch until it leaves the store buffer.
//!
//! Stores leave in order, when every load before them has retired and the core owns their line. Their lines
//! are requested earlier, also in order.

use super::Ooo;
use super::dispatch::least;
use crate::line::Kind;

/// Marks the number of a line that bypasses the caches, so that no look-up finds it.
pub const PAST_CACHES: u64 = 1 << 62;

/// The number of no line.
pub const NO_LINE: u64 = u64::MAX;

/// A store in the store buffer.
#[derive(Debug, Clone, Copy)]
pub struct Store {
    pub at: f64,
    pub line: u64,
    end: u64,
    accesses: u32,
    cached: u32,
    pub non_temporal: bool,
}

/// A line that waits for a buffer before a store requests it.
#[derive(Debug, Clone, Copy)]
pub struct Absent {
    pub line: u64,
    /// Whether it is outstanding for L2 alone.
    is_under_way: bool,
}

impl Absent {
    /// No such line.
    pub const NONE: Self = Self {
        line: NO_LINE,
        is_under_way: false,
    };
}

impl Ooo {
    /// The next visit, a store, enters the store buffer.
    #[inline(always)]
    pub(super) fn enter_store(&mut self) {
        let visit = &self.next;
        self.store_entries += visit.accesses;
        self.oldest_store = least(self.oldest_store, self.position);
        self.stores.push_back(Store {
            at: self.position,
            line: visit.line,
            end: visit.end,
            accesses: visit.accesses,
            cached: visit.cached,
            non_temporal: visit.non_temporal,
        });
    }

    /// Whether every load before a store has retired.
    #[inline(always)]
    pub(super) fn is_senior(&self, store: &Store) -> bool {
        self.oldest_load > store.at
    }

    /// Lets stores leave whose line has arrived, and requests the lines of the others, if the oldest is senior:
    /// otherwise, none is.
    #[inline(always)]
    pub(super) fn drain_stores(&mut self) {
        if self.oldest_load > self.oldest_store && !(self.awaited != NO_LINE && self.is_blocked()) {
            self.drain_senior();
        }
    }

    /// Whether the next store to request its line cannot, since no buffer is free.
    #[inline(always)]
    fn is_blocked(&self) -> bool {
        let Absent { line, is_under_way } = self.absent;
        line != NO_LINE && (!self.has_fill_buffer() || !is_under_way && !self.has_super_queue())
    }

    #[inline(never)]
    fn drain_senior(&mut self) {
        // An outstanding line enters no cache before it arrives, so the oldest store still waits.
        if self.awaited == NO_LINE {
            self.let_leave();
        }
        self.ask_ahead();
    }

    /// Lets stores leave whose line has arrived.
    #[inline(always)]
    fn let_leave(&mut self) {
        let mut lost = false;
        while let Some(&store) = self.stores.front()
            && self.is_senior(&store)
        {
            let leaves = if store.non_temporal {
                self.has_fill_buffer()
                    && self.has_super_queue()
                    && self
                        .send(store.line | PAST_CACHES, Kind::Wcilf, 0, true)
                        .is_some()
            } else {
                self.write(store.line, &mut lost)
            };
            if !leaves {
                break;
            }
            self.stores.pop_front();
            self.store_entries -= store.accesses;
            self.asked = self.asked.saturating_sub(1);
        }
        self.oldest_store = (self.stores.front()).map_or(f64::INFINITY, |store| store.at);
        if lost && self.asked > 0 {
            // Its line came and was evicted again: it is requested once more.
            (self.asked, self.absent) = (0, Absent::NONE);
        }
    }

    /// Writes to a line if the core has it. If the core does not wait for it either, the line is lost.
    fn write(&mut self, line: u64, lost: &mut bool) -> bool {
        if self.caches.find_l1(line, true) {
            return true;
        }
        if self.flights.find(line).is_some() {
            self.awaited = line;
            return false;
        }
        if !self.caches.find_l2(line) {
            *lost = true;
            return false;
        }
        self.fill_l1::<true>(line);
        true
    }

    /// Requests the lines of stores that may leave next.
    #[inline(always)]
    fn ask_ahead(&mut self) {
        if self.is_blocked() {
            return;
        }
        while let Some(&store) = self.stores.get(self.asked)
            && self.is_senior(&store)
        {
            let is_free = self.has_fill_buffer() && self.has_super_queue();
            let there = store.non_temporal || self.caches.has(store.line);
            if !there {
                match self.flights.find(store.line) {
                    Some(slot) if self.flights[slot].fill_buffer => {}
                    Some(slot) if self.has_fill_buffer() && self.may_join(slot) => {
                        self.join(slot, Kind::Rfo);
                    }
                    None if is_free => {
                        self.send(store.line, Kind::Rfo, store.cached, true);
                        self.stream(store.line, store.end, store.cached, Kind::RfoPref);
                    }
                    slot => {
                        let (line, is_under_way) = (store.line, slot.is_some());
                        self.absent = Absent { line, is_under_way };
                        return;
                    }
                }
            }
            self.asked += 1;
        }
    }
}
