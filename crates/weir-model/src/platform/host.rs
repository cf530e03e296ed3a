//! The server: cores, caches, uncore, its own DRAM, the other socket.

use super::{Link, MeasuredLog, Media, Sourced};
use crate::units::{Bytes, Cycles, GbPerSec, Gigahertz, Nanos};

/// A server of one or more equal sockets.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// The name in expressions: `emr2s`.
    pub name: String,
    /// One line for lists.
    pub summary: String,
    /// Sockets.
    pub sockets: Sourced<u32>,
    /// Devices that come with this host when the expression names none.
    pub default_devices: Vec<String>,
    /// Where instruments logged its DRAM under load.
    pub log: Option<MeasuredLog>,
    /// The cores of one socket.
    pub core: Core,
    /// Address translation.
    pub tlb: Tlb,
    /// Hardware prefetchers.
    pub prefetch: Prefetch,
    /// Bandwidth allocation between a core's L2 and the mesh.
    pub allocation: BandwidthAllocation,
    /// First-level data cache.
    pub l1: Cache,
    /// Second-level cache.
    pub l2: Cache,
    /// Shared cache of one socket.
    pub llc: LastLevelCache,
    /// Mesh, slices and their queues.
    pub uncore: Uncore,
    /// The Data Streaming Accelerator of one socket.
    pub accelerator: Accelerator,
    /// How devices reach memory, and what storage requests cost the cores.
    pub io: DeviceIo,
    /// DRAM of one socket.
    pub dram: Dram,
    /// The way to the other socket, where there is one.
    pub remote: Option<RemoteSocket>,
    /// The CXL switch that devices may hang on.
    pub switch: Switch,
}

impl Host {
    /// DRAM of the other socket: like this one's, or with the channels it has there.
    pub fn remote_dram(&self) -> Dram {
        let mut dram = self.dram.clone();
        if let Some(narrow) = self.remote.as_ref().and_then(|r| r.narrow.as_ref()) {
            let share = f64::from(narrow.channels.value) / f64::from(dram.channels.value);
            dram.capacity.value = Bytes((dram.capacity.get() as f64 * share) as u64);
            dram.measured.nt_write.value = dram.measured.nt_write.value * share;
            dram.channels = narrow.channels.clone();
        }
        dram
    }
}

/// One core and its bounded resources.
#[derive(Debug, Clone, PartialEq)]
pub struct Core {
    /// The microarchitecture, as event tables name it: `emerald-rapids`.
    pub microarchitecture: Sourced<String>,
    /// Physical cores of a socket.
    pub count: Sourced<u32>,
    /// Clock while measured.
    pub clock: Sourced<Gigahertz>,
    /// Reorder-buffer entries.
    pub reorder_buffer: Sourced<u32>,
    /// Instructions that its schedulers hold while operands are missing.
    pub scheduler: Sourced<u32>,
    /// Physical integer registers, those of the architecture among them.
    pub integer_registers: Sourced<u32>,
    /// Physical vector registers.
    pub vector_registers: Sourced<u32>,
    /// Store-buffer entries.
    pub store_buffer: Sourced<u32>,
    /// Load-buffer entries.
    pub load_buffer: Sourced<u32>,
    /// L1 misses in flight (line-fill buffers, MAB); also the write-combining buffers.
    pub line_fill_buffers: Sourced<u32>,
    /// L2 misses in flight.
    pub super_queue: Sourced<u32>,
    /// The most that one core loads from DRAM, prefetchers on.
    pub load_peak: Sourced<GbPerSec>,
    /// The most that one core stores, bytes of the program.
    pub store_peak: Sourced<GbPerSec>,
    /// How long an unloaded non-temporal store holds its buffer: from the full line until the
    /// uncore has taken it.
    pub nt_store_hold: Sourced<Nanos>,
    /// Rate of movdir64B as a share of non-temporal stores; 0 where the processor lacks it.
    pub movdir64b_share: Sourced<f64>,
    /// What a branch that was predicted wrong costs once its condition is known.
    pub mispredict: Sourced<Cycles>,
}

/// Address translation.
#[derive(Debug, Clone, PartialEq)]
pub struct Tlb {
    /// Second-level TLB entries.
    pub entries: Sourced<u32>,
    /// Page size in use.
    pub page: Sourced<Bytes>,
    /// What a page walk adds to a load.
    pub walk: Sourced<Nanos>,
    /// What the kernel takes for the first touch of a page, beside clearing it.
    pub fault: Sourced<Nanos>,
}

