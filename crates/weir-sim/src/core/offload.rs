//! A thread whose lines an accelerator moves: its outstanding submissions and their remaining lines.

use std::collections::VecDeque;

use super::walk::Walk;
use crate::clock::Ps;
use crate::line::Place;

/// The descriptors of a thread. Lines are numbered in the order of descriptors.
pub struct Offload {
    source: Walk,
    /// Lines of a descriptor.
    pub lines: u64,
    /// Descriptors of a submission.
    pub batch: u64,
    /// Outstanding submissions before the thread waits for the oldest.
    pub in_flight: usize,
    /// Number of the oldest outstanding submission.
    oldest: u64,
    /// For each outstanding submission: lines left, and when the thread can see that no line is left.
    under_way: VecDeque<(u64, Ps)>,
}

impl Offload {
    /// Descriptors of `lines` lines each, from `source`.
    pub fn new(source: Walk, lines: u64, batch: u32, in_flight: u32) -> Self {
        Self {
            source,
            lines,
            batch: u64::from(batch),
            in_flight: in_flight as usize,
            oldest: 0,
            under_way: VecDeque::new(),
        }
    }

    /// Lines of the source.
    pub fn source_lines(&self) -> u64 {
        self.source.lines()
    }

    /// Whether another submission may start.
    pub fn may_submit(&self) -> bool {
        self.under_way.len() < self.in_flight
    }

    /// Starts a submission; returns its first line.
    pub fn submit(&mut self) -> u64 {
        let number = self.oldest + self.under_way.len() as u64;
        self.under_way.push_back((self.lines * self.batch, Ps::MAX));
        number * self.lines * self.batch
    }

    /// The source of line `n`.
    pub fn source(&self, n: u64) -> Place {
        self.source.place(n)
    }

    /// Line `n` is at its destination; if it was the last of its submission, the thread can see that from
    /// `seen` on. Returns whether it was the last.
    pub fn moved(&mut self, n: u64, seen: Ps) -> bool {
        let number = n / (self.lines * self.batch) - self.oldest;
        match self.under_way.get_mut(number as usize) {
            Some((left, at)) => {
                *left -= 1;
                *at = seen;
                *left == 0
            }
            None => false,
        }
    }

    /// The thread reads its completion records at `now`: the oldest submissions that are done are removed.
    pub fn reap(&mut self, now: Ps) {
        while self
            .under_way
            .front()
            .is_some_and(|&(left, seen)| left == 0 && seen <= now)
        {
            self.under_way.pop_front();
            self.oldest += 1;
        }
    }
}
