//! The event queue: a wheel of 128 ps buckets, and a heap for what lies beyond its turn.
//!
//! Most events lie within a microsecond, so that a bucket index replaces a comparison tree: adding
//! and taking an event touches one list head each. Events that share a bucket come out in the order
//! in which they went in; two events closer than 128 ps may therefore swap, which is far below any
//! time constant of the model.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Ps;

/// log2 of a bucket's width in picoseconds.
const BUCKET_BITS: u32 = 7;
/// Buckets of one turn; a power of two. 4.2 µs.
const BUCKETS: usize = 1 << 15;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    time: Ps,
    event: u32,
    next: u32,
}

/// A queue of events, each a time and 32 bits for the owner to interpret.
pub struct Wheel {
    heads: Vec<(u32, u32)>,
    occupied: Vec<u64>,
    nodes: Vec<Node>,
    free: u32,
    /// Bucket number (not index) that the next event is looked for in.
    cursor: u64,
    in_wheel: usize,
    far: BinaryHeap<Reverse<(Ps, u64, u32)>>,
    far_sequence: u64,
}

impl Wheel {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        Self {
            heads: vec![(NONE, NONE); BUCKETS],
            occupied: vec![0; BUCKETS / 64],
            nodes: Vec::new(),
            free: NONE,
            cursor: 0,
            in_wheel: 0,
            far: BinaryHeap::new(),
            far_sequence: 0,
        }
    }

    /// Adds an event. One in the past comes out next.
    #[inline]
    pub fn push(&mut self, time: Ps, event: u32) {
        let bucket = (time >> BUCKET_BITS).max(self.cursor);
        if bucket - self.cursor < BUCKETS as u64 {
            self.link(bucket, time, event);
        } else {
            self.far_sequence += 1;
            self.far.push(Reverse((time, self.far_sequence, event)));
        }
    }

    /// Takes the earliest event if it is due by `limit`.
    #[inline]
    pub fn pop_until(&mut self, limit: Ps) -> Option<(Ps, u32)> {
        let bucket = self.next_bucket(limit)?;
        let index = bucket as usize & (BUCKETS - 1);
        let head = self.heads[index].0;
        let node = self.nodes[head as usize];
        if node.time > limit {
            return None;
        }
        self.cursor = bucket;
        self.heads[index].0 = node.next;
        if node.next == NONE {
            self.heads[index].1 = NONE;
            self.occupied[index / 64] &= !(1 << (index % 64));
        }
        self.nodes[head as usize].next = self.free;
        self.free = head;
        self.in_wheel -= 1;
        Some((node.time, node.event))
    }

    #[inline]
    fn link(&mut self, bucket: u64, time: Ps, event: u32) {
        let index = bucket as usize & (BUCKETS - 1);
        let node = Node { time, event, next: NONE };
        let slot = if self.free == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let slot = self.free;
            self.free = self.nodes[slot as usize].next;
            self.nodes[slot as usize] = node;
            slot
        };
        let (head, tail) = self.heads[index];
        if head == NONE {
            self.heads[index] = (slot, slot);
            self.occupied[index / 64] |= 1 << (index % 64);
        } else {
            self.nodes[tail as usize].next = slot;
            self.heads[index].1 = slot;
        }
        self.in_wheel += 1;
    }

    /// The first bucket that holds something, after pulling in far events that come before it.
    #[inline]
    fn next_bucket(&mut self, limit: Ps) -> Option<u64> {
        if self.in_wheel == 0 {
            // An empty wheel may jump to wherever the next far event is.
            let &Reverse((time, _, _)) = self.far.peek()?;
            if time > limit {
                return None;
            }
            self.cursor = self.cursor.max(time >> BUCKET_BITS);
        }
        if !self.far.is_empty() {
            self.pull_far();
        }
        let start = self.cursor as usize & (BUCKETS - 1);
        let mut word = start / 64;
        let mut bits = self.occupied[word] & (u64::MAX << (start % 64));
        loop {
            if bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                let ahead = index.wrapping_sub(start) & (BUCKETS - 1);
                return Some(self.cursor + ahead as u64);
            }
            word = (word + 1) % (BUCKETS / 64);
            bits = self.occupied[word];
        }
    }

    fn pull_far(&mut self) {
        while let Some(&Reverse((time, _, event))) = self.far.peek() {
            let bucket = (time >> BUCKET_BITS).max(self.cursor);
            if bucket - self.cursor >= BUCKETS as u64 {
                break;
            }
            self.far.pop();
            self.link(bucket, time, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_come_out_in_order_of_time_to_within_a_bucket(
            times in prop::collection::vec(0u64..40_000_000, 1..300),
            gap in 1usize..20,
        ) {
            let mut wheel = Wheel::new();
            let mut taken = Vec::new();
            let mut now = 0;
            for (i, chunk) in times.chunks(gap).enumerate() {
                for (j, t) in chunk.iter().enumerate() {
                    wheel.push(now + t, (i * gap + j) as u32);
                }
                if let Some((t, e)) = wheel.pop_until(Ps::MAX) {
                    now = t;
                    taken.push((t, e));
                }
            }
            while let Some(event) = wheel.pop_until(Ps::MAX) {
                taken.push(event);
            }
            prop_assert_eq!(taken.len(), times.len());
            let mut ids: Vec<u32> = taken.iter().map(|e| e.1).collect();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), times.len());
            for pair in taken.windows(2) {
                prop_assert!(pair[1].0 + (1 << BUCKET_BITS) > pair[0].0);
            }
        }
    }

    #[test]
    fn nothing_comes_out_before_it_is_due() {
        let mut wheel = Wheel::new();
        wheel.push(1_000_000_000, 7);
        assert_eq!(wheel.pop_until(999_999_999), None);
        assert_eq!(wheel.pop_until(1_000_000_000), Some((1_000_000_000, 7)));
        assert_eq!(wheel.pop_until(Ps::MAX), None);
    }
}
