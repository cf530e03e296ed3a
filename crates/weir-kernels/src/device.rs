//! A device that runs kernels, behind the coherence protocol, on a clock of its own.
//!
//! Every access of the host drives [`weir_coherence::type2`] for its line: a message crosses the link in `parts.link`, a
//! request that reaches the device calls its kernel. A kernel serves its requests in order; they wait in its queue, and at the
//! host where that is full, so that none is lost. Kernels share media and nothing else.

use std::collections::{HashMap, VecDeque};

use weir_coherence::cost::{Cost, Parts};
use weir_coherence::hdm_db::Cache;
use weir_coherence::message::{Channel, Message};
use weir_coherence::type2::{self, Act, Kind, State, Type2};

use crate::kernel::{Fault, Io, Kernel, LINE, Line};
use crate::media::{Media, Times};

/// How the device takes part in coherence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It caches its own memory (HDM-D), and gets to know that a host will write.
    Type2,
    /// Its host alone cares for coherence (HDM-H): it gets to know of a write with the line.
    Type3,
}

/// What was counted of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that the host read.
    pub reads: u64,
    /// Lines that the host wrote.
    pub writes: u64,
    /// Requests that the kernel refused.
    pub faults: u64,
    /// Requests that waited in the queue, and how long all together in nanoseconds.
    pub queued: (u64, u64),
    /// Requests that waited at the host since the queue was full, and how long.
    pub blocked: (u64, u64),
    /// How long handlers ran.
    pub busy: u64,
    /// Early notices of a write.
    pub notices: u64,
    /// Notices that no write followed, until the device asked for the line again.
    pub false_notices: u64,
    /// Lines that the device asked for again after a notice, and messages that this took.
    pub rearms: (u64, u64),
    /// Copies that the host gave up since another line shows the same data.
    pub invalidated: u64,
    /// From each notice to the write, in nanoseconds.
    pub leads: Vec<u64>,
}

struct Window {
    base: u64,
    kernel: Box<dyn Kernel>,
    depth: usize,
    /// When the requests under way are done, in order.
    under_way: VecDeque<u64>,
    free: u64,
    counts: Counts,
}

/// A line as the host has it.
struct Held {
    state: State,
    copy: Line,
    noticed: Option<u64>,
}

/// A device with its ranges, and the host's copies of their lines.
pub struct Device {
    mode: Mode,
    core: u64,
    link: u64,
    /// Media of the device.
    pub media: Media,
    windows: Vec<Window>,
    lines: HashMap<u64, Held>,
    /// The host's time, in nanoseconds.
    pub now: u64,
    /// What crossed the link.
    pub sent: Cost,
}

const MACHINE: Type2 = Type2 {
    kind: Kind::Device,
    fault: None,
};

impl Device {
    /// A device without ranges. Of `parts`, the medium is that of `times`.
    pub fn new(mode: Mode, parts: Parts, times: Times) -> Self {
        Self {
            mode,
            core: parts.core.get().round() as u64,
            link: parts.link.get().round() as u64,
            media: Media::new(times),
            windows: Vec::new(),
            lines: HashMap::new(),
            now: 0,
            sent: Cost::default(),
        }
    }

    /// Gives a kernel a range behind the others, with a queue of `depth` requests; returns its address.
    pub fn attach(&mut self, kernel: Box<dyn Kernel>, depth: usize) -> u64 {
        let base = self
            .windows
            .last()
            .map_or(0, |last| last.base + last.kernel.len());
        self.windows.push(Window {
            base: base.next_multiple_of(1 << 12),
            kernel,
            depth: depth.max(1),
            under_way: VecDeque::new(),
            free: 0,
            counts: Counts::default(),
        });
        self.windows.last().map_or(0, |last| last.base)
    }

    fn window(&self, address: u64) -> Result<usize, Fault> {
        let has =
            |window: &Window| (window.base..window.base + window.kernel.len()).contains(&address);
        self.windows
            .iter()
            .position(has)
            .ok_or(Fault::NoRange(address))
    }

    /// What was counted of the range that has this address.
    ///
    /// # Errors
    /// None has.
    pub fn counts(&self, address: u64) -> Result<&Counts, Fault> {
        Ok(&self.windows[self.window(address)?].counts)
    }

    /// The kernel of an address, for what is no load or store.
    ///
    /// # Errors
    /// No range has it.
    pub fn kernel(&mut self, address: u64) -> Result<&mut dyn Kernel, Fault> {
        let at = self.window(address)?;
        Ok(self.windows[at].kernel.as_mut())
    }

    /// Lines that crossed the link with data, to the device and from it.
    pub fn data_lines(&self) -> (u64, u64) {
        (self.sent.count("MemWr"), self.sent.count("MemData"))
    }

