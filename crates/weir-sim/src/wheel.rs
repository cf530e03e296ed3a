//! The event queue: a wheel of 128 ps buckets, and a heap for events beyond one turn of the wheel.
//!
//! Most events are less than a microsecond ahead, so a bucket index replaces a comparison tree: adding an
//! event changes one list head, and a bucket is removed as a whole. Two events less than 128 ps apart may
//! come out in either order; 128 ps is far below any time constant of the model. Which one comes first
//! depends only on the run, never on chance.
//!
//! The owner of an event chooses its number. An event is in the wheel at most once at a time. The owner
//! stores the wheel's data of an event next to its own, so that an event which comes out needs only one line
//! of the processor's cache.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Ps;

/// log2 of a bucket's width in picoseconds.
const BUCKET_BITS: u32 = 7;
/// Buckets of one turn; a power of two. One turn is 4.2 µs.
const BUCKETS: usize = 1 << 15;
/// Words of the map of occupied buckets.
const WORDS: usize = BUCKETS / 64;
const NONE: u32 = u32::MAX;

/// The wheel's data of an event: its time, and the next event in its bucket.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    time: Ps,
    next: u32,
}

impl Slot {
    /// The slot of an event that is not in the wheel.
    pub const IDLE: Slot = Slot {
        time: 0,
        next: NONE,
    };
}

/// The owner of the slots of events.
pub trait Slots {
    /// The slot of an event, if there is such an event.
    fn slot(&self, event: u32) -> Option<Slot>;

    /// Changes the slot of an event.
    fn set_slot(&mut self, event: u32, slot: Slot);
}

/// A queue of events.
pub struct Wheel {
    heads: Box<[u32; BUCKETS]>,
    /// One bit for each bucket, and one for each word of those.
    occupied: Box<[u64; WORDS]>,
    words: [u64; WORDS / 64],
    /// Number of the bucket (not its index) that is looked at next.
    cursor: u64,
    far: BinaryHeap<Reverse<(Ps, u32)>>,
}

/// The events of one bucket, from this one on.
#[derive(Debug, Clone, Copy)]
pub struct Bucket(u32);

impl Bucket {
    /// The next event. The caller may push events between two calls.
    #[inline(always)]
    pub fn next(&mut self, slots: &impl Slots) -> Option<(Ps, u32)> {
        let event = self.0;
        let slot = slots.slot(event)?;
        self.0 = slot.next;
        Some((slot.time, event))
    }
}

