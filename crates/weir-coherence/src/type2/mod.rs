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

mod flow;
mod sent;

pub use sent::sent;

use crate::hdm_db::{Cache, Data};
use crate::message::Two;

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

    /// Nothing is on its way, and nothing waits.
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
