//! A victim alone and with an aggressor, as a row.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::interplay::{ChangeClass, Reason};
use weir_model::latency::{LatencySummary, QuantileInterval};
use weir_model::number::figure;
use weir_model::topology::Topology;
use weir_model::units::{GbPerSec, Nanos};

use super::super::reason::{Evidence, reason};
use super::super::side_by_side::CoreClock;
use super::commands::CommandTime;
use super::pace::{LostCycles, Pace, unit};
use super::participant::{Participant, What};
use super::together::TogetherRun;

/// A victim alone, or alone and with an aggressor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramPair {
    /// The victim: its tiers and what it runs.
    pub victim: String,
    /// What runs with it; absent where it is alone.
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
    /// How much of it alone; absent where no figure could be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<f64>,
    /// How much of it with the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<f64>,
    /// How long the victim runs alone, if it is a command: the median of its repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_s_alone: Option<f64>,
    /// The same with the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_s_beside: Option<f64>,
    /// The distance between the shortest and the longest run of either, as a share of the median; the larger of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_pct: Option<f64>,
    /// By how much it gets less (below zero) or more done with it, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_pct: Option<f64>,
    /// The class of that change, or of the change of the mean latency where that is worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ChangeClass>,
    /// From the arrival of a request to its answer, alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_alone: Option<LatencySummary>,
    /// The same with the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_beside: Option<LatencySummary>,
    /// Where the p99 of these is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_alone: Option<QuantileInterval>,
    /// The same with the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_beside: Option<QuantileInterval>,
    /// Whether more requests arrive than are answered, with the aggressor or, without one, alone. The latency then
    /// depends on how long one looks.
    pub saturated: bool,
    /// Lines of the victim that crossed the memory interface, alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps_alone: Option<GbPerSec>,
    /// The same with the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps_beside: Option<GbPerSec>,
    /// Where the victim's cycles are lost, alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_alone: Option<LostCycles>,
    /// The same with the aggressor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_beside: Option<LostCycles>,
    /// By how much the aggressor gets less or more done with the victim, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggressor_change_pct: Option<f64>,
    /// Figures of the victim that could not be taken, and why the first could not; the others are of those that were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Why the victim gets less done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Reason>,
}

