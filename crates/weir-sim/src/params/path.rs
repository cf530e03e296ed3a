//! The paths to memory: the parts that have no public value, derived from measured latencies and peaks.

use weir_model::platform::{
    Attached, Device, Dram, Host, Link, MediaTiming, Place, ReadLimit, RemoteSocket, Sourced,
};
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

use super::backing::backing;
use super::error::{SimError, left_over};
use crate::clock::{Ps, nanos, ps};
use crate::memory::{
    BankTiming, ChannelConfig, DeviceConfig, FarGaps, LinkConfig, NEVER, TailConfig, TierConfig,
};

/// Bytes of a slot.
const SLOT_BYTES: f64 = 16.0;
/// Slots of a line towards the host: four for data and a third of a header slot, which holds three headers.
const LINE_IN_SLOTS: f64 = 4.0 + 1.0 / 3.0;
/// Slots of a line away from the host: four for data and one for the header.
const LINE_OUT_SLOTS: f64 = 5.0;
/// Slots of a read request, and of the completion of a write (two to a slot).
const REQUEST_SLOTS: f64 = 1.0;
const COMPLETION_SLOTS: f64 = 0.5;

/// Checks that a measured peak is possible.
fn within(what: &str, measured: GbPerSec, limit: GbPerSec, of: &str) -> Result<(), SimError> {
    // Papers round their figures; a row may state half a percent more than the limit.
    if measured.get() > limit.get() * 1.005 {
        return Err(SimError::TooWide {
            what: what.into(),
            measured,
            limit,
            of: of.into(),
        });
    }
    Ok(())
}

/// The class of the ToR entries of a tier's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierClass {
    Ddr,
    Cxl,
    Remote,
}

/// A tier and how its requests are counted.
#[derive(Debug, Clone)]
pub struct TierParams {
    pub class: TierClass,
    /// Slices over which its lines are spread, and the first of them.
    pub slices: u32,
    pub first_slice: u32,
    /// What one host may use.
    pub capacity: Bytes,
    /// What a load of a mapping that no cache keeps takes longer, if there are such mappings.
    pub uncached: Option<Ps>,
    /// Requests that its queues and the path to them hold; while this many requests wait, nothing is
    /// prefetched from it. Devices have no such limit: only their credits limit them.
    pub holds: u32,
    pub config: TierConfig,
}

/// The parts of a path to memory that are the same for every tier.
pub struct Path {
    /// From a miss in L1 to the home agent, and from the home agent back to the core.
    pub near: Nanos,
    /// Slices over which the tier's lines are spread.
    pub slices: u32,
}

impl Path {
    pub fn dram(&self, host: &Host) -> Result<TierParams, SimError> {
        self.dram_of(&host.dram)
    }

    fn dram_of(&self, d: &Dram) -> Result<TierParams, SimError> {
        let timing = d.media.timing();
        let channels = *d.channels * timing.subchannels;
        within(
            "the DRAM's read peak",
            *d.measured.read,
            d.peak(),
            "its channels",
        )?;
        let read_slot = line_slot(*d.measured.read, channels, &timing);
        let write_slot = line_slot(*d.measured.nt_write, channels, &timing);
        let queues = Queues {
            write_queue: *d.write_queue,
            drain_at: *d.drain_at,
            drain_to: *d.drain_to,
            drain_alone: *d.drain_alone,
            row_close: *d.row_close,
            // The scheduler's search of its queues.
            window: (*d.read_queue).max(*d.write_queue),
        };
        let channel = channel(&timing, *d.ranks, read_slot, write_slot, &queues);
        let known = self.near + media_time(&timing, read_slot);
        let rest = left_over(
            "the DRAM's idle latency",
            &d.measured.idle,
            known,
            "a miss in all caches, a row activation, a column access",
        )?;
        Ok(TierParams {
            class: TierClass::Ddr,
            slices: self.slices,
            first_slice: 0,
            capacity: *d.capacity,
            uncached: None,
            holds: *d.read_queue * channels
                + on_the_way(self.near + rest, read_slot * (1.0 / f64::from(channels))),
            config: TierConfig {
                way_out: ps(rest * 0.5),
                way_back: ps(rest * 0.5),
                socket_link: None,
                directory_write: 0.0,
                far: FarGaps::default(),
                upstream: None,
                device: None,
                ways: 1,
                stripe: 1,
                sharing: None,
                fails_at: NEVER,
                channels,
                channel,
            },
        })
    }

    /// DRAM of the other socket, as the other socket sees it.
    pub(super) fn far_dram(
        &self,
        host: &Host,
        remote: &RemoteSocket,
    ) -> Result<TierParams, SimError> {
        let mut dram = host.remote_dram();
        if remote.narrow.is_some() {
            // Its channels are slower than the link, so the peak is the peak of the channels.
            dram.measured.read = remote.read.clone();
        }
        self.dram_of(&dram)
    }

