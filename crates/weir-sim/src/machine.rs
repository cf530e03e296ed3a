//! Machine no. 1: a platform that tenants can be put on.

use std::sync::Arc;

use weir_model::access::{Op, Pattern};
use weir_model::action::{Action, Applied};
use weir_model::capability::{Capability, Feature};
use weir_model::counters::CounterSet;
use weir_model::latency::LatencyHistogram;
use weir_model::machine::{
    Goal, Identity, Machine, MachineError, MachineKind, Observation, Pacing, RunNotes,
    TenantProgress, Testbed,
};
use weir_model::platform::Platform;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::Topology;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};

use crate::clock::{nanos, ps};
use crate::core::{Limits, Place, Private, Progress, Region, Tagged, Thread, Walk, Window};
use crate::engine::Engine;
use crate::params::{Params, SimError};
use crate::rng;
use crate::uncore::LastLevel;

/// A platform, ready to be simulated as often as wanted.
#[derive(Clone)]
pub struct SimTestbed {
    model: Arc<Model>,
}

struct Model {
    identity: Identity,
    topology: Topology,
    capabilities: Vec<Capability>,
    params: Arc<Params>,
}

impl SimTestbed {
    /// Derives a machine from a platform.
    ///
    /// # Errors
    /// The platform's numbers contradict each other.
    pub fn new(platform: &Platform) -> Result<Self, SimError> {
        let params = Arc::new(Params::derive(platform)?);
        let identity = Identity {
            kind: MachineKind::Sim,
            name: platform.name.clone(),
            digest: platform.digest(),
        };
        let capabilities = vec![
            movdir64b(platform),
            Capability::present(Feature::PrefetchControl, "modelled"),
            Capability::present(Feature::UncorePmu, "counted in the model's queues"),
            Capability::present(Feature::Pinning, "every thread has a core"),
        ];
        let topology = platform.topology();
        Ok(Self {
            model: Arc::new(Model {
                identity,
                topology,
                capabilities,
                params,
            }),
        })
    }
}

/// Whether the platform's processor has 64-byte direct stores.
fn movdir64b(platform: &Platform) -> Capability {
    let core = &platform.host.core;
    if core.movdir64b_share.value > 0.0 {
        return Capability::present(Feature::Movdir64b, "modelled");
    }
    Capability::missing(
        Feature::Movdir64b,
        format!("{} does not have it", core.microarchitecture.value),
        "no figures of direct stores",
        "",
    )
}

impl Testbed for SimTestbed {
    fn open(&self, seed: u64) -> Result<Box<dyn Machine>, MachineError> {
        Ok(Box::new(SimMachine::new(self, seed)))
    }

    fn parallelism(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}

/// A simulated machine.
pub struct SimMachine {
    model: Arc<Model>,
    seed: u64,
    run: Option<Run>,
}

struct Run {
    engine: Engine,
    tenants: Vec<Tenant>,
    accesses: Vec<u64>,
    counters: CounterSet,
    prefetchers: (bool, bool),
}

impl SimMachine {
    /// A machine at rest.
    pub fn new(testbed: &SimTestbed, seed: u64) -> Self {
        Self {
            model: Arc::clone(&testbed.model),
            seed,
            run: None,
        }
    }
}

impl Machine for SimMachine {
    fn identity(&self) -> Identity {
        self.model.identity.clone()
    }

    fn topology(&self) -> &Topology {
        &self.model.topology
    }

    fn capabilities(&self) -> &[Capability] {
        &self.model.capabilities
    }

    fn pacing(&self, goal: Goal) -> Pacing {
        match goal {
            // Hundreds of refresh intervals, so that their share is right.
            Goal::Latency => Pacing {
                warm_up: Nanos::from_micros(5.0),
                window: Nanos::from_micros(100.0),
                least_windows: 4,
                most_windows: 12,
                relative_ci: 0.01,
            },
            // Queues of thousands of lines fill within the warm-up even on a slow device.
            Goal::Bandwidth => Pacing {
                warm_up: Nanos::from_micros(20.0),
                window: Nanos::from_micros(20.0),
                least_windows: 3,
                most_windows: 12,
                relative_ci: 0.01,
            },
        }
    }

    fn start(&mut self, tenants: &[Tenant]) -> Result<(), MachineError> {
        check(tenants, &self.model.topology)?;
        check_instructions(tenants, &self.model.capabilities)?;
        let threads = place_threads(tenants, &self.model, self.seed)?;
        let llc = warm_llc(&threads, &self.model.params);
        let (threads, llc) = warm_private(threads, llc, &self.model.params);
        let engine = Engine::new(Arc::clone(&self.model.params), threads, llc, self.seed);
        self.run = Some(Run {
            accesses: vec![0; tenants.len()],
            counters: engine.counters(),
            tenants: tenants.to_vec(),
            prefetchers: (true, true),
            engine,
        });
        Ok(())
    }

