//! One line between a host and a device that caches: of the host's memory (Type 1 and 2), or of the device's own (Type 2,
//! HDM-D, with its bias).
//!
//! The host's caches and its home agent are one agent; the device's cache and its coherency engine (DCOH) are the other.
//! Lines share nothing here, so that a state of several lines is one state of each.
//!
//! For memory of the host, the device asks by CXL.cache: RdShared, RdOwn, ItoMWr, CleanEvict, DirtyEvict; the host snoops it
//! (SnpInv, SnpData) and sends GO. A snoop does not pass an earlier GO, and no GO is sent while a snoop is under way (section
//! 3.2.5.2). For memory of the device, the host asks by CXL.mem. The line is in device bias while the host has no
//! copy: the device then uses it without a message. Otherwise it is in host bias, and the device asks by D2H RdShared or RdOwn,
//! which the host grants by MemRdFwd behind its own earlier requests (sections 3.3.5 and 3.5.2). A page changes its bias line
//! by line.

use crate::hdm_db::{Cache, Data};
use crate::message::{Channel, Message, Two};

weir_model::named! {
    /// Whose memory a line is in.
    pub enum Kind {
        /// Of the host.
        Host = "memory of the host",
        /// Of the device.
        Device = "memory of the device",
    }
}

/// What a side asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Ask {
    Share,
    Own,
    /// MemInv of a host that has a copy.
    Upgrade,
    /// MemWr of a host.
    Write,
    /// ItoMWr of a device: a whole line that it does not keep.
    WriteWhole,
    /// CleanEvict and DirtyEvict of a device.
    Clean,
    Dirty,
}

/// From the host on CXL.cache, in order: its responses and snoops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Down {
    GoS,
    GoE,
    Pull,
    PullDrop,
    SnpInv,
    SnpData,
}

/// From the host on M2S Req, in order for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Req {
    Share,
    Own,
    Inv,
    FwdS,
    FwdI,
}

/// What the home agent waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Home {
    /// Answer, and data if there are some, to a snoop for a load or a store of the host.
    Snoop {
        store: bool,
        with_data: Option<bool>,
    },
    /// Cmp of its MemWr, before it grants what the device asks for.
    Write(Ask),
    /// The data of a device that writes.
    Pull,
}

/// What may be with the host, as the device knows it: the value of the metadata (MetaValue).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Meta {
    I,
    S,
    A,
}

/// A state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// Whose memory it is.
    pub kind: Kind,
    /// The host's copy.
    pub host: Cache,
    /// The device's copy.
    pub device: Cache,
    host_fresh: bool,
    device_fresh: bool,
    memory_fresh: bool,
    host_ask: Option<Ask>,
    device_ask: Option<Ask>,
    home: Option<Home>,
    /// What the device has of the host's memory, as the host knows it.
    directory: Cache,
    meta: Meta,
    /// A modified line that leaves the device's cache: it answers snoops, and is not read any more.
    leaving: Option<Data>,
    d2h_req: bool,
    /// The answer to a snoop; whether data come with it.
    d2h_rsp: Option<bool>,
    d2h_data: Option<Data>,
    h2d: Two<Down>,
    h2d_data: Option<Data>,
    go: Option<Down>,
    req: Two<Req>,
    /// Data, and whether the host keeps a copy.
    rwd: Option<(Data, bool)>,
    /// Cmp, Cmp-S or Cmp-E.
    ndr: Option<Cache>,
    drs: Option<Data>,
    cmp: Option<Cache>,
    /// Data that came before its Cmp or GO.
    host_data: Option<Data>,
    device_data: Option<Data>,
}

weir_model::named! {
    /// Steps.
    pub enum Act {
        /// The host reads a line that it has not.
        HostLoad = "the host loads",
        /// The host writes.
        HostStore = "the host stores",
        /// The host gives its copy up.
        HostEvict = "the host evicts its copy",
        /// The device reads a line that it has not.
        DeviceLoad = "the device loads",
        /// The device writes.
        DeviceStore = "the device stores",
        /// The device writes a whole line that it does not keep.
        DeviceWriteWhole = "the device writes a whole line, sends ItoMWr",
        /// The device gives its copy up.
        DeviceEvict = "the device evicts its copy",
        /// Arrival at the host.
        TakeD2hReq = "D2H Req arrives at the host",
        /// Arrival at the host.
        TakeD2hRsp = "the answer to a snoop arrives at the host",
        /// Arrival at the host.
        TakeD2hData = "D2H Data arrives at the host",
        /// Arrival at the device.
        TakeH2d = "GO or a snoop arrives at the device",
        /// Arrival at the device.
        TakeH2dData = "H2D Data arrives at the device",
        /// Arrival at the device.
        TakeReq = "M2S Req arrives at the device",
        /// Arrival at the device.
        TakeRwd = "MemWr arrives at the device",
        /// Arrival at the host.
        TakeNdr = "Cmp arrives at the host",
        /// Arrival at the host.
        TakeDrs = "MemData arrives at the host",
    }
}

