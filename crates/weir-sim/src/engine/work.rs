//! Described programs: passes the requests of their cores to the uncore, and the answers back.

use super::Engine;
use crate::clock::Ps;
use crate::core::{Ask, Next, Service, Thread};
use crate::line::Kind;
use crate::uncore::{Residence, Sender, Taken, Uncore};

impl Engine {
    /// Lets a core run until something that it does not know yet can affect it.
    #[inline(always)]
    pub(super) fn pump_work(&mut self, t: usize, time: Ps) {
        // Events of other cores within the time of a hit in L2 cannot reach this core in that time.
        let until = time + self.params.core.l2_hit;
        self.run_work(t, time, until);
    }

    /// The line in a slot will arrive at the core at `at`. Not inlined, so that the loop of events keeps its values
    /// in registers.
    #[inline(never)]
    pub(super) fn filled_work(&mut self, t: usize, slot: u64, at: Ps) {
        let thread = &mut self.threads[t];
        if at < thread.wakes {
            thread.wakes = at;
            if !self.uncore.wake_soon(t as u16, at) {
                return self.filled_later(t, slot, at);
            }
        }
        if let Some(core) = &mut thread.ooo {
            core.arrives(slot, at);
        }
    }

    /// The same for a core that is yet to be woken, in which case other functions have to be called.
    #[cold]
    #[inline(never)]
    fn filled_later(&mut self, t: usize, slot: u64, at: Ps) {
        self.uncore.wake_at(t as u16, at);
        if let Some(core) = &mut self.threads[t].ooo {
            core.arrives(slot, at);
        }
    }

    /// The uncore has accepted a write-back.
    pub(super) fn write_back_taken_work(&mut self, t: usize, at: Ps) {
        let thread = &mut self.threads[t];
        if let Some(core) = &mut thread.ooo {
            core.freed(at);
        }
        if at < thread.wakes {
            thread.wakes = at;
            self.uncore.wake_at(t as u16, at);
        }
    }

    /// Advances every core that runs a program to the present, so that all of its time is counted.
    pub(super) fn settle_work(&mut self) {
        for t in 0..self.threads.len() {
            if self.threads[t].ooo.is_some() {
                self.run_work(t, 0, self.now);
            }
            let thread = &mut self.threads[t];
            if let Some(core) = &thread.ooo {
                thread.progress.accesses = core.touched();
            }
        }
    }

    /// Lets a core that was woken at `time` run up to `until`.
    #[inline(never)]
    fn run_work(&mut self, t: usize, time: Ps, until: Ps) {
        let mut thread = &mut self.threads[t];
        if thread.wakes <= time {
            thread.wakes = Ps::MAX;
        }
        let wake = loop {
            let wake = advance(thread, t, &mut self.uncore, until);
            if self.services.is_empty() {
                break wake;
            }
            let served = self.serve(t, time, until, wake);
            thread = &mut self.threads[t];
            if let Some(wake) = served {
                break wake;
            }
        };
        if wake < thread.wakes {
            thread.wakes = wake;
            self.uncore.wake_at(t as u16, wake);
        }
    }

    /// Gives a core that was woken at `time` and has ended its request another one up to `until`. Returns when it goes
    /// on; `None` if it does at once.
    #[inline(never)]
    fn serve(&mut self, t: usize, time: Ps, until: Ps, mut wake: Ps) -> Option<Ps> {
        let thread = &mut self.threads[t];
        let tenant = usize::from(thread.tenant);
        let Some(Some(service)) = self.services.get_mut(tenant) else {
            return Some(wake);
        };
        let Some(core) = &mut thread.ooo else {
            return Some(wake);
        };
        let Some(at) = core.has_ended() else {
            return Some(wake);
        };
        let (ended, rest) = service.ended(t, at);
        if let Some(latency) = ended.latency {
            thread.progress.record(latency);
        }
        match rest {
            Some(instructions) => core.run_from(at, instructions),
            None => match service.next(t, until) {
                Next::Run(from, instructions) => core.run_from(from.max(at), instructions),
                Next::Halt(next) => wake = wake.min(next),
            },
        }
        let halts = core.has_ended().is_some();
        if let Some(other) = ended.woken {
            let (thread, at) = (&mut self.threads[other], at.max(time).max(self.now));
            if at < thread.wakes {
                thread.wakes = at;
                self.uncore.wake_at(other as u16, at);
            }
        }
        halts.then_some(wake)
    }

    /// The programs of these tenants answer requests.
    pub fn set_services(&mut self, services: Vec<Option<Service>>) {
        if services.iter().any(Option::is_some) {
            self.services = services;
        }
    }
}

/// Lets a core run up to `until` and sends its requests. Returns when it goes on.
#[inline(always)]
fn advance(thread: &mut Thread, t: usize, uncore: &mut Uncore, until: Ps) -> Ps {
    let Some(core) = &mut thread.ooo else {
        return Ps::MAX;
    };
    core.write_backs = thread.write_backs + core.throttle.write_backs();
    core.held_back = uncore.distressed();
    let wake = core.advance(until);
    if core.is_silent() {
        return wake;
    }
    // There rarely is one, and a look whether there is costs less than to drain nothing.
    if !core.joined.is_empty() {
        for request in core.joined.drain(..) {
            // The prefetch has an entry of the Table of Requests; only the core's counters see this one.
            let (from, to) = (request.from, request.to);
            uncore.pmu.cores[t].filled(request.kind, false, from, to);
        }
    }
    let from = Sender {
        thread: t as u16,
        core: thread.core,
    };
    let allocated = thread.allocated;
    if allocated == 0 && core.throttle.is_empty() {
        // No allocation limits them, so they need no queue.
        if let Some(last) = core.asks.last() {
            core.throttle.pass(last);
        }
        for ask in &core.asks {
            let taken = send(uncore, from, ask);
            count(
                &mut thread.unobserved,
                &mut thread.write_backs,
                ask.kind,
                taken,
            );
        }
        core.asks.clear();
    } else {
        for ask in core.asks.drain(..) {
            core.throttle.come(ask);
        }
        while let Some(ask) = core.throttle.leave(until, allocated) {
            let taken = send(uncore, from, &ask);
            count(
                &mut thread.unobserved,
                &mut thread.write_backs,
                ask.kind,
                taken,
            );
        }
    }
    wake.min(core.throttle.opens())
}

/// Sends a request of a core.
#[inline(always)]
fn send(uncore: &mut Uncore, from: Sender, ask: &Ask) -> Taken {
    let residence = if ask.cached {
        Residence::Cached
    } else {
        Residence::Absent
    };
    uncore.send_with(from, ask.slot, ask.place, ask.kind, ask.at, residence)
}

/// Counts a written line that memory has not accepted.
#[inline(always)]
fn count(unobserved: &mut u32, write_backs: &mut u32, kind: Kind, taken: Taken) {
    if kind.is_read() {
    } else if kind.is_posted() {
        *unobserved += 1;
    } else {
        *write_backs += u32::from(taken.is_none());
    }
}
