//! A tier: the path from the home agent to a set of channels and back.

mod cached;
mod device;

use std::collections::VecDeque;

pub use self::cached::Resumed;
use self::device::Device;
use super::backing::{BackingConfig, MediaCounts, Waiter};
use super::channel::{Channel, ChannelConfig, ChannelCounts, Interleave};
use super::far::{FarGaps, FarLimit};
use super::link::{Link, LinkConfig};
use super::stripes::Stripes;
use crate::clock::Ps;
use crate::divide::Divisor;
use crate::rng;

/// Later than any time of a run.
pub const NEVER: Ps = Ps::MAX;

/// Constants of a tier.
#[derive(Debug, Clone)]
pub struct TierConfig {
    /// Fixed time from the home agent to the first queue of the tier.
    pub way_out: Ps,
    /// Fixed time back.
    pub way_back: Ps,
    /// The socket link, for tiers of another socket.
    pub socket_link: Option<LinkConfig>,
    /// Share of the lines read for ownership that the other socket writes again, for its memory directory;
    /// zero for tiers of this socket.
    pub directory_write: f64,
    /// The limit for lines of the other socket.
    pub far: FarGaps,
    /// The upstream link of the CXL switch, for devices behind a switch.
    pub upstream: Option<LinkConfig>,
    /// The CXL link and controller, for CXL tiers.
    pub device: Option<DeviceConfig>,
    /// Devices over which lines are interleaved; 1 for other tiers.
    pub ways: u32,
    /// Consecutive lines that one device holds.
    pub stripe: u64,
    /// How hosts share it; `None` if it is one host's.
    pub sharing: Option<Sharing>,
    /// When its devices disappear; [`NEVER`] as a rule.
    pub fails_at: Ps,
    /// Channels, all equal; for several devices, those of one device.
    pub channels: u32,
    /// Constants of one channel.
    pub channel: ChannelConfig,
}

/// How hosts share the devices of a tier. Everything behind their ports is common to all: credits, the controller,
/// buffers, DRAM. Before them every host has its own links, and of their lines a range.
#[derive(Debug, Clone, Copy)]
pub struct Sharing {
    /// Hosts.
    pub hosts: u32,
    /// Whether a device has a port for each host.
    pub is_multi_headed: bool,
    /// Lines of a host's range.
    pub range: u64,
}

/// Constants of a CXL device.
#[derive(Debug, Clone)]
pub struct DeviceConfig {
    /// The link.
    pub link: LinkConfig,
    /// Fixed time through the controller, each way.
    pub pass: Ps,
    /// Least time between lines that the controller passes in one direction; zero if it is no limit.
    pub gap: Ps,
    /// The same of both directions together.
    pub total_gap: Ps,
    /// Reads that it takes before it has answered, and the same of written lines: in CXL.mem the two have
    /// credits of their own (M2S Req and RwD).
    pub queue: u32,
    /// Lines of its write buffer.
    pub write_buffer: u32,
    /// Rare long reads.
    pub tail: Option<TailConfig>,
    /// The medium of which its DRAM is a cache, if it is one.
    pub backing: Option<BackingConfig>,
}

/// A rare delay.
#[derive(Debug, Clone, Copy)]
pub struct TailConfig {
    /// Share of reads.
    pub share: f64,
    /// Mean of the delay.
    pub mean: Ps,
    /// Share of it that is exponential.
    pub spread: f64,
}

impl TailConfig {
    /// The delay of the `n`th read.
    #[inline]
    fn delay(&self, seed: u64, n: u64) -> Ps {
        if rng::unit(seed, n) >= self.share {
            return 0;
        }
        let length = -(1.0 - rng::unit(seed ^ 1, n)).ln();
        ((1.0 + self.spread * (length - 1.0)) * self.mean as f64) as Ps
    }
}

