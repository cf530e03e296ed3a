//! A CXL memory device: link, controller, media.

use super::{MeasuredLog, Media, Sourced};
use crate::units::{Bytes, GbPerSec, GigaTransfers, Nanos};

/// A CXL Type-3 device.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// The name in expressions: `cxl-a`.
    pub name: String,
    /// One line for lists.
    pub summary: String,
    /// Where instruments logged it under load.
    pub log: Option<MeasuredLog>,
    /// The link to the host.
    pub link: Link,
    /// What stands between link and DRAM.
    pub controller: Controller,
    /// DRAM speed grade.
    pub media: Sourced<Media>,
    /// DRAM channels.
    pub channels: Sourced<u32>,
    /// Ranks of a channel.
    pub ranks: Sourced<u32>,
    /// Capacity.
    pub capacity: Sourced<Bytes>,
    /// Bytes in a row that one of several interleaved devices keeps.
    pub interleave: Sourced<Bytes>,
    /// What was measured of it, alone.
    pub measured: DeviceMeasured,
}

/// A CXL link of 68-byte flits (CXL 1.1 and 2.0).
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Lanes.
    pub lanes: Sourced<u32>,
    /// Transfer rate of a lane.
    pub rate: Sourced<GigaTransfers>,
    /// Share of slots that carry something when the link is busy: what credits, acknowledgements
    /// and idle slots leave.
    pub efficiency: Sourced<f64>,
}

/// How a controller is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerKind {
    /// A product: deep queues, reorders for open rows.
    Asic,
    /// A prototype in programmable logic: looks over fewer requests for an open row.
    Fpga,
}

impl ControllerKind {
    /// Both kinds.
    pub const ALL: [ControllerKind; 2] = [ControllerKind::Asic, ControllerKind::Fpga];

    /// The name in platform files.
    pub const fn name(self) -> &'static str {
        match self {
            ControllerKind::Asic => "asic",
            ControllerKind::Fpga => "fpga",
        }
    }
}

/// What limits a device's reads, and so which parameter its measured peak sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLimit {
    /// Slots of the link.
    Link,
    /// Lines through the controller.
    Controller,
    /// The DRAM itself: the peak sets nothing.
    Media,
}

impl ReadLimit {
    /// Every limit.
    pub const ALL: [ReadLimit; 3] = [ReadLimit::Link, ReadLimit::Controller, ReadLimit::Media];

    /// The name in platform files.
    pub const fn name(self) -> &'static str {
        match self {
            ReadLimit::Link => "link",
            ReadLimit::Controller => "controller",
            ReadLimit::Media => "media",
        }
    }
}

/// The device controller.
#[derive(Debug, Clone, PartialEq)]
pub struct Controller {
    /// How it is built.
    pub kind: Sourced<ControllerKind>,
    /// Requests it holds; the host's link credits.
    pub queue: Sourced<u32>,
    /// Lines of its write buffer: a write completes when it is in.
    pub write_buffer: Sourced<u32>,
    /// Requests it looks over for one that hits an open row; 1 serves in order.
    pub reorder_window: Sourced<u32>,
    /// Rare long accesses.
    pub tail: Option<Tail>,
}

/// A rare delay of single reads: what refresh management, retries and scrubbing add.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// Share of reads that meet it.
    pub share: Sourced<f64>,
    /// Its mean length; lengths are exponential.
    pub mean: Sourced<Nanos>,
}

/// A device as measured with one tenant on an otherwise idle machine.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceMeasured {
    /// Pointer-chase latency of the whole path from a core of the socket it hangs on.
    pub idle: Sourced<Nanos>,
    /// Peak sequential reads.
    pub read: Option<Sourced<GbPerSec>>,
    /// What that peak is limited by.
    pub read_limit: Sourced<ReadLimit>,
    /// Pointer-chase latency from the other socket, where it was measured.
    pub remote_idle: Option<Sourced<Nanos>>,
    /// What the other socket adds to `idle` where it was not.
    pub remote_hop: Sourced<Nanos>,
    /// Peak sequential reads from the other socket.
    pub remote_read: Sourced<GbPerSec>,
}

impl DeviceMeasured {
    /// Pointer-chase latency from the other socket, measured or not.
    pub fn idle_from_other_socket(&self) -> Nanos {
        match &self.remote_idle {
            Some(measured) => measured.value,
            None => self.idle.value + self.remote_hop.value,
        }
    }
}
