//! A request to a storage device, from system call to return.
//!
//! The core submits the request: this takes core time, and the core waits for lines of the kernel one by one.
//! The device receives the doorbell, reads the command from memory, works ([`crate::storage`]), moves the
//! data line by line through its port and the Table of Requests, and writes a completion to memory. The core
//! is interrupted, completes the request, and continues with the next. Buffered requests are also copied
//! between kernel and program.

use weir_model::platform::STORAGE_BLOCK;

use super::Engine;
use crate::clock::Ps;
use crate::core::{Requests, Task, Thread, Work};
use crate::line::{Kind, Place};
use crate::storage::{Attached, Happens, Lines, Next};
use crate::uncore::{Io, Sender};

/// The tile of the mesh where ports connect.
const STOP: u16 = 0;
/// Numbers of a request's command and completion, after those of its data.
const COMMAND: u32 = u32::MAX - 1;
const COMPLETION: u32 = u32::MAX;

/// How many times every request is made before a run begins.
const ROUNDS: u64 = 3;
/// The longest time for that.
const LONGEST: Ps = 20_000_000_000;

/// The uncore's number of a line of a request.
fn index(slot: u32, line: u32) -> u64 {
    u64::from(slot) << 32 | u64::from(line)
}

impl Engine {
    /// Attaches the platform's storage devices to their ports, if any tenant uses them.
    pub(super) fn attach_drives(&mut self) {
        if self.threads.iter().all(|thread| thread.requests.is_none()) {
            return;
        }
        let params = &self.params;
        let drives = params.drives.iter();
        self.drives = (drives.map(|&drive| Attached::new(drive, &params.io))).collect();
        let l2 = params.core.private.l2.0;
        let owner = |thread: &Thread| {
            let requests = thread.requests.as_ref()?;
            let near = requests.lines * u64::from(requests.depth()) <= l2;
            Some((thread.core, near))
        };
        let owners = self.threads.iter().map(owner).collect();
        let io = Io::new(params.io, owners, params.uncore.llc.lines);
        let kernel = (self.threads.iter())
            .filter_map(|thread| Some((thread.requests.as_ref()?, &thread.walk)))
            .flat_map(|(requests, walk)| requests.kernel_lines(walk));
        self.uncore.serve(io, kernel);
    }

    /// How long storage runs alone before a run begins: until every request has been made several times, one
    /// after the other, at the rate of the slowest device; zero if there is no storage.
    pub(super) fn lead(&self) -> Ps {
        let time = |requests: &Requests| {
            let drive = &self.drives[requests.device].params;
            let link = drive.link_line * requests.lines;
            let blocks = requests.lines.div_ceil(STORAGE_BLOCK.lines());
            let flash = match (requests.writes, requests.in_order) {
                (true, false) => drive.random_write * blocks,
                (true, true) => drive.write_line * requests.lines,
                (false, _) => drive.command,
            };
            u64::from(requests.depth()) * flash.max(link)
        };
        let lone = |drive: &Attached| drive.params.sense + drive.params.read_pass;
        let slowest = self.drives.iter().map(lone).max().unwrap_or(0);
        let all = (self.threads.iter()).filter_map(|thread| thread.requests.as_deref());
        (ROUNDS * (all.map(time).sum::<Ps>() + slowest)).min(LONGEST)
    }

