//! Placement of tenants on the machine: the addresses of their memory, and how many accesses each thread may
//! have outstanding.

mod program;
mod siblings;

use weir_model::access::{Op, Pattern};
use weir_model::machine::MachineError;
use weir_model::region::{DATA, SOURCE};
use weir_model::tenant::{Arrivals, Placement, Stream, Tenant, Work};
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES};

use crate::clock::{Ps, ps};
use crate::core::{
    Burst, Cursor, Limits, LineSharing, Offload, Private, Program, Progress, Region, Requests,
    Style, Tagged, Thread, Walk, Window,
};
use crate::line::{Kind, Place};
use crate::pages::PageTable;
use crate::params::{CoreParams, Params, PrivateConfig};
use crate::rng;

pub use program::{ahead, ooo_params, services};
pub use siblings::limits_of;

/// One thread for every core of every tenant, with its memory.
pub fn place_threads(
    tenants: &[Tenant],
    params: &Params,
    topology: &Topology,
    seed: u64,
) -> Result<(Vec<Thread>, PageTable), MachineError> {
    let mut allocator = TierAllocator {
        params,
        topology,
        seed,
        pages: PageTable::new(params.core.page, &params.frames(), params.tiers.len()),
    };
    let mut threads = Vec::new();
    let halved = siblings::cores(tenants);
    for (i, tenant) in tenants.iter().enumerate() {
        if let Work::Program(work) = &tenant.work {
            let (first, halved) = (threads.len(), &halved);
            threads.extend(allocator.program(tenant, i, work, (first, halved))?);
            continue;
        }
        let stream = &stream_of(tenant);
        for &core in &tenant.cores {
            let number = threads.len() as u64;
            if let Pattern::Requests { .. } = stream.pattern {
                threads.push(allocator.requests(tenant, stream, i, core, number)?);
                continue;
            }
            let parts = parts(stream);
            let mut walk = |region: &str, size, array: u64| {
                let of = WalkOf {
                    region,
                    pattern: stream.pattern,
                    reach: Bytes(params.core.tlb_reach.get() / 4),
                    number: number | (array << 32),
                    chance: rng::mix(seed ^ (number << 20) ^ (array << 40)),
                };
                allocator.walk((tenant, i), core, size, &of)
            };
            let own = walk(DATA, parts.own, 0)?;
            let sources = match &stream.reads {
                Some(_) => (1..=parts.sources)
                    .map(|n| walk(SOURCE, parts.source, n))
                    .collect::<Result<_, _>>()?,
                None => Vec::new(),
            };
            let core = (core, halved.contains(&core));
            threads.push(thread((tenant, stream), i, core, own, sources, params));
        }
        if stream.pattern == Pattern::SharedLine {
            let first = threads.len() - tenant.cores.len();
            take_turns(&mut threads, first);
        }
    }
    siblings::pair(&mut threads);
    Ok((threads, allocator.pages))
}

/// What an array of a tenant is for.
struct WalkOf<'a> {
    /// The region that it is a part of.
    region: &'a str,
    pattern: Pattern,
    /// Bytes within which a TLB-friendly order stays.
    reach: Bytes,
    /// Tells apart what would lie alike.
    number: u64,
    chance: u64,
}

/// A tenant's stream. What a program asks of memory its script decides; the stream in its place is of loads
/// all over its memory.
pub fn stream_of(tenant: &Tenant) -> Stream {
    match &tenant.work {
        Work::Stream(stream) => stream.clone(),
        Work::Program(program) => Stream::new(Op::Ld, Pattern::RandomLine, program.footprint()),
        Work::Command(_) | Work::Scope(_) => Stream::new(Op::Ld, Pattern::Sequential, Bytes(0)),
    }
}

/// Bytes that all threads of a stream touch.
fn of_all_threads(tenant: &Tenant) -> u64 {
    let each = tenant.work.stream().map_or(0, |s| s.working_set.get());
    each.saturating_mul(tenant.cores.len() as u64)
}

/// Lets the threads from `first` on alternate on the first line of the first thread.
fn take_turns(threads: &mut [Thread], first: usize) {
    let n = threads.len() - first;
    let line = threads[first].walk.place_of_offset(0);
    for i in 0..n {
        let before = threads[first + (i + n - 1) % n].core;
        threads[first + i].sharing = Some(LineSharing {
            line,
            before,
            after: first + (i + 1) % n,
            due: i == 0,
        });
    }
}

