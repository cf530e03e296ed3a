//! Commands and real applications of a host with streams and each other.
//!
//! A command is watched from its start to its end, an application for a figure of its own. What is with them runs first and
//! goes on until then; a command among those that ends is started again. Repetitions take turns, so that what drifts on the
//! host meets all of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_model::application_tenant::{ApplicationDone, ApplicationTenant};
use weir_model::counters::CounterSet;
use weir_model::latency::LatencySummary;
use weir_model::machine::{Machine, MachineError, RunningApplication};
use weir_model::tenant::Tenant;
use weir_model::units::Nanos;

use crate::{Ask, Lab, LabError};

/// What runs on a host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Load {
    /// A command or a stream.
    Tenant(Tenant),
    /// A real application.
    Application(ApplicationTenant),
}

impl Load {
    /// The same by another name.
    pub fn named(mut self, name: String) -> Self {
        match &mut self {
            Self::Tenant(tenant) => tenant.name = name,
            Self::Application(tenant) => tenant.name = name,
        }
        self
    }
}

/// One run of a command, a figure of an application, or a stream for a while.
#[derive(Debug, Clone, Serialize)]
pub struct CommandRun {
    /// What is watched.
    pub victim: Load,
    /// What runs with it.
    pub beside: Option<Load>,
    /// Which repetition it is.
    pub round: u32,
    /// Applications that run already.
    #[serde(skip)]
    pub kept: Kept,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandTime {
    /// From its start to its end; of an application with another metric, zero.
    pub time: Nanos,
    /// What it got done: runs of a command or bytes of a stream in a nanosecond, the metric of an application in a second.
    pub rate: f64,
    /// The unit of that of an application.
    #[serde(default)]
    pub unit: Option<String>,
    /// Latency of the requests of an application.
    #[serde(default)]
    pub latency: Option<LatencySummary>,
    /// The same rate of the tenant with it; absent where no part of its work was complete.
    pub beside: Option<f64>,
    /// What was counted of it.
    pub counters: CounterSet,
    /// Why there is no figure.
    #[serde(default)]
    pub failed: Option<String>,
}

/// Between two looks whether it has ended. The end itself is taken when it happens.
const LOOK: Nanos = Nanos(20e6);
/// Between two looks whether a figure is there.
const SLEEP: Duration = Duration::from_millis(5);
/// How long a stream alone is looked at.
const STREAM: Nanos = Nanos(1e9);
/// How long the tenant with it runs before.
const LEAD: Nanos = Nanos(200e6);

type Started = (ApplicationTenant, Box<dyn RunningApplication>);

/// Applications that were started and wait for their next figure, so that a server loads its data once: the last two, as a
/// figure has no more.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Vec<Started>>>);

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kept")
    }
}

impl Kept {
    /// The application, started if it does not run.
    fn take(&self, lab: &Lab<'_>, tenant: &ApplicationTenant) -> Result<Started, MachineError> {
        let same = |known: &ApplicationTenant| {
            let name = known.name.clone();
            *known
                == ApplicationTenant {
                    name,
                    ..tenant.clone()
                }
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(known, _)| same(known)) {
            return Ok(kept.remove(at));
        }
        // One that is not of this figure makes room for it.
        if kept.len() > 1 {
            kept.remove(0);
        }
        let started = lab.testbed().application(tenant, &|| lab.stopped())?;
        Ok((tenant.clone(), started))
    }

    fn put(&self, started: Started) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(started);
    }
}

/// A command or stream with others; a command that ended is started again.
struct Beside<'a> {
    lab: &'a Lab<'a>,
    tenant: &'a Tenant,
    machine: Box<dyn Machine>,
    /// Bytes of a stream or runs of a command that ended, and how long they took.
    done: f64,
    time: Nanos,
}

impl<'a> Beside<'a> {
    fn start(lab: &'a Lab<'a>, tenant: &'a Tenant) -> Result<Self, MachineError> {
        let mut machine = lab.testbed().open(lab.seed())?;
        machine.start(std::slice::from_ref(tenant))?;
        machine.observe(LEAD)?;
        Ok(Self {
            lab,
            tenant,
            machine,
            done: 0.0,
            time: Nanos(0.0),
        })
    }

