//! This host as a machine whose tenants are scopes: observed window by window, and limited.

mod follow;
mod machine;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_model::action::{Action, Applied};
use weir_model::capability::{Capability, Unavailable};
use weir_model::counters::{Counter, CounterSet};
use weir_model::events::EventLibrary;
use weir_model::units::{Gigahertz, Nanos};

use follow::Follow;

use super::actuators::{Actuator, KernelAccess};
use super::config::{HostConfig, Probing};
use super::journal::{Extent, Moment, Watch};
use super::journalled_writes::JournalledWrites;
use super::not_put_back::{Cause, NotPutBack};
use super::observation::HostObservation;
use super::release::{Release, lock};
use super::replay::{JournalError, Restored};
use super::sensors::probe::{BURSTS, Probe};
use super::sensors::touched::Touched;
use super::sensors::uncore::Uncore;
use super::tenant::{Refusals, Tenant};
use crate::clock::{self, Uptime};
use crate::root::Root;

/// Why a host is not steered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum HostError {
    /// The request makes no sense here; each reason with advice.
    #[error("{}", .0.join("\n"))]
    Refused(Vec<String>),
    /// Something required is missing.
    #[error("{0}")]
    Missing(Unavailable),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// This host.
#[derive(Debug)]
pub struct Host {
    root: Root,
    config: HostConfig,
    tenants: Vec<Tenant>,
    uncore: Uncore,
    probe: Result<Probe, Unavailable>,
    touched: Result<Touched, Unavailable>,
    /// None in a dry run.
    writes: Option<Arc<Mutex<JournalledWrites>>>,
    capabilities: Vec<Capability>,
    follow: Follow,
    last: Option<Uptime>,
    windows: u64,
    buffer: Vec<u8>,
}

impl Host {
    /// Finds the tenants, takes the journal of a folder, and restores what an earlier process left. Without a
    /// folder it is a dry run: nothing is ever written.
    ///
    /// # Errors
    /// A scope names nothing, scopes overlap, or a tenant that may be limited has no actuator: each with
    /// advice. Another process steers this host.
    pub fn open(
        root: &Root,
        config: HostConfig,
        library: &EventLibrary,
        journal: Option<&Path>,
    ) -> Result<(Self, Restored), HostError> {
        // Changes that an earlier process left may hide what is searched.
        let (writes, restored) = match journal {
            Some(folder) => {
                let (writes, restored) = JournalledWrites::open(root, folder, Extent::Host)?;
                (Some(writes), restored)
            }
            None => (None, Restored::default()),
        };
        Ok((Self::with(root, config, library, writes)?, restored))
    }

    /// As [`Host::open`], with an observer of every record in the journal and of every write: a test ends the
    /// program there.
    ///
    /// # Errors
    /// As [`Host::open`].
    pub fn open_watched(
        root: &Root,
        config: HostConfig,
        library: &EventLibrary,
        journal: &Path,
        watch: Box<dyn FnMut(Moment) + Send>,
    ) -> Result<Self, HostError> {
        let (mut writes, _) = JournalledWrites::open(root, journal, Extent::Host)?;
        writes.watch(Some(Watch(watch)));
        Self::with(root, config, library, Some(writes))
    }

    /// The same, with a journal that is open.
    pub(super) fn with(
        root: &Root,
        config: HostConfig,
        library: &EventLibrary,
        writes: Option<JournalledWrites>,
    ) -> Result<Self, HostError> {
        super::group::version_2(root).map_err(HostError::Missing)?;
        let mut refusals = Refusals::default();
        let tenants = Tenant::find_all(root, &config, &mut refusals);
        refusals.end().map_err(HostError::Refused)?;
        let uncore = Uncore::open(root, library);
        let probe = match config.probe {
            Probing::Never => Err(Unavailable::because("it was not asked for")),
            Probing::Auto if uncore.counts_tables() => Err(Unavailable::because(
                "the Tables of Requests are counted, which give more information",
            )),
            Probing::Auto | Probing::Always => Probe::open(root, config.fast_node),
        };
        let touched = match config.sample {
            true => Touched::open(root),
            false => Err(Unavailable::because("it was not asked for")),
        };
        let mut capabilities = super::capabilities::all(root, &config, &uncore, &probe);
        if config.sample {
            capabilities.push(super::capabilities::of_samples(&touched));
        }
        let mut host = Self {
            root: root.clone(),
            config,
            tenants,
            uncore,
            probe,
            touched,
            writes: writes.map(|writes| Arc::new(Mutex::new(writes))),
            capabilities,
            follow: Follow::default(),
            last: None,
            windows: 0,
            buffer: Vec::new(),
        };
        host.settle();
        Ok(host)
    }

