//! The super queue: the outstanding lines of a core, and which of them hold a line-fill buffer too.

use crate::clock::Ps;
use crate::line::Kind;

/// No load.
pub const NONE: u32 = u32::MAX;
/// No slot.
const END: u16 = u16::MAX;
/// Lists into which slots are sorted by their lines, so that a look-up sees few of them.
const LISTS: usize = 128;

/// An outstanding line.
#[derive(Debug, Clone, Copy)]
pub struct SuperQueueEntry {
    /// The kind of its request.
    pub kind: Kind,
    /// Whether the last-level cache has it.
    pub cached: bool,
    /// Whether a line-fill buffer waits for it, so that the line also enters L1.
    pub fill_buffer: bool,
    /// The level of the miss by which waiting demand loads count: 1 to 3, and 0 while no load waits.
    pub level: u8,
    /// The last load that waits for it; each waiting load knows the one before.
    pub loads: u32,
    /// When it was requested, if it was on its way to the last-level cache alone before; else zero.
    pub after_llc: Ps,
}

/// A slot of the queue.
#[derive(Debug, Clone, Copy)]
struct Slot {
    line: u64,
    flight: SuperQueueEntry,
    /// The next slot of its list.
    after: u16,
}

/// All outstanding lines.
#[derive(Debug)]
pub struct SuperQueue {
    slots: Vec<Slot>,
    /// The first slot of each list.
    first: [u16; LISTS],
    /// One bit for each free slot.
    free: Vec<u64>,
    /// Their number, without those that go to the last-level cache alone.
    pub count: u32,
    /// Those that do.
    pub to_llc: u32,
    /// How many of them hold a line-fill buffer.
    pub fill_buffers: u32,
}

impl SuperQueue {
    /// An empty queue with `room` entries.
    pub fn new(room: u32) -> Self {
        let idle = Slot {
            line: 0,
            flight: SuperQueueEntry {
                kind: Kind::Drd,
                cached: false,
                fill_buffer: false,
                level: 0,
                loads: NONE,
                after_llc: 0,
            },
            after: END,
        };
        let room = room as usize;
        Self {
            slots: vec![idle; room],
            first: [END; LISTS],
            free: (0..room.div_ceil(64))
                .map(|word| u64::MAX >> (64 - (room - word * 64).min(64)))
                .collect(),
            count: 0,
            to_llc: 0,
            fill_buffers: 0,
        }
    }

    #[inline(always)]
    fn list(line: u64) -> usize {
        (line ^ (line >> 7)) as usize % LISTS
    }

    /// The slot of a line, if it is outstanding.
    #[inline(always)]
    pub fn find(&self, line: u64) -> Option<usize> {
        let mut slot = self.first[Self::list(line)];
        while slot != END {
            let here = &self.slots[slot as usize];
            if here.line == line {
                return Some(slot as usize);
            }
            slot = here.after;
        }
        None
    }

    /// Adds a line in the first free slot; `None` if there is none.
    pub fn insert(&mut self, line: u64, flight: SuperQueueEntry) -> Option<usize> {
        let mut before = 0;
        let free = loop {
            let word = self.free.get_mut(before / 64)?;
            if *word != 0 {
                break word;
            }
            before += 64;
        };
        let slot = before + free.trailing_zeros() as usize;
        *free &= *free - 1;
        let first = &mut self.first[Self::list(line)];
        let after = std::mem::replace(first, slot as u16);
        self.slots[slot] = Slot {
            line,
            flight,
            after,
        };
        match flight.kind {
            Kind::LlcPref => self.to_llc += 1,
            _ => self.count += 1,
        }
        self.fill_buffers += u32::from(flight.fill_buffer);
        Some(slot)
    }

    /// The line in a slot has arrived.
    pub fn remove(&mut self, slot: usize) -> (u64, SuperQueueEntry) {
        let Slot {
            line,
            flight,
            after,
        } = self.slots[slot];
        let first = &mut self.first[Self::list(line)];
        if usize::from(*first) == slot {
            *first = after;
        } else {
            let mut before = usize::from(*first);
            while usize::from(self.slots[before].after) != slot {
                before = usize::from(self.slots[before].after);
            }
            self.slots[before].after = after;
        }
        self.free[slot / 64] |= 1 << (slot % 64);
        match flight.kind {
            Kind::LlcPref => self.to_llc -= 1,
            _ => self.count -= 1,
        }
        self.fill_buffers -= u32::from(flight.fill_buffer);
        (line, flight)
    }

    /// Lets a line fill L1 too, for a request of this kind at `now`. A line on its way to the last-level cache
    /// alone comes to L2 as well, and has an entry from now on: the request for it waits at the slice.
    pub fn join(&mut self, slot: usize, kind: Kind, now: Ps) {
        let flight = &mut self.slots[slot].flight;
        if flight.kind == Kind::LlcPref {
            flight.kind = kind;
            flight.after_llc = now;
            self.to_llc -= 1;
            self.count += 1;
        }
        self.fill_buffers += u32::from(!flight.fill_buffer);
        flight.fill_buffer = true;
    }
}

impl std::ops::Index<usize> for SuperQueue {
    type Output = SuperQueueEntry;
    fn index(&self, slot: usize) -> &SuperQueueEntry {
        &self.slots[slot].flight
    }
}

impl std::ops::IndexMut<usize> for SuperQueue {
    fn index_mut(&mut self, slot: usize) -> &mut SuperQueueEntry {
        &mut self.slots[slot].flight
    }
}
