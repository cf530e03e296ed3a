//! A thread that puts requests to a storage device: those under way, and what its core does for them.

use std::collections::VecDeque;

use super::walk::{Place, Walk};
use crate::clock::Ps;
use crate::storage::Command;

/// What the core works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Submit,
    Complete,
}

/// A piece of core work under way.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    pub work: Work,
    /// The request.
    pub slot: u32,
    /// Lines of the kernel that it still has to read, one after the other, and whether it waits for one.
    pub kernel: u32,
    pub waits: bool,
    /// Lines that it still copies between kernel and program, ...
    pub copy: u64,
    /// ... and those on their way.
    pub copying: u32,
}

/// A request.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    began: Ps,
    number: u64,
    /// Lines that have not crossed.
    left: u64,
}

/// The requests of a thread.
#[derive(Debug)]
pub struct Requests {
    /// Position of the device.
    pub device: usize,
    /// Lines of one.
    pub lines: u64,
    /// Whether they write, and whether they follow each other.
    pub writes: bool,
    pub in_order: bool,
    /// Whether the kernel copies what is read or written.
    pub buffered: bool,
    /// What the core does now.
    pub task: Option<Task>,
    /// Lines of the kernel among the thread's own, before its buffers.
    kernel: u64,
    touched: u64,
    slots: Vec<Slot>,
    /// Requests that are not under way, and those whose completion waits for the core.
    idle: VecDeque<u32>,
    done: VecDeque<u32>,
    number: u64,
    chance: u64,
}

impl Requests {
    /// `depth` requests of `lines` lines each, none under way. Of the thread's memory the kernel has the
    /// first `kernel` lines.
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

    /// Requests that the thread keeps under way.
    pub fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    /// What the core does next, if there is anything to do: what is complete first, since the program
    /// cannot go on without it.
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

    /// What a request asks of the device.
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

    /// A request ends at `now`; returns how long it took.
    pub fn end(&mut self, slot: u32, now: Ps) -> Ps {
        self.idle.push_back(slot);
        now - self.slots[slot as usize].began
    }

    /// Line `n` of a request's data in memory.
    pub fn data(&self, walk: &Walk, slot: u32, n: u64) -> Place {
        walk.place_of_offset(self.kernel + u64::from(slot) * self.lines + n)
    }

    /// The line in which a request's command, or its completion, lies.
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
