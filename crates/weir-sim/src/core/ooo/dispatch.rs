//! Time of a core: how far instructions are dispatched, what stalls dispatch, and as what the time is
//! counted.

use super::Ooo;
use super::agenda::Event;
use crate::clock::Ps;

/// The next step of dispatch.
enum NextStep {
    /// Dispatch the next visit.
    Dispatch,
    /// Reach a mispredicted branch.
    Branch,
    /// Dispatch up to this instruction.
    Run(f64),
    /// Stall, until a time if that is known.
    Stands(Why, Ps),
}

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
}

/// A time to the nearest picosecond, half a one up; the library's function is a call.
#[inline(always)]
fn rounded(time: f64) -> Ps {
    let whole = time as i64;
    (whole + i64::from(time - whole as f64 >= 0.5)) as Ps
}

impl Ooo {
    /// Advances the core up to `until`. Returns when it must be called again, [`Ps::MAX`] if a line must
    /// arrive first.
    pub fn advance(&mut self, until: Ps) -> Ps {
        loop {
            self.retire();
            if let Some(event) = self.events.take(self.clock) {
                match event {
                    Event::Arrives(slot) => self.arrive(slot as usize),
                    Event::Freed => self.after_free(),
                    Event::Starts(load) => self.start_load(load),
                }
                continue;
            }
            let due = self.events.next();
            match self.next_step() {
                NextStep::Dispatch => self.dispatch(),
                NextStep::Branch => self.mispredict(),
                NextStep::Run(to) => {
                    let end = self.clock + rounded((to - self.position) * self.pace);
                    let stop = end.min(due).min(until.max(self.clock));
                    self.count_missed(stop, self.quiet);
                    if stop == end {
                        self.position = to;
                    } else {
                        self.position += (stop - self.clock) as i64 as f64 / self.pace;
                    }
                    self.clock = stop;
                    if stop >= until && stop < end {
                        return end.min(due);
                    }
                }
                NextStep::Stands(why, wake) => {
                    let wake = wake.min(due);
                    let stop = wake.min(until.max(self.clock));
                    self.stall(why, stop);
                    self.clock = stop;
                    if stop < wake {
                        return wake;
                    }
                }
            }
        }
    }

    fn next_step(&self) -> NextStep {
        if self.branch.is_some() {
            return NextStep::Stands(Why::Load, Ps::MAX);
        }
        if self.clock < self.known {
            return NextStep::Stands(Why::Load, self.known);
        }
        if self.clock < self.resumes {
            return NextStep::Stands(Why::Fetch, self.resumes);
        }
        if self.clock < self.kernel {
            return NextStep::Stands(Why::Kernel, self.kernel);
        }
        let (limit, back) = match self.loads.front() {
            Some(load) => (load.at + self.window, load.done),
            None => (f64::INFINITY, Ps::MAX),
        };
        let least = |a: f64, b: f64| if a < b { a } else { b };
        let to = least(least(self.next_at, limit), self.branch_at);
        if self.position < to {
            return NextStep::Run(to);
        }
        if self.position >= self.branch_at {
            return NextStep::Branch;
        }
        if self.position < self.next_at {
            return NextStep::Stands(Why::Load, back);
        }
        let full = |used: u32, size: u32| used > 0 && used + self.next.accesses > size;
        if self.next.store {
            if full(self.store_entries, self.params.store_buffer) {
                return NextStep::Stands(Why::Stores, back);
            }
        } else if full(self.load_entries, self.params.load_buffer) {
            return NextStep::Stands(Why::Load, back);
        }
        NextStep::Dispatch
    }

    /// Dispatches the next visit.
    fn dispatch(&mut self) {
        let visit = self.next;
        self.tally.touched += 1;
        let pace = &self.paces[visit.phase as usize];
        self.pace = pace.cpi * self.params.cycle;
        self.quiet = pace.quiet;
        self.window = pace.window;
        self.next_at += visit.gap;
        let mispredicts = pace.mispredicts;
        self.branch_at = self.next_mispredict(visit.gap, mispredicts);
        self.next = self.script.next();
        if visit.faults {
            self.kernel = self.clock + self.params.fault;
        }
        if visit.store {
            self.dispatch_store(&visit);
        } else {
            self.dispatch_load(&visit);
        }
    }

    /// The position of the next mispredicted branch, if it is before the next visit.
    fn next_mispredict(&mut self, gap: f64, mispredicts: f64) -> f64 {
        if mispredicts == 0.0 {
            return f64::INFINITY;
        }
        let distance = -(1.0 - self.script.draw()).ln() / mispredicts;
        if distance < gap {
            self.position + distance
        } else {
            f64::INFINITY
        }
    }

    /// A mispredicted branch waits for the load that will be outstanding the longest, if there is one;
    /// otherwise its whole cost is in the pace.
    fn mispredict(&mut self) {
        self.branch_at = f64::INFINITY;
        match self.loads.front() {
            Some(load) if load.done == Ps::MAX => self.branch = Some((self.loads.numbers().0, 0)),
            Some(load) => self.known = self.known.max(load.done),
            None => {}
        }
    }

    /// Counts the time up to `stop`, in which dispatch stalls and nothing is executed.
    fn stall(&mut self, why: Why, stop: Ps) {
        let time = stop - self.clock;
        match why {
            Why::Kernel => return self.count_missed(stop, 0.0),
            Why::Stores if self.loads.is_empty() => self.tally.bound_on_stores += time,
            // An instruction that waits for a load which hits L1 also waits for the caches.
            Why::Load | Why::Stores => self.tally.stalls[0] += time - self.time_of_misses(stop),
            Why::Fetch => {}
        }
        self.count_missed(stop, 1.0);
    }

    /// Counts, of the time up to `stop`, the share in which nothing is executed while a demand load that
    /// missed L1 is outstanding, whatever the reason is: the events of the hardware do the same. Also counts
    /// all of that time, with or without execution.
    #[inline(always)]
    fn count_missed(&mut self, stop: Ps, share: f64) {
        // Signed numbers are converted by one instruction.
        let idle = |time: Ps| (time as i64 as f64 * share) as i64 as Ps;
        let l1 = self.time_of_misses(stop);
        let (stalls, missing) = (&mut self.tally.stalls, &mut self.tally.missing);
        if self.missing[1] > 0 {
            // A load that missed one cache missed those before it.
            let stalled = idle(l1);
            missing[0] += l1;
            stalls[0] += stalled;
            stalls[1] += stalled;
            for level in [2, 3] {
                let counts = Ps::from(self.missing[level] > 0);
                missing[level - 1] += l1 * counts;
                stalls[level] += stalled * counts;
            }
        } else if self.l2_hit_until > self.clock {
            missing[0] += l1;
            stalls[0] += idle(l1);
            stalls[1] += idle(l1);
        }
    }

    /// How long, up to `stop`, a demand load that missed L1 is outstanding.
    fn time_of_misses(&self, stop: Ps) -> Ps {
        if self.missing[1] > 0 {
            stop - self.clock
        } else {
            self.l2_hit_until.clamp(self.clock, stop) - self.clock
        }
    }

    /// Loads with data retire in order, and stores behind them may leave.
    fn retire(&mut self) {
        let mut any = false;
        while let Some(load) = self.loads.front()
            && load.done <= self.clock
        {
            self.load_entries -= load.accesses;
            self.loads.pop();
            any = true;
        }
        if any && !self.stores.is_empty() {
            self.drain_stores();
        }
    }
}