    fn observe(&mut self, window: Nanos) -> Result<Observation, MachineError> {
        let Some(run) = &mut self.run else {
            return Err(MachineError::Request(
                "nothing runs: start tenants first".into(),
            ));
        };
        let from = run.engine.now();
        run.engine.run(from + ps(window));
        let counters = run.engine.counters();
        let window_counters = since(&counters, &run.counters);
        run.counters = counters;

        let mut tenants = vec![TenantProgress::default(); run.tenants.len()];
        for thread in run.engine.threads_mut() {
            let tenant = &mut tenants[thread.tenant as usize];
            tenant.accesses += thread.progress.accesses;
            if let Some(latency) = &mut thread.progress.latency {
                tenant
                    .latency
                    .get_or_insert_with(LatencyHistogram::new)
                    .merge(latency);
                latency.clear();
            }
        }
        for (tenant, before) in tenants.iter_mut().zip(&mut run.accesses) {
            let total = tenant.accesses;
            tenant.accesses -= *before;
            tenant.bytes = Bytes(tenant.accesses * LINE_BYTES);
            *before = total;
        }
        Ok(Observation {
            window: nanos(run.engine.now() - from),
            tenants,
            counters: window_counters,
        })
    }

    fn act(&mut self, action: &Action) -> Result<Applied, MachineError> {
        let Some(run) = &mut self.run else {
            return Err(MachineError::Request(
                "nothing runs: start tenants first".into(),
            ));
        };
        match action {
            Action::Prefetchers { l1, l2 } => {
                run.prefetchers = (*l1, *l2);
                for thread in run.engine.threads_mut() {
                    let tenant = &run.tenants[thread.tenant as usize];
                    let on = tenant.prefetch;
                    thread.limits = limits(
                        &self.model.params,
                        tenant.op,
                        tenant.pattern,
                        on && *l1,
                        on && *l2,
                    );
                }
            }
            Action::CacheWays { tenant, mask } => {
                let ways = self.model.params.uncore.llc.ways;
                let all = u32::MAX >> (32 - ways.min(32));
                if *mask == 0 || mask & !all != 0 {
                    return Err(MachineError::Request(format!(
                        "the mask {mask:#x} must set at least one of the cache's {ways} ways and no other"
                    )));
                }
                let Some(i) = run.tenants.iter().position(|t| t.name == *tenant) else {
                    return Err(MachineError::Request(format!(
                        "no tenant is called `{tenant}`"
                    )));
                };
                run.engine.set_mask(i as u16, *mask);
            }
        }
        Ok(Applied {
            requested: action.clone(),
            applied: action.clone(),
        })
    }

