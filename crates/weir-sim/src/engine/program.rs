//! Programs of rounds and pauses: the position of the program, the lines that prefetchers bring before it,
//! and the stores in the store buffer.

use weir_model::access::Op;

use super::Engine;
use super::stream::{BATCH, find, hit_gap};
use crate::clock::Ps;
use crate::core::{Entry, Private, crossings, is_held_back, paced};
use crate::line::{Kind, Place};
use crate::uncore::Sender;

impl Engine {
    /// Lets a program continue as far as it may.
    pub(super) fn pump_program(&mut self, t: usize, time: Ps) {
        let mut budget = BATCH;
        loop {
            self.drain_stores(t, time);
            let thread = &mut self.threads[t];
            let Some(program) = &mut thread.program else {
                return;
            };
            let limits = &thread.limits;
            let index = thread.window.next();
            let reached = program.reached();
            let goes_on = !thread.asleep
                && program.due() <= time
                && reached - thread.window.base() < limits.window
                && thread.window.unfinished_before(reached) + u64::from(thread.write_backs)
                    < limits.demand
                && program.stores_waiting() + u64::from(program.combining) < limits.stores;
            if goes_on && reached < index {
                // It was prefetched.
                program.go_on(&mut thread.window, time);
                continue;
            }
            let entry = program.entry(index);
            let has_buffer = thread.outstanding + thread.write_backs < limits.outstanding
                || entry == Entry::Nothing;
            let ahead = index - reached;
            let tier = program.tier(entry, &thread.cursor);
            let prefetches = thread.window.span() < limits.window
                && ahead < limits.ahead
                && program.is_foreseen(entry, &thread.walk, limits)
                && !self.uncore.is_distressed(tier)
                && (ahead < limits.ahead_busy || !self.uncore.is_busy(tier));
            if !has_buffer || !(goes_on || prefetches) {
                break;
            }
            if is_held_back(thread.next_issue, time, thread.allocated) {
                let wake = thread.next_issue;
                if !thread.asleep {
                    self.sleep(t, wake);
                }
                return;
            }
            thread.window.start();
            if goes_on {
                program.go_on(&mut thread.window, time);
            }
            let Some(place) = program.follow(entry, &thread.walk, &mut thread.cursor) else {
                // Only the rate of posted stores limits it.
                thread.window.complete_by(index, program.reached());
                continue;
            };
            let op = match entry {
                Entry::Touch { .. } => thread.op,
                _ => Op::Ld,
            };
            let at = thread.next_issue.max(time);
            if let Some(level) = find(&mut thread.private, op, place) {
                thread.next_issue = at + hit_gap(&self.params, op, level);
                thread.window.complete_by(index, program.reached());
                thread.progress.accesses += 1;
                self.uncore.pmu.cores[t].hit(op, level);
                budget -= 1;
                if budget == 0 {
                    if !thread.asleep {
                        let wake = thread.next_issue;
                        self.sleep(t, wake);
                    }
                    return;
                }
                continue;
            }
            let (kinds, gap) = match op {
                Op::Ld => (Kind::LOADS, self.params.core.load_gap),
                _ => (Kind::STORES, limits.gap),
            };
            let kind = if goes_on {
                kinds[0]
            } else {
                kinds[1 + usize::from(ahead >= limits.l1_ahead)]
            };
            let allocated = thread.allocated * crossings(op);
            thread.next_issue = paced(thread.next_issue, time, gap, allocated);
            thread.outstanding += 1;
            let from = Sender {
                thread: t as u16,
                core: thread.core,
            };
            self.uncore.send(from, index, place, kind, at);
        }
        let thread = &self.threads[t];
        if let Some(program) = &thread.program
            && !thread.asleep
            && program.due() > time
        {
            let due = program.due();
            self.sleep(t, due);
        }
    }

    /// Issues the posted stores that may go: every load before them has retired, a buffer is free, and no
    /// fence blocks them.
    fn drain_stores(&mut self, t: usize, time: Ps) {
        let buffers = self.params.core.line_fill_buffers;
        let thread = &mut self.threads[t];
        let Some(program) = &mut thread.program else {
            return;
        };
        let from = Sender {
            thread: t as u16,
            core: thread.core,
        };
        while let Some(element) = program.store_ready(&thread.window)
            && program.combining < buffers
            && thread.outstanding + thread.write_backs < thread.limits.outstanding
        {
            let block = thread.walk.fenced_block();
            if thread.unobserved > 0 && block.is_some_and(|n| element.is_multiple_of(n)) {
                return;
            }
            let place = thread.walk.follow(&mut thread.cursor, element);
            let at = program.store_after.max(time);
            program.store_after = at + thread.limits.gap.max(thread.allocated);
            program.store_leaves();
            thread.outstanding += 1;
            thread.unobserved += 1;
            self.uncore.send(from, element, place, Kind::Wcilf, at);
        }
    }

    /// A line of an entry arrived in the core's caches.
    pub(super) fn filled_program(&mut self, t: usize, index: u64, place: Place, at: Ps) {
        let thread = &mut self.threads[t];
        let Some(program) = &thread.program else {
            return;
        };
        let touch = matches!(program.entry(index), Entry::Touch { .. });
        let write = touch && thread.op.reads_for_ownership() && thread.op != Op::StClwb;
        let leaves = match &mut thread.private {
            Private::Streaming { delay } => {
                let before = index.wrapping_sub(*delay);
                thread.cached(before)
            }
            Private::Tagged(caches) => caches
                .fill(place.key(), write)
                .map(|(key, dirty)| (Place::from_key(key), dirty)),
        };
        if let Some((victim, dirty)) = leaves {
            self.drive_out(t, index, victim, dirty, at);
        }
        if touch && self.threads[t].op == Op::StClwb {
            self.write_through(t, index, place, at);
        }
        if touch && self.threads[t].op == Op::Cas {
            self.end_atomic(t, at);
        }
        let thread = &mut self.threads[t];
        thread.outstanding -= 1;
        thread.progress.accesses += 1;
        if let Some(program) = &thread.program {
            thread.window.complete_by(index, program.reached());
        }
        self.pump(t, at);
    }
}
