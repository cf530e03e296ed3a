//! The slices' caching and home agents: from a core's miss to the answer of its tier.
//!
//! A read is one event: its answer. If its slice has a free entry when the read leaves the core, no other
//! request can take that entry before the read arrives, so its admission is certain. If not, it waits in line
//! and is admitted when an entry is released. What follows (tag look-up, links, DRAM) is booked when the
//! request leaves for its tier: a few tens of nanoseconds ahead, in which its order among others is certain.

mod io;
mod memory;
mod sockets;
mod target;
mod writes;

use std::sync::Arc;

use weir_model::counters::CounterSet;

use super::llc::{Class, LastLevel};
use super::request::{Credit, Pool, Request, RequestId, Residence, Sender, Stage};
use super::tor::Slice;
use crate::clock::Ps;
use crate::line::{Kind, Place};
use crate::memory::{Link, Shared, Tier};
use crate::params::{Mesh, Params, TierParams, slice_of};
use crate::pmu::{CoreCounts, Pmu, TorClass};
use crate::rng;
use crate::wheel::{Bucket, Wheel};

pub use self::io::Io;
use self::sockets::Sockets;
use self::target::{Target, Targets};

/// The thread whose write-back the uncore has accepted, if there is one.
pub type Taken = Option<u16>;

/// Everything between the cores and the DRAM.
pub struct Uncore {
    params: Arc<Params>,
    wheel: Wheel,
    pool: Pool,
    mesh: Mesh,
    slices: Vec<Slice>,
    /// The links of core complexes to memory, one for each slice; empty without complexes.
    links: Vec<Link>,
    targets: Targets,
    /// The memory behind them.
    memories: Vec<Tier>,
    /// The first 32 tiers of which prefetches are throttled, one bit each.
    distressed: u32,
    /// Whether every core reaches every slice, and every slice reaches all of memory directly.
    is_whole: bool,
    /// The other socket, if its cores have work too.
    sockets: Option<Box<Sockets>>,
    /// Constants of the paths to devices.
    shared: Shared,
    /// `None` while no lines of any tenant can survive in it.
    llc: Option<LastLevel>,
    /// As what each thread fills the last-level cache.
    classes: Vec<Class>,
    /// Devices on ports, if any thread sends requests to them.
    io: Option<Box<Io>>,
    /// Lines that cores requested.
    filled: u64,
    /// Counters of everything, the counters of the cores too.
    pub pmu: Pmu,
}

impl Uncore {
    /// An idle uncore of this many hosts for threads that fill the cache as these classes; of both sockets if it `spans`
    /// them.
    pub fn new(
        params: Arc<Params>,
        classes: Vec<Class>,
        llc: Option<LastLevel>,
        seed: u64,
        spans: bool,
        hosts: u32,
    ) -> Self {
        let u = &params.uncore;
        let sockets = params.sockets.as_ref().filter(|_| spans);
        let tiers: Vec<&TierParams> = match sockets {
            Some(sockets) => sockets.tiers.iter().map(|home| &home.tier).collect(),
            None => params.tiers.iter().collect(),
        };
        let parts = if sockets.is_some() { 2 } else { hosts };
        let (mut targets, mut memories) = (Vec::new(), Vec::new());
        for host in 0..hosts {
            for (n, t) in tiers.iter().enumerate() {
                let i = targets.len();
                let memory = match t.config.sharing {
                    Some(_) if host > 0 => targets.get(n).map_or(0, |of: &Target| of.memory),
                    _ => {
                        let seed = rng::mix(seed ^ i as u64);
                        memories.push(Tier::new(t.config.clone(), host, seed));
                        (memories.len() - 1) as u8
                    }
                };
                targets.push(Target {
                    host: host as u8,
                    memory,
                    class: TorClass::miss(t.class),
                    spread: t.slices,
                    first_slice: (t.first_slice + host * u.slices) as u16,
                    slack: i64::from(t.holds) - 1,
                    holds: t.holds,
                    bit: 1_u32.checked_shl(i as u32).unwrap_or(0),
                });
            }
        }
        Self {
            wheel: Wheel::new(),
            pool: Pool::default(),
            mesh: u.mesh(params.core.count).times(parts),
            slices: (0..parts * u.slices)
                .map(|_| Slice::new(u.tor, u.irq, u.eviction_buffers))
                .collect(),
            links: (0..hosts * u.slices)
                .filter_map(|_| u.complex.as_ref())
                .map(|complex| Link::new(complex.link))
                .collect(),
            distressed: (targets.iter())
                .fold(0, |bits, t| bits | if t.holds == 0 { t.bit } else { 0 }),
            targets: Targets::new(&targets),
            memories,
            is_whole: u.complex.is_none() && sockets.is_none(),
            sockets: sockets.map(|params| Box::new(Sockets::new(params))),
            shared: Shared::of(hosts, tiers.iter().map(|t| &t.config)),
            llc,
            pmu: Pmu::new(classes.len()),
            classes,
            io: None,
            filled: 0,
            params,
        }
    }

