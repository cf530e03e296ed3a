//! Prefetched lines: which lines the prefetchers of L1 and L2 request, and when.

use super::Ooo;
use super::stores::Absent;
use crate::line::Kind;

impl Ooo {
    /// The L1 prefetchers see a load whose instruction has a constant stride (next line, IP stride).
    pub(super) fn stride_ahead(&mut self, line: u64, stride: u64, end: u64, cached: u32) {
        if stride == 0 {
            return;
        }
        for n in 1..=self.ahead.l1 {
            let wanted = line + n * stride;
            if wanted >= end || self.caches.has_l1(wanted) {
                continue;
            }
            if !self.script.share_page(line, wanted) && !self.knows_page(wanted, cached) {
                return;
            }
            if let Some(slot) = self.flights.find(wanted) {
                if self.flights[slot].fill_buffer
                    || !self.spares_fill_buffer()
                    || !self.may_join(slot)
                {
                    continue;
                }
                self.join(slot, Kind::DrdL1Pref);
            } else if self.caches.find_l2(wanted) {
                self.fill_l1::<false>(wanted);
            } else {
                if !self.spares_fill_buffer() || !self.has_super_queue() || self.is_held(wanted) {
                    return;
                }
                self.send(wanted, Kind::DrdL1Pref, cached, true);
            }
            self.stream(wanted, end, cached, Kind::DrdL2Pref);
        }
    }

    /// The L2 streamer sees a request for a line and runs ahead. While many lines are outstanding, it brings
    /// further ones into the last-level cache alone (Intel Optimization Reference Manual 248966). A line that
    /// it cannot request now it requests later, unless L1's prefetchers or demand request it before.
    #[inline(never)]
    pub(super) fn stream(&mut self, line: u64, end: u64, cached: u32, kind: Kind) {
        if let Some(wanted) = self.streamer.see(line) {
            self.run_ahead(wanted.slot, wanted.from, wanted.to.min(end), cached, kind);
        }
    }

    /// The streamer requests the lines that one of its runs wants.
    #[inline(never)]
    fn run_ahead(&mut self, run: usize, mut ahead: u64, to: u64, cached: u32, kind: Kind) {
        while ahead < to {
            if self.flights.find(ahead).is_none() && !self.caches.has_l2(ahead) {
                let Some(kind) = self.streamed_as(kind).filter(|_| !self.is_held(ahead)) else {
                    break;
                };
                self.send(ahead, kind, cached, false);
            }
            ahead += 1;
        }
        self.streamer.requested(run, ahead);
    }

    /// The kind of the request by which the streamer brings a line now; `None` if it has to wait.
    fn streamed_as(&self, kind: Kind) -> Option<Kind> {
        let entries = self.flights.count + self.write_backs;
        let any = entries + self.flights.to_llc < self.params.super_queue;
        match entries < self.params.streamer_yields {
            true => Some(kind),
            false => (any && self.params.llc_prefetch).then_some(Kind::LlcPref),
        }
    }

    /// Whether a request may wait for an outstanding line: one that goes to the last-level cache alone needs
    /// an entry then.
    pub(super) fn may_join(&self, slot: usize) -> bool {
        self.flights[slot].kind != Kind::LlcPref || self.has_super_queue()
    }

    /// A request of this kind, which has a fill buffer, waits for an outstanding line from now on.
    pub(super) fn join(&mut self, slot: usize, kind: Kind) {
        self.absent = Absent::NONE;
        self.flights.join(slot, kind, self.clock);
    }

    /// Whether the core has the entry of a line's page; if not, the next-page prefetcher requests it.
    fn knows_page(&mut self, line: u64, cached: u32) -> bool {
        let table = self.script.table(line);
        if self.caches.has_l1(table) || self.caches.has_l2(table) {
            return true;
        }
        if self.flights.find(table).is_none()
            && self.spares_fill_buffer()
            && self.has_super_queue()
            && !self.is_held(table)
        {
            self.send(table, Kind::DrdL1Pref, cached, true);
        }
        false
    }

    /// Whether prefetches from a line's tier are throttled.
    #[inline(always)]
    fn is_held(&self, line: u64) -> bool {
        self.held_back != 0 && self.is_tier_held(line)
    }

    #[inline(never)]
    fn is_tier_held(&self, line: u64) -> bool {
        self.held_back >> self.script.locate(line).1.tier & 1 != 0
    }

    /// Whether a fill buffer is free for L1's prefetchers, which leave some of the buffers to demand.
    fn spares_fill_buffer(&self) -> bool {
        let buffers = self.params.fill_buffers - self.params.spared_buffers;
        self.flights.fill_buffers + self.write_backs < buffers
    }
}