weir_model::named! {
    /// Mistakes that the checker must find.
    pub enum Fault {
        /// The device takes a line of its memory into device bias, and the host's copy stays.
        BiasFlip = "bias-flip",
        /// MemRd is answered from memory although the device's cache has a newer line.
        StaleMemRd = "stale-memrd",
        /// Data of an eviction that a snoop has overtaken are written to memory.
        BogusData = "bogus-data",
        /// A snoop passes GO.
        SnoopPassesGo = "snoop-passes-go",
        /// MemRdFwd does not wait until the host's MemWr is complete.
        EarlyForward = "early-forward",
    }
}

/// A line of this kind of memory, with a planted mistake or without.
#[derive(Debug, Clone, Copy)]
pub struct Type2 {
    /// Whose memory the line is in.
    pub kind: Kind,
    /// A planted mistake.
    pub fault: Option<Fault>,
}

impl State {
    /// Nothing is cached.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            host: Cache::I,
            device: Cache::I,
            host_fresh: false,
            device_fresh: false,
            memory_fresh: true,
            host_ask: None,
            device_ask: None,
            home: None,
            directory: Cache::I,
            meta: Meta::I,
            leaving: None,
            d2h_req: false,
            d2h_rsp: None,
            d2h_data: None,
            h2d: Two::default(),
            h2d_data: None,
            go: None,
            req: Two::default(),
            rwd: None,
            ndr: None,
            drs: None,
            cmp: None,
            host_data: None,
            device_data: None,
        }
    }

    /// Whether the device may use the line without a message to the host.
    pub fn is_device_bias(&self) -> bool {
        self.kind == Kind::Device && self.meta == Meta::I
    }

    /// Nothing is on its way, and nobody waits.
    pub fn rests(&self) -> bool {
        self.host_ask.is_none() && self.device_ask.is_none() && self.home.is_none() && self.silent()
    }

    fn silent(&self) -> bool {
        let data = [self.d2h_data, self.h2d_data, self.drs];
        data.iter().all(Option::is_none)
            && !self.d2h_req
            && self.d2h_rsp.is_none()
            && self.h2d.is_empty()
            && self.req.is_empty()
            && self.rwd.is_none()
            && self.ndr.is_none()
    }

    pub(crate) fn broken(&self) -> Option<&'static str> {
        use crate::rules::{LOST, NOT_COVERED, STALE, TWO_WRITERS};
        let has = |cache| cache != Cache::I;
        let alone = |cache| matches!(cache, Cache::E | Cache::M);
        let rests = self.rests();
        let covered = match self.kind {
            Kind::Host => !has(self.device) || has(self.directory),
            Kind::Device => !has(self.host) || self.meta != Meta::I,
        };
        let modified = [self.host, self.device].contains(&Cache::M);
        if has(self.host) && has(self.device) && (alone(self.host) || alone(self.device)) {
            Some(TWO_WRITERS)
        } else if has(self.host) && !self.host_fresh || has(self.device) && !self.device_fresh {
            Some(STALE)
        } else if rests && !covered {
            Some(NOT_COVERED)
        } else if rests && !modified && !self.memory_fresh {
            Some(LOST)
        } else {
            None
        }
    }

    /// Every other copy is older from now on.
    fn outdate(&mut self) {
        let older = |data: &mut Option<Data>| {
            if *data == Some(Data::Fresh) {
                *data = Some(Data::Stale);
            }
        };
        (self.host_fresh, self.device_fresh, self.memory_fresh) = (false, false, false);
        older(&mut self.d2h_data);
        older(&mut self.h2d_data);
        older(&mut self.drs);
        older(&mut self.host_data);
        older(&mut self.device_data);
        older(&mut self.leaving);
        if let Some((data, _)) = &mut self.rwd {
            *data = Data::Stale;
        }
    }

    fn host_writes(&mut self) {
        self.outdate();
        (self.host, self.host_fresh) = (Cache::M, true);
    }

    fn device_writes(&mut self) {
        self.outdate();
        (self.device, self.device_fresh) = (Cache::M, true);
    }

    fn host_to_memory(&mut self) {
        if self.host == Cache::M {
            self.memory_fresh = self.host_fresh;
        }
    }

    fn device_to_memory(&mut self) {
        if self.device == Cache::M {
            self.memory_fresh = self.device_fresh;
        }
    }

    fn write_back(&mut self, keeps: bool) {
        self.rwd = Some((Data::of(self.host_fresh), keeps));
        self.host = if keeps { Cache::S } else { Cache::I };
    }
}

