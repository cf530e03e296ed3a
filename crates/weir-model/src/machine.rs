//! The one idea: everything above asks the same five things of a machine, and never learns whether
//! it is made of silicon or of queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::{Action, Actuators, Applied};
use crate::application_tenant::{ApplicationDone, ApplicationTenant};
use crate::capability::{Capability, Feature, Unavailable};
use crate::counters::CounterSet;
use crate::latency::LatencyHistogram;
use crate::region::{RegionPages, RegionUse};
use crate::sampled::{Sampled, of_sum, traffic};
use crate::tenant::Tenant;
use crate::topology::{TierName, Topology};
use crate::units::{Bytes, GbPerSec, Nanos};

/// A server that tenants can be put on: this one, or a model of one.
///
/// A run is `start`, any number of `observe` and `act`, `stop`. Time passes only inside `observe`.
pub trait Machine: Send {
    /// Which machine this is, for records.
    fn identity(&self) -> Identity;

    /// What it is made of.
    fn topology(&self) -> &Topology;

    /// What it offers and what it lacks.
    fn capabilities(&self) -> &[Capability];

    /// How long to look, for a figure of this kind.
    fn pacing(&self, goal: Goal) -> Pacing;

    /// Puts tenants on the machine, each on its cores, and lets them run.
    ///
    /// # Errors
    /// A tenant names a core or tier that does not exist, does not fit in memory, or needs a
    /// feature that the machine lacks. Nothing runs then.
    fn start(&mut self, tenants: &[Tenant]) -> Result<(), MachineError>;

    /// Lets the tenants run for about `window` and says what they did.
    ///
    /// # Errors
    /// No run is under way, or the machine failed under it.
    fn observe(&mut self, window: Nanos) -> Result<Observation, MachineError>;

    /// Changes the machine under the running tenants.
    ///
    /// # Errors
    /// The machine lacks the means, or refused.
    fn act(&mut self, action: &Action) -> Result<Applied, MachineError>;

    /// The actuators by which a tenant of the run can be limited; none if it may not be.
    fn actuators(&self, tenant: &str) -> Actuators {
        let _ = tenant;
        Actuators::of_model(self.topology())
    }

    /// Searches for tenants between two windows, if the machine was asked to find them, and returns what
    /// changed. A tenant keeps its position in observations until it ends.
    fn find_tenants(&mut self) -> Vec<TenantChange> {
        Vec::new()
    }

    /// Ends the run and takes everything off the machine. Ending twice is no error.
    ///
    /// # Errors
    /// The machine could not be brought back to rest.
    fn stop(&mut self) -> Result<RunNotes, MachineError>;
}

/// A change in the tenants that a machine finds, with the reason in words.
#[derive(Debug, Clone, PartialEq)]
pub enum TenantChange {
    /// A tenant that is observed from now on.
    Found {
        /// Its position: the last, or that of a tenant which has ended.
        place: usize,
        /// The tenant.
        tenant: Box<Tenant>,
        /// Whether it may be limited.
        restrain: bool,
        /// Why.
        why: String,
    },
    /// A tenant that has ended. It has no limit any more, and its position is free.
    Ended {
        /// Its position.
        place: usize,
        /// Why.
        why: String,
    },
    /// Something that cannot be a tenant, the first time that it is found.
    Refused {
        /// Why.
        why: String,
    },
}

/// Which kind of machine a record came from.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum MachineKind {
    /// A real server.
    #[default]
    Host,
    /// A model made from a platform file.
    Sim,
}

/// A machine in a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    /// Real or simulated.
    pub kind: MachineKind,
    /// `host`, or the platform expression: `emr2s+cxl-a`.
    pub name: String,
    /// What the results depend on, hashed: every number of the platform, or the host's fingerprint.
    pub digest: String,
}

impl Identity {
    /// Whether it names no machine.
    pub fn is_unknown(&self) -> bool {
        self.name.is_empty()
    }
}

/// What an experiment wants to know, which decides how long it must look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Mean latency of a tenant that times each access.
    Latency,
    /// Bytes a second of tenants that stream.
    Bandwidth,
    /// The same where some tenant puts requests to a storage device, each of which takes a thousand times
    /// as long as an access of memory.
    Requests,
}

/// How long to look at a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pacing {
    /// Let this pass before anything counts.
    pub warm_up: Nanos,
    /// One sample.
    pub window: Nanos,
    /// Take at least this many samples.
    pub least_windows: u32,
    /// Stop after this many, whatever the interval.
    pub most_windows: u32,
    /// Stop once the 95 % confidence interval's half-width is this share of the mean.
    pub relative_ci: f64,
}