    pub fn remote(&self, host: &Host) -> Result<Option<TierParams>, SimError> {
        let Some(remote) = &host.remote else {
            return Ok(None);
        };
        let link = socket_link(**remote.link());
        let mut tier = self.far_dram(host, remote)?;
        let timing = host.dram.media.timing();
        let slot = nanos(tier.config.channel.read_slot);
        let known = self.near + media_time(&timing, slot) + crossing(&link);
        let rest = left_over(
            "the remote socket's idle latency",
            &remote.idle,
            known,
            "a miss in all caches, a row activation, a column access, the socket link",
        )?;
        tier.class = TierClass::Remote;
        tier.config.way_out = ps(rest * 0.5);
        tier.config.way_back = ps(rest * 0.5);
        tier.config.socket_link = Some(link);
        tier.config.directory_write = *host.uncore.directory_write;
        Ok(Some(tier))
    }

    pub fn device(&self, attached: &Attached, host: &Host) -> Result<TierParams, SimError> {
        let d = &attached.device;
        let timing = d.media.timing();
        let (link, controller_gap) = device_link(d)?;
        let channels = *d.channels * timing.subchannels;
        let slot = |sustained: &Option<Sourced<GbPerSec>>, of: &str| match sustained {
            None => Ok(timing.burst()),
            Some(rate) => {
                let what = format!("what the DRAM of {} sustains of {of}", d.name);
                within(&what, **rate, d.media_peak(), "its channels")?;
                Ok(line_slot(**rate, channels, &timing))
            }
        };
        let burst = slot(&d.measured.media_read, "reads")?;
        let write_burst = slot(&d.measured.media_write, "writes")?;
        let window = *d.controller.reorder_window;
        let c = &d.controller;
        let host_share = *c.host_share;
        let queues = Queues {
            write_queue: (*c.write_queue).max(window),
            drain_at: *c.drain_at,
            drain_to: *c.drain_to,
            drain_alone: *c.drain_alone,
            row_close: *c.row_close,
            window,
        };
        let channel = channel(&timing, *d.ranks, burst, write_burst, &queues);
        let tail = d.tail.as_ref().map(|t| TailConfig {
            share: *t.share,
            mean: ps(*t.mean),
            spread: *t.spread,
        });
        let tail_mean = (d.tail.as_ref()).map_or(0.0, |t| *t.share * t.mean.get());
        let mut known = self.near + media_time(&timing, burst) + crossing(&link) + Nanos(tail_mean);
        let mut idle = d.measured.idle.clone();
        let (mut socket, mut far) = (None, FarGaps::default());
        if let (true, Some(remote)) = (attached.is_remote(), &host.remote) {
            let link = socket_link(**remote.link());
            socket = Some(link);
            let line = d.measured.remote_read.line_time();
            let evict = d.measured.remote_eviction();
            known = known + crossing(&link) + evict;
            far = FarGaps {
                read: ps(line),
                write: ps(line * (1.0 / *d.measured.remote_writes)),
                evict: ps(evict),
                free: *d.measured.remote_free,
            };
            idle.value = d.measured.idle_from_other_socket();
        }
        let rest = left_over(
            &format!("the idle latency of {}", d.name),
            &idle,
            known,
            "a miss in all caches, the link, a row activation, a column access",
        )?;
        let (upstream, hop) = if attached.place == Place::Switch {
            let (link, hop) = switch(host)?;
            (Some(link), hop)
        } else {
            (None, Nanos(0.0))
        };
        let behind = upstream.and(host.switch.fails_at.as_ref());
        let fails = [d.fails_at.as_ref(), behind].into_iter().flatten();
        let fails_at = fails.map(|at| ps(**at)).min().unwrap_or(NEVER);
        Ok(TierParams {
            class: TierClass::Cxl,
            slices: self.slices,
            first_slice: 0,
            capacity: Bytes(d.capacity.get() * u64::from(attached.ways)),
            uncached: d.measured.uncached.as_ref().map(|t| ps(**t)),
            holds: u32::MAX,
            config: TierConfig {
                // The credits of the device do not cover the time that a switch adds.
                way_out: ps(rest * (host_share * 0.5) + hop * 0.5),
                way_back: ps(rest * (host_share * 0.5) + hop * 0.5),
                socket_link: socket,
                // For a line of a device, no place for directory bits is known.
                directory_write: 0.0,
                far,
                upstream,
                device: Some(DeviceConfig {
                    link,
                    pass: ps(rest * (0.5 - host_share * 0.5)),
                    gap: controller_gap,
                    total_gap: (d.measured.total.as_ref()).map_or(0, |t| ps(t.line_time())),
                    queue: *d.controller.queue,
                    write_buffer: *d.controller.write_buffer,
                    tail,
                    backing: (d.backing.as_ref()).map(|b| backing(b, *d.capacity)),
                }),
                ways: attached.ways,
                stripe: d.interleave.lines(),
                sharing: None,
                fails_at,
                channels,
                channel,
            },
        })
    }
}

