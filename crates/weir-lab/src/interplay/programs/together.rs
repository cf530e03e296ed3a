//! Tenants that run together until the first has done enough: what each got done, and what was counted.

use serde::{Deserialize, Serialize};
use weir_model::counters::CounterSet;
use weir_model::latency::LatencyHistogram;
use weir_model::machine::{Machine, MachineError, Observation};
use weir_model::tenant::{Tenant, Work};
use weir_model::units::{Bytes, Nanos};

use super::super::side_by_side::{CoreClock, RunCounters};
use crate::{Ask, Lab, LabError};

/// Tenants on one machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Together {
    /// The tenants. The first decides how long they are observed.
    pub tenants: Vec<Tenant>,
    /// Requests that it answers meanwhile, if it answers some.
    pub requests: u64,
    /// Lines that each of its threads touches meanwhile, if it does not.
    pub accesses: u64,
}

/// What each tenant did in one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TogetherRun {
    /// How long they were observed.
    pub window: Nanos,
    /// The tenants, in order.
    pub tenants: Vec<TenantRun>,
    /// What the machine counted.
    pub counters: CounterSet,
}

/// What one tenant did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantRun {
    /// Bytes that it touched.
    pub bytes: Bytes,
    /// Lines that it touched.
    pub accesses: u64,
    /// How long its requests took, each class of latencies with its number; empty if it answers none.
    pub latency: Vec<(Nanos, u64)>,
    /// What its cores counted.
    pub counters: CounterSet,
}

impl TogetherRun {
    /// Its counters as quantities; `threads` of each tenant, in order.
    pub fn quantities(&self, threads: &[u32], clock: CoreClock) -> RunCounters<'_> {
        let tenants = self.tenants.iter().map(|tenant| &tenant.counters);
        let tenants = tenants.zip(threads.iter().copied()).collect();
        RunCounters::new(&self.counters, tenants, self.window, clock)
    }
}

impl TenantRun {
    /// The latency of its requests.
    pub fn histogram(&self) -> LatencyHistogram {
        LatencyHistogram::from_buckets(&self.latency)
    }
}

/// Time before anything counts: queues fill, and programs find their share of the last-level cache.
const WARM_UP: Nanos = Nanos(60_000.0);
/// The first look, which tells how fast the first tenant is.
const FIRST_LOOK: Nanos = Nanos(5_000.0);
/// The longest run.
const LONGEST: Nanos = Nanos(2e9);
/// Of the requests that are observed, the share that are answered before: a queue that was empty grows.
const LEAD: f64 = 0.1;

impl Together {
    fn run(&self, machine: &mut dyn Machine) -> Result<TogetherRun, MachineError> {
        machine.start(&self.tenants)?;
        let seen = self.watch(machine);
        machine.stop()?;
        let seen = seen?;
        let tenants = seen.tenants.into_iter().map(|own| TenantRun {
            bytes: own.bytes,
            accesses: own.accesses,
            latency: own
                .latency
                .map_or_else(Vec::new, |latency| latency.buckets()),
            counters: own.counters,
        });
        Ok(TogetherRun {
            window: seen.window,
            tenants: tenants.collect(),
            counters: seen.counters,
        })
    }

    /// The rate at which the first tenant's requests arrive, if they do so by themselves.
    fn arrivals(&self) -> Option<f64> {
        match &self.tenants.first()?.work {
            Work::Program(work) => work.requests.as_ref()?.per_second,
            _ => None,
        }
    }

    fn watch(&self, machine: &mut dyn Machine) -> Result<Observation, MachineError> {
        let lead = self
            .arrivals()
            .map(|rate| Nanos(LEAD * self.requests as f64 / rate * 1e9));
        machine.observe(lead.unwrap_or(WARM_UP).max(WARM_UP).min(LONGEST))?;
        let answers = match self.tenants.first().map(|tenant| &tenant.work) {
            Some(Work::Program(work)) => work.requests.is_some(),
            _ => false,
        };
        let (wanted, done): (u64, fn(&Observation) -> u64) = match answers {
            true => (self.requests, |seen| {
                let latency = seen.tenants.first().and_then(|own| own.latency.as_ref());
                latency.map_or(0, LatencyHistogram::len)
            }),
            false => {
                let threads = self.tenants.first().map_or(1, |tenant| tenant.cores.len());
                (self.accesses * threads as u64, |seen| {
                    seen.tenants.first().map_or(0, |own| own.accesses)
                })
            }
        };
        let mut all = machine.observe(FIRST_LOOK)?;
        while done(&all) < wanted && all.window < LONGEST {
            let left = wanted.saturating_sub(done(&all)) as f64;
            let look = all.window * (left / done(&all).max(1) as f64);
            // A rate that is known only roughly is not followed further than this many times what was seen.
            let most = (all.window * 8.0).min(LONGEST);
            all.extend(machine.observe(look.max(FIRST_LOOK).min(most))?);
        }
        Ok(all)
    }
}

impl Ask for Together {
    type Got = TogetherRun;
    const KIND: &'static str = "tenants together";

    fn ask(&self, lab: &Lab<'_>) -> Result<TogetherRun, LabError> {
        let mut machine = lab.testbed().open(lab.seed())?;
        Ok(self.run(&mut *machine)?)
    }
}