/// What happened in one window.
#[derive(Debug, Clone)]
pub struct Observation {
    /// How long the window was.
    pub window: Nanos,
    /// What each tenant did, in the order in which they were started.
    pub tenants: Vec<TenantProgress>,
    /// What the machine counted; of several hosts, on that of the first tenant, as a monitor there would.
    pub counters: CounterSet,
    /// The latency of loads from the fast tier that the machine itself timed in the window.
    pub probe: Result<Nanos, Unavailable>,
    /// The sampling error, if only parts of the window were simulated.
    pub sampled: Option<Sampled>,
}

impl Observation {
    /// A window in which no loads were timed.
    pub fn of(window: Nanos, tenants: Vec<TenantProgress>, counters: CounterSet) -> Self {
        Self {
            window,
            tenants,
            counters,
            probe: Err(Unavailable::because("the latency of loads is not probed")),
            sampled: None,
        }
    }

    /// The sampling error of this window and the next together; their figures are those before they are added.
    fn errors_with(&self, next: &Self) -> Option<Sampled> {
        if self.sampled.is_none() && next.sampled.is_none() {
            return None;
        }
        let (own, more) = (self.sampled.clone(), next.sampled.clone());
        let (own, more) = (own.unwrap_or_default(), more.unwrap_or_default());
        let bytes =
            |seen: &Self, i: usize| seen.tenants.get(i).map_or(0.0, |t| t.bytes.get() as f64);
        let error = |of: &Sampled, i: usize| of.tenants.get(i).copied().flatten();
        let tenant = |i: usize| {
            of_sum(
                (bytes(self, i), error(&own, i)),
                (bytes(next, i), error(&more, i)),
            )
        };
        let (before, after) = (traffic(&self.counters), traffic(&next.counters));
        let lines = |i: usize| {
            let figures = (before[i] as f64, after[i] as f64);
            of_sum((figures.0, own.traffic[i]), (figures.1, more.traffic[i]))
        };
        Some(Sampled {
            parts: own.parts + more.parts,
            simulated: own.simulated + more.simulated,
            tenants: (0..self.tenants.len()).map(tenant).collect(),
            traffic: [lines(0), lines(1)],
            missed: own.missed || more.missed,
        })
    }

    /// Another window right after this one, with the same tenants, as one.
    pub fn extend(&mut self, next: Self) {
        self.sampled = self.errors_with(&next);
        self.window = self.window + next.window;
        for (tenant, more) in self.tenants.iter_mut().zip(next.tenants) {
            tenant.bytes = Bytes(tenant.bytes.0 + more.bytes.0);
            tenant.accesses += more.accesses;
            match (&mut tenant.latency, more.latency) {
                (Some(latency), Some(more)) => latency.merge(&more),
                (none, more) => *none = more,
            }
            tenant.counters.accumulate(&more.counters);
            tenant.process = match (tenant.process.take(), more.process) {
                (Some(own), Some(more)) => Some(own.and(more)),
                (own, more) => own.or(more),
            };
            for pages in more.regions {
                let own = tenant
                    .regions
                    .iter_mut()
                    .find(|own| own.region == pages.region);
                match own {
                    Some(own) => own.extend(pages),
                    None => tenant.regions.push(pages),
                }
            }
            RegionUse::merge(&mut tenant.uses, &more.uses);
        }
        self.counters.accumulate(&next.counters);
        self.probe = next.probe;
    }

    /// What a window of length `window` would have seen that went on like this one. Pages are left as they
    /// are.
    pub fn scaled_to(mut self, window: Nanos) -> Self {
        let factor = window.get() / self.window.get();
        let scale = |n: u64| (n as f64 * factor).round() as u64;
        for tenant in &mut self.tenants {
            tenant.bytes = Bytes(scale(tenant.bytes.0));
            tenant.accesses = scale(tenant.accesses);
            tenant.counters = tenant.counters.scaled(factor);
            tenant.uses = tenant.uses.iter().map(|own| own.times(factor)).collect();
        }
        self.counters = self.counters.scaled(factor);
        self.window = window;
        self
    }
}

/// What one tenant did in one window.
#[derive(Debug, Clone, Default)]
pub struct TenantProgress {
    /// Bytes its program touched (not what crossed the memory interface).
    pub bytes: Bytes,
    /// Accesses of one line each that completed; of a storage device, requests.
    pub accesses: u64,
    /// The latency of each access, where the pattern times it; of a storage device, of each request from
    /// submission to completion.
    pub latency: Option<LatencyHistogram>,
    /// What its cores counted for it alone. [`Observation::counters`] has their sum over the tenants of a
    /// host, and the uncore's, which belongs to no core.
    pub counters: CounterSet,
    /// Where the pages of its regions are, and what moved, for each region in which the machine can tell.
    pub regions: Vec<RegionPages>,
    /// What it did in its regions, where the machine counts that.
    pub uses: Vec<RegionUse>,
    /// What the kernel reports of it, where it is a command or a scope.
    pub process: Option<ProcessProgress>,
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// From its start to its end.
    pub after: Nanos,
    /// Its exit status; `None` if a signal ended it.
    pub code: Option<i32>,
}

