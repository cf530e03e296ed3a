//! The simulated machine: tenants run on a platform.

use std::sync::Arc;

use weir_model::access::Pattern;
use weir_model::action::{Action, Applied};
use weir_model::capability::{Capability, Feature};
use weir_model::counters::{Counter, CounterSet};
use weir_model::latency::LatencyHistogram;
use weir_model::machine::{
    Goal, Identity, Machine, MachineError, MachineKind, Observation, Pacing, RunNotes,
    TenantProgress, Testbed,
};
use weir_model::page_move::{Destination, MoveRequest};
use weir_model::platform::Platform;
use weir_model::region::RegionUse;
use weir_model::stop;
use weir_model::tenant::{Stream, Tenant, Work};
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES, Nanos};

use crate::clock::{nanos, ps};
use crate::core::Use;
use crate::engine::{Chance, Engine};
use crate::params::{Params, SimError};
use crate::regulate::{DutySlice, Regulation, duty_slices};
use crate::sampling::{History, PARTS, Plan, Sampling, Series, Stretches};
use crate::uncore::ALL_WAYS;
use crate::{check, layout, warm};

/// A platform that can be simulated any number of times.
#[derive(Clone)]
pub struct SimTestbed {
    model: Arc<Model>,
    sampling: Option<Sampling>,
    error: Option<f64>,
}

struct Model {
    identity: Identity,
    topology: Topology,
    capabilities: Vec<Capability>,
    params: Arc<Params>,
}

impl Model {
    /// Refuses a mask of ways that the last-level cache does not have.
    fn check_ways(&self, mask: u32) -> Result<(), MachineError> {
        let ways = self.params.uncore.llc.ways;
        let all = u32::MAX >> (32 - ways.min(32));
        if mask == 0 || mask & !all != 0 {
            return Err(MachineError::Request(format!(
                "the mask {mask:#x} must set at least one of the cache's {ways} ways and no other"
            )));
        }
        Ok(())
    }

    /// Refuses hints for memory that no medium is behind.
    fn check_hints(&self, tenants: &[Tenant]) -> Result<(), MachineError> {
        let has_medium = |name: &TierName| {
            let at = self
                .topology
                .tiers
                .iter()
                .position(|tier| tier.name == *name);
            let tier = at.and_then(|at| self.params.tiers.get(at));
            tier.is_some_and(|t| {
                t.config
                    .device
                    .as_ref()
                    .is_some_and(|d| d.backing.is_some())
            })
        };
        let hinted =
            |tenant: &&Tenant| tenant.deterministic && !tenant.placement.tiers().any(has_medium);
        match tenants.iter().find(hinted) {
            None => Ok(()),
            Some(tenant) => Err(MachineError::Request(format!(
                "tenant `{}` is to be deterministic, but no medium is behind its memory: the hint is for devices with a \
                 group [backing], such as cxl-ssd-znand",
                tenant.name
            ))),
        }
    }
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
            dsa(platform),
            storage(platform),
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
            sampling: None,
            error: None,
        })
    }

    /// The same machine for long experiments: windows longer than the detailed part are sampled.
    pub fn sampled(self, sampling: Sampling) -> Self {
        Self {
            sampling: Some(sampling),
            ..self
        }
    }

    /// The same machine; windows that are sampled have parts until half of the 95 % interval of each figure is at most
    /// this share of it.
    pub fn to_error(self, error: Option<f64>) -> Self {
        Self { error, ..self }
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
        "the platform has no figures of direct stores",
        "",
    )
}

/// Whether the platform's processor has an accelerator that copies.
fn dsa(platform: &Platform) -> Capability {
    if *platform.host.accelerator.devices > 0 {
        return Capability::present(Feature::Dsa, "modelled, one device");
    }
    Capability::missing(
        Feature::Dsa,
        format!(
            "{} does not have it",
            platform.host.core.microarchitecture.value
        ),
        "the platform has no figures of copies by an accelerator",
        "",
    )
}

