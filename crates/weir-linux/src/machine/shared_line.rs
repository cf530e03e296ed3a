//! One line on which several threads alternate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_model::machine::MachineError;

use super::assignment::{Need, Turn};
use super::recorder::Recorder;
use crate::clock::Clock;
use crate::memory::{Pages, Policy, Region};

/// Reads of the line between two reads of the stop flag.
const LOOKS: usize = 64;

/// The line, which all threads of a tenant share.
pub(super) struct SharedLine {
    region: Region,
}

// SAFETY: the region's memory is only ever used through the one atomic word of `word`, which may be
// shared; everything else of a region is plain data that `&self` does not change.
unsafe impl Sync for SharedLine {}

impl SharedLine {
    /// A line on the tier of `need`.
    pub fn allocate(need: &Need, pages: Pages, policy: &Policy) -> Result<Self, MachineError> {
        let region = Region::placed(need.bytes, pages, &need.shares, need.spills, policy)?;
        let line = Self { region };
        line.word().store(0, Ordering::Release);
        Ok(line)
    }

    /// The memory around it.
    pub fn region(&self) -> &Region {
        &self.region
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: the region lives as long as `self`, starts on a page, and holds a line at least;
        // nothing but this word is used while it is shared.
        unsafe { AtomicU64::from_ptr(self.region.base().cast()) }
    }

    /// Takes this thread's turns until the stop flag is set. The first of the threads records how long
    /// `rounds` rounds of all threads took, by hand-over.
    pub fn take_turns(
        &self,
        turn: Turn,
        rounds: usize,
        clock: Clock,
        stop: &AtomicBool,
        recorder: &mut Recorder<'_>,
    ) {
        let (word, of) = (self.word(), turn.of as u64);
        let mut next = turn.place as u64;
        // The state that the last run of this tenant left does not count.
        let mut began = None;
        let mut round = 0;
        while wait(word, next, stop) {
            if turn.place == 0 {
                if round == rounds {
                    let now = clock.stop();
                    if let Some(began) = began {
                        recorder.record(began, now, rounds * turn.of);
                    }
                    round = 0;
                }
                if round == 0 {
                    began = Some(clock.start());
                }
                round += 1;
            }
            // It is this thread's turn: this cannot fail.
            let _ = word.compare_exchange(next, next + 1, Ordering::AcqRel, Ordering::Relaxed);
            next += of;
        }
    }
}

/// Reads the line until it contains `turn`; `false` if the stop flag was set first. Without the processor's
/// hint for waiting, which takes longer than a hand-over.
#[inline(always)]
fn wait(word: &AtomicU64, turn: u64, stop: &AtomicBool) -> bool {
    loop {
        for _ in 0..LOOKS {
            if word.load(Ordering::Acquire) == turn {
                return !stop.load(Ordering::Relaxed);
            }
        }
        if stop.load(Ordering::Relaxed) {
            return false;
        }
    }
}
