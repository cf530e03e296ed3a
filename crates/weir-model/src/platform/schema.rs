//! Every key of a platform file: what it takes, within which bounds, and what it means.
//!
//! Reading, checking, showing and the reference in `docs/platforms.md` all come from these two
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
    ($($path:literal: $kind:ident $low:literal to $high:literal, $need:ident, $meaning:literal;)+) => {
        &[$(Key {
            path: $path,
            kind: Kind::$kind,
            low: $low as f64,
            high: $high as f64,
            need: Need::$need,
            meaning: $meaning,
        },)+]
    };
}

/// Keys of a file with `kind = "host"`; defaults may give any of them.
pub const HOST_KEYS: &[Key] = keys! {
    "sockets": Count 1 to 8, Required, "Sockets, all alike.";
    "core.microarchitecture": Microarchitecture 0 to 0, Required, "Whose defaults apply: the name of a file in `platforms/cores/`.";
    "core.count": Count 1 to 1024, Required, "Physical cores of one socket.";
    "core.clock": Frequency 0.1 to 10.0, Required, "Core clock while measured.";
    "core.reorder_buffer": Count 8 to 4096, Defaulted, "Reorder-buffer entries of a core.";
    "core.store_buffer": Count 1 to 1024, Defaulted, "Store-buffer entries of a core.";
    "core.line_fill_buffers": Count 1 to 256, Defaulted, "L1 misses a core has in flight; also its write-combining buffers.";
    "core.super_queue": Count 1 to 512, Defaulted, "L2 misses a core has in flight.";
    "core.load_peak": Bandwidth 0.1 to 200.0, Defaulted, "The most one core loads from local DRAM, prefetchers on.";
    "core.store_peak": Bandwidth 0.1 to 200.0, Defaulted, "The most one core stores to local DRAM, bytes of the program.";
    "core.nt_store_hold": Time 1 to 1000, Defaulted, "How long an unloaded non-temporal store holds its buffer.";
    "core.movdir64b_share": Share 0.01 to 1.0, Defaulted, "Rate of movdir64B as a share of non-temporal stores.";
    "tlb.entries": Count 16 to 65536, Defaulted, "Second-level TLB entries.";
    "tlb.page": Size 4096 to 1073741824, Defaulted, "Page size in use.";
    "tlb.walk": Time 0 to 1000, Defaulted, "What a page walk adds to a load.";
    "prefetch.l1_lines": Count 0 to 64, Defaulted, "Lines the L1 prefetchers run ahead.";
    "prefetch.l2_lines": Count 0 to 256, Defaulted, "Lines the L2 prefetchers run ahead.";
    "prefetch.training": Count 1 to 64, Defaulted, "Accesses in a row that train the L2 streamer.";
    "l1.size": Size 1024 to 16777216, Defaulted, "Capacity of a core's L1 data cache.";
    "l1.ways": Count 1 to 64, Defaulted, "Its associativity.";
    "l1.latency": Cycles 1 to 100, Defaulted, "Load-to-use latency of an L1 hit, core cycles.";
    "l2.size": Size 16384 to 268435456, Defaulted, "Capacity of a core's L2 cache.";
    "l2.ways": Count 1 to 64, Defaulted, "Its associativity.";
    "l2.latency": Cycles 1 to 200, Defaulted, "Load-to-use latency of an L2 hit, core cycles.";
    "llc.size": Size 65536 to 17179869184.0, Required, "Capacity of one socket's last-level cache.";
    "llc.ways": Count 1 to 64, Defaulted, "Its associativity.";
    "llc.latency": Time 1 to 1000, Defaulted, "Load-to-use latency of a hit.";
    "llc.slices": Count 1 to 512, Required, "Slices of one socket, each with a caching-and-home agent.";
    "uncore.clock": Frequency 0.1 to 10.0, Defaulted, "Clock of mesh and slices.";
    "uncore.hop": Cycles 0 to 64, Defaulted, "Mesh cycles of one hop.";
    "uncore.tor": Count 1 to 1024, Defaulted, "Table-of-Requests entries of one slice.";
    "uncore.irq": Count 1 to 1024, Defaulted, "Ingress-queue entries of one slice.";
    "uncore.flushed_line": Time 0 to 10000, Defaulted, "What a just-flushed line adds to the next access.";
    "dram.media": Media 0 to 0, Required, "Speed grade of the DIMMs.";
    "dram.channels": Count 1 to 64, Required, "Populated channels of one socket.";
    "dram.ranks": Count 1 to 16, Defaulted, "Ranks of a channel.";
    "dram.capacity": Size 67108864 to 1125899906842624.0, Required, "DRAM of one socket.";
    "dram.write_queue": Count 1 to 1024, Defaulted, "Write-pending-queue entries of a subchannel.";
    "dram.idle": Time 5 to 100000, Required, "Measured: pointer-chase latency of the whole path, without page walks.";
    "dram.read": Bandwidth 0.1 to 10000.0, Required, "Measured: peak sequential reads of one socket.";
    "dram.nt_write": Bandwidth 0.1 to 10000.0, Derived, "Measured: peak sequential non-temporal stores of one socket.";
    "remote.idle": Time 5 to 100000, Optional, "Measured: pointer-chase latency to the other socket's DRAM.";
    "remote.read": Bandwidth 0.1 to 10000.0, Optional, "Measured: peak sequential reads across the socket link.";
};