/// What the kernel reports of the processes of a tenant in one window.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessProgress {
    /// Processor time that they ran.
    pub ran: Result<Nanos, Unavailable>,
    /// Bytes to and from memory. [`TenantProgress::bytes`] is zero where they are not counted.
    pub traffic: Result<Bytes, Unavailable>,
    /// Cores that they have without a limit.
    pub cores: u32,
    /// Whether they ran at all; what cannot be observed counts as busy.
    pub busy: bool,
    /// The tiers that they use: bytes of the lines that samples saw accessed, or, with too few samples, of their
    /// pages when these were last read.
    pub uses: Result<Vec<(TierName, Bytes)>, Unavailable>,
    /// How its command ended, if it is one that a run started, and has ended.
    pub ended: Option<CommandEnd>,
    /// Limits that are not as they were last applied or read, as they are now: the tenant began again without them, or
    /// another program changed them.
    pub limits: Vec<Action>,
}

impl ProcessProgress {
    /// This window and the next as one; the time and bytes of both are known if those of each are.
    fn and(mut self, next: Self) -> Self {
        self.limits.extend(next.limits);
        let both = |a: Result<f64, Unavailable>, b: Result<f64, Unavailable>| Ok(a? + b?);
        let time = |ran: Result<Nanos, Unavailable>| ran.map(Nanos::get);
        let bytes = |traffic: Result<Bytes, Unavailable>| traffic.map(|b| b.get() as f64);
        Self {
            ran: both(time(self.ran), time(next.ran)).map(Nanos),
            traffic: both(bytes(self.traffic), bytes(next.traffic)).map(|b| Bytes(b as u64)),
            cores: next.cores,
            busy: self.busy || next.busy,
            uses: next.uses,
            ended: self.ended.or(next.ended),
            limits: self.limits,
        }
    }
}

impl TenantProgress {
    /// Its bandwidth over the window.
    pub fn bandwidth(&self, window: Nanos) -> GbPerSec {
        GbPerSec::from_bytes_in(self.bytes, window)
    }
}

/// What a machine has to say at the end of a run that is not a figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunNotes {
    /// How the run was made: `AVX-512 loads`, `page 2 MiB (THP)`, `pages verified on node 0`.
    pub conditions: Vec<String>,
    /// What makes the figures less than trustworthy.
    pub warnings: Vec<String>,
}

/// Why a machine did not do as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MachineError {
    /// The request makes no sense on this machine.
    #[error("{0}")]
    Request(String),
    /// No such tier.
    #[error("no tier `{name}` here; there are {known}")]
    NoSuchTier {
        /// What was asked for.
        name: TierName,
        /// What there is, as a list in words.
        known: String,
    },
    /// A feature is needed that the machine lacks.
    #[error("{feature} is missing: {reason}")]
    Missing {
        /// Which.
        feature: Feature,
        /// Why, and where possible what to do.
        reason: String,
    },
    /// Not enough free memory for the working sets.
    #[error(
        "tier `{tier}` has {free} free{}, but {wanted} is wanted; take a smaller working set",
        within.as_ref().map_or(String::new(), |limit| format!(" within {limit}"))
    )]
    NoMemory {
        /// Where.
        tier: TierName,
        /// What is there.
        free: Bytes,
        /// What was asked for.
        wanted: Bytes,
        /// What leaves less than the tier has, such as a control group.
        within: Option<String>,
    },
    /// Pages did not land where they were asked to.
    #[error("{misplaced} of {pages} pages of tier `{tier}` lie elsewhere: {detail}")]
    Misplaced {
        /// Where they should be.
        tier: TierName,
        /// How many are not.
        misplaced: u64,
        /// Of how many.
        pages: u64,
        /// What the kernel said.
        detail: String,
    },
    /// A tier that was there is there no longer.
    #[error("tier `{tier}` is gone: {reason}")]
    Gone {
        /// Which.
        tier: TierName,
        /// What tells.
        reason: String,
    },
    /// A stop was requested while a window was waited for.
    #[error("a stop was requested")]
    Interrupted,
    /// The run ended, but settings are not as they were before; each with the reason.
    #[error("not restored: {}", .0.join("; "))]
    NotRestored(Vec<String>),
    /// A system call or a file failed.
    #[error("{what}: {cause}")]
    System {
        /// What was tried, with the path or the call.
        what: String,
        /// What came back.
        cause: String,
    },
}

impl MachineError {
    /// The tier is not among this topology's.
    pub fn no_such_tier(name: &TierName, topology: &Topology) -> Self {
        let names: Vec<&str> = topology.tiers.iter().map(|t| t.name.as_str()).collect();
        Self::NoSuchTier {
            name: name.clone(),
            known: names.join(", "),
        }
    }
}

