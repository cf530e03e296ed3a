//! The server: cores, caches, uncore, its own DRAM, the other socket.

use super::{Link, MeasuredLog, Media, Sourced, keys};
use crate::units::{Bytes, Cycles, GbPerSec, GigaTransfers, Gigahertz, Nanos};

keys! {
    /// A server of one or more equal sockets.
    Host {
        /// The name in expressions: `emr2s`.
        name: header String;
        /// One line for lists.
        summary: header String;
        /// Devices that come with this host when the expression names none.
        default_devices: header Vec<String>;
        /// Where instruments logged its DRAM under load.
        log: header Option<MeasuredLog>;
        /// Sockets, all alike.
        sockets: required u32 = "sockets", "2", 1 to 8;
        /// The cores of one socket.
        core: group Core;
        /// Address translation.
        tlb: group Tlb;
        /// Hardware prefetchers.
        prefetch: group Prefetch;
        /// Bandwidth allocation between a core's L2 and the mesh.
        allocation: group BandwidthAllocation;
        /// First-level data cache.
        l1: group L1Cache;
        /// Second-level cache.
        l2: group L2Cache;
        /// Shared cache of one socket.
        llc: group LastLevelCache;
        /// Mesh, slices and their queues.
        uncore: group Uncore;
        /// The Data Streaming Accelerator of one socket.
        accelerator: group Accelerator;
        /// How devices reach memory, and what a storage request costs the cores.
        io: group DeviceIo;
        /// DRAM of one socket.
        dram: group Dram;
        /// The way to the other socket, where there is one.
        remote: maybe RemoteSocket;
        /// The CXL switch that devices may be behind.
        switch: group Switch;
    }

    /// One core and its bounded resources.
    Core {
        /// Whose defaults apply: the name of a file in `platforms/cores/`; `assumed` where the cores are of another one.
        microarchitecture: required String = "core.microarchitecture", "emerald-rapids";
        /// Physical cores of one socket.
        count: required u32 = "core.count", "32", 1 to 1024;
        /// Core clock while measured.
        clock: required Gigahertz = "core.clock", "2.1 GHz", 0.1 to 10.0;
        /// Instructions in a cycle while every access hits L1, as a share of those of a Skylake core.
        ipc: defaulted f64 = "core.ipc", "1.4", 0.1 to 10.0;
        /// Reorder-buffer entries of a core.
        reorder_buffer: defaulted u32 = "core.reorder_buffer", "512", 8 to 4096;
        /// Instructions that a core's schedulers hold while their operands are missing.
        scheduler: defaulted u32 = "core.scheduler", "97", 4 to 4096;
        /// Physical integer registers of a core: those of its architecture, and results that have not retired.
        integer_registers: defaulted u32 = "core.integer_registers", "280", 17 to 4096;
        /// Physical vector registers.
        vector_registers: defaulted u32 = "core.vector_registers", "320", 33 to 4096;
        /// Store-buffer entries of a core.
        store_buffer: defaulted u32 = "core.store_buffer", "112", 1 to 1024;
        /// Load-buffer entries of a core: loads between dispatch and retirement.
        load_buffer: defaulted u32 = "core.load_buffer", "192", 8 to 4096;
        /// L1 misses a core has in flight; also its write-combining buffers.
        line_fill_buffers: defaulted u32 = "core.line_fill_buffers", "16", 1 to 256;
        /// L2 misses a core has in flight.
        super_queue: defaulted u32 = "core.super_queue", "48", 1 to 512;
        /// The most one core loads from local DRAM, prefetchers on.
        load_peak: defaulted GbPerSec = "core.load_peak", "19 GB/s", 0.1 to 200.0;
        /// The most one core stores to local DRAM, bytes of the program.
        store_peak: defaulted GbPerSec = "core.store_peak", "10 GB/s", 0.1 to 200.0;
        /// How long an unloaded non-temporal store holds its buffer.
        nt_store_hold: defaulted Nanos = "core.nt_store_hold", "50 ns", 1 to 1000;
        /// Rate of movdir64B as a share of non-temporal stores; 0 where the processor lacks the instruction.
        movdir64b_share: defaulted f64 = "core.movdir64b_share", "0.7", 0.0 to 1.0;
        /// From a branch that was predicted wrong to the first instruction after it, core cycles.
        mispredict: defaulted Cycles = "core.mispredict", "17 clk", 1 to 100;
        /// Micro-operations of a line that a stream loads, and of its share of the loop.
        line_uops: defaulted u32 = "core.line_uops", "4", 1 to 64;
        /// The same where each line is chosen at random, which takes its address to be computed.
        random_uops: defaulted u32 = "core.random_uops", "8", 1 to 64;
        /// Time between full lines of a stream that are loaded from L1.
        l1_load_gap: defaulted Cycles = "core.l1_load_gap", "0.5 clk", 0.1 to 100;
        /// Time between lines that are stored to L1.
        l1_store_gap: defaulted Cycles = "core.l1_store_gap", "1 clk", 0.1 to 100;
        /// Time between lines of a stream that come from L2.
        l2_gap: defaulted Cycles = "core.l2_gap", "2 clk", 0.1 to 100;
        /// Time between lines of a stream that come from the last-level cache.
        llc_gap: defaulted Cycles = "core.llc_gap", "6.3 clk", 0.1 to 100;
        /// Time of an atomic instruction on a line in L1.
        atomic: defaulted Cycles = "core.atomic", "20 clk", 1 to 1000;
    }

    /// Address translation.
    Tlb {
        /// Second-level TLB entries.
        entries: defaulted u32 = "tlb.entries", "2048", 16 to 65536;
        /// Page size in use.
        page: defaulted Bytes = "tlb.page", "4 KiB", 4096 to 1073741824;
        /// What a page walk adds to a load.
        walk: defaulted Nanos = "tlb.walk", "30 ns", 0 to 1000;
        /// What the hypervisor's tables add to a page walk in a virtual machine, besides the line that has the last entry; 0
        /// where there is none.
        nested: defaulted Nanos = "tlb.nested", "0 ns", 0 to 1000;
        /// Time of the kernel for the first touch of a page, without the time to clear it.
        fault: defaulted Nanos = "tlb.fault", "500 ns", 0 to 100000;
    }

    /// Hardware prefetchers; both can be switched off.
    Prefetch {
        /// Lines the L1 prefetchers run ahead.
        l1_lines: defaulted u32 = "prefetch.l1_lines", "2", 0 to 64;
        /// Share of the fill buffers that the L1 prefetchers leave to demand.
        l1_spares: defaulted f64 = "prefetch.l1_spares", "0.25", 0.0 to 0.9;
        /// Lines the L2 prefetchers run ahead.
        l2_lines: defaulted u32 = "prefetch.l2_lines", "32", 0 to 256;
        /// The same while many requests wait for the tier of the lines.
        l2_lines_busy: defaulted u32 = "prefetch.l2_lines_busy", "32", 0 to 256;
        /// How many: this share of the entries of all Tables of Requests of a socket.
        busy_at: defaulted f64 = "prefetch.busy_at", "0.048", 0.0 to 1.0;
        /// Accesses in a row that train the L2 streamer.
        training: defaulted u32 = "prefetch.training", "3", 1 to 64;
        /// Lines that the L2 streamer asks for at most when it sees a request.
        l2_degree: defaulted u32 = "prefetch.l2_degree", "2", 1 to 16;
        /// Lines that a core has under way when its L2 streamer stops asking for more.
        l2_outstanding: defaulted u32 = "prefetch.l2_outstanding", "33", 1 to 256;
        /// 1 if the L2 streamer brings lines into the last-level cache alone once `l2_outstanding` are under way
        /// (the firmware setting "LLC prefetch"), 0 if it then waits.
        llc: defaulted u32 = "prefetch.llc", "1", 0 to 1;
    }

    /// Bandwidth allocation (Intel MBA, AMD QoS): a controller between a core's L2 and the mesh that limits the
    /// rate of requests, whatever memory they are for.
    BandwidthAllocation {
        /// Step of the bandwidth allocation between a core and the mesh (MBA), of its scale; 1 where the processor has none.
        step: defaulted f64 = "allocation.step", "0.1", 0.001 to 1.0;
        /// What a tenth of that scale lets a core draw, of `core.load_peak`.
        tenth: defaulted f64 = "allocation.tenth", "0.15", 0.001 to 1.0;
        /// What half of it lets it draw.
        half: defaulted f64 = "allocation.half", "0.7", 0.001 to 1.0;
    }

    /// A core's first-level data cache.
    L1Cache {
        /// Capacity of a core's L1 data cache.
        size: defaulted Bytes = "l1.size", "48 KiB", 1024 to 16777216;
        /// Its associativity.
        ways: defaulted u32 = "l1.ways", "12", 1 to 64;
        /// Load-to-use latency of an L1 hit, core cycles.
        latency: defaulted Cycles = "l1.latency", "5 clk", 1 to 100;
    }

    /// A core's second-level cache.
    L2Cache {
        /// Capacity of a core's L2 cache.
        size: defaulted Bytes = "l2.size", "2 MiB", 16384 to 268435456;
        /// Its associativity.
        ways: defaulted u32 = "l2.ways", "16", 1 to 64;
        /// Load-to-use latency of an L2 hit, core cycles.
        latency: defaulted Cycles = "l2.latency", "15 clk", 1 to 200;
    }

    /// The shared cache of a socket, cut into slices.
    LastLevelCache {
        /// Capacity of one socket's last-level cache.
        size: required Bytes = "llc.size", "160 MiB", 65536 to 17179869184.0;
        /// Its associativity.
        ways: defaulted u32 = "llc.ways", "20", 1 to 64;
        /// Load-to-use latency of a hit.
        latency: defaulted Nanos = "llc.latency", "33 ns", 1 to 1000;
        /// Slices of one socket, each with a caching-and-home agent.
        slices: required u32 = "llc.slices", "32", 1 to 512;
    }

    /// The uncore's queues and clock.
    Uncore {
        /// Clock of mesh and slices.
        clock: defaulted Gigahertz = "uncore.clock", "2.5 GHz", 0.1 to 10.0;
        /// The clock to which mesh and slices are set, where it is not the `clock` at which latencies were measured: they then take as many cycles as there.
        set_clock: optional Gigahertz = "uncore.set_clock", "1.6 GHz", 0.1 to 10.0;
        /// Mesh cycles of one hop.
        hop: defaulted Cycles = "uncore.hop", "1.5 clk", 0 to 64;
        /// Table-of-Requests entries of one slice.
        tor: defaulted u32 = "uncore.tor", "32", 1 to 1024;
        /// Ingress-queue entries of one slice.
        irq: defaulted u32 = "uncore.irq", "24", 1 to 1024;
        /// Eviction buffers of a slice: lines that the last-level cache evicts wait there for memory.
        eviction_buffers: defaulted u32 = "uncore.eviction_buffers", "1", 0 to 1024;
        /// What a just-flushed line adds to the next access.
        flushed_line: defaulted Nanos = "uncore.flushed_line", "165 ns", 0 to 10000;
        /// Share of the lines that another socket reads for ownership and their home then writes again for its memory directory; 0 without a directory.
        directory_write: defaulted f64 = "uncore.directory_write", "1", 0.0 to 1.0;
        /// Sub-NUMA clusters of a socket (SNC): with more than one, `dram` is that of one cluster, whose slices alone keep its lines.
        clusters: defaulted u32 = "uncore.clusters", "1", 1 to 8;
        /// Clusters whose DRAM is a tier of its own, `dram`, `dram1` and so on, each like `dram` but for the way over the mesh; only `dram` where it is left out.
        cluster_tiers: optional u32 = "uncore.cluster_tiers", "4", 1 to 8;
        /// Core complexes, where cores do not share one cache.
        complexes: maybe Complexes;
    }

    /// Core complexes (AMD CCX): each has its own cores, its own part of the last-level cache, and its own link
    /// to the data fabric, on which memory is.
    Complexes {
        /// Core complexes of a socket, each with its own cores and part of the last-level cache; their number is that of `llc.slices`.
        count: paired u32 = "uncore.complexes", "12", 2 to 64;
        /// Read data that a complex's link to memory carries in a cycle of `uncore.clock`.
        read: paired Bytes = "uncore.complex_read", "32 B", 4 to 1024;
        /// Written data that it carries in a cycle.
        write: paired Bytes = "uncore.complex_write", "16 B", 4 to 1024;
        /// From a complex to another, one way.
        crossing: paired Nanos = "uncore.complex_crossing", "40 ns", 1 to 1000;
    }

    /// The Data Streaming Accelerator: a device on the socket that copies by descriptor.
    Accelerator {
        /// Data Streaming Accelerators of one socket; 0 where the processor has none.
        devices: defaulted u32 = "dsa.devices", "1", 0 to 8;
        /// Submissions that one holds.
        work_queue: defaulted u32 = "dsa.work_queue", "128", 1 to 4096;
        /// Lines that it reads and writes at once.
        read_buffers: defaulted u32 = "dsa.read_buffers", "96", 1 to 4096;
        /// Bytes that it moves at most, read and written again.
        peak: defaulted GbPerSec = "dsa.peak", "30 GB/s", 0.1 to 1000.0;
        /// Core time of writing one descriptor.
        describe: defaulted Nanos = "dsa.describe", "10 ns", 0 to 10000;
        /// Core time of one submission.
        submit: defaulted Nanos = "dsa.submit", "50 ns", 0 to 10000;
        /// From the core to the device's portal, and from its completion record to the core.
        portal: defaulted Nanos = "dsa.portal", "100 ns", 0 to 10000;
        /// From a descriptor in the device to its first read: decoding and address translation.
        decode: defaulted Nanos = "dsa.decode", "60 ns", 0 to 10000;
    }

    /// How devices reach memory, and what a storage request costs the cores.
    DeviceIo {
        /// Ways of the last-level cache that devices' writes fill (DDIO); with 0 they go to memory.
        ways: defaulted u32 = "io.ways", "2", 0 to 64, when Storage;
        /// Lines that the devices of one port write at once.
        write_buffer: defaulted u32 = "io.write_buffer", "92", 1 to 4096, when Storage;
        /// Lines that they read at once.
        read_buffer: defaulted u32 = "io.read_buffer", "164", 1 to 4096, when Storage;
        /// Core time of submitting a storage request: system call, block layer, driver.
        submit: defaulted Cycles = "io.submit", "5000 clk", 0 to 1000000, when Storage;
        /// Core time of completing one: interrupt handler, block layer, return to the program.
        complete: defaulted Cycles = "io.complete", "5000 clk", 0 to 1000000, when Storage;
        /// From a completion in memory to the handler on the core.
        interrupt: defaulted Nanos = "io.interrupt", "0.8 us", 0 to 1000000, when Storage;
        /// From the core's register write to the device, one way.
        doorbell: defaulted Nanos = "io.doorbell", "400 ns", 0 to 1000000, when Storage;
        /// Lines of the kernel that the core work of one request finds in no cache of its own.
        lines: defaulted u32 = "io.lines", "8", 0 to 1024, when Storage;
    }

    /// DRAM of one socket, or of one of its sub-NUMA clusters.
    Dram {
        /// Speed grade of the DIMMs.
        media: required Media = "dram.media", "ddr5-4800";
        /// Populated channels of one socket, or of one sub-NUMA cluster.
        channels: required u32 = "dram.channels", "8", 1 to 64;
        /// Ranks of a channel.
        ranks: defaulted u32 = "dram.ranks", "2", 1 to 16;
        /// DRAM of one socket or cluster.
        capacity: required Bytes = "dram.capacity", "128 GiB", 67108864 to 1125899906842624.0;
        /// Read-pending-queue entries of a subchannel; while as many reads wait, nothing is prefetched.
        read_queue: defaulted u32 = "dram.read_queue", "48", 1 to 1024;
        /// Write-pending-queue entries of a subchannel.
        write_queue: defaulted u32 = "dram.write_queue", "48", 1 to 1024;
        /// Share of those entries at which the controller turns from reads to writes.
        drain_at: defaulted f64 = "dram.drain_at", "0.8", 0.05 to 1.0;
        /// Share of them at which it turns back.
        drain_to: defaulted f64 = "dram.drain_to", "0.375", 0.0 to 1.0;
        /// While no read comes, turns of writes begin and end earlier by this share of `drain_to`.
        drain_alone: defaulted f64 = "dram.drain_alone", "0.5", 0.0 to 1.0;
        /// An open row is closed when nothing has used it for this long.
        row_close: defaulted Nanos = "dram.row_close", "600 ns", 1 to 100000;
        /// Measured with one tenant on an otherwise idle machine.
        measured: group DramMeasured;
    }

    /// DRAM as measured with one tenant on an otherwise idle machine.
    DramMeasured {
        /// Measured: pointer-chase latency of the whole path, without page walks.
        idle: required Nanos = "dram.idle", "111 ns", 5 to 100000;
        /// Measured: peak sequential reads of that DRAM.
        read: required GbPerSec = "dram.read", "246 GB/s", 0.1 to 10000.0;
        /// Measured: peak sequential non-temporal stores to it.
        nt_write: derived GbPerSec = "dram.nt_write", "221 GB/s", 0.1 to 10000.0;
    }

    /// DRAM of the other socket as seen from this one.
    RemoteSocket {
        /// Measured: pointer-chase latency to the other socket's DRAM.
        idle: paired Nanos = "remote.idle", "193 ns", 5 to 100000;
        /// Measured: peak sequential reads from there.
        read: paired GbPerSec = "remote.read", "120 GB/s", 0.1 to 10000.0;
        /// Where its channels are fewer than this socket's, and so narrower than the link.
        narrow: maybe NarrowRemote;
    }

    /// The other socket's DRAM where its channels, not the link, limit the reads.
    NarrowRemote {
        /// Populated channels there, where they limit `remote.read` and not the socket link.
        channels: paired u32 = "remote.channels", "1", 1 to 64;
        /// Reads that the socket link carries, where `remote.channels` is given.
        link: paired GbPerSec = "remote.link", "97 GB/s", 0.1 to 10000.0;
    }

    /// A CXL switch between a port of the host and devices.
    Switch {
        /// What a CXL switch (`@switch`) adds to a read, there and back.
        hop: defaulted Nanos = "switch.hop", "150 ns", 1 to 10000, when Switch;
        /// Lanes of its link to the host, which every device behind it shares.
        lanes: defaulted u32 = "switch.lanes", "16", 1 to 16, when Switch;
        /// Transfer rate of one of them.
        rate: defaulted GigaTransfers = "switch.rate", "32 GT/s", 8.0 to 32.0, when Switch;
        /// Share of that link's slots that carry something when it is busy.
        efficiency: defaulted f64 = "switch.efficiency", "0.95", 0.3 to 1.0, when Switch;
        /// When it disappears with all devices behind it, by the time of a run.
        fails_at: optional Nanos = "switch.fails_at", "50 us", 0 to 1000000000000.0, when Switch;
    }
}

impl Uncore {
    /// The clock at which mesh and slices run.
    pub fn running_clock(&self) -> Gigahertz {
        (self.set_clock.as_ref()).map_or(self.clock.value, |set| set.value)
    }

    /// Sub-NUMA clusters whose DRAM is a tier.
    pub fn cluster_tiers(&self) -> u32 {
        self.cluster_tiers.as_ref().map_or(1, |tiers| tiers.value)
    }
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

/// A smaller part of a step is a rounding error.
const ROUNDING: f64 = 1e-6;

impl RemoteSocket {
    /// What the socket link carries.
    pub fn link(&self) -> &Sourced<GbPerSec> {
        self.narrow.as_ref().map_or(&self.read, |n| &n.link)
    }
}

impl Switch {
    /// Its link to the host, which all devices behind it share.
    pub fn upstream(&self) -> Link {
        Link {
            lanes: self.lanes.clone(),
            rate: self.rate.clone(),
            efficiency: self.efficiency.clone(),
        }
    }
}
