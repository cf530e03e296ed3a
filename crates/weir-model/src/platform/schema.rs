//! Every key of a platform file: what it takes, within which bounds, and what it means.
//!
//! Reading, checking, showing and the reference in `docs/platforms.md` all come from these
//! tables.

use super::scalar::Kind;

/// Whether a file must have a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Every file of the kind must have it.
    Required,
    /// Where a file leaves it out, the defaults give it.
    Defaulted,
    /// It may be absent altogether.
    Optional,
    /// It is worked out from other keys where a file leaves it out.
    Derived,
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Dotted, as it stands in the file: `core.count`.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Lowest possible value, in the unit of the kind.
    pub low: f64,
    /// Highest possible value.
    pub high: f64,
    /// Whether a file must have it.
    pub need: Need,
    /// A value as it would be written.
    pub example: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

impl Key {
    /// The part after the last dot.
    pub fn last(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }
}

macro_rules! keys {
    ($($path:literal: $kind:ident $low:literal to $high:literal, $need:ident, $example:literal, $meaning:literal;)+) => {
        &[$(Key {
            path: $path,
            kind: Kind::$kind,
            low: $low as f64,
            high: $high as f64,
            need: Need::$need,
            example: $example,
            meaning: $meaning,
        },)+]
    };
}

pub(crate) use keys;

