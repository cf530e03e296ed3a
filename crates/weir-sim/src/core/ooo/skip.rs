//! Time in which a program goes on and is not simulated: between the parts of a window that are.
//!
//! The program continues in a later phase, or later in the same one, as far as it comes at its last pace in each phase.
//! The caches then hold what they held when that phase was last simulated; before a phase is simulated for the first time,
//! they are accessed without timing. Lines that are under way stay so.

use super::Ooo;
use super::caches::Caches;
use super::stores::{Absent, NO_LINE};
use crate::clock::Ps;

/// What of a program is kept over the time that is skipped.
#[derive(Default)]
pub struct Kept {
    /// Instructions a picosecond of each phase when it was last simulated; zero before.
    rates: Vec<f64>,
    /// The same of whatever phase was simulated last.
    latest: f64,
    /// The caches at the end of each phase's last part.
    caches: Vec<Option<Box<Caches>>>,
    /// The phase, the instructions and the time when the part began.
    began: (usize, f64, Ps),
}

impl Ooo {
    /// Whether its phases differ, so that it matters which one is simulated.
    pub fn has_phases(&self) -> bool {
        self.script.phases().len() > 1
    }

    /// A part that is simulated begins.
    pub fn begin_part(&mut self) {
        self.kept.began = (self.script.phase(), self.position, self.clock);
    }

    /// It ends: the pace of its phase is known.
    pub fn end_part(&mut self) {
        let (phase, position, clock) = self.kept.began;
        let (instructions, time) = (self.position - position, self.clock.saturating_sub(clock));
        if instructions <= 0.0 || time == 0 {
            return;
        }
        let rate = instructions / time as f64;
        self.kept.latest = rate;
        self.kept.rates.resize(self.script.phases().len(), 0.0);
        if self.script.phase() == phase {
            self.kept.rates[phase] = rate;
        }
    }

    /// Time goes by in which the program is not simulated. Returns whether it is in another phase then.
    pub fn skip(&mut self, time: Ps) -> bool {
        let latest = self.kept.latest;
        if !self.has_phases() || latest <= 0.0 || time == 0 {
            return false;
        }
        let known = |&rate: &f64| if rate > 0.0 { rate } else { latest };
        let rates: Vec<f64> = self.kept.rates.iter().map(known).collect();
        let before = self.script.phase();
        if !self.script.skip(time, &rates) {
            return false;
        }
        let after = self.script.phase();
        // The other caches may have these lines.
        (self.awaited, self.absent) = (NO_LINE, Absent::NONE);
        self.exchanged = true;
        self.kept.caches.resize_with(rates.len(), || None);
        match self.kept.caches[after].take() {
            Some(caches) => {
                let old = std::mem::replace(&mut self.caches, *caches);
                self.kept.caches[before] = Some(Box::new(old));
            }
            None => {
                self.kept.caches[before] = Some(Box::new(self.caches.clone()));
                // These accesses are no part of the program's time.
                let left = std::mem::replace(self.script.left_mut(), f64::INFINITY);
                self.warm();
                *self.script.left_mut() = left;
            }
        }
        true
    }
}
