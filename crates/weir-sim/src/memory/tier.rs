//! A tier: the path from the home agent to a set of channels and back.

use super::channel::{Channel, ChannelConfig, ChannelCounts, Interleave};
use super::credits::{Credits, QueueSlots};
use super::link::{Link, LinkConfig};
use super::stripes::Stripes;
use crate::clock::Ps;
use crate::rng;

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
    /// Least time between lines that the far socket hands over, if it was measured to be a separate limit;
    /// else zero.
    pub socket_gap: Ps,
    /// The upstream link of the CXL switch, for devices behind a switch.
    pub upstream: Option<LinkConfig>,
    /// The CXL link and controller, for CXL tiers.
    pub device: Option<DeviceConfig>,
    /// Devices over which lines are interleaved; 1 for other tiers.
    pub ways: u32,
    /// Consecutive lines that one device holds.
    pub stripe: u64,
    /// Channels, all equal; for several devices, those of one device.
    pub channels: u32,
    /// Constants of one channel.
    pub channel: ChannelConfig,
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
    /// Requests that it holds.
    pub queue: u32,
    /// Lines of its write buffer.
    pub write_buffer: u32,
    /// Rare long reads.
    pub tail: Option<TailConfig>,
}

/// A rare delay.
#[derive(Debug, Clone, Copy)]
pub struct TailConfig {
    /// Share of reads.
    pub share: f64,
    /// Mean of the exponential delay.
    pub mean: Ps,
}

impl TailConfig {
    /// The delay of the `n`th read.
    #[inline]
    fn delay(&self, seed: u64, n: u64) -> Ps {
        if rng::unit(seed, n) >= self.share {
            return 0;
        }
        (-(1.0 - rng::unit(seed ^ 1, n)).ln() * self.mean as f64) as Ps
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
}

/// The result of a write.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// How long it waited for a slot in the memory controller or a credit of the device.
    pub waited: Ps,
    /// When the home agent knows that it is safe.
    pub done: Ps,
}

/// Links that several tiers may share.
pub struct Shared {
    socket: Option<Link>,
    upstream: Option<Link>,
}

impl Shared {
    /// The links that these tiers share. A machine has at most one of each.
    pub fn of<'c>(tiers: impl Iterator<Item = &'c TierConfig> + Clone) -> Self {
        Self {
            socket: tiers.clone().find_map(|t| t.socket_link).map(Link::new),
            upstream: tiers.clone().find_map(|t| t.upstream).map(Link::new),
        }
    }
}

struct Device {
    config: DeviceConfig,
    link: Link,
    queue: QueueSlots,
    /// When the slot of the latest read is free.
    read_left: Ps,
    write_buffer: Credits,
    next_read: Ps,
    next_write: Ps,
}

/// A tier in use.
pub struct Tier {
    config: TierConfig,
    /// Whether its channels are directly behind the home agent, without a link.
    is_direct: bool,
    next_from_socket: Ps,
    /// Writes of the memory directory that are due, in lines.
    directory: f64,
    stripes: Stripes,
    devices: Vec<Device>,
    channels: Vec<Channel>,
    interleave: Interleave,
    seed: u64,
    reads: u64,
    counts: TierCounts,
}

