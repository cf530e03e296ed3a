//! From a platform to the constants of the queues.
//!
//! The platform says what was measured alone: idle latencies and peak bandwidths. What this file
//! derives from them are the parts that have no public value of their own: the fixed time of a path
//! that its known parts (caches, mesh, row activation, data bus, link) leave over, and the time of
//! a line on a bus whose scheduler loses a share of the standard's peak. Nothing with two tenants
//! enters.

use weir_model::platform::{
    Attached, ControllerKind, Host, MediaTiming, Platform, ReadLimit, Sourced,
};
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

use crate::clock::{Ps, ps};
use crate::core::PrivateConfig;
use crate::memory::{BankTiming, ChannelConfig, DeviceConfig, LinkConfig, TailConfig, TierConfig};
use crate::uncore::{LlcConfig, Mesh};

/// Why a platform cannot be simulated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimError {
    /// A measured latency is shorter than what its known parts add up to.
    #[error(
        "{what} of {measured:.0} is shorter than its known parts ({parts}), which take {least:.1}; \
         one of them is wrong"
    )]
    TooFast {
        /// Which latency.
        what: String,
        /// As measured.
        measured: Nanos,
        /// What the parts take.
        least: Nanos,
        /// The parts.
        parts: String,
    },
    /// A measured bandwidth is above what its media or link can carry.
    #[error("{what} of {measured:.1} is more than {limit:.1}, the peak of {of}")]
    TooWide {
        /// Which bandwidth.
        what: String,
        /// As measured.
        measured: GbPerSec,
        /// The limit.
        limit: GbPerSec,
        /// Of what.
        of: String,
    },
}

/// Raw PCIe bits that carry no flit: 128b/130b encoding.
const PCIE_ENCODING: f64 = 128.0 / 130.0;
/// A 68-byte flit carries four 16-byte slots (CXL 1.1 §4.2.2).
const FLIT_PAYLOAD: f64 = 64.0 / 68.0;
/// Bytes of a slot.
const SLOT_BYTES: f64 = 16.0;
/// Slots of a line towards the host: four of data and a third of a header, three to a slot.
const LINE_IN_SLOTS: f64 = 4.0 + 1.0 / 3.0;
/// Slots of a line away from the host: four of data and one header.
const LINE_OUT_SLOTS: f64 = 5.0;
/// Slots of a read request, and of the completion of a write (two to a slot).
const REQUEST_SLOTS: f64 = 1.0;
const COMPLETION_SLOTS: f64 = 0.5;

/// An idle row stays open this long before the controller closes it. Not public; between the time a
/// stream takes to return to a bank (half a microsecond) and the time a pointer chase does (tens).
const IDLE_CLOSE: Nanos = Nanos(1500.0);
/// Requests that an integrated memory controller looks over for an open row: the read queue of a
/// DDR5 subchannel, 32 to 64 entries (range from the perfmon event lists; not public).
const HOST_WINDOW: u32 = 48;
/// Write-queue entries of a device's DRAM channel, behind its write buffer.
const DEVICE_WRITE_QUEUE: u32 = 48;
/// Share of the path between home agent and device that lies on the host's side, each way; the rest
/// is the device controller's (calibrated split of published simulators: host bridge and protocol
/// 62 ns, device 15 to 60 ns of the same path).
const HOST_SHARE: f64 = 0.25;

/// Constants of the cores.
#[derive(Debug, Clone)]
pub struct CoreParams {
    pub count: u32,
    pub cycle: f64,
    pub line_fill_buffers: u32,
    pub super_queue: u32,
    pub load_window: u64,
    pub random_window: u64,
    pub store_window: u64,
    pub l1_ahead: u32,
    pub l2_ahead: u32,
    pub load_gap: Ps,
    pub store_gap: Ps,
    pub nt_hold: Ps,
    pub movdir_gap: Ps,
    pub l1_hit: Ps,
    pub l2_hit: Ps,
    pub private: PrivateConfig,
    pub tlb_reach: Bytes,
    pub page: Bytes,
    pub walk: Ps,
    /// What the coherence of a just-flushed line adds.
    pub flushed: Ps,
}

