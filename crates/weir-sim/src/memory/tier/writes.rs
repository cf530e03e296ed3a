//! Written lines: by the links to the DRAM, through the write buffer of a device.

use super::{Buffered, Shared, Tier, Written};
use crate::clock::Ps;
use crate::memory::backing::Waiter;
use crate::memory::credits::{Ticket, Waiting};
use crate::memory::far::Crossing;

impl Tier {
    /// Writes into a line's directory bits in memory that another socket may modify it.
    pub fn note_owner(&mut self, line: u64, now: Ps) {
        let (_, number, within) = self.locate(line);
        self.channels[number].write(within, now);
    }

    /// A written line leaves the home agent; returns when it comes to its DRAM, or to the link of its device.
    pub(super) fn send_data(
        &mut self,
        crossing: Crossing,
        line: u64,
        now: Ps,
        shared: &mut Shared,
    ) -> Ps {
        let head = self.head_of(line);
        let mut at = self.far.pass(crossing, line, now) + self.config.way_out;
        if let Some(link) = shared.socket(self.host + head, self.config.socket_link.is_some()) {
            at = link.send_line(at);
        }
        if let Some(link) = shared.upstream(self.host + head, self.config.upstream.is_some()) {
            at = link.send_line(at);
        }
        let has_link = self.has_credits() || self.config.socket_link.is_some();
        self.counts[head].lines_out += u64::from(has_link);
        at
    }

    /// Sends a line over the link of its device.
    pub(super) fn send_to_device(&mut self, way: usize, line: u64, at: Ps) -> Ps {
        if self.is_gone(at) {
            return at;
        }
        let head = self.head_of(line);
        let arrives = self.devices[way].send_line(head, at);
        self.counts[head].device_time += arrives - at;
        arrives
    }

    /// Writes a line that leaves the home agent at `now`. The home agent knows that the data is safe when it
    /// is in the write queue of a DRAM channel or, for a device, when the device's completion is back.
    #[inline]
    pub fn write(
        &mut self,
        ticket: Ticket,
        crossing: Crossing,
        line: u64,
        now: Ps,
        shared: &mut Shared,
    ) -> Written {
        let at = self.send_data(crossing, line, now, shared);
        let (way, number, within) = self.locate(line);
        let Some(d) = self.devices.get_mut(way) else {
            let entered = self.channels[number].write(within, at);
            return Written::Queued {
                done: self.completed(line, entered, shared),
                waited: entered > at,
            };
        };
        if d.writes.take() {
            return Written::Arrives(self.send_to_device(way, line, at));
        }
        let head = self.head_of(line);
        (self.devices[way].writes).wait(head, Waiting { ticket, line, at });
        Written::Waits
    }

    /// The same for a line that a copy writes, which needs no credit.
    pub fn write_at_once(&mut self, line: u64, now: Ps, shared: &mut Shared) -> Ps {
        let mut at = self.send_data(Crossing::Posted, line, now, shared);
        let (way, number, within) = self.locate(line);
        if self.has_credits() {
            at = self.send_to_device(way, line, at);
        }
        if self.devices.get(way).is_some_and(|d| d.backing.is_some()) {
            self.is_written(way, line);
        }
        let entered = self.channels[number].write(within, at);
        self.completed_from(way, line, entered, shared)
    }