    fn look(&mut self) -> Result<(), MachineError> {
        let seen = self.machine.observe(LOOK)?;
        let Some(own) = seen.tenants.first() else {
            return Ok(());
        };
        if !self.tenant.work.is_of_host() {
            self.done += own.bytes.get() as f64;
            self.time = self.time + seen.window;
        }
        if let Some(end) = own.process.as_ref().and_then(|process| process.ended) {
            failed(&self.tenant.name, end.code)?;
            self.done += 1.0;
            self.time = self.time + end.after;
            self.machine.stop()?;
            self.machine = self.lab.testbed().open(self.lab.seed())?;
            self.machine.start(std::slice::from_ref(self.tenant))?;
        }
        Ok(())
    }

    /// What it gets done in a nanosecond.
    fn rate(&self) -> Option<f64> {
        (self.done > 0.0).then(|| self.done / self.time.get().max(1.0))
    }
}

/// A command that failed did not do its work.
fn failed(name: &str, code: Option<i32>) -> Result<(), MachineError> {
    match code {
        Some(0) => Ok(()),
        code => Err(MachineError::System {
            what: format!("`{name}` failed"),
            cause: code.map_or_else(
                || "a signal ended it".into(),
                |code| format!("exit status {code}"),
            ),
        }),
    }
}

