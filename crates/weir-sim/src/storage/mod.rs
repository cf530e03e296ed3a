//! Storage devices: their own queues, and a port on the mesh that devices share with cores.
//!
//! | file | content |
//! |---|---|
//! | `drive` | the device: controller, dies, write buffer |
//! | `port` | its link, and the lines that the host has outstanding for it |
//!
//! `engine/storage` has the path of a request through them, through core and Table of Requests.

mod drive;
mod port;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub use drive::{Command, Drive};
pub use port::{Lane, Lines, Next};

use crate::clock::Ps;
use crate::params::{DriveParams, IoParams};

/// One request: its thread, and its number among the thread's requests.
pub type Whose = (u16, u32);

/// An event of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happens {
    /// The doorbell of a request arrived.
    Rung(Whose),
    /// Its command was fetched.
    Known(Whose),
    /// Its data may cross the link.
    Ready(Whose),
    /// The device has finished it.
    Finished(Whose),
    /// It interrupts its core.
    Interrupt(Whose),
    /// The link to the host, or the link from it, is free.
    Inward,
    Outward,
}

/// A device in a machine.
#[derive(Debug)]
pub struct Attached {
    pub params: DriveParams,
    pub drive: Drive,
    /// Lines to the host, and lines from the host.
    pub inward: Lane,
    pub outward: Lane,
    /// Requests that the device handles, and requests that wait for it.
    pub taken: u32,
    pub waiting: VecDeque<Whose>,
    events: BinaryHeap<Reverse<(Ps, u64, Happens)>>,
    number: u64,
}

impl Attached {
    /// An idle device on its port.
    pub fn new(params: DriveParams, io: &IoParams) -> Self {
        Self {
            drive: Drive::new(params),
            inward: Lane::new(io.writes, params.link_line),
            outward: Lane::new(io.reads, params.link_line),
            taken: 0,
            waiting: VecDeque::new(),
            events: BinaryHeap::new(),
            number: 0,
            params,
        }
    }

    /// Records a future event.
    pub fn schedule(&mut self, at: Ps, what: Happens) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, what)));
    }

    /// The due events. Events of equal time come in the order in which they were recorded.
    pub fn due(&mut self, now: Ps) -> Option<Happens> {
        let Reverse((at, ..)) = self.events.peek()?;
        if *at > now {
            return None;
        }
        self.events.pop().map(|Reverse((.., what))| what)
    }
}
