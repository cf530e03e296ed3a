//! The simulated machine: tenants run on a platform.

mod model;
mod run;
mod testbed;

use std::sync::Arc;

use weir_model::action::{Action, Applied};
use weir_model::capability::{Capability, Feature};
use weir_model::counters::CounterSet;
use weir_model::machine::{
    Goal, Identity, Machine, MachineError, Observation, Pacing, RunNotes, TenantProgress,
};
use weir_model::page_move::{Destination, MoveRequest};
use weir_model::stop;
use weir_model::tenant::Tenant;
use weir_model::topology::Topology;
use weir_model::units::Nanos;

use self::model::Model;
use self::run::Run;
pub use self::testbed::{PHYSICS, SimTestbed};
use crate::clock::nanos;
use crate::engine::{Chance, Engine};
use crate::regulate::{Regulation, duty_slices};
use crate::sampling::{History, Plan, Sampling, Stretches};
use crate::uncore::ALL_WAYS;
use crate::{check, layout, warm};

/// A simulated machine.
pub struct SimMachine {
    model: Arc<Model>,
    sampling: Option<Sampling>,
    error: Option<f64>,
    seed: u64,
    run: Option<Run>,
}

/// Windows of a point whose error is asked for: so few say little of their spread, and more than this many take minutes.
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
                        layout::limits_of(thread, &self.model.params, stream, on && *l1, on && *l2);
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
