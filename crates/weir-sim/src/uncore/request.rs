//! One request for one line, from the core's miss until its last queue lets go of it.

use crate::clock::Ps;
use crate::core::Place;
use crate::pmu::TorClass;
use crate::wheel::{Slot, Slots};

/// Names a request in the pool.
pub type RequestId = u32;

/// No request.
pub const NO_REQUEST: RequestId = u32::MAX;

/// Who sends a request: the thread, and the core it runs on.
#[derive(Debug, Clone, Copy)]
pub struct Sender {
    /// Position of the thread.
    pub thread: u16,
    /// Number of its core, for the mesh.
    pub core: u16,
}

/// What a request asks of the uncore, with the hardware's opcode names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Data read on demand (DRd).
    Drd,
    /// Data read by an L1 prefetcher.
    DrdL1Pref,
    /// Data read by the L2 prefetcher (DRd_Pref).
    DrdL2Pref,
    /// Read for ownership on demand (RFO).
    Rfo,
    /// Read for ownership by the L2 prefetcher (RFO_Pref).
    RfoPref,
    /// Read for ownership of a line that another core has modified: its L2 is snooped. The last of
    /// those that bring a line to a core.
    RfoSnoop,
    /// Full-line streaming write (WCiLF).
    Wcilf,
    /// Write-back of a modified line from L2 (WbMtoI).
    WbMtoI,
    /// A modified line that the last-level cache gives up (TOR_INSERTS.EVICT).
    LlcEvict,
    /// Write-back asked for by `clwb`: through to memory, the line stays (WbMtoE).
    Clwb,
    /// Read by a device on the socket (PCIRdCur).
    PciRdCur,
    /// Full-line write by a device on the socket (ItoM).
    ItoM,
    /// The same two by a device on a port (TOR_INSERTS.IO_PCIRDCUR and IO_ITOM): what it reads may be in
    /// a cache, and what it writes goes there.
    IoRead,
    IoWrite,
    /// What a request of another socket's slice, the one that `index` names, asks of a slice here (RRQ).
    Remote,
}

impl Kind {
    /// Whether it is a write that is posted, past the caches.
    pub const fn is_posted(self) -> bool {
        matches!(self, Kind::Wcilf)
    }

    /// How many kinds cores and devices send.
    pub const COUNT: usize = Kind::IoWrite as usize + 1;

    /// Those that leave cores, and not the last-level cache or a device.
    pub const OF_CORES: [Kind; 9] = [
        Kind::Drd,
        Kind::DrdL1Pref,
        Kind::DrdL2Pref,
        Kind::Rfo,
        Kind::RfoPref,
        Kind::RfoSnoop,
        Kind::Wcilf,
        Kind::WbMtoI,
        Kind::Clwb,
    ];

    /// What demand, the L1 and the L2 prefetchers ask for where lines are loaded.
    pub const LOADS: [Kind; 3] = [Kind::Drd, Kind::DrdL1Pref, Kind::DrdL2Pref];

    /// The same where they are stored to.
    pub const STORES: [Kind; 3] = [Kind::Rfo, Kind::RfoPref, Kind::RfoPref];

    /// Whether it brings a line from memory to the core that asks.
    #[inline]
    pub const fn fills(self) -> bool {
        (self as u8) < Kind::RfoSnoop as u8
    }

    /// Whether it is to make the core the line's only owner.
    #[inline]
    pub const fn owns(self) -> bool {
        matches!(self, Kind::Rfo | Kind::RfoPref)
    }

    /// Whether it brings a line to the core.
    pub const fn is_read(self) -> bool {
        self as u8 <= Kind::RfoSnoop as u8
    }
}

/// What the last-level cache does for a request, where that is known without its tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residence {
    /// Its tags say.
    Tags,
    /// It has the line, or keeps it.
    Cached,
    /// It has not.
    Absent,
}

/// What happens to a request next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is on its way to its slice, or waits there.
    Waits,
    /// The slice has pulled a streaming write's data.
    Pulled,
    Answered,
    /// The same for a write-back that memory had no room for: it gives the core's buffer back too.
    Held,
    /// It waits for an answer from the other socket.
    Abroad,
    /// It is a guest, and gives its entry back.
    Leaves,
    /// It is none: its thread wakes up.
    Wakes,
}

