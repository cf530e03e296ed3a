//! This server as a [`Machine`]: tenants are pinned threads that run one instruction each, on memory whose
//! placement the kernel confirmed.

#[cfg(test)]
mod action_tests;
mod assignment;
mod counting;
mod notes;
mod pacer;
mod pages;
mod parts;
mod processes;
mod recorder;
mod regulation;
mod requests;
mod run_changes;
mod shared_line;
mod task;
mod timer;
mod ways;
mod worker;
mod worker_pool;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_model::action::{Action, Actuators, Applied};
use weir_model::application_tenant::ApplicationTenant;
use weir_model::capability::{Capability, Feature, Unavailable};
use weir_model::counters::{Counter, CounterSet};
use weir_model::events::EventLibrary;
use weir_model::machine::{
    Goal, Identity, Machine, MachineError, MachineKind, Observation, Pacing, RunNotes,
    RunningApplication, TenantProgress, Testbed,
};
use weir_model::page_move::{Destination, MoveRequest};
use weir_model::tenant::{Placement, Tenant, Work};
use weir_model::topology::{TierName, Topology};
use weir_model::units::Nanos;

use crate::application::{Running as RunningHere, Where};
use crate::clock::{self, Clock, Moment};
use crate::memory::Policy;
use crate::perf;
use crate::prefetch::{Running, Switches};
use crate::root::Root;
use crate::steer::{Extent, Restored, SystemSettings, restore};
use crate::storage::Storage;
use crate::topology;

use counting::Plan;
use parts::HostParts;
pub use parts::Options;
use worker_pool::WorkerPool;

/// How long until the loss of a thread is noticed.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// How long to wait between two moves of pages.
const MOVE_STEP: Duration = Duration::from_micros(200);

/// This server, to be measured one run at a time.
pub struct LinuxTestbed {
    host: Arc<HostParts>,
    restored: Restored,
}

impl LinuxTestbed {
    /// Reads the machine below `root`. A recorded machine can be read, but not loaded.
    ///
    /// # Errors
    /// No processor or no memory node could be found, or an option makes no sense.
    pub fn new(root: Root, options: Options) -> Result<Self, MachineError> {
        if !(options.budget.is_finite() && options.budget > 0.0) {
            return Err(MachineError::Request(format!(
                "a budget of {} is not valid; the usual value is 1",
                options.budget
            )));
        }
        // What a killed run left would be measured. No journal, one that is in use, and one of another user are not news.
        let restored = match (&options.run_journal, root.is_live()) {
            (Some(folder), true) => restore(&root, folder, Extent::Run).unwrap_or_default(),
            _ => Restored::default(),
        };
        let view = topology::discover(&root);
        let mut capabilities = view.capabilities();
        let policy = if root.is_live() {
            Policy::probe()
        } else {
            Policy::denied(Unavailable::because("this is a recorded machine"))
        };
        let prefetchers = match view.known_cpus().iter().find(|cpu| cpu.allowed) {
            Some(cpu) if root.is_live() => Switches::find(&root, &view.processor, cpu.id)
                .map_err(|why| view.without_switches(why)),
            _ => Err(Unavailable::because("this is a recorded machine")),
        };
        let mut topology = view.topology()?;
        let storage = match &options.storage {
            Some(wish) => Some(Storage::find(&root, wish)?),
            None => None,
        };
        if let Some(storage) = &storage {
            topology.tiers.push(storage.tier());
            capabilities.retain(|c| c.feature != Feature::Storage);
            capabilities.push(storage.capability());
        }
        let host = HostParts {
            prefetchers,
            topology,
            identity: Identity {
                kind: MachineKind::Host,
                name: "host".to_owned(),
                digest: topology::digest(&view, storage.as_ref().map(Storage::tier).as_ref()),
            },
            storage,
            counters: no_counters(&capabilities),
            counted: Plan::of(
                &root,
                perf::table(&root, &EventLibrary::builtin()).ok().cloned(),
            ),
            capabilities,
            policy,
            view,
            root,
            options,
            kept: Mutex::new(Vec::new()),
        };
        Ok(Self {
            host: Arc::new(host),
            restored,
        })
    }

    /// What was restored of an earlier run that was killed.
    pub fn restored(&self) -> &Restored {
        &self.restored
    }