impl Tier {
    /// An idle tier.
    pub fn new(config: TierConfig, seed: u64) -> Self {
        let channels = (0..config.channels * config.ways)
            .map(|n| Channel::new(config.channel.clone(), rng::unit(seed, u64::from(n))))
            .collect();
        Self {
            is_direct: config.device.is_none() && config.socket_link.is_none(),
            next_from_socket: 0,
            directory: 0.0,
            stripes: Stripes::new(config.ways, config.stripe),
            devices: (0..config.ways)
                .filter_map(|_| config.device.as_ref())
                .map(|d| Device {
                    link: Link::new(d.link),
                    queue: QueueSlots::new(d.queue),
                    read_left: 0,
                    write_buffer: Credits::new(d.write_buffer),
                    next_read: 0,
                    next_write: 0,
                    config: d.clone(),
                })
                .collect(),
            channels,
            interleave: Interleave::over(config.channels),
            seed: rng::mix(seed),
            reads: 0,
            counts: TierCounts::default(),
            config,
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> TierCounts {
        let mut counts = self.counts;
        for channel in &self.channels {
            let c = channel.counts();
            counts.dram.reads += c.reads;
            counts.dram.writes += c.writes;
            counts.dram.activations += c.activations;
            counts.dram.read_queue_time += c.read_queue_time;
            counts.dram.write_queue_time += c.write_queue_time;
        }
        counts
    }

    /// Reads a line, possibly for ownership, for a request that leaves the home agent at `now`; returns when
    /// the home agent has the data.
    #[inline(always)]
    pub fn read(&mut self, line: u64, own: bool, now: Ps, shared: &mut Shared) -> Ps {
        if self.is_direct {
            let (channel, within) = self.interleave.locate(line);
            let channel = &mut self.channels[channel as usize];
            return channel.read(within, now + self.config.way_out) + self.config.way_back;
        }
        self.read_over_links(line, own, now, shared)
    }

    /// The same for channels behind links.
    #[inline(always)]
    fn read_over_links(&mut self, line: u64, own: bool, now: Ps, shared: &mut Shared) -> Ps {
        let (way, line) = self.stripes.locate(line);
        let (channel, within) = self.interleave.locate(line);
        let number = (way * self.config.channels + channel) as usize;
        let channel = &mut self.channels[number];
        let mut at = now + self.config.way_out;
        let mut socket = crossed(&mut shared.socket, self.config.socket_link.is_some());
        if let Some(link) = &mut socket {
            at = link.send_request(at);
        }
        self.reads += 1;
        let mut data = match self.devices.get_mut(way as usize) {
            None => channel.read(within, at),
            Some(d) => {
                self.counts.requests_out += 1;
                self.counts.lines_in += 1;
                let mut upstream = crossed(&mut shared.upstream, self.config.upstream.is_some());
                if let Some(link) = &mut upstream {
                    at = link.send_request(at);
                }
                let sent = d.queue.entry(at);
                let mut ready = d.link.send_request(sent) + d.config.pass;
                if d.config.gap > 0 {
                    ready = ready.max(d.next_read);
                    d.next_read = ready + d.config.gap;
                }
                let done = channel.read(within, ready);
                let back = d.link.return_line(done + d.config.pass);
                // Slots of reads are released in the order in which they were taken.
                d.read_left = d.read_left.max(back);
                d.queue.enter(d.read_left);
                // A long read delays only its own answer: the device serves other requests in the meantime.
                let tail = d.config.tail;
                let back = back + tail.map_or(0, |tail| tail.delay(self.seed, self.reads));
                self.counts.device_time += back - sent;
                match upstream {
                    Some(link) => link.return_line(back),
                    None => back,
                }
            }
        };
        if let Some(link) = &mut socket {
            if self.devices.is_empty() {
                self.counts.lines_in += 1;
                self.counts.requests_out += 1;
                if own {
                    // The home socket records in DRAM, together with the line, that this socket may modify
                    // it. The write-back clears that, so the next read for ownership sets it again.
                    self.directory += self.config.directory_write;
                    if self.directory >= 1.0 {
                        self.directory -= 1.0;
                        self.channels[number].write(within, data);
                    }
                }
            }
            if self.config.socket_gap > 0 {
                data = data.max(self.next_from_socket);
                self.next_from_socket = data + self.config.socket_gap;
            }
            data = link.return_line(data);
        }
        data + self.config.way_back
    }

    /// Writes into a line's directory bits in memory that another socket may modify it.
    pub fn note_owner(&mut self, line: u64, now: Ps) {
        let (way, line) = self.stripes.locate(line);
        let (channel, within) = self.interleave.locate(line);
        self.channels[(way * self.config.channels + channel) as usize].write(within, now);
    }

    /// Writes a line that leaves the home agent at `now`; returns when the home agent knows that the data is
    /// safe: in the write queue of a DRAM channel or, for a CXL device, when the data is in the device's
    /// buffer and its completion is back.
    #[inline]
    pub fn write(&mut self, line: u64, now: Ps, shared: &mut Shared) -> Written {
        let (way, line) = self.stripes.locate(line);
        let (channel, within) = self.interleave.locate(line);
        let channel = &mut self.channels[(way * self.config.channels + channel) as usize];
        let mut at = now + self.config.way_out;
        let mut socket = crossed(&mut shared.socket, self.config.socket_link.is_some());
        if let Some(link) = &mut socket {
            at = link.send_line(at);
            if self.devices.is_empty() {
                self.counts.lines_out += 1;
            }
        }
        let (room, mut done) = match self.devices.get_mut(way as usize) {
            None => {
                let accepted = channel.write(within, at);
                (accepted, accepted)
            }
            Some(d) => {
                self.counts.lines_out += 1;
                let mut upstream = crossed(&mut shared.upstream, self.config.upstream.is_some());
                if let Some(link) = &mut upstream {
                    at = link.send_line(at);
                }
                let sent = d.queue.entry(at);
                let arrived = d.link.send_line(sent) + d.config.pass;
                let buffered = d.write_buffer.entry(arrived);
                // The buffer passes lines to the channel's own queue, which frees the entry when it accepts
                // the line. This is not faster than the rate at which the controller passes lines in the
                // other direction.
                let mut fed = buffered;
                if d.config.gap > 0 {
                    fed = fed.max(d.next_write);
                    d.next_write = fed + d.config.gap;
                }
                let drained = channel.write(within, fed);
                d.write_buffer.enter(drained);
                self.counts.device_time += drained - sent;
                let back = d.link.return_completion(buffered + d.config.pass);
                d.queue.enter(back);
                let back = match upstream {
                    Some(link) => link.return_completion(back),
                    None => back,
                };
                (sent, back)
            }
        };
        if let Some(link) = &mut socket {
            done = link.return_completion(done);
        }
        Written {
            waited: room - at,
            done: done + self.config.way_back,
        }
    }
}

/// The shared link on the path to a tier, if there is one.
#[inline(always)]
fn crossed(link: &mut Option<Link>, leads_over: bool) -> Option<&mut Link> {
    link.as_mut().filter(|_| leads_over)
}