    fn stop(&mut self) -> Result<RunNotes, MachineError> {
        self.run = None;
        Ok(RunNotes::default())
    }
}

/// Counters of a window: later minus earlier.
fn since(later: &CounterSet, earlier: &CounterSet) -> CounterSet {
    let mut window = CounterSet::default();
    for (counter, value) in later.iter() {
        window.set(
            counter,
            value.saturating_sub(earlier.get(counter).unwrap_or(0)),
        );
    }
    window
}

/// Refuses what makes no sense on this machine.
fn check(tenants: &[Tenant], topology: &Topology) -> Result<(), MachineError> {
    let request = |text: String| Err(MachineError::Request(text));
    let mut used = vec![None; topology.cores.len()];
    for (i, tenant) in tenants.iter().enumerate() {
        let name = &tenant.name;
        if tenants[..i].iter().any(|t| t.name == *name) {
            return request(format!("two tenants are called `{name}`"));
        }
        if tenant.cores.is_empty() {
            return request(format!("tenant `{name}` has no cores"));
        }
        if tenant.working_set.lines() == 0 {
            return request(format!(
                "tenant `{name}` has a working set of {}, less than one line",
                tenant.working_set
            ));
        }
        for &core in &tenant.cores {
            let Some(owner) = used.get_mut(core as usize) else {
                return request(format!(
                    "tenant `{name}` wants core {core}, but there are {}",
                    topology.cores.len()
                ));
            };
            if let Some(other) = owner.replace(name) {
                return request(format!(
                    "core {core} is wanted by `{other}` and by `{name}`"
                ));
            }
        }
        if tenant.pattern.is_timed() && !timed(tenant.op, tenant.pattern) {
            return request(format!(
                "tenant `{name}`: {} cannot be timed with {}",
                tenant.op,
                tenant.pattern.name()
            ));
        }
        if tenant.placement.tiers().next().is_none() {
            return request(format!("tenant `{name}` is placed on no tier"));
        }
        if let Placement::Interleave(weights) = &tenant.placement
            && weights.iter().all(|(_, w)| *w == 0)
        {
            return request(format!(
                "tenant `{name}` interleaves with weights that are all zero"
            ));
        }
    }
    Ok(())
}

/// Refuses instructions that the platform's processor lacks.
fn check_instructions(tenants: &[Tenant], capabilities: &[Capability]) -> Result<(), MachineError> {
    let lacks = |feature| {
        capabilities
            .iter()
            .find(|c| c.feature == feature && !c.present)
    };
    match lacks(Feature::Movdir64b) {
        Some(capability) if tenants.iter().any(|t| t.op == Op::Movdir64b) => {
            Err(MachineError::Missing {
                feature: capability.feature,
                reason: capability.detail.clone(),
            })
        }
        _ => Ok(()),
    }
}

/// Whether single accesses of this kind are timed: chases load; flushed lines take any but atomics.
fn timed(op: Op, pattern: Pattern) -> bool {
    match pattern {
        Pattern::Chase { .. } => op == Op::Ld,
        Pattern::FlushedLine => op != Op::Cas,
        _ => false,
    }
}

/// A thread for every core of every tenant, its memory laid out.
fn place_threads(
    tenants: &[Tenant],
    model: &Model,
    seed: u64,
) -> Result<Vec<Thread>, MachineError> {
    let (params, topology) = (&model.params, &model.topology);
    let mut used = vec![0u64; params.tiers.len()];
    let mut threads = Vec::new();
    for (i, tenant) in tenants.iter().enumerate() {
        let weights: Vec<(usize, u64)> = match &tenant.placement {
            Placement::Bind(name) => vec![(tier_index(name, topology)?, 1)],
            Placement::Interleave(weights) => weights
                .iter()
                .filter(|(_, w)| *w > 0)
                .map(|(name, w)| Ok((tier_index(name, topology)?, u64::from(*w))))
                .collect::<Result<_, MachineError>>()?,
        };
        let total: u64 = weights.iter().map(|w| w.1).sum();
        for &core in &tenant.cores {
            let number = threads.len() as u64;
            let mut regions = Vec::new();
            for &(tier, weight) in &weights {
                // Regions lie apart by an odd number of pages, as allocations do.
                let share = (tenant.working_set.lines() * weight / total + 64)
                    .next_multiple_of(FRAME_BLOCK_LINES);
                let gap = 64 * (1 + rng::below(seed ^ tier as u64, number, 512));
                regions.push(Region {
                    tier: tier as u8,
                    first: used[tier] + gap,
                    weight,
                });
                used[tier] += gap + share;
                let capacity = params.tiers[tier].capacity;
                if used[tier] > capacity.lines() {
                    return Err(MachineError::NoMemory {
                        tier: topology.tiers[tier].name.clone(),
                        free: capacity,
                        wanted: Bytes(tenant.working_set.get() * tenant.cores.len() as u64),
                    });
                }
            }
            let walk = Walk::new(
                tenant.pattern,
                tenant.working_set,
                regions,
                params.core.page,
                Bytes(params.core.tlb_reach.get() / 4),
                rng::mix(seed ^ (number << 20)),
            );
            let prefetch = tenant.prefetch && !tenant.pattern.is_timed();
            threads.push(Thread {
                tenant: i as u16,
                core: core as u16,
                op: tenant.op,
                pattern: tenant.pattern,
                limits: limits(params, tenant.op, tenant.pattern, prefetch, prefetch),
                private: private(&walk, tenant.op, params),
                llc_mask: u32::MAX >> (32 - params.uncore.llc.ways.min(32)),
                // Far from zero, so that what left the caches before has a number too; a multiple
                // of every working set, so that a walk starts at its beginning.
                window: Window::new(first_index(walk.lines())),
                timed: tenant.pattern.is_timed(),
                unending: walk.run_lines() == u64::MAX,
                walk,
                outstanding: 0,
                write_backs: 0,
                unobserved: 0,
                next_issue: 0,
                asleep: false,
                began: 0,
                progress: Progress {
                    accesses: 0,
                    latency: tenant.pattern.is_timed().then(Box::default),
                },
            });
        }
    }
    Ok(threads)
}

/// Regions are whole blocks of 2 MiB, within which frames are dealt out.
const FRAME_BLOCK_LINES: u64 = (2 << 20) / LINE_BYTES;

fn first_index(lines: u64) -> u64 {
    ((1u64 << 40) / lines) * lines
}

fn tier_index(
    name: &weir_model::topology::TierName,
    topology: &Topology,
) -> Result<usize, MachineError> {
    topology
        .tiers
        .iter()
        .position(|t| t.name == *name)
        .ok_or_else(|| MachineError::no_such_tier(name, topology))
}

/// Threads whose lines cannot survive in L2 need no tags.
fn private(walk: &Walk, op: Op, params: &Params) -> Private {
    let config = params.core.private;
    if walk.lines() > 4 * config.l2.0 || op.is_posted() {
        Private::Streaming { delay: config.l2.0 }
    } else {
        Private::Tagged(Box::new(Tagged::new(config)))
    }
}

/// What a thread may have in flight.
fn limits(params: &Params, op: Op, pattern: Pattern, l1: bool, l2: bool) -> Limits {
    let c = &params.core;
    let buffers = c.line_fill_buffers;
    let runs = matches!(pattern, Pattern::Sequential)
        || matches!(pattern, Pattern::RandomBlock { block } if block.lines() >= 4);
    let demand_window = match (op, pattern) {
        (Op::Ld, Pattern::RandomLine) => c.random_window,
        (Op::Ld, _) => c.load_window,
        _ => c.store_window,
    }
    .min(Window::MOST);
    if pattern.is_timed() || op == Op::Cas {
        // Dependent, fenced, or locked: one at a time. A write-back may overlap it.
        return Limits {
            outstanding: 2,
            window: 1,
            demand: 1,
            l1_ahead: 0,
            gap: 0,
        };
    }
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
        l1_ahead: 0,
        gap,
    };
    if op.is_posted() || !runs || !(l1 || l2) {
        return alone;
    }
    // Demand keeps the fill buffers; the prefetchers run ahead of it in the super-queue.
    let demand = u64::from(buffers);
    let l1_ahead = if l1 { u64::from(c.l1_ahead) } else { 0 };
    let l2_ahead = if l2 { u64::from(c.l2_ahead) } else { 0 };
    Limits {
        outstanding: if l2 { c.super_queue } else { buffers },
        window: (demand + l1_ahead + l2_ahead).min(Window::MOST),
        demand,
        l1_ahead,
        gap,
    }
}