/// Keys of a file with `kind = "host"`; defaults may give any of them.
pub const HOST_KEYS: &[Key] = keys! {
    "sockets": Count 1 to 8, Required, "2", "Sockets, all alike.";
    "core.microarchitecture": Microarchitecture 0 to 0, Required, "\"emerald-rapids\"", "Whose defaults apply: the name of a file in `platforms/cores/`.";
    "core.count": Count 1 to 1024, Required, "32", "Physical cores of one socket.";
    "core.clock": Frequency 0.1 to 10.0, Required, "\"2.1 GHz\"", "Core clock while measured.";
    "core.reorder_buffer": Count 8 to 4096, Defaulted, "512", "Reorder-buffer entries of a core.";
    "core.scheduler": Count 4 to 4096, Defaulted, "97", "Instructions that a core's schedulers hold while their operands are missing.";
    "core.integer_registers": Count 17 to 4096, Defaulted, "280", "Physical integer registers of a core: those of its architecture, and results that have not retired.";
    "core.vector_registers": Count 33 to 4096, Defaulted, "320", "Physical vector registers.";
    "core.store_buffer": Count 1 to 1024, Defaulted, "112", "Store-buffer entries of a core.";
    "core.load_buffer": Count 8 to 4096, Defaulted, "192", "Load-buffer entries of a core: loads between dispatch and retirement.";
    "core.line_fill_buffers": Count 1 to 256, Defaulted, "16", "L1 misses a core has in flight; also its write-combining buffers.";
    "core.super_queue": Count 1 to 512, Defaulted, "48", "L2 misses a core has in flight.";
    "core.load_peak": Bandwidth 0.1 to 200.0, Defaulted, "\"19 GB/s\"", "The most one core loads from local DRAM, prefetchers on.";
    "core.store_peak": Bandwidth 0.1 to 200.0, Defaulted, "\"10 GB/s\"", "The most one core stores to local DRAM, bytes of the program.";
    "core.nt_store_hold": Time 1 to 1000, Defaulted, "\"50 ns\"", "How long an unloaded non-temporal store holds its buffer.";
    "core.movdir64b_share": Share 0.0 to 1.0, Defaulted, "0.7", "Rate of movdir64B as a share of non-temporal stores; 0 where the processor lacks the instruction.";
    "core.mispredict": Cycles 1 to 100, Defaulted, "\"17 clk\"", "From a branch that was predicted wrong to the first instruction after it, core cycles.";
    "tlb.entries": Count 16 to 65536, Defaulted, "2048", "Second-level TLB entries.";
    "tlb.page": Size 4096 to 1073741824, Defaulted, "\"4 KiB\"", "Page size in use.";
    "tlb.walk": Time 0 to 1000, Defaulted, "\"30 ns\"", "What a page walk adds to a load.";
    "tlb.fault": Time 0 to 100000, Defaulted, "\"500 ns\"", "What the kernel takes for the first touch of a page, beside clearing it.";
    "prefetch.l1_lines": Count 0 to 64, Defaulted, "2", "Lines the L1 prefetchers run ahead.";
    "prefetch.l2_lines": Count 0 to 256, Defaulted, "32", "Lines the L2 prefetchers run ahead.";
    "prefetch.training": Count 1 to 64, Defaulted, "3", "Accesses in a row that train the L2 streamer.";
    "prefetch.l2_degree": Count 1 to 16, Defaulted, "2", "Lines that the L2 streamer asks for at most when it sees a request.";
    "prefetch.l2_outstanding": Count 1 to 256, Defaulted, "33", "Lines that a core has under way when its L2 streamer stops asking for more.";
    "prefetch.late_level": Count 1 to 3, Defaulted, "2", "The last cache as whose miss a load counts that finds its line under way for the L2 prefetcher.";
    "allocation.step": Share 0.001 to 1.0, Defaulted, "0.1", "Step of the bandwidth allocation between a core and the mesh (MBA), of its scale; 1 where the processor has none.";
    "allocation.tenth": Share 0.001 to 1.0, Defaulted, "0.15", "What a tenth of that scale lets a core draw, of `core.load_peak`.";
    "allocation.half": Share 0.001 to 1.0, Defaulted, "0.7", "What half of it lets it draw.";
    "l1.size": Size 1024 to 16777216, Defaulted, "\"48 KiB\"", "Capacity of a core's L1 data cache.";
    "l1.ways": Count 1 to 64, Defaulted, "12", "Its associativity.";
    "l1.latency": Cycles 1 to 100, Defaulted, "\"5 clk\"", "Load-to-use latency of an L1 hit, core cycles.";
    "l2.size": Size 16384 to 268435456, Defaulted, "\"2 MiB\"", "Capacity of a core's L2 cache.";
    "l2.ways": Count 1 to 64, Defaulted, "16", "Its associativity.";
    "l2.latency": Cycles 1 to 200, Defaulted, "\"15 clk\"", "Load-to-use latency of an L2 hit, core cycles.";
    "llc.size": Size 65536 to 17179869184.0, Required, "\"160 MiB\"", "Capacity of one socket's last-level cache.";
    "llc.ways": Count 1 to 64, Defaulted, "20", "Its associativity.";
    "llc.latency": Time 1 to 1000, Defaulted, "\"33 ns\"", "Load-to-use latency of a hit.";
    "llc.slices": Count 1 to 512, Required, "32", "Slices of one socket, each with a caching-and-home agent.";
    "uncore.clock": Frequency 0.1 to 10.0, Defaulted, "\"2.5 GHz\"", "Clock of mesh and slices.";
    "uncore.hop": Cycles 0 to 64, Defaulted, "\"1.5 clk\"", "Mesh cycles of one hop.";
    "uncore.tor": Count 1 to 1024, Defaulted, "32", "Table-of-Requests entries of one slice.";
    "uncore.irq": Count 1 to 1024, Defaulted, "24", "Ingress-queue entries of one slice.";
    "uncore.flushed_line": Time 0 to 10000, Defaulted, "\"165 ns\"", "What a just-flushed line adds to the next access.";
    "uncore.directory_write": Share 0.0 to 1.0, Defaulted, "1", "Share of the lines read for ownership by another socket that their home writes again at once, for its memory directory; 0 where there is none.";
    "uncore.clusters": Count 1 to 8, Defaulted, "1", "Sub-NUMA clusters of a socket (SNC): with more than one, `dram` is that of one cluster, whose slices alone keep its lines.";
    "uncore.complexes": Count 2 to 64, Optional, "12", "Core complexes of a socket, each with its own cores and part of the last-level cache; their number is that of `llc.slices`.";
    "uncore.complex_read": Size 4 to 1024, Optional, "\"32 B\"", "Read data that a complex's link to memory carries in a cycle of `uncore.clock`.";
    "uncore.complex_write": Size 4 to 1024, Optional, "\"16 B\"", "Written data that it carries in a cycle.";
    "uncore.complex_crossing": Time 1 to 1000, Optional, "\"40 ns\"", "From a complex to another, one way.";
    "dsa.devices": Count 0 to 8, Defaulted, "1", "Data Streaming Accelerators of one socket; 0 where the processor has none.";
    "dsa.work_queue": Count 1 to 4096, Defaulted, "128", "Submissions that one holds.";
    "dsa.read_buffers": Count 1 to 4096, Defaulted, "96", "Lines that it reads and writes at once.";
    "dsa.peak": Bandwidth 0.1 to 1000.0, Defaulted, "\"30 GB/s\"", "Bytes that it moves at most, read and written again.";
    "dsa.describe": Time 0 to 10000, Defaulted, "\"10 ns\"", "Core time of writing one descriptor.";
    "dsa.submit": Time 0 to 10000, Defaulted, "\"50 ns\"", "Core time of one submission.";
    "dsa.portal": Time 0 to 10000, Defaulted, "\"100 ns\"", "From the core to the device's portal, and from its completion record to the core.";
    "dsa.decode": Time 0 to 10000, Defaulted, "\"60 ns\"", "From a descriptor in the device to its first read: decoding and address translation.";
    "io.ways": Count 0 to 64, Defaulted, "2", "Ways of the last-level cache that devices' writes fill (DDIO); with 0 they go to memory.";
    "io.write_buffer": Count 1 to 4096, Defaulted, "92", "Lines that the devices of one port write at once.";
    "io.read_buffer": Count 1 to 4096, Defaulted, "164", "Lines that they read at once.";
    "io.submit": Cycles 0 to 1000000, Defaulted, "\"5000 clk\"", "Core time of submitting a storage request: system call, block layer, driver.";
    "io.complete": Cycles 0 to 1000000, Defaulted, "\"5000 clk\"", "Core time of completing one: interrupt handler, block layer, return to the program.";
    "io.interrupt": Time 0 to 1000000, Defaulted, "\"0.8 us\"", "From a completion in memory to the handler on the core.";
    "io.doorbell": Time 0 to 1000000, Defaulted, "\"400 ns\"", "From the core's register write to the device, one way.";
    "io.lines": Count 0 to 1024, Defaulted, "8", "Lines of the kernel that the core work of one request finds in no cache of its own.";
    "dram.media": Media 0 to 0, Required, "\"ddr5-4800\"", "Speed grade of the DIMMs.";
    "dram.channels": Count 1 to 64, Required, "8", "Populated channels of one socket, or of one sub-NUMA cluster.";
    "dram.ranks": Count 1 to 16, Defaulted, "2", "Ranks of a channel.";
    "dram.capacity": Size 67108864 to 1125899906842624.0, Required, "\"128 GiB\"", "DRAM of one socket or cluster.";
    "dram.read_queue": Count 1 to 1024, Defaulted, "48", "Read-pending-queue entries of a subchannel; while as many reads wait, nothing is prefetched.";
    "dram.write_queue": Count 1 to 1024, Defaulted, "48", "Write-pending-queue entries of a subchannel.";
    "dram.idle": Time 5 to 100000, Required, "\"111 ns\"", "Measured: pointer-chase latency of the whole path, without page walks.";
    "dram.read": Bandwidth 0.1 to 10000.0, Required, "\"246 GB/s\"", "Measured: peak sequential reads of that DRAM.";
    "dram.nt_write": Bandwidth 0.1 to 10000.0, Derived, "\"221 GB/s\"", "Measured: peak sequential non-temporal stores to it.";
    "remote.idle": Time 5 to 100000, Optional, "\"193 ns\"", "Measured: pointer-chase latency to the other socket's DRAM.";
    "remote.read": Bandwidth 0.1 to 10000.0, Optional, "\"120 GB/s\"", "Measured: peak sequential reads from there.";
    "remote.channels": Count 1 to 64, Optional, "1", "Populated channels there, where they limit `remote.read` and not the socket link.";
    "remote.link": Bandwidth 0.1 to 10000.0, Optional, "\"97 GB/s\"", "Reads that the socket link carries, where `remote.channels` is given.";
    "switch.hop": Time 1 to 10000, Defaulted, "\"150 ns\"", "What a CXL switch (`@switch`) adds to a read, there and back.";
    "switch.lanes": Count 1 to 16, Defaulted, "16", "Lanes of its link to the host, which every device behind it shares.";
    "switch.rate": TransferRate 8.0 to 32.0, Defaulted, "\"32 GT/s\"", "Transfer rate of one of them.";
    "switch.efficiency": Share 0.3 to 1.0, Defaulted, "0.95", "Share of that link's slots that carry something when it is busy.";
};

