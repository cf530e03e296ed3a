//! The Data Streaming Accelerator: a device on the socket that copies memory as descriptors say.
//!
//! A core writes descriptors and submits them, one or a batch, through a portal. The device fetches a batch
//! from memory, decodes and translates it, and then moves lines in order. Each line needs a read buffer from
//! its read until the slice has accepted its write, and enters the Table of Requests twice, like the lines of
//! any device on the socket. When all lines of a submission are in memory, the device writes a completion
//! record, which the core polls (DSA Architecture Specification 341204, sections 3.4 and 3.8).

use std::collections::VecDeque;

use super::Engine;
use crate::clock::Ps;
use crate::line::{Kind, Place};
use crate::params::AcceleratorParams;
use crate::uncore::Sender;

/// The device.
#[derive(Debug, Default)]
pub struct Accelerator {
    /// Submissions with lines that were not requested yet.
    work: VecDeque<Work>,
    /// Outstanding lines.
    lines: u32,
    /// When the port can pass the next line.
    port: Ps,
    /// Whether an event that wakes it is pending.
    awake_at: Option<Ps>,
}

/// The rest of a submission.
#[derive(Debug, Clone, Copy)]
struct Work {
    thread: usize,
    /// Lines that are not requested yet.
    from: u64,
    to: u64,
    /// When its first descriptor is decoded.
    ready: Ps,
}

/// The tile of the mesh where devices on the socket connect.
const STOP: u16 = 0;

impl Engine {
    /// Lets a thread submit as much as it may.
    pub(super) fn pump_offload(&mut self, t: usize, time: Ps) {
        let Some(params) = self.params.accelerator else {
            return;
        };
        let thread = &mut self.threads[t];
        let Some(offload) = &mut thread.offload else {
            return;
        };
        offload.reap(time);
        if thread.asleep || !offload.may_submit() {
            return;
        }
        if self.accelerator.work.len() >= params.work_queue as usize {
            // The portal rejects it; the thread tries again.
            return self.sleep(t, time + params.submit);
        }
        let (first, lines) = (offload.submit(), offload.lines * offload.batch);
        let submitted = time + params.describe * offload.batch + params.submit;
        let fetch = if offload.batch > 1 {
            self.params.uncore.hit
        } else {
            0
        };
        let ready = submitted + params.portal + fetch + params.decode;
        let pause = thread.pause * 2 * lines;
        self.accelerator.work.push_back(Work {
            thread: t,
            from: first,
            to: first + lines,
            ready,
        });
        self.wake_accelerator(ready);
        self.sleep(t, submitted + pause);
    }

    /// The device requests lines while it has buffers.
    pub(super) fn pump_accelerator(&mut self, time: Ps) {
        let Some(params) = self.params.accelerator else {
            return;
        };
        while self.accelerator.lines < params.read_buffers
            && let Some(work) = self.accelerator.work.front_mut()
        {
            if work.ready > time {
                let ready = work.ready;
                return self.wake_accelerator(ready);
            }
            let (t, n) = (work.thread, work.from);
            work.from += 1;
            if work.from == work.to {
                self.accelerator.work.pop_front();
            }
            let Some(place) = self.threads[t].offload.as_ref().map(|o| o.source(n)) else {
                return;
            };
            let at = self.accelerator.pass(time, &params);
            self.accelerator.lines += 1;
            self.device_sends(t, n, place, Kind::PciRdCur, at);
        }
    }

    fn device_sends(&mut self, t: usize, n: u64, place: Place, kind: Kind, at: Ps) {
        let from = Sender {
            thread: t as u16,
            core: STOP,
        };
        self.uncore.send(from, n, place, kind, at);
    }

    fn wake_accelerator(&mut self, time: Ps) {
        if self.accelerator.awake_at.is_none_or(|at| at > time) {
            self.accelerator.awake_at = Some(time);
            self.uncore.wake_at(self.threads.len() as u16, time);
        }
    }

    /// The event that wakes the device.
    pub(super) fn accelerator_woken(&mut self, time: Ps) {
        self.accelerator.awake_at = None;
        self.pump_accelerator(time);
    }

    /// A line that the device read has arrived: the device writes it.
    pub(super) fn device_read(&mut self, t: usize, n: u64, at: Ps) {
        let place = self.threads[t].walk.place(n);
        self.threads[t].progress.accesses += 1;
        self.device_sends(t, n, place, Kind::ItoM, at);
    }

    /// A slice has accepted a line that the device writes: its buffer is free.
    #[inline(never)]
    pub(super) fn device_write_taken(&mut self, time: Ps) {
        self.accelerator.lines -= 1;
        self.pump_accelerator(time);
    }

    /// A line is in memory; the last of a submission completes it.
    pub(super) fn device_wrote(&mut self, t: usize, n: u64, at: Ps) {
        let Some(params) = self.params.accelerator else {
            return;
        };
        let thread = &mut self.threads[t];
        thread.progress.accesses += 1;
        let seen = at + params.portal;
        if let Some(offload) = &mut thread.offload
            && offload.moved(n, seen)
        {
            self.uncore.wake_at(t as u16, seen);
        }
    }
}

impl Accelerator {
    /// When the port passes the next line, not before `time`.
    fn pass(&mut self, time: Ps, params: &AcceleratorParams) -> Ps {
        let at = self.port.max(time);
        self.port = at + params.gap;
        at
    }
}
