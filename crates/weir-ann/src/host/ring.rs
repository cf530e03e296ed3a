//! A ring of commands in shared memory, from the thread that searches to threads that stand in for devices (CXL-ANNS,
//! section 5.1): a command is written once, each device has a doorbell, and writes its results into memory of the host.

use std::hint::spin_loop;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::thread::{self, Thread};
use std::time::Duration;

/// Commands that may be under way at one time.
pub const SLOTS: usize = 4;
/// How long a thread sleeps if it is not woken.
const NAP: Duration = Duration::from_millis(1);

/// What a device does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Command<'c> {
    /// Keeps this vector, from which the distances that follow are asked for. It has no results.
    Query(&'c [f32]),
    /// Computes its parts of the distances of these nodes.
    Distances(&'c [u32]),
}

/// The thread of a device has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// On lines of its own: what one thread writes and another polls.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Apart<T>(T);

/// Words that one thread writes before it says so, and others read afterwards.
#[derive(Debug, Default)]
struct Slot {
    is_query: AtomicBool,
    length: AtomicUsize,
    /// Of results: ticks that they took the device.
    work: AtomicU64,
    words: Box<[AtomicU32]>,
}

impl Slot {
    fn all(words: usize) -> Box<[Self]> {
        let slot = || Self {
            words: (0..words).map(|_| AtomicU32::default()).collect(),
            ..Self::default()
        };
        (0..SLOTS).map(|_| slot()).collect()
    }

    fn write(&self, words: impl Iterator<Item = u32>) {
        let mut length = 0;
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Relaxed);
            length += 1;
        }
        self.length.store(length, Relaxed);
    }

    fn read(&self) -> impl Iterator<Item = u32> {
        let words = self.words.iter().take(self.length.load(Relaxed));
        words.map(|word| word.load(Relaxed))
    }
}

#[derive(Debug)]
struct Device {
    /// Commands that the host has written.
    doorbell: Apart<AtomicU64>,
    /// Commands that the device has finished.
    done: Apart<AtomicU64>,
    is_gone: AtomicBool,
    thread: OnceLock<Thread>,
    results: Box<[Slot]>,
}

/// The ring.
#[derive(Debug)]
pub struct Ring {
    commands: Box<[Slot]>,
    devices: Box<[Device]>,
    is_over: Apart<AtomicBool>,
    host: OnceLock<Thread>,
    waits: Waits,
}

/// How threads wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// They look all the time: each has a processor.
    Looking,
    /// They sleep until they are woken: some share a processor.
    Sleeping,
}

/// Looks until a thread that has a processor offers it to other programs each time.
const LOOKS: u32 = 4096;

/// The slot of a command.
fn slot(of: &[Slot], command: u64) -> Option<&Slot> {
    of.get(command as usize % SLOTS)
}

impl Ring {
    /// A ring for this many devices, whose commands have at most this many words.
    pub fn new(devices: usize, words: usize, waits: Waits) -> Self {
        let device = |_| Device {
            doorbell: Apart::default(),
            done: Apart::default(),
            is_gone: AtomicBool::default(),
            thread: OnceLock::new(),
            results: Slot::all(words),
        };
        Self {
            commands: Slot::all(words),
            devices: (0..devices).map(device).collect(),
            is_over: Apart::default(),
            host: OnceLock::new(),
            waits,
        }
    }

    /// The side of the host; devices end when it is dropped. A ring has one.
    pub fn host(&self) -> Host<'_> {
        self.host.get_or_init(thread::current);
        Host {
            ring: self,
            posted: 0,
            doorbells: 0,
        }
    }

    /// The side of a device; the host learns when it is dropped. `None` where the ring has no such device.
    pub fn device(&self, device: usize) -> Option<Served<'_>> {
        let own = self.devices.get(device)?;
        Some(Served { ring: self, own })
    }

    fn wake(&self, thread: &OnceLock<Thread>) {
        if let (Waits::Sleeping, Some(thread)) = (self.waits, thread.get()) {
            thread.unpark();
        }
    }

    /// Waits for what is to come; whether it was there at once.
    fn wait(&self, is_there: impl Fn() -> bool, ends: impl Fn() -> bool) -> Result<bool, Gone> {
        let mut looks = 0;
        loop {
            if is_there() {
                return Ok(looks == 0);
            }
            if ends() {
                return Err(Gone);
            }
            match self.waits {
                // What wakes it may come before it knows which thread is to be woken, so that it looks now and then.
                Waits::Sleeping => thread::park_timeout(NAP),
                Waits::Looking if looks < LOOKS => spin_loop(),
                Waits::Looking => thread::yield_now(),
            }
            looks = looks.saturating_add(1);
        }
    }
}

