//! Two sockets whose cores both have work. A request for a line of the other socket's memory, or for one that
//! a core there holds modified, takes an entry in the table of its own socket's slice, crosses the link, and
//! takes an entry at a slice there. The second entry is released when memory, or the core, has answered; the
//! first only when the answer has crossed back.
//!
//! While only one socket has work, requests to the other are not admitted there: its tables would hold only
//! requests that also hold an entry of the first socket.

use super::{Taken, Uncore};
use crate::clock::Ps;
use crate::line::{Kind, Place};
use crate::memory::{Crossing, FarLimit, Peers};
use crate::params::{SocketParams, slice_of};
use crate::pmu::TorClass;
use crate::uncore::request::{Credit, Data, Request, RequestId, Sender, Stage};

/// The host, where two sockets have work: such a machine has one.
const SOLE: u8 = 0;

/// The connection of two sockets.
pub struct Sockets {
    params: SocketParams,
    link: Peers,
    /// For each tier its limit for lines that cross, and the writes of the memory directory that are due.
    over: Vec<(FarLimit, f64)>,
    /// Lines that crossed, towards the first socket and away from it.
    pub crossed: [u64; 2],
}

impl Sockets {
    /// An idle connection.
    pub fn new(params: &SocketParams) -> Self {
        Self {
            link: Peers::new(params.link),
            over: (params.tiers.iter())
                .map(|home| (FarLimit::new(home.far), 0.0))
                .collect(),
            crossed: [0; 2],
            params: params.clone(),
        }
    }

    /// Sends a message to a socket, with a line or without.
    fn send(&mut self, to: u16, with_line: bool, at: Ps) -> Ps {
        if !with_line {
            return self.link.message(to, at);
        }
        self.crossed[usize::from(to)] += 1;
        self.link.line(to, at)
    }
}

impl Uncore {
    /// The slice of a line for a core, if the slices are not shared by all cores.
    #[cold]
    #[inline(never)]
    pub(super) fn slice_among(&self, core: u16, place: Place) -> u16 {
        let first = self.params.first_slice(core);
        match self.sockets {
            None => first,
            Some(_) => first + self.slice_within(place),
        }
    }

    /// The slice of a line within a socket.
    fn slice_within(&self, place: Place) -> u16 {
        let spread = self.targets[place.tier].spread;
        slice_of(place.line, place.tier, spread)
    }

    /// The socket of a slice.
    fn socket_of(&self, slice: u16) -> u16 {
        u16::from(u32::from(slice) >= self.params.uncore.slices)
    }

    /// Whether a tier is on another socket than a slice.
    pub(super) fn is_far(&self, slice: u16, tier: u8) -> bool {
        let homes = self.sockets.as_ref().map(|s| &s.params.tiers);
        homes.is_some_and(|homes| homes[tier as usize].socket != self.socket_of(slice))
    }

    /// Whether a core is on another socket than a slice.
    pub(super) fn is_core_far(&self, slice: u16, core: u16) -> bool {
        let home = || self.socket_of(self.params.first_slice(core));
        self.sockets.is_some() && home() != self.socket_of(slice)
    }

    /// The ToR class of requests to a tier.
    fn class_from(&self, slice: u16, tier: u8) -> TorClass {
        match self.targets[tier].class {
            TorClass::MissDdr if self.is_far(slice, tier) => TorClass::MissRemote,
            class => class,
        }
    }

    /// A read that misses the last-level cache, on machines whose cores do not share one path to memory.
    #[cold]
    #[inline(never)]
    pub(super) fn read_among(&mut self, id: RequestId, now: Ps) {
        let Request {
            line,
            kind,
            slice,
            tier,
            ..
        } = self.pool[id];
        let class = self.class_from(slice, tier);
        let after = now + self.params.uncore.lookup;
        self.pool[id].class = class;
        if self.pool[id].waits_for_tier() {
            self.targets[tier].begin(&mut self.distressed);
        }
        self.pmu.tor(self.pool[id].host, class).up(now);
        if self.is_far(slice, tier) {
            self.cross(id, Place { tier, line }, after);
            return;
        }
        let link = self.links.get_mut(slice as usize);
        let at = link.map_or(after, |link| link.send_request(after));
        let (memory, links) = self.behind(tier);
        let data = memory.read(id, line, kind.owns(), at, links);
        self.asked(id, data);
    }

