//! Time that passes for programs and is not simulated.
//!
//! The engine's own time does not jump: what is queued, open, refreshed or under way stays as it is, and goes on in the next
//! part. Only what changes over more than such a part goes on: the phases of programs, and the moves of pages. Streams go
//! on where they were: how they meet in banks settles over milliseconds, and would begin anew at other places.

use super::Engine;
use crate::clock::Ps;
use crate::core::Thread;
use crate::rng;

/// Random numbers of a run's sampling.
pub struct Chance {
    seed: u64,
    drawn: u64,
}

impl Chance {
    /// Draws that depend on the seed and on nothing else.
    pub fn new(seed: u64) -> Self {
        Self {
            seed: rng::mix(seed),
            drawn: 0,
        }
    }

    /// Uniform in 0..1.
    pub fn unit(&mut self) -> f64 {
        self.drawn += 1;
        rng::unit(self.seed, self.drawn)
    }
}

impl Engine {
    /// Whether it matters which part of a window is simulated: programs have phases, or pages move.
    pub fn changes(&mut self) -> bool {
        let has_phases =
            |thread: &Thread| thread.ooo.as_ref().is_some_and(|core| core.has_phases());
        self.threads.iter().any(has_phases) || self.pages.copying().is_some()
    }

    /// A part that is simulated begins.
    pub fn begin_part(&mut self) {
        for core in self.threads.iter_mut().filter_map(|t| t.ooo.as_mut()) {
            core.begin_part();
        }
    }

    /// It ends.
    pub fn end_part(&mut self) {
        for core in self.threads.iter_mut().filter_map(|t| t.ooo.as_mut()) {
            core.end_part();
        }
    }

    /// Lets the programs go on by this time. Returns the share of all threads that are in another phase then.
    pub fn skip(&mut self, time: Ps) -> f64 {
        let mut changed = 0_u32;
        for thread in self.threads.iter_mut().filter(|thread| !thread.paused) {
            if let Some(core) = &mut thread.ooo {
                changed += u32::from(core.skip(time));
            }
        }
        f64::from(changed) / self.threads.len().max(1) as f64
    }
}