impl Wheel {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        Self {
            heads: Box::new([NONE; BUCKETS]),
            occupied: Box::new([0; WORDS]),
            words: [0; WORDS / 64],
            cursor: 0,
            far: BinaryHeap::new(),
        }
    }

    /// Adds an event. An event in the past comes out next.
    #[inline(always)]
    pub fn push(&mut self, time: Ps, event: u32, slots: &mut impl Slots) {
        match self.near(time) {
            Some(bucket) => self.push_near(bucket, time, event, slots),
            None => self.push_far(time, event),
        }
    }

    /// The bucket of a time, if this turn of the wheel has it.
    #[inline(always)]
    pub fn near(&self, time: Ps) -> Option<usize> {
        let bucket = (time >> BUCKET_BITS).max(self.cursor);
        (bucket - self.cursor < BUCKETS as u64).then_some(bucket as usize % BUCKETS)
    }

    /// Adds an event to its bucket.
    #[inline(always)]
    pub fn push_near(&mut self, bucket: usize, time: Ps, event: u32, slots: &mut impl Slots) {
        let index = bucket % BUCKETS;
        let next = std::mem::replace(&mut self.heads[index], event);
        if next == NONE {
            self.occupied[index / 64] |= 1 << (index % 64);
            self.words[index / 4096] |= 1 << (index / 64 % 64);
        }
        slots.set_slot(event, Slot { time, next });
    }

    /// Takes the earliest bucket if it begins by `limit`.
    #[inline]
    pub fn take(&mut self, limit: Ps, slots: &mut impl Slots) -> Option<Bucket> {
        if !self.far.is_empty() {
            self.bring_near(limit, slots);
        }
        let start = self.cursor as usize % BUCKETS;
        let here = self.occupied[start / 64] >> (start % 64);
        let ahead = if here != 0 {
            here.trailing_zeros() as usize
        } else {
            self.search(start / 64)?.wrapping_sub(start) % BUCKETS
        };
        let (bucket, index) = (self.cursor + ahead as u64, (start + ahead) % BUCKETS);
        if bucket << BUCKET_BITS > limit {
            return None;
        }
        self.cursor = bucket;
        let word = &mut self.occupied[index / 64];
        *word &= !(1 << (index % 64));
        if *word == 0 {
            self.words[index / 4096] &= !(1 << (index / 64 % 64));
        }
        let first = std::mem::replace(&mut self.heads[index], NONE);
        Some(Bucket(first))
    }

    /// The first occupied bucket after the word `from`; the search wraps around once.
    fn search(&self, from: usize) -> Option<usize> {
        let after = (from + 1) % WORDS;
        for turn in 0..=WORDS / 64 {
            let group = (after / 64 + turn) % (WORDS / 64);
            let mut bits = self.words[group];
            if turn == 0 {
                bits &= u64::MAX << (after % 64);
            }
            if bits != 0 {
                let word = group * 64 + bits.trailing_zeros() as usize;
                return Some(word * 64 + self.occupied[word].trailing_zeros() as usize);
            }
        }
        None
    }

    #[cold]
    fn push_far(&mut self, time: Ps, event: u32) {
        self.far.push(Reverse((time, event)));
    }

    /// Moves events from the heap into the wheel when the wheel's turn covers them.
    #[cold]
    #[inline(never)]
    fn bring_near(&mut self, limit: Ps, slots: &mut impl Slots) {
        if self.words.iter().all(|&w| w == 0)
            && let Some(&Reverse((time, _))) = self.far.peek()
            && time <= limit
        {
            // An empty wheel may jump to the time of the next event in the heap.
            self.cursor = self.cursor.max(time >> BUCKET_BITS);
        }
        while let Some(&Reverse((time, event))) = self.far.peek() {
            if (time >> BUCKET_BITS) >= self.cursor + BUCKETS as u64 {
                break;
            }
            self.far.pop();
            self.push(time, event, slots);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Slots of events 0..300.
    struct Few([Slot; 300]);

    impl Slots for Few {
        fn slot(&self, event: u32) -> Option<Slot> {
            self.0.get(event as usize).copied()
        }

        fn set_slot(&mut self, event: u32, slot: Slot) {
            self.0[event as usize] = slot;
        }
    }

    /// Takes every event that is due.
    fn drain(wheel: &mut Wheel, slots: &mut Few, limit: Ps) -> Vec<(Ps, u32)> {
        let mut taken = Vec::new();
        while let Some(mut bucket) = wheel.take(limit, slots) {
            while let Some(event) = bucket.next(slots) {
                taken.push(event);
            }
        }
        taken
    }

    proptest! {
        #[test]
        fn events_come_out_in_order_of_time_to_within_a_bucket(
            times in prop::collection::vec(0u64..40_000_000, 1..300),
            steps in 1u64..20,
        ) {
            let (mut wheel, mut slots) = (Wheel::new(), Few([Slot::IDLE; 300]));
            let mut taken = Vec::new();
            let chunk = times.len().div_ceil(steps as usize);
            let mut now = 0;
            for (i, times) in times.chunks(chunk).enumerate() {
                for (j, t) in times.iter().enumerate() {
                    wheel.push(now + t, (i * chunk + j) as u32, &mut slots);
                }
                now += 40_000_000 / steps;
                taken.extend(drain(&mut wheel, &mut slots, now));
            }
            taken.extend(drain(&mut wheel, &mut slots, Ps::MAX));
            let mut ids: Vec<u32> = taken.iter().map(|e| e.1).collect();
            ids.sort_unstable();
            prop_assert!(ids.iter().copied().eq(0..times.len() as u32));
            for pair in taken.windows(2) {
                prop_assert!(pair[1].0 + (1 << BUCKET_BITS) > pair[0].0);
            }
        }
    }

    #[test]
    fn nothing_comes_out_before_it_is_due() {
        let (mut wheel, mut slots) = (Wheel::new(), Few([Slot::IDLE; 300]));
        wheel.push(1_000_000_000, 7, &mut slots);
        assert!(drain(&mut wheel, &mut slots, 999_999_000).is_empty());
        wheel.push(5, 3, &mut slots);
        assert_eq!(
            drain(&mut wheel, &mut slots, 1_000_000_000),
            [(5, 3), (1_000_000_000, 7)]
        );
    }
}