/// How the working set of a thread is divided into arrays.
struct Parts {
    /// Bytes that the instruction accesses.
    own: Bytes,
    /// Arrays that are loaded.
    sources: u64,
    /// Bytes of each array.
    source: Bytes,
}

/// One array for each line that is loaded in a round, if rounds can be that short; else one array for all.
fn parts(stream: &Stream) -> Parts {
    let Some(reads) = &stream.reads else {
        return Parts {
            own: stream.working_set,
            sources: 0,
            source: Bytes(0),
        };
    };
    let (lines, per) = (u64::from(reads.lines), u64::from(reads.per));
    let sources = if lines.is_multiple_of(per) {
        lines / per
    } else {
        1
    };
    let all = stream.working_set.lines();
    let own = (u128::from(all) * u128::from(per) / u128::from(lines + per)) as u64;
    Parts {
        own: Bytes(own.max(1) * LINE_BYTES),
        sources,
        source: Bytes(((all - own) / sources).max(1) * LINE_BYTES),
    }
}

/// Memory of all tiers, allocated from the start of each tier.
struct TierAllocator<'a> {
    params: &'a Params,
    topology: &'a Topology,
    seed: u64,
    pages: PageTable,
}

impl TierAllocator<'_> {
    /// The first tier of a core's host: tiers are numbered through the hosts.
    fn first_tier(&self, core: u32) -> usize {
        self.params.host_of(core as u16) as usize * self.params.tiers.len()
    }

    /// The tier that a core's pages are on where nothing else is said.
    fn local(&self, core: u32) -> TierName {
        match self.params.own_cluster(core) {
            Some(tier) => self.topology.tiers[tier].name.clone(),
            None => self.topology.local_tier(core),
        }
    }

    /// An array of a tenant, touched first by a thread on `core`, placed as its region is.
    fn walk(
        &mut self,
        (tenant, i): (&Tenant, usize),
        core: u32,
        size: Bytes,
        of: &WalkOf<'_>,
    ) -> Result<Walk, MachineError> {
        let local = self.local(core);
        let placement = tenant.placement_of(of.region);
        let weights = placement.weights(&local);
        let page = self.params.core.page;
        let walk = |regions| Walk::new(of.pattern, size, regions, page, of.reach, of.chance);
        let walk = match self.take((tenant, core), &weights, size, of.number) {
            Err(MachineError::NoMemory { .. }) if placement.spills() => {
                let first = self.first_tier(core) + tier_index(&weights[0].0, self.topology)?;
                let walk = walk(vec![Region {
                    tier: first as u8,
                    first: 0,
                    weight: 1,
                }]);
                self.spill(tenant, first, &walk)?;
                walk
            }
            regions => walk(regions?),
        };
        self.pages.add(i, of.region, &local, &walk);
        Ok(walk)
    }

    /// Puts every page of an array on a tier that has room: one tier as long as it has, then the others in
    /// their order.
    fn spill(&mut self, tenant: &Tenant, first: usize, walk: &Walk) -> Result<(), MachineError> {
        let memory = self.params.tiers.len();
        let base = first / memory * memory;
        let own = base..base + memory;
        let mut tiers = std::iter::once(first).chain(own.filter(|&tier| tier != first));
        let mut tier = first;
        for page in 0..walk.pages() {
            let line = loop {
                match self.pages.take(tier) {
                    Some(line) => break line,
                    None => match tiers.next() {
                        Some(next) => tier = next,
                        None => return Err(self.no_memory((tenant, None), first)),
                    },
                }
            };
            let tier = tier as u8;
            walk.move_page(page, Place { tier, line });
        }
        Ok(())
    }

    /// Too little room on a tier for what a tenant has there: all of it, where its pages go on elsewhere; else, of a program,
    /// the regions that are placed there by a thread on `core`.
    fn no_memory(&self, (tenant, core): (&Tenant, Option<u32>), tier: usize) -> MachineError {
        let name = &self.topology.tiers[tier % self.params.tiers.len()].name;
        let there = |region: &str, bytes: Bytes, core: u32| {
            let weights = tenant.placement_of(region).weights(&self.local(core));
            let of = |only: Option<&TierName>| -> u128 {
                let of = weights
                    .iter()
                    .filter(|w| only.is_none_or(|name| w.0 == *name));
                of.map(|w| u128::from(w.1)).sum()
            };
            (u128::from(bytes.get()) * of(Some(name)) / of(None).max(1)) as u64
        };
        let all = match (&tenant.work, core) {
            (Work::Program(program), Some(core)) => (program.memory().into_iter())
                .map(|(region, bytes)| there(region, bytes, core))
                .sum(),
            (Work::Program(program), None) => program.footprint().get(),
            _ => of_all_threads(tenant),
        };
        MachineError::NoMemory {
            tier: name.clone(),
            free: self.params.tiers[tier % self.params.tiers.len()].capacity,
            wanted: Bytes(all),
            within: None,
        }
    }

    /// Memory of `size` bytes for a thread; `number` separates regions that would have the same position.
    fn take(
        &mut self,
        (tenant, core): (&Tenant, u32),
        weights: &[(TierName, u32)],
        size: Bytes,
        number: u64,
    ) -> Result<Vec<Region>, MachineError> {
        let (topology, base) = (self.topology, self.first_tier(core));
        let weights: Vec<(usize, u64)> = (weights.iter())
            .filter(|(_, weight)| *weight > 0)
            .map(|(name, weight)| Ok((base + tier_index(name, topology)?, u64::from(*weight))))
            .collect::<Result<_, MachineError>>()?;
        let total: u64 = weights.iter().map(|w| w.1).sum();
        let mut regions = Vec::new();
        for (tier, weight) in weights {
            let share = u128::from(size.lines()) * u128::from(weight) / u128::from(total);
            // Regions are some pages apart, as allocations are.
            let gap = 64 * (1 + rng::below(self.seed ^ tier as u64, number, 512));
            let frames = self.pages.tier_mut(tier);
            let first = frames.next + gap;
            if u128::from(first) + share + 64 > u128::from(frames.capacity) {
                return Err(self.no_memory((tenant, Some(core)), tier));
            }
            regions.push(Region {
                tier: tier as u8,
                first,
                weight,
            });
            frames.next = first + (share as u64 + 64).next_multiple_of(FRAME_BLOCK_LINES);
        }
        Ok(regions)
    }
}

