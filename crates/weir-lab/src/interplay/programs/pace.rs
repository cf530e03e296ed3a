//! How fast a tenant's work goes, over all its phases, and where its cycles are lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::{Stalls, WAITS_FOR};
use weir_model::latency::LatencyHistogram;
use weir_model::metric::OwnMetric;
use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};
use weir_model::workload::Requests;

use super::participant::{Participant, What};
use super::together::{TenantRun, TogetherRun};

/// Cycles of an instruction in which nothing was executed, by what was waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LostCycles {
    /// All cycles of an instruction.
    pub cpi: f64,
    /// Because the store buffer was full.
    pub stores: f64,
    /// For loads that hit L1.
    pub l1: f64,
    /// For loads that missed L1.
    pub l2: f64,
    /// For loads that missed L2.
    pub l3: f64,
    /// For loads that missed the last-level cache.
    pub dram: f64,
}

impl LostCycles {
    /// Of a program's counters; `None` where they are not counted.
    pub(super) fn of(counters: &CounterSet) -> Option<Self> {
        let count = |counter| counters.get(counter).ok().map(|n| n as f64);
        let instructions = count(Counter::Instructions).filter(|n| *n > 0.0)?;
        let [stores, l1, l2, l3, dram] = Stalls::of(counters).over(instructions).causes()?;
        Some(Self {
            cpi: count(Counter::Cycles)? / instructions,
            stores,
            l1,
            l2,
            l3,
            dram,
        })
    }

    fn scaled(self, by: f64, add: Self) -> Self {
        let one = |a: f64, b: f64| a + b * by;
        Self {
            cpi: one(add.cpi, self.cpi),
            stores: one(add.stores, self.stores),
            l1: one(add.l1, self.l1),
            l2: one(add.l2, self.l2),
            l3: one(add.l3, self.l3),
            dram: one(add.dram, self.dram),
        }
    }

    /// The cause whose cycles grew most, and its cycles before and after.
    pub(super) fn grew_most(before: Self, after: Self) -> (&'static str, f64, f64) {
        let of = |lost: Self| [lost.stores, lost.l1, lost.l2, lost.l3, lost.dram];
        let both = of(before).into_iter().zip(of(after));
        let mut causes = WAITS_FOR
            .into_iter()
            .zip(both)
            .map(|(of, (a, b))| (of, a, b));
        let first = causes.next().unwrap_or(("", 0.0, 0.0));
        causes.fold(first, |a, b| if b.2 - b.1 > a.2 - a.1 { b } else { a })
    }
}

/// What a tenant gets done in a nanosecond, over all its phases.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    /// Time of one period: all phases once, or one unit of work.
    pub time: f64,
    /// The share of it in each phase.
    pub shares: Vec<f64>,
    /// The latency of its requests.
    pub latency: LatencyHistogram,
    /// Where its cycles are lost.
    pub lost: Option<LostCycles>,
    /// Lines that cross the memory interface for it, in GB/s.
    pub gbps: Option<f64>,
    /// What was counted in each phase, for as much as one period has of it.
    phases: Vec<(String, CounterSet)>,
}

/// A program as it ran, alone or with others.
#[derive(Debug, Clone)]
pub struct CountedProgram {
    /// How long one period takes, if it ends.
    pub time: Option<Nanos>,
    /// What its cores counted in each phase.
    pub phases: Vec<(String, CounterSet)>,
    /// Lines that crossed the memory interface for it.
    pub gbps: Option<GbPerSec>,
    /// What it gets done.
    pub metric: OwnMetric,
}

impl CountedProgram {
    /// A participant at this pace.
    pub(super) fn of(participant: &Participant, pace: &Pace) -> Self {
        let (unit, factor) = unit(participant);
        let rate = if pace.time > 0.0 {
            factor / pace.time
        } else {
            0.0
        };
        let once = match &participant.what {
            What::Program(work, _) if work.requests.is_none() => Some(Nanos(
                pace.time * of_phases(participant) * f64::from(work.threads),
            )),
            _ => None,
        };
        Self {
            time: once,
            phases: pace.phases.clone(),
            gbps: pace.gbps.map(GbPerSec),
            metric: OwnMetric::of(unit, rate, &pace.latency),
        }
    }
}