    /// Restricts the ways of the last-level cache that a thread fills.
    pub fn set_mask(&mut self, thread: usize, mask: u32) {
        self.classes[thread].mask = mask;
    }

    /// Of the ways of the last-level cache that one thread fills, the share that another fills as well.
    pub fn common_ways(&self, thread: usize, other: usize) -> f64 {
        let ways = u32::MAX >> 32_u32.saturating_sub(self.params.uncore.llc.ways).min(31);
        let mask = |t: usize| self.classes[t].mask & ways;
        let common = (mask(thread) & mask(other)).count_ones();
        f64::from(common) / f64::from(mask(thread).count_ones().max(1))
    }

    /// The memory of a tier.
    #[inline(always)]
    fn memory(&mut self, tier: u8) -> &mut Tier {
        &mut self.memories[self.targets[tier].memory as usize]
    }

    /// The memory of a tier, and the links on the way.
    #[inline(always)]
    fn behind(&mut self, tier: u8) -> (&mut Tier, &mut Shared) {
        let memory = self.targets[tier].memory;
        (&mut self.memories[usize::from(memory)], &mut self.shared)
    }

    /// Lines of a tenant in the last-level cache, if they are counted there.
    pub fn held_by(&self, tenant: u16) -> Option<u64> {
        self.llc.as_ref()?.held_by(tenant)
    }

    /// Whether the last-level cache keeps lines.
    #[inline]
    pub fn keeps_lines(&self) -> bool {
        self.llc.is_some()
    }

    /// Whether as many requests wait for a tier as its queues hold. Then the slices signal distress, and
    /// cores throttle prefetches from the tier (dynamic prefetch throttle, CHA_DISTRESS_ASSERTED.DPT_* in
    /// Intel's event lists). Requests on the path to it count as if they had arrived.
    #[inline]
    pub fn is_distressed(&self, tier: u8) -> bool {
        self.targets[tier].slack < 0
    }

    /// Whether this many requests wait for a tier that the L2 prefetchers run less far ahead (Intel Optimization
    /// Reference Manual 248966: the streamer prefetches further ahead while few requests are outstanding).
    #[inline]
    pub fn is_busy(&self, tier: u8) -> bool {
        let target = &self.targets[tier];
        let waiting = i64::from(target.holds) - 1 - target.slack;
        waiting >= i64::from(self.params.uncore.busy)
    }

    /// The tiers whose prefetches are throttled, one bit each.
    #[inline]
    pub fn distressed(&self) -> u32 {
        self.distressed
    }

    /// The counts of each thread's core up to `now`.
    pub fn cores(&self, now: Ps) -> Vec<CoreCounts> {
        let mut cores = self.pmu.cores.clone();
        for request in self.pool.iter().filter(|r| r.is_the_cores()) {
            if let Some(core) = cores.get_mut(request.thread as usize) {
                let waits = (request.stage == Stage::Waits).then(|| self.arrival(request));
                core.under_way(request.kind, request.issued, waits, now);
            }
        }
        cores
    }

