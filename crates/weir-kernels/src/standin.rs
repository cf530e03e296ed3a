//! A stand-in on the host: the same kernels in a helper thread, for programs that are written before the device exists.
//!
//! Nothing here is a measurement of a device. Requests go through slots of shared memory: a program fills one and rings
//! its doorbell, the helper polls all of them, and an answer is there when the doorbell is back. Handlers see media
//! whose times are not waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crate::kernel::{Fault, Io, Kernel, Line};
use crate::media::{Media, Times};

const FREE: u64 = 0;
const TAKEN: u64 = 1;
const RUNG: u64 = 2;
const ANSWERED: u64 = 3;
const REFUSED: u64 = 4;

const READ: u64 = 0;
const WRITE: u64 = 1;
const FLUSH: u64 = 2;

#[derive(Debug, Default)]
struct Slot {
    /// Which side has the slot; stored with release and loaded with acquire, so that the words below are there with it.
    doorbell: AtomicU64,
    what: AtomicU64,
    at: AtomicU64,
    line: [AtomicU64; 8],
}

#[derive(Debug)]
struct Shared {
    slots: Vec<Slot>,
    stops: AtomicBool,
}

/// A kernel in a helper thread, which ends with this.
#[derive(Debug)]
pub struct Standin {
    shared: Arc<Shared>,
    helper: Option<JoinHandle<()>>,
    name: &'static str,
}

impl Standin {
    /// Starts a helper with a kernel and this many slots. Media are as large as they need to be and take no time.
    ///
    /// # Errors
    /// The host starts no thread.
    pub fn start(mut kernel: Box<dyn Kernel>, slots: usize) -> std::io::Result<Self> {
        let mut all = Vec::new();
        all.resize_with(slots.max(1), Slot::default);
        let shared = Arc::new(Shared {
            slots: all,
            stops: AtomicBool::new(false),
        });
        let (name, own) = (kernel.name(), Arc::clone(&shared));
        let helper = std::thread::Builder::new()
            .name(format!("kernel {name}"))
            .spawn(move || serve(&own, kernel.as_mut()))?;
        Ok(Self {
            shared,
            helper: Some(helper),
            name,
        })
    }

    /// Loads a line.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn load(&self, at: u64) -> Result<Line, Fault> {
        self.ask(READ, at, &[0; 64])
    }

    /// Stores a line; it has arrived when this returns.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn store(&self, at: u64, line: &Line) -> Result<(), Fault> {
        self.ask(WRITE, at, line).map(drop)
    }

    /// Moves bytes to where they are durable.
    ///
    /// # Errors
    /// The kernel has no such function.
    pub fn flush(&self, at: u64, len: u64) -> Result<(), Fault> {
        let mut line = [0; 64];
        line[..8].copy_from_slice(&len.to_le_bytes());
        self.ask(FLUSH, at, &line).map(drop)
    }

    fn ask(&self, what: u64, at: u64, line: &Line) -> Result<Line, Fault> {
        let taken = |slot: &&Slot| {
            let swap =
                slot.doorbell
                    .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            swap.is_ok()
        };
        let slot = loop {
            match self.shared.slots.iter().find(taken) {
                Some(slot) => break slot,
                None => std::thread::yield_now(),
            }
        };
        slot.what.store(what, Ordering::Relaxed);
        slot.at.store(at, Ordering::Relaxed);
        put(slot, line);
        slot.doorbell.store(RUNG, Ordering::Release);
        let answer = loop {
            match slot.doorbell.load(Ordering::Acquire) {
                RUNG if self.helper.as_ref().is_none_or(JoinHandle::is_finished) => break REFUSED,
                RUNG => std::thread::yield_now(),
                answer => break answer,
            }
        };
        let line = get(slot);
        slot.doorbell.store(FREE, Ordering::Release);
        match answer {
            ANSWERED => Ok(line),
            _ => Err(Fault::Failed {
                kernel: self.name,
                at,
                why: "the helper refused the request".into(),
            }),
        }
    }
}

impl Drop for Standin {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Relaxed);
        if let Some(helper) = self.helper.take() {
            // A kernel that panicked has said so.
            drop(helper.join());
        }
    }
}

fn put(slot: &Slot, line: &Line) {
    for (own, bytes) in slot.line.iter().zip(line.chunks_exact(8)) {
        let word = bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte));
        own.store(word, Ordering::Relaxed);
    }
}

fn get(slot: &Slot) -> Line {
    let mut line = [0; 64];
    for (own, bytes) in slot.line.iter().zip(line.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&own.load(Ordering::Relaxed).to_le_bytes());
    }
    line
}

fn serve(shared: &Shared, kernel: &mut dyn Kernel) {
    let mut media = Media::new(Times {
        sram: 0,
        dram: 0,
        dram_line: 0,
        flash_read: 0,
        flash_program: 0,
        dies: 1,
    });
    while !shared.stops.load(Ordering::Relaxed) {
        let mut served = false;
        for slot in &shared.slots {
            if slot.doorbell.load(Ordering::Acquire) != RUNG {
                continue;
            }
            served = true;
            let (at, line) = (slot.at.load(Ordering::Relaxed), get(slot));
            let mut io = Io {
                now: 0,
                media: &mut media,
            };
            let got = match slot.what.load(Ordering::Relaxed) {
                _ if at >= kernel.len() => Err(kernel.unsupported(at)),
                READ => kernel.read(at, &mut io),
                WRITE => kernel.write(at, &line, &mut io).map(|()| line),
                _ => {
                    let len = u64::from_le_bytes(std::array::from_fn(|byte| line[byte]));
                    kernel.flush(at, len, &mut io).map(|()| line)
                }
            };
            let answer = if got.is_ok() { ANSWERED } else { REFUSED };
            put(slot, &got.unwrap_or([0; 64]));
            slot.doorbell.store(answer, Ordering::Release);
        }
        if !served {
            std::thread::yield_now();
        }
    }
}