    /// A read for ownership of a line that a core of the other socket holds modified.
    #[cold]
    #[inline(never)]
    pub(super) fn snoop_over(&mut self, id: RequestId, now: Ps) {
        let request = &mut self.pool[id];
        request.class = TorClass::Hit;
        let place = request.place();
        self.pmu.tor(SOLE, TorClass::Hit).up(now);
        let after = now + self.params.uncore.lookup;
        self.cross(id, place, after);
    }

    /// A streaming write to the other socket; its slice has read the data at `free`.
    #[cold]
    #[inline(never)]
    pub(super) fn stream_over(&mut self, id: RequestId, now: Ps, free: Ps) {
        let request = &mut self.pool[id];
        let (place, after) = (request.place(), free + request.way);
        request.stage = Stage::Pulled;
        request.issued = Ps::MAX;
        let class = self.class_from(self.pool[id].slice, place.tier);
        self.pool[id].class = class;
        self.targets[place.tier].begin(&mut self.distressed);
        self.pmu.tor(SOLE, class).up(now);
        self.wheel.push(free, id, &mut self.pool);
        self.cross(id, place, after);
    }

    /// A line that leaves a cache for memory of the other socket.
    #[cold]
    #[inline(never)]
    pub(super) fn write_over(&mut self, id: RequestId, place: Place, now: Ps) -> Taken {
        let slice = self.pool[id].slice;
        let class = match self.pool[id].kind {
            Kind::LlcEvict => TorClass::Evict,
            _ => self.class_from(slice, place.tier),
        };
        let request = &mut self.pool[id];
        request.tier = place.tier;
        request.class = class;
        self.targets[place.tier].begin(&mut self.distressed);
        self.pmu.tor(SOLE, class).up(now);
        let after = now + self.params.uncore.lookup;
        self.cross(id, place, after)
    }

    /// Sends a request on to the other socket, where it enters as a remote request.
    fn cross(&mut self, id: RequestId, place: Place, at: Ps) -> Taken {
        let near = self.pool[id];
        let to = 1 - self.socket_of(near.slice);
        let slice = to * self.params.uncore.slices as u16 + self.slice_within(place);
        let Some(sockets) = &mut self.sockets else {
            return None;
        };
        let hop = match near.kind {
            Kind::RfoSnoop => sockets.params.hop,
            _ => sockets.params.tiers[place.tier as usize].out,
        };
        let is_line = !near.kind.is_read();
        let at = match is_line {
            true => {
                let (far, _) = &mut sockets.over[place.tier as usize];
                far.pass(near.kind.crossing(), place.line, at)
            }
            false => at,
        };
        let arrives = sockets.send(to, is_line, at) + hop;
        let from = Sender {
            thread: near.thread,
            core: 0,
        };
        let (index, kind) = (u64::from(id), Kind::Remote);
        let remote = Request::new(from, index, place, kind, slice, Stage::Waits, arrives);
        let remote = self.pool.insert(remote);
        if self.slices[slice as usize].welcome(remote, &mut self.pool) {
            return self.admit_remote(remote, arrives);
        }
        let request = &mut self.pool[id];
        if request.stage != Stage::Pulled {
            request.stage = Stage::Abroad;
            if request.kind.holds_buffer() {
                return self.buffer(id, at);
            }
        }
        None
    }

    /// A slice has read the data of a streaming write to the other socket.
    pub(super) fn pulled_for_far(&mut self, id: RequestId) {
        let request = &mut self.pool[id];
        let written = request.issued;
        if written == Ps::MAX {
            request.stage = Stage::Abroad;
        } else {
            request.stage = Stage::Answered;
            self.wheel.push(written, id, &mut self.pool);
        }
    }

    /// A remote request has its entry: everything until the answer at its own socket is booked. Returns the
    /// thread whose write-back memory has accepted at once.
    pub(super) fn admit_remote(&mut self, remote: RequestId, now: Ps) -> Taken {
        let Request {
            index,
            line,
            tier,
            slice,
            ..
        } = self.pool[remote];
        let id = index as RequestId;
        let near = self.pool[id];
        if near.stage != Stage::Pulled {
            self.pool[id].stage = Stage::Abroad;
        }
        let here = self.socket_of(slice);
        self.pool[remote].stage = Stage::Leaves;
        self.pool[remote].class = TorClass::Remote;
        self.pmu.tor(SOLE, TorClass::Remote).up(now);
        let Some(sockets) = &mut self.sockets else {
            return None;
        };
        let to = 1 - here;
        if near.kind == Kind::RfoSnoop {
            let there = self.mesh.delay(near.index as u16, slice);
            let done = now + there + self.params.core.l2_hit + there;
            let back = sockets.send(to, true, done) + sockets.params.hop;
            self.pool[id].stage = Stage::Answered;
            self.wheel.push(done, remote, &mut self.pool);
            self.wheel.push(back, id, &mut self.pool);
            return None;
        }
        let has_limit = !sockets.over[tier as usize].0.is_none();
        let (target, links) = self.behind(tier);
        if near.kind.is_read() || near.kind == Kind::PciRdCur {
            let data = target.read(remote, line, near.kind.owns(), now, links);
            self.asked(remote, data);
            return None;
        }
        let sent = self.write(remote, line, now) && !has_limit;
        let request = &mut self.pool[id];
        if !request.kind.holds_buffer() || request.data != Data::Passed {
            return None;
        }
        match sent {
            true => Some(self.end_write_back(id, now)),
            false => self.buffer(id, now),
        }
    }