/// Whether the platform has a storage device.
fn storage(platform: &Platform) -> Capability {
    match platform.storage.as_slice() {
        [] => Capability::missing(
            Feature::Storage,
            "the platform has no storage device",
            "the platform has no figures of requests",
            "name one: `--on emr2s+cxl-a+ssd-nvme4`",
        ),
        devices => {
            let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
            Capability::present(Feature::Storage, format!("modelled: {}", names.join(", ")))
        }
    }
}

/// The version of what the simulator computes. Stored answers of another version are not reused; a test says when it
/// must be raised.
pub const PHYSICS: u32 = 6;

impl Testbed for SimTestbed {
    fn open(&self, seed: u64) -> Result<Box<dyn Machine>, MachineError> {
        Ok(Box::new(SimMachine::new(self, seed)))
    }

    fn physics(&self) -> Option<u32> {
        Some(PHYSICS)
    }

    fn parallelism(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}

/// A simulated machine.
pub struct SimMachine {
    model: Arc<Model>,
    sampling: Option<Sampling>,
    error: Option<f64>,
    seed: u64,
    run: Option<Run>,
}

struct Run {
    engine: Engine,
    tenants: Vec<Tenant>,
    /// Each tenant's.
    streams: Vec<Stream>,
    regulations: Vec<Regulation>,
    accesses: Vec<u64>,
    counters: CounterSet,
    /// Data of each tenant.
    of_tenants: Vec<CounterSet>,
    /// Whether the running threads or their limits changed since the last window.
    disturbed: bool,
    /// How many parts its windows have, and where they are.
    plan: Plan,
    chance: Chance,
    history: History,
    /// What the programs had done in their regions at the end of the last window, and their instructions.
    used: Vec<(Vec<Use>, f64)>,
}

impl SimMachine {
    /// A machine at rest.
    pub fn new(testbed: &SimTestbed, seed: u64) -> Self {
        Self {
            model: Arc::clone(&testbed.model),
            sampling: testbed.sampling,
            error: testbed.error,
            seed,
            run: None,
        }
    }
}

/// Windows of a point whose error is asked for: so few say little of their spread, and more than so many take minutes.
const LEAST_WINDOWS_WITHIN: u32 = 8;
const MOST_WINDOWS_WITHIN: u32 = 400;

/// Misses of a medium behind DRAM, one after the other, before counting starts, and in a window. Where single accesses
/// are timed, more are needed: most of them may be hits.
const MISSES_TO_WARM: f64 = 8.0;
const MISSES_OF_WINDOW: f64 = 24.0;
const MISSES_TIMED: f64 = 400.0;

/// How long to look where no error is asked for.
fn usual_pacing(goal: Goal) -> Pacing {
    match goal {
        // Hundreds of refresh intervals, so that the share of refreshes is right.
        Goal::Latency => Pacing {
            warm_up: Nanos::from_micros(5.0),
            window: Nanos::from_micros(100.0),
            least_windows: 4,
            most_windows: 12,
            relative_ci: 0.01,
        },
        // Queues of thousands of lines fill within the warm-up, on a slow device too.
        Goal::Bandwidth => Pacing {
            warm_up: Nanos::from_micros(20.0),
            window: Nanos::from_micros(20.0),
            least_windows: 3,
            most_windows: 12,
            relative_ci: 0.01,
        },
        // A few times the duration of a request; storage is already busy.
        Goal::Requests => Pacing {
            warm_up: Nanos::from_micros(200.0),
            window: Nanos::from_micros(250.0),
            least_windows: 3,
            most_windows: 8,
            relative_ci: 0.03,
        },
    }
}

impl Machine for SimMachine {
    fn identity(&self) -> Identity {
        let mut identity = self.model.identity.clone();
        if let Some(error) = self.error {
            identity.digest.push_str(&format!("-within-{error}"));
        }
        identity
    }

    fn topology(&self) -> &Topology {
        &self.model.topology
    }

    fn capabilities(&self) -> &[Capability] {
        &self.model.capabilities
    }

