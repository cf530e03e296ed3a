//! Timed accesses, one at a time.

use weir_model::access::{Op, Pattern};

use super::Engine;
use super::stream::{BATCH, find};
use crate::clock::Ps;
use crate::core::Thread;
use crate::line::{Kind, Level, Place};
use crate::params::Params;
use crate::rng;
use crate::uncore::{Residence, Sender};

/// Quiet time around a timed access to a flushed line, in which the pipeline drains (MEMO §4.2).
pub(super) const SETTLE: Ps = 400_000;

impl Engine {
    /// Starts the next access, if none is outstanding.
    pub(super) fn pump_timed(&mut self, t: usize, time: Ps) {
        let thread = &mut self.threads[t];
        if thread.asleep {
            return;
        }
        let from = Sender {
            thread: t as u16,
            core: thread.core,
        };
        let chase = thread.is_chase();
        let core = &self.params.core;
        let mut budget = BATCH;
        let mut at = time;
        while thread.window.span() == 0 {
            let index = thread.window.next();
            let place = thread.walk.place(index);
            thread.window.start();
            thread.began = at;
            if chase && let Some(level) = find(&mut thread.private, Op::Ld, place) {
                let latency = match level {
                    Level::L1 => core.l1_hit,
                    Level::L2 => core.l2_hit,
                };
                thread.window.complete(index);
                thread.progress.accesses += 1;
                thread.progress.record(latency);
                self.uncore.pmu.cores[t].hit(Op::Ld, level);
                at += latency + thread.pause;
                budget -= 1;
                if budget == 0 || thread.pause > 0 {
                    return self.sleep(t, at);
                }
                continue;
            }
            let flushed = thread.pattern == Pattern::FlushedLine && !thread.op.is_posted();
            let mut at = at + if flushed { core.flushed } else { 0 };
            if chase {
                at += translation(&self.params, thread, self.seed, index);
            }
            let kind = thread.kinds[0];
            thread.outstanding += 1;
            thread.unobserved += u32::from(kind == Kind::Wcilf);
            let residence = match thread.op {
                Op::UcLd => {
                    at += self.params.uncached(place.tier).unwrap_or(0);
                    Residence::Absent
                }
                _ => Residence::Tags,
            };
            (self.uncore).send_with(from, index, place, kind, at, residence);
        }
    }

    /// The line of the outstanding access arrived.
    pub(super) fn filled_timed(&mut self, t: usize, index: u64, place: Place, at: Ps) {
        let thread = &self.threads[t];
        match thread.op {
            Op::Ld if !thread.private.is_tagged() && !self.uncore.keeps_lines() => {}
            Op::Ld => self.leave_private(t, index, place, false, at),
            Op::St | Op::Cas => self.leave_private(t, index, place, true, at),
            Op::StClwb => {
                let from = Sender {
                    thread: t as u16,
                    core: thread.core,
                };
                // The access ends when the write-back is answered.
                self.uncore.send(from, index, place, Kind::Clwb, at);
                return;
            }
            // The access was posted, or a device moved the line: nothing enters a cache.
            _ => {}
        }
        self.end_timed(t, index, at);
    }

    /// An access ends; the next one begins after a pause if the line must be flushed first.
    #[inline(never)]
    pub(super) fn end_timed(&mut self, t: usize, index: u64, at: Ps) {
        let thread = &mut self.threads[t];
        thread.outstanding -= 1;
        thread.window.complete(index);
        thread.progress.accesses += 1;
        thread.progress.record(at - thread.began);
        let mut pause = thread.pause;
        if thread.pattern == Pattern::FlushedLine {
            // The pause varies, so that samples do not fall into step with refresh.
            pause += SETTLE + rng::below(self.seed, index, SETTLE);
        }
        if pause > 0 {
            self.sleep(t, at + pause);
        } else {
            self.pump(t, at);
        }
    }
}

/// The time that address translation adds to a hop of a chase.
fn translation(params: &Params, thread: &Thread, seed: u64, index: u64) -> Ps {
    if thread.walk.is_local() {
        return 0;
    }
    let reach = params.core.tlb_reach.lines() as f64 / thread.walk.lines() as f64;
    if rng::unit(seed ^ 0x71b, index) < reach {
        0
    } else {
        params.core.walk
    }
}
