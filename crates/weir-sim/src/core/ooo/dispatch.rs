//! Time of a core: how far instructions are dispatched, what stalls dispatch, and as what the time is
//! counted.

use super::Ooo;
use super::agenda::Event;
use crate::clock::Ps;

/// Why dispatch stalls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// A load.
    Load,
    /// The store buffer is full.
    Stores,
    /// The front end, after a mispredicted branch.
    Fetch,
    /// The kernel, whose instructions are executed in the meantime.
    Kernel,
    /// The program does not run.
    Halt,
    /// The part of a request that it was given has ended, at this very time.
    Ended,
}

/// A time to the nearest picosecond, half a one up; the library's function is a call.
#[inline(always)]
fn rounded(time: f64) -> Ps {
    let whole = time as i64;
    (whole + i64::from(time - whole as f64 >= 0.5)) as Ps
}

/// The lesser of two numbers; the library's function, which also looks whether there are two, is longer.
#[inline(always)]
pub(super) fn least(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

impl Ooo {
    /// Advances the core up to `until`. Returns when it must be called again, [`Ps::MAX`] if a line must
    /// arrive first. It is called in one place.
    #[inline(always)]
    pub fn advance(&mut self, until: Ps) -> Ps {
        let until = until.max(self.clock);
        loop {
            if self.back <= self.clock {
                self.retire();
            }
            if let Some(event) = self.events.take(self.clock) {
                match event {
                    Event::Arrives(slot) => self.arrive(slot as usize),
                    Event::Freed => self.after_free(),
                    Event::Starts(load) => self.start_load(load),
                }
                continue;
            }
            let due = self.events.next();
            let (why, wake) = if self.clock < self.held {
                self.holds()
            } else {
                if self.position < self.goal {
                    let end = self.clock + rounded((self.goal - self.position) * self.pace);
                    let stop = end.min(due).min(until);
                    self.misses.count(self.clock, stop, self.quiet);
                    let from = std::mem::replace(&mut self.clock, stop);
                    if stop < end {
                        self.position += (stop - from) as i64 as f64 / self.pace;
                        if stop >= until {
                            return end.min(due);
                        }
                        continue;
                    }
                    self.position = self.goal;
                    if self.back.min(due) <= stop {
                        continue;
                    }
                }
                match self.reach() {
                    Some(Why::Ended) => return self.clock,
                    Some(why) => (why, self.back),
                    None => continue,
                }
            };
            let wake = wake.min(due);
            let stop = wake.min(until);
            self.stall(why, stop);
            self.clock = stop;
            if stop < wake {
                return wake;
            }
        }
    }

    /// Why dispatch stalls whatever the next instruction is, and until when.
    fn holds(&self) -> (Why, Ps) {
        if let Some(until) = self.halt.until(self.clock) {
            (Why::Halt, until)
        } else if self.branch.is_some() {
            (Why::Load, Ps::MAX)
        } else if self.clock < self.known {
            (Why::Load, self.known)
        } else if self.clock < self.resumes {
            (Why::Fetch, self.resumes)
        } else {
            (Why::Kernel, self.kernel)
        }
    }

    /// Computes until when dispatch stalls for these reasons, after a change.
    pub(super) fn hold(&mut self) {
        self.held = match self.branch {
            Some(_) => Ps::MAX,
            None => self.known.max(self.resumes).max(self.kernel),
        };
        self.held = self.held.max(self.halt.until(self.clock).unwrap_or(0));
    }

    /// Computes how far instructions may be dispatched, after a change.
    #[inline(always)]
    pub(super) fn aim(&mut self) {
        let limit = self.oldest_load + self.window;
        self.goal = least(least(self.next_at, limit), self.branch_at);
    }

    /// Every instruction is dispatched that may be: a branch or a visit is next, or dispatch stalls.
    #[inline(always)]
    fn reach(&mut self) -> Option<Why> {
        if self.position >= self.branch_at {
            if self.position >= self.halt.end {
                return Some(self.end_part_of_request());
            }
            self.mispredict();
            return None;
        }
        if self.position < self.next_at {
            return Some(Why::Load);
        }
        let full = |used: u32, size: u32| used > 0 && used + self.next.accesses > size;
        if self.next.store {
            if full(self.store_entries, self.params.store_buffer) {
                return Some(Why::Stores);
            }
        } else if full(self.load_entries, self.params.load_buffer) {
            return Some(Why::Load);
        }
        self.dispatch();
        None
    }

    /// Dispatches the next visit.
    fn dispatch(&mut self) {
        let visit = &self.next;
        self.tally.touched += 1;
        let (gap, store, walks, faults) = (visit.gap, visit.store, visit.walks, visit.faults);
        if self.phase != u32::from(visit.phase) {
            self.enter_phase();
        }
        self.next_at += gap;
        if faults {
            self.kernel = self.clock + self.params.fault;
            self.hold();
        }
        self.branch_at = self.next_mispredict(gap);
        // The next visit is found in one place, which is inlined.
        let load = match store {
            true => {
                self.enter_store();
                walks.then(|| self.enter_walk())
            }
            false => Some(self.enter_load()),
        };
        self.script.next(&mut self.next);
        match load {
            Some((number, after)) => self.begin_load(number, after),
            None => self.drain_stores(),
        }
        self.aim();
    }

    /// The next visit is of another phase, or the clock has changed.
    #[cold]
    #[inline(never)]
    fn enter_phase(&mut self) {
        let pace = &self.paces[self.next.phase as usize];
        self.phase = self.next.phase.into();
        self.pace = pace.cpi * self.params.cycle;
        self.quiet = pace.quiet;
        self.window = pace.window;
        self.mispredicts = pace.mispredicts;
    }

    /// The position of the next mispredicted branch, if it is before the next visit; or of the end of a request.
    #[inline(always)]
    fn next_mispredict(&mut self, gap: f64) -> f64 {
        if self.mispredicts <= 0.0 {
            return self.halt.end;
        }
        let distance = -(1.0 - self.script.draw()).ln() / self.mispredicts;
        if distance < gap {
            self.halt.end.min(self.position + distance)
        } else {
            self.halt.end
        }
    }

    /// A request ends when all its instructions have retired.
    #[cold]
    fn end_part_of_request(&mut self) -> Why {
        if !self.loads.is_empty() {
            return Why::Load;
        }
        self.halt.ended = true;
        self.hold();
        Why::Ended
    }

    /// A mispredicted branch waits for the load that will be outstanding the longest, if there is one;
    /// otherwise its whole cost is in the pace.
    fn mispredict(&mut self) {
        self.branch_at = self.halt.end;
        match self.loads.front() {
            Some(load) if load.done == Ps::MAX => self.branch = Some((self.loads.numbers().0, 0)),
            Some(load) => self.known = self.known.max(load.done),
            None => {}
        }
        self.hold();
        self.aim();
    }

    /// Counts the time up to `stop`, in which dispatch stalls and nothing is executed.
    #[inline(always)]
    fn stall(&mut self, why: Why, stop: Ps) {
        let time = stop - self.clock;
        if !matches!(why, Why::Load | Why::Stores) {
            return self.stall_otherwise(why, stop);
        }
        let missing = self.misses.count_stall(self.clock, stop, false);
        if why == Why::Load {
            self.wait_for_load(time);
        } else {
            self.wait_for_stores(time);
            if self.loads.is_empty() {
                self.tally.bound_on_stores += time;
                return;
            }
        }
        // An instruction that waits for a load which hits L1 also waits for the caches.
        self.misses.stalled[0] += time - missing;
    }

    /// The same if it stalls for no access.
    #[inline(never)]
    fn stall_otherwise(&mut self, why: Why, stop: Ps) {
        if why == Why::Halt {
            self.halt.time += stop - self.clock;
        }
        let kernel = matches!(why, Why::Kernel | Why::Halt);
        self.misses.count_stall(self.clock, stop, kernel);
    }

    /// Loads with data retire in order, and stores behind them may leave.
    fn retire(&mut self) {
        loop {
            self.load_entries -= self.loads.pop().accesses;
            let Some(next) = self.loads.front() else {
                (self.back, self.oldest_load) = (Ps::MAX, f64::INFINITY);
                break;
            };
            if next.done > self.clock {
                (self.back, self.oldest_load) = (next.done, next.at);
                break;
            }
        }
        self.aim();
        self.drain_stores();
    }
}
