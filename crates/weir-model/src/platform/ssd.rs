//! A storage device: link, controller, dies.

use super::Sourced;
use crate::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

/// Bytes of the requests that storage devices are measured with.
pub const STORAGE_BLOCK: Bytes = Bytes(4096);

/// A storage device of flash, on a port of the threads' own socket.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageDevice {
    /// The name in expressions: `ssd-nvme4`.
    pub name: String,
    /// One line for lists.
    pub summary: String,
    /// Data that its link to the host carries in each direction, after packet headers.
    pub link: Sourced<GbPerSec>,
    /// Capacity.
    pub capacity: Sourced<Bytes>,
    /// Requests that it works on at once; further ones wait in the host's queues.
    pub commands: Sourced<u32>,
    /// Dies, each of which reads one page at a time.
    pub dies: Sourced<u32>,
    /// How long a die reads.
    pub sense: Sourced<Nanos>,
    /// What was measured of it, alone.
    pub measured: StorageMeasured,
}

/// A storage device as measured with one tenant, without the time of the host's software.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageMeasured {
    /// One read of 4 KiB at random at a time.
    pub read_idle: Sourced<Nanos>,
    /// One write of 4 KiB at a time.
    pub write_idle: Sourced<Nanos>,
    /// The most reads of 4 KiB at random in a second.
    pub random_read: Sourced<u32>,
    /// The most writes of 4 KiB at random in a second, in steady state.
    pub random_write: Sourced<u32>,
    /// Peak sequential reads.
    pub sequential_read: Sourced<GbPerSec>,
    /// Peak sequential writes.
    pub sequential_write: Sourced<GbPerSec>,
}

impl StorageDevice {
    /// Time of one line on its link.
    pub fn line_time(&self) -> Nanos {
        Nanos(LINE_BYTES as f64 / self.link.value.get())
    }
}