    /// Why requests that write are refused, if there is storage and they are.
    pub fn only_reads(&self) -> Option<String> {
        self.host.storage.as_ref().and_then(Storage::only_reads)
    }
}

impl Testbed for LinuxTestbed {
    fn open(&self, seed: u64) -> Result<Box<dyn Machine>, MachineError> {
        Ok(Box::new(LinuxMachine {
            host: Arc::clone(&self.host),
            seed,
            pool: None,
            settings: None,
        }))
    }

    fn parallelism(&self) -> usize {
        1
    }

    fn application(
        &self,
        tenant: &ApplicationTenant,
        stop: &dyn Fn() -> bool,
    ) -> Result<Box<dyn RunningApplication>, MachineError> {
        let dram = TierName::dram();
        let has_nodes = self
            .host
            .topology
            .tier(&dram)
            .is_none_or(|tier| tier.node.is_some());
        // Where the kernel has no nodes, all memory is on the only tier.
        let policy = match has_nodes || tenant.placement != Placement::Bind(dram) {
            true => processes::policy_of(&self.host, &tenant.placement)?,
            false => None,
        };
        let place = Where {
            cpus: Vec::new(),
            policy,
        };
        let running = RunningHere::start(&self.host.root, tenant, place, stop)?;
        Ok(Box::new(running))
    }
}

/// One run at a time on this server.
pub struct LinuxMachine {
    host: Arc<HostParts>,
    seed: u64,
    pool: Option<WorkerPool>,
    settings: Option<SystemSettings>,
}

impl LinuxMachine {
    fn running(&mut self) -> Result<&mut WorkerPool, MachineError> {
        self.pool.as_mut().ok_or_else(|| {
            MachineError::Request("no run is under way; start one before acting on it".into())
        })
    }

    /// The settings of the system, with the journal, which is taken when an action first needs it.
    fn settings(&mut self, feature: Feature) -> Result<&mut SystemSettings, MachineError> {
        let tenants = self.running()?.journal();
        match &mut self.settings {
            Some(settings) => Ok(settings),
            none => Ok(none.insert(regulation::settings(&self.host, tenants, feature)?)),
        }
    }
}

fn applied(requested: &Action, applied: Action) -> Applied {
    Applied {
        requested: requested.clone(),
        applied,
    }
}

impl Machine for LinuxMachine {
    fn identity(&self) -> Identity {
        self.host.identity.clone()
    }

    fn topology(&self) -> &Topology {
        &self.host.topology
    }

    fn capabilities(&self) -> &[Capability] {
        &self.host.capabilities
    }

    fn pacing(&self, goal: Goal) -> Pacing {
        let (warm_up, window) = match goal {
            Goal::Latency => (20.0, 20.0),
            Goal::Bandwidth | Goal::Requests => (30.0, 40.0),
        };
        // Below a few milliseconds, one time slice of another thread fills a window.
        let scaled = |ms: f64| Nanos((ms * self.host.options.budget).max(4.0) * 1e6);
        Pacing {
            warm_up: scaled(warm_up),
            window: scaled(window),
            least_windows: 3,
            most_windows: 10,
            relative_ci: 0.02,
        }
    }

    fn start(&mut self, tenants: &[Tenant]) -> Result<(), MachineError> {
        if self.pool.is_some() {
            return Err(MachineError::Request(
                "a run is in progress; stop it before the next".into(),
            ));
        }
        if !self.host.root.is_live() {
            return Err(MachineError::Request(
                "a recorded machine can be read, but not loaded".into(),
            ));
        }
        let is_program = |tenant: &&Tenant| matches!(tenant.work, Work::Program(_));
        if let Some(tenant) = tenants.iter().find(is_program) {
            return Err(MachineError::Request(format!(
                "`{}` is the description of a program, which only a model runs; here run the program \
                 itself",
                tenant.name
            )));
        }
        if let Some(tenant) = tenants.iter().find(|tenant| tenant.deterministic) {
            return Err(MachineError::Request(format!(
                "`{}` is to be deterministic: no device takes that hint, only a model of one with a medium",
                tenant.name
            )));
        }
        if let Some(tenant) = tenants.iter().find(|tenant| tenant.second_threads) {
            return Err(MachineError::Request(format!(
                "`{}` has second threads of cores; a host has numbers of their own for them",
                tenant.name
            )));
        }
        let work = assignment::work(&self.host, tenants, self.seed)?;
        self.pool = Some(WorkerPool::assemble(work, tenants, &self.host)?);
        Ok(())
    }