/// Counts of a tier.
#[derive(Debug, Clone, Copy, Default)]
pub struct TierCounts {
    /// Channel counts, summed.
    pub dram: ChannelCounts,
    /// Lines that came in over the tier's link.
    pub lines_in: u64,
    /// Lines that went out over it.
    pub lines_out: u64,
    /// Requests without data that were sent over it.
    pub requests_out: u64,
    /// Picoseconds that requests were inside devices, and written lines in their buffers, summed.
    pub device_time: u64,
    /// Of devices whose DRAM is a cache, summed.
    pub media: MediaCounts,
    /// Lines that devices read, and that were written to them, for all hosts.
    pub served: [u64; 2],
}

/// Names the request for which a tier works, for its caller.
pub type Ticket = u32;

/// What becomes of a written line that leaves the home agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It is in the write queue of its DRAM channel; the home agent knows so at the time `done`. It had to
    /// wait for an entry, or not.
    Queued { done: Ps, waited: bool },
    /// It arrives at the device at this time.
    Arrives(Ps),
    /// It waits for a credit of the device.
    Waits,
}

/// What a request does that waited for a credit and got one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// A read: its data is there at this time, as [`Tier::read`] says.
    Data(Ps),
    /// A written line: it arrives at the device at this time.
    Arrives(Ps),
}

/// Links that several tiers of a host may share.
struct HostLinks {
    socket: Option<Link>,
    upstream: Option<Link>,
}

/// Those of every host.
pub struct Shared(Vec<HostLinks>);

impl Shared {
    /// The links that these tiers of each host share. A host has at most one of each.
    pub fn of<'c>(hosts: u32, tiers: impl Iterator<Item = &'c TierConfig> + Clone) -> Self {
        let links = || HostLinks {
            socket: tiers.clone().find_map(|t| t.socket_link).map(Link::new),
            upstream: tiers.clone().find_map(|t| t.upstream).map(Link::new),
        };
        Self((0..hosts).map(|_| links()).collect())
    }

    /// The link to the other socket of a host, if the path to a tier `leads` over it.
    #[inline(always)]
    fn socket(&mut self, host: usize, leads: bool) -> Option<&mut Link> {
        match leads {
            true => self.0.get_mut(host)?.socket.as_mut(),
            false => None,
        }
    }

    /// The upstream link of a host's switch, if the path to a tier `leads` over it.
    #[inline(always)]
    fn upstream(&mut self, host: usize, leads: bool) -> Option<&mut Link> {
        match leads {
            true => self.0.get_mut(host)?.upstream.as_mut(),
            false => None,
        }
    }
}

/// A request that waits for a credit.
struct Waiting {
    ticket: Ticket,
    line: u64,
    /// When it came to the link.
    at: Ps,
}

/// A line in the write buffer of its device, which waits for an entry of its channel's write queue.
struct Buffered {
    head: usize,
    within: u64,
    since: Ps,
}

/// A tier in use.
pub struct Tier {
    config: TierConfig,
    /// Whether its channels are directly behind the home agent, without a link.
    is_direct: bool,
    /// Whether a switch or another socket is between the home agent and the links of its devices.
    has_hops: bool,
    /// Time of an answer from the end of a device's link, on the host's side, to the home agent.
    after_link: Ps,
    far: FarLimit,
    /// Writes of the memory directory that are due, in lines.
    directory: f64,
    stripes: Stripes,
    devices: Vec<Device>,
    channels: Vec<Channel>,
    /// Of the devices' write buffers, the lines that wait for each channel's write queue, in order.
    buffers: Vec<VecDeque<Buffered>>,
    /// Channels for whose write queue a line began to wait, and when it has room.
    due: Vec<(u32, Ps)>,
    interleave: Interleave,
    seed: u64,
    reads: u64,
    /// The host whose it is, or the first that shares it.
    host: usize,
    /// Lines of a host's range; `None` if it is one host's.
    range: Option<Divisor>,
    /// Of each host's links, from the first host on that it serves.
    counts: Vec<TierCounts>,
}