impl Type2 {
    /// What either side may do by itself.
    pub fn begin(&self, state: &State, all: &mut Vec<(Act, State)>) {
        let mut acts = Vec::with_capacity(8);
        if state.host_ask.is_none() && state.home.is_none() {
            match state.host {
                Cache::I => acts.extend([Act::HostLoad, Act::HostStore]),
                _ => acts.extend([Act::HostStore, Act::HostEvict]),
            }
        } else if matches!(state.host, Cache::E | Cache::M) {
            acts.push(Act::HostStore);
        }
        if state.device_ask.is_none() {
            match state.device {
                Cache::I => acts.extend([Act::DeviceLoad, Act::DeviceStore]),
                _ => acts.extend([Act::DeviceStore, Act::DeviceEvict]),
            }
            if state.kind == Kind::Host && state.device == Cache::I {
                acts.push(Act::DeviceWriteWhole);
            }
        }
        for act in acts {
            let mut after = *state;
            self.act(&mut after, act);
            all.push((act, after));
        }
    }

    /// Lets a side act. Only what [`Type2::begin`] lists is allowed.
    pub fn act(&self, s: &mut State, act: Act) {
        match (act, s.kind) {
            (Act::HostLoad | Act::HostStore, _) => self.host_access(s, act == Act::HostStore),
            (Act::HostEvict, Kind::Device) if s.host == Cache::M => {
                s.host_ask = Some(Ask::Write);
                s.write_back(false);
            }
            (Act::HostEvict, _) => {
                s.host_to_memory();
                s.host = Cache::I;
            }
            (Act::DeviceLoad | Act::DeviceStore, _) => {
                self.device_access(s, act == Act::DeviceStore);
            }
            (Act::DeviceWriteWhole, _) => {
                (s.device_ask, s.d2h_req) = (Some(Ask::WriteWhole), true);
            }
            (Act::DeviceEvict, Kind::Device) => {
                s.device_to_memory();
                s.device = Cache::I;
            }
            (Act::DeviceEvict, Kind::Host) => {
                let dirty = s.device == Cache::M;
                s.device_ask = Some(if dirty { Ask::Dirty } else { Ask::Clean });
                s.leaving = dirty.then(|| Data::of(s.device_fresh));
                (s.device, s.d2h_req) = (Cache::I, true);
            }
            _ => {}
        }
    }

    fn host_access(&self, s: &mut State, store: bool) {
        if matches!(s.host, Cache::E | Cache::M) {
            return s.host_writes();
        }
        if s.kind == Kind::Device {
            let (ask, req) = match (store, s.host) {
                (false, _) => (Ask::Share, Req::Share),
                (true, Cache::S) => (Ask::Upgrade, Req::Inv),
                (true, _) => (Ask::Own, Req::Own),
            };
            s.host_ask = Some(ask);
            return s.req.push(req);
        }
        let snoops = match store {
            true => s.directory != Cache::I,
            false => s.directory == Cache::E,
        };
        if !snoops {
            return self.host_fills(s, store);
        }
        let snoop = if store { Down::SnpInv } else { Down::SnpData };
        if self.fault == Some(Fault::SnoopPassesGo) {
            s.h2d.push_first(snoop);
        } else {
            s.h2d.push(snoop);
        }
        s.home = Some(Home::Snoop {
            store,
            with_data: None,
        });
    }

    /// The host has a line of its own memory that nobody else writes.
    fn host_fills(&self, s: &mut State, store: bool) {
        if s.host == Cache::I {
            s.host_fresh = s.memory_fresh;
        }
        if store {
            s.host_writes();
        } else {
            s.host = match s.directory {
                Cache::I => Cache::E,
                _ => Cache::S,
            };
        }
    }