    /// The host loads a line.
    ///
    /// # Errors
    /// The kernel refuses, or no range has the address.
    pub fn load(&mut self, address: u64) -> Result<Line, Fault> {
        let (line, done) = self.load_at(address, self.now)?;
        self.now = done;
        Ok(line)
    }

    /// The same at a time, while the host does other things; returns when the line is there.
    ///
    /// # Errors
    /// As [`Device::load`].
    pub fn load_at(&mut self, address: u64, at: u64) -> Result<(Line, u64), Fault> {
        let window = self.window(address)?;
        let address = address / LINE as u64 * LINE as u64;
        let held = self.held(address).state;
        let mut done = at;
        if held.host == Cache::I {
            let kernel = &self.windows[window].kernel;
            let changes = !kernel
                .changes(address - self.windows[window].base)
                .is_empty();
            // A host that has such a line alone would write it without a message: the device has a copy too.
            if changes && self.mode == Mode::Type2 && held.device == Cache::I {
                self.run(address, Act::DeviceLoad, at)?;
            }
            done = self.run(address, Act::HostLoad, at + self.core)?;
        }
        Ok((self.held(address).copy, done))
    }

    /// The host asks for the right to write a line (RFO), as a store or its prefetch does.
    ///
    /// # Errors
    /// As [`Device::load`].
    pub fn own(&mut self, address: u64) -> Result<(), Fault> {
        self.window(address)?;
        if !matches!(self.held(address).state.host, Cache::E | Cache::M) {
            self.now = self.run(address, Act::HostStore, self.now + self.core)?;
        }
        Ok(())
    }

    /// The host stores a line into its cache.
    ///
    /// # Errors
    /// As [`Device::load`].
    pub fn store(&mut self, address: u64, line: &Line) -> Result<(), Fault> {
        self.own(address)?;
        self.run(address, Act::HostStore, self.now)?;
        self.held(address).copy = *line;
        Ok(())
    }

    /// The host gives its copy up and waits until the device has it, as CLFLUSH and a fence do.
    ///
    /// # Errors
    /// The kernel refuses the write.
    pub fn evict(&mut self, address: u64) -> Result<(), Fault> {
        self.window(address)?;
        if self.held(address).state.host != Cache::I {
            self.now = self.run(address, Act::HostEvict, self.now)?;
        }
        Ok(())
    }

    /// Stores a line and waits until the device has it.
    ///
    /// # Errors
    /// As [`Device::store`] and [`Device::evict`].
    pub fn put(&mut self, address: u64, line: &Line) -> Result<(), Fault> {
        self.store(address, line)?;
        self.evict(address)
    }

    /// The device asks for a shared copy of a line, so that the host's next store sends a message.
    ///
    /// # Errors
    /// As [`Device::load`].
    pub fn arm(&mut self, address: u64) -> Result<(), Fault> {
        let window = self.window(address)?;
        if self.mode == Mode::Type3 || self.held(address).state.device != Cache::I {
            return Ok(());
        }
        let before: u64 = self.sent.messages().iter().map(|(_, count)| count).sum();
        self.run(address, Act::DeviceLoad, self.now)?;
        let after: u64 = self.sent.messages().iter().map(|(_, count)| count).sum();
        let unused = self.held(address).noticed.take().is_some();
        let counts = &mut self.windows[window].counts;
        counts.rearms.0 += 1;
        counts.rearms.1 += after - before;
        counts.false_notices += u64::from(unused);
        Ok(())
    }

    /// Moves bytes of a range to where they are durable. The command takes a crossing of the link each way and no data.
    ///
    /// # Errors
    /// The kernel has no such function.
    pub fn flush(&mut self, address: u64, len: u64) -> Result<(), Fault> {
        let window = self.window(address)?;
        let at = address - self.windows[window].base;
        let arrives = self.now + self.core + self.link;
        let done = self.serve(window, arrives, |kernel, io| kernel.flush(at, len, io))?;
        self.now = done.0 + self.link;
        Ok(())
    }

    fn held(&mut self, address: u64) -> &mut Held {
        self.lines
            .entry(address / LINE as u64)
            .or_insert_with(|| Held {
                state: State::new(Kind::Device),
                copy: [0; LINE],
                noticed: None,
            })
    }

    fn note(&mut self, messages: &[Message]) {
        let mut all = std::mem::take(&mut self.sent);
        all.extend(messages.iter().copied());
        self.sent = all;
    }