    /// Lets a core continue with its requests.
    pub(super) fn pump_requests(&mut self, t: usize, time: Ps) {
        let io = self.params.io;
        let from = self.sender(t);
        let buffers = self.params.core.line_fill_buffers;
        let thread = &mut self.threads[t];
        let Some(requests) = thread.requests.as_mut().filter(|_| !thread.asleep) else {
            return;
        };
        let Some(mut task) = requests.task else {
            let Some((work, slot)) = requests.next_work() else {
                return;
            };
            let (own, kernel) = match work {
                Work::Submit => (io.submit, io.submit_lines),
                Work::Complete => (io.complete, io.complete_lines),
            };
            if work == Work::Submit {
                requests.begin(slot, time);
            }
            let copies = requests.buffered && requests.writes == (work == Work::Submit);
            requests.task = Some(Task {
                work,
                slot,
                kernel,
                waits: false,
                copy: if copies { requests.lines } else { 0 },
                copying: 0,
            });
            return self.sleep(t, time + own);
        };
        if task.waits {
            return;
        }
        if task.kernel > 0 {
            task.kernel -= 1;
            task.waits = true;
            requests.task = Some(task);
            let place = requests.kernel_line(&thread.walk);
            self.uncore.send(from, 0, place, Kind::Drd, time);
            return;
        }
        while task.copy > 0 && task.copying < buffers {
            let place = requests.data(&thread.walk, task.slot, requests.lines - task.copy);
            let kind = if requests.writes {
                Kind::Rfo
            } else {
                Kind::Drd
            };
            task.copy -= 1;
            task.copying += 1;
            self.uncore.send(from, 0, place, kind, time);
        }
        if task.copying > 0 {
            requests.task = Some(task);
            return;
        }
        requests.task = None;
        match task.work {
            Work::Submit => {
                let device = requests.device;
                // The way there carries the doorbell, and the way back the device's read of the command.
                let rung = Happens::Rung((t as u16, task.slot));
                self.schedule(device, time + 2 * io.way, rung);
            }
            Work::Complete => {
                let took = requests.end(task.slot, time);
                thread.progress.accesses += 1;
                thread.progress.record(took);
            }
        }
        self.pump_requests(t, time);
    }

    /// A line has arrived for which a core's work for a request waits.
    pub(super) fn filled_requests(&mut self, t: usize, index: u64, place: Place, at: Ps) {
        let thread = &mut self.threads[t];
        let mut copied = false;
        if let Some(task) = thread.requests.as_mut().and_then(|r| r.task.as_mut()) {
            copied = !task.waits;
            task.copying -= u32::from(copied);
            task.waits = false;
        }
        // It will be read again soon, by this core or for another one.
        if !copied && self.uncore.keeps_lines() {
            self.drive_out(t, index, place, false, at);
        }
        self.pump_requests(t, at);
    }

    fn sender(&self, t: usize) -> Sender {
        Sender {
            thread: t as u16,
            core: self.threads[t].core,
        }
    }

    /// Records a future event of a device, and when to look at it.
    fn schedule(&mut self, device: usize, at: Ps, what: Happens) {
        self.drives[device].schedule(at, what);
        let after = self.threads.len() + 1 + device;
        self.uncore.wake_at(after as u16, at);
    }

    /// Handles the due events of a device.
    #[cold]
    #[inline(never)]
    pub(super) fn drive_woken(&mut self, device: usize, time: Ps) {
        while let Some(what) = self.drives[device].due(time) {
            self.happens(device, what, time);
        }
    }

    fn happens(&mut self, device: usize, what: Happens, time: Ps) {
        match what {
            Happens::Rung((t, slot)) => {
                self.port_sends(t as usize, slot, COMMAND, Kind::IoRead, time);
            }
            Happens::Known(whose) => {
                self.drives[device].waiting.push_back(whose);
                self.take_requests(device, time);
            }
            Happens::Ready((thread, slot)) => {
                let Some(requests) = self.requests(thread as usize) else {
                    return;
                };
                let (writes, end) = (requests.writes, requests.lines);
                let lines = Lines {
                    thread,
                    slot,
                    next: 0,
                    end,
                };
                self.lane(device, !writes).add(lines);
                self.pump_lane(device, !writes, time);
            }
            Happens::Finished((thread, slot)) => {
                self.drives[device].taken -= 1;
                self.take_requests(device, time);
                let next = u64::from(COMPLETION);
                let end = next + 1;
                self.drives[device].inward.add_first(Lines {
                    thread,
                    slot,
                    next,
                    end,
                });
                self.pump_lane(device, true, time);
            }
            Happens::Interrupt((t, slot)) => {
                if let Some(requests) = self.threads[t as usize].requests.as_mut() {
                    requests.interrupt(slot);
                    if requests.task.is_none() {
                        self.pump_requests(t as usize, time);
                    }
                }
            }
            Happens::Inward | Happens::Outward => {
                let inward = what == Happens::Inward;
                self.lane(device, inward).woken();
                self.pump_lane(device, inward, time);
            }
        }
    }

