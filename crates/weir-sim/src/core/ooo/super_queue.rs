//! The super queue: the outstanding lines of a core, and which of them hold a line-fill buffer too.

use crate::line::Kind;

/// No load, or no line.
pub const NONE: u32 = u32::MAX;
const FREE: u64 = u64::MAX;

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
}

/// All outstanding lines.
#[derive(Debug)]
pub struct SuperQueue {
    lines: Vec<u64>,
    flights: Vec<SuperQueueEntry>,
    /// Their number.
    pub count: u32,
    /// How many of them hold a line-fill buffer.
    pub fill_buffers: u32,
}

impl SuperQueue {
    /// An empty queue with `room` entries.
    pub fn new(room: u32) -> Self {
        let idle = SuperQueueEntry {
            kind: Kind::Drd,
            cached: false,
            fill_buffer: false,
            level: 0,
            loads: NONE,
        };
        Self {
            lines: vec![FREE; room as usize],
            flights: vec![idle; room as usize],
            count: 0,
            fill_buffers: 0,
        }
    }

    /// The slot of a line, if it is outstanding.
    #[inline]
    pub fn find(&self, line: u64) -> Option<usize> {
        self.lines.iter().position(|&l| l == line)
    }

    /// Adds a line; `None` if there is no free slot.
    pub fn insert(&mut self, line: u64, flight: SuperQueueEntry) -> Option<usize> {
        let slot = self.find(FREE)?;
        self.lines[slot] = line;
        self.flights[slot] = flight;
        self.count += 1;
        self.fill_buffers += u32::from(flight.fill_buffer);
        Some(slot)
    }

    /// The line in a slot has arrived.
    pub fn remove(&mut self, slot: usize) -> (u64, SuperQueueEntry) {
        let flight = self.flights[slot];
        self.count -= 1;
        self.fill_buffers -= u32::from(flight.fill_buffer);
        (std::mem::replace(&mut self.lines[slot], FREE), flight)
    }

    /// Lets a line fill L1 too.
    pub fn join(&mut self, slot: usize) {
        let flight = &mut self.flights[slot];
        self.fill_buffers += u32::from(!flight.fill_buffer);
        flight.fill_buffer = true;
    }
}

impl std::ops::Index<usize> for SuperQueue {
    type Output = SuperQueueEntry;
    fn index(&self, slot: usize) -> &SuperQueueEntry {
        &self.flights[slot]
    }
}

impl std::ops::IndexMut<usize> for SuperQueue {
    fn index_mut(&mut self, slot: usize) -> &mut SuperQueueEntry {
        &mut self.flights[slot]
    }
}