/// The last-level cache, if any thread's lines can survive in it. Those of a tenant that comes round
/// in a fixed order survive if they fit; of one that draws lines at random, a share does for as long
/// as they are not many times the cache.
fn warm_llc(threads: &[Thread], params: &Params) -> Option<LastLevel> {
    let lines = params.uncore.llc.lines;
    let per_tenant = |tenant: u16| -> u64 {
        threads
            .iter()
            .filter(|t| t.tenant == tenant)
            .map(|t| t.walk.lines())
            .sum()
    };
    threads
        .iter()
        .any(|t| match t.pattern {
            Pattern::FlushedLine => false,
            Pattern::Sequential | Pattern::Chase { .. } => {
                per_tenant(t.tenant) <= lines + lines / 4
            }
            Pattern::RandomLine | Pattern::RandomBlock { .. } => per_tenant(t.tenant) <= 8 * lines,
        })
        .then(|| LastLevel::new(params.uncore.llc))
}

/// Walks every thread through its caches once, untimed, so that a run starts warm. Threads take
/// turns, and none walks further than twice what the caches can hold.
fn warm_private(
    mut threads: Vec<Thread>,
    mut llc: Option<LastLevel>,
    params: &Params,
) -> (Vec<Thread>, Option<LastLevel>) {
    const TURN: u64 = 64;
    let most = 2 * params.uncore.llc.lines / threads.len().max(1) as u64;
    let passes: Vec<u64> = threads
        .iter()
        .map(|t| match (&t.private, &llc) {
            (Private::Tagged(_), _) => 2 * t.walk.lines(),
            (Private::Streaming { .. }, Some(_)) => (2 * t.walk.lines()).min(most),
            (Private::Streaming { .. }, None) => 0,
        })
        .collect();
    let longest = passes.iter().copied().max().unwrap_or(0);
    for from in (0..longest).step_by(TURN as usize) {
        for (thread, &pass) in threads.iter_mut().zip(&passes) {
            if thread.pattern == Pattern::FlushedLine {
                continue;
            }
            let first = thread.window.next().wrapping_sub(pass);
            for index in first + from..first + (from + TURN).min(pass) {
                touch(thread, llc.as_mut(), index);
            }
        }
    }
    (threads, llc)
}

/// One untimed access.
fn touch(thread: &mut Thread, llc: Option<&mut LastLevel>, index: u64) {
    if thread.op.is_posted() {
        return;
    }
    let write = thread.op.reads_for_ownership();
    let place = thread.walk.place(index);
    let leaves = match &mut thread.private {
        Private::Streaming { delay } => {
            Some((thread.walk.place(index.wrapping_sub(*delay)), write))
        }
        Private::Tagged(caches) => {
            if caches.find(place.key(), write).is_some() {
                return;
            }
            let out = caches.fill(place.key(), write);
            out.map(|(key, dirty)| (Place::from_key(key), dirty))
        }
    };
    if let (Some(llc), Some((out, dirty))) = (llc, leaves) {
        llc.put(out.line, out.tier, dirty, thread.llc_mask);
    }
}