/// Keys of a file with `kind = "cxl"`; defaults may give any of them.
pub const DEVICE_KEYS: &[Key] = keys! {
    "controller": Controller 0 to 0, Defaulted, "\"asic\"", "How the controller is built: `asic` or `fpga`. Decides the other defaults.";
    "lanes": Count 1 to 16, Required, "8", "Lanes of the link.";
    "rate": TransferRate 8.0 to 32.0, Defaulted, "\"32 GT/s\"", "Transfer rate of a lane.";
    "efficiency": Share 0.3 to 1.0, Defaulted, "0.95", "Share of the link's slots that carry something when it is busy.";
    "queue": Count 1 to 4096, Defaulted, "48", "Requests the controller holds; the host's link credits.";
    "write_buffer": Count 1 to 65536, Defaulted, "256", "Lines of its write buffer: a write completes when it is in.";
    "reorder_window": Count 1 to 1024, Defaulted, "16", "Requests it looks over for one that hits an open row; 1 serves in order.";
    "media": Media 0 to 0, Required, "\"ddr5-4800\"", "Speed grade of the DRAM behind it.";
    "channels": Count 1 to 32, Required, "2", "DRAM channels behind it.";
    "ranks": Count 1 to 16, Defaulted, "2", "Ranks of a channel.";
    "capacity": Size 67108864 to 1125899906842624.0, Required, "\"128 GiB\"", "Capacity.";
    "interleave": Size 256 to 16384, Defaulted, "\"256 B\"", "Bytes in a row that one of several interleaved devices (`@interleaved`) keeps.";
    "idle": Time 50 to 100000, Required, "\"240 ns\"", "Measured: pointer-chase latency of the whole path from the socket it hangs on.";
    "read": Bandwidth 0.1 to 1000.0, Optional, "\"26 GB/s\"", "Measured: peak sequential reads.";
    "read_limit": ReadLimit 0 to 0, Defaulted, "\"link\"", "What limits that peak, so that it sets the right parameter: `link`, `controller` or `media`.";
    "remote_idle": Time 50 to 100000, Optional, "\"375 ns\"", "Measured: pointer-chase latency from the other socket.";
    "remote_hop": Time 1 to 100000, Defaulted, "\"171 ns\"", "What the other socket adds to `idle` where `remote_idle` is not given.";
    "remote_read": Bandwidth 0.1 to 1000.0, Defaulted, "\"14 GB/s\"", "Measured: peak sequential reads from the other socket.";
    "tail.share": Share 0.0 to 0.5, Defaulted, "0.001", "Share of reads that meet a rare long delay.";
    "tail.mean": Time 1 to 1000000, Defaulted, "\"150 ns\"", "Mean of that delay; lengths are exponential.";
};

