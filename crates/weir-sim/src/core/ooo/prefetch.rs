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

    /// The L2 streamer sees a request for a line and runs ahead.
    pub(super) fn stream(&mut self, line: u64, end: u64, cached: u32, kind: Kind) {
        let Some(wanted) = self.streamer.see(line) else {
            return;
        };
        let mut ahead = wanted.from;
        while ahead < wanted.to.min(end) {
            if self.flights.find(ahead).is_none() && !self.caches.has_l2(ahead) {
                if !self.spares_super_queue() || self.is_held(ahead) {
                    break;
                }
                self.send(ahead, kind, cached, false);
            }
            ahead += 1;
        }
        self.streamer.got(wanted.run, ahead);
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

    /// The same for the streamer and the super queue: every fill buffer needs an entry too.
    fn spares_super_queue(&self) -> bool {
        let queue = self.params.super_queue;
        self.flights.count + self.write_backs
            < queue - (self.params.fill_buffers / 2).min(queue / 2)
    }
}
