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

/// The events to come, the next one last.
#[derive(Debug, Default)]
pub struct Agenda(Vec<(Ps, Event)>);

impl Agenda {
    /// Adds an event.
    #[inline]
    pub fn add(&mut self, at: Ps, event: Event) {
        let mut place = self.0.len();
        self.0.push((at, event));
        while place > 0 && self.0[place - 1] < (at, event) {
            self.0[place] = self.0[place - 1];
            place -= 1;
        }
        self.0[place] = (at, event);
    }

    /// When the next event is; [`Ps::MAX`] if there is none.
    #[inline(always)]
    pub fn next(&self) -> Ps {
        self.0.last().map_or(Ps::MAX, |&(at, _)| at)
    }

    /// Takes the next event if it is at `now` or before.
    #[inline(always)]
    pub fn take(&mut self, now: Ps) -> Option<Event> {
        if self.next() > now {
            return None;
        }
        self.0.pop().map(|(_, event)| event)
    }
}