    fn device_access(&self, s: &mut State, store: bool) {
        if matches!(s.device, Cache::E | Cache::M) {
            return s.device_writes();
        }
        let local = match s.meta {
            Meta::I => true,
            Meta::S => !store,
            Meta::A => self.fault == Some(Fault::BiasFlip),
        };
        if s.kind == Kind::Device && local {
            if s.device == Cache::I {
                s.device_fresh = s.memory_fresh;
            }
            if store {
                s.device_writes();
            } else {
                s.device = match s.meta {
                    Meta::I => Cache::E,
                    _ => Cache::S,
                };
            }
            return;
        }
        s.device_ask = Some(if store { Ask::Own } else { Ask::Share });
        s.d2h_req = true;
    }

    /// Every arrival of a message.
    pub fn onward(&self, state: &State, all: &mut Vec<(Act, State)>) {
        let mut on = |may: bool, act, change: &dyn Fn(&mut State)| {
            if may {
                let mut after = *state;
                change(&mut after);
                all.push((act, after));
            }
        };
        let free = state.home.is_none() && state.host_ask.is_none();
        on(state.d2h_req && free, Act::TakeD2hReq, &|s| {
            self.take_d2h_req(s)
        });
        on(state.d2h_rsp.is_some(), Act::TakeD2hRsp, &|s| {
            let rsp = s.d2h_rsp.take();
            if let Some(Home::Snoop { with_data, .. }) = &mut s.home {
                *with_data = rsp;
            }
            self.end_snoop(s);
        });
        on(state.d2h_data.is_some(), Act::TakeD2hData, &|s| {
            self.take_d2h_data(s)
        });
        let snooped = matches!(state.h2d.head(), Some(Down::SnpInv | Down::SnpData));
        // Behind GO a snoop waits for the line that GO is about.
        let ready = !snooped || state.go.is_none();
        on(!state.h2d.is_empty() && ready, Act::TakeH2d, &|s| {
            self.take_h2d(s)
        });
        on(state.h2d_data.is_some(), Act::TakeH2dData, &|s| {
            s.device_data = s.h2d_data.take();
            self.end_device(s);
        });
        on(!state.req.is_empty(), Act::TakeReq, &|s| self.take_req(s));
        on(state.rwd.is_some(), Act::TakeRwd, &|s| {
            if let Some((data, keeps)) = s.rwd.take() {
                s.memory_fresh = data == Data::Fresh;
                s.meta = if keeps { Meta::S } else { Meta::I };
                s.ndr = Some(Cache::I);
            }
        });
        on(state.ndr.is_some(), Act::TakeNdr, &|s| {
            s.cmp = s.ndr.take();
            self.end_host(s);
        });
        on(state.drs.is_some(), Act::TakeDrs, &|s| {
            s.host_data = s.drs.take();
            self.end_host(s);
        });
    }

    fn take_d2h_req(&self, s: &mut State) {
        s.d2h_req = false;
        let Some(ask) = s.device_ask else { return };
        if s.kind == Kind::Device {
            if s.host == Cache::M {
                s.write_back(ask == Ask::Share);
                if self.fault != Some(Fault::EarlyForward) {
                    s.home = Some(Home::Write(ask));
                    return;
                }
            }
            return self.forward(s, ask);
        }
        s.host_to_memory();
        match ask {
            Ask::Share => {
                if s.host != Cache::I {
                    s.host = Cache::S;
                }
                s.directory = Cache::S;
                s.h2d.push(Down::GoS);
                s.h2d_data = Some(Data::of(s.memory_fresh));
            }
            Ask::Clean => {
                s.directory = Cache::I;
                s.h2d.push(Down::PullDrop);
            }
            Ask::Dirty => {
                s.home = Some(Home::Pull);
                s.h2d.push(Down::Pull);
            }
            Ask::WriteWhole => {
                s.host = Cache::I;
                s.home = Some(Home::Pull);
                s.h2d.push(Down::Pull);
            }
            _ => {
                s.host = Cache::I;
                s.directory = Cache::E;
                s.h2d.push(Down::GoE);
                s.h2d_data = Some(Data::of(s.memory_fresh));
            }
        }
    }

    /// The host lets the device have a line of the device's memory.
    fn forward(&self, s: &mut State, ask: Ask) {
        if ask == Ask::Share {
            if s.host != Cache::I {
                s.host = Cache::S;
            }
            s.req.push(Req::FwdS);
        } else {
            s.host = Cache::I;
            s.req.push(Req::FwdI);
        }
    }