/// An application that was started. A server keeps its data from one figure to the next, and waits in between; one that died
/// is started again for the next figure.
pub trait RunningApplication: Send {
    /// Lets it work for a figure.
    ///
    /// # Errors
    /// It failed, an answer is wrong, or `stop` says that the user stops it.
    fn measure(&mut self, stop: &dyn Fn() -> bool) -> Result<ApplicationDone, MachineError>;

    /// Lets it work until [`end`](Self::end), and returns when it does with all its data in memory.
    ///
    /// # Errors
    /// As [`measure`](Self::measure) has them.
    fn begin(&mut self, stop: &dyn Fn() -> bool) -> Result<(), MachineError>;

    /// What it got done since it began; nothing where no part of its work was complete.
    ///
    /// # Errors
    /// It failed meanwhile.
    fn end(&mut self) -> Result<Option<ApplicationDone>, MachineError>;
}

/// Where machines come from: opens as many equal, independent machines as a sweep can use.
pub trait Testbed: Send + Sync {
    /// A fresh machine whose chance is drawn from `seed`.
    ///
    /// # Errors
    /// The machine cannot be had.
    fn open(&self, seed: u64) -> Result<Box<dyn Machine>, MachineError>;

    /// Starts a real application, and returns when its data are in memory or, where it runs from a start to an end, at once.
    /// It ends with what is returned, and with this process.
    ///
    /// # Errors
    /// Only hosts run applications; it is not installed, it fails, or `stop` says that the user stops it.
    fn application(
        &self,
        tenant: &ApplicationTenant,
        stop: &dyn Fn() -> bool,
    ) -> Result<Box<dyn RunningApplication>, MachineError> {
        let _ = stop;
        Err(MachineError::Request(format!(
            "`{}` is a real application, which runs on a host and on no model",
            tenant.name
        )))
    }

    /// The version of what decides its figures besides digest and seed. An answer is reused in other runs only
    /// where there is one; a real machine has none.
    fn physics(&self) -> Option<u32> {
        None
    }

    /// How many machines may run at once without disturbing each other: 1 for a real one.
    fn parallelism(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counter;

    /// A second of a tenant.
    fn second(busy: bool, code: i32) -> Observation {
        let mut counters = CounterSet::default();
        counters.set(Counter::CasRd, 100);
        let used = RegionUse {
            region: "a".into(),
            read: 100,
            waited: Nanos(50.0),
            ..RegionUse::default()
        };
        let process = ProcessProgress {
            ran: Ok(Nanos(1e9)),
            traffic: Ok(Bytes(6400)),
            cores: 4,
            busy,
            uses: Ok(Vec::new()),
            ended: Some(CommandEnd {
                after: Nanos(5.0),
                code: Some(code),
            }),
            limits: Vec::new(),
        };
        let tenant = TenantProgress {
            bytes: Bytes(6400),
            accesses: 100,
            counters: counters.clone(),
            uses: vec![used],
            process: Some(process),
            ..TenantProgress::default()
        };
        let mut seen = Observation::of(Nanos(1e9), vec![tenant], counters);
        seen.sampled = Some(Sampled {
            parts: 3,
            simulated: Nanos(3.0),
            tenants: vec![Some(0.1)],
            traffic: [Some(0.1), None],
            missed: busy,
        });
        seen
    }

    #[test]
    fn two_windows_that_are_alike_are_one_of_twice_the_length() {
        let mut both = second(true, 0);
        both.extend(second(true, 0));
        let long = second(true, 0).scaled_to(Nanos(2e9));
        let figures = |of: &Observation| {
            let own = &of.tenants[0];
            let counted = (of.counters.clone(), own.counters.clone(), own.uses.clone());
            (of.window, own.bytes, own.accesses, counted)
        };
        assert_eq!(figures(&both), figures(&long));
        let own = &both.tenants[0];
        assert_eq!((own.bytes, own.accesses), (Bytes(12_800), 200));
        let process = own.process.as_ref().unwrap();
        assert_eq!(process.ran, Ok(Nanos(2e9)));
        assert_eq!(process.traffic, Ok(Bytes(12_800)));
        // Two independent errors of a tenth.
        let sampled = both.sampled.unwrap();
        assert_eq!((sampled.parts, sampled.simulated), (6, Nanos(6.0)));
        assert!((sampled.largest().unwrap() - 0.1 / 2_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn what_is_true_of_one_of_two_windows_is_true_of_both_together() {
        for [first, then] in [[true, false], [false, true]] {
            let mut both = second(first, 0);
            both.extend(second(then, 1));
            let process = both.tenants[0].process.as_ref().unwrap();
            assert!(process.busy && both.sampled.unwrap().missed);
            // A command ends once.
            assert_eq!(process.ended.unwrap().code, Some(0));
        }
    }
}
