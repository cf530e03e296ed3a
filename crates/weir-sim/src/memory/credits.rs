//! A bounded buffer in front of a resource whose service times are known ahead.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Ps;

/// Entries of a buffer, each with the time when it becomes free again.
///
/// Request `k` can enter when request `k - capacity` has left, because requests leave in about the order in
/// which they came.
pub struct Credits {
    leaves: Vec<Ps>,
    next: usize,
}

impl Credits {
    /// An empty buffer of `capacity` entries (at least one).
    pub fn new(capacity: u32) -> Self {
        Self {
            leaves: vec![0; capacity.max(1) as usize],
            next: 0,
        }
    }

    /// When a request that arrives at `ready` can enter.
    #[inline]
    pub fn entry(&self, ready: Ps) -> Ps {
        ready.max(self.leaves[self.next])
    }

    /// Admits a request that will leave at `leaves`.
    #[inline]
    pub fn enter(&mut self, leaves: Ps) {
        self.leaves[self.next] = leaves;
        self.next += 1;
        if self.next == self.leaves.len() {
            self.next = 0;
        }
    }
}

/// The same for requests that leave in another order than they came, because some are short and some are
/// long.
pub struct QueueSlots {
    /// When each slot is free again, the earliest first.
    free: BinaryHeap<Reverse<Ps>>,
}

impl QueueSlots {
    /// `capacity` free slots (at least one).
    pub fn new(capacity: u32) -> Self {
        Self {
            free: (0..capacity.max(1)).map(|_| Reverse(0)).collect(),
        }
    }

    /// When a request that arrives at `ready` can have a slot.
    #[inline]
    pub fn entry(&self, ready: Ps) -> Ps {
        self.free.peek().map_or(ready, |free| ready.max(free.0))
    }

    /// Takes the slot that is free first, until `leaves`.
    #[inline]
    pub fn enter(&mut self, leaves: Ps) {
        if let Some(mut free) = self.free.peek_mut() {
            *free = Reverse(leaves);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn never_more_are_inside_than_there_are_places(
            capacity in 1u32..20,
            requests in prop::collection::vec((0u64..1000, 1u64..500), 1..200),
        ) {
            let mut slots = QueueSlots::new(capacity);
            let (mut now, mut stays) = (0, Vec::new());
            for (gap, stay) in requests {
                now += gap;
                let entry = slots.entry(now);
                prop_assert!(entry >= now);
                slots.enter(entry + stay);
                stays.push((entry, entry + stay));
                let inside = stays.iter().filter(|s| s.0 <= entry && entry < s.1).count();
                prop_assert!(inside <= capacity as usize);
            }
        }
    }
}