/// What runs with what is watched.
enum Neighbour<'a> {
    Tenant(Beside<'a>),
    Application(&'a Kept, Started),
}

impl<'a> Neighbour<'a> {
    fn start(lab: &'a Lab<'a>, kept: &'a Kept, load: &'a Load) -> Result<Self, MachineError> {
        Ok(match load {
            Load::Tenant(tenant) => Self::Tenant(Beside::start(lab, tenant)?),
            Load::Application(tenant) => {
                let mut started = kept.take(lab, tenant)?;
                started.1.begin(&|| lab.stopped())?;
                Self::Application(kept, started)
            }
        })
    }

    /// Ends it, and says what it got done.
    fn end(self) -> Result<Option<f64>, MachineError> {
        match self {
            Self::Tenant(mut beside) => {
                beside.machine.stop()?;
                Ok(beside.rate())
            }
            Self::Application(kept, mut started) => {
                let done = started.1.end()?;
                kept.put(started);
                Ok(done.map(|done| done.per_s))
            }
        }
    }
}

impl From<ApplicationDone> for CommandTime {
    fn from(done: ApplicationDone) -> Self {
        Self {
            time: done.run.unwrap_or(Nanos(0.0)),
            rate: done.per_s,
            unit: done.run.is_none().then_some(done.unit),
            latency: done.latency,
            ..Self::default()
        }
    }
}

impl CommandRun {
    fn stream(
        lab: &Lab<'_>,
        tenant: &Tenant,
        beside: &mut Option<Neighbour<'_>>,
    ) -> Result<CommandTime, LabError> {
        let mut stream = Beside::start(lab, tenant)?;
        while stream.time < STREAM {
            if lab.stopped() {
                return Err(LabError::Stopped);
            }
            stream.look()?;
            // A command that has ended is started again.
            if let Some(Neighbour::Tenant(beside)) = beside
                && beside.tenant.work.is_of_host()
            {
                beside.look()?;
            }
        }
        stream.machine.stop()?;
        Ok(CommandTime {
            time: stream.time,
            // Bytes in a nanosecond.
            rate: stream.rate().unwrap_or(0.0),
            unit: Some("GB/s".into()),
            ..CommandTime::default()
        })
    }

    fn command(
        lab: &Lab<'_>,
        tenant: &Tenant,
        beside: &mut Option<Neighbour<'_>>,
    ) -> Result<CommandTime, LabError> {
        let mut machine = lab.testbed().open(lab.seed())?;
        machine.start(std::slice::from_ref(tenant))?;
        let mut counters = CounterSet::default();
        let end = loop {
            if lab.stopped() {
                return Err(LabError::Stopped);
            }
            let seen = match beside {
                Some(Neighbour::Tenant(beside)) => {
                    beside.look()?;
                    machine.observe(Nanos(1e6))?
                }
                _ => machine.observe(LOOK)?,
            };
            let Some(own) = seen.tenants.into_iter().next() else {
                return Err(LabError::Failed(
                    "the host tells nothing of the command".into(),
                ));
            };
            counters.accumulate(&own.counters);
            if let Some(end) = own.process.and_then(|process| process.ended) {
                break end;
            }
        };
        machine.stop()?;
        failed(&tenant.name, end.code)?;
        Ok(CommandTime {
            time: end.after,
            rate: 1.0 / end.after.get().max(1.0),
            counters,
            ..CommandTime::default()
        })
    }

    /// A figure of an application. A neighbour is looked at meanwhile, so that a command among those is started again.
    fn application(
        &self,
        lab: &Lab<'_>,
        tenant: &ApplicationTenant,
        beside: &mut Option<Neighbour<'_>>,
    ) -> Result<CommandTime, LabError> {
        let mut started = self.kept.take(lab, tenant)?;
        let lost = AtomicBool::new(false);
        let stop = || lab.stopped() || lost.load(Ordering::Relaxed);
        let application = &mut started.1;
        let done = std::thread::scope(|scope| {
            let figure = scope.spawn(|| application.measure(&stop));
            // This thread is the one whose end ends a command.
            let mut looked = Ok(());
            while !figure.is_finished() {
                match beside {
                    Some(Neighbour::Tenant(beside)) if looked.is_ok() => {
                        looked = beside.look();
                        lost.store(looked.is_err(), Ordering::Relaxed);
                    }
                    _ => std::thread::sleep(SLEEP),
                }
            }
            let figure = figure.join().unwrap_or_else(|_| {
                Err(MachineError::System {
                    what: format!("`{}`", tenant.name),
                    cause: "its thread failed".into(),
                })
            });
            looked.and(figure)
        })?;
        self.kept.put(started);
        Ok(done.into())
    }

    fn run(&self, lab: &Lab<'_>) -> Result<CommandTime, LabError> {
        let beside = self.beside.as_ref();
        let mut beside = beside
            .map(|load| Neighbour::start(lab, &self.kept, load))
            .transpose()?;
        let time = match &self.victim {
            Load::Tenant(tenant) if tenant.work.is_of_host() => {
                Self::command(lab, tenant, &mut beside)?
            }
            Load::Tenant(tenant) => Self::stream(lab, tenant, &mut beside)?,
            Load::Application(tenant) => self.application(lab, tenant, &mut beside)?,
        };
        Ok(CommandTime {
            beside: beside.map(Neighbour::end).transpose()?.flatten(),
            ..time
        })
    }

    /// Whether one is a command or an application, which may fail by itself.
    fn has_program(&self) -> bool {
        let is = |load: &Load| match load {
            Load::Tenant(tenant) => tenant.work.is_of_host(),
            Load::Application(_) => true,
        };
        is(&self.victim) || self.beside.as_ref().is_some_and(is)
    }
}

impl Ask for CommandRun {
    type Got = CommandTime;
    const KIND: &'static str = "command beside others";

    fn ask(&self, lab: &Lab<'_>) -> Result<CommandTime, LabError> {
        match self.run(lab) {
            // A program that fails or dies costs this figure and no other.
            Err(LabError::Machine(MachineError::System { what, cause })) if self.has_program() => {
                Ok(CommandTime {
                    failed: Some(format!("{what}: {cause}")),
                    ..CommandTime::default()
                })
            }
            Err(LabError::Machine(MachineError::Interrupted)) => Err(LabError::Stopped),
            other => other,
        }
    }

    fn warnings(&self, got: &CommandTime) -> Vec<String> {
        got.failed.clone().into_iter().collect()
    }
}