/// Hardware prefetchers; both can be switched off.
#[derive(Debug, Clone, PartialEq)]
pub struct Prefetch {
    /// Lines the L1 prefetchers run ahead.
    pub l1_lines: Sourced<u32>,
    /// Lines the L2 streamer runs ahead.
    pub l2_lines: Sourced<u32>,
    /// Accesses in a row that train the streamer.
    pub training: Sourced<u32>,
    /// Lines that the streamer asks for at most when it sees a request.
    pub l2_degree: Sourced<u32>,
    /// Lines that a core has under way when its L2 streamer stops asking for more.
    pub l2_outstanding: Sourced<u32>,
    /// The last cache as whose miss a load counts that finds its line under way for the L2 prefetcher,
    /// 1 to 3. It decides in which bucket late prefetches show (SupMario section 4.4: L2 on Skylake, the
    /// last-level cache since Sapphire Rapids).
    pub late_level: Sourced<u32>,
}

/// Bandwidth allocation (Intel MBA, AMD QoS): a controller between a core's L2 and the mesh that lets requests
/// pass at so many a time, whatever memory they are for.
#[derive(Debug, Clone, PartialEq)]
pub struct BandwidthAllocation {
    /// Step of its scale; 1 where there is none.
    pub step: Sourced<f64>,
    /// What a tenth of the scale lets pass, of the most that a core loads from DRAM.
    pub tenth: Sourced<f64>,
    /// What half of it lets pass.
    pub half: Sourced<f64>,
}

impl BandwidthAllocation {
    /// The setting that is applied for one that is asked for: the next step, upwards as Linux rounds it.
    pub fn applied(&self, asked: f64) -> f64 {
        let steps = (asked / self.step.value - ROUNDING).ceil().max(1.0);
        (steps * self.step.value).min(1.0)
    }

    /// What a setting lets pass, as a share of what a core loads at most; in proportion between the settings
    /// that are known.
    pub fn passes(&self, setting: f64) -> f64 {
        let known = [
            (0.0, 0.0),
            (0.1, self.tenth.value),
            (0.5, self.half.value),
            (1.0, 1.0),
        ];
        let between = known.windows(2).find(|pair| setting <= pair[1].0);
        let Some(&[(low, at_low), (high, at_high)]) = between else {
            return 1.0;
        };
        at_low + (at_high - at_low) * (setting - low) / (high - low)
    }
}

/// Less than this part of a step is none.
const ROUNDING: f64 = 1e-6;

/// A private cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Cache {
    /// Capacity.
    pub size: Sourced<Bytes>,
    /// Associativity.
    pub ways: Sourced<u32>,
    /// Load-to-use latency of a hit.
    pub latency: Sourced<Cycles>,
}

/// The shared cache of a socket, cut into slices.
#[derive(Debug, Clone, PartialEq)]
pub struct LastLevelCache {
    /// Capacity of the socket.
    pub size: Sourced<Bytes>,
    /// Associativity.
    pub ways: Sourced<u32>,
    /// Load-to-use latency of a hit.
    pub latency: Sourced<Nanos>,
    /// Slices, each with a caching-and-home agent.
    pub slices: Sourced<u32>,
}

/// The uncore's queues and clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Uncore {
    /// Mesh and slice clock.
    pub clock: Sourced<Gigahertz>,
    /// Mesh cycles of one hop.
    pub hop: Sourced<Cycles>,
    /// Table-of-Requests entries of one slice.
    pub tor: Sourced<u32>,
    /// Ingress-queue entries of one slice.
    pub irq: Sourced<u32>,
    /// What a line that was just flushed adds to the next access to it, whatever the tier.
    pub flushed_line: Sourced<Nanos>,
    /// Share of the lines read for ownership by another socket that their home writes again at once,
    /// since it keeps in DRAM, beside each line, whether another socket may hold it modified; 0
    /// where it does not.
    pub directory_write: Sourced<f64>,
    /// Sub-NUMA clusters that the socket is cut into; 1 for none. With more, [`Dram`] is that of one
    /// cluster, and its lines live in that cluster's slices alone.
    pub clusters: Sourced<u32>,
    /// Core complexes, where cores do not share one cache.
    pub complexes: Option<Complexes>,
}

