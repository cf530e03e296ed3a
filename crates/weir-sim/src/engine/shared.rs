//! Threads that alternate on one line: each thread takes the line out of the cache of the thread before,
//! changes it, and the next thread follows. Failed attempts in between are not modelled.

use weir_model::access::Op;

use super::Engine;
use crate::clock::Ps;
use crate::line::Kind;
use crate::uncore::Sender;

impl Engine {
    /// Starts the turn of a thread which waits for it.
    pub(super) fn pump_shared(&mut self, t: usize, time: Ps) {
        if let Some(sharing) = &mut self.threads[t].sharing
            && std::mem::take(&mut sharing.due)
        {
            self.take_turn(t, time);
        }
    }

    /// A thread asks for the line that was changed at `time`.
    fn take_turn(&mut self, t: usize, time: Ps) {
        let thread = &mut self.threads[t];
        let Some(sharing) = thread.sharing else {
            return;
        };
        thread.began = time;
        let from = Sender {
            thread: t as u16,
            core: thread.core,
        };
        let owner = u64::from(sharing.before);
        self.uncore
            .send(from, owner, sharing.line, Kind::RfoSnoop, time);
    }

    /// The line has arrived, answered by a slice at `now`: the thread changes it, and the next thread has its
    /// turn.
    pub(super) fn handed_over(&mut self, t: usize, owner: u64, slice: u16, now: Ps) {
        let core = self.threads[t].core;
        let at = self.uncore.snooped(owner as u16, slice, core, now);
        let thread = &mut self.threads[t];
        let own = match thread.op {
            Op::Cas => self.params.core.atomic,
            _ => self.params.core.l1_hit,
        };
        let done = at + own;
        let held = at - thread.began;
        thread.progress.accesses += 1;
        thread.progress.record(done - thread.began);
        let pause = thread.pause;
        self.uncore.pmu.cores[t].ended(Kind::RfoSnoop, held);
        let Some(after) = thread.sharing.map(|sharing| sharing.after) else {
            return;
        };
        if pause == 0 {
            return self.take_turn(after, done);
        }
        if let Some(sharing) = &mut self.threads[after].sharing {
            sharing.due = true;
        }
        self.sleep(after, done + pause);
    }
}
