//! A slice's ingress queue (IRQ) and Table of Requests (ToR).
//!
//! A request holds a ToR entry from admission until its tier has answered. While the table is full, requests
//! wait in the ingress queue in order of arrival. While that is full too, they wait at their sender and hold
//! the core's buffer. Both waits are one line here: the first `irq` requests of it are in the queue, the rest
//! are pushed back.
//!
//! Requests from slices of the other socket take entries of the same table and wait in a line of their own
//! (RRQ). One entry beyond the table is reserved for them: two full tables whose requests wait for each other
//! would wait for ever. The number of entries that silicon reserves for them is not public.

use std::collections::VecDeque;

use super::request::{NO_REQUEST, Pool, RequestId};

/// One slice.
pub struct Slice {
    /// Entries of the table, and one more while it holds requests of the other socket.
    entries: u32,
    used: u32,
    irq: u32,
    /// Requests in both lines.
    waiting: u32,
    own: Line,
    remote: Line,
    /// Requests of the other socket: waiting, and in the table.
    remote_waiting: u32,
    remote_inside: u32,
    /// Eviction buffers that are free, and write-backs in the table that wait for one, in order.
    evictions: u32,
    evicting: VecDeque<RequestId>,
}

/// Requests in order of arrival, linked by `next`.
struct Line {
    head: RequestId,
    tail: RequestId,
}

impl Line {
    const EMPTY: Self = Self {
        head: NO_REQUEST,
        tail: NO_REQUEST,
    };

    fn push(&mut self, id: RequestId, pool: &mut Pool) {
        debug_assert_eq!(pool[id].next, NO_REQUEST, "it is in another line");
        if self.head == NO_REQUEST {
            self.head = id;
        } else {
            pool[self.tail].next = id;
        }
        self.tail = id;
    }

    fn pop(&mut self, pool: &Pool) -> RequestId {
        let id = self.head;
        self.head = pool[id].next;
        if self.head == NO_REQUEST {
            self.tail = NO_REQUEST;
        }
        id
    }
}

impl Slice {
    /// An empty slice with this many entries of each queue.
    pub fn new(tor: u32, irq: u32, evictions: u32) -> Self {
        Self {
            entries: tor,
            used: 0,
            irq,
            waiting: 0,
            own: Line::EMPTY,
            remote: Line::EMPTY,
            remote_waiting: 0,
            remote_inside: 0,
            evictions,
            evicting: VecDeque::new(),
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

    /// Adds a request at the end of the line. Returns whether the ingress queue has space for it; else it is
    /// pushed back.
    #[inline]
    pub fn wait(&mut self, id: RequestId, pool: &mut Pool) -> bool {
        debug_assert_eq!(self.used, self.entries, "it waits while an entry is free");
        self.own.push(id, pool);
        self.waiting += 1;
        self.waiting - self.remote_waiting <= self.irq
    }

    /// An entry is released. Returns whether a request waits for it. Then the entry belongs to that request,
    /// which [`Slice::next`] returns.
    #[inline]
    pub fn release(&mut self) -> bool {
        if self.waiting != 0 {
            return true;
        }
        self.used -= 1;
        false
    }

    /// Removes the request that has waited longest, and gives it the entry of a core's request that left.
    pub fn next(&mut self, pool: &Pool) -> RequestId {
        if self.remote_waiting > 0 && self.is_remotes_turn(pool) {
            self.used -= 1;
            return self.let_in(pool);
        }
        self.waiting -= 1;
        self.own.pop(pool)
    }

    /// Memory cannot accept the line of a write-back: it takes an eviction buffer, or waits for one.
    pub fn evict(&mut self, id: RequestId) -> bool {
        if self.evictions > 0 {
            self.evictions -= 1;
            return true;
        }
        self.evicting.push_back(id);
        false
    }

    /// Memory has the line of a write-back, in an eviction buffer or not. Returns the write-back that gets the
    /// buffer.
    pub fn evicted(&mut self, id: RequestId, buffered: bool) -> Option<RequestId> {
        if !buffered {
            self.evicting.retain(|&waits| waits != id);
            return None;
        }
        let next = self.evicting.pop_front();
        self.evictions += u32::from(next.is_none());
        next
    }

    /// Requests in the ingress queue.
    pub fn queued(&self) -> u32 {
        (self.waiting - self.remote_waiting).min(self.irq)
    }

    /// A request of the other socket takes an entry, if one is free for it, or waits in line.
    pub fn welcome(&mut self, id: RequestId, pool: &mut Pool) -> bool {
        if self.remote_inside > 0 && self.used == self.entries {
            self.remote.push(id, pool);
            self.remote_waiting += 1;
            self.waiting += 1;
            return false;
        }
        self.seat();
        true
    }

    /// A request of the other socket releases its entry; returns the request that gets one now, if any.
    pub fn leave(&mut self, pool: &Pool) -> Option<RequestId> {
        self.used -= 1;
        self.remote_inside -= 1;
        self.entries -= u32::from(self.remote_inside == 0);
        let full = self.used == self.entries;
        if self.remote_waiting > 0 && (full || self.is_remotes_turn(pool)) {
            return Some(self.let_in(pool));
        }
        if full || self.own.head == NO_REQUEST {
            return None;
        }
        self.used += 1;
        self.waiting -= 1;
        Some(self.own.pop(pool))
    }

    /// Whether, of the requests that have waited longest, the one of the other socket came before the one of
    /// a core.
    fn is_remotes_turn(&self, pool: &Pool) -> bool {
        let came = |id: RequestId| pool[id].issued + pool[id].way;
        self.own.head == NO_REQUEST || came(self.remote.head) <= came(self.own.head)
    }

    fn let_in(&mut self, pool: &Pool) -> RequestId {
        self.remote_waiting -= 1;
        self.waiting -= 1;
        self.seat();
        self.remote.pop(pool)
    }

    fn seat(&mut self) {
        self.entries += u32::from(self.remote_inside == 0);
        self.remote_inside += 1;
        self.used += 1;
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

    use super::super::request::{Request, Sender, Stage};
    use super::*;
    use crate::line::{Kind, Place};

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
            let mut slice = Slice::new(entries, irq, 0);
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

        #[test]
        fn eviction_buffers_are_given_in_order_and_never_more_than_there_are(
            buffers in 0u32..6,
            arrivals in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..200),
        ) {
            let mut slice = Slice::new(32, 24, buffers);
            let (mut waiting, mut inside) = (Vec::new(), Vec::new());
            for (id, (arrives, which)) in arrivals.into_iter().enumerate() {
                let id = id as RequestId;
                if arrives {
                    match slice.evict(id) {
                        true => inside.push(id),
                        false => waiting.push(id),
                    }
                } else if !inside.is_empty() {
                    let done = inside.remove(which.index(inside.len()));
                    let next = slice.evicted(done, true);
                    prop_assert_eq!(next, waiting.first().copied());
                    inside.extend(next);
                    waiting.drain(..usize::from(next.is_some()));
                } else if !waiting.is_empty() {
                    // Memory may have the line of one that waits in its core.
                    let done = waiting.remove(which.index(waiting.len()));
                    prop_assert_eq!(slice.evicted(done, false), None);
                }
                prop_assert!(inside.len() as u32 <= buffers);
                prop_assert!(waiting.is_empty() || inside.len() as u32 == buffers);
            }
        }
    }
}
