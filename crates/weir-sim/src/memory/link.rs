//! A point-to-point link: CXL, or the link between sockets.
//!
//! Each direction carries lines (with their header) and short messages, which share slots: a read request, a
//! completion. A CXL flit of 68 bytes has four 16-byte slots. A line takes four slots and its header a share
//! of a fifth; a request takes one slot, and two completions share one (CXL 1.1 §4.2).

use super::calendar::Calendar;
use crate::clock::Ps;

/// Constants of a link. Message sizes are in lines of the direction they travel.
#[derive(Debug, Clone, Copy)]
pub struct LinkConfig {
    /// Time of a line with its header, towards the host.
    pub line_in: Ps,
    /// Time of a line with its header, away from the host.
    pub line_out: Ps,
    /// Time of a request without data, away from the host.
    pub request_out: Ps,
    /// Time of a completion without data, towards the host.
    pub completion_in: Ps,
}

/// One direction: lines are booked, short messages are added up until they fill a slot.
struct Direction {
    bus: Calendar,
    /// Time of short messages for which no slot was booked yet.
    unbooked: Ps,
}

impl Direction {
    fn new(line: Ps) -> Self {
        Self {
            bus: Calendar::new(line),
            unbooked: 0,
        }
    }

    /// Sends a line; returns when it has arrived.
    #[inline]
    fn line(&mut self, ready: Ps) -> Ps {
        self.bus.book(ready) + self.bus.slot()
    }

    /// Sends a short message; returns when it has arrived. Message classes alternate at a port, so a message
    /// does not wait behind queued lines, but it uses their time.
    #[inline]
    fn message(&mut self, ready: Ps, length: Ps) -> Ps {
        self.unbooked += length;
        let slot = self.bus.slot();
        if self.unbooked >= slot {
            self.unbooked -= slot;
            self.bus.book(ready);
        }
        ready + length
    }
}

/// A link with two equal ends: either may send requests to the other.
pub struct Peers {
    config: LinkConfig,
    /// Towards the first end, and towards the second.
    to: [Direction; 2],
}

impl Peers {
    /// An idle link.
    pub fn new(config: LinkConfig) -> Self {
        Self {
            config,
            to: [config.line_in, config.line_out].map(Direction::new),
        }
    }

    /// Sends a line to an end; returns when it is there.
    pub fn line(&mut self, end: u16, ready: Ps) -> Ps {
        self.to[usize::from(end)].line(ready)
    }

    /// Sends a request without data, or the completion of a write.
    pub fn message(&mut self, end: u16, ready: Ps) -> Ps {
        self.to[usize::from(end)].message(ready, self.config.request_out)
    }
}

/// A link in use.
pub struct Link {
    config: LinkConfig,
    inward: Direction,
    outward: Direction,
}

impl Link {
    /// An idle link.
    pub fn new(config: LinkConfig) -> Self {
        Self {
            config,
            inward: Direction::new(config.line_in),
            outward: Direction::new(config.line_out),
        }
    }

    /// Sends a read request; returns when the far end has it.
    #[inline]
    pub fn send_request(&mut self, ready: Ps) -> Ps {
        self.outward.message(ready, self.config.request_out)
    }

    /// Sends a line to be written.
    #[inline]
    pub fn send_line(&mut self, ready: Ps) -> Ps {
        self.outward.line(ready)
    }

    /// Brings a line back.
    #[inline]
    pub fn return_line(&mut self, ready: Ps) -> Ps {
        self.inward.line(ready)
    }

    /// Brings the completion of a write back.
    #[inline]
    pub fn return_completion(&mut self, ready: Ps) -> Ps {
        self.inward.message(ready, self.config.completion_in)
    }
}
