//! Runs and their differences as documents.

use crate::documents::{
    ExplainedDifference, ExplainedPhase, ExplainedRun, KernelCounts, PhaseDifference,
    PrefetchHealth, UntoldCounter, Yardstick,
};
use weir_lab::WorkloadRun;
use weir_lab::interplay::CountedProgram;
use weir_model::counter_file::CountersDocument;
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::{Components, PrefetchForm};
use weir_model::metric::OwnMetric;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Cycles, GbPerSec, LINE_BYTES, Nanos};

use crate::bound::classify;
use crate::breakdown::{Breakdown, Difference, Untold};
use crate::prefetch::Health;
use crate::{InsightError, Run};

/// What to count of a program that is to be explained, in the cores and in the kernel.
pub const COUNTERS: [Counter; 22] = [
    Counter::Cycles,
    Counter::Instructions,
    Counter::StallsMemAny,
    Counter::StallsL1dMiss,
    Counter::StallsL2Miss,
    Counter::StallsL3Miss,
    Counter::BoundOnStores,
    Counter::OffcoreDemandDataRd,
    Counter::OffcoreOutstandingDemandDataRd,
    Counter::OffcoreCyclesDemandDataRd,
    Counter::OffcoreDataRd,
    Counter::OffcoreOutstandingDataRd,
    Counter::L1Miss,
    Counter::FbHit,
    Counter::L3Miss,
    Counter::HwpfL1d,
    Counter::HwpfL1dL3Hit,
    Counter::HwpfL2,
    Counter::TaskClock,
    Counter::PageFaults,
    Counter::ContextSwitches,
    Counter::CpuMigrations,
];

/// A run to explain, from any source.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedRun {
    /// The workload, or the file.
    pub name: String,
    /// Where its pages lay, where known.
    pub tier: Option<TierName>,
    /// What ran with it.
    pub beside: Option<String>,
    /// What it got done, where that is known.
    pub metric: Option<OwnMetric>,
    /// How long it took, where known.
    pub time: Option<Nanos>,
    /// Its memory, where it was looked at.
    pub memory: Option<Bytes>,
    /// Lines between caches and memory, where they were counted for it alone.
    pub gbps: Option<GbPerSec>,
    /// How it ended, where it was a command that was run here.
    pub exit_status: Option<i32>,
    /// What was counted.
    pub counters: CounterSet,
    /// The same over time: phases or intervals, by name.
    pub phases: Vec<(String, CounterSet)>,
    /// Which prefetch counters its processor has, where known.
    pub prefetch: Option<PrefetchForm>,
    /// Latency of a lone chase on the memory it ran on, in cycles of its core, where known.
    pub unloaded: Option<Cycles>,
}

impl CountedRun {
    /// A workload that ran on a machine.
    pub fn of_workload(run: &WorkloadRun, tier: &TierName, processor: &str) -> Self {
        let phases = (run.phases.iter()).map(|phase| (phase.phase.clone(), phase.counters.clone()));
        Self {
            name: run.workload.clone(),
            tier: Some(tier.clone()),
            beside: None,
            metric: None,
            time: Some(run.time),
            memory: None,
            gbps: None,
            exit_status: None,
            counters: run.counters.clone(),
            phases: phases.collect(),
            prefetch: PrefetchForm::of(processor),
            unloaded: None,
        }
    }

    /// A program that was counted as a tenant, alone or with another.
    pub fn of_program(
        run: &CountedProgram,
        workload: &str,
        tier: &TierName,
        processor: &str,
    ) -> Self {
        let mut counters = CounterSet::default();
        for (_, phase) in &run.phases {
            counters.accumulate(phase);
        }
        Self {
            name: workload.to_owned(),
            tier: Some(tier.clone()),
            beside: None,
            metric: Some(run.metric.clone()),
            time: run.time,
            memory: None,
            gbps: run.gbps,
            exit_status: None,
            counters,
            phases: run.phases.clone(),
            prefetch: PrefetchForm::of(processor),
            unloaded: None,
        }
    }