/// What a row is made of.
pub struct Made<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// The victim, its threads, and what it does alone.
    pub victim: (&'a Participant, u32, &'a Pace),
    /// The aggressor, its threads, and what it does alone.
    pub aggressor: Option<(&'a Participant, u32, &'a Pace)>,
    /// What both do together.
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
            What::Stream(_) | What::Command(..) | What::Application(..) => None,
        };
        let last = after.unwrap_or(before);
        let mean = |pace: &Pace| pace.latency.summary().map(|ns| ns.mean.get());
        let slower = (made.together.as_ref())
            .and_then(|(beside, _)| Some(change(mean(beside)?, mean(alone)?)));
        // Where requests arrive by themselves, as many are answered with others until that is impossible: they wait.
        let harm = change_pct.map(|change| change.min(slower.unwrap_or(change)));
        let gbps = |pace: &Pace| pace.gbps.map(GbPerSec);
        let beside = made.together.as_ref().map(|(v, _)| v);
        let aggressor_change = made.aggressor.zip(made.together.as_ref());
        Self {
            victim: victim.name.clone(),
            aggressor: made
                .aggressor
                .map(|(participant, ..)| participant.name.clone()),
            victim_threads: threads,
            aggressor_threads: made.aggressor.map_or(0, |(_, threads, _)| threads),
            offered_per_s: offered,
            unit,
            alone: Some(before),
            beside: after,
            run_s_alone: None,
            run_s_beside: None,
            spread_pct: None,
            change_pct,
            class: harm.map(ChangeClass::of),
            ns_alone: alone.latency.summary(),
            ns_beside: beside.and_then(|pace| pace.latency.summary()),
            p99_alone: alone.latency.quantile_interval(0.99),
            p99_beside: beside.and_then(|pace| pace.latency.quantile_interval(0.99)),
            saturated: offered.is_some_and(|offered| last < ANSWERED * offered),
            gbps_alone: gbps(alone),
            gbps_beside: beside.and_then(gbps),
            lost_alone: alone.lost,
            lost_beside: beside.and_then(|pace| pace.lost),
            aggressor_change_pct: aggressor_change
                .filter(|((_, _, alone), _)| alone.time > 0.0)
                .map(|((_, _, alone), (_, beside))| change(1.0 / alone.time, 1.0 / beside.time)),
            failed: None,
            verdict: made.reason(harm),
        }
    }

    /// A command or an application of a host: its figures alone, those with another, and those of the other alone.
    pub fn of_command(
        victim: (&Participant, u32),
        aggressor: Option<(&Participant, u32)>,
        alone: &[CommandTime],
        beside: Option<&[CommandTime]>,
        aggressor_alone: &[CommandTime],
    ) -> Self {
        let failures = alone.iter().chain(beside.unwrap_or(&[]));
        let failed: Vec<&String> = failures.filter_map(|run| run.failed.as_ref()).collect();
        let done = |runs: &'_ [CommandTime]| -> Vec<CommandTime> {
            let mut done: Vec<CommandTime> = runs.to_vec();
            done.retain(|run| run.failed.is_none());
            // The fastest first, as a run of a command that takes a shorter time.
            done.sort_by(|a, b| b.rate.total_cmp(&a.rate));
            done
        };
        let (alone, beside) = (done(alone), beside.map(done));
        let middle = |runs: &[CommandTime]| runs.get(runs.len() / 2).cloned();
        let (before, after) = (middle(&alone), beside.as_deref().and_then(middle));
        // A command has runs in an hour, and what an application does it says itself.
        let unit = alone
            .iter()
            .chain(beside.iter().flatten())
            .find_map(|run| run.unit.clone());
        let amount = |run: &CommandTime| match unit {
            Some(_) => run.rate,
            None => 3.6e12 / run.time.get().max(1.0),
        };
        let seconds = |run: &CommandTime| unit.is_none().then(|| run.time.get() / 1e9);
        let width = |runs: &[CommandTime]| match (runs.first(), runs.last(), middle(runs)) {
            (Some(first), Some(last), Some(middle)) if unit.is_some() => {
                (first.rate - last.rate) / middle.rate.max(1e-9) * 100.0
            }
            (Some(first), Some(last), Some(middle)) => {
                (last.time.get() - first.time.get()) / middle.time.get().max(1.0) * 100.0
            }
            _ => 0.0,
        };
        let spread = width(&alone).max(beside.as_deref().map_or(0.0, width));
        let change = (before.as_ref().zip(after.as_ref()))
            .map(|(before, after)| (amount(after) / amount(before).max(1e-9) - 1.0) * 100.0);
        let lost = |runs: &[CommandTime]| LostCycles::of(&runs.first()?.counters);
        let rate = |mut rates: Vec<f64>| {
            rates.sort_by(f64::total_cmp);
            rates.get(rates.len() / 2).copied()
        };
        let others = aggressor_alone.iter().filter(|run| run.failed.is_none());
        let by_itself = rate(others.map(|run| run.rate).collect());
        let moved = rate(
            (beside.iter().flatten())
                .filter_map(|run| run.beside)
                .collect(),
        );
        Self {
            victim: victim.0.name.clone(),
            aggressor: aggressor.map(|(participant, _)| participant.name.clone()),
            victim_threads: victim.1,
            aggressor_threads: aggressor.map_or(0, |(_, threads)| threads),
            offered_per_s: None,
            unit: unit.clone().unwrap_or_else(|| "runs/h".into()),
            alone: before.as_ref().map(amount),
            beside: after.as_ref().map(amount),
            run_s_alone: before.as_ref().and_then(seconds),
            run_s_beside: after.as_ref().and_then(seconds),
            spread_pct: before.as_ref().map(|_| spread),
            change_pct: change,
            // A change that is no larger than what repetitions differ by is none.
            class: change.map(|change| match change.abs() > spread {
                true => ChangeClass::of(change),
                false => ChangeClass::None,
            }),
            ns_alone: before.and_then(|run| run.latency),
            ns_beside: after.and_then(|run| run.latency),
            p99_alone: None,
            p99_beside: None,
            saturated: false,
            gbps_alone: None,
            gbps_beside: None,
            lost_alone: lost(&alone),
            lost_beside: beside.as_deref().and_then(lost),
            aggressor_change_pct: by_itself
                .filter(|rate| *rate > 0.0)
                .zip(moved)
                .map(|(alone, beside)| (beside / alone - 1.0) * 100.0),
            failed: failed.first().map(|first| match failed.len() {
                1 => format!("one figure failed: {first}"),
                n => format!("{n} figures failed: {first}"),
            }),
            verdict: None,
        }
    }

    /// Whether it changes by more than 5 %, and its repetitions differ by as much.
    pub fn is_lost_in_spread(&self) -> bool {
        let change = self.change_pct.map_or(0.0, f64::abs);
        change > 5.0 && self.spread_pct.is_some_and(|spread| spread >= change)
    }

    /// The change of what it gets done, or of the mean latency of requests that arrive by themselves where that is worse, in
    /// percent.
    pub fn harm_pct(&self) -> f64 {
        let change = self.change_pct.unwrap_or(0.0);
        match (self.offered_per_s, self.ns_alone, self.ns_beside) {
            (Some(_), Some(alone), Some(beside)) => {
                change.min((alone.mean.get() / beside.mean.get() - 1.0) * 100.0)
            }
            _ => change,
        }
    }

    /// `p99 from 8.1 us (8.0 to 8.3) to 25.2 us (24.1 to 26.4)`.
    pub fn p99_change(&self) -> Option<String> {
        let before = p99(self.ns_alone, self.p99_alone)?;
        let after = p99(self.ns_beside, self.p99_beside)?;
        Some(format!("p99 from {before} to {after}"))
    }

    /// What it gets done alone: `19918 requests/s, p99 27.6 us (26.7 to 29.7)`; `None` where no figure could be taken.
    pub fn alone_in_words(&self) -> Option<String> {
        let alone = self.alone?;
        let mut parts = vec![match self.run_s_alone {
            Some(seconds) => format!("a run takes {seconds:.2} s"),
            None => format!("{} {}", figure(alone), self.unit),
        }];
        parts.extend(p99(self.ns_alone, self.p99_alone).map(|p99| format!("p99 {p99}")));
        let spread = self.spread_pct;
        parts.extend(spread.map(|spread| format!("repetitions differ by {spread:.1} %")));
        Some(parts.join(", "))
    }

    /// `-31.0 % of its requests/s, p99 from 8.1 us (8.0 to 8.3) to 25.2 us (24.1 to 26.4), most of it waiting for memory (0.4 to 1.2 cycles of an instruction)`.
    pub fn sentence(&self) -> Option<String> {
        let change = self.change_pct?;
        let mut parts = Vec::new();
        if let (Some(before), Some(after), Some(spread)) =
            (self.run_s_alone, self.run_s_beside, self.spread_pct)
        {
            parts.push(format!(
                "{before:.2} to {after:.2} s, repetitions differ by {spread:.1} %"
            ));
        } else if let (Some(before), Some(after), Some(spread)) =
            (self.alone, self.beside, self.spread_pct)
        {
            parts.push(format!(
                "{} to {} {}, repetitions differ by {spread:.1} %",
                figure(before),
                figure(after),
                self.unit
            ));
        }
        if change.abs() >= 0.05 {
            parts.push(format!("{change:+.1} % of its {}", self.unit));
        }
        parts.extend(self.p99_change());
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
            && verdict.cause.is_one()
        {
            text.push_str(&format!(". {}", verdict.cause));
            if !verdict.evidence.is_empty() {
                text.push_str(&format!(": {}", verdict.evidence.join("; ")));
            }
        }
        Some(text)
    }
}

/// `8.1 us (8.0 to 8.3)`.
fn p99(ns: Option<LatencySummary>, between: Option<QuantileInterval>) -> Option<String> {
    let us = |ns: Nanos| ns.get() / 1e3;
    let within = between.map_or_else(String::new, |p99| {
        format!(" ({:.1} to {:.1})", us(p99.low), us(p99.high))
    });
    Some(format!("{:.1} us{within}", us(ns?.p99?)))
}

/// Requests that are answered, as a share of those that arrive, below which they queue without end.
const ANSWERED: f64 = 0.97;

impl Made<'_> {
    fn reason(&self, change_pct: Option<f64>) -> Option<Reason> {
        let (victim, threads, _) = self.victim;
        let (aggressor, others, _) = self.aggressor?;
        let (alone, together) = (self.counted.0, self.counted.1?);
        let halts = matches!(&victim.what, What::Program(work, _) if work.requests.is_some());
        let clock = match self.topology.clock {
            Some(clock) => CoreClock::Known(clock),
            None if halts => CoreClock::Unknown,
            None => CoreClock::Counted,
        };
        let solo = alone.quantities(&[threads], clock);
        let corun = together.quantities(&[threads, others], clock);
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
