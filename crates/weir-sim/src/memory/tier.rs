//! A tier: the path from the home agent to a set of channels and back.

mod cached;
mod config;
mod device;
mod writes;

use std::collections::VecDeque;

pub use self::cached::Resumed;
pub use self::config::{DeviceConfig, NEVER, Sharing, TailConfig, TierConfig};
use self::device::Device;
use super::backing::MediaCounts;
use super::channel::{Channel, ChannelCounts, Interleave};
use super::credits::{Ticket, Waiting};
use super::far::{Crossing, FarLimit};
use super::link::{Link, LinkConfig};
use super::stripes::Stripes;
use crate::clock::Ps;
use crate::divide::Divisor;
use crate::rng;

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

/// A line in the write buffer of its device, which waits for an entry of its channel's write queue.
struct Buffered {
    head: usize,
    within: u64,
    since: Ps,
}

/// Where a line of a device is.
#[derive(Clone, Copy)]
struct Spot {
    /// The device.
    way: usize,
    /// The channel, and the line's number within it.
    number: usize,
    within: u64,
    /// Which of the hosts that the tier serves it belongs to.
    head: usize,
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

    /// Whether its lines pass the limit of devices on the other socket.
    pub fn has_far_limit(&self) -> bool {
        !self.far.is_none()
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

    /// The same with the host that it belongs to.
    #[inline(always)]
    fn spot(&self, line: u64) -> Spot {
        let (way, number, within) = self.locate(line);
        Spot {
            way,
            number,
            within,
            head: self.head_of(line),
        }
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
        let spot = self.spot(line);
        let reads = &mut self.devices[spot.way].reads;
        if reads.take() {
            return self.read_device(ticket, line, spot, at);
        }
        reads.wait(spot.head, Waiting { ticket, line, at });
        None
    }

    /// The same for a line that a copy reads, which needs no credit.
    pub fn read_at_once(&mut self, line: u64, now: Ps, shared: &mut Shared) -> Ps {
        let at = self.send_request(line, now, shared);
        match self.devices.is_empty() {
            true => self.read_dram(line, false, at, shared),
            false => {
                let spot = self.spot(line);
                let ready = self.ask_device(spot, at);
                let data = self.answer(spot, at, ready);
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
    fn read_device(&mut self, ticket: Ticket, line: u64, spot: Spot, sent: Ps) -> Option<Ps> {
        if self.is_gone(sent) {
            return Some(
                sent + if self.has_hops {
                    0
                } else {
                    self.config.way_back
                },
            );
        }
        let (way, at) = (spot.way, self.ask_device(spot, sent));
        if self.devices[way].backing.is_some() && !self.is_here(way, ticket, line, sent, at) {
            return None;
        }
        Some(self.answer(spot, sent, at))
    }

    /// Sends a request to the device of a line; returns when it has the request.
    #[inline(always)]
    fn ask_device(&mut self, Spot { way, head, .. }: Spot, sent: Ps) -> Ps {
        self.reads += 1;
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
        d.pass(ready)
    }

    /// A device reads a line of its DRAM from `ready` on, for a request that was at its link at `sent`; returns when its
    /// link, or the home agent, has the data.
    #[inline(always)]
    fn answer(&mut self, spot: Spot, sent: Ps, ready: Ps) -> Ps {
        let Spot {
            way,
            number,
            within,
            head,
        } = spot;
        let done = self.channels[number].read(within, ready);
        let d = &mut self.devices[way];
        // A long read delays only its own answer: the device serves other requests in the meantime.
        let tail = d.config.tail;
        let tail = tail.map_or(0, |tail| tail.delay(self.seed, self.reads));
        let pass = d.config.pass;
        let back = d.link(head).return_line(done + pass) + tail;
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
            data = link.return_line(self.far.pass(Crossing::Read, line, data));
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
            false => {
                let spot = self.spot(next.line);
                Sent::Data(self.read_device(next.ticket, next.line, spot, at)?)
            }
        };
        Some((next.ticket, sent))
    }
}
