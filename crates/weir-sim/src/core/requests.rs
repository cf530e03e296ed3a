//! A thread that sends requests to a storage device: the outstanding requests, and the work of its core for
//! them.

use std::collections::VecDeque;

use super::walk::Walk;
use crate::clock::Ps;
use crate::line::Place;
use crate::storage::Command;

/// The current work of the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Submit,
    Complete,
}

/// A piece of work in progress.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    pub work: Work,
    /// The request.
    pub slot: u32,
    /// Lines of the kernel that it must still read, one after the other, and whether it waits for one.
    pub kernel: u32,
    pub waits: bool,
    /// Lines that it must still copy between kernel and program.
    pub copy: u64,
    /// Lines of the copy that are outstanding.
    pub copying: u32,
}

/// A request.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    began: Ps,
    number: u64,
    /// Lines that have not crossed the link.
    left: u64,
}

/// The requests of a thread.
#[derive(Debug)]
pub struct Requests {
    /// Position of the device.
    pub device: usize,
    /// Lines of one request.
    pub lines: u64,
    /// Whether they write, and whether their addresses follow each other.
    pub writes: bool,
    pub in_order: bool,
    /// Whether the kernel copies the data.
    pub buffered: bool,
    /// The current work of the core.
    pub task: Option<Task>,
    /// Lines of the kernel among the thread's own, before its buffers.
    kernel: u64,
    touched: u64,
    slots: Vec<Slot>,
    /// Requests that are not outstanding, and requests whose completion waits for the core.
    idle: VecDeque<u32>,
    done: VecDeque<u32>,
    number: u64,
    chance: u64,
}

impl Requests {
    /// `depth` requests of `lines` lines each, none of them outstanding. The first `kernel` lines of the
    /// thread's memory belong to the kernel.
    pub fn new(device: usize, lines: u64, depth: u32, kernel: u64, chance: u64) -> Self {
        Self {
            device,
            lines,
            writes: false,
            in_order: false,
            buffered: false,
            task: None,
            kernel,
            touched: 0,
            slots: vec![Slot::default(); depth as usize],
            idle: (0..depth).collect(),
            done: VecDeque::new(),
            number: 0,
            chance,
        }
    }

    /// Requests that the thread keeps outstanding.
    pub fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The next work of the core, if there is any. Completed requests come first, since the program cannot
    /// continue without them.
    pub fn next_work(&mut self) -> Option<(Work, u32)> {
        let complete = self.done.pop_front().map(|slot| (Work::Complete, slot));
        complete.or_else(|| self.idle.pop_front().map(|slot| (Work::Submit, slot)))
    }

    /// A request begins.
    pub fn begin(&mut self, slot: u32, now: Ps) {
        self.number += 1;
        self.slots[slot as usize] = Slot {
            began: now,
            number: self.number,
            left: self.lines,
        };
    }

    /// The request as the device sees it.
    pub fn command(&self, slot: u32) -> Command {
        Command {
            writes: self.writes,
            in_order: self.in_order,
            lines: self.lines,
            chance: crate::rng::mix(self.chance ^ self.slots[slot as usize].number),
        }
    }

    /// One more line of a request has crossed; returns whether it was the last.
    pub fn crossed(&mut self, slot: u32) -> bool {
        let left = &mut self.slots[slot as usize].left;
        *left -= 1;
        *left == 0
    }

    /// Its core was interrupted.
    pub fn interrupt(&mut self, slot: u32) {
        self.done.push_back(slot);
    }

    /// A request ends at `now`; returns its duration.
    pub fn end(&mut self, slot: u32, now: Ps) -> Ps {
        self.idle.push_back(slot);
        now - self.slots[slot as usize].began
    }

    /// Line `n` of a request's data in memory.
    pub fn data(&self, walk: &Walk, slot: u32, n: u64) -> Place {
        walk.place_of_offset(self.kernel + u64::from(slot) * self.lines + n)
    }

    /// The line that holds a request's command, or its completion.
    pub fn entry(&self, walk: &Walk, slot: u32) -> Place {
        walk.place_of_offset(u64::from(slot) % self.kernel.max(1))
    }

    /// The lines of the kernel.
    pub fn kernel_lines(&self, walk: &Walk) -> impl Iterator<Item = Place> {
        (0..self.kernel).map(|n| walk.place_of_offset(n))
    }

    /// The line of the kernel that the core waits for next.
    pub fn kernel_line(&mut self, walk: &Walk) -> Place {
        self.touched += 1;
        walk.place_of_offset(self.touched % self.kernel.max(1))
    }
}
