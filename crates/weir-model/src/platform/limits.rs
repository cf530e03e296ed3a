//! What physics allows: link slots, channel rates.

use super::{
    Attached, Complexes, Device, Dram, Host, Link, Place, RemoteSocket, STORAGE_BLOCK,
    StorageDevice,
};
use crate::topology::Limits;
use crate::units::{Bytes, GbPerSec, Gigahertz};

/// Share of a lane's bits that carry payload (PCIe 3.0 to 5.0: 128b/130b).
const LINE_CODE: f64 = 128.0 / 130.0;

/// Share of a 68-byte flit that is slots (CXL 1.1: 4 slots of 16 bytes; the rest is protocol id and CRC).
const FLIT_SLOTS: f64 = 64.0 / 68.0;

/// Share of slots that are data when nothing but read data crosses: 4 of a line and a third of
/// a header slot, which holds at most three response headers.
const READ_SLOTS: f64 = 4.0 / (4.0 + 1.0 / 3.0);

/// Share of slots that are data when nothing but writes cross: 4 of a line and its header slot.
const WRITE_SLOTS: f64 = 4.0 / 5.0;

impl Link {
    /// Slots of one direction, in bytes a second, before anything is lost to credits.
    pub fn slot_rate(&self) -> GbPerSec {
        let lanes = f64::from(self.lanes.value);
        GbPerSec(lanes * self.rate.value.get() / 8.0 * LINE_CODE * FLIT_SLOTS)
    }

    /// The most read data that can cross.
    pub fn read_limit(&self) -> GbPerSec {
        self.slot_rate() * READ_SLOTS
    }

    /// The most written data that can cross.
    pub fn write_limit(&self) -> GbPerSec {
        self.slot_rate() * WRITE_SLOTS
    }
}

impl Dram {
    /// All channels at their rate.
    pub fn peak(&self) -> GbPerSec {
        self.media.timing().channel_peak() * f64::from(self.channels.value)
    }

    /// Upper bounds of the socket's own DRAM.
    pub fn limits(&self) -> Limits {
        let peak = self.peak();
        Limits {
            read: peak,
            write: peak,
            total: peak,
            idle: None,
            basis: format!(
                "{} ch x {} x 8 B",
                self.channels.value,
                self.media.timing().rate
            ),
        }
    }
}

impl StorageDevice {
    /// Upper bounds of the device: what its dies and flash give in each direction, which is no more than its link carries.
    pub fn limits(&self) -> Limits {
        let (link, measured) = (self.link.value, &self.measured);
        let read = measured.sequential_read.value.min(link);
        let write = measured.sequential_write.value.min(link);
        Limits {
            read,
            write,
            total: GbPerSec(read.get() + write.get()),
            idle: Some(measured.write_idle.value.min(measured.read_idle.value)),
            basis: format!(
                "its flash, as measured: {read:.1} read, {write:.1} written; {STORAGE_BLOCK} requests; a link of {link} each way"
            ),
        }
    }
}

impl Device {
    /// All channels of the device at their rate.
    pub fn media_peak(&self) -> GbPerSec {
        self.media.timing().channel_peak() * f64::from(self.channels.value)
    }

    /// Upper bounds of the device: its link in each direction, its media, whichever is less.
    pub fn limits(&self) -> Limits {
        let media = self.media_peak();
        let both = (self.link.read_limit() + self.link.write_limit()).min(media);
        let total = (self.measured.total.as_ref()).map_or(both, |total| both.min(total.value));
        let write = (self.measured.write.as_ref()).map_or(total, |write| total.min(write.value));
        Limits {
            read: self.link.read_limit().min(total),
            write: self.link.write_limit().min(write),
            total,
            idle: None,
            basis: format!(
                "x{} at {}: {:.1} of 68 B flit slots a direction (reads 4 of 4 1/3, writes 4 of 5); \
                 media {} ch x {} x 8 B = {:.1}",
                self.link.lanes.value,
                self.link.rate.value,
                self.link.slot_rate(),
                self.channels.value,
                self.media.timing().rate,
                media
            ),
        }
    }
}

impl Link {
    /// Upper bounds of everything that is attached to it.
    pub fn limits(&self, what: &str) -> Limits {
        let (read, write) = (self.read_limit(), self.write_limit());
        Limits {
            read,
            write,
            total: read + write,
            idle: None,
            basis: format!("{what}: x{} at {}", self.lanes.value, self.rate.value),
        }
    }
}

impl RemoteSocket {
    /// What was measured across the socket link, which carries as much each way.
    pub fn limits(&self) -> Limits {
        let link = self.link().value;
        Limits {
            read: link,
            write: link,
            total: link + link,
            idle: None,
            basis: format!("socket link, as measured: {link:.1} a direction"),
        }
    }
}

impl Complexes {
    /// One complex's link: reads and writes at this clock of the fabric.
    pub fn link(&self, clock: Gigahertz) -> (GbPerSec, GbPerSec) {
        let rate = |bytes: Bytes| GbPerSec(bytes.get() as f64 * clock.get());
        (rate(self.read.value), rate(self.write.value))
    }

    /// What all complexes' links carry together.
    pub fn limits(&self, clock: Gigahertz) -> Limits {
        let count = f64::from(self.count.value);
        let (read, write) = self.link(clock);
        Limits {
            read: read * count,
            write: write * count,
            total: (read + write) * count,
            idle: None,
            basis: format!(
                "{} complexes x {} read and {} written at {clock}",
                self.count.value, self.read.value, self.write.value
            ),
        }
    }
}

impl Limits {
    /// The limits of this behind something with its own limits: the lower of both.
    pub(super) fn behind(self, way: &Limits) -> Limits {
        let read = self.read.min(way.read);
        let write = self.write.min(way.write);
        Limits {
            read,
            write,
            total: self.total.min(way.total).min(read + write),
            idle: self.idle,
            basis: format!("{}; {}", self.basis, way.basis),
        }
    }
}

impl Attached {
    /// Upper bounds of a tier: its devices together, behind what they are attached to.
    pub fn limits(&self, host: &Host) -> Limits {
        let one = self.device.limits();
        let ways = f64::from(self.ways);
        let devices = Limits {
            read: one.read * ways,
            write: one.write * ways,
            total: one.total * ways,
            basis: match self.ways {
                1 => one.basis,
                ways => format!("{ways} times: {}", one.basis),
            },
            ..one
        };
        match (self.place, &host.remote) {
            (Place::Local, _) | (Place::Remote, None) => devices,
            (Place::Switch, _) => devices.behind(&host.switch.upstream().limits("switch")),
            (Place::Remote, Some(remote)) => {
                let measured = &self.device.measured;
                let read = measured.remote_read.value;
                let write = read * *measured.remote_writes;
                let mut limits = devices.behind(&remote.limits());
                limits.basis +=
                    &format!("; reads from there, as measured of such devices: {read:.1}");
                limits.read = limits.read.min(read);
                limits.write = limits.write.min(write);
                // Reads and writes share the limit.
                limits.total = limits.total.min(limits.read.max(limits.write));
                limits
            }
        }
    }
}