    /// A tier has read a line for the other socket.
    pub(super) fn read_for_far(&mut self, remote: RequestId, data: Ps) {
        let Request {
            index,
            tier,
            slice,
            line,
            ..
        } = self.pool[remote];
        let id = index as RequestId;
        let to = 1 - self.socket_of(slice);
        let Some(sockets) = &mut self.sockets else {
            return;
        };
        let home = &sockets.params.tiers[tier as usize];
        let (hop, writes) = (home.back, home.directory_write);
        let (far, due) = &mut sockets.over[tier as usize];
        if self.pool[id].kind.owns() {
            *due += writes;
            if *due >= 1.0 {
                *due -= 1.0;
                let memory = self.targets[tier].memory;
                self.memories[usize::from(memory)].note_owner(line, data);
            }
        }
        self.pool[id].stage = Stage::Answered;
        self.wheel.push(data, remote, &mut self.pool);
        if far.is_none() {
            let back = sockets.send(to, true, data) + hop;
            self.wheel.push(back, id, &mut self.pool);
        }
    }

    /// A line that was read for the other socket passes the limit that it shares with written lines. They
    /// pass it at the present, so it does too.
    fn pass_back(&mut self, remote: RequestId, now: Ps) {
        let Request {
            index,
            tier,
            slice,
            line,
            ..
        } = self.pool[remote];
        let id = index as RequestId;
        let to = 1 - self.socket_of(slice);
        let Some(sockets) = &mut self.sockets else {
            return;
        };
        let (far, _) = &mut sockets.over[tier as usize];
        let kind = self.pool[id].kind;
        let reads_memory = kind.is_read() && kind != Kind::RfoSnoop || kind == Kind::PciRdCur;
        if far.is_none() || !reads_memory {
            return;
        }
        let data = far.pass(Crossing::Read, line, now);
        let hop = sockets.params.tiers[tier as usize].back;
        let back = sockets.send(to, true, data) + hop;
        self.wheel.push(back, id, &mut self.pool);
    }

    /// A line that the other socket wrote is safe.
    pub(super) fn written_for_far(&mut self, remote: RequestId, done: Ps) {
        let Request {
            index, tier, slice, ..
        } = self.pool[remote];
        let id = index as RequestId;
        let to = 1 - self.socket_of(slice);
        let Some(sockets) = &mut self.sockets else {
            return;
        };
        let hop = sockets.params.tiers[tier as usize].back;
        let back = sockets.send(to, false, done) + hop;
        self.pool[remote].stage = Stage::Leaves;
        self.wheel.push(done, remote, &mut self.pool);
        let request = &mut self.pool[id];
        if request.stage == Stage::Pulled {
            // Its slice gets the data first.
            request.issued = back;
            return;
        }
        request.stage = Stage::Answered;
        self.wheel.push(back, id, &mut self.pool);
    }

    /// A remote request releases its entry to a waiting request. Returns the thread whose write-back was
    /// accepted.
    #[cold]
    #[inline(never)]
    pub fn leave(&mut self, remote: RequestId, now: Ps) -> Taken {
        self.pass_back(remote, now);
        let request = self.pool[remote];
        let slice = request.slice;
        self.pmu.tor(SOLE, TorClass::Remote).down(now);
        self.pool.remove(remote);
        if request.credit != Credit::None {
            self.credit_back(&request, now);
        }
        let queued = self.slices[slice as usize].queued();
        let next = self.slices[slice as usize].leave(&self.pool)?;
        let fewer = self.slices[slice as usize].queued() < queued;
        self.admit_from_line(next, fewer, now)
    }
}
