//! A bounded buffer in front of something whose service times are known ahead.

use crate::clock::Ps;

/// Entries of a buffer, each known by when it becomes free again.
///
/// The request `k` can enter when request `k - capacity` has left, because requests leave in about
/// the order in which they came.
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

    /// Lets a request in that will leave at `leaves`.
    #[inline]
    pub fn enter(&mut self, leaves: Ps) {
        self.leaves[self.next] = leaves;
        self.next += 1;
        if self.next == self.leaves.len() {
            self.next = 0;
        }
    }
}
