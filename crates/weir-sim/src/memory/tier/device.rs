//! The controller of a CXL device: its link, its credits, its write buffer.

use std::collections::VecDeque;

use super::config::DeviceConfig;
use crate::clock::Ps;
use crate::memory::backing::Backing;
use crate::memory::credits::{Credits, Ticket, Waiting};
use crate::memory::link::Link;

/// A device in use.
pub(super) struct Device {
    pub(super) config: DeviceConfig,
    /// Its ports: one, or one for each host.
    links: Vec<Link>,
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
    /// Lines that it read and that were written to it.
    pub(super) served: [u64; 2],
}

impl Device {
    /// An idle device with this many ports, for this many hosts.
    pub fn new(config: &DeviceConfig, ports: usize, hosts: usize, seed: u64) -> Self {
        Self {
            links: (0..ports).map(|_| Link::new(config.link)).collect(),
            reads: Credits::new(config.queue, hosts),
            writes: Credits::new(config.queue, hosts),
            next_read: 0,
            next_write: 0,
            next_line: 0,
            buffered: 0,
            backing: (config.backing.as_ref()).map(|config| Box::new(Backing::new(config, seed))),
            unbuffered: VecDeque::new(),
            served: [0; 2],
            config: config.clone(),
        }
    }

    /// The link of the port of one of its hosts.
    #[inline]
    pub fn link(&mut self, head: usize) -> &mut Link {
        let port = if self.links.len() == 1 { 0 } else { head };
        &mut self.links[port]
    }

    /// Sends a line of a host that has a credit; returns when the device has it. The controller passes lines no
    /// faster in this direction than in the other.
    pub fn send_line(&mut self, head: usize, at: Ps) -> Ps {
        self.served[1] += 1;
        let mut arrives = self.link(head).send_line(at) + self.config.pass;
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