    /// All counts of a host up to `now`; `cores` is the part of the cores.
    pub fn counters(&self, now: Ps, host: u32, cores: &[CoreCounts]) -> CounterSet {
        let own = self.targets.iter().filter(|t| u32::from(t.host) == host);
        let tiers: Vec<_> = own
            .map(|t| self.memories[usize::from(t.memory)].counts(host))
            .collect();
        let crossed = self.sockets.as_ref().map(|sockets| sockets.crossed);
        (self.pmu).read(now, host, cores, &tiers, crossed, &self.params)
    }

    /// The events that come next, if they are due by `limit`.
    #[inline]
    pub fn take(&mut self, limit: Ps) -> Option<Bucket> {
        self.wheel.take(limit, &mut self.pool)
    }

    /// The next event of a bucket: its time, its request, and the action.
    #[inline]
    pub fn next(&self, bucket: &mut Bucket) -> Option<(Ps, RequestId, Stage)> {
        let (time, id) = bucket.next(&self.pool)?;
        Some((time, id, self.pool[id].stage))
    }

    /// Fetches what a copy needs from a medium. Returns when to look again; `None` if all of it is in DRAM.
    #[cold]
    pub fn fetch(&mut self, from: Place, to: Place, line: u64, now: Ps) -> Option<Ps> {
        let later = [from, to].map(|page| {
            let later = self.memory(page.tier).fetch(page.line + line, now);
            self.waits(page.tier);
            later
        });
        later.into_iter().flatten().max()
    }

    /// Copies a line of a page from one tier to another; returns when it is written.
    #[cold]
    pub fn copy_line(&mut self, from: Place, to: Place, line: u64, now: Ps) -> Ps {
        let (source, links) = self.behind(from.tier);
        let data = source.read_at_once(from.line + line, now, links);
        let (target, links) = self.behind(to.tier);
        target.write_at_once(to.line + line, data, links)
    }

    /// Wakes a thread at `time`.
    #[inline(always)]
    pub fn wake_at(&mut self, thread: u16, time: Ps) {
        let id = self.pool.insert_wake(thread);
        self.wheel.push(time, id, &mut self.pool);
    }

    /// The same if a position is free and the time is near; else does nothing. Returns whether it did.
    #[inline(always)]
    pub fn wake_soon(&mut self, thread: u16, time: Ps) -> bool {
        let Some(bucket) = self.wheel.near(time).filter(|_| self.pool.has_free()) else {
            return false;
        };
        let id = self.pool.insert_wake(thread);
        self.wheel.push_near(bucket, time, id, &mut self.pool);
        true
    }

    /// The thread that an event wakes.
    pub fn woken(&mut self, id: RequestId) -> usize {
        self.pool.remove(id);
        self.pool[id].thread as usize
    }

    /// Sends a request from a core to its slice, where it gets an entry or waits in line.
    #[inline(always)]
    pub fn send(&mut self, from: Sender, index: u64, place: Place, kind: Kind, at: Ps) -> Taken {
        self.send_with(from, index, place, kind, at, Residence::Tags)
    }

    /// The same if the effect in the last-level cache may be known already.
    #[inline(always)]
    pub fn send_with(
        &mut self,
        from: Sender,
        index: u64,
        place: Place,
        kind: Kind,
        at: Ps,
        residence: Residence,
    ) -> Taken {
        let slice = match self.is_whole {
            true => {
                let target = &self.targets[place.tier];
                target.first_slice + slice_of(place.line, place.tier, target.spread)
            }
            false => self.slice_among(from.core, place),
        };
        let mut request = Request::new(from, index, place, kind, slice, Stage::Waits, at);
        let host = self.targets[place.tier].host;
        request.host = host;
        request.way = self.mesh.delay(from.core, slice);
        request.residence = residence;
        let arrives = self.arrival(&request);
        let id = self.pool.insert(request);
        let slice = &mut self.slices[slice as usize];
        if slice.reserve() {
            return self.admit(id, kind, arrives);
        }
        if slice.wait(id, &mut self.pool) {
            self.pmu.of(host).irq.up(arrives);
        } else {
            self.pmu.of(host).irq_rejected += 1;
        }
        None
    }

