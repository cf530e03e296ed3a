//! A slice's ingress queue (IRQ) and Table of Requests (ToR).
//!
//! A request holds a ToR entry from admission until its tier has answered. While the table is full,
//! requests wait in the ingress queue in order of arrival; while that is full too, they wait where
//! they came from and keep the core's buffer. Both waits are one line here: the first `irq` of it
//! are in the queue, the rest are pushed back.

use super::request::{NO_REQUEST, Pool, RequestId};

/// What became of a request that reached its slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It has an entry.
    Admitted,
    /// It waits in the ingress queue.
    Queued,
    /// The ingress queue is full; it waits outside.
    PushedBack,
}

/// One slice.
pub struct Slice {
    entries: u32,
    used: u32,
    irq: u32,
    waiting: u32,
    head: RequestId,
    tail: RequestId,
}

impl Slice {
    /// An empty slice with this many entries of each queue.
    pub fn new(tor: u32, irq: u32) -> Self {
        Self { entries: tor, used: 0, irq, waiting: 0, head: NO_REQUEST, tail: NO_REQUEST }
    }

    /// A request arrives.
    #[inline]
    pub fn arrive(&mut self, id: RequestId, pool: &mut Pool) -> Arrival {
        if self.used < self.entries {
            debug_assert_eq!(self.waiting, 0, "an entry is free while requests wait");
            self.used += 1;
            return Arrival::Admitted;
        }
        pool[id].next = NO_REQUEST;
        if self.head == NO_REQUEST {
            self.head = id;
        } else {
            pool[self.tail].next = id;
        }
        self.tail = id;
        self.waiting += 1;
        if self.waiting <= self.irq { Arrival::Queued } else { Arrival::PushedBack }
    }

    /// An entry is given back; returns the request that gets it, if one waits.
    #[inline]
    pub fn release(&mut self, pool: &Pool) -> Option<RequestId> {
        if self.head == NO_REQUEST {
            self.used -= 1;
            return None;
        }
        let id = self.head;
        self.head = pool[id].next;
        if self.head == NO_REQUEST {
            self.tail = NO_REQUEST;
        }
        self.waiting -= 1;
        Some(id)
    }

    /// Requests in the ingress queue.
    pub fn queued(&self) -> u32 {
        self.waiting.min(self.irq)
    }

    /// Entries in use.
    pub fn used(&self) -> u32 {
        self.used
    }
}
