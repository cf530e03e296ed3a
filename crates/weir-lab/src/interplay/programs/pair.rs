//! A victim alone and beside an aggressor, as a row.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::counters::{Counter, CounterSet};
use weir_model::interplay::{Cause, ChangeClass, Reason};
use weir_model::latency::{LatencyHistogram, LatencySummary};
use weir_model::topology::Topology;
use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};

use super::super::reason::{Evidence, reason};
use super::super::side_by_side::RunCounters;
use super::party::{Party, What};
use super::together::TogetherRun;

/// A victim alone, or alone and beside an aggressor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramPair {
    /// The victim: its tiers and what it runs.
    pub victim: String,
    /// What runs beside it; absent where it is alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggressor: Option<String>,
    /// The victim's threads.
    pub victim_threads: u32,
    /// The aggressor's threads.
    pub aggressor_threads: u32,
    /// Requests that arrive at the victim in a second, where they arrive by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
    /// What the victim gets done: requests, queries or tokens a second, instructions a second, or bytes a second.
    pub unit: String,
    /// How much of it alone.
    pub alone: f64,
    /// How much of it beside the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<f64>,
    /// By how much it gets less (below zero) or more done beside it, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_pct: Option<f64>,
    /// The class of that change, or of the change of the mean latency where that is worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ChangeClass>,
    /// From the arrival of a request to its answer, alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_alone: Option<LatencySummary>,
    /// The same beside the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_beside: Option<LatencySummary>,
    /// Whether more requests arrive than are answered, beside the aggressor or, without one, alone. The latency then
    /// depends on how long one looks.
    pub saturated: bool,
    /// Lines of the victim that crossed the memory interface, alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps_alone: Option<GbPerSec>,
    /// The same beside the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps_beside: Option<GbPerSec>,
    /// Where the victim's cycles are lost, alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_alone: Option<LostCycles>,
    /// The same beside the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_beside: Option<LostCycles>,
    /// By how much the aggressor gets less or more done beside the victim, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggressor_change_pct: Option<f64>,
    /// Why the victim gets less done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Reason>,
}

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
    fn of(counters: &CounterSet) -> Option<Self> {
        let count = |counter| counters.get(counter).ok().map(|n| n as f64);
        let instructions = count(Counter::Instructions).filter(|n| *n > 0.0)?;
        let [any, l1, l2, l3] = [
            count(Counter::StallsMemAny)?,
            count(Counter::StallsL1dMiss)?,
            count(Counter::StallsL2Miss)?,
            count(Counter::StallsL3Miss)?,
        ];
        let each = |cycles: f64| cycles.max(0.0) / instructions;
        Some(Self {
            cpi: each(count(Counter::Cycles)?),
            stores: each(count(Counter::BoundOnStores)?),
            l1: each(any - l1),
            l2: each(l1 - l2),
            l3: each(l2 - l3),
            dram: each(l3),
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
    fn grew_most(before: Self, after: Self) -> (&'static str, f64, f64) {
        let causes = [
            ("a full store buffer", before.stores, after.stores),
            ("L1", before.l1, after.l1),
            ("L2", before.l2, after.l2),
            ("the last-level cache", before.l3, after.l3),
            ("memory", before.dram, after.dram),
        ];
        let [first, rest @ ..] = causes;
        rest.into_iter()
            .fold(first, |a, b| if b.2 - b.1 > a.2 - a.1 { b } else { a })
    }
}

/// What a tenant gets done in a nanosecond, over all its phases.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    /// Time of one period: all phases once, or one unit of work.
    pub time: f64,
    /// The share of it in each phase.
    pub shares: Vec<f64>,
    latency: LatencyHistogram,
    lost: Option<LostCycles>,
    gbps: Option<f64>,
}

/// What a tenant of a run did, as work in a nanosecond.
fn work_of(party: &Party, run: &TogetherRun, tenant: usize) -> f64 {
    let Some(own) = run.tenants.get(tenant) else {
        return 0.0;
    };
    let time = run.window.get().max(1.0);
    match &party.what {
        What::Stream(_) => own.bytes.get() as f64 / time,
        What::Program(work, _) => {
            let instructions = own.counters.get(Counter::Instructions).unwrap_or(0) as f64;
            match &work.requests {
                Some(requests) if requests.is_open() => own.histogram().len() as f64 / time,
                // A request that is under way counts as far as it has come.
                Some(requests) => instructions / requests.instructions.max(1) as f64 / time,
                None => instructions / time,
            }
        }
    }
}

/// Lines of a tenant that came from memory or went there, in GB/s.
fn traffic(party: &Party, run: &TogetherRun, tenant: usize) -> Option<f64> {
    let own = run.tenants.get(tenant)?;
    if let What::Stream(_) = party.what {
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

/// Of a party whose phases were run, each beside the phases of another, whose weights are the shares of its time.
///
/// `runs[p][q]` has phase `p` of the party beside phase `q`; `tenant` is its place among the tenants.
pub fn pace(party: &Party, runs: &[Vec<&TogetherRun>], weights: &[f64], tenant: usize) -> Pace {
    let phases = party.phases();
    let mut pace = Pace::default();
    let mut times = Vec::new();
    let (mut lost, mut gbps) = (Some(LostCycles::default()), Some(0.0));
    let whole = of_phases(party);
    for (phase, beside) in phases.iter().zip(runs) {
        let amount = amount_of(phase) / whole;
        let mut rate = 0.0;
        for (run, weight) in beside.iter().zip(weights) {
            rate += weight * work_of(phase, run, tenant);
            if let Some(own) = run.tenants.get(tenant) {
                pace.latency.merge(&own.histogram());
                let here = LostCycles::of(&own.counters);
                lost = lost
                    .zip(here)
                    .map(|(all, here)| here.scaled(weight * amount, all));
            }
        }
        let time = if rate > 0.0 { amount / rate } else { 0.0 };
        times.push(time);
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
fn amount_of(phase: &Party) -> f64 {
    match &phase.what {
        What::Program(work, _) if work.requests.is_none() => {
            work.phases.iter().map(|p| p.instructions as f64).sum()
        }
        _ => 1.0,
    }
}

fn of_phases(party: &Party) -> f64 {
    party.phases().iter().map(amount_of).sum::<f64>().max(1.0)
}

/// What a row is made of.
pub struct Made<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// The victim, its threads, and what it does alone.
    pub victim: (&'a Party, u32, &'a Pace),
    /// The aggressor, its threads, and what it does alone.
    pub aggressor: Option<(&'a Party, u32, &'a Pace)>,
    /// What both do beside each other.
    pub together: Option<(Pace, Pace)>,
    /// The counters of a run alone and of one together.
    pub counted: (&'a TogetherRun, Option<&'a TogetherRun>),
}

impl ProgramPair {
    /// The row.
    pub fn of(made: &Made<'_>) -> Self {
        let (victim, threads, alone) = made.victim;
        let (unit, factor) = unit(victim);
        let rate = |pace: &Pace| {
            if pace.time > 0.0 {
                factor / pace.time
            } else {
                0.0
            }
        };
        let (before, after) = (rate(alone), made.together.as_ref().map(|(v, _)| rate(v)));
        let change = |before: f64, after: f64| (after / before - 1.0) * 100.0;
        let change_pct = after
            .filter(|_| before > 0.0)
            .map(|after| change(before, after));
        let offered = match &victim.what {
            What::Program(work, _) => work.requests.as_ref().and_then(|r| r.per_second),
            What::Stream(_) => None,
        };
        let last = after.unwrap_or(before);
        let mean = |pace: &Pace| pace.latency.summary().map(|ns| ns.mean.get());
        let slower = (made.together.as_ref())
            .and_then(|(beside, _)| Some(change(mean(beside)?, mean(alone)?)));
        // Where requests arrive by themselves, as many are answered beside others until that is impossible: they wait.
        let harm = change_pct.map(|change| change.min(slower.unwrap_or(change)));
        let gbps = |pace: &Pace| pace.gbps.map(GbPerSec);
        let beside = made.together.as_ref().map(|(v, _)| v);
        let aggressor_change = made.aggressor.zip(made.together.as_ref());
        Self {
            victim: victim.name.clone(),
            aggressor: made.aggressor.map(|(party, ..)| party.name.clone()),
            victim_threads: threads,
            aggressor_threads: made.aggressor.map_or(0, |(_, threads, _)| threads),
            offered_per_s: offered,
            unit,
            alone: before,
            beside: after,
            change_pct,
            class: harm.map(ChangeClass::of),
            ns_alone: alone.latency.summary(),
            ns_beside: beside.and_then(|pace| pace.latency.summary()),
            saturated: offered.is_some_and(|offered| last < ANSWERED * offered),
            gbps_alone: gbps(alone),
            gbps_beside: beside.and_then(gbps),
            lost_alone: alone.lost,
            lost_beside: beside.and_then(|pace| pace.lost),
            aggressor_change_pct: aggressor_change
                .filter(|((_, _, alone), _)| alone.time > 0.0)
                .map(|((_, _, alone), (_, beside))| change(1.0 / alone.time, 1.0 / beside.time)),
            verdict: made.reason(harm),
        }
    }

    /// `-31.0 % of its requests/s, p99 3.1 x, most of it waiting for memory (0.4 to 1.2 cycles of an instruction)`.
    pub fn sentence(&self) -> Option<String> {
        let change = self.change_pct?;
        let mut parts = vec![format!("{change:+.1} % {}", self.unit)];
        let p99 = |ns: &Option<LatencySummary>| ns.and_then(|ns| ns.p99).map(Nanos::get);
        if let (Some(before), Some(after)) = (p99(&self.ns_alone), p99(&self.ns_beside)) {
            parts.push(format!("p99 {:.1} to {:.1} us", before / 1e3, after / 1e3));
        }
        if self.saturated {
            parts.push("it cannot answer all that arrive".into());
        }
        if let (Some(before), Some(after)) = (self.lost_alone, self.lost_beside)
            && after.cpi > before.cpi * 1.02
        {
            let (cause, from, to) = LostCycles::grew_most(before, after);
            parts.push(format!(
                "most of it waiting for {cause}: {from:.2} to {to:.2} cycles of an instruction"
            ));
        }
        let mut text = parts.join(", ");
        if let Some(verdict) = &self.verdict
            && !matches!(
                verdict.cause,
                Cause::Unharmed | Cause::Uncertain | Cause::Undetermined
            )
        {
            text.push_str(&format!(". {}", verdict.cause));
            if !verdict.evidence.is_empty() {
                text.push_str(&format!(": {}", verdict.evidence.join("; ")));
            }
        }
        Some(text)
    }
}

/// Requests that are answered, as a share of those that arrive, below which they queue without end.
const ANSWERED: f64 = 0.97;

/// What a party's work is counted in, and how much of it a nanosecond's unit is in a second.
fn unit(party: &Party) -> (String, f64) {
    match &party.what {
        What::Stream(_) => ("GB/s".into(), 1.0),
        What::Program(work, _) => match &work.requests {
            Some(requests) => (format!("{}/s", plural(&requests.unit)), 1e9),
            None => ("G instructions/s".into(), 1.0),
        },
    }
}

/// `requests`, `queries`.
fn plural(unit: &str) -> String {
    match unit.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{unit}s"),
    }
}

impl Made<'_> {
    fn reason(&self, change_pct: Option<f64>) -> Option<Reason> {
        let (victim, threads, _) = self.victim;
        let (aggressor, others, _) = self.aggressor?;
        let (alone, together) = (self.counted.0, self.counted.1?);
        let solo = RunCounters::new(
            &alone.counters,
            alone
                .tenants
                .iter()
                .map(|t| &t.counters)
                .zip([threads])
                .collect(),
            alone.window,
        );
        let corun = RunCounters::new(
            &together.counters,
            (together.tenants.iter().map(|t| &t.counters))
                .zip([threads, others])
                .collect(),
            together.window,
        );
        Some(reason(&Evidence {
            topology: self.topology,
            victim: &victim.tier_op(),
            aggressor: &aggressor.tier_op(),
            change_pct: change_pct?,
            solo: &solo,
            corun: &corun,
            timed: None,
        }))
    }
}