/// Keys of a file with `kind = "ssd"`.
pub const STORAGE_KEYS: &[Key] = keys! {
    "link": Bandwidth 0.01 to 1000.0, Required, "\"6.9 GB/s\"", "Data that its link carries in each direction, after packet headers.";
    "capacity": Size 67108864 to 1125899906842624.0, Required, "\"3.84 TB\"", "Capacity.";
    "commands": Count 1 to 65536, Required, "1024", "Requests that it works on at once; further ones wait in the host's queues.";
    "dies": Count 1 to 4096, Required, "128", "Dies, each of which reads one page at a time.";
    "sense": Time 100 to 10000000, Required, "\"55 us\"", "How long a die reads a page.";
    "read_idle": Time 1000 to 100000000, Required, "\"80 us\"", "Measured: one read of 4 KiB at random at a time, without the host's software.";
    "write_idle": Time 1000 to 100000000, Required, "\"12 us\"", "Measured: one write of 4 KiB at a time, without the host's software.";
    "random_read": Count 100 to 100000000, Required, "1000000", "Measured: the most reads of 4 KiB at random in a second.";
    "random_write": Count 100 to 100000000, Required, "200000", "Measured: the most writes of 4 KiB at random in a second, in steady state.";
    "sequential_read": Bandwidth 0.01 to 1000.0, Required, "\"6.8 GB/s\"", "Measured: peak sequential reads.";
    "sequential_write": Bandwidth 0.01 to 1000.0, Required, "\"4 GB/s\"", "Measured: peak sequential writes.";
};

