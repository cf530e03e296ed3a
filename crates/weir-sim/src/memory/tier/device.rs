//! The controller of a CXL device: its link, its credits, its write buffer.

use std::collections::VecDeque;

use super::{DeviceConfig, Ticket, Waiting};
use crate::clock::Ps;
use crate::memory::backing::Backing;
use crate::memory::credits::Credits;
use crate::memory::link::Link;

/// A device in use.
pub(super) struct Device {
    pub(super) config: DeviceConfig,
    pub(super) link: Link,
    pub(super) reads: Credits<Waiting>,
    pub(super) writes: Credits<Waiting>,
    pub(super) next_read: Ps,
    pub(super) next_write: Ps,
    /// The same for lines of either direction.
    pub(super) next_line: Ps,
    /// Lines in its write buffer.
    pub(super) buffered: u32,
    /// The medium of which its DRAM is a cache, if it is one.
    pub(super) backing: Option<Box<Backing>>,
    /// Lines that came while the write buffer was full: request, line, time.
    pub(super) unbuffered: VecDeque<(Ticket, u64, Ps)>,
}

impl Device {
    /// An idle device.
    pub fn new(config: &DeviceConfig, seed: u64) -> Self {
        Self {
            link: Link::new(config.link),
            reads: Credits::new(config.queue),
            writes: Credits::new(config.queue),
            next_read: 0,
            next_write: 0,
            next_line: 0,
            buffered: 0,
            backing: (config.backing.as_ref()).map(|config| Box::new(Backing::new(config, seed))),
            unbuffered: VecDeque::new(),
            config: config.clone(),
        }
    }

    /// Sends a line that has a credit; returns when the device has it. The controller passes lines no faster
    /// in this direction than in the other.
    pub fn send_line(&mut self, at: Ps) -> Ps {
        let mut arrives = self.link.send_line(at) + self.config.pass;
        if self.config.gap > 0 {
            arrives = arrives.max(self.next_write);
            self.next_write = arrives + self.config.gap;
        }
        self.pass(arrives)
    }

    /// When a line of either direction passes the controller.
    #[inline]
    pub fn pass(&mut self, at: Ps) -> Ps {
        if self.config.total_gap == 0 {
            return at;
        }
        let at = at.max(self.next_line);
        self.next_line = at + self.config.total_gap;
        at
    }
}