    /// A written line has come to its device at `now`. Returns when the home agent knows that it is safe;
    /// `None` if the write buffer is full and the line waits.
    pub fn arrive(
        &mut self,
        ticket: Ticket,
        line: u64,
        now: Ps,
        shared: &mut Shared,
    ) -> Option<Ps> {
        if self.is_gone(now) {
            return Some(self.completed(line, now, shared));
        }
        let (way, number, within) = self.locate(line);
        let head = self.head_of(line);
        let d = &mut self.devices[way];
        if d.buffered == d.config.write_buffer {
            d.unbuffered.push_back((ticket, line, now));
            return None;
        }
        if d.backing.is_some() && !self.look(way, line, Waiter::Write { line, since: now }, now) {
            self.devices[way].buffered += 1;
            return Some(self.completed_from(way, line, now, shared));
        }
        let waiting = &mut self.buffers[number];
        let channel = &mut self.channels[number];
        if waiting.is_empty() && channel.has_room(now) {
            channel.enter(within, now);
        } else {
            if waiting.is_empty() {
                self.due.push((number as u32, channel.next_room()));
            }
            waiting.push_back(Buffered {
                head,
                within,
                since: now,
            });
            self.devices[way].buffered += 1;
        }
        Some(self.completed_from(way, line, now, shared))
    }

    /// Lets lines of the write buffer enter their channel's write queue, as long as it has room at `now`.
    /// Returns the first request whose line came into the buffer by that, and when the home agent knows so;
    /// to be called until `None`.
    pub fn refill(&mut self, number: u32, now: Ps, shared: &mut Shared) -> Option<(Ticket, Ps)> {
        let channel = number as usize;
        let way = (number / self.config.channels) as usize;
        while !self.buffers[channel].is_empty() {
            if !self.channels[channel].has_room(now) {
                let at = self.channels[channel].next_room();
                self.due.push((number, at.max(now + 1)));
                return None;
            }
            let next = self.buffers[channel].pop_front()?;
            let is_turn = self.channels[channel].enter(next.within, now);
            // Events of one bucket of the wheel come in any order.
            self.counts[next.head].device_time += now.saturating_sub(next.since);
            self.devices[way].buffered -= 1;
            if is_turn {
                self.go_on_writing(channel, way, now);
            }
            let d = &mut self.devices[way];
            if let Some((ticket, line, since)) = d.unbuffered.pop_front() {
                let head = self.head_of(line);
                self.counts[head].device_time += now.saturating_sub(since);
                if let Some(done) = self.arrive(ticket, line, now, shared) {
                    return Some((ticket, done));
                }
            }
        }
        None
    }

    /// Reads wait for a turn of writes: it goes on with lines of the write buffer, which get the entries that it
    /// frees, so that a controller whose buffer is full does not let reads overtake it again at once.
    pub(super) fn go_on_writing(&mut self, number: usize, way: usize, now: Ps) {
        let most = self.config.channel.write_queue;
        for _ in 0..most {
            let Some(next) = self.buffers[number].pop_front() else {
                return;
            };
            let at = self.channels[number].write(next.within, now);
            self.counts[next.head].device_time += at.saturating_sub(next.since);
            self.devices[way].buffered -= 1;
        }
    }

    /// Whether [`Tier::due`] has something.
    #[inline]
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// A channel for whose write queue a line began to wait, and when to call [`Tier::refill`] for it. To be
    /// asked after each call of `arrive` and `refill`, until `None`.
    #[inline]
    pub fn due(&mut self) -> Option<(u32, Ps)> {
        self.due.pop()
    }

    /// When the home agent knows of a line that entered its channel's write queue at `at`.
    #[inline]
    pub(super) fn completed(&self, line: u64, mut at: Ps, shared: &mut Shared) -> Ps {
        let head = self.head_of(line);
        if let Some(link) = shared.socket(self.host + head, self.config.socket_link.is_some()) {
            at = link.return_completion(at);
        }
        at + self.config.way_back
    }

    /// The same for a line that its device has at `at`.
    pub(super) fn completed_from(
        &mut self,
        way: usize,
        line: u64,
        mut at: Ps,
        shared: &mut Shared,
    ) -> Ps {
        let head = self.head_of(line);
        if let Some(d) = self.devices.get_mut(way) {
            let pass = d.config.pass;
            at = d.link(head).return_completion(at + pass);
            if let Some(link) = shared.upstream(self.host + head, self.config.upstream.is_some()) {
                at = link.return_completion(at);
            }
        }
        self.completed(line, at, shared)
    }
}