    /// Counters that were read from a file.
    pub fn of_file(file: &CountersDocument) -> Self {
        let seconds = |time: Nanos| format!("{:.2} s", time.as_secs());
        let phases = (file.intervals.iter())
            .map(|interval| (seconds(interval.end), interval.counters.clone()));
        Self {
            name: file.of.clone(),
            tier: None,
            beside: None,
            metric: None,
            time: file.elapsed,
            memory: None,
            gbps: None,
            exit_status: file.exit_status,
            counters: file.total.clone(),
            phases: phases.collect(),
            prefetch: file.cpu.as_deref().and_then(PrefetchForm::of),
            unloaded: None,
        }
    }

    /// Where it loses its cycles. A phase whose counters cannot be of a run is left out: it is short, and
    /// the whole has been checked. Where cycles were not counted, there are the time and what the kernel
    /// counted, and [`ExplainedRun::untold`] says why there is no more.
    ///
    /// # Errors
    /// The counters cannot be of a run, or nothing at all was counted or timed.
    pub fn explain(&self) -> Result<ExplainedRun, InsightError> {
        let kernel = kernel(&self.counters);
        let run = match Run::of(&self.counters) {
            Err(InsightError::Missing { counters, .. })
                if self.time.is_some() || self.metric.is_some() || !kernel.is_empty() =>
            {
                return Ok(self.without_cycles(kernel, &counters));
            }
            run => run?,
        };
        let breakdown = Breakdown::of(&run);
        let bound = classify(&run, self.unloaded);
        let whole = run.cycles();
        let phase = |(name, counters): &(String, CounterSet)| {
            let part = Run::of(counters).ok()?;
            Some(ExplainedPhase {
                phase: name.clone(),
                share_pct: part.cycles() / whole * 100.0,
                lost: Breakdown::of(&part).lost.components(1.0),
                kernel: self::kernel(counters),
            })
        };
        let several = self.phases.len() > 1;
        let phases = self.phases.iter().filter(|_| several).filter_map(phase);
        Ok(ExplainedRun {
            workload: self.name.clone(),
            tier: self.tier.clone(),
            beside: self.beside.clone(),
            metric: self.metric.clone(),
            time_ns: self.time,
            memory: self.memory,
            exit_status: self.exit_status,
            kernel,
            gbps: self.bandwidth(),
            ipc: run.instructions().ok().map(|n| n / whole.get()),
            lost: breakdown.lost.components(1.0),
            offcore_latency: run.offcore_latency().ok().flatten(),
            aol: run.aol().ok().flatten(),
            mlp: run.mlp().ok().flatten(),
            bound: bound.bound,
            evidence: bound.evidence,
            prefetch: self.prefetch.map_or_else(PrefetchHealth::default, |form| {
                let health = Health::of(&run, form);
                PrefetchHealth {
                    l1_misses_pki: health.l1_misses_pki,
                    l2_misses_pki: health.l2_misses_pki,
                    fill_buffer_hits_pct: health.fill_buffer_hits.map(|share| share * 100.0),
                }
            }),
            phases: phases.collect(),
            untold: breakdown.untold.iter().map(untold).collect(),
        })
    }

    /// What is known of a run whose cycles were not counted.
    fn without_cycles(&self, kernel: KernelCounts, why: &[(Counter, String)]) -> ExplainedRun {
        let whole = kernel.cpu_ns;
        let phase = |(name, counters): &(String, CounterSet)| {
            let kernel = self::kernel(counters);
            // The kernel counts nothing of an interval in which nothing ran.
            let own = kernel.cpu_ns.unwrap_or_default();
            Some(ExplainedPhase {
                phase: name.clone(),
                share_pct: own / whole.filter(|all| all.get() > 0.0)? * 100.0,
                lost: Components::default(),
                kernel,
            })
        };
        let several = self.phases.len() > 1;
        let phases = self.phases.iter().filter(|_| several).filter_map(phase);
        ExplainedRun {
            workload: self.name.clone(),
            tier: self.tier.clone(),
            beside: self.beside.clone(),
            metric: self.metric.clone(),
            time_ns: self.time,
            memory: self.memory,
            exit_status: self.exit_status,
            kernel,
            gbps: None,
            ipc: None,
            lost: Components::default(),
            offcore_latency: None,
            aol: None,
            mlp: None,
            bound: None,
            evidence: "the processor's counters tell it, and cycles were not counted".into(),
            prefetch: PrefetchHealth::default(),
            phases: phases.collect(),
            untold: (why.iter())
                .map(|(counter, why)| UntoldCounter {
                    counter: counter.name().into(),
                    why: why.clone(),
                    cost: "where it loses its cycles".into(),
                })
                .collect(),
        }
    }

