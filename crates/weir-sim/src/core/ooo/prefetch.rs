//! Prefetched lines: which lines the prefetchers of L1 and L2 request, and when.

use super::Ooo;
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
            if let Some(slot) = self.flights.find(wanted) {
                if self.flights[slot].fill_buffer || !self.spares_fill_buffer() {
                    continue;
                }
                self.flights.join(slot);
            } else if self.caches.find_l2(wanted) {
                self.fill_l1(wanted, false);
            } else {
                if !self.spares_fill_buffer() || !self.has_super_queue() || self.is_held(wanted) {
                    return;
                }
                self.send(wanted, Kind::DrdL1Pref, cached, true);
            }
            self.stream(wanted, end, cached, Kind::DrdL2Pref);
        }
    }

    /// The L2 streamer sees a request for a line and runs ahead. Lines that it cannot request at once it
    /// never requests: L1's prefetchers or demand request them later.
    pub(super) fn stream(&mut self, line: u64, end: u64, cached: u32, kind: Kind) {
        let Some(wanted) = self.streamer.see(line) else {
            return;
        };
        for ahead in wanted.from..wanted.to.min(end) {
            if self.flights.find(ahead).is_none() && !self.caches.has_l2(ahead) {
                if !self.spares_super_queue() || self.is_held(ahead) {
                    break;
                }
                self.send(ahead, kind, cached, false);
            }
        }
    }

    /// Whether prefetches from a line's tier are throttled.
    fn is_held(&self, line: u64) -> bool {
        self.held_back != 0 && self.held_back >> self.script.place(line).tier & 1 != 0
    }

    /// Whether a fill buffer is free for L1's prefetchers, which leave some of the buffers to demand.
    fn spares_fill_buffer(&self) -> bool {
        let buffers = self.params.fill_buffers - self.params.spared_buffers;
        self.flights.fill_buffers + self.write_backs < buffers
    }

    /// Whether so few lines are outstanding that the streamer may add to them. Demand and L1's prefetchers
    /// may add while the super queue has any free entry.
    fn spares_super_queue(&self) -> bool {
        self.flights.count + self.write_backs < self.params.streamer_yields
    }
}