impl TierAllocator<'_> {
    /// A thread that sends requests to a storage device. Its buffers and the kernel's part for it are in DRAM
    /// of this socket.
    fn requests(
        &mut self,
        tenant: &Tenant,
        stream: &Stream,
        i: usize,
        core: u32,
        number: u64,
    ) -> Result<Thread, MachineError> {
        let Pattern::Requests {
            bytes,
            depth,
            buffered,
        } = stream.pattern
        else {
            return Err(MachineError::Request("no requests".into()));
        };
        let params = self.params;
        let device = self.device(tenant)?;
        let io = &params.io;
        let kernel = u64::from((io.submit_lines + io.complete_lines).max(1) * depth);
        let size = Bytes((kernel + u64::from(depth) * bytes.lines()) * LINE_BYTES);
        let regions = self.take((tenant, core), &[(TierName::dram(), 1)], size, number)?;
        let chance = rng::mix(self.seed ^ (number << 20));
        let (page, reach) = (params.core.page, params.core.tlb_reach);
        let walk = Walk::new(stream.pattern, size, regions, page, reach, chance);
        let mut thread = thread((tenant, stream), i, (core, false), walk, Vec::new(), params);
        thread.style = Style::Requests;
        thread.private = Private::Streaming { delay: 0 };
        thread.progress.latency = Some(Box::default());
        let mut requests = Requests::new(device, bytes.lines(), depth, kernel, chance);
        requests.writes = matches!(stream.op, Op::RandWrite | Op::SeqWrite);
        requests.in_order = matches!(stream.op, Op::SeqRead | Op::SeqWrite);
        requests.buffered = buffered;
        thread.requests = Some(Box::new(requests));
        Ok(thread)
    }

    /// The storage device that serves a tenant, with memory for its working set.
    fn device(&self, tenant: &Tenant) -> Result<usize, MachineError> {
        let Placement::Bind(name) = &tenant.placement else {
            return Err(MachineError::Request(format!(
                "tenant `{}` sends requests to several tiers; all requests must go to one storage device",
                tenant.name
            )));
        };
        if self.params.uncore.complex.is_some() {
            return Err(MachineError::Request(format!(
                "tenant `{}` sends requests to storage; the model does not support storage on hosts with core complexes",
                tenant.name
            )));
        }
        // They come after all tiers of memory.
        let device = tier_index(name, self.topology)?.checked_sub(self.params.tiers.len());
        let Some((device, drive)) = device.and_then(|d| Some((d, self.params.drives.get(d)?)))
        else {
            return Err(MachineError::Request(format!(
                "tenant `{}` sends requests to {name}, which is not a storage device",
                tenant.name
            )));
        };
        let all = of_all_threads(tenant);
        if all > drive.capacity.get() {
            return Err(MachineError::NoMemory {
                tier: name.clone(),
                free: drive.capacity,
                wanted: Bytes(all),
                within: None,
            });
        }
        Ok(device)
    }
}