    /// Makes what is needed to observe and limit tenants; a part that cannot be made is reported later as
    /// missing.
    fn settle(&mut self) {
        let Self {
            root,
            config,
            tenants,
            writes,
            ..
        } = self;
        if let Some(writes) = writes {
            let mut writes = lock(writes);
            for tenant in tenants {
                tenant.settle(root, &mut writes, config);
            }
        }
    }

    /// The tenants, in the order in which they were given.
    pub fn tenants(&self) -> &[Tenant] {
        &self.tenants
    }

    /// The step of a tenant's bandwidth allocation, as a share of all; `None` if it cannot be limited by
    /// that.
    pub fn allocation_step(&self, tenant: &Tenant) -> Option<f64> {
        let scale = super::actuators::allocation::scale(&self.root, self.config.full).ok()?;
        let step = scale.step.max(1) as f64 / scale.all;
        tenant.can(Actuator::Bandwidth).then_some(step)
    }

    /// The clocks to which a tenant's processors can be limited, the highest first; none if it cannot be
    /// limited by that.
    pub fn clocks(&self, tenant: &Tenant) -> Vec<Gigahertz> {
        if tenant.can(Actuator::Clock) {
            super::actuators::clock::clocks(&self.root, tenant.cpus())
        } else {
            Vec::new()
        }
    }

    /// The shortest latency of loads from the fast tier now.
    ///
    /// # Errors
    /// They cannot be timed.
    pub fn try_loads(&mut self) -> Result<Nanos, Unavailable> {
        let mut own;
        let probe = match &mut self.probe {
            Ok(probe) => probe,
            Err(_) => {
                own = Probe::open(&self.root, self.config.fast_node)?;
                &mut own
            }
        };
        probe.shortest()
    }

    /// Whether loads from the fast tier are timed.
    pub fn is_probed(&self) -> bool {
        self.probe.is_ok()
    }

    /// The capabilities of this host, present and missing.
    pub fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    /// Waits until a window has passed since the last one, and returns its observation.
    pub fn observe(&mut self, window: Nanos) -> HostObservation {
        let began = self.last.unwrap_or_else(Uptime::now);
        self.wait(began, window, &|| false);
        self.look(began, Uptime::now())
    }

    /// The same, unless a stop is requested in the meantime: `asked` is called whenever a signal comes, or
    /// loads are timed. An interrupted window loses nothing.
    pub fn observe_unless(
        &mut self,
        window: Nanos,
        ended: &dyn Fn() -> bool,
    ) -> Option<HostObservation> {
        let began = self.last.unwrap_or_else(Uptime::now);
        let has_ended = self.wait(began, window, ended);
        has_ended.then(|| self.look(began, Uptime::now()))
    }

    /// Waits for the end of a window, and times loads in the meantime; returns whether the end has come.
    fn wait(&mut self, began: Uptime, window: Nanos, ended: &dyn Fn() -> bool) -> bool {
        let length = Duration::from_nanos(window.get().max(0.0) as u64);
        let parts = if self.probe.is_ok() { BURSTS } else { 1 };
        for part in 1..=parts {
            let until = length * part / parts;
            while let left = until.saturating_sub(Uptime::now().since(began))
                && !left.is_zero()
            {
                if ended() {
                    return false;
                }
                clock::doze(left);
            }
            if let Ok(probe) = &mut self.probe {
                probe.burst();
            }
        }
        !ended()
    }

    /// The observation since a window began. If the system was suspended in it, nothing that was counted is an
    /// observation: sensors count with clocks that stop meanwhile, or lose their counts.
    pub(super) fn look(&mut self, began: Uptime, now: Uptime) -> HostObservation {
        let mut seen = self.look_awake(began, now);
        if let Some(suspended) = now.suspended_since(began) {
            let why = Unavailable::because(format!(
                "the system was suspended for {:.1} s in this window",
                suspended.as_secs_f64()
            ));
            seen.counters = CounterSet::default();
            for &counter in Counter::ALL {
                seen.counters.set_unavailable(counter, why.clone());
            }
            seen.probe = Err(why.clone());
            for tenant in &mut seen.tenants {
                tenant.busy = true;
                tenant.ran = Err(why.clone());
                tenant.drew = Err(why.clone());
                tenant.held = Err(why.clone());
                tenant.touched = Err(why.clone());
            }
        }
        seen
    }