/// Keys of a file with `kind = "cxl"`; defaults may give any of them.
pub const DEVICE_KEYS: &[Key] = keys! {
    "controller": Controller 0 to 0, Defaulted, "How the controller is built: `asic` or `fpga`. Decides the other defaults.";
    "lanes": Count 1 to 16, Required, "Lanes of the link.";
    "rate": TransferRate 8.0 to 64.0, Defaulted, "Transfer rate of a lane.";
    "efficiency": Share 0.3 to 1.0, Defaulted, "Share of the link's slots that carry something when it is busy.";
    "queue": Count 1 to 4096, Defaulted, "Requests the controller holds; the host's link credits.";
    "write_buffer": Count 1 to 65536, Defaulted, "Lines of its write buffer: a write completes when it is in.";
    "reorder_window": Count 1 to 1024, Defaulted, "Requests it looks over for one that hits an open row; 1 serves in order.";
    "media": Media 0 to 0, Required, "Speed grade of the DRAM behind it.";
    "channels": Count 1 to 32, Required, "DRAM channels behind it.";
    "ranks": Count 1 to 16, Defaulted, "Ranks of a channel.";
    "capacity": Size 67108864 to 1125899906842624.0, Required, "Capacity.";
    "idle": Time 50 to 100000, Required, "Measured: pointer-chase latency of the whole path from the socket it hangs on.";
    "read": Bandwidth 0.1 to 1000.0, Optional, "Measured: peak sequential reads.";
    "read_limit": ReadLimit 0 to 0, Defaulted, "What limits that peak, so that it sets the right parameter: `link`, `controller` or `media`.";
    "remote_idle": Time 50 to 100000, Optional, "Measured: pointer-chase latency from the other socket.";
    "remote_read": Bandwidth 0.1 to 1000.0, Optional, "Measured: peak sequential reads from the other socket.";
    "tail.share": Share 0.0 to 0.5, Defaulted, "Share of reads that meet a rare long delay.";
    "tail.mean": Time 1 to 1000000, Defaulted, "Mean of that delay; lengths are exponential.";
};

/// What a file describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A server.
    Host,
    /// A CXL device.
    Device,
    /// What hosts of one microarchitecture, or all hosts, have in common.
    HostDefaults,
    /// What devices with one kind of controller, or all devices, have in common.
    DeviceDefaults,
}

impl FileKind {
    /// Every kind.
    pub const ALL: [FileKind; 4] = [
        FileKind::Host,
        FileKind::Device,
        FileKind::HostDefaults,
        FileKind::DeviceDefaults,
    ];

    /// What stands behind `kind`.
    pub const fn name(self) -> &'static str {
        match self {
            FileKind::Host => "host",
            FileKind::Device => "cxl",
            FileKind::HostDefaults => "host-defaults",
            FileKind::DeviceDefaults => "cxl-defaults",
        }
    }

    /// In words.
    pub const fn describe(self) -> &'static str {
        match self {
            FileKind::Host => "a host",
            FileKind::Device => "a CXL device",
            FileKind::HostDefaults => "the defaults of hosts",
            FileKind::DeviceDefaults => "the defaults of CXL devices",
        }
    }

    /// Its keys.
    pub const fn keys(self) -> &'static [Key] {
        match self {
            FileKind::Host | FileKind::HostDefaults => HOST_KEYS,
            FileKind::Device | FileKind::DeviceDefaults => DEVICE_KEYS,
        }
    }

    /// The keys that a file of this kind must have.
    pub fn required(self) -> impl Iterator<Item = &'static Key> {
        let whole = matches!(self, FileKind::Host | FileKind::Device);
        self.keys()
            .iter()
            .filter(move |key| whole && key.need == Need::Required)
    }

    /// The key of this path.
    pub(crate) fn key(self, path: &str) -> Option<&'static Key> {
        self.keys().iter().find(|key| key.path == path)
    }

    /// Whether keys live under this section.
    pub(crate) fn is_section(self, path: &str) -> bool {
        self.keys().iter().any(|key| {
            key.path
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('.'))
        })
    }
}
