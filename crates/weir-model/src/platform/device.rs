//! A CXL memory device: link, controller, media.

use super::{Backing, ControllerKind, MeasuredLog, Media, ReadLimit, keys};
use crate::units::{Bytes, GbPerSec, GigaTransfers, Nanos};

keys! {
    /// A CXL Type-3 device.
    Device {
        /// The name in expressions: `cxl-a`.
        name: header String;
        /// One line for lists.
        summary: header String;
        /// Where instruments logged it under load.
        log: header Option<MeasuredLog>;
        /// How the controller is built: `asic` or `fpga`. Decides the other defaults.
        kind: defaulted ControllerKind = "controller", "asic";
        /// The link to the host.
        link: group Link;
        /// What is between link and DRAM.
        controller: group Controller;
        /// Speed grade of the DRAM behind it.
        media: required Media = "media", "ddr5-4800";
        /// DRAM channels behind it.
        channels: required u32 = "channels", "2", 1 to 32;
        /// Ranks of a channel.
        ranks: defaulted u32 = "ranks", "2", 1 to 16;
        /// Capacity.
        capacity: required Bytes = "capacity", "128 GiB", 67108864 to 1125899906842624.0;
        /// Bytes in a row that one of several interleaved devices (`@interleaved`) keeps.
        interleave: defaulted Bytes = "interleave", "256 B", 256 to 16384, when Interleaved;
        /// When it disappears from its hosts, by the time of a run.
        fails_at: optional Nanos = "fails_at", "50 us", 0 to 1000000000000.0;
        /// Measured with one tenant on an otherwise idle machine.
        measured: group DeviceMeasured;
        /// Rare long delays, where they are known.
        tail: maybe Tail;
        /// The medium of which the DRAM is a cache, where it is one.
        backing: maybe Backing;
    }

    /// A CXL link of 68-byte flits (CXL 1.1 and 2.0).
    Link {
        /// Lanes of the link.
        lanes: required u32 = "lanes", "8", 1 to 16;
        /// Transfer rate of a lane.
        rate: defaulted GigaTransfers = "rate", "32 GT/s", 8.0 to 32.0;
        /// Share of the link's slots that carry something when it is busy.
        efficiency: defaulted f64 = "efficiency", "0.95", 0.3 to 1.0;
    }

    /// The device controller.
    Controller {
        /// Reads that the controller holds, and as many written lines: the host's link credits of each.
        queue: defaulted u32 = "queue", "48", 1 to 4096;
        /// Lines of its write buffer: a write completes when it is in.
        write_buffer: defaulted u32 = "write_buffer", "256", 1 to 65536;
        /// Requests it looks over for one that hits an open row; 1 serves in order.
        reorder_window: defaulted u32 = "reorder_window", "16", 1 to 1024;
        /// Write-queue entries of a subchannel, behind the write buffer.
        write_queue: defaulted u32 = "write_queue", "48", 1 to 1024;
        /// Share of those entries at which the controller turns from reads to writes.
        drain_at: defaulted f64 = "drain_at", "0.5", 0.05 to 1.0;
        /// Share of them at which it turns back.
        drain_to: defaulted f64 = "drain_to", "0.1", 0.0 to 1.0;
        /// While no read comes, turns of writes begin and end earlier by this share of `drain_to`.
        drain_alone: defaulted f64 = "drain_alone", "0.5", 0.0 to 1.0;
        /// An open row is closed when nothing has used it for this long.
        row_close: defaulted Nanos = "row_close", "600 ns", 1 to 100000;
        /// Share of the path between home agent and device that is on the host's side of the link.
        host_share: defaulted f64 = "host_share", "0.5", 0.0 to 1.0;
    }

    /// A device as measured with one tenant on an otherwise idle machine.
    DeviceMeasured {
        /// Measured: pointer-chase latency of the whole path from the socket that it is attached to.
        idle: required Nanos = "idle", "240 ns", 50 to 100000;
        /// Measured: peak sequential reads.
        read: optional GbPerSec = "read", "26 GB/s", 0.1 to 1000.0;
        /// Written data that the link carries, where the lines of a flit do not set it.
        write: optional GbPerSec = "write", "13 GB/s", 0.1 to 1000.0;
        /// Sequential reads that its DRAM sustains, where that is less than the standard's timing allows.
        media_read: optional GbPerSec = "media_read", "31 GB/s", 0.1 to 1000.0;
        /// The same of writes.
        media_write: optional GbPerSec = "media_write", "28 GB/s", 0.1 to 1000.0;
        /// Reads and writes together that the controller passes, where they share a limit there.
        total: optional GbPerSec = "total", "40 GB/s", 0.1 to 1000.0;
        /// What a load of a mapping that no cache keeps (`uc_ld`) takes longer than one through CXL.mem. Without it the device has no such mapping.
        uncached: optional Nanos = "uncached", "1 us", 0 to 10000000;
        /// What limits `read`, so that it sets the right parameter: `link`, `controller` or `media`.
        read_limit: defaulted ReadLimit = "read_limit", "link";
        /// Measured: pointer-chase latency from the other socket.
        remote_idle: optional Nanos = "remote_idle", "375 ns", 50 to 100000, when Remote;
        /// What the other socket adds to `idle` where `remote_idle` is not given.
        remote_hop: defaulted Nanos = "remote_hop", "171 ns", 1 to 100000, when RemoteUnmeasured;
        /// Measured: peak sequential reads from the other socket.
        remote_read: defaulted GbPerSec = "remote_read", "14 GB/s", 0.1 to 1000.0, when Remote;
        /// Measured: peak non-temporal stores from the other socket, as a multiple of `remote_read`. Reads and
        /// writes from there share one limit.
        remote_writes: defaulted f64 = "remote_writes", "1.4", 0.1 to 10.0, when Remote;
        /// Measured: what reads from the other socket take less time while non-temporal stores from there leave
        /// entries free in the snoop filter of the device's socket. Otherwise an entry is evicted for each.
        remote_evict: defaulted Nanos = "remote_evict", "110 ns", 1 to 10000, when Remote;
        /// Entries of one part of that filter that non-temporal stores leave free at most.
        remote_free: defaulted u32 = "remote_free", "4", 1 to 255, when Remote;
    }

    /// A rare delay of single reads: what refresh management, retries and scrubbing add.
    Tail {
        /// Share of reads that meet a rare long delay.
        share: defaulted f64 = "tail.share", "0.001", 0.0 to 0.5;
        /// Mean of that delay; lengths are exponential.
        mean: defaulted Nanos = "tail.mean", "150 ns", 1 to 1000000;
        /// Share of that delay whose length is exponential; the rest is the same each time.
        spread: defaulted f64 = "tail.spread", "1", 0.0 to 1.0;
    }
}

impl DeviceMeasured {
    /// Pointer-chase latency from the other socket, measured or not.
    pub fn idle_from_other_socket(&self) -> Nanos {
        match &self.remote_idle {
            Some(measured) => measured.value,
            None => self.idle.value + self.remote_hop.value,
        }
    }

    /// What a read from the other socket waits for an entry of the snoop filter: no more than the other socket adds.
    pub fn remote_eviction(&self) -> Nanos {
        let hop = self.idle_from_other_socket() - self.idle.value;
        self.remote_evict.value.min(hop)
    }
}
