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

use crate::message::{Channel, Message, Two};

weir_model::named! {
    /// State of a line in a cache.
    #[derive(Default)]
    pub enum Cache {
        /// Not there.
        #[default]
        I = "I",
        /// To be read; others may have it.
        S = "S",
        /// Nobody else has it.
        E = "E",
        /// Nobody else has it, and memory is older.
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

    /// Nothing is on its way, and nobody waits.
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

impl Cell {
    /// Whether its copy may be read and is not the last value.
    pub(crate) fn is_stale(&self) -> bool {
        self.cache != Cache::I && !self.fresh
    }

    fn is_silent(&self) -> bool {
        !self.req
            && self.rwd.is_empty()
            && self.ndr.is_empty()
            && self.drs.is_none()
            && self.bisnp.is_none()
            && self.birsp.is_none()
    }

    fn send(&mut self, ask: Ask) {
        (self.ask, self.req) = (Some(ask), true);
    }

    fn write_back(&mut self, keeps: bool) {
        let data = Data::of(self.fresh);
        self.rwd.push(Rwd::Write { data, keeps });
        self.ask = Some(Ask::Write);
        self.cache = if keeps { Cache::S } else { Cache::I };
    }

    /// Ends a request whose answer is complete, and answers a snoop that may be answered.
    fn settle(&mut self, fault: Option<Fault>) {
        match (self.ask, self.cmp, self.data) {
            (Some(Ask::Share | Ask::Own), Some(cmp), Some(data)) => {
                self.cache = if cmp == Ndr::CmpS { Cache::S } else { Cache::E };
                self.fresh = data == Data::Fresh;
                (self.ask, self.cmp, self.data) = (None, None, None);
            }
            (Some(Ask::Upgrade), Some(_), _) => {
                (self.ask, self.cmp) = (None, None);
                if self.cache == Cache::S {
                    self.cache = Cache::E;
                } else {
                    self.send(Ask::Own);
                }
            }
            (Some(Ask::Write | Ask::Clean), Some(_), _) => (self.ask, self.cmp) = (None, None),
            _ => {}
        }
        match (self.snoop, self.ask, self.cmp) {
            (Some((snoop, Held::WriteBack)), None, _) => {
                self.birsp = Some(snoop == Snoop::Data);
                self.snoop = None;
            }
            (Some((snoop, Held::Ready)), None, _) => self.answer(snoop, fault),
            // The device has not seen the request yet (early conflict): the answer is about the present copy.
            (Some((snoop, Held::Ready)), Some(_), None) => self.answer(snoop, fault),
            _ => {}
        }
    }

    fn answer(&mut self, snoop: Snoop, fault: Option<Fault>) {
        let keeps = snoop == Snoop::Data;
        self.snoop = None;
        match self.cache {
            Cache::M if fault != Some(Fault::LostWrite) => {
                self.write_back(keeps);
                self.snoop = Some((snoop, Held::WriteBack));
            }
            Cache::I if fault == Some(Fault::NoAnswer) => {}
            Cache::I => self.birsp = Some(false),
            _ => {
                self.cache = if keeps { Cache::S } else { Cache::I };
                self.birsp = Some(keeps);
            }
        }
    }

    fn take_bisnp(&mut self, snoop: Snoop, fault: Option<Fault>) {
        let ignores = match fault {
            Some(Fault::CrossedWrite) => self.ask == Some(Ask::Write),
            Some(Fault::NoConflict) => self.ask.is_some_and(|ask| ask != Ask::Write),
            _ => false,
        };
        if self.ask.is_some() && !ignores {
            self.rwd.push(Rwd::Conflict);
            self.snoop = Some((snoop, Held::Conflict));
        } else if ignores {
            self.answer(snoop, fault);
        } else {
            self.snoop = Some((snoop, Held::Ready));
            self.settle(fault);
        }
    }

    fn take_ndr(&mut self, fault: Option<Fault>) {
        match self.ndr.pop() {
            Some(Ndr::ConflictAck) => {
                self.snoop = self.snoop.map(|(snoop, _)| (snoop, Held::Ready));
            }
            cmp => self.cmp = cmp,
        }
        self.settle(fault);
    }

    /// Messages that this cell has sent or was sent, and did not have on their way before.
    fn sent(&self, before: &Self, all: &mut Vec<Message>) {
        let mut new = |is_new: bool, channel, name| {
            if is_new {
                all.push(Message::new(channel, name));
            }
        };
        let ask = match self.ask {
            Some(Ask::Share) => "MemRd SnpData",
            Some(Ask::Own) => "MemRd SnpInv",
            Some(Ask::Clean) => "MemClnEvct",
            _ => "MemInv SnpInv",
        };
        new(self.req && !before.req, Channel::M2sReq, ask);
        let last = self.rwd.0[self.rwd.len().saturating_sub(1)];
        let rwd = match last {
            Some(Rwd::Conflict) => "BIConflict",
            _ => "MemWr",
        };
        new(self.rwd.len() > before.rwd.len(), Channel::M2sRwd, rwd);
        let ndr = match self.ndr.0[self.ndr.len().saturating_sub(1)] {
            Some(Ndr::CmpS) => "Cmp-S",
            Some(Ndr::CmpE) => "Cmp-E",
            Some(Ndr::ConflictAck) => "BIConflictAck",
            _ => "Cmp",
        };
        new(self.ndr.len() > before.ndr.len(), Channel::S2mNdr, ndr);
        let (drs, was) = (self.drs.is_some(), before.drs.is_some());
        new(drs && !was, Channel::S2mDrs, "MemData");
        let snoop = match self.bisnp {
            Some(Snoop::Data) => "BISnpData",
            _ => "BISnpInv",
        };
        let is_new = self.bisnp.is_some() && before.bisnp.is_none();
        new(is_new, Channel::S2mBisnp, snoop);
        let answer = if self.birsp == Some(true) {
            "BIRspS"
        } else {
            "BIRspI"
        };
        let is_new = self.birsp.is_some() && before.birsp.is_none();
        new(is_new, Channel::M2sBirsp, answer);
    }
}

/// The messages that a step sent.
pub fn sent<const H: usize, const L: usize>(
    before: &State<H, L>,
    after: &State<H, L>,
) -> Vec<Message> {
    let mut all = Vec::new();
    let cells = after
        .cells
        .iter()
        .flatten()
        .zip(before.cells.iter().flatten());
    for (after, before) in cells {
        after.sent(before, &mut all);
    }
    all
}

impl<const H: usize, const L: usize> Shared<H, L> {
    /// What a host may do by itself with a line.
    pub fn begin(&self, state: &State<H, L>, all: &mut Vec<(Step, State<H, L>)>) {
        for line in 0..L {
            for host in 0..H {
                let cell = state.cells[line][host];
                if cell.snoop.is_none() && cell.ask.is_none() {
                    let acts: &[Act] = match cell.cache {
                        Cache::I => &[Act::Load, Act::Store],
                        Cache::S => &[Act::Upgrade, Act::Drop, Act::CleanEvict],
                        Cache::E => &[Act::Hit, Act::Drop, Act::CleanEvict],
                        Cache::M => &[Act::Hit, Act::Evict],
                    };
                    for &act in acts {
                        let mut after = *state;
                        Self::of_host(&mut after, line, host, act);
                        all.push((step(Some(host), line, act), after));
                    }
                } else if matches!(cell.cache, Cache::E | Cache::M) {
                    // A line may be written until the snoop is answered.
                    let mut after = *state;
                    after.write(line, host);
                    all.push((step(Some(host), line, Act::Hit), after));
                }
            }
        }
    }

    /// Lets a host act.
    pub fn of_host(state: &mut State<H, L>, line: usize, host: usize, act: Act) {
        let cell = &mut state.cells[line][host];
        match act {
            Act::Load => cell.send(Ask::Share),
            Act::Store => cell.send(Ask::Own),
            Act::Upgrade => cell.send(Ask::Upgrade),
            Act::Hit => state.write(line, host),
            Act::Evict => cell.write_back(false),
            Act::Drop => cell.cache = Cache::I,
            Act::CleanEvict => {
                cell.cache = Cache::I;
                cell.send(Ask::Clean);
            }
            _ => {}
        }
    }

    /// Every arrival of a message, and what the device does by itself.
    pub fn onward(&self, state: &State<H, L>, all: &mut Vec<(Step, State<H, L>)>) {
        let fault = self.fault;
        for line in 0..L {
            for host in 0..H {
                let cell = &state.cells[line][host];
                let mut on = |act, change: &dyn Fn(&mut State<H, L>)| {
                    let mut after = *state;
                    change(&mut after);
                    all.push((step(Some(host), line, act), after));
                };
                if !cell.ndr.is_empty() {
                    on(Act::TakeNdr, &|s| s.cells[line][host].take_ndr(fault));
                }
                if cell.drs.is_some() {
                    on(Act::TakeDrs, &|s| {
                        let cell = &mut s.cells[line][host];
                        cell.data = cell.drs.take();
                        cell.settle(fault);
                    });
                }
                // A second snoop waits until the first is answered.
                if let (Some(snoop), None) = (cell.bisnp, cell.snoop) {
                    on(Act::TakeBisnp, &|s| {
                        let cell = &mut s.cells[line][host];
                        cell.bisnp = None;
                        cell.take_bisnp(snoop, fault);
                    });
                }
                if !cell.rwd.is_empty() {
                    on(Act::TakeRwd, &|s| self.take_rwd(s, line, host));
                }
                if cell.birsp.is_some() {
                    on(Act::TakeBirsp, &|s| self.take_birsp(s, line, host));
                }
                let home = &state.homes[line];
                let room = home.holders != 0
                    || cell.ask == Some(Ask::Clean)
                    || state.tracked() < self.filter;
                if cell.req && home.busy.is_none() && room {
                    on(Act::TakeReq, &|s| self.take_req(s, line, host));
                }
            }
        }
        self.of_filter(state, all);
    }

    /// Where a request waits for an entry of the filter, a line that nobody works on leaves it.
    fn of_filter(&self, state: &State<H, L>, all: &mut Vec<(Step, State<H, L>)>) {
        let waits = |line: usize| {
            let home = &state.homes[line];
            let asks =
                (state.cells[line].iter()).any(|cell| cell.req && cell.ask != Some(Ask::Clean));
            home.holders == 0 && home.busy.is_none() && asks
        };
        let evicts = |home: &Home| home.busy == Some(Busy::Evict);
        if state.tracked() < self.filter || state.homes.iter().any(evicts) || !(0..L).any(waits) {
            return;
        }
        for line in 0..L {
            let home = state.homes[line];
            if home.busy.is_some() || home.holders == 0 {
                continue;
            }
            let mut after = *state;
            if self.fault == Some(Fault::SilentFilter) {
                (after.homes[line].holders, after.homes[line].alone) = (0, false);
            } else {
                self.snoop(&mut after, line, home.holders, Snoop::Inv);
                after.homes[line].busy = Some(Busy::Evict);
            }
            all.push((step(None, line, Act::Filter), after));
        }
    }

    fn snoop(&self, state: &mut State<H, L>, line: usize, hosts: u8, snoop: Snoop) {
        state.homes[line].waits = hosts;
        for host in (0..H).filter(|host| hosts & 1 << host != 0) {
            state.cells[line][host].bisnp = Some(snoop);
        }
    }

    fn take_req(&self, state: &mut State<H, L>, line: usize, host: usize) {
        state.cells[line][host].req = false;
        let Some(ask) = state.cells[line][host].ask else {
            return;
        };
        let home = &mut state.homes[line];
        let others = home.holders & !(1 << host);
        if ask == Ask::Clean {
            home.holders = others;
            home.alone &= others != 0;
            return state.cells[line][host].ndr.push(Ndr::Cmp);
        }
        let snoop = match ask {
            Ask::Share if others != 0 && home.alone => Some(Snoop::Data),
            Ask::Own | Ask::Upgrade if others != 0 => Some(Snoop::Inv),
            _ => None,
        };
        let Some(snoop) = snoop else {
            return self.grant(state, line, host, ask);
        };
        self.snoop(state, line, others, snoop);
        if self.fault == Some(Fault::NoWait) && snoop == Snoop::Inv {
            state.homes[line].holders &= 1 << host;
            state.homes[line].waits = 0;
            self.grant(state, line, host, ask);
        } else {
            state.homes[line].busy = Some(Busy::Ask(ask, host as u8));
        }
    }

    fn grant(&self, state: &mut State<H, L>, line: usize, host: usize, ask: Ask) {
        let home = &mut state.homes[line];
        home.alone = ask != Ask::Share || home.holders & !(1 << host) == 0;
        home.holders |= 1 << host;
        let (alone, data) = (home.alone, Data::of(home.fresh));
        let cell = &mut state.cells[line][host];
        cell.ndr.push(if alone { Ndr::CmpE } else { Ndr::CmpS });
        if ask != Ask::Upgrade {
            cell.drs = Some(data);
        }
    }

    fn take_rwd(&self, state: &mut State<H, L>, line: usize, host: usize) {
        let home = &mut state.homes[line];
        let cell = &mut state.cells[line][host];
        match cell.rwd.pop() {
            Some(Rwd::Write { data, keeps }) => {
                home.fresh = data == Data::Fresh;
                if !keeps {
                    home.holders &= !(1 << host);
                    home.alone &= home.holders != 0;
                }
                cell.ndr.push(Ndr::Cmp);
            }
            Some(Rwd::Conflict) if self.fault == Some(Fault::AckPasses) => {
                cell.ndr.push_first(Ndr::ConflictAck);
            }
            Some(Rwd::Conflict) => cell.ndr.push(Ndr::ConflictAck),
            None => {}
        }
    }

    fn take_birsp(&self, state: &mut State<H, L>, line: usize, host: usize) {
        let shares = state.cells[line][host].birsp.take() == Some(true);
        let home = &mut state.homes[line];
        home.waits &= !(1 << host);
        if home.busy.is_none() {
            return;
        }
        if shares {
            home.alone = false;
        } else {
            home.holders &= !(1 << host);
            home.alone &= home.holders != 0;
        }
        if home.waits == 0
            && let Some(Busy::Ask(ask, by)) = home.busy.take()
        {
            self.grant(state, line, by.into(), ask);
        }
    }

    /// Lets all messages arrive, in the order in which steps are listed; returns those that were sent.
    pub fn drain(&self, state: &mut State<H, L>) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut next = Vec::new();
        loop {
            self.onward(state, &mut next);
            let Some((_, after)) = next.drain(..).next() else {
                return messages;
            };
            messages.extend(sent(state, &after));
            *state = after;
        }
    }
}

fn step(host: Option<usize>, line: usize, act: Act) -> Step {
    Step {
        host: host.map(|host| host as u8),
        line: line as u8,
        act,
    }
}