    fn take_d2h_data(&self, s: &mut State) {
        match s.home {
            Some(Home::Pull) => {
                match s.d2h_data.take() {
                    Some(Data::Bogus) if self.fault == Some(Fault::BogusData) => {
                        s.memory_fresh = false;
                    }
                    Some(Data::Bogus) | None => {}
                    Some(data) => s.memory_fresh = data == Data::Fresh,
                }
                s.directory = Cache::I;
                s.home = None;
            }
            _ => {
                s.host_data = s.d2h_data.take();
                self.end_snoop(s);
            }
        }
    }

    /// The answer to a snoop, and the data if there are some, have come.
    fn end_snoop(&self, s: &mut State) {
        let Some(Home::Snoop {
            store,
            with_data: Some(with_data),
        }) = s.home
        else {
            return;
        };
        if with_data {
            let Some(data) = s.host_data.take() else {
                return;
            };
            s.memory_fresh = data == Data::Fresh;
        }
        s.home = None;
        s.directory = match (store, s.directory) {
            (true, _) | (_, Cache::I) => Cache::I,
            _ => Cache::S,
        };
        self.host_fills(s, store);
    }

    fn take_h2d(&self, s: &mut State) {
        match s.h2d.pop() {
            Some(down @ (Down::GoS | Down::GoE)) => {
                s.go = Some(down);
                self.end_device(s);
            }
            Some(Down::Pull) => {
                let data = match s.device_ask {
                    Some(Ask::WriteWhole) => {
                        s.outdate();
                        Data::Fresh
                    }
                    _ => s.leaving.take().unwrap_or(Data::Bogus),
                };
                (s.d2h_data, s.device_ask) = (Some(data), None);
            }
            Some(Down::PullDrop) => s.device_ask = None,
            Some(snoop) => {
                s.d2h_data = match s.device {
                    Cache::M => Some(Data::of(s.device_fresh)),
                    _ => s.leaving.take(),
                };
                s.d2h_rsp = Some(s.d2h_data.is_some());
                if s.device != Cache::I {
                    s.device = if snoop == Down::SnpInv {
                        Cache::I
                    } else {
                        Cache::S
                    };
                }
            }
            None => {}
        }
    }

    /// GO and data have come.
    fn end_device(&self, s: &mut State) {
        if let (Some(go), Some(data)) = (s.go, s.device_data) {
            s.device = if go == Down::GoS { Cache::S } else { Cache::E };
            s.device_fresh = data == Data::Fresh;
            (s.go, s.device_data, s.device_ask) = (None, None, None);
        }
    }

    fn take_req(&self, s: &mut State) {
        let Some(req) = s.req.pop() else { return };
        if self.fault != Some(Fault::StaleMemRd) && matches!(req, Req::Share | Req::Own | Req::Inv)
        {
            s.device_to_memory();
        }
        let had = s.device != Cache::I;
        match req {
            Req::Share => {
                if had {
                    s.device = Cache::S;
                }
                s.meta = if had { Meta::S } else { Meta::A };
                s.ndr = Some(if had { Cache::S } else { Cache::E });
                s.drs = Some(Data::of(s.memory_fresh));
            }
            Req::Own | Req::Inv => {
                (s.device, s.meta, s.ndr) = (Cache::I, Meta::A, Some(Cache::E));
                if req == Req::Own {
                    s.drs = Some(Data::of(s.memory_fresh));
                }
            }
            Req::FwdS | Req::FwdI => {
                s.device_fresh = s.memory_fresh;
                (s.device, s.meta) = match req {
                    Req::FwdS => (Cache::S, Meta::S),
                    _ => (Cache::E, Meta::I),
                };
                s.device_ask = None;
            }
        }
    }

    /// Cmp, and the data that belong to it, have come.
    fn end_host(&self, s: &mut State) {
        let Some(cmp) = s.cmp else { return };
        if let Some(Home::Write(ask)) = s.home {
            (s.home, s.cmp) = (None, None);
            return self.forward(s, ask);
        }
        match (s.host_ask, s.host_data) {
            (Some(Ask::Share | Ask::Own), Some(data)) => {
                (s.host, s.host_fresh) = (cmp, data == Data::Fresh);
            }
            (Some(Ask::Share | Ask::Own), None) => return,
            (Some(Ask::Upgrade), _) => s.host = cmp,
            _ => {}
        }
        (s.host_ask, s.host_data, s.cmp) = (None, None, None);
    }

