//! Devices whose DRAM is a cache of another medium: what waits for a page, and what the DRAM moves for pages.

use super::{Buffered, Shared, Tier};
use crate::clock::Ps;
use crate::memory::backing::{Footprint, Moves, Waiter};
use crate::memory::credits::Ticket;

/// Numbers of events of a medium, among those of write queues.
const MEDIUM: u32 = 1 << 31;
const WAY_SHIFT: u32 = 16;

/// A request that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumed {
    /// A read: its data is there at this time, as [`Tier::read`] says, or poison in its place.
    Data {
        ticket: Ticket,
        at: Ps,
        poison: bool,
    },
    /// A written line came into the write buffer; the home agent knows so at this time.
    Written(Ticket, Ps),
}

impl Tier {
    /// Whether an event is one of a medium, and not of a write queue.
    pub fn is_medium(number: u32) -> bool {
        number & MEDIUM != 0
    }

    /// Whether there is a medium behind its DRAM.
    pub fn has_medium(&self) -> bool {
        self.devices.iter().any(|d| d.backing.is_some())
    }

    /// What tenants use of it, in lines of the tier; pages are `first` and `pages` of a footprint.
    pub fn warm(&mut self, footprints: &[Footprint]) {
        let ways = u64::from(self.config.ways);
        for device in &mut self.devices {
            if let Some(backing) = &mut device.backing {
                let bits = backing.page_bits();
                let of_device = |f: &Footprint| {
                    let first = (f.first / ways) >> bits;
                    let end = ((f.first + f.pages).div_ceil(ways)).div_ceil(1 << bits);
                    Footprint {
                        first,
                        pages: (end - first).max(1),
                        order: f.order.of_pages(ways << bits),
                        ..f.clone()
                    }
                };
                backing.warm(footprints.iter().map(of_device).collect());
            }
        }
    }

    /// Whether the page of a line that a read asks for is in the cache; if not, the read goes on when it is. Apart from
    /// the way of devices without a medium, which is as short as it can be.
    #[cold]
    #[inline(never)]
    pub(super) fn is_here(
        &mut self,
        way: usize,
        ticket: Ticket,
        line: u64,
        sent: Ps,
        at: Ps,
    ) -> bool {
        let waiter = Waiter::Read {
            ticket,
            line,
            sent,
            at,
        };
        self.look(way, line, waiter, at)
    }

    /// A line was written into the DRAM of its device.
    #[cold]
    #[inline(never)]
    pub(super) fn is_written(&mut self, way: usize, line: u64) {
        let (_, of_device) = self.stripes.locate(line);
        if let Some(backing) = &mut self.devices[way].backing {
            backing.written(of_device);
        }
    }

    /// Looks for the page of a line in the cache of its device. Returns whether it is there; if not, the waiter goes on
    /// when it is.
    pub(super) fn look(&mut self, way: usize, line: u64, waiter: Waiter, at: Ps) -> bool {
        let (_, of_device) = self.stripes.locate(line);
        let mut moves = Vec::new();
        let Some(backing) = &mut self.devices[way].backing else {
            return true;
        };
        let is_here = backing.access(of_device, waiter, at, &mut moves);
        if !is_here {
            self.plan(way);
            for moved in moves {
                self.move_page(way, moved, at);
            }
        }
        is_here
    }

    /// Fetches the page of a line that a copy reads or writes. Returns when to look again; `None` if it is in the cache.
    pub fn fetch(&mut self, line: u64, now: Ps) -> Option<Ps> {
        let (way, ..) = self.locate(line);
        let pause = self
            .devices
            .get(way)?
            .config
            .backing
            .as_ref()?
            .flash
            .read
            .max(1);
        (!self.look(way, line, Waiter::Fetch, now)).then(|| now + pause)
    }

    /// Events of a medium become events of the tier.
    fn plan(&mut self, way: usize) {
        if let Some(backing) = &mut self.devices[way].backing {
            while let Some((event, at)) = backing.due() {
                self.due
                    .push((MEDIUM | (way as u32) << WAY_SHIFT | event, at));
            }
        }
    }

    /// An event of a medium. Returns the requests that go on.
    pub fn media(&mut self, number: u32, now: Ps, shared: &mut Shared) -> Vec<Resumed> {
        let way = ((number & !MEDIUM) >> WAY_SHIFT) as usize;
        let (mut moves, mut resumed) = (Vec::new(), Vec::new());
        if let Some(backing) = &mut self.devices[way].backing {
            backing.happens(number & ((1 << WAY_SHIFT) - 1), now, &mut moves);
        }
        self.plan(way);
        for moved in moves {
            match moved {
                Moves::Ready { waiter, poison } => match waiter {
                    Waiter::Read {
                        ticket,
                        line,
                        sent,
                        at,
                    } => {
                        let at = self.answer(self.spot(line), sent, now.max(at));
                        resumed.push(Resumed::Data { ticket, at, poison });
                    }
                    Waiter::Write { line, since } => self.leave_buffer(line, since, now),
                    Waiter::Fetch => {}
                },
                moved => self.move_page(way, moved, now),
            }
        }
        while self.devices[way].buffered < self.devices[way].config.write_buffer {
            let Some((ticket, line, since)) = self.devices[way].unbuffered.pop_front() else {
                break;
            };
            let head = self.head_of(line);
            self.counts[head].device_time += now.saturating_sub(since);
            if let Some(done) = self.arrive(ticket, line, now, shared) {
                resumed.push(Resumed::Written(ticket, done));
            }
        }
        resumed
    }

    /// A line of the write buffer whose page has come goes to its channel.
    fn leave_buffer(&mut self, line: u64, since: Ps, now: Ps) {
        let (way, number, within) = self.locate(line);
        let head = self.head_of(line);
        let (waiting, channel) = (&mut self.buffers[number], &mut self.channels[number]);
        if waiting.is_empty() && channel.has_room(now) {
            channel.enter(within, now);
            self.devices[way].buffered -= 1;
            self.counts[head].device_time += now.saturating_sub(since);
            return;
        }
        if waiting.is_empty() {
            self.due.push((number as u32, channel.next_room()));
        }
        waiting.push_back(Buffered {
            head,
            within,
            since,
        });
    }

    /// The DRAM of a device reads a page that leaves its cache, or writes one that comes.
    fn move_page(&mut self, way: usize, moved: Moves, now: Ps) {
        let Some(backing) = &self.devices[way].backing else {
            return;
        };
        let bits = backing.page_bits();
        let (Moves::Out(page) | Moves::In(page)) = moved else {
            return;
        };
        for line in page << bits..(page + 1) << bits {
            let (channel, within) = self.interleave.locate(line);
            let channel =
                &mut self.channels[way * self.config.channels as usize + channel as usize];
            match moved {
                Moves::Out(_) => channel.read(within, now),
                _ => channel.write(within, now),
            };
        }
    }
}