    /// The device starts waiting requests, as many as it handles at once.
    fn take_requests(&mut self, device: usize, time: Ps) {
        let way = self.params.io.way;
        while self.drives[device].taken < self.drives[device].params.commands
            && let Some((t, slot)) = self.drives[device].waiting.pop_front()
        {
            let Some(command) = self.requests(t as usize).map(|r| r.command(slot)) else {
                return;
            };
            let drive = &mut self.drives[device];
            drive.taken += 1;
            let ready = drive.drive.take(command, time);
            self.schedule(device, ready + way, Happens::Ready((t, slot)));
        }
    }

    fn requests(&self, t: usize) -> Option<&Requests> {
        self.threads[t].requests.as_deref()
    }

    fn lane(&mut self, device: usize, inward: bool) -> &mut crate::storage::Lane {
        let drive = &mut self.drives[device];
        match inward {
            true => &mut drive.inward,
            false => &mut drive.outward,
        }
    }

    /// Lets lines cross a port as far as its link and the host's buffers allow.
    fn pump_lane(&mut self, device: usize, inward: bool, time: Ps) {
        let (kind, again) = match inward {
            true => (Kind::IoWrite, Happens::Inward),
            false => (Kind::IoRead, Happens::Outward),
        };
        loop {
            match self.lane(device, inward).next(time) {
                Next::Starts(line) => {
                    let t = line.thread as usize;
                    self.port_sends(t, line.slot, line.next as u32, kind, time);
                }
                Next::Later(at) => return self.schedule(device, at, again),
                Next::Nothing => return,
            }
        }
    }

    fn port_sends(&mut self, t: usize, slot: u32, line: u32, kind: Kind, time: Ps) {
        let thread = &self.threads[t];
        let Some(requests) = &thread.requests else {
            return;
        };
        let place = match line {
            COMMAND | COMPLETION => requests.entry(&thread.walk, slot),
            line => requests.data(&thread.walk, slot, u64::from(line)),
        };
        let from = Sender {
            thread: t as u16,
            core: STOP,
        };
        (self.uncore).send(from, index(slot, line), place, kind, time);
    }

    /// A line that a device reads has arrived at its port.
    pub(super) fn port_read(&mut self, t: usize, index: u64, at: Ps) {
        let way = self.params.io.way;
        let (slot, line) = ((index >> 32) as u32, index as u32);
        let whose = (t as u16, slot);
        let Some(requests) = self.threads[t].requests.as_mut() else {
            return;
        };
        let device = requests.device;
        if line == COMMAND {
            return self.schedule(device, at + way, Happens::Known(whose));
        }
        if requests.crossed(slot) {
            // The data goes to the device and through it, and the completion comes back.
            let pass = self.drives[device].params.write_pass;
            self.schedule(device, at + 2 * way + pass, Happens::Finished(whose));
        }
        self.lane(device, false).done();
        self.pump_lane(device, false, at);
    }

    /// A line that a device writes has arrived at its destination.
    pub(super) fn port_wrote(&mut self, t: usize, index: u64, at: Ps) {
        let (slot, line) = ((index >> 32) as u32, index as u32);
        let whose = (t as u16, slot);
        let interrupt = self.params.io.interrupt;
        let Some(requests) = self.threads[t].requests.as_mut() else {
            return;
        };
        let device = requests.device;
        if line == COMPLETION {
            self.schedule(device, at + interrupt, Happens::Interrupt(whose));
        } else if requests.crossed(slot) {
            self.schedule(device, at, Happens::Finished(whose));
        }
        self.lane(device, true).done();
        self.pump_lane(device, true, at);
    }
}