    fn look_awake(&mut self, began: Uptime, now: Uptime) -> HostObservation {
        let window = Nanos(now.since(began).as_nanos() as f64);
        self.last = Some(now);
        let counters = self.uncore.window();
        self.look_at_pages();
        let mut seen = Vec::with_capacity(self.tenants.len());
        for tenant in &mut self.tenants {
            seen.push(tenant.window(&self.root, window, &mut self.buffer));
        }
        if let Some(writes) = &self.writes {
            let mut access = KernelAccess {
                root: &self.root,
                writes: &mut lock(writes),
            };
            access.writes.keep_journal();
            for (tenant, seen) in self.tenants.iter_mut().zip(&mut seen) {
                if !tenant.is_retired() {
                    seen.limits = tenant.read_back(&mut access, &self.config);
                }
            }
        }
        if let Ok(touched) = &mut self.touched {
            let tenants = self.tenants.iter();
            let tenants: Vec<_> = tenants.map(|own| (own.scope(), own.group())).collect();
            let touched = touched.window(&self.root, &tenants);
            for (seen, touched) in seen.iter_mut().zip(touched) {
                seen.touched = Ok(touched);
            }
        }
        self.windows += 1;
        HostObservation {
            window,
            counters,
            probe: match &mut self.probe {
                Ok(probe) => probe.window(),
                Err(why) => Err(why.clone()),
            },
            tenants: seen,
        }
    }

    /// Reads the pages of tenants that were never read, and of one that is due: no window pays for all.
    fn look_at_pages(&mut self) {
        let rarest = u64::from(self.config.look_at_pages);
        if rarest == 0 {
            return;
        }
        let now = self.windows;
        for tenant in self.tenants.iter_mut().filter(|t| t.due().is_none()) {
            tenant.look_at_pages(&self.root, now, rarest);
        }
        let due = |tenant: &&mut Tenant| tenant.due().unwrap_or(now);
        let next = self.tenants.iter_mut().min_by_key(due);
        if let Some(tenant) = next.filter(|tenant| due(tenant) <= now) {
            tenant.look_at_pages(&self.root, now, rarest);
            if let Some(writes) = &self.writes {
                tenant.monitor_more(&mut KernelAccess {
                    root: &self.root,
                    writes: &mut lock(writes),
                });
            }
        }
    }

    /// Limits a tenant, or removes its limit, and returns the limit in force.
    ///
    /// # Errors
    /// There is no such tenant, it may not be limited, it has no such actuator, or the kernel refused: the
    /// reason. Whatever was not refused stays in force.
    pub fn act(&mut self, action: &Action) -> Result<Applied, Unavailable> {
        let Some(writes) = &self.writes else {
            return Err(Unavailable::because("this is a dry run"));
        };
        let name = action.tenant().ok_or_else(|| {
            Unavailable::because("only tenants are steered, not the machine as a whole")
        })?;
        let others: Vec<Vec<u32>> = (self.tenants.iter())
            .filter(|tenant| tenant.name() != name)
            .map(|tenant| tenant.cpus().to_vec())
            .collect();
        let tenant =
            (self.tenants.iter_mut()).find(|tenant| tenant.name() == name && !tenant.is_retired());
        let tenant =
            tenant.ok_or_else(|| Unavailable::because(format!("there is no tenant `{name}`")))?;
        let mut writes = lock(writes);
        let mut access = KernelAccess {
            root: &self.root,
            writes: &mut writes,
        };
        let applied = tenant.act(&mut access, action, &self.config, &others)?;
        Ok(Applied {
            requested: action.clone(),
            applied,
        })
    }

    /// Restores everything, and returns what could not be restored.
    pub fn release(&mut self) -> Vec<NotPutBack> {
        for tenant in &mut self.tenants {
            tenant.forget();
        }
        self.releaser().release()
    }

    /// A way to restore everything from another thread.
    pub fn releaser(&self) -> Release {
        Release(self.writes.clone())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Callers that need to know what could not be restored call `release`.
        let _: Vec<Cause> = self.release().into_iter().map(|not| not.cause).collect();
    }
}
