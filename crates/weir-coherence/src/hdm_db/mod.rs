//! Memory of a device that several hosts cache (HDM-DB): the device keeps a snoop filter and invalidates back.
//!
//! For each line a host has a state of MESI and one request under way at most. The device handles one request of a line at
//! a time, and its filter tracks a limited number of lines: for another one it first takes a line back from all hosts
//! that have it. Ordered are, for one host and line, M2S RwD (BIConflict behind MemWr) and S2M NDR (BIConflictAck behind
//! Cmp); all else passes. Sources: CXL specification 3.0, sections 3.3.3 (BISnp), 3.5.1 (flows, conflicts).
//!
//! What the specification leaves open is decided so: clean lines leave a cache without a message or with MemClnEvct; a host answers
//! a snoop only when its write-back is complete; a host that lost a line while it asked for the right to write gets that
//! right without data, and reads the line then.

mod device;
mod host;
mod sent;

pub use sent::sent;

use crate::message::Two;

weir_model::named! {
    /// State of a line in a cache.
    #[derive(Default)]
    pub enum Cache {
        /// Not there.
        #[default]
        I = "I",
        /// To be read; others may have it.
        S = "S",
        /// No other agent has it.
        E = "E",
        /// No other agent has it, and memory is older.
        M = "M",
    }
}

/// A copy of a line's data. Which value it is does not matter, only whether it is the last one that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Data {
    /// An older one.
    Stale,
    /// The last one.
    Fresh,
    /// No value: the sender lost the line before it was asked for the data (bogus data of CXL.cache).
    Bogus,
}

impl Data {
    pub(crate) fn of(fresh: bool) -> Self {
        if fresh { Data::Fresh } else { Data::Stale }
    }
}

/// A host's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    /// MemRd with SnpData: a copy to read.
    Share,
    /// MemRd with SnpInv: a copy to write.
    Own,
    /// MemInv with SnpInv: the right to write a copy that it has.
    Upgrade,
    /// MemWr: a modified line goes back.
    Write,
    /// MemClnEvct: a clean line is no longer there.
    Clean,
}

/// What a host is snooped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Snoop {
    /// BISnpInv: give it up.
    Inv,
    /// BISnpData: keep it to read at most.
    Data,
}

/// Where a host is with a snoop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Held {
    /// It has sent BIConflict.
    Conflict,
    /// It may answer.
    Ready,
    /// It writes back before it answers.
    WriteBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Rwd {
    Write { data: Data, keeps: bool },
    Conflict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Ndr {
    Cmp,
    CmpS,
    CmpE,
    ConflictAck,
}

/// A line at a host, and what is on its way between this host and the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cell {
    /// State in the host's caches.
    pub cache: Cache,
    fresh: bool,
    ask: Option<Ask>,
    req: bool,
    rwd: Two<Rwd>,
    ndr: Two<Ndr>,
    drs: Option<Data>,
    cmp: Option<Ndr>,
    data: Option<Data>,
    bisnp: Option<Snoop>,
    snoop: Option<(Snoop, Held)>,
    /// BIRspS, or BIRspI.
    birsp: Option<bool>,
}

/// What the device does with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Busy {
    /// It waits for others to give up a line that a host asks for.
    Ask(Ask, u8),
    /// It takes the line out of its filter.
    Evict,
}

/// A line at the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Home {
    /// Hosts that may have it, a bit each: the filter's entry.
    pub holders: u8,
    /// The one of them may write.
    pub alone: bool,
    fresh: bool,
    busy: Option<Busy>,
    waits: u8,
}

/// A state of `H` hosts, which are eight at most, and `L` lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State<const H: usize, const L: usize> {
    /// Of each line at each host.
    pub cells: [[Cell; H]; L],
    /// Of each line at the device.
    pub homes: [Home; L],
}

weir_model::named! {
    /// Steps.
    pub enum Act {
        /// A load misses.
        Load = "loads, sends MemRd SnpData",
        /// A store misses.
        Store = "stores, sends MemRd SnpInv",
        /// A store hits a copy that others may have.
        Upgrade = "stores to a copy in S, sends MemInv SnpInv",
        /// A store hits.
        Hit = "stores to its copy",
        /// A modified line leaves the cache.
        Evict = "evicts M, sends MemWr",
        /// A clean line leaves the cache.
        Drop = "drops a clean copy",
        /// The same, and the device is informed.
        CleanEvict = "evicts a clean copy, sends MemClnEvct",
        /// Arrival at the host.
        TakeNdr = "receives S2M NDR",
        /// Arrival at the host.
        TakeDrs = "receives MemData",
        /// Arrival at the host.
        TakeBisnp = "receives BISnp",
        /// Arrival at the device.
        TakeReq = "M2S Req arrives at the device",
        /// Arrival at the device.
        TakeRwd = "M2S RwD arrives at the device",
        /// Arrival at the device.
        TakeBirsp = "BIRsp arrives at the device",
        /// The device needs an entry of its filter.
        Filter = "leaves the snoop filter",
    }
}

