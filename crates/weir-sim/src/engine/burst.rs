//! Bursts: several accesses at once to lines that were all flushed before; the burst is timed as a whole.
//!
//! The accesses overlap as far as the core has buffers, so they share the path to memory. The coherence cost
//! of flushed lines is paid in parallel. A burst leaves nothing in the caches: the next flushes remove its
//! lines in the pause.

use weir_model::access::Op;

use super::timed::SETTLE;
use super::{Engine, rng};
use crate::clock::Ps;
use crate::line::{Kind, Place};
use crate::uncore::Sender;

impl Engine {
    /// Starts as many accesses as the core has buffers for, of the current burst or of a new one.
    pub(super) fn pump_burst(&mut self, t: usize, time: Ps) {
        let thread = &mut self.threads[t];
        let Some(burst) = thread.burst.as_mut().filter(|_| !thread.asleep) else {
            return;
        };
        if burst.left == 0 && thread.window.span() == 0 {
            burst.left = burst.lines;
            thread.began = time;
        }
        let kind = thread.kinds[0];
        let posted = kind == Kind::Wcilf;
        let extra = if posted { 0 } else { self.params.core.flushed };
        let from = Sender {
            thread: t as u16,
            core: thread.core,
        };
        while burst.left > 0 && thread.outstanding + thread.write_backs < thread.limits.outstanding
        {
            let index = thread.window.next();
            thread.window.start();
            burst.left -= 1;
            thread.outstanding += 1;
            thread.unobserved += u32::from(posted);
            let place = thread.walk.place(index);
            self.uncore.send(from, index, place, kind, time + extra);
        }
    }

    /// A line of a burst arrived: its buffer is free for a write-back or for the next access.
    pub(super) fn filled_burst(&mut self, t: usize, index: u64, place: Place, at: Ps) {
        self.threads[t].outstanding -= 1;
        if self.threads[t].op == Op::StClwb {
            self.write_through(t, index, place, at);
            self.pump_burst(t, at);
        } else {
            self.end_in_burst(t, index, at);
        }
    }

    /// A slice has read the data of a posted store.
    pub(super) fn burst_buffer_free(&mut self, t: usize, now: Ps) {
        self.threads[t].outstanding -= 1;
        self.pump_burst(t, now);
    }

    /// An access of a burst is done. When the last access is done, the burst ends and the thread pauses.
    pub(super) fn end_in_burst(&mut self, t: usize, index: u64, at: Ps) {
        let thread = &mut self.threads[t];
        thread.window.complete(index);
        thread.progress.accesses += 1;
        match thread.burst {
            Some(burst) if burst.left == 0 && thread.window.span() == 0 => {
                thread.progress.record((at - thread.began) / burst.lines);
                let pause = thread.pause + SETTLE + rng::below(self.seed, index, SETTLE);
                self.sleep(t, at + pause);
            }
            _ => self.pump_burst(t, at),
        }
    }
}