/// Constants of the uncore.
#[derive(Debug, Clone)]
pub struct UncoreParams {
    pub slices: u32,
    pub tor: u32,
    pub irq: u32,
    pub hop: Ps,
    /// Slice time of a hit, and of finding out that it is a miss.
    pub hit: Ps,
    pub lookup: Ps,
    pub clock_ghz: f64,
    pub llc: LlcConfig,
}

/// What kind of ToR entry a tier's requests are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierClass {
    Ddr,
    Cxl,
    Remote,
}

/// A tier and what is counted of it.
#[derive(Debug, Clone)]
pub struct TierParams {
    pub class: TierClass,
    pub capacity: Bytes,
    pub config: TierConfig,
}

/// All constants of a machine.
#[derive(Debug, Clone)]
pub struct Params {
    pub core: CoreParams,
    pub uncore: UncoreParams,
    /// In the order of the topology's tiers.
    pub tiers: Vec<TierParams>,
    pub dram_clock_ghz: f64,
}

impl Params {
    /// Derives the constants of a platform.
    pub fn derive(platform: &Platform) -> Result<Self, SimError> {
        let host = &platform.host;
        let core = core_params(host);
        let uncore = uncore_params(host, &core)?;
        // An idle latency is published for one core; the first is as good as any, and is the one
        // that experiments use.
        let mesh = Mesh::new(core.count, uncore.slices, uncore.hop).mean_from(0);
        let near = Nanos((core.l2_hit as f64 + 2.0 * mesh + uncore.lookup as f64) / 1e3);
        let path = Path { near };

        let mut tiers = vec![path.dram(host)?];
        for device in &platform.devices {
            tiers.push(path.device(device, host)?);
        }
        if let Some(tier) = path.remote(host)? {
            tiers.push(tier);
        }
        let dram_clock_ghz = host.dram.media.timing().rate.get() / 2.0;
        Ok(Self {
            core,
            uncore,
            tiers,
            dram_clock_ghz,
        })
    }
}

fn core_params(host: &Host) -> CoreParams {
    let (c, cycle) = (&host.core, 1.0 / host.core.clock.get());
    let nt_peak =
        GbPerSec(f64::from(*c.line_fill_buffers) * LINE_BYTES as f64 / c.nt_store_hold.get());
    CoreParams {
        count: *c.count,
        cycle,
        line_fill_buffers: *c.line_fill_buffers,
        super_queue: *c.super_queue,
        // A full-line load and its share of the loop are about four micro-operations; a random one
        // computes its address first.
        load_window: u64::from(*c.reorder_buffer / 4),
        random_window: u64::from(*c.reorder_buffer / 8).max(1),
        store_window: u64::from(*c.store_buffer),
        l1_ahead: *host.prefetch.l1_lines,
        l2_ahead: *host.prefetch.l2_lines,
        load_gap: ps(c.load_peak.line_time()),
        store_gap: ps(c.store_peak.line_time()),
        nt_hold: ps(*c.nt_store_hold),
        movdir_gap: ps((nt_peak * *c.movdir64b_share).line_time()),
        l1_hit: ps(c.clock.time(*host.l1.latency)),
        l2_hit: ps(c.clock.time(*host.l2.latency)),
        private: PrivateConfig {
            l1: (host.l1.size.lines(), *host.l1.ways),
            l2: (host.l2.size.lines(), *host.l2.ways),
        },
        tlb_reach: Bytes(u64::from(*host.tlb.entries) * host.tlb.page.get()),
        page: *host.tlb.page,
        walk: ps(*host.tlb.walk),
        flushed: ps(*host.uncore.flushed_line),
    }
}

fn uncore_params(host: &Host, core: &CoreParams) -> Result<UncoreParams, SimError> {
    let slices = *host.llc.slices;
    let hop = ps(host.uncore.clock.time(*host.uncore.hop));
    let mesh = Mesh::new(core.count, slices, hop).mean_from(0);
    let side = Nanos((core.l2_hit as f64 + 2.0 * mesh) / 1e3);
    let hit = left_over(
        "the last-level cache's latency",
        &host.llc.latency,
        side,
        "a miss in L2, the mesh there and back",
    )?;
    Ok(UncoreParams {
        slices,
        tor: *host.uncore.tor,
        irq: *host.uncore.irq,
        hop,
        hit: ps(hit),
        // Tags are read before data: half of a hit's time shows that there is none.
        lookup: ps(hit * 0.5),
        clock_ghz: host.uncore.clock.get(),
        llc: LlcConfig {
            lines: host.llc.size.lines(),
            ways: *host.llc.ways,
        },
    })
}