/// What a file describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A server.
    Host,
    /// A CXL device.
    Device,
    /// A storage device.
    Storage,
    /// What hosts of one microarchitecture, or all hosts, have in common.
    HostDefaults,
    /// What devices with one kind of controller, or all devices, have in common.
    DeviceDefaults,
}

impl FileKind {
    /// Every kind.
    pub const ALL: [FileKind; 5] = [
        FileKind::Host,
        FileKind::Device,
        FileKind::Storage,
        FileKind::HostDefaults,
        FileKind::DeviceDefaults,
    ];

    /// What stands behind `kind`.
    pub const fn name(self) -> &'static str {
        match self {
            FileKind::Host => "host",
            FileKind::Device => "cxl",
            FileKind::Storage => "ssd",
            FileKind::HostDefaults => "host-defaults",
            FileKind::DeviceDefaults => "cxl-defaults",
        }
    }

    /// In words.
    pub const fn describe(self) -> &'static str {
        match self {
            FileKind::Host => "a host",
            FileKind::Device => "a CXL device",
            FileKind::Storage => "a storage device",
            FileKind::HostDefaults => "the defaults of hosts",
            FileKind::DeviceDefaults => "the defaults of CXL devices",
        }
    }

    /// Its keys.
    pub const fn keys(self) -> &'static [Key] {
        match self {
            FileKind::Host | FileKind::HostDefaults => HOST_KEYS,
            FileKind::Device | FileKind::DeviceDefaults => DEVICE_KEYS,
            FileKind::Storage => STORAGE_KEYS,
        }
    }

    /// The keys that a file of this kind must have.
    pub fn required(self) -> impl Iterator<Item = &'static Key> {
        let whole = matches!(self, FileKind::Host | FileKind::Device | FileKind::Storage);
        self.keys()
            .iter()
            .filter(move |key| whole && key.need == Need::Required)
    }

    /// The key of this path.
    pub(crate) fn key(self, path: &str) -> Option<&'static Key> {
        self.keys().iter().find(|key| key.path == path)
    }

    /// The sections that its keys form.
    pub(crate) fn sections(self) -> impl Iterator<Item = &'static str> {
        self.keys()
            .iter()
            .filter_map(|key| key.path.rsplit_once('.').map(|(section, _)| section))
    }

    /// Whether keys live under this section.
    pub(crate) fn is_section(self, path: &str) -> bool {
        self.sections().any(|section| section == path)
    }
}