/// Time of a line on the bus of one of this many channels, which sustain this together.
fn line_slot(all: GbPerSec, channels: u32, timing: &MediaTiming) -> Nanos {
    let share = GbPerSec(all.get() / f64::from(channels));
    share.line_time() * (1.0 - timing.refresh_share())
}

/// Lines on a path on which one line comes every `slot`.
fn on_the_way(way: Nanos, slot: Nanos) -> u32 {
    (way.get() / slot.get()) as u32
}

/// Time of a single read on a link: on average its slot starts half a slot later.
pub fn crossing(link: &LinkConfig) -> Nanos {
    nanos(link.line_in + link.line_in / 2 + link.request_out)
}

/// The upstream link of the switch, and the rest of its hop.
fn switch(host: &Host) -> Result<(LinkConfig, Nanos), SimError> {
    let upstream = host.switch.upstream();
    let link = flits(&upstream, *upstream.efficiency);
    let hop = left_over(
        "the hop through the switch",
        &host.switch.hop,
        crossing(&link),
        "its upstream link",
    )?;
    Ok((link, hop))
}

/// Time of a single read in the DRAM: activate, column, data. On average its slot starts half a slot later,
/// and sometimes it waits for a refresh.
fn media_time(timing: &MediaTiming, slot: Nanos) -> Nanos {
    timing.rcd + timing.cl + slot * 1.5 + timing.mean_refresh_wait()
}

/// The queues of a DRAM controller.
struct Queues {
    write_queue: u32,
    drain_at: f64,
    drain_to: f64,
    drain_alone: f64,
    row_close: Nanos,
    window: u32,
}

fn channel(
    timing: &MediaTiming,
    ranks: u32,
    read_slot: Nanos,
    write_slot: Nanos,
    queues: &Queues,
) -> ChannelConfig {
    let entries = |share: f64| (f64::from(queues.write_queue) * share) as u32;
    ChannelConfig {
        bank: BankTiming {
            cl: ps(timing.cl),
            rcd: ps(timing.rcd),
            rp: ps(timing.rp),
            ras: ps(timing.ras),
            wr: ps(timing.wr),
            rtp: ps(timing.rtp),
            faw: ps(timing.faw),
            rfc: ps(timing.rfc),
            refi: ps(timing.refi),
            idle_close: ps(queues.row_close),
        },
        banks: timing.banks,
        groups: timing.bank_groups,
        ranks,
        row_lines: timing.row.lines() as u32,
        read_slot: ps(read_slot),
        write_slot: ps(write_slot),
        read_to_write: ps(timing.rtw),
        write_to_read: ps(timing.wtr),
        write_queue: queues.write_queue,
        drain_at: entries(queues.drain_at).max(1),
        drain_to: entries(queues.drain_to),
        drain_alone: (f64::from(entries(queues.drain_to)) * queues.drain_alone) as u32,
        window: queues.window,
        refresh_stops_rank: timing.refresh_stops_rank,
    }
}

/// The socket link, sized from the reads that were measured across it. Both directions are equal, and a
/// message without data takes an eighth of a line (UPI: one flit of nine).
pub(super) fn socket_link(read: GbPerSec) -> LinkConfig {
    let line = ps(read.line_time());
    LinkConfig {
        line_in: line,
        line_out: line,
        request_out: line / 8,
        completion_in: line / 8,
    }
}

/// The CXL link, and the controller's own limit. The platform says which of the two limits the measured read
/// peak.
fn device_link(d: &Device) -> Result<(LinkConfig, Ps), SimError> {
    let full =
        GbPerSec(d.link.slot_rate().get() * LINE_BYTES as f64 / (LINE_IN_SLOTS * SLOT_BYTES));
    let mut efficiency = *d.link.efficiency;
    let mut gap = 0;
    if let Some(read) = &d.measured.read {
        let what = format!("the read peak of {}", d.name);
        within(&what, **read, full, "its link")?;
        match *d.measured.read_limit {
            ReadLimit::Link => efficiency = read.get() / full.get(),
            ReadLimit::Controller => gap = ps(read.line_time()),
            ReadLimit::Media => {}
        }
    }
    let mut link = flits(&d.link, efficiency);
    if let Some(write) = &d.measured.write {
        let what = format!("the written data of {}", d.name);
        within(&what, **write, d.link.write_limit(), "its link")?;
        link.line_out = ps(write.line_time());
    }
    Ok((link, gap))
}

/// A link of 68-byte flits, of whose slots this share is used.
fn flits(link: &Link, efficiency: f64) -> LinkConfig {
    let time = |slots: f64| {
        ps(Nanos(
            slots * SLOT_BYTES / (link.slot_rate().get() * efficiency),
        ))
    };
    LinkConfig {
        line_in: time(LINE_IN_SLOTS),
        line_out: time(LINE_OUT_SLOTS),
        request_out: time(REQUEST_SLOTS),
        completion_in: time(COMPLETION_SLOTS),
    }
}