/// What a measured latency leaves after its known parts.
fn left_over(
    what: &str,
    measured: &Sourced<Nanos>,
    least: Nanos,
    parts: &str,
) -> Result<Nanos, SimError> {
    let rest = **measured - least;
    if rest.get() <= 0.0 {
        return Err(SimError::TooFast {
            what: what.into(),
            measured: **measured,
            least,
            parts: parts.into(),
        });
    }
    Ok(rest)
}

/// Checks that a measured peak is possible.
fn within(what: &str, measured: GbPerSec, limit: GbPerSec, of: &str) -> Result<(), SimError> {
    // Papers round; a row may print half a percent more than physics.
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

/// The parts of a way to memory that are the same for every tier.
struct Path {
    /// From a miss in L1 to the home agent and from it back to the core.
    near: Nanos,
}

impl Path {
    fn dram(&self, host: &Host) -> Result<TierParams, SimError> {
        let d = &host.dram;
        let timing = d.media.timing();
        let channels = *d.channels * timing.subchannels;
        let limit = timing.channel_peak() * f64::from(*d.channels);
        within(
            "the DRAM's read peak",
            *d.measured.read,
            limit,
            "its channels",
        )?;
        let share = GbPerSec(d.measured.read.get() / f64::from(channels));
        let read_slot = share.line_time() * (1.0 - timing.refresh_share());
        let write_share = GbPerSec(d.measured.nt_write.get() / f64::from(channels));
        let write_slot = write_share.line_time() * (1.0 - timing.refresh_share());
        let channel = channel(
            &timing,
            *d.ranks,
            read_slot,
            write_slot,
            *d.write_queue,
            HOST_WINDOW,
        );
        let known = self.near + media_time(&timing, read_slot);
        let rest = left_over(
            "the DRAM's idle latency",
            &d.measured.idle,
            known,
            "a miss in all caches, a row activation, a column access",
        )?;
        Ok(TierParams {
            class: TierClass::Ddr,
            capacity: *d.capacity,
            config: TierConfig {
                way_out: ps(rest * 0.5),
                way_back: ps(rest * 0.5),
                socket_link: None,
                socket_gap: 0,
                device: None,
                channels,
                channel,
            },
        })
    }

    fn remote(&self, host: &Host) -> Result<Option<TierParams>, SimError> {
        let Some(remote) = &host.remote else {
            return Ok(None);
        };
        let mut tier = self.dram(host)?;
        let link = socket_link(*remote.read);
        let timing = host.dram.media.timing();
        let slot = crate::clock::nanos(tier.config.channel.read_slot);
        let crossing = crate::clock::nanos(link.line_in + link.line_in / 2 + link.request_out);
        let known = self.near + media_time(&timing, slot) + crossing;
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
        Ok(Some(tier))
    }

    fn device(&self, attached: &Attached, host: &Host) -> Result<TierParams, SimError> {
        let d = &attached.device;
        let timing = d.media.timing();
        let (link, controller_gap) = device_link(attached)?;
        let burst = timing.burst();
        let order = match *d.controller.kind {
            ControllerKind::Asic | ControllerKind::Fpga => *d.controller.reorder_window,
        };
        let channel = channel(&timing, *d.ranks, burst, burst, DEVICE_WRITE_QUEUE, order);
        let tail = d.controller.tail.as_ref().map(|t| TailConfig {
            share: *t.share,
            mean: ps(*t.mean),
        });
        let tail_mean = d
            .controller
            .tail
            .as_ref()
            .map_or(0.0, |t| *t.share * t.mean.get());
        let crossing = crate::clock::nanos(link.line_in + link.line_in / 2 + link.request_out);
        let mut known = self.near + media_time(&timing, burst) + crossing + Nanos(tail_mean);
        let mut socket = None;
        let idle = match (&d.measured.remote_idle, attached.remote, &host.remote) {
            (Some(idle), true, Some(remote)) => {
                let link = socket_link(*remote.read);
                known =
                    known + crate::clock::nanos(link.line_in + link.line_in / 2 + link.request_out);
                socket = Some(link);
                idle
            }
            _ => &d.measured.idle,
        };
        let rest = left_over(
            &format!("the idle latency of {}", d.name),
            idle,
            known,
            "a miss in all caches, the link, a row activation, a column access",
        )?;
        let socket_gap = match &d.measured.remote_read {
            Some(read) if attached.remote => ps(read.line_time()),
            _ => 0,
        };
        Ok(TierParams {
            class: TierClass::Cxl,
            capacity: *d.capacity,
            config: TierConfig {
                way_out: ps(rest * HOST_SHARE),
                way_back: ps(rest * HOST_SHARE),
                socket_link: socket,
                socket_gap,
                device: Some(DeviceConfig {
                    link,
                    pass: ps(rest * (0.5 - HOST_SHARE)),
                    gap: controller_gap,
                    queue: *d.controller.queue,
                    write_buffer: *d.controller.write_buffer,
                    tail,
                }),
                channels: *d.channels * timing.subchannels,
                channel,
            },
        })
    }
}

/// Time of a lone read in the DRAM: activate, column, data; its slot starts half a slot later on
/// average; now and then a refresh is in the way.
fn media_time(timing: &MediaTiming, slot: Nanos) -> Nanos {
    timing.rcd + timing.cl + slot * 1.5 + timing.mean_refresh_wait()
}

fn channel(
    timing: &MediaTiming,
    ranks: u32,
    read_slot: Nanos,
    write_slot: Nanos,
    write_queue: u32,
    window: u32,
) -> ChannelConfig {
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
            idle_close: ps(IDLE_CLOSE),
        },
        banks: timing.banks,
        groups: timing.bank_groups,
        ranks,
        row_lines: timing.row.lines() as u32,
        read_slot: ps(read_slot),
        write_slot: ps(write_slot),
        read_to_write: ps(timing.rtw),
        write_to_read: ps(timing.wtr),
        write_queue,
        window,
        refresh_stops_rank: timing.refresh_stops_rank,
    }
}