    /// When a request reaches its slice: first the miss in L2 is detected, then the mesh is crossed.
    #[inline(always)]
    fn arrival(&self, request: &Request) -> Ps {
        let miss = if request.kind.is_read() {
            self.params.core.l2_hit
        } else {
            0
        };
        request.issued + miss + request.way
    }

    /// A request.
    #[inline(always)]
    pub fn request(&self, id: RequestId) -> Request {
        self.pool[id]
    }

    /// A tier has answered: the ToR entry goes to a waiting request, if there is one. Returns when the core
    /// gets the answer.
    #[inline(always)]
    pub fn release(&mut self, id: RequestId, request: &Request, now: Ps) -> (Ps, Taken) {
        self.pmu.tor(request.host, request.class).down(now);
        if request.waits_for_tier() {
            self.targets[request.tier].end(&mut self.distressed);
        }
        self.pool.remove(id);
        if request.credit != Credit::None {
            self.credit_back(request, now);
        }
        let waits = self.slices[request.slice as usize].release();
        let taken = if waits {
            self.admit_next(request.slice, now)
        } else {
            None
        };
        (now + request.way, taken)
    }

    /// A clean line leaves a private cache for the last-level cache. Returns the modified line that it
    /// evicts, which must be sent to memory.
    pub fn put_clean(&mut self, thread: usize, core: u16, line: Place) -> Option<Place> {
        let llc = self.llc.as_mut()?;
        let slice = self.params.first_slice(core);
        let out = llc.put(line.line, line.tier, false, self.classes[thread], slice)?;
        out.dirty.then_some(Place {
            tier: out.tier,
            line: out.line,
        })
    }

    /// The request that has waited longest gets the entry that became free.
    #[inline(always)]
    fn admit_next(&mut self, slice: u16, now: Ps) -> Taken {
        let slice = &mut self.slices[slice as usize];
        let queued = slice.queued();
        let next = slice.next(&self.pool);
        let fewer = slice.queued() < queued;
        self.admit_from_line(next, fewer, now)
    }

    /// A waiting request gets its entry; the ingress queue has `fewer` requests than before.
    #[inline(always)]
    fn admit_from_line(&mut self, next: RequestId, fewer: bool, now: Ps) -> Taken {
        let request = &self.pool[next];
        let (kind, host) = (request.kind, request.host);
        // The request may still be on its path to the slice.
        let arrived = self.arrival(request);
        let at = now.max(arrived);
        if kind != Kind::Remote {
            self.pmu.cores[request.thread as usize].waited(kind, at - arrived);
        }
        // One request leaves the ingress queue; if another was pushed back, that one takes its place.
        if fewer {
            self.pmu.of(host).irq.down(at);
        }
        self.admit(next, kind, at)
    }

    /// A request gets its ToR entry: everything until the release of the entry is booked.
    #[inline(always)]
    fn admit(&mut self, id: RequestId, kind: Kind, now: Ps) -> Taken {
        if kind.fills() {
            self.filled += 1;
            self.admit_read(id, now);
            return None;
        }
        self.admit_other(id, kind, now)
    }

