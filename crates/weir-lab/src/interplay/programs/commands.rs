//! Commands of a host beside streams and other commands: how long one runs from its start to its end.
//!
//! The tenants beside it run first and go on until it has ended; a command among them that ends is started again. Repetitions
//! take turns, so that what drifts on the host meets all of them.

use serde::{Deserialize, Serialize};
use weir_model::counters::CounterSet;
use weir_model::machine::{Machine, MachineError};
use weir_model::tenant::Tenant;
use weir_model::units::Nanos;

use crate::{Ask, Lab, LabError};

/// One run of a command, or a stream for a while.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandRun {
    /// The command or stream.
    pub victim: Tenant,
    /// What runs beside it.
    pub beside: Option<Tenant>,
    /// Which repetition it is.
    pub round: u32,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandTime {
    /// From its start to its end.
    pub time: Nanos,
    /// What it got done in a nanosecond: runs, or bytes of a stream.
    pub rate: f64,
    /// The same of the tenant beside it; absent where that is a command of which no run ended.
    pub beside: Option<f64>,
    /// What was counted of it.
    pub counters: CounterSet,
}

/// Between two looks whether it has ended. The end itself is taken when it happens.
const LOOK: Nanos = Nanos(20e6);
/// How long a stream alone is looked at.
const STREAM: Nanos = Nanos(1e9);
/// How long the tenant beside it runs before.
const LEAD: Nanos = Nanos(200e6);

/// A command beside others that ended and is started again.
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
        Some(code) => Err(MachineError::Request(format!(
            "`{name}` failed: exit status {code}"
        ))),
        None => Err(MachineError::Request(format!(
            "`{name}` was ended by a signal"
        ))),
    }
}

impl Ask for CommandRun {
    type Got = CommandTime;
    const KIND: &'static str = "command beside others";

    fn ask(&self, lab: &Lab<'_>) -> Result<CommandTime, LabError> {
        if !self.victim.work.is_of_host() {
            let mut stream = Beside::start(lab, &self.victim)?;
            while stream.time < STREAM {
                if lab.stopped() {
                    return Err(LabError::Stopped);
                }
                stream.look()?;
            }
            stream.machine.stop()?;
            return Ok(CommandTime {
                time: stream.time,
                rate: stream.rate().unwrap_or(0.0),
                beside: None,
                counters: CounterSet::default(),
            });
        }
        let mut beside = match &self.beside {
            Some(tenant) => Some(Beside::start(lab, tenant)?),
            None => None,
        };
        let mut machine = lab.testbed().open(lab.seed())?;
        machine.start(std::slice::from_ref(&self.victim))?;
        let mut counters = CounterSet::default();
        let end = loop {
            if lab.stopped() {
                return Err(LabError::Stopped);
            }
            let seen = match &mut beside {
                Some(beside) => {
                    beside.look()?;
                    machine.observe(Nanos(1e6))?
                }
                None => machine.observe(LOOK)?,
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
        failed(&self.victim.name, end.code)?;
        let moved = match &mut beside {
            Some(beside) => {
                beside.machine.stop()?;
                beside.rate()
            }
            None => None,
        };
        Ok(CommandTime {
            time: end.after,
            rate: 1.0 / end.after.get().max(1.0),
            beside: moved,
            counters,
        })
    }
}