    /// Lets all messages arrive; calls `each` for every step with its messages and the state after it.
    pub fn drain(&self, state: &mut State, mut each: impl FnMut(Act, &[Message], &State)) {
        let mut next = Vec::new();
        loop {
            self.onward(state, &mut next);
            let Some((act, after)) = next.drain(..).next() else {
                return;
            };
            each(act, &sent(state, &after), &after);
            *state = after;
        }
    }
}

/// The messages that a step sent.
pub fn sent(before: &State, after: &State) -> Vec<Message> {
    let mut all = Vec::new();
    let mut new = |is_new: bool, channel, name| {
        if is_new {
            all.push(Message::new(channel, name));
        }
    };
    let ask = match after.device_ask {
        Some(Ask::Share) => "RdShared",
        Some(Ask::WriteWhole) => "ItoMWr",
        Some(Ask::Clean) => "CleanEvict",
        Some(Ask::Dirty) => "DirtyEvict",
        _ => "RdOwn",
    };
    new(after.d2h_req && !before.d2h_req, Channel::D2hReq, ask);
    let rsp = match (after.d2h_rsp, after.device) {
        (Some(true), Cache::S) => "RspSFwdM",
        (Some(true), _) => "RspIFwdM",
        (_, Cache::S) => "RspSHitSE",
        _ if before.device == Cache::I => "RspIHitI",
        _ => "RspIHitSE",
    };
    let is_new = after.d2h_rsp.is_some() && before.d2h_rsp.is_none();
    new(is_new, Channel::D2hRsp, rsp);
    let is_new = after.d2h_data.is_some() && before.d2h_data.is_none();
    new(is_new, Channel::D2hData, "Data");
    let (channel, name) = match after.h2d.0[after.h2d.len().saturating_sub(1)] {
        Some(Down::GoS) => (Channel::H2dRsp, "GO-S"),
        Some(Down::GoE) => (Channel::H2dRsp, "GO-E"),
        Some(Down::Pull) => (Channel::H2dRsp, "GO_WritePull"),
        Some(Down::PullDrop) => (Channel::H2dRsp, "GO_WritePull_Drop"),
        Some(Down::SnpData) => (Channel::H2dReq, "SnpData"),
        _ => (Channel::H2dReq, "SnpInv"),
    };
    new(after.h2d.len() > before.h2d.len(), channel, name);
    let is_new = after.h2d_data.is_some() && before.h2d_data.is_none();
    new(is_new, Channel::H2dData, "Data");
    let req = match after.req.0[after.req.len().saturating_sub(1)] {
        Some(Req::Share) => "MemRd SnpData",
        Some(Req::Own) => "MemRd SnpInv",
        Some(Req::FwdS | Req::FwdI) => "MemRdFwd",
        _ => "MemInv SnpInv",
    };
    new(after.req.len() > before.req.len(), Channel::M2sReq, req);
    new(
        after.rwd.is_some() && before.rwd.is_none(),
        Channel::M2sRwd,
        "MemWr",
    );
    let cmp = match after.ndr {
        Some(Cache::S) => "Cmp-S",
        Some(Cache::E) => "Cmp-E",
        _ => "Cmp",
    };
    new(
        after.ndr.is_some() && before.ndr.is_none(),
        Channel::S2mNdr,
        cmp,
    );
    new(
        after.drs.is_some() && before.drs.is_none(),
        Channel::S2mDrs,
        "MemData",
    );
    all
}

impl crate::explore::Machine for Type2 {
    type State = State;
    type Step = Act;

    fn first(&self) -> State {
        State::new(self.kind)
    }

    fn next(&self, state: &State, all: &mut Vec<(Act, State)>) {
        self.onward(state, all);
        self.begin(state, all);
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        state.broken()
    }

    fn begins(&self, act: &Act) -> bool {
        use Act::{DeviceEvict, DeviceLoad, DeviceStore, DeviceWriteWhole};
        use Act::{HostEvict, HostLoad, HostStore};
        matches!(
            act,
            HostLoad
                | HostStore
                | HostEvict
                | DeviceLoad
                | DeviceStore
                | DeviceWriteWhole
                | DeviceEvict
        )
    }

    fn rests(&self, state: &State) -> Option<bool> {
        Some(state.rests())
    }
}