impl Tier {
    /// An idle tier of a host; if hosts share it, of the first and all others.
    pub fn new(config: TierConfig, host: u32, seed: u64) -> Self {
        let sharing = config.sharing;
        let hosts = sharing.map_or(1, |sharing| sharing.hosts as usize);
        let is_multi_headed = sharing.is_some_and(|sharing| sharing.is_multi_headed);
        let ports = if is_multi_headed { hosts } else { 1 };
        let number = config.channels * config.ways;
        let channels = (0..number)
            .map(|n| Channel::new(config.channel.clone(), rng::unit(seed, u64::from(n))))
            .collect();
        let answer = |link: &Option<LinkConfig>| link.map_or(0, |link| link.completion_in);
        Self {
            is_direct: config.device.is_none() && config.socket_link.is_none(),
            has_hops: config.device.is_some()
                && (config.socket_link.is_some() || config.upstream.is_some()),
            after_link: config.way_back + answer(&config.socket_link) + answer(&config.upstream),
            far: FarLimit::new(config.far),
            directory: 0.0,
            stripes: Stripes::new(config.ways, config.stripe),
            devices: (0..config.ways)
                .filter_map(|way| Some((config.device.as_ref()?, rng::mix(seed ^ u64::from(way)))))
                .map(|(config, seed)| Device::new(config, ports, hosts, seed))
                .collect(),
            channels,
            buffers: (0..number).map(|_| VecDeque::new()).collect(),
            due: Vec::new(),
            interleave: Interleave::over(config.channels),
            seed: rng::mix(seed),
            reads: 0,
            host: host as usize,
            range: sharing.map(|sharing| Divisor::new(sharing.range)),
            counts: vec![TierCounts::default(); hosts],
            config,
        }
    }

    /// Whether its requests need credits, which the caller returns ([`Tier::credit_back`]).
    pub fn has_credits(&self) -> bool {
        !self.devices.is_empty()
    }

    /// Whether lines that a device answers have more links to cross ([`Tier::bring_home`]).
    pub fn has_hops(&self) -> bool {
        self.has_hops
    }

    /// Which of the hosts that it serves a line belongs to.
    #[inline(always)]
    fn head_of(&self, line: u64) -> usize {
        match self.range {
            None => 0,
            Some(range) => (range.div_rem(line).0 as usize).min(self.counts.len() - 1),
        }
    }

    /// What was counted so far on a host's links, and in the DRAM and devices for all hosts.
    pub fn counts(&self, host: u32) -> TierCounts {
        let head = (host as usize).saturating_sub(self.host);
        let mut counts = self.counts.get(head).copied().unwrap_or_default();
        for channel in &self.channels {
            let c = channel.counts();
            counts.dram.reads += c.reads;
            counts.dram.writes += c.writes;
            counts.dram.activations += c.activations;
            counts.dram.read_queue_time += c.read_queue_time;
            counts.dram.write_queue_time += c.write_queue_time;
        }
        for device in &self.devices {
            counts.served[0] += device.served[0];
            counts.served[1] += device.served[1];
        }
        for backing in self.devices.iter().filter_map(|d| d.backing.as_ref()) {
            counts.media.add(&backing.counts());
        }
        counts
    }

    /// The device of a line, its channel, and its number within the channel.
    #[inline(always)]
    fn locate(&self, line: u64) -> (usize, usize, u64) {
        let (way, line) = self.stripes.locate(line);
        let (channel, within) = self.interleave.locate(line);
        let number = way * self.config.channels + channel;
        (way as usize, number as usize, within)
    }

    /// Reads a line, possibly for ownership, for a request that leaves the home agent at `now`. Returns when
    /// the home agent has the data or, if there are hops, when the device's link has returned it; `None` if
    /// the request waits for a credit or, with a credit, for a medium ([`Tier::media`]).
    #[inline(always)]
    pub fn read(
        &mut self,
        ticket: Ticket,
        line: u64,
        own: bool,
        now: Ps,
        shared: &mut Shared,
    ) -> Option<Ps> {
        if self.is_direct {
            let (channel, within) = self.interleave.locate(line);
            let channel = &mut self.channels[channel as usize];
            return Some(channel.read(within, now + self.config.way_out) + self.config.way_back);
        }
        let at = self.send_request(line, now, shared);
        if self.devices.is_empty() {
            return Some(self.read_dram(line, own, at, shared));
        }
        self.read_behind(ticket, line, at)
    }