/// A request: one line of the processor's cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct Request {
    /// The line, numbered within its tier.
    pub line: u64,
    /// The access of the core's program that caused it.
    pub index: u64,
    /// When the core issued it; for a streaming write whose data was pulled, when memory has it.
    pub issued: Ps,
    /// One way between its core and its slice.
    pub way: Ps,
    /// Its next event.
    slot: Slot,
    /// The next in the same queue.
    pub next: RequestId,
    /// The thread that sent it, as a position in the engine's list.
    pub thread: u16,
    /// Slice.
    pub slice: u16,
    /// Tier, as a position in the engine's list.
    pub tier: u8,
    /// What it asks.
    pub kind: Kind,
    /// What happens to it next.
    pub stage: Stage,
    /// What kind of ToR entry it holds.
    pub class: TorClass,
    /// What the last-level cache does for it.
    pub residence: Residence,
}

impl Request {
    /// A request that was issued at `issued`, before it has a ToR entry.
    #[inline]
    pub fn new(
        from: Sender,
        index: u64,
        place: Place,
        kind: Kind,
        slice: u16,
        stage: Stage,
        issued: Ps,
    ) -> Self {
        Self {
            line: place.line,
            index,
            issued,
            way: 0,
            slot: Slot::IDLE,
            next: NO_REQUEST,
            thread: from.thread,
            slice,
            tier: place.tier,
            kind,
            stage,
            class: TorClass::Hit,
            residence: Residence::Tags,
        }
    }

    /// Whether its tier has to answer it, once it has a ToR entry.
    #[inline]
    pub fn waits_for_tier(&self) -> bool {
        self.class as u8 > TorClass::Remote as u8
    }

    /// Whether it holds, or waits with, a buffer of a core: a posted write and a write-back that was let
    /// in do so no longer, or have been counted to their end.
    pub fn is_the_cores(&self) -> bool {
        match self.stage {
            _ if self.kind as usize >= Kind::COUNT => false,
            Stage::Wakes => false,
            Stage::Waits => true,
            Stage::Abroad => !self.kind.is_posted(),
            _ => self.kind.is_read(),
        }
    }

    /// Where its line is.
    #[inline]
    pub fn place(&self) -> Place {
        Place {
            tier: self.tier,
            line: self.line,
        }
    }
}

/// All requests in flight.
pub struct Pool {
    requests: Vec<Request>,
    /// Head of the list of free places, linked by `next`.
    free: RequestId,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            requests: Vec::new(),
            free: NO_REQUEST,
        }
    }
}

impl Pool {
    /// Takes a request in.
    #[inline]
    pub fn insert(&mut self, request: Request) -> RequestId {
        let id = self.free;
        match self.requests.get_mut(id as usize) {
            Some(place) => {
                self.free = place.next;
                *place = request;
                id
            }
            None => {
                self.requests.push(request);
                (self.requests.len() - 1) as RequestId
            }
        }
    }

    /// Every request in flight.
    pub fn iter(&self) -> impl Iterator<Item = &Request> {
        let mut in_flight = vec![true; self.requests.len()];
        let mut free = self.free;
        while let Some(place) = self.requests.get(free as usize) {
            in_flight[free as usize] = false;
            free = place.next;
        }
        let all = self.requests.iter().zip(in_flight);
        all.filter_map(|(request, is)| is.then_some(request))
    }

    /// Lets a request go.
    #[inline]
    pub fn remove(&mut self, id: RequestId) {
        self.requests[id as usize].next = self.free;
        self.free = id;
    }
}

impl Slots for Pool {
    #[inline(always)]
    fn slot(&self, event: u32) -> Option<Slot> {
        Some(self.requests.get(event as usize)?.slot)
    }

    #[inline(always)]
    fn set_slot(&mut self, event: u32, slot: Slot) {
        self.requests[event as usize].slot = slot;
    }
}

impl std::ops::Index<RequestId> for Pool {
    type Output = Request;
    #[inline]
    fn index(&self, id: RequestId) -> &Request {
        &self.requests[id as usize]
    }
}

impl std::ops::IndexMut<RequestId> for Pool {
    #[inline]
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        &mut self.requests[id as usize]
    }
}
