//! The accesses of a thread that have started and not retired.
//!
//! Accesses are numbered in program order. They complete in any order, but the window moves on only past its
//! oldest access: retirement is in order, and so is the store buffer.

use crate::clock::Ps;

/// The limits of a thread's outstanding accesses, from its core's resources, its instruction and the
/// prefetchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests that hold a buffer of the core (line-fill buffers, or super-queue entries once the
    /// L2 prefetcher runs ahead).
    pub outstanding: u32,
    /// Accesses between the oldest unfinished one and the newest.
    pub window: u64,
    /// Unfinished accesses that demand alone reaches; further ones are prefetched.
    pub demand: u64,
    /// Lines that the prefetchers run ahead of demand.
    pub ahead: u64,
    /// The same while many requests wait for the tier.
    pub ahead_busy: u64,
    /// The part of those that the L1 prefetchers request.
    pub l1_ahead: u64,
    /// Accesses in a run before a prefetcher follows it.
    pub training: u64,
    /// Posted stores that the store buffer holds.
    pub stores: u64,
    /// Least time between two requests of the instruction.
    pub gap: Ps,
}

/// A sliding window of at most [`Window::MOST`] accesses.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    base: u64,
    next: u64,
    done: u64,
}

impl Window {
    /// The widest window that can be asked for.
    pub const MOST: u64 = 64;

    /// An empty window whose first access is `first`.
    pub fn new(first: u64) -> Self {
        Self {
            base: first,
            next: first,
            done: 0,
        }
    }

    /// The number of the next access to start.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The distance of the next access from the oldest unfinished one.
    #[inline]
    pub fn span(&self) -> u64 {
        self.next - self.base
    }

    /// Starts the next access.
    #[inline]
    pub fn start(&mut self) {
        self.next += 1;
    }

    /// Marks a started access as complete, and moves on past all complete ones.
    #[inline]
    pub fn complete(&mut self, index: u64) {
        debug_assert!(
            index >= self.base && index < self.next,
            "{index} is not in {self:?}"
        );
        self.done |= 1 << (index - self.base);
        // Whether the oldest access is complete is unpredictable, so there is no branch. The ones that are shifted
        // out are cleared first, so that a shift by all 64, which shifts by none, leaves zero.
        let n = self.done.trailing_ones();
        self.base += u64::from(n);
        self.done = (self.done & self.done.wrapping_add(1)).wrapping_shr(n);
    }

    /// The oldest access that is not finished, or which the program has not reached.
    #[inline]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Marks a started access as complete, and moves on past complete ones, but not past `reached`, which the
    /// program has not reached.
    #[inline]
    pub fn complete_by(&mut self, index: u64, reached: u64) {
        debug_assert!(
            index >= self.base && index < self.next,
            "{index} is not in {self:?}"
        );
        self.done |= 1 << (index - self.base);
        self.retire(reached);
    }

    /// Moves on past complete accesses, but not past `reached`.
    #[inline]
    pub fn retire(&mut self, reached: u64) {
        let n = u64::from(self.done.trailing_ones()).min(reached - self.base);
        self.base += n;
        self.done = (self.done >> (n / 2)) >> (n - n / 2);
    }

    /// Unfinished accesses before `index`, which was started or is the next.
    #[inline]
    pub fn unfinished_before(&self, index: u64) -> u64 {
        let n = index - self.base;
        // Two shifts, since a shift by 64 is not allowed.
        let before = self.done << ((64 - n) / 2) << (64 - n - (64 - n) / 2);
        n - u64::from(before.count_ones())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_window_whose_oldest_access_completes_last_is_empty() {
        let mut window = Window::new(5);
        (0..Window::MOST).for_each(|_| window.start());
        (5..5 + Window::MOST).rev().for_each(|n| window.complete(n));
        assert_eq!((window.span(), window.done), (0, 0));
    }

    proptest! {
        #[test]
        fn completing_everything_empties_the_window(order in prop::collection::vec(any::<u32>(), 1..64)) {
            let mut window = Window::new(1 << 32);
            let n = order.len() as u64;
            for _ in 0..n {
                window.start();
            }
            let mut indices: Vec<u64> = (0..n).collect();
            indices.sort_by_key(|&i| order[i as usize]);
            for (k, i) in indices.iter().enumerate() {
                prop_assert!(window.span() >= n - k as u64);
                window.complete((1 << 32) + i);
            }
            prop_assert_eq!(window.span(), 0);
        }
    }
}