    fn observe(&mut self, window: Nanos) -> Result<Observation, MachineError> {
        let Some(pool) = &mut self.pool else {
            return Err(MachineError::Request(
                "no run is in progress; start one before observing".into(),
            ));
        };
        if !(window.get().is_finite() && window.get() > 0.0) {
            return Err(MachineError::Request(format!(
                "{window} is not a valid window"
            )));
        }
        let clock = Clock::best();
        let moment = Moment::now(clock);
        pool.begin_window()?;
        let began = clock::raw_nanos();
        let end = began.saturating_add(window.get() as u64);
        loop {
            let left = Duration::from_nanos(end.saturating_sub(clock::raw_nanos()));
            if left.is_zero() {
                break;
            }
            let longest = match pool.is_moving() {
                true => MOVE_STEP,
                false => LONGEST_SLEEP,
            };
            std::thread::sleep(left.min(longest));
            pool.step_moves()?;
            pool.check()?;
        }
        let mut tenants = pool.end_window()?;
        let elapsed = clock::raw_nanos().saturating_sub(began);
        pool.after_window(&mut tenants);
        pool.observe_regions(&self.host, &mut tenants);
        Moment::now(clock)
            .check_since(moment, clock)
            .map_err(|cause| MachineError::System {
                what: "the clocks of this machine".into(),
                cause,
            })?;
        let counters = together(&self.host.counters, &tenants);
        Ok(Observation::of(Nanos(elapsed as f64), tenants, counters))
    }

    fn act(&mut self, action: &Action) -> Result<Applied, MachineError> {
        let moves = matches!(action, Action::MovePages { .. } | Action::Place { .. });
        if let (Some(pool), Some(tenant), false) = (&mut self.pool, action.tenant(), moves)
            && let Some(processes) = pool.processes_with(tenant)
        {
            return processes.act(action);
        }
        match *action {
            Action::Prefetchers { l1, l2 } => {
                let missing = |why: Unavailable| MachineError::Missing {
                    feature: Feature::PrefetchControl,
                    reason: why.reason,
                };
                let switches = self.host.prefetchers.as_ref();
                let switches = switches.map_err(|why| missing(why.clone()))?;
                let Some(pool) = &mut self.pool else {
                    return Err(MachineError::Request(
                        "no run is in progress; start one before switching its prefetchers".into(),
                    ));
                };
                let applied = pool
                    .switch_prefetchers(switches, Running { l1, l2 })
                    .map_err(missing)?;
                Ok(Applied {
                    requested: action.clone(),
                    applied: Action::Prefetchers {
                        l1: applied.l1,
                        l2: applied.l2,
                    },
                })
            }
            Action::CacheWays { ref tenant, mask } => {
                let Some(pool) = &mut self.pool else {
                    return Err(MachineError::Request(
                        "no run is in progress; start one before dividing the cache".into(),
                    ));
                };
                let applied = pool.set_ways(&self.host, tenant, mask)?;
                Ok(Applied {
                    requested: action.clone(),
                    applied: Action::CacheWays {
                        tenant: tenant.clone(),
                        mask: applied,
                    },
                })
            }
            Action::Cores { ref tenant, cores } => {
                let cores = self.running()?.limit_cores(tenant, cores)?;
                let tenant = tenant.clone();
                Ok(applied(action, Action::Cores { tenant, cores }))
            }
            Action::ProcessorTime {
                ref tenant,
                share,
                period,
            } => {
                self.running()?.limit_time(tenant, share, period)?;
                Ok(applied(action, action.clone()))
            }
            Action::Bandwidth {
                ref tenant,
                percent,
            } => {
                let host = Arc::clone(&self.host);
                let percent = self.running()?.set_bandwidth(&host, tenant, percent)?;
                let tenant = tenant.clone();
                Ok(applied(action, Action::Bandwidth { tenant, percent }))
            }
            Action::Clock { ref tenant, clock } => {
                let cpus = self.running()?.cores_of(tenant)?.to_vec();
                let settings = self.settings(Feature::ClockControl)?;
                let clock = settings
                    .set_clock(&cpus, clock)
                    .map_err(|why| regulation::missing(Feature::ClockControl, why))?;
                let tenant = tenant.clone();
                Ok(applied(action, Action::Clock { tenant, clock }))
            }
            Action::InterleaveWeights { ref weights } => {
                let host = Arc::clone(&self.host);
                let settings = self.settings(Feature::InterleaveWeights)?;
                let weights = regulation::set_weights(&host, settings, weights)?;
                Ok(applied(action, Action::InterleaveWeights { weights }))
            }
            Action::MovePages {
                ref tenant,
                ref pages,
                ref from,
                ref to,
                limit,
            } => {
                let host = Arc::clone(&self.host);
                let request = MoveRequest {
                    pages,
                    destination: Destination::Between(from, to),
                    limit,
                };
                self.running()?.move_pages(&host, tenant, request)?;
                Ok(applied(action, action.clone()))
            }
            Action::Place {
                ref tenant,
                ref pages,
                ref placement,
                limit,
            } => {
                let host = Arc::clone(&self.host);
                let request = MoveRequest {
                    pages,
                    destination: Destination::Place(placement),
                    limit,
                };
                self.running()?.move_pages(&host, tenant, request)?;
                Ok(applied(action, action.clone()))
            }
        }
    }