    /// Reads a line of a device for a request that is before its link at `at`; `None` as for [`Self::read`].
    #[inline(never)]
    fn read_behind(&mut self, ticket: Ticket, line: u64, at: Ps) -> Option<Ps> {
        let (way, ..) = self.locate(line);
        if self.devices[way].reads.take() {
            return self.read_device(ticket, line, at);
        }
        let head = self.head_of(line);
        (self.devices[way].reads).wait(head, Waiting { ticket, line, at });
        None
    }

    /// The same for a line that a copy reads, which needs no credit.
    pub fn read_at_once(&mut self, line: u64, now: Ps, shared: &mut Shared) -> Ps {
        let at = self.send_request(line, now, shared);
        match self.devices.is_empty() {
            true => self.read_dram(line, false, at, shared),
            false => {
                let (_, ready) = self.ask_device(line, at);
                let data = self.answer(line, at, ready);
                match self.has_hops {
                    true => self.bring_home(line, data, shared),
                    false => data,
                }
            }
        }
    }

    /// A request without data leaves the home agent; returns when it comes to its DRAM, or to the link of its
    /// device.
    #[inline(always)]
    fn send_request(&self, line: u64, now: Ps, shared: &mut Shared) -> Ps {
        let (mut at, head) = (now + self.config.way_out, self.head_of(line));
        if let Some(link) = shared.socket(self.host + head, self.config.socket_link.is_some()) {
            at = link.send_request(at);
        }
        if let Some(link) = shared.upstream(self.host + head, self.config.upstream.is_some()) {
            at = link.send_request(at);
        }
        at
    }

    /// Reads a line of DRAM without a device between.
    fn read_dram(&mut self, line: u64, own: bool, at: Ps, shared: &mut Shared) -> Ps {
        let (_, number, within) = self.locate(line);
        let channel = &mut self.channels[number];
        let data = channel.read(within, at);
        if self.config.socket_link.is_some() {
            self.counts[0].lines_in += 1;
            self.counts[0].requests_out += 1;
        }
        if own {
            // The home socket records in DRAM, together with the line, that this socket may modify it. The
            // write-back clears that, so the next read for ownership sets it again.
            self.directory += self.config.directory_write;
            if self.directory >= 1.0 {
                self.directory -= 1.0;
                channel.write(within, data);
            }
        }
        self.bring_home(line, data, shared)
    }

    /// Whether its devices are gone at this time. What is asked of them then, the root port answers: reads with poison, and
    /// writes as if they were done (ECN "Error Isolation on CXL.mem and CXL.cache" to CXL 2.0, 2021).
    #[inline(always)]
    pub fn is_gone(&self, at: Ps) -> bool {
        at >= self.config.fails_at
    }

    /// Reads a line of a device for a request that has a credit and is at its link. `None` if it waits for a medium.
    #[inline(always)]
    fn read_device(&mut self, ticket: Ticket, line: u64, sent: Ps) -> Option<Ps> {
        if self.is_gone(sent) {
            return Some(
                sent + if self.has_hops {
                    0
                } else {
                    self.config.way_back
                },
            );
        }
        let (way, at) = self.ask_device(line, sent);
        if self.devices[way].backing.is_some() && !self.is_here(way, ticket, line, sent, at) {
            return None;
        }
        Some(self.answer(line, sent, at))
    }

    /// Sends a request to the device of a line; returns the device, and when it has the request.
    #[inline(always)]
    fn ask_device(&mut self, line: u64, sent: Ps) -> (usize, Ps) {
        let (way, ..) = self.locate(line);
        self.reads += 1;
        let head = self.head_of(line);
        let counts = &mut self.counts[head];
        counts.requests_out += 1;
        counts.lines_in += 1;
        let d = &mut self.devices[way];
        d.served[0] += 1;
        let mut ready = d.link(head).send_request(sent) + d.config.pass;
        if d.config.gap > 0 {
            ready = ready.max(d.next_read);
            d.next_read = ready + d.config.gap;
        }
        (way, d.pass(ready))
    }

