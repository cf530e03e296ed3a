//! A resource that serves one line at a time and is booked ahead: a data bus, or one direction of a link.
//!
//! Time is divided into slots of one line each. A request takes the first free slot at or after the time when
//! it is ready, so a request that waits for its row leaves earlier slots to others. A scheduler with a full
//! queue does the same; here it costs one bit scan.

use crate::clock::Ps;
use crate::divide::Divisor;

/// Words of 64 slots that are open for booking; older slots are closed.
const WORDS: usize = 16;
const SLOTS: u64 = 64 * WORDS as u64;

/// The bookings of one resource.
pub struct Calendar {
    slot: Divisor,
    /// Number of the first open slot; a multiple of 64.
    base: u64,
    /// All slots before this one are taken or closed.
    full_below: u64,
    /// Ring of bookings: word `(n / 64) % WORDS` holds slot n.
    taken: [u64; WORDS],
}

impl Calendar {
    /// A free resource that serves a line in `slot` (not zero).
    pub fn new(slot: Ps) -> Self {
        Self {
            slot: Divisor::new(slot),
            base: 0,
            full_below: 0,
            taken: [0; WORDS],
        }
    }

    /// Books the first free slot that starts at or after `ready`; returns its start.
    #[inline(always)]
    pub fn book(&mut self, ready: Ps) -> Ps {
        let first = self.slot.div_ceil(ready).max(self.full_below);
        self.open(first);
        let word = first / 64;
        let free = !self.taken[word as usize % WORDS] & (u64::MAX << (first % 64));
        if free == 0 {
            return self.book_beyond(word);
        }
        self.take(word * 64 + u64::from(free.trailing_zeros()))
    }

    /// Books the first free slot after a word of slots.
    #[inline(never)]
    fn book_beyond(&mut self, word: u64) -> Ps {
        let end = self.base / 64 + WORDS as u64;
        for word in word + 1..end {
            let free = !self.taken[word as usize % WORDS];
            if free != 0 {
                return self.take(word * 64 + u64::from(free.trailing_zeros()));
            }
        }
        // All open slots are taken: the slot after them is free by definition.
        self.open(end * 64);
        self.take(end * 64)
    }

    /// Closes every slot that starts in `from..until`, booked or not, within the open window.
    pub fn close(&mut self, from: Ps, until: Ps) {
        let first = self.slot.div_ceil(from).max(self.full_below);
        let last = self.slot.div_ceil(until);
        if last <= first {
            return;
        }
        self.open(last);
        let first = first.max(self.full_below);
        for word in first / 64..=last / 64 {
            let from = first.saturating_sub(word * 64).min(64);
            let to = last.saturating_sub(word * 64).min(64);
            let below = |n: u64| if n == 64 { u64::MAX } else { (1 << n) - 1 };
            self.taken[word as usize % WORDS] |= below(to) & !below(from);
        }
    }

    /// The time of one line.
    pub fn slot(&self) -> Ps {
        self.slot.get()
    }

    #[inline]
    fn take(&mut self, slot: u64) -> Ps {
        self.taken[(slot / 64) as usize % WORDS] |= 1 << (slot % 64);
        self.full_below += u64::from(slot == self.full_below);
        slot * self.slot.get()
    }

    /// Moves the open window so that it includes `slot`.
    #[inline(always)]
    fn open(&mut self, slot: u64) {
        if slot >= self.base + SLOTS {
            self.move_on(slot);
        }
    }

    /// Closes the oldest part of the window and opens a new part, which contains `slot`.
    #[cold]
    #[inline(never)]
    fn move_on(&mut self, slot: u64) {
        // Half a window stays open behind the newest booking.
        let base = (slot - SLOTS / 2) & !63;
        let from = (self.base / 64).max((base / 64).saturating_sub(WORDS as u64));
        for word in from..base / 64 {
            self.taken[word as usize % WORDS] = 0;
        }
        self.base = base;
        self.full_below = self.full_below.max(base);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_slot_is_sold_twice_and_none_before_it_is_ready(
            slot in 1u64..5000,
            requests in prop::collection::vec(0u64..3_000_000, 1..1500),
        ) {
            let mut bus = Calendar::new(slot);
            let mut sold = HashSet::new();
            for ready in requests {
                let start = bus.book(ready);
                prop_assert!(start >= ready);
                prop_assert_eq!(start % slot, 0);
                prop_assert!(sold.insert(start));
            }
        }
    }

    #[test]
    fn a_gap_is_filled_by_a_later_request() {
        let mut bus = Calendar::new(10);
        assert_eq!(bus.book(100), 100);
        assert_eq!(bus.book(0), 0);
        assert_eq!(bus.book(0), 10);
        assert_eq!(bus.book(95), 110);
    }
}