/// What a tenant of a run did, as work in a nanosecond.
fn work_of(participant: &Participant, run: &TogetherRun, tenant: usize) -> f64 {
    let Some(own) = run.tenants.get(tenant) else {
        return 0.0;
    };
    let time = run.window.get().max(1.0);
    match &participant.what {
        What::Stream(_) | What::Command(..) | What::Application(..) => {
            own.bytes.get() as f64 / time
        }
        What::Program(work, _) => {
            let instructions = own.counters.get(Counter::Instructions).unwrap_or(0) as f64;
            let is_open = work.requests.as_ref().is_some_and(Requests::is_open);
            match is_open {
                true => own.histogram().len() as f64 / time,
                false => work.done(instructions) / time,
            }
        }
    }
}

/// Lines of a tenant that came from memory or went there, in GB/s.
fn traffic(participant: &Participant, run: &TogetherRun, tenant: usize) -> Option<f64> {
    let own = run.tenants.get(tenant)?;
    if let What::Stream(_) = participant.what {
        return Some(own.bytes.get() as f64 / run.window.get());
    }
    let get = |counter| own.counters.get(counter).ok();
    let loads = get(Counter::OffcoreL3MissDemandDataRd)?;
    let prefetched = |all, hit| Some(get(all)?.saturating_sub(get(hit).unwrap_or(0)));
    let lines = loads
        + prefetched(Counter::HwpfL1d, Counter::HwpfL1dL3Hit)?
        + prefetched(Counter::HwpfL2, Counter::HwpfL2L3Hit)?
        + get(Counter::StreamingWr).unwrap_or(0);
    Some((lines * LINE_BYTES) as f64 / run.window.get())
}

/// Of a participant whose phases were run, each with the phases of another, whose weights are the shares of its time.
///
/// `runs[p][q]` has phase `p` of the participant with phase `q`; `tenant` is its place among the tenants.
pub fn pace(
    participant: &Participant,
    runs: &[Vec<&TogetherRun>],
    weights: &[f64],
    tenant: usize,
) -> Pace {
    let phases = participant.phases();
    let mut pace = Pace::default();
    let mut times = Vec::new();
    let (mut lost, mut gbps) = (Some(LostCycles::default()), Some(0.0));
    let whole = of_phases(participant);
    for (phase, beside) in phases.iter().zip(runs) {
        let amount = amount_of(phase) / whole;
        let mut rate = 0.0;
        let mut counted = CounterSet::default();
        for (run, weight) in beside.iter().zip(weights) {
            rate += weight * work_of(phase, run, tenant);
            if let Some(own) = run.tenants.get(tenant) {
                pace.latency.merge(&own.histogram());
                counted.accumulate(&own.counters.scaled(weight * of_period(phase, own)));
                let here = LostCycles::of(&own.counters);
                lost = lost
                    .zip(here)
                    .map(|(all, here)| here.scaled(weight * amount, all));
            }
        }
        let time = if rate > 0.0 { amount / rate } else { 0.0 };
        times.push(time);
        pace.phases.push((phase.phase_name(), counted));
        let here: Option<f64> = (beside.iter().zip(weights))
            .map(|(run, weight)| Some(weight * traffic(phase, run, tenant)?))
            .sum();
        gbps = gbps.zip(here).map(|(all, here)| all + here * time);
    }
    pace.time = times.iter().sum();
    pace.shares = times
        .iter()
        .map(|time| time / pace.time.max(1e-300))
        .collect();
    pace.lost = lost;
    pace.gbps = gbps.map(|bytes| bytes / pace.time.max(1e-300));
    pace
}

/// How much a phase does in a period: its instructions where it is one of several.
fn amount_of(phase: &Participant) -> f64 {
    match &phase.what {
        What::Program(work, _) if work.requests.is_none() => {
            work.phases.iter().map(|p| p.instructions as f64).sum()
        }
        _ => 1.0,
    }
}

/// How often a period's part in a phase is what was observed of it; 1 where no period ends.
fn of_period(phase: &Participant, own: &TenantRun) -> f64 {
    let instructions = own.counters.get(Counter::Instructions).unwrap_or(0) as f64;
    match &phase.what {
        What::Program(work, _) if work.requests.is_none() && instructions > 0.0 => {
            amount_of(phase) * f64::from(work.threads) / instructions
        }
        _ => 1.0,
    }
}

fn of_phases(participant: &Participant) -> f64 {
    participant
        .phases()
        .iter()
        .map(amount_of)
        .sum::<f64>()
        .max(1.0)
}

/// What a participant's work is counted in, and how much of it a nanosecond's unit is in a second.
pub fn unit(participant: &Participant) -> (String, f64) {
    match &participant.what {
        What::Stream(_) => ("GB/s".into(), 1.0),
        What::Command(..) | What::Application(..) => ("runs/h".into(), 3.6e12),
        What::Program(work, _) => work.unit(),
    }
}