    fn pacing(&self, goal: Goal) -> Pacing {
        let mut pacing = usual_pacing(goal);
        if let Some(miss) = self.model.params.longest_miss() {
            pacing.warm_up = pacing.warm_up.max(nanos(miss) * MISSES_TO_WARM);
            let misses = match goal {
                Goal::Latency => MISSES_TIMED,
                Goal::Bandwidth | Goal::Requests => MISSES_OF_WINDOW,
            };
            pacing.window = pacing.window.max(nanos(miss) * misses);
        }
        match self.error {
            None => pacing,
            Some(error) => Pacing {
                least_windows: pacing.least_windows.max(LEAST_WINDOWS_WITHIN),
                most_windows: MOST_WINDOWS_WITHIN,
                relative_ci: error,
                ..pacing
            },
        }
    }

    fn start(&mut self, tenants: &[Tenant]) -> Result<(), MachineError> {
        self.run = None;
        check::tenants(tenants, &self.model.topology)?;
        check::instructions(tenants, &self.model.capabilities)?;
        for mask in tenants.iter().filter_map(|t| t.cache_ways) {
            self.model.check_ways(mask)?;
        }
        self.model.check_hints(tenants)?;
        // The memory here is write-back, where a non-temporal load is a load.
        let tenants: Vec<Tenant> = (tenants.iter().cloned())
            .map(|tenant| tenant.with_stream(|s| s.op = s.op.without_load_hint()))
            .collect();
        let tenants = tenants.as_slice();
        let (threads, pages) =
            layout::place_threads(tenants, &self.model.params, &self.model.topology, self.seed)?;
        let llc = warm::last_level(&threads, &self.model.params);
        let masks: Vec<u32> = (threads.iter())
            .map(|thread| {
                tenants[thread.tenant as usize]
                    .cache_ways
                    .unwrap_or(ALL_WAYS)
            })
            .collect();
        let (threads, llc) = warm::walk_through(threads, llc, &masks, &self.model.params);
        let services = layout::services(tenants, &threads, self.seed);
        let mut engine = Engine::new(Arc::clone(&self.model.params), threads, llc, self.seed);
        let deterministic: Vec<bool> = tenants.iter().map(|t| t.deterministic).collect();
        engine.set_pages(pages, &deterministic);
        engine.set_services(services);
        for (i, tenant) in tenants.iter().enumerate() {
            if let Some(mask) = tenant.cache_ways {
                engine.set_mask(i as u16, mask);
            }
        }
        let (counters, of_tenants) = engine.counters(tenants.len());
        let mut accesses = vec![0; tenants.len()];
        for thread in engine.threads_mut() {
            accesses[thread.tenant as usize] += thread.progress.accesses;
            if let Some(latency) = &mut thread.progress.latency {
                latency.clear();
            }
        }
        self.run = Some(Run {
            accesses,
            counters,
            of_tenants,
            regulations: vec![Regulation::NONE; tenants.len()],
            disturbed: true,
            plan: Plan::new(self.error),
            chance: Chance::new(self.seed),
            history: History::default(),
            used: Vec::new(),
            tenants: tenants.to_vec(),
            streams: tenants.iter().map(layout::stream_of).collect(),
            engine,
        });
        Ok(())
    }

    fn observe(&mut self, window: Nanos) -> Result<Observation, MachineError> {
        let Some(run) = &mut self.run else {
            return Err(MachineError::Request(
                "no tenant runs: start tenants first".into(),
            ));
        };
        let sampling = self.sampling.filter(|s| s.detail.get() < window.get());
        let tenants = vec![TenantProgress::default(); run.tenants.len()];
        let mut observation = Observation::of(Nanos(0.0), tenants, CounterSet::default());
        let (mut stretches, mut simulated) = (Stretches::default(), Nanos(0.0));
        for slice in duty_slices(&run.regulations) {
            let whole = window * slice.part;
            let changed = run.let_run(&slice);
            let Some(sampling) = sampling else {
                observation.extend(run.go_on(whole));
                continue;
            };
            if changed || run.disturbed {
                run.go_on(sampling.warm_up);
            }
            let (seen, counted) = run.sample(whole, &sampling, &mut stretches);
            simulated = simulated + counted;
            observation.extend(seen);
        }
        if sampling.is_some() {
            run.history
                .add(&stretches, stretches.is_steady() && !run.disturbed);
            observation.sampled = Some(stretches.sampled(simulated, self.error, &run.history));
        }
        for (i, tenant) in observation.tenants.iter_mut().enumerate() {
            tenant.regions = (run.engine.pages_mut()).observe(i, &self.model.topology);
        }
        run.add_uses(&mut observation);
        run.disturbed = false;
        match stop::requested() {
            true => Err(MachineError::Interrupted),
            false => Ok(observation),
        }
    }