    /// Lets a side act, and all messages that follow arrive; returns when the last has.
    fn run(&mut self, address: u64, act: Act, mut time: u64) -> Result<u64, Fault> {
        let address = address / LINE as u64 * LINE as u64;
        let mut state = self.held(address).state;
        let before = state;
        MACHINE.act(&mut state, act);
        let mut sent = type2::sent(&before, &state);
        let mut next = Vec::new();
        let mut refused = None;
        let mut request = "";
        loop {
            self.note(&sent);
            time += if sent.is_empty() { 0 } else { self.link };
            if let Some(asks) = sent
                .iter()
                .find(|message| message.channel == Channel::M2sReq)
            {
                request = asks.name;
            }
            MACHINE.onward(&state, &mut next);
            let Some((arrives, after)) = next.drain(..).next() else {
                break;
            };
            let done = match (arrives, request) {
                (Act::TakeReq, "MemRdFwd") => Ok(time),
                (Act::TakeReq, request) => self.asked(address, request, time),
                (Act::TakeRwd, _) => self.written(address, time),
                _ => Ok(time),
            };
            // The protocol goes on: a load gets poison, a write is answered.
            match done {
                Ok(done) => time = done,
                Err(fault) => refused = Some(fault),
            }
            sent = type2::sent(&state, &after);
            state = after;
        }
        self.held(address).state = state;
        if refused.is_some() {
            // Poison is in no cache.
            self.held(address).state = State::new(Kind::Device);
        }
        refused.map_or(Ok(time), Err)
    }

    /// A request of the host reaches the device.
    fn asked(&mut self, address: u64, request: &str, mut time: u64) -> Result<u64, Fault> {
        let window = self.window(address)?;
        let (base, own) = (self.windows[window].base, request.ends_with("SnpInv"));
        let at = address - base;
        let kernel = &self.windows[window].kernel;
        let others = match (self.mode, own) {
            (Mode::Type3, _) => Vec::new(),
            (_, true) => kernel.changes(at),
            (_, false) => kernel.sources(at),
        };
        for other in others {
            let known = self.lines.get(&((base + other) / LINE as u64));
            // What the host may have written is recalled; before it writes, it has no copy of what changes.
            if known.is_none_or(|held| {
                held.state.is_device_bias() || !own && held.state.device != Cache::I
            }) {
                continue;
            }
            let act = if own {
                Act::DeviceStore
            } else {
                Act::DeviceLoad
            };
            time = self.run(base + other, act, time)?;
            self.windows[window].counts.invalidated += u64::from(own);
        }
        // HDM-H has no type of snoop: a read for a store is a read.
        if own && self.mode == Mode::Type2 {
            self.held(address).noticed = Some(time);
            self.windows[window].counts.notices += 1;
            let media = &mut self.media;
            let mut io = Io { now: time, media };
            self.windows[window].kernel.write_expected(at, &mut io);
        }
        if request.starts_with("MemRd") {
            let (done, line) = self.serve(window, time, |kernel, io| kernel.read(at, io))?;
            self.windows[window].counts.reads += 1;
            self.held(address).copy = line;
            time = done;
        }
        Ok(time)
    }

    fn written(&mut self, address: u64, time: u64) -> Result<u64, Fault> {
        let window = self.window(address)?;
        let at = address - self.windows[window].base;
        let held = self.held(address);
        let (line, noticed) = (held.copy, held.noticed.take());
        let counts = &mut self.windows[window].counts;
        counts.writes += 1;
        counts.leads.extend(noticed.map(|noticed| time - noticed));
        Ok(self
            .serve(window, time, |kernel, io| kernel.write(at, &line, io))?
            .0)
    }

    /// A request waits for its turn, and its kernel's handler runs; returns when it is done.
    fn serve<T>(
        &mut self,
        window: usize,
        arrives: u64,
        handler: impl FnOnce(&mut dyn Kernel, &mut Io<'_>) -> Result<T, Fault>,
    ) -> Result<(u64, T), Fault> {
        let window = &mut self.windows[window];
        window.under_way.retain(|&done| done > arrives);
        let over = (window.under_way.len() + 1).saturating_sub(window.depth);
        let enters = match over.checked_sub(1) {
            Some(before) => window.under_way[before],
            None => arrives,
        };
        let begins = enters.max(window.free);
        let media = &mut self.media;
        let mut io = Io { now: begins, media };
        let got = handler(window.kernel.as_mut(), &mut io);
        let done = io.now;
        let counts = &mut window.counts;
        counts.blocked.0 += u64::from(enters > arrives);
        counts.blocked.1 += enters - arrives;
        counts.queued.0 += u64::from(begins > enters);
        counts.queued.1 += begins - enters;
        counts.busy += done - begins;
        counts.faults += u64::from(got.is_err());
        window.free = done;
        window.under_way.push_back(done);
        Ok((done, got?))
    }
}
