//! Lines that nobody asked for yet: what the prefetchers of L1 and L2 want, and when they get it.

use super::Ooo;
use crate::uncore::Kind;

impl Ooo {
    /// The L1 prefetchers see a load whose instruction goes on evenly (next line, IP stride).
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

    /// The L2 streamer sees a request for a line and runs ahead. What it cannot ask for at once it never
    /// does: those lines are left to L1's prefetchers and to demand.
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

    /// Whether prefetches are held back from a line's tier.
    fn is_held(&self, line: u64) -> bool {
        self.held_back != 0 && self.held_back >> self.script.place(line).tier & 1 != 0
    }

    /// Whether a fill buffer is free for L1's prefetchers, which leave a quarter to demand. How many
    /// they leave is not public; only that they yield (Intel Optimization Reference Manual 248966).
    fn spares_fill_buffer(&self) -> bool {
        let buffers = self.params.fill_buffers;
        self.flights.fill_buffers + self.write_backs < buffers - buffers / 4
    }

    /// Whether so little is under way that the streamer may add to it. Demand and L1's prefetchers may
    /// while the super queue has room at all.
    fn spares_super_queue(&self) -> bool {
        self.flights.count + self.write_backs < self.params.streamer_yields
    }
}