/// A thread of tenant `i` on its core, which may have another thread; it loads from `sources` if there are any.
fn thread(
    (tenant, stream): (&Tenant, &Stream),
    i: usize,
    (core, is_halved): (u32, bool),
    walk: Walk,
    sources: Vec<Walk>,
    params: &Params,
) -> Thread {
    let pause = ps(stream.pause);
    let constants = params.core_of(is_halved);
    // One after the other, as accesses that are timed.
    let single = stream.pattern.is_timed() || stream.op == Op::UcLd;
    let rounds = !single && stream.op != Op::Dsa;
    let mut sources = sources;
    let offload = match stream.pattern {
        Pattern::Descriptors {
            bytes,
            batch,
            in_flight,
        } => sources
            .pop()
            .map(|source| Box::new(Offload::new(source, bytes.lines(), batch, in_flight))),
        _ => None,
    };
    let program = (rounds && (pause > 0 || stream.reads.is_some())).then(|| {
        let (lines, per) = stream.reads.as_ref().map_or((0, 1), |r| (r.lines, r.per));
        let program = Program::new(lines, per, stream.op.is_posted(), sources, pause);
        Box::new(match stream.arrivals {
            // Threads are not in step with each other.
            Arrivals::Open if pause > 0 => {
                program.at_a_fixed_rate(rng::below(u64::from(core), 0, pause))
            }
            _ => program,
        })
    });
    let burst = match stream.pattern {
        Pattern::FlushedBurst { lines } => Some(Burst {
            lines: u64::from(lines),
            left: 0,
        }),
        _ => None,
    };
    let style = match &program {
        Some(_) => Style::Program,
        None if burst.is_some() => Style::Burst,
        None if stream.pattern == Pattern::SharedLine => Style::Shared,
        None if offload.is_some() => Style::Offload,
        None if single => Style::Timed,
        None => Style::Stream,
    };
    let first = match &program {
        Some(program) => program.first_entry(),
        // Far from zero, so that lines which left the caches earlier have a number too; a multiple of every
        // working set, so that a walk starts at its beginning.
        None => first_index(walk.lines()),
    };
    Thread {
        tenant: i as u16,
        core: core as u16,
        op: stream.op,
        pattern: stream.pattern,
        limits: limits(&constants, stream, tenant.prefetch, tenant.prefetch),
        private: private(stream, constants.private),
        window: Window::new(first),
        style,
        program,
        burst,
        sharing: None,
        offload,
        requests: None,
        ooo: None,
        wakes: Ps::MAX,
        is_halved,
        beside: None,
        taken: 0,
        yields: false,
        pause,
        unending: walk.run_lines() == u64::MAX,
        walk,
        kinds: kinds(stream.op),
        cursor: Cursor::default(),
        outstanding: 0,
        write_backs: 0,
        unobserved: 0,
        next_issue: 0,
        asleep: false,
        allocated: 0,
        is_plain: false,
        paused: false,
        began: 0,
        progress: Progress {
            accesses: 0,
            latency: stream.pattern.is_timed().then(Box::default),
        },
    }
}

/// Regions are whole blocks of 2 MiB; frames are assigned within a block.
const FRAME_BLOCK_LINES: u64 = (2 << 20) / LINE_BYTES;

