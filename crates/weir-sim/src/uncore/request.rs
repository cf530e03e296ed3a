//! One request for one line, from the core's miss until it leaves its last queue.

use crate::clock::Ps;
use crate::line::{Kind, Place};
use crate::pmu::TorClass;
use crate::wheel::{Slot, Slots};

/// Names a request in the pool.
pub type RequestId = u32;

/// No request.
pub const NO_REQUEST: RequestId = u32::MAX;

/// The sender of a request: the thread and its core.
#[derive(Debug, Clone, Copy)]
pub struct Sender {
    /// Position of the thread.
    pub thread: u16,
    /// Number of its core, for the mesh.
    pub core: u16,
}

/// The effect of a request in the last-level cache, if it is known without tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residence {
    /// The tags decide.
    Tags,
    /// A hit, or the cache keeps the line.
    Cached,
    /// A miss.
    Absent,
}

/// The next step of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is on the path to its slice, or waits there.
    Waits,
    /// The slice has read a streaming write's data.
    Pulled,
    /// Its tier, the cache or another core has answered.
    Answered,
    /// A written line comes to its device.
    Arrives,
    /// A line that was read has crossed its device's link, and comes to another one.
    Returns,
    /// It waits for an answer from the other socket.
    Abroad,
    /// A request of the other socket, which releases its entry.
    Leaves,
    /// No request: an event that wakes its thread.
    Wakes,
    /// No request: a write queue for which lines wait has room.
    Refills,
}

/// The credit of a device that a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credit {
    /// None: its tier gives no credits, or it has not got one yet.
    None,
    /// One for a read.
    Read,
    /// One for a written line.
    Write,
}

/// Where the data of a write-back waits for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// Nowhere: memory accepted it at once, or the cache has it. So it is for all other requests.
    Passed,
    /// In a buffer of its core.
    Core,
    /// In an eviction buffer of its slice; the core's part has ended.
    Slice,
}

/// A request. It fits one line of the processor's cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct Request {
    /// The line, numbered within its tier; for a write-back that evicts another line, that one.
    pub line: u64,
    /// The access of the core's program that caused it.
    pub index: u64,
    /// When the core issued it; for a streaming write to the other socket, when memory has it.
    pub issued: Ps,
    /// One-way time between its core and its slice.
    pub way: Ps,
    /// Its next event.
    slot: Slot,
    /// The next request in the same queue.
    pub next: RequestId,
    /// The thread that sent it, as a position in the engine's list.
    pub thread: u16,
    /// Slice.
    pub slice: u16,
    /// Tier, as a position in the engine's list.
    pub tier: u8,
    /// Its host.
    pub host: u8,
    /// Its kind.
    pub kind: Kind,
    /// Its next step.
    pub stage: Stage,
    /// The class of its ToR entry.
    pub class: TorClass,
    /// Its effect in the last-level cache.
    pub residence: Residence,
    /// Its credit.
    pub credit: Credit,
    /// Where the data of a write-back waits that memory could not accept at once.
    pub data: Data,
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
            host: 0,
            kind,
            stage,
            class: TorClass::Hit,
            residence: Residence::Tags,
            credit: Credit::None,
            data: Data::Passed,
        }
    }

    /// Whether its tier must answer it, once it has a ToR entry.
    #[inline]
    pub fn waits_for_tier(&self) -> bool {
        self.class as u8 > TorClass::Remote as u8
    }

    /// Whether it holds a buffer of a core, or waits with one: a posted write and a write-back that was
    /// admitted do not hold one any more, or were counted to their end.
    pub fn is_the_cores(&self) -> bool {
        match self.stage {
            _ if self.kind as usize >= Kind::COUNT => false,
            Stage::Wakes | Stage::Refills => false,
            Stage::Waits => true,
            _ => self.kind.is_read() || self.data == Data::Core,
        }
    }

    /// The position of its line.
    #[inline]
    pub fn place(&self) -> Place {
        Place {
            tier: self.tier,
            line: self.line,
        }
    }
}

/// All outstanding requests.
pub struct Pool {
    requests: Vec<Request>,
    /// Head of the list of free positions, linked by `next`.
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
    /// Adds a request.
    #[inline]
    pub fn insert(&mut self, request: Request) -> RequestId {
        let id = self.take();
        let place = &mut self.requests[id as usize];
        self.free = place.next;
        // The wheel writes the slot.
        let slot = place.slot;
        *place = Request { slot, ..request };
        id
    }

    /// Adds an event that wakes a thread. Only what such an event needs is written.
    #[inline]
    pub fn insert_wake(&mut self, thread: u16) -> RequestId {
        let id = self.take();
        let place = &mut self.requests[id as usize];
        self.free = place.next;
        place.thread = thread;
        place.stage = Stage::Wakes;
        id
    }

    /// Whether there is a free position.
    #[inline(always)]
    pub fn has_free(&self) -> bool {
        self.free != NO_REQUEST
    }

    /// The first free position, which there is after this.
    #[inline(always)]
    fn take(&mut self) -> RequestId {
        if self.free == NO_REQUEST {
            self.grow();
        }
        self.free
    }

    /// Adds a free position.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let from = Sender { thread: 0, core: 0 };
        let place = Place { tier: 0, line: 0 };
        self.free = self.requests.len() as RequestId;
        self.requests
            .push(Request::new(from, 0, place, Kind::Drd, 0, Stage::Wakes, 0));
    }

    /// Every outstanding request.
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

    /// Removes a request.
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
