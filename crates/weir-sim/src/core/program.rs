//! A thread whose program is more than one instruction in a row: rounds of loads and stores, with pauses
//! between lines.
//!
//! A round is `lines` loads, then `per` lines of the instruction. Accesses that go through the caches (loads
//! and reads for ownership) are *entries* of the thread's window, numbered in program order. Posted stores
//! are not entries: they wait in the store buffer until every load before them has retired, because stores
//! leave a core in order. Therefore a copy by movdir64B or non-temporal stores is slowed by the latency of
//! its source.
//!
//! The program reaches its entries one after another, a pause apart; prefetchers run ahead of it. Lines that
//! they bring early wait for it.

use super::walk::{Cursor, Walk};
use super::window::{Limits, Window};
use crate::clock::Ps;
use crate::line::Place;

/// The rounds of a thread, and its position in them.
pub struct Program {
    lines: u64,
    per: u64,
    posted: bool,
    /// One source for each array that is loaded.
    sources: Vec<Source>,
    /// Pause between two lines.
    pause: Ps,
    /// Whether it is counted from when the line before was due, and not from when the program reached it.
    open: bool,
    /// The entry that the program reaches next; entries from here to the end of the window are prefetched.
    reached: u64,
    /// When the program may reach it.
    due: Ps,
    /// The posted store that leaves next.
    next_store: u64,
    /// When the core can send it.
    pub store_after: Ps,
    /// Write-combining buffers in use.
    pub combining: u32,
}

/// An array that is loaded.
pub struct Source {
    /// The addresses of its lines.
    pub walk: Walk,
    /// The thread's position in them.
    pub cursor: Cursor,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A load of an element of a source.
    Load {
        /// Position of the source.
        source: usize,
        /// The element.
        element: u64,
    },
    /// A cached line of the instruction.
    Touch {
        /// The element.
        element: u64,
    },
    /// The number of posted stores in a program which has nothing else.
    Nothing,
}

impl Program {
    /// A program of rounds of `lines` loads from `sources` and `per` lines of the instruction, posted or not.
    /// The sources alternate within a round.
    pub fn new(lines: u32, per: u32, posted: bool, sources: Vec<Walk>, pause: Ps) -> Self {
        let sources = sources
            .into_iter()
            .map(|walk| Source {
                walk,
                cursor: Cursor::default(),
            })
            .collect();
        let mut program = Self {
            lines: u64::from(lines),
            per: u64::from(per),
            posted,
            sources,
            pause,
            open: false,
            reached: 0,
            due: 0,
            next_store: 0,
            store_after: 0,
            combining: 0,
        };
        program.reached = program.first_entry();
        program.next_store = program.retired_stores(program.reached);
        program
    }

    /// The same whose lines are due at a fixed rate, from `first` on.
    pub fn at_a_fixed_rate(mut self, first: Ps) -> Self {
        (self.open, self.due) = (true, first);
        self
    }

    /// Of its lines, the share that are loaded from its sources.
    pub fn loaded_share(&self) -> f64 {
        self.lines as f64 / (self.lines + self.per) as f64
    }

    /// The entry that it starts with: far from zero, so that lines which left the caches earlier have a
    /// number too.
    pub fn first_entry(&self) -> u64 {
        ((1u64 << 40) / self.entries()) * self.entries()
    }

    /// Entries of a round.
    fn entries(&self) -> u64 {
        match (self.posted, self.lines) {
            (true, 0) => self.per,
            (true, lines) => lines,
            (false, lines) => lines + self.per,
        }
    }

    /// Looks for the pages of its sources again: one may have moved.
    pub fn forget(&mut self) {
        for source in &mut self.sources {
            source.cursor.forget();
        }
    }

    /// Lines of all sources.
    pub fn source_lines(&self) -> u64 {
        self.sources.iter().map(|s| s.walk.lines()).sum()
    }

    /// The kind of entry `n`.
    #[inline]
    pub fn entry(&self, n: u64) -> Entry {
        let (round, at) = (n / self.entries(), n % self.entries());
        if at < self.lines {
            let sources = self.sources.len() as u64;
            Entry::Load {
                source: (at % sources) as usize,
                element: round * (self.lines / sources) + at / sources,
            }
        } else if self.posted {
            Entry::Nothing
        } else {
            Entry::Touch {
                element: round * self.per + (at - self.lines),
            }
        }
    }

    /// The place of an entry's line; `own` holds the lines of the instruction.
    pub fn place(&self, entry: Entry, own: &Walk) -> Option<Place> {
        match entry {
            Entry::Load { source, element } => Some(self.sources[source].walk.place(element)),
            Entry::Touch { element } => Some(own.place(element)),
            Entry::Nothing => None,
        }
    }

    /// The same for entries that are requested in order.
    #[inline]
    pub fn follow(&mut self, entry: Entry, own: &Walk, cursor: &mut Cursor) -> Option<Place> {
        match entry {
            Entry::Load { source, element } => {
                let Source { walk, cursor } = &mut self.sources[source];
                Some(walk.follow(cursor, element))
            }
            Entry::Touch { element } => Some(own.follow(cursor, element)),
            Entry::Nothing => None,
        }
    }

    /// The tier of the stream of an entry.
    pub fn tier(&self, entry: Entry, own: &Cursor) -> u8 {
        match entry {
            Entry::Load { source, .. } => self.sources[source].cursor.tier(),
            Entry::Touch { .. } | Entry::Nothing => own.tier(),
        }
    }