    /// A device reads a line of its DRAM from `ready` on, for a request that was at its link at `sent`; returns when its
    /// link, or the home agent, has the data.
    #[inline(always)]
    fn answer(&mut self, line: u64, sent: Ps, ready: Ps) -> Ps {
        let (way, number, within) = self.locate(line);
        let done = self.channels[number].read(within, ready);
        let d = &self.devices[way];
        // A long read delays only its own answer: the device serves other requests in the meantime.
        let tail = d.config.tail;
        let tail = tail.map_or(0, |tail| tail.delay(self.seed, self.reads));
        let pass = d.config.pass;
        let head = self.head_of(line);
        let back = self.devices[way].link(head).return_line(done + pass) + tail;
        self.counts[head].device_time += back - sent;
        match self.has_hops {
            true => back,
            false => back + self.config.way_back,
        }
    }

    /// When the home agent has a line that left its DRAM, or the link of its device.
    pub fn bring_home(&mut self, line: u64, mut data: Ps, shared: &mut Shared) -> Ps {
        let head = self.head_of(line);
        if let Some(link) = shared.upstream(self.host + head, self.config.upstream.is_some()) {
            data = link.return_line(data);
        }
        if let Some(link) = shared.socket(self.host + head, self.config.socket_link.is_some()) {
            data = link.return_line(self.far.pass(false, data));
        }
        data + self.config.way_back
    }

    /// The request for this line that had a credit has its answer: a line of a tier with hops at the device's
    /// link, any other answer at the home agent. Returns the request that gets the credit, and what it does
    /// with it.
    #[inline]
    pub fn credit_back(&mut self, line: u64, is_write: bool, now: Ps) -> Option<(Ticket, Sent)> {
        let (way, ..) = self.locate(line);
        let d = &mut self.devices[way];
        let credits = match is_write {
            true => &mut d.writes,
            false => &mut d.reads,
        };
        let next = credits.come_back()?;
        // The credit was free when the answer had crossed the link.
        let since = match self.has_hops && !is_write {
            true => 0,
            false => self.after_link,
        };
        let at = next.at.max(now.saturating_sub(since));
        let sent = match is_write {
            true => Sent::Arrives(self.send_to_device(way, next.line, at)),
            false => Sent::Data(self.read_device(next.ticket, next.line, at)?),
        };
        Some((next.ticket, sent))
    }

    /// Writes into a line's directory bits in memory that another socket may modify it.
    pub fn note_owner(&mut self, line: u64, now: Ps) {
        let (_, number, within) = self.locate(line);
        self.channels[number].write(within, now);
    }

    /// A written line leaves the home agent; returns when it comes to its DRAM, or to the link of its device.
    fn send_data(&mut self, line: u64, now: Ps, shared: &mut Shared) -> Ps {
        let head = self.head_of(line);
        let mut at = self.far.pass(true, now) + self.config.way_out;
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
    fn send_to_device(&mut self, way: usize, line: u64, at: Ps) -> Ps {
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
    pub fn write(&mut self, ticket: Ticket, line: u64, now: Ps, shared: &mut Shared) -> Written {
        let at = self.send_data(line, now, shared);
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
        let mut at = self.send_data(line, now, shared);
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
    fn go_on_writing(&mut self, number: usize, way: usize, now: Ps) {
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
    fn completed(&self, line: u64, mut at: Ps, shared: &mut Shared) -> Ps {
        let head = self.head_of(line);
        if let Some(link) = shared.socket(self.host + head, self.config.socket_link.is_some()) {
            at = link.return_completion(at);
        }
        at + self.config.way_back
    }

    /// The same for a line that its device has at `at`.
    fn completed_from(&mut self, way: usize, line: u64, mut at: Ps, shared: &mut Shared) -> Ps {
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
