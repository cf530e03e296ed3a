//! Writes at the slices: streaming writes, and write-backs into the last-level cache or to memory.

use super::{Taken, Uncore};
use crate::clock::Ps;
use crate::line::{Kind, Place};
use crate::memory::Link;
use crate::pmu::TorClass;
use crate::uncore::Residence;
use crate::uncore::request::{Data, Request, RequestId, Stage};

impl Uncore {
    /// A slice has read a streaming write's data, and passes it on to memory: its buffer at the core is free.
    /// Returns the thread and the access.
    pub fn pulled(&mut self, id: RequestId, now: Ps) -> (usize, u64) {
        let request = self.pool[id];
        if self.is_far(request.slice, request.tier) {
            self.pulled_for_far(id);
        } else {
            let link = self.links.get_mut(request.slice as usize);
            let there = sent_over(link, now + request.way);
            self.pool[id].stage = Stage::Answered;
            self.write(id, request.line, there);
        }
        (request.thread as usize, request.index)
    }

    /// A streaming write: the slice reads the data, which frees the core's buffer, and passes it to memory;
    /// the entry is held until memory has the data.
    pub(super) fn admit_streaming(&mut self, id: RequestId, now: Ps) {
        let request = &mut self.pool[id];
        let mesh = request.way;
        if let Some(llc) = &mut self.llc {
            llc.take(request.line, request.tier, true, request.slice);
        }
        // The unloaded hold time includes the path to the slice.
        let free = now + self.params.core.nt_hold.saturating_sub(mesh).max(1_000);
        self.pmu.cores[request.thread as usize].ended(request.kind, free - request.issued);
        let (slice, tier) = (request.slice, request.tier);
        if self.is_far(slice, tier) {
            return self.stream_over(id, now, free);
        }
        let request = &mut self.pool[id];
        let target = &mut self.targets[request.tier];
        request.class = target.class;
        target.begin(&mut self.distressed);
        request.stage = Stage::Pulled;
        self.pmu.tor(request.host, request.class).up(now);
        self.wheel.push(free, id, &mut self.pool);
    }

    /// A write-back goes into the last-level cache and evicts another line, or goes through to memory; the
    /// entry is held until memory has what is written there. If memory or an eviction buffer of the slice can
    /// accept it, the core's part ends here; if not, the data stays in the core's buffer until one can.
    /// Returns the thread whose buffer is free.
    pub(super) fn admit_write_back(&mut self, id: RequestId, now: Ps) -> Taken {
        let request = &mut self.pool[id];
        let after = now + self.params.uncore.lookup;
        let out = match &mut self.llc {
            _ if request.residence == Residence::Cached => None,
            Some(llc) if request.kind == Kind::WbMtoI => llc
                .put(
                    request.line,
                    request.tier,
                    true,
                    self.classes[request.thread as usize],
                    request.slice,
                )
                .filter(|victim| victim.dirty)
                .map(|victim| (victim.tier, victim.line)),
            _ => Some((request.tier, request.line)),
        };
        let Some((tier, line)) = out else {
            request.class = TorClass::Hit;
            request.stage = Stage::Answered;
            let thread = request.thread;
            self.pmu.cores[thread as usize].ended(request.kind, now - request.issued);
            self.pmu.tor(request.host, TorClass::Hit).up(now);
            (self.wheel).push(now + self.params.uncore.hit, id, &mut self.pool);
            return Some(thread);
        };
        let slice = request.slice;
        if self.is_far(slice, tier) {
            return self.write_over(id, Place { tier, line }, now);
        }
        let request = &mut self.pool[id];
        let target = &mut self.targets[tier];
        target.begin(&mut self.distressed);
        request.tier = tier;
        request.class = match request.kind {
            Kind::LlcEvict => TorClass::Evict,
            _ => target.class,
        };
        self.pmu.tor(request.host, request.class).up(now);
        request.stage = Stage::Answered;
        let there = sent_over(self.links.get_mut(request.slice as usize), after);
        match self.write(id, line, there) {
            true => Some(self.end_write_back(id, now)),
            false => self.buffer(id, now),
        }
    }

    /// Memory cannot accept the line of a write-back: an eviction buffer of its slice takes it, or it stays in
    /// the core's buffer. Returns the thread whose buffer is free.
    pub(super) fn buffer(&mut self, id: RequestId, now: Ps) -> Taken {
        let request = &mut self.pool[id];
        if !self.slices[request.slice as usize].evict(id) {
            request.data = Data::Core;
            return None;
        }
        request.data = Data::Slice;
        Some(self.end_write_back(id, now))
    }

    /// Memory has the line of a write-back that waited, and was [released](Self::release). Returns the threads whose
    /// buffers are free: its own, or the one of the write-back that gets its eviction buffer.
    #[cold]
    #[inline(never)]
    pub fn evicted(&mut self, id: RequestId, request: &Request, now: Ps) -> Taken {
        let buffered = request.data == Data::Slice;
        let next = self.slices[request.slice as usize].evicted(id, buffered);
        if !buffered {
            let core = &mut self.pmu.cores[request.thread as usize];
            core.ended(request.kind, now.saturating_sub(request.issued));
            return Some(request.thread);
        }
        let next = next?;
        self.pool[next].data = Data::Slice;
        // It may still be on its path to the slice.
        let at = now.max(self.arrival(&self.pool[next]));
        Some(self.end_write_back(next, at))
    }
}

/// When a line to be written has left its core complex, if there is one.
#[inline]
pub(super) fn sent_over(link: Option<&mut Link>, at: Ps) -> Ps {
    link.map_or(at, |link| link.send_line(at))
}