/// The side of a device.
#[derive(Debug)]
pub struct Served<'r> {
    ring: &'r Ring,
    own: &'r Device,
}

impl Served<'_> {
    /// Does the device's work until the host has gone. `work` writes what it found, and returns the ticks that it took.
    pub fn serve(self, mut work: impl FnMut(Command<'_>, &mut Vec<f32>) -> u64) {
        let Self { ring, own } = &self;
        own.thread.get_or_init(thread::current);
        let (mut ids, mut query, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for next in 0.. {
            let is_over = || ring.is_over.0.load(Relaxed);
            let ready = ring.wait(|| own.doorbell.0.load(Acquire) > next, is_over);
            let (Ok(_), Some(command)) = (ready, slot(&ring.commands, next)) else {
                return;
            };
            found.clear();
            let ticks = match command.is_query.load(Relaxed) {
                true => {
                    query.clear();
                    query.extend(command.read().map(f32::from_bits));
                    work(Command::Query(&query), &mut found)
                }
                false => {
                    ids.clear();
                    ids.extend(command.read());
                    work(Command::Distances(&ids), &mut found)
                }
            };
            if let Some(results) = slot(&own.results, next) {
                results.write(found.iter().map(|part| part.to_bits()));
                results.work.store(ticks, Relaxed);
            }
            own.done.0.store(next + 1, Release);
            ring.wake(&ring.host);
        }
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.own.is_gone.store(true, Release);
        self.ring.wake(&self.ring.host);
    }
}

/// The side of the host.
#[derive(Debug)]
pub struct Host<'r> {
    ring: &'r Ring,
    posted: u64,
    doorbells: u64,
}

impl Host<'_> {
    /// Writes a command, once all devices have finished that which was in its slot, and rings every doorbell. Returns its
    /// number.
    ///
    /// # Errors
    /// A device has gone.
    pub fn post(&mut self, command: Command<'_>) -> Result<u64, Gone> {
        let number = self.posted;
        if let Some(before) = number.checked_sub(SLOTS as u64) {
            self.wait(before)?;
        }
        if let Some(slot) = slot(&self.ring.commands, number) {
            let is_query = matches!(command, Command::Query(_));
            slot.is_query.store(is_query, Relaxed);
            match command {
                Command::Query(query) => slot.write(query.iter().map(|x| x.to_bits())),
                Command::Distances(ids) => slot.write(ids.iter().copied()),
            }
        }
        self.posted += 1;
        for device in &self.ring.devices {
            device.doorbell.0.store(self.posted, Release);
            self.ring.wake(&device.thread);
        }
        self.doorbells += self.ring.devices.len() as u64;
        Ok(number)
    }

    /// Waits until every device has finished a command; whether all had at once.
    ///
    /// # Errors
    /// A device has gone.
    pub fn wait(&self, command: u64) -> Result<bool, Gone> {
        let mut at_once = true;
        for device in &self.ring.devices {
            let is_done = || device.done.0.load(Acquire) > command;
            // What was finished before the device went counts.
            let is_gone = || device.is_gone.load(Acquire) && !is_done();
            at_once &= self.ring.wait(is_done, is_gone)?;
        }
        Ok(at_once)
    }

    /// The distances of a finished command: the sums of what each device found, in their order.
    pub fn sums(&self, command: u64, sums: &mut Vec<f32>) {
        sums.clear();
        for device in &self.ring.devices {
            let Some(results) = slot(&device.results, command) else {
                continue;
            };
            sums.resize(results.length.load(Relaxed).max(sums.len()), 0.0);
            for (sum, part) in sums.iter_mut().zip(results.read()) {
                *sum += f32::from_bits(part);
            }
        }
    }

    /// The device that a finished command took longest, and its ticks.
    pub fn slowest(&self, command: u64) -> Option<(usize, u64)> {
        let work =
            |device: &Device| slot(&device.results, command).map(|one| one.work.load(Relaxed));
        let all = self.ring.devices.iter().enumerate();
        all.filter_map(|(at, device)| Some((at, work(device)?)))
            .max_by_key(|(_, work)| *work)
    }

    /// Doorbells that it has rung.
    pub fn doorbells(&self) -> u64 {
        self.doorbells
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        self.ring.is_over.0.store(true, Release);
        for device in &self.ring.devices {
            self.ring.wake(&device.thread);
        }
    }
}
