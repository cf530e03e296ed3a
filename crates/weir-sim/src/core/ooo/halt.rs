//! Time in which a program does not run: a thread has no request, or is paused. The core then counts no cycles.

use super::Ooo;
use crate::clock::Ps;

/// When a core halts, and since when.
#[derive(Debug, Clone, Copy)]
pub struct Halt {
    /// The instruction with which what it was given ends.
    pub end: f64,
    /// Whether that has ended, and it has nothing else.
    pub ended: bool,
    /// From when on it may run what it was given since.
    from: Ps,
    /// Whether it may not run.
    paused: bool,
    /// Time that it halted.
    pub time: Ps,
}

impl Default for Halt {
    fn default() -> Self {
        Self {
            end: f64::INFINITY,
            ended: false,
            from: 0,
            paused: false,
            time: 0,
        }
    }
}

impl Halt {
    /// Until when it halts, if it does at `now`.
    #[inline]
    pub fn until(&self, now: Ps) -> Option<Ps> {
        if self.paused || self.ended {
            return Some(Ps::MAX);
        }
        (self.from > now).then_some(self.from)
    }
}

impl Ooo {
    /// A core that answers requests and has none.
    pub fn without_request(mut self) -> Self {
        self.halt.end = 0.0;
        self.halt.ended = true;
        self.hold();
        self
    }

    /// When it ended what it was given, if it has nothing else.
    pub fn has_ended(&self) -> Option<Ps> {
        self.halt.ended.then_some(self.clock)
    }

    /// It is given this many instructions, which may begin at `from`.
    pub fn run_from(&mut self, from: Ps, instructions: f64) {
        let before = self.halt.end;
        self.halt.ended = false;
        self.halt.from = from;
        self.halt.end = self.position + instructions;
        if self.branch_at >= before {
            self.branch_at = self.halt.end;
        }
        self.hold();
        self.aim();
    }

    /// Pauses it, or lets it go on.
    pub fn pause(&mut self, paused: bool) {
        self.halt.paused = paused;
        self.hold();
    }
}