/// The socket link, sized by the reads that were measured across it; both directions are alike, and
/// a message without data takes an eighth of a line (UPI: one flit of nine).
fn socket_link(read: GbPerSec) -> LinkConfig {
    let line = ps(read.line_time());
    LinkConfig {
        line_in: line,
        line_out: line,
        request_out: line / 8,
        completion_in: line / 8,
    }
}

/// The CXL link, and the controller's own limit. A measured read peak sets whichever of the two the
/// platform says it is limited by.
fn device_link(attached: &Attached) -> Result<(LinkConfig, Ps), SimError> {
    let d = &attached.device;
    let raw = f64::from(*d.link.lanes) * d.link.rate.get() / 8.0 * PCIE_ENCODING * FLIT_PAYLOAD;
    let full = |slots: f64| GbPerSec(raw * LINE_BYTES as f64 / (slots * SLOT_BYTES));
    let mut efficiency = *d.link.efficiency;
    let mut gap = 0;
    if let Some(read) = &d.measured.read {
        let what = format!("the read peak of {}", d.name);
        within(&what, **read, full(LINE_IN_SLOTS), "its link")?;
        match *d.measured.read_limit {
            ReadLimit::Link => efficiency = read.get() / full(LINE_IN_SLOTS).get(),
            ReadLimit::Controller => gap = ps(read.line_time()),
            ReadLimit::Media => {}
        }
    }
    let time = |slots: f64| ps(Nanos(slots * SLOT_BYTES / (raw * efficiency)));
    let link = LinkConfig {
        line_in: time(LINE_IN_SLOTS),
        line_out: time(LINE_OUT_SLOTS),
        request_out: time(REQUEST_SLOTS),
        completion_in: time(COMPLETION_SLOTS),
    };
    Ok((link, gap))
}