/// A step: what happens to a line, and at or from which host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The host; `None` is the device.
    pub host: Option<u8>,
    /// The line.
    pub line: u8,
    /// What happens.
    pub act: Act,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host {
            Some(host) => write!(f, "line {}: host {host}: {}", self.line, self.act),
            None => write!(f, "line {}: {}", self.line, self.act),
        }
    }
}

weir_model::named! {
    /// Mistakes that the checker must find.
    pub enum Fault {
        /// The device lets a host write before the others have answered.
        NoWait = "no-wait",
        /// A line leaves the filter, and the hosts that have it are not informed.
        SilentFilter = "silent-filter",
        /// A host answers a snoop while its own write-back of the line is on the way.
        CrossedWrite = "crossed-write",
        /// A host answers a snoop although its request is on the way, without BIConflict.
        NoConflict = "no-conflict",
        /// A host gives a modified line up and does not write it back.
        LostWrite = "lost-write",
        /// BIConflictAck passes an earlier Cmp.
        AckPasses = "ack-passes",
        /// A host does not answer a snoop of a line that it has dropped.
        NoAnswer = "no-answer",
    }
}

/// Hosts, a device and its filter.
#[derive(Debug, Clone, Copy)]
pub struct Shared<const H: usize, const L: usize> {
    /// Lines that the filter tracks at most.
    pub filter: usize,
    /// A planted mistake.
    pub fault: Option<Fault>,
}

impl<const H: usize, const L: usize> State<H, L> {
    /// Nothing is cached.
    pub fn new() -> Self {
        let home = Home {
            fresh: true,
            ..Home::default()
        };
        Self {
            cells: [[Cell::default(); H]; L],
            homes: [home; L],
        }
    }

    /// A host writes: every other copy is older from now on.
    fn write(&mut self, line: usize, host: usize) {
        let older = |data: &mut Option<Data>| *data = data.map(|_| Data::Stale);
        for cell in &mut self.cells[line] {
            cell.fresh = false;
            older(&mut cell.drs);
            older(&mut cell.data);
            for rwd in cell.rwd.0.iter_mut().flatten() {
                if let Rwd::Write { data, .. } = rwd {
                    *data = Data::Stale;
                }
            }
        }
        self.homes[line].fresh = false;
        let cell = &mut self.cells[line][host];
        (cell.cache, cell.fresh) = (Cache::M, true);
    }

    /// The same with other numbers for hosts: the first of `order` becomes host 0.
    pub(crate) fn with_hosts(&self, order: &[usize]) -> Self {
        let mut state = *self;
        let bits = |bits: u8| {
            let has = |&(_, &old): &(usize, &usize)| bits & 1 << old != 0;
            order
                .iter()
                .enumerate()
                .filter(has)
                .fold(0, |all, (new, _)| all | 1 << new)
        };
        for (line, home) in state.homes.iter_mut().enumerate() {
            for (new, &old) in order.iter().enumerate() {
                state.cells[line][new] = self.cells[line][old];
            }
            home.holders = bits(home.holders);
            home.waits = bits(home.waits);
            if let Some(Busy::Ask(_, by)) = &mut home.busy {
                *by = order
                    .iter()
                    .position(|&old| old == usize::from(*by))
                    .unwrap_or(0) as u8;
            }
        }
        state
    }

    /// Lines that the filter tracks.
    fn tracked(&self) -> usize {
        let used = |home: &&Home| home.holders != 0 || home.busy.is_some();
        self.homes.iter().filter(used).count()
    }

    /// Nothing is on its way, and nothing waits.
    pub fn rests(&self) -> bool {
        let quiet = |cell: &Cell| cell.ask.is_none() && cell.snoop.is_none() && cell.is_silent();
        self.cells.iter().flatten().all(quiet) && self.homes.iter().all(|home| home.busy.is_none())
    }
}

impl<const H: usize, const L: usize> Default for State<H, L> {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// Whether memory has the last value.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh
    }
}
