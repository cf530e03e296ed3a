//! A storage device: link, controller, dies.

use super::keys;
use crate::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

/// Bytes of the requests that storage devices are measured with.
pub const STORAGE_BLOCK: Bytes = Bytes(4096);

keys! {
    /// A storage device of flash, on a port of the threads' own socket.
    StorageDevice {
        /// The name in expressions: `ssd-nvme4`.
        name: header String;
        /// One line for lists.
        summary: header String;
        /// Data that its link carries in each direction, after packet headers.
        link: required GbPerSec = "link", "6.9 GB/s", 0.01 to 1000.0;
        /// Capacity.
        capacity: required Bytes = "capacity", "3.84 TB", 67108864 to 1125899906842624.0;
        /// Requests that it works on at once; further ones wait in the host's queues.
        commands: required u32 = "commands", "1024", 1 to 65536;
        /// Dies, each of which reads one page at a time.
        dies: required u32 = "dies", "128", 1 to 4096;
        /// How long a die reads a page.
        sense: required Nanos = "sense", "55 us", 100 to 10000000;
        /// Measured with one tenant on an otherwise idle machine.
        measured: group StorageMeasured;
    }

    /// A storage device as measured with one tenant, without the time of the host's software.
    StorageMeasured {
        /// Measured: one read of 4 KiB at random at a time, without the host's software.
        read_idle: required Nanos = "read_idle", "80 us", 1000 to 100000000;
        /// Measured: one write of 4 KiB at a time, without the host's software.
        write_idle: required Nanos = "write_idle", "12 us", 1000 to 100000000;
        /// Measured: the most reads of 4 KiB at random in a second.
        random_read: required u32 = "random_read", "1000000", 100 to 100000000;
        /// Measured: the most writes of 4 KiB at random in a second, in steady state.
        random_write: required u32 = "random_write", "200000", 100 to 100000000;
        /// Measured: peak sequential reads.
        sequential_read: required GbPerSec = "sequential_read", "6.8 GB/s", 0.01 to 1000.0;
        /// Measured: peak sequential writes.
        sequential_write: required GbPerSec = "sequential_write", "4 GB/s", 0.01 to 1000.0;
    }
}

impl StorageDevice {
    /// Time of one line on its link.
    pub fn line_time(&self) -> Nanos {
        Nanos(LINE_BYTES as f64 / self.link.value.get())
    }
}