fn first_index(lines: u64) -> u64 {
    ((1u64 << 40) / lines) * lines
}

fn tier_index(name: &TierName, topology: &Topology) -> Result<usize, MachineError> {
    topology
        .tiers
        .iter()
        .position(|t| t.name == *name)
        .ok_or_else(|| MachineError::no_such_tier(name, topology))
}

/// The requests to the uncore by demand, by the L1 prefetcher and by the L2 prefetcher for an instruction.
fn kinds(op: Op) -> [Kind; 3] {
    match op {
        Op::Ld | Op::UcLd => Kind::LOADS,
        Op::St | Op::StClwb | Op::Cas => Kind::STORES,
        // The access is posted; a device decides itself what it requests.
        _ => [Kind::Wcilf; 3],
    }
}

/// Threads whose lines cannot survive in L2 need no tags.
fn private(stream: &Stream, config: PrivateConfig) -> Private {
    let passes_by = stream.op == Op::UcLd || stream.op.is_posted() && stream.reads.is_none();
    if stream.working_set.lines() > 4 * config.l2.0 || passes_by {
        Private::Streaming { delay: config.l2.0 }
    } else {
        Private::Tagged(Box::new(Tagged::new(config)))
    }
}

/// The limits of a thread's outstanding accesses.
pub fn limits(c: &CoreParams, stream: &Stream, l1: bool, l2: bool) -> Limits {
    let (op, pattern) = (stream.op, stream.pattern);
    let buffers = c.line_fill_buffers;
    if let Pattern::FlushedBurst { lines } = pattern {
        // All accesses are demand accesses: no prefetcher can predict a line.
        return Limits {
            outstanding: buffers,
            window: u64::from(lines),
            demand: u64::from(lines),
            ahead: 0,
            ahead_busy: 0,
            l1_ahead: 0,
            training: 0,
            stores: c.store_window,
            gap: 0,
        };
    }
    if pattern.is_timed() || matches!(op, Op::Cas | Op::UcLd) {
        // Dependent, fenced, locked, or uncached accesses: one at a time. A write-back may overlap it.
        return Limits {
            outstanding: 2,
            window: 1,
            demand: 1,
            ahead: 0,
            ahead_busy: 0,
            l1_ahead: 0,
            training: 0,
            stores: 1,
            gap: 0,
        };
    }
    let runs = matches!(pattern, Pattern::Sequential)
        || matches!(pattern, Pattern::RandomBlock { block } if block.lines() >= 4);
    let loads = match pattern {
        Pattern::RandomLine => c.random_window,
        _ => c.load_window,
    };
    // Loads fill the reorder buffer and stores the store buffer; the buffer that is full first sets the
    // limit.
    let demand_window = match (op, &stream.reads) {
        (Op::Ld, _) => loads,
        (_, None) => c.store_window,
        (op, Some(_)) if op.is_posted() => loads,
        (_, Some(_)) => loads.min(c.store_window),
    }
    .min(Window::MOST);
    let gap = match op {
        Op::Ld => c.load_gap,
        Op::NtSt => 0,
        Op::Movdir64b => c.movdir_gap,
        _ => c.store_gap,
    };
    let alone = Limits {
        outstanding: buffers,
        window: demand_window,
        demand: demand_window,
        ahead: 0,
        ahead_busy: 0,
        l1_ahead: 0,
        training: u64::from(c.training),
        stores: c.store_window,
        gap,
    };
    let passes_by = op.is_posted() && stream.reads.is_none();
    if passes_by || !runs || !(l1 || l2) {
        return alone;
    }
    // Demand accesses use the fill buffers; the prefetchers run ahead of them in the super queue.
    let demand = u64::from(buffers);
    let l1_ahead = if l1 { u64::from(c.l1_ahead) } else { 0 };
    let of_l2 = |lines: u32| if l2 { u64::from(lines) } else { 0 };
    Limits {
        outstanding: if l2 { c.super_queue } else { buffers },
        demand,
        ahead: l1_ahead + of_l2(c.l2_ahead),
        ahead_busy: l1_ahead + of_l2(c.l2_ahead_busy.min(c.l2_ahead)),
        l1_ahead,
        ..alone
    }
}