    fn act(&mut self, action: &Action) -> Result<Applied, MachineError> {
        let Some(run) = &mut self.run else {
            return Err(MachineError::Request(
                "no tenant runs: start tenants first".into(),
            ));
        };
        match action {
            Action::MovePages {
                tenant,
                pages,
                from,
                to,
                limit,
            } => {
                let request = MoveRequest {
                    pages,
                    destination: Destination::Between(from, to),
                    limit: *limit,
                };
                run.move_pages(tenant, request, &self.model)?;
            }
            Action::Place {
                tenant,
                pages,
                placement,
                limit,
            } => {
                check::placement(tenant, placement)?;
                let request = MoveRequest {
                    pages,
                    destination: Destination::Place(placement),
                    limit: *limit,
                };
                run.move_pages(tenant, request, &self.model)?;
            }
            Action::InterleaveWeights { .. } => {
                return Err(MachineError::Missing {
                    feature: Feature::InterleaveWeights,
                    reason: "a model places every page at the start, by the tenant's own weights; \
                             place its pages again"
                        .into(),
                });
            }
            Action::Prefetchers { l1, l2 } => {
                for thread in run.engine.threads_mut() {
                    let i = usize::from(thread.tenant);
                    let (on, stream) = (run.tenants[i].prefetch, &run.streams[i]);
                    if let Some(core) = &mut thread.ooo {
                        core.set_ahead(layout::ahead(&self.model.params, on && *l1, on && *l2));
                    }
                    thread.limits =
                        layout::limits(&self.model.params, stream, on && *l1, on && *l2);
                }
            }
            Action::CacheWays { tenant, mask } => {
                self.model.check_ways(*mask)?;
                let i = run.tenant(tenant)?;
                run.engine.set_mask(i as u16, *mask);
            }
            Action::Cores { tenant, cores } => {
                if *cores == Some(0) {
                    return Err(MachineError::Request(format!(
                        "`{tenant}` cannot run on zero cores"
                    )));
                }
                run.regulation(tenant)?.cores = *cores;
            }
            Action::ProcessorTime { tenant, share, .. } => {
                if !(*share > 0.0 && *share <= 1.0) {
                    return Err(MachineError::Request(format!(
                        "`{tenant}` cannot run for {share} of the time: the share is above 0 and at most 1"
                    )));
                }
                run.regulation(tenant)?.share = *share;
            }
            Action::Clock { tenant, clock } => {
                run.regulation(tenant)?.clock = *clock;
                run.set_pace(&self.model.params);
            }
            Action::Bandwidth { tenant, percent } => {
                if !(1..=100).contains(percent) {
                    return Err(MachineError::Request(format!(
                        "`{tenant}` cannot be given {percent} percent of its bandwidth: 1 to 100"
                    )));
                }
                let scale = &self.model.params.core.allocation;
                let applied = (scale.applied(f64::from(*percent) / 100.0) * 100.0).round() as u32;
                run.regulation(tenant)?.bandwidth = applied;
                run.set_pace(&self.model.params);
                run.disturbed = true;
                return Ok(Applied {
                    requested: action.clone(),
                    applied: Action::Bandwidth {
                        tenant: tenant.clone(),
                        percent: applied,
                    },
                });
            }
        }
        run.disturbed = true;
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

impl Run {
    /// What the programs did in their regions since the last window. Of a window of which only parts were counted, the
    /// parts before those are in it too, so that it is brought to the instructions that were counted.
    fn add_uses(&mut self, seen: &mut Observation) {
        let now = self.engine.uses(self.tenants.len());
        self.used.resize_with(now.len(), Default::default);
        let since = std::mem::replace(&mut self.used, now);
        let each = seen.tenants.iter_mut().zip(&self.tenants);
        for ((progress, tenant), (now, before)) in each.zip(self.used.iter().zip(&since)) {
            let Work::Program(work) = &tenant.work else {
                continue;
            };
            let counted = progress.counters.get(Counter::Instructions).unwrap_or(0) as f64;
            let ran = now.1 - before.1;
            let scale = if ran > 0.0 { counted / ran } else { 0.0 };
            let of = |(n, (region, _)): (usize, (&str, Bytes))| {
                let at = |uses: &[Use]| uses.get(n).copied().unwrap_or_default();
                let (now, before) = (at(&now.0), at(&before.0));
                let own = RegionUse {
                    region: region.to_owned(),
                    read: now.read - before.read,
                    written: now.written - before.written,
                    waited: nanos(now.waited - before.waited),
                    waits: now.waits - before.waits,
                };
                own.times(scale)
            };
            progress.uses = work.memory().into_iter().enumerate().map(of).collect();
        }
    }

    /// The position of the tenant of this name.
    fn tenant(&self, name: &str) -> Result<usize, MachineError> {
        let position = self.tenants.iter().position(|t| t.name == name);
        position.ok_or_else(|| MachineError::Request(format!("no tenant is called `{name}`")))
    }

    /// Has pages of a tenant moved while time goes on.
    fn move_pages(
        &mut self,
        tenant: &str,
        request: MoveRequest<'_>,
        model: &Model,
    ) -> Result<(), MachineError> {
        let i = self.tenant(tenant)?;
        (self.engine.pages_mut()).request(i, request, &model.topology)?;
        self.engine.start_moving();
        Ok(())
    }

    fn regulation(&mut self, tenant: &str) -> Result<&mut Regulation, MachineError> {
        let i = self.tenant(tenant)?;
        Ok(&mut self.regulations[i])
    }

    /// The time between two requests of every core: a lower clock makes instructions slower, and a bandwidth
    /// allocation limits the rate of requests.
    fn set_pace(&mut self, params: &Params) {
        for thread in self.engine.threads_mut() {
            let i = usize::from(thread.tenant);
            let (prefetch, held) = (self.tenants[i].prefetch, &self.regulations[i]);
            let limits = layout::limits(params, &self.streams[i], prefetch, prefetch);
            let slower = held
                .clock
                .map_or(1.0, |c| 1.0 / (c.get() * params.core.cycle));
            thread.limits.gap = (limits.gap as f64 * slower) as u64;
            thread.allocated = params.core.allocated(held.bandwidth);
            if let Some(core) = &mut thread.ooo {
                core.set_clock(&layout::ooo_params(params), 1.0 / slower);
            }
        }
    }

    /// Lets the threads of a slice run. Returns whether other threads ran before.
    fn let_run(&mut self, slice: &DutySlice) -> bool {
        let running = &slice.running;
        (self.engine).let_run(|tenant, number| number < running[usize::from(tenant)])
    }

    /// Simulates parts of a stretch in which the same threads run. Returns the counts of the whole, and the time that was
    /// counted.
    fn sample(
        &mut self,
        whole: Nanos,
        sampling: &Sampling,
        seen: &mut Stretches,
    ) -> (Observation, Nanos) {
        let changes = self.engine.changes();
        seen.0.push(Series::new(changes));
        match changes {
            true => self.sample_changing(whole, sampling, seen),
            false => self.sample_steady(whole, sampling, seen),
        }
    }

    /// The same where nothing changes over time but what is queued: the parts follow one another.
    fn sample_steady(
        &mut self,
        whole: Nanos,
        sampling: &Sampling,
        seen: &mut Stretches,
    ) -> (Observation, Nanos) {
        let length = sampling.part(self.plan.error);
        let mut sum = self.go_on(length);
        let mut last = sum.clone();
        loop {
            if let Some(series) = seen.0.last_mut() {
                series.push(length, &last);
                series.level(whole);
                let enough = series.len() >= PARTS && series.len().is_multiple_of(PARTS / 2);
                let all = sum.window >= whole || !self.plan.goes_on(seen);
                if stop::requested() || enough && all {
                    break;
                }
            }
            last = self.go_on(length);
            sum.extend(last.clone());
        }
        let counted = sum.window;
        (sum.scaled_to(whole), counted)
    }

    /// The same where programs have phases, or pages move.
    fn sample_changing(
        &mut self,
        whole: Nanos,
        sampling: &Sampling,
        seen: &mut Stretches,
    ) -> (Observation, Nanos) {
        let length = sampling.part(self.plan.error);
        let tenants = vec![TenantProgress::default(); self.tenants.len()];
        let mut sum = Observation::of(Nanos(0.0), tenants, CounterSet::default());
        let (mut counted, mut changed) = (Nanos(0.0), 0.0);
        let parts = match self.plan.error {
            Some(_) => {
                let most = (whole.get() / length.get()).ceil() as usize;
                self.plan.parts().min(most).max(1)
            }
            None => self.plan.parts(),
        };
        let stratum = whole * (1.0 / parts as f64);
        for _ in 0..parts {
            if stop::requested() {
                break;
            }
            let spare = (stratum - length).max(Nanos(0.0));
            let before = spare * self.chance.unit();
            changed += self.engine.skip(ps(before));
            let mut after = spare - before;
            if changed > 0.0 {
                let settling = sampling.settling(changed);
                self.go_on(settling);
                after = (after - settling).max(Nanos(0.0));
            }
            let copied = self.engine.pages_mut().copied();
            self.engine.begin_part();
            let part = self.go_on(length);
            self.engine.end_part();
            let copied = self.engine.pages_mut().copied() - copied;
            let factor = stratum.get() / part.window.get();
            (self.engine).skip_moves((copied as f64 * (factor - 1.0)) as u64);
            changed = self.engine.skip(ps(after));
            if let Some(series) = seen.0.last_mut() {
                series.push(stratum, &part);
            }
            counted = counted + part.window;
            sum.extend(part.scaled_to(stratum));
        }
        self.plan.end(seen);
        (sum, counted)
    }

    /// Lets time pass; returns the counts of that time.
    fn go_on(&mut self, time: Nanos) -> Observation {
        let from = self.engine.now();
        self.engine.run(from + ps(time));
        let (counters, of_tenants) = self.engine.counters(self.tenants.len());
        let counted = since(&counters, &self.counters);
        self.counters = counters;

        let mut tenants = vec![TenantProgress::default(); self.tenants.len()];
        for thread in self.engine.threads_mut() {
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
        let pairs = of_tenants.iter().zip(&self.of_tenants);
        for (tenant, (later, earlier)) in tenants.iter_mut().zip(pairs) {
            tenant.counters = since(later, earlier);
        }
        self.of_tenants = of_tenants;
        let patterns = self.streams.iter().map(|stream| stream.pattern);
        for ((tenant, before), pattern) in tenants.iter_mut().zip(&mut self.accesses).zip(patterns)
        {
            let total = tenant.accesses;
            tenant.accesses -= *before;
            tenant.bytes = Bytes(tenant.accesses * bytes_of_access(pattern));
            *before = total;
        }
        Observation::of(nanos(self.engine.now() - from), tenants, counted)
    }
}

/// Bytes that an access of a tenant touches: those of a request, or a line.
fn bytes_of_access(pattern: Pattern) -> u64 {
    match pattern {
        Pattern::Requests { bytes, .. } => bytes.lines() * LINE_BYTES,
        _ => LINE_BYTES,
    }
}

/// Counters of a window: the later ones minus the earlier ones, but levels as they are.
fn since(later: &CounterSet, earlier: &CounterSet) -> CounterSet {
    let mut window = later.clone();
    for (counter, value) in later.iter().filter(|(counter, _)| !counter.is_level()) {
        window.set(
            counter,
            value.saturating_sub(earlier.get(counter).unwrap_or(0)),
        );
    }
    window
}