    fn actuators(&self, tenant: &str) -> Actuators {
        let pool = self.pool.as_ref();
        pool.map_or_else(Actuators::default, |pool| {
            pool.actuators(&self.host, tenant)
        })
    }

    fn stop(&mut self) -> Result<RunNotes, MachineError> {
        let settings = self.settings.take();
        let restored = settings.map_or(Ok(Vec::new()), SystemSettings::restore);
        let restored = restored.map_err(|why| MachineError::NotRestored(vec![why.reason]));
        let different = restored.map(|left| left.iter().map(ToString::to_string).collect());
        let Some(pool) = self.pool.take() else {
            return different.map(|warnings| RunNotes {
                warnings,
                ..RunNotes::default()
            });
        };
        let (mut notes, regions) = pool.dismiss()?;
        let different: Vec<String> = different?;
        notes.warnings.extend(different);
        *self
            .host
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = regions;
        Ok(notes)
    }
}

impl Drop for LinuxMachine {
    fn drop(&mut self) {
        // A caller that did not stop the run does not read the notes.
        let _ = self.stop();
    }
}

/// The cores' counters summed over tenants, if all of them have a value; the others with their reasons.
fn together(reasons: &CounterSet, tenants: &[TenantProgress]) -> CounterSet {
    let mut sum = CounterSet::default();
    // Requests to storage and processes are not threads of this program.
    let counted = |t: &&TenantProgress| t.process.is_none() && t.counters != CounterSet::default();
    for tenant in tenants.iter().filter(counted) {
        sum.add_up(&tenant.counters);
    }
    let mut all = reasons.clone();
    for (counter, value) in sum.iter().filter(|(counter, _)| !counter.is_software()) {
        all.set_scaled(counter, value, sum.running_share(counter));
    }
    all
}

/// Every counter with the reason why it cannot be read.
fn no_counters(capabilities: &[Capability]) -> CounterSet {
    let why = |feature: Feature, unit: &str| {
        let missing = capabilities
            .iter()
            .find(|c| c.feature == feature && !c.present);
        Unavailable::because(missing.map_or_else(
            || format!("there is a {unit} PMU, but this is not counted during a load"),
            |c| c.detail.clone(),
        ))
    };
    let core = why(Feature::CorePmu, "core");
    let uncore = why(Feature::UncorePmu, "uncore");
    let mut set = CounterSet::default();
    for &counter in Counter::ALL {
        let reason = if counter.is_level() {
            Unavailable::because(
                "resctrl shows it for a tenant that has a group there, not for the machine",
            )
        } else if counter.is_software() {
            Unavailable::because("the kernel counts it for each tenant, not for the machine")
        } else if counter.name().starts_with("unc_") {
            uncore.clone()
        } else {
            core.clone()
        };
        set.set_unavailable(counter, reason);
    }
    set
}

#[cfg(test)]
mod loads_tests;
#[cfg(test)]
mod tests;
