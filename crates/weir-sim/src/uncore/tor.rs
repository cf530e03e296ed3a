//! A slice's ingress queue (IRQ) and Table of Requests (ToR).
//!
//! A request holds a ToR entry from admission until its tier has answered. While the table is full,
//! requests wait in the ingress queue in order of arrival; while that is full too, they wait where
//! they came from and keep the core's buffer. Both waits are one line here: the first `irq` of it
//! are in the queue, the rest are pushed back.

use super::request::{NO_REQUEST, Pool, RequestId};

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

    /// Takes an entry, if one is free.
    #[inline]
    pub fn reserve(&mut self) -> bool {
        if self.used == self.entries {
            return false;
        }
        self.used += 1;
        true
    }

    /// Puts a request at the end of the line. Returns whether the ingress queue has room for it;
    /// else it is pushed back.
    #[inline]
    pub fn wait(&mut self, id: RequestId, pool: &mut Pool) -> bool {
        debug_assert_eq!(self.used, self.entries, "it waits while an entry is free");
        debug_assert_eq!(pool[id].next, NO_REQUEST, "it is in another line");
        if self.head == NO_REQUEST {
            self.head = id;
        } else {
            pool[self.tail].next = id;
        }
        self.tail = id;
        self.waiting += 1;
        self.waiting <= self.irq
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
            Stage::Waits,
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
                    let waiting = arrived - admitted.len() as u32;
                    arrived += 1;
                    if slice.reserve() {
                        prop_assert!(inside < entries && waiting == 0);
                        admitted.push(id);
                        inside += 1;
                    } else {
                        prop_assert_eq!(slice.wait(id, &mut pool), waiting < irq);
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
