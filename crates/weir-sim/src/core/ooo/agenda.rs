//! The events of a core at known times. They are few, and most come after all others, so they are a sorted
//! list.

use crate::clock::Ps;

/// An event.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// The line in a slot has arrived, or its data was read.
    Arrives(u32),
    /// The uncore has accepted a write-back.
    Freed,
    /// A load has its address.
    Starts(u64),
}

/// The two highest bits of an event's number.
const FREED: u64 = 1 << 62;
const STARTS: u64 = 1 << 63;

impl Event {
    /// Its number: events of one time come in the order of their numbers.
    #[inline(always)]
    fn number(self) -> u64 {
        match self {
            Event::Arrives(slot) => slot.into(),
            Event::Freed => FREED,
            Event::Starts(load) => STARTS | load,
        }
    }

    #[inline(always)]
    fn of(number: u64) -> Self {
        match number {
            FREED => Event::Freed,
            number if number < FREED => Event::Arrives(number as u32),
            number => Event::Starts(number ^ STARTS),
        }
    }
}

/// The events to come.
#[derive(Debug)]
pub struct Agenda {
    /// Their times and numbers, after one that never comes; the next one is the last.
    events: Vec<(Ps, u64)>,
    /// When it is.
    next: Ps,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            events: vec![(Ps::MAX, u64::MAX)],
            next: Ps::MAX,
        }
    }
}

impl Agenda {
    /// Adds an event.
    #[inline(always)]
    pub fn add(&mut self, at: Ps, event: Event) {
        if at >= self.next || self.events.len() == self.events.capacity() {
            return self.add_later((at, event.number()));
        }
        self.next = at;
        self.events.push((at, event.number()));
    }

    /// Adds an event that is not before all others, or for which there is no room yet.
    #[inline(never)]
    fn add_later(&mut self, event: (Ps, u64)) {
        let mut place = self.events.len();
        self.events.push(event);
        while place > 0 && self.events[place - 1] < event {
            self.events[place] = self.events[place - 1];
            place -= 1;
        }
        self.events[place] = event;
        self.next = self.next.min(event.0);
    }

    /// When the next event is; [`Ps::MAX`] if there is none.
    #[inline(always)]
    pub fn next(&self) -> Ps {
        self.next
    }

    /// Takes the next event if it is at `now` or before.
    #[inline(always)]
    pub fn take(&mut self, now: Ps) -> Option<Event> {
        if self.next > now {
            return None;
        }
        let [.., (next, _), (_, number)] = self.events[..] else {
            return None;
        };
        self.next = next;
        self.events.pop();
        Some(Event::of(number))
    }
}
