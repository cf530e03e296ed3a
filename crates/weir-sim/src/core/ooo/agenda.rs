//! The events of a core at known times. They are few, and most come after all others, so they are a sorted
//! list.

use crate::clock::Ps;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The line in a slot has arrived, or its data was read.
    Arrives(u32),
    /// The uncore has accepted a write-back.
    Freed,
    /// A load has its address.
    Starts(u64),
}

/// The events to come.
#[derive(Debug)]
pub struct Agenda {
    /// The next one is the last.
    events: Vec<(Ps, Event)>,
    /// When it is.
    next: Ps,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            next: Ps::MAX,
        }
    }
}

impl Agenda {
    /// Adds an event.
    #[inline]
    pub fn add(&mut self, at: Ps, event: Event) {
        let mut place = self.events.len();
        self.events.push((at, event));
        while place > 0 && self.events[place - 1] < (at, event) {
            self.events[place] = self.events[place - 1];
            place -= 1;
        }
        self.events[place] = (at, event);
        self.next = self.next.min(at);
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
        let (_, event) = self.events.pop()?;
        self.next = self.events.last().map_or(Ps::MAX, |&(at, _)| at);
        Some(event)
    }
}
