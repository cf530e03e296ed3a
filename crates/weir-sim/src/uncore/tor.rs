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
        Self {
            entries: tor,
            used: 0,
            irq,
            waiting: 0,
            head: NO_REQUEST,
            tail: NO_REQUEST,
        }
    }

    /// Takes an entry for a request that is on its way, if one is free.
    #[inline]
    pub fn reserve(&mut self) -> bool {
        let free = self.used < self.entries;
        if free {
            self.used += 1;
        }
        free
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
        if self.waiting <= self.irq {
            Arrival::Queued
        } else {
            Arrival::PushedBack
        }
    }

    /// An entry is given back. Returns whether a request waits for it: then the entry is its, and
    /// [`Slice::next`] says which.
    #[inline]
    pub fn release(&mut self) -> bool {
        if self.head != NO_REQUEST {
            return true;
        }
        self.used -= 1;
        false
    }

    /// Takes the request that has waited longest.
    pub fn next(&mut self, pool: &Pool) -> RequestId {
        let id = self.head;
        self.head = pool[id].next;
        if self.head == NO_REQUEST {
            self.tail = NO_REQUEST;
        }
        self.waiting -= 1;
        id
    }

    /// Requests in the ingress queue.
    pub fn queued(&self) -> u32 {
        self.waiting.min(self.irq)
    }

    /// Entries in use.
    #[cfg(test)]
    pub fn used(&self) -> u32 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::request::{Kind, Request, Sender, Stage};
    use super::*;
    use crate::core::Place;

    fn request() -> Request {
        let from = Sender { thread: 0, core: 0 };
        Request::new(
            from,
            0,
            Place { tier: 0, line: 0 },
            Kind::Drd,
            0,
            Stage::Arrives,
            0,
        )
    }

    proptest! {
        #[test]
        fn requests_are_admitted_in_order_and_never_more_than_there_are_entries(
            entries in 1u32..20,
            irq in 0u32..20,
            arrivals in prop::collection::vec(any::<bool>(), 1..400),
        ) {
            let mut pool = Pool::default();
            let mut slice = Slice::new(entries, irq);
            let (mut arrived, mut admitted, mut inside) = (0u32, Vec::new(), 0u32);
            for arrives in arrivals {
                if arrives {
                    let id = pool.insert(request());
                    let full = inside == entries;
                    let waiting = arrived - admitted.len() as u32;
                    let expected = match (full, waiting < irq) {
                        (false, _) => Arrival::Admitted,
                        (true, true) => Arrival::Queued,
                        (true, false) => Arrival::PushedBack,
                    };
                    prop_assert_eq!(slice.arrive(id, &mut pool), expected);
                    arrived += 1;
                    if !full {
                        admitted.push(id);
                        inside += 1;
                    }
                } else if inside > 0 {
                    if slice.release() {
                        admitted.push(slice.next(&pool));
                    } else {
                        inside -= 1;
                    }
                }
                prop_assert_eq!(slice.used(), inside);
                prop_assert!(slice.used() <= entries && slice.queued() <= irq);
            }
            prop_assert!(admitted.is_sorted());
        }
    }
}