    /// The same for requests that are no reads with a buffer of a core.
    #[inline(never)]
    fn admit_other(&mut self, id: RequestId, kind: Kind, now: Ps) -> Taken {
        match kind {
            Kind::WbMtoI | Kind::Clwb | Kind::LlcEvict => {
                return self.admit_write_back(id, now);
            }
            Kind::Wcilf | Kind::ItoM => self.admit_streaming(id, now),
            Kind::Remote => return self.admit_remote(id, now),
            Kind::RfoSnoop => self.admit_snoop(id, now),
            Kind::IoWrite => self.admit_io_write(id, now),
            Kind::IoRead => self.admit_io_read(id, now),
            _ => self.admit_read(id, now),
        }
        None
    }

    /// A read: its data is at the slice when its tier, or the last-level cache, has answered.
    #[inline(never)]
    fn admit_read(&mut self, id: RequestId, now: Ps) {
        let request = &mut self.pool[id];
        let u = &self.params.uncore;
        let hit = match (&mut self.llc, request.residence) {
            (Some(llc), Residence::Tags) => llc
                .take(request.line, request.tier, false, request.slice)
                .is_some(),
            (None, Residence::Tags) => match &mut self.io {
                Some(io) => io.has(request.thread, request.place(), self.filled),
                None => false,
            },
            (_, residence) => residence == Residence::Cached,
        };
        request.stage = Stage::Answered;
        let (class, answered) = if hit {
            let unhindered = u.hit + self.params.core.l2_hit + 2 * request.way;
            self.pmu.cores[request.thread as usize].hit_l3(request.kind, unhindered);
            (TorClass::Hit, now + u.hit)
        } else if self.is_whole {
            let target = &mut self.targets[request.tier];
            let (own, after) = (request.kind.owns(), now + u.lookup);
            let (line, class, host) = (request.line, target.class, request.host);
            let memory = &mut self.memories[usize::from(target.memory)];
            let data = memory.read(id, line, own, after, &mut self.shared);
            request.class = class;
            target.begin(&mut self.distressed);
            self.pmu.tor(host, class).up(now);
            let Some(data) = data else {
                let tier = request.tier;
                return self.waits(tier);
            };
            if memory.has_credits() {
                request.credit = Credit::Read;
                if memory.is_gone(data) {
                    self.pmu.cores[request.thread as usize].poisoned += 1;
                }
                if memory.has_hops() {
                    request.stage = Stage::Returns;
                }
            }
            return self.wheel.push(data, id, &mut self.pool);
        } else {
            return self.read_among(id, now);
        };
        request.class = class;
        if request.waits_for_tier() {
            self.targets[request.tier].begin(&mut self.distressed);
        }
        self.pmu.tor(request.host, class).up(now);
        self.wheel.push(answered, id, &mut self.pool);
    }

    /// A read for ownership of a line that another core (the request's `index`) holds modified: the slice
    /// finds the owner in its snoop filter and asks the owner's L2, which sends the line to the requester and
    /// an answer to the slice.
    #[cold]
    #[inline(never)]
    fn admit_snoop(&mut self, id: RequestId, now: Ps) {
        let request = &mut self.pool[id];
        let (owner, slice) = (request.index as u16, request.slice);
        if self.is_core_far(slice, owner) {
            return self.snoop_over(id, now);
        }
        let request = &mut self.pool[id];
        let there = self.mesh.delay(owner, slice);
        request.stage = Stage::Answered;
        request.class = TorClass::Hit;
        self.pmu.tor(request.host, TorClass::Hit).up(now);
        let answered = now + self.params.uncore.lookup + there + self.params.core.l2_hit + there;
        self.wheel.push(answered, id, &mut self.pool);
    }

    /// When the data of a snooped line reaches the core that requested it, for an answer at `now`: the data
    /// came directly from the owner while the answer went to the slice.
    pub fn snooped(&self, owner: u16, slice: u16, core: u16, now: Ps) -> Ps {
        if self.is_core_far(slice, owner) {
            return now + self.mesh.delay(core, slice);
        }
        let sent = now.saturating_sub(self.mesh.delay(owner, slice));
        sent + self.mesh.between(owner, core)
    }
}
