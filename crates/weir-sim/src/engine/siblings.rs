//! Two streams on one core: they share its buffers and its ports, and have their turns.

use super::Engine;
use super::stream::pump_stream;
use crate::clock::Ps;
use crate::core::paced;

impl Engine {
    /// Lets both streams of a core issue as many accesses as they may, after a buffer of `t` became free. Each is the first
    /// every other time.
    #[inline(never)]
    pub(super) fn pump_siblings(&mut self, t: usize, other: usize, time: Ps) {
        let yields = &mut self.threads[t].yields;
        *yields = !*yields;
        let order = match *yields {
            true => [(other, t), (t, other)],
            false => [(t, other), (other, t)],
        };
        for (one, other) in order {
            let beside = &self.threads[other];
            let (taken, gap) = (
                beside.outstanding + beside.write_backs,
                self.threads[one].limits.gap,
            );
            let thread = &mut self.threads[one];
            thread.taken = taken;
            let before = thread.window.next();
            pump_stream(thread, one, &mut self.uncore, &self.params, time);
            let issued = thread.window.next() - before;
            // What one issues the other cannot in that time.
            let beside = &mut self.threads[other];
            for _ in 0..issued {
                beside.next_issue = paced(beside.next_issue, time, gap, 0);
            }
        }
    }
}
