//! Between L2 and the mesh: a bandwidth allocation limits the rate of requests here.
//!
//! A waiting request holds its buffers in the core. Every request that leaves the core passes here, for
//! whatever memory it is (Intel, Introduction to Memory Bandwidth Allocation: between each core and the
//! interconnect).

use std::collections::VecDeque;

use super::Ask;
use crate::clock::Ps;

/// Requests that left L2 and have not left the core.
#[derive(Default)]
pub struct Throttle {
    waiting: VecDeque<Ask>,
    /// When the next one may pass.
    next: Ps,
    write_backs: u32,
}

impl Throttle {
    /// A request comes from L2.
    pub fn come(&mut self, ask: Ask) {
        self.write_backs += u32::from(ask.is_write_back());
        self.waiting.push_back(ask);
    }

    /// How many requests wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none does.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A request passes at once, since nothing waits and nothing limits the rate.
    #[inline]
    pub fn pass(&mut self, ask: &Ask) {
        self.next = ask.at;
    }

    /// The next request that passes up to `until`; the one after it passes at least `allocated` later.
    pub fn leave(&mut self, until: Ps, allocated: Ps) -> Option<Ask> {
        let first = self.waiting.front()?;
        let at = if allocated > 0 {
            first.at.max(self.next)
        } else {
            first.at
        };
        if allocated > 0 && at > until.max(first.at) {
            return None;
        }
        let ask = self.waiting.pop_front()?;
        self.next = at + allocated;
        self.write_backs -= u32::from(ask.is_write_back());
        Some(Ask { at, ..ask })
    }

    /// When the first waiting request may pass; [`Ps::MAX`] if no request waits.
    pub fn opens(&self) -> Ps {
        if self.waiting.is_empty() {
            Ps::MAX
        } else {
            self.next
        }
    }

    /// Waiting write-backs, each in a buffer of its own.
    pub fn write_backs(&self) -> u32 {
        self.write_backs
    }
}