    /// Lines between caches and memory, over the time.
    fn bandwidth(&self) -> Option<GbPerSec> {
        if self.gbps.is_some() {
            return self.gbps;
        }
        let lines = self.counters.get(Counter::TorInsertsIaMiss).ok()?;
        Some(GbPerSec::from_bytes_in(
            Bytes(lines * LINE_BYTES),
            self.time?,
        ))
    }

    /// Where the same work loses more on another memory. Phases are compared by name and place. Where
    /// cycles of either were not counted, what both got done is compared, or else their times.
    ///
    /// # Errors
    /// Counters of either cannot be of a run, or neither cycles nor metrics nor times of both are known.
    pub fn difference(&self, other: &Self) -> Result<ExplainedDifference, InsightError> {
        let between =
            |a: &CounterSet, b: &CounterSet| Difference::between(&Run::of(a)?, &Run::of(b)?);
        let whole = match (
            between(&self.counters, &other.counters),
            self.time,
            other.time,
        ) {
            (Err(why @ InsightError::Missing { .. }), here, there) => {
                let (ratio, by) = match (&self.metric, &other.metric, here, there) {
                    // How long they were observed says nothing of them.
                    (Some(one), Some(two), ..) if one.unit == two.unit => {
                        (one.rate / two.rate, Yardstick::Rate)
                    }
                    (None, None, Some(here), Some(there)) => (there / here, Yardstick::Time),
                    _ => return Err(why),
                };
                if !ratio.is_finite() {
                    return Err(why);
                }
                return Ok(ExplainedDifference {
                    slowdown_pct: (ratio - 1.0) * 100.0,
                    by,
                    components: Components::default(),
                    instructions: None,
                    verdict: None,
                    phases: Vec::new(),
                });
            }
            (whole, ..) => whole?,
        };
        let alike = self.phases.len() > 1
            && self.phases.len() == other.phases.len()
            && (self.phases.iter().zip(&other.phases)).all(|(a, b)| a.0 == b.0);
        let mut phases = Vec::new();
        if alike {
            for ((name, here), (_, there)) in self.phases.iter().zip(&other.phases) {
                let Ok(part) = between(here, there) else {
                    continue;
                };
                phases.push(PhaseDifference {
                    phase: name.clone(),
                    slowdown_pct: part.slowdown * 100.0,
                    components: part.added.components(part.slowdown),
                });
            }
        }
        Ok(ExplainedDifference {
            slowdown_pct: whole.slowdown * 100.0,
            by: Yardstick::Cycles,
            components: whole.added.components(whole.slowdown),
            instructions: whole.instructions,
            verdict: None,
            phases,
        })
    }
}

/// What the kernel counted.
fn kernel(counters: &CounterSet) -> KernelCounts {
    let get = |counter| counters.get(counter).ok();
    KernelCounts {
        cpu_ns: get(Counter::TaskClock).map(|ns| Nanos(ns as f64)),
        page_faults: get(Counter::PageFaults),
        context_switches: get(Counter::ContextSwitches),
        cpu_migrations: get(Counter::CpuMigrations),
    }
}

fn untold(untold: &Untold) -> UntoldCounter {
    UntoldCounter {
        counter: untold.counter.name().into(),
        why: untold.why.clone(),
        cost: untold.cost.into(),
    }
}
