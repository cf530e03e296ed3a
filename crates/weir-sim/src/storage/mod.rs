//! Storage devices: queues of their own, and a port on the mesh that devices share with cores.
//!
//! | file | idea |
//! |---|---|
//! | `drive` | the device: controller, dies, write buffer |
//! | `port` | its link, and the lines that the host has under way for it |
//!
//! How a request goes through them, through core and Table of Requests, is in `engine/storage`.

mod drive;
mod port;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub use drive::{Command, Drive};
pub use port::{Lane, Lines, Next};

use crate::clock::Ps;
use crate::params::{DriveParams, IoParams};

/// One request: the thread that made it, and which of its requests it is.
pub type Whose = (u16, u32);

/// What happens at a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happens {
    /// The doorbell of a request arrived.
    Rung(Whose),
    /// Its command was fetched.
    Known(Whose),
    /// Its data may cross the link.
    Ready(Whose),
    /// The device is done with it.
    Finished(Whose),
    /// Its core is interrupted.
    Interrupt(Whose),
    /// The link to the host is free, or the one from it.
    Inward,
    Outward,
}

/// A device in a machine.
#[derive(Debug)]
pub struct Attached {
    pub params: DriveParams,
    pub drive: Drive,
    /// Lines to the host, and lines from it.
    pub inward: Lane,
    pub outward: Lane,
    /// Requests that the device works on, and those that wait for it.
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

    /// Notes what will happen.
    pub fn schedule(&mut self, at: Ps, what: Happens) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, what)));
    }

    /// What is due, in the order in which it was noted where times are equal.
    pub fn due(&mut self, now: Ps) -> Option<Happens> {
        let Reverse((at, ..)) = self.events.peek()?;
        if *at > now {
            return None;
        }
        self.events.pop().map(|Reverse((.., what))| what)
    }
}