    /// Whether a prefetcher that follows the streams from the program's position reaches this entry.
    pub fn is_foreseen(&self, entry: Entry, own: &Walk, limits: &Limits) -> bool {
        let round = self.reached / self.entries();
        let (walk, element, here) = match entry {
            Entry::Load { source, element } => {
                let each = self.lines / self.sources.len() as u64;
                (&self.sources[source].walk, element, round * each)
            }
            Entry::Touch { element } => (own, element, round * self.per),
            Entry::Nothing => return false,
        };
        walk.foresees(element, here + limits.l1_ahead, limits.training)
    }

    /// The entry that the program reaches next.
    #[inline]
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// When it does so, if only its pauses delay it.
    #[inline]
    pub fn due(&self) -> Ps {
        self.due
    }

    /// The program moves past its next entry at `time`, and past the stores that end a round.
    #[inline]
    pub fn go_on(&mut self, window: &mut Window, time: Ps) {
        let before = self.retired_stores(self.reached);
        self.reached += 1;
        let stores = self.retired_stores(self.reached) - before;
        let entries = u64::from(self.lines > 0 || !self.posted);
        let from = if self.open {
            self.due
        } else {
            self.due.max(time)
        };
        self.due = from + self.pause * (entries + stores);
        window.retire(self.reached);
    }

    /// The thread may run again: no line was due before `time`.
    pub fn resume(&mut self, time: Ps) {
        self.due = self.due.max(time);
    }

    /// Posted stores of rounds that end by entry `n`.
    fn retired_stores(&self, n: u64) -> u64 {
        if self.posted {
            n / self.entries() * self.per
        } else {
            0
        }
    }

    /// Posted stores that the program has reached and which have not left the store buffer.
    #[inline]
    pub fn stores_waiting(&self) -> u64 {
        self.retired_stores(self.reached) - self.next_store
    }

    /// The element of the posted store that may leave now, if there is one: every load before it has retired.
    #[inline]
    pub fn store_ready(&self, window: &Window) -> Option<u64> {
        (self.next_store < self.retired_stores(window.base())).then_some(self.next_store)
    }

    /// It leaves.
    #[inline]
    pub fn store_leaves(&mut self) {
        self.next_store += 1;
        self.combining += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use weir_model::access::Pattern;
    use weir_model::units::Bytes;

    use super::super::walk::Region;
    use super::*;

    fn walk(tier: u8) -> Walk {
        let region = Region {
            tier,
            first: 0,
            weight: 1,
        };
        Walk::new(
            Pattern::Sequential,
            Bytes::mib(1),
            vec![region],
            Bytes::kib(4),
            Bytes::mib(1),
            1,
        )
    }

    proptest! {
        #[test]
        fn every_line_of_every_array_has_its_turn(
            lines in 0u32..7,
            per in 1u32..7,
            posted: bool,
            rounds in 1u64..20,
        ) {
            let arrays = if lines.is_multiple_of(per) { lines / per } else { 1 };
            let sources = (0..arrays).map(|a| walk(a as u8 + 1)).collect();
            let program = Program::new(lines, per, posted, sources, 0);
            let first = program.first_entry();
            let mut seen: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
            for n in first..first + rounds * program.entries() {
                match program.entry(n) {
                    Entry::Load { source, element } => seen.entry(source + 1).or_default().push(element),
                    Entry::Touch { element } => seen.entry(0).or_default().push(element),
                    Entry::Nothing => {}
                }
            }
            for (array, elements) in &seen {
                let each = u64::from(if *array == 0 { per } else { lines / arrays });
                prop_assert_eq!(elements.len() as u64, rounds * each);
                prop_assert!(elements.windows(2).all(|pair| pair[1] == pair[0] + 1));
            }
            prop_assert_eq!(seen.len() as u32, arrays * u32::from(lines > 0) + u32::from(!posted));
        }

        #[test]
        fn lines_are_due_a_pause_after_the_line_before_or_after_that_was_due(
            delays in prop::collection::vec(0u64..300, 1..30),
            pause in 1u64..100,
            first in 0u64..100,
            open: bool,
        ) {
            let mut program = Program::new(1, 1, false, vec![walk(1)], pause);
            if open {
                program = program.at_a_fixed_rate(first);
            }
            let mut window = Window::new(program.first_entry());
            for (n, delay) in (1..).zip(delays) {
                window.start();
                let reached = program.due() + delay;
                program.go_on(&mut window, reached);
                let due = if open { first + n * pause } else { reached + pause };
                prop_assert_eq!(program.due(), due);
            }
        }

        #[test]
        fn a_posted_store_leaves_after_every_load_before_it(lines in 1u32..7, per in 1u32..7) {
            let mut program = Program::new(lines, per, true, vec![walk(0)], 0);
            let mut window = Window::new(program.first_entry());
            let first = program.next_store;
            for n in 1..=5 * lines {
                let index = window.next();
                window.start();
                program.go_on(&mut window, 0);
                prop_assert!(n % lines != 0 || program.stores_waiting() >= u64::from(per));
                while program.store_ready(&window).is_some() {
                    program.store_leaves();
                }
                prop_assert_eq!(program.next_store - first, u64::from((n - 1) / lines * per));
                window.complete_by(index, program.reached());
            }
        }
    }
}