/// The Data Streaming Accelerator: a device on the socket that copies by descriptor.
#[derive(Debug, Clone, PartialEq)]
pub struct Accelerator {
    /// Devices of a socket; 0 where the processor has none. The model uses one.
    pub devices: Sourced<u32>,
    /// Submissions that a device holds.
    pub work_queue: Sourced<u32>,
    /// Lines under way in it, from the read until the write is handed over.
    pub read_buffers: Sourced<u32>,
    /// Bytes that it moves at most.
    pub peak: Sourced<GbPerSec>,
    /// Core time of writing one descriptor.
    pub describe: Sourced<Nanos>,
    /// Core time of one submission to the portal.
    pub submit: Sourced<Nanos>,
    /// Way from the core to the portal, and of the completion back to it.
    pub portal: Sourced<Nanos>,
    /// From a descriptor in the device to its first read.
    pub decode: Sourced<Nanos>,
}

/// The way of devices' lines into the socket, and the cores' part in storage requests.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceIo {
    /// Ways of the last-level cache that devices' writes fill; 0 where they go to memory.
    pub ways: Sourced<u32>,
    /// Lines that the devices of one port write at once.
    pub write_buffer: Sourced<u32>,
    /// Lines that they read at once.
    pub read_buffer: Sourced<u32>,
    /// Core time of submitting a storage request.
    pub submit: Sourced<Cycles>,
    /// Core time of completing one.
    pub complete: Sourced<Cycles>,
    /// From a completion in memory to the handler on the core.
    pub interrupt: Sourced<Nanos>,
    /// From the core's register write to the device.
    pub doorbell: Sourced<Nanos>,
    /// Lines that the core work of one request finds in no cache of its own.
    pub lines: Sourced<u32>,
}

/// DRAM of one socket, or of one of its sub-NUMA clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Dram {
    /// Speed grade.
    pub media: Sourced<Media>,
    /// Channels that are populated.
    pub channels: Sourced<u32>,
    /// Ranks of a channel.
    pub ranks: Sourced<u32>,
    /// Capacity of the socket.
    pub capacity: Sourced<Bytes>,
    /// Read-queue entries of a subchannel.
    pub read_queue: Sourced<u32>,
    /// Write-pending-queue entries of a subchannel.
    pub write_queue: Sourced<u32>,
    /// What was measured of it, alone.
    pub measured: DramMeasured,
}

/// DRAM as measured with one tenant on an otherwise idle machine.
#[derive(Debug, Clone, PartialEq)]
pub struct DramMeasured {
    /// Pointer-chase latency of the whole path, without page walks.
    pub idle: Sourced<Nanos>,
    /// Peak sequential reads of the socket.
    pub read: Sourced<GbPerSec>,
    /// Peak sequential non-temporal stores of the socket.
    pub nt_write: Sourced<GbPerSec>,
}

/// DRAM of the other socket as seen from this one.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteSocket {
    /// Pointer-chase latency.
    pub idle: Sourced<Nanos>,
    /// Peak sequential reads from there.
    pub read: Sourced<GbPerSec>,
    /// Where its channels are fewer than this socket's, and so narrower than the link.
    pub narrow: Option<NarrowRemote>,
}

impl RemoteSocket {
    /// What the socket link carries.
    pub fn link(&self) -> &Sourced<GbPerSec> {
        self.narrow.as_ref().map_or(&self.read, |n| &n.link)
    }
}

/// The other socket's DRAM where its channels, not the link, limit the reads.
#[derive(Debug, Clone, PartialEq)]
pub struct NarrowRemote {
    /// Channels that are populated.
    pub channels: Sourced<u32>,
    /// What the socket link carries.
    pub link: Sourced<GbPerSec>,
}

/// A CXL switch between a port of the host and devices.
#[derive(Debug, Clone, PartialEq)]
pub struct Switch {
    /// What it adds to a read, there and back.
    pub hop: Sourced<Nanos>,
    /// Its link to the host, which all devices behind it share.
    pub upstream: Link,
}

/// Core complexes (AMD CCX): each has its own cores, its own part of the last-level cache, and its own
/// link to the data fabric, on which memory is.
#[derive(Debug, Clone, PartialEq)]
pub struct Complexes {
    /// Complexes of a socket.
    pub count: Sourced<u32>,
    /// Read data that a complex's link carries in an uncore cycle.
    pub read: Sourced<Bytes>,
    /// Written data that it carries in one.
    pub write: Sourced<Bytes>,
    /// From a complex to another, one way.
    pub crossing: Sourced<Nanos>,
}
