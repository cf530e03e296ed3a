//! Takes one point from a machine: raw samples and counters, no statistics beyond what decides
//! when to stop.

use std::collections::BTreeSet;

use weir_model::access::Op;
use weir_model::counters::CounterSet;
use weir_model::document::Record;
use weir_model::latency::LatencyHistogram;
use weir_model::machine::{Goal, Machine, MachineError, Observation, Pacing, RunNotes, Testbed};
use weir_model::units::Nanos;

use crate::PointSpec;
use crate::plan::Load;
use crate::statistics::Estimate;

/// What a run of one point left behind.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Each window's figure, every timed access, and the counters over all windows.
    pub record: Record,
    /// What the machine said about the run.
    pub notes: RunNotes,
    /// That the windows were spent before the interval was as tight as was wanted.
    pub loose: Option<String>,
}

impl Recorded {
    /// With what an earlier run of the same point saw, before its own.
    #[must_use]
    pub fn after(mut self, earlier: &Record) -> Self {
        let own = std::mem::take(&mut self.record);
        let mut record = earlier.clone();
        if record.repetitions.is_empty() {
            record.repetitions.push(record.samples.len() as u32);
        }
        record.repetitions.push(own.samples.len() as u32);
        record.samples.extend(own.samples);
        record.beside.extend(own.beside);
        let mut latency = LatencyHistogram::from_buckets(&record.latency);
        latency.merge(&LatencyHistogram::from_buckets(&own.latency));
        record.latency = latency.buckets();
        record.counters.accumulate(&own.counters);
        accumulate(&mut record.tenants, own.tenants.iter());
        Self { record, ..self }
    }
}

/// Why there is no record.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RecordError {
    /// The machine refused or failed.
    #[error(transparent)]
    Machine(MachineError),
    /// The point asks for more threads than there are cores, or for none.
    #[error("{threads} threads do not fit: there are {cores} cores, and each takes one")]
    Threads {
        /// What the point asks for.
        threads: u32,
        /// What there is.
        cores: usize,
    },
    /// The tenant ran but did nothing.
    #[error("no access completed in {windows} windows of {window}")]
    Idle {
        /// Windows observed.
        windows: u32,
        /// Length of one.
        window: Nanos,
    },
    /// The machine failed, and then could not be stopped.
    #[error("{first}; and then the machine did not stop: {then}")]
    Stuck {
        /// What failed first.
        first: Box<RecordError>,
        /// What stopping said.
        then: MachineError,
    },
    /// The user asked to end while the point was under way.
    #[error("stopped by the user")]
    Stopped,
}

impl From<MachineError> for RecordError {
    fn from(error: MachineError) -> Self {
        match error {
            MachineError::Interrupted => RecordError::Stopped,
            error => RecordError::Machine(error),
        }
    }
}

/// Runs one point: warm-up, then windows until the interval is as tight as the machine's pacing
/// asks for or its budget of windows is spent. The machine is at rest afterwards, whatever happened.
///
/// Windows go on past the budget until `least_accesses` of the point were seen, for quantiles that need that many
/// and bandwidths that sway.
///
/// # Errors
/// The machine refused or failed, nothing happened on it, or `stop` said so.
pub fn record(
    machine: &mut dyn Machine,
    spec: &PointSpec,
    stop: &dyn Fn() -> bool,
) -> Result<Recorded, RecordError> {
    let topology = machine.topology();
    let tenants = spec
        .tenants(topology)
        .filter(|all| all.iter().all(|t| !t.cores.is_empty()))
        .ok_or(RecordError::Threads {
            threads: spec.threads(),
            cores: topology.cores.len(),
        })?;
    let pacing = machine.pacing(spec.pace());
    machine.start(&tenants)?;
    let watched = watch(machine, spec, pacing, stop);
    match (watched, machine.stop()) {
        (Ok(windows), Ok(notes)) => Ok(windows.into_recorded(pacing, notes)),
        // Figures of another tier than the one that was asked for.
        (Ok(_), Err(moved @ MachineError::Misplaced { .. })) => Err(moved.into()),
        (Ok(windows), Err(then)) => {
            let warnings = vec![format!("the machine did not stop cleanly: {then}")];
            let notes = RunNotes {
                warnings,
                ..RunNotes::default()
            };
            Ok(windows.into_recorded(pacing, notes))
        }
        (Err(first), Ok(_)) => Err(first),
        (Err(first), Err(then)) => Err(RecordError::Stuck {
            first: Box::new(first),
            then,
        }),
    }
}

/// Refuses loads past the caches where the memory has no such mapping, before anything runs: the machine says so when
/// they start.
///
/// # Errors
/// The machine refuses the first such point of a tier.
pub(crate) fn check_uncached(
    plan: &[PointSpec],
    testbed: &dyn Testbed,
    seed: u64,
) -> Result<(), MachineError> {
    let is_uncached = |load: &&Load| load.op == Op::UcLd;
    let mut tiers = BTreeSet::new();
    for spec in plan {
        let Some(load) = spec.loads().find(is_uncached) else {
            continue;
        };
        if !tiers.insert(&load.tier) {
            continue;
        }
        // A study that opens machines of its own has no testbed here.
        let Ok(mut machine) = testbed.open(seed) else {
            return Ok(());
        };
        if let Some(tenants) = spec.tenants(machine.topology()) {
            machine.start(&tenants)?;
            machine.stop()?;
        }
    }
    Ok(())
}

/// Adds what each tenant's cores counted.
fn accumulate<'c>(sums: &mut Vec<CounterSet>, seen: impl Iterator<Item = &'c CounterSet>) {
    for (i, counters) in seen.enumerate() {
        match sums.get_mut(i) {
            Some(sum) => sum.accumulate(counters),
            None => sums.push(counters.clone()),
        }
    }
}

fn watch(
    machine: &mut dyn Machine,
    spec: &PointSpec,
    pacing: Pacing,
    stop: &dyn Fn() -> bool,
) -> Result<Windows, RecordError> {
    // What storage does to a chase shows once its requests are under way.
    let warm_up = match spec.stores() {
        true => machine.pacing(Goal::Requests).warm_up,
        false => pacing.warm_up,
    };
    if warm_up > Nanos(0.0) {
        machine.observe(warm_up)?;
    }
    let most = pacing.most_windows.max(pacing.least_windows).max(1);
    let mut windows = Windows::default();
    for seen in 1.. {
        if stop() {
            return Err(RecordError::Stopped);
        }
        let accesses = windows.add(&machine.observe(pacing.window)?, spec.goal());
        let tight = || {
            windows
                .reached()
                .is_some_and(|share| share <= pacing.relative_ci)
        };
        let spent = seen >= most || (seen >= pacing.least_windows && tight());
        // A window without an access would not end the wait for more of them.
        let enough = windows.accesses >= spec.least_accesses;
        if spent && (enough || accesses == 0) {
            break;
        }
    }
    let busy = windows
        .record
        .samples
        .iter()
        .any(|&(_, figure)| figure > 0.0);
    let window = pacing.window;
    if busy {
        Ok(windows)
    } else {
        Err(RecordError::Idle {
            windows: most,
            window,
        })
    }
}

/// The windows of one run so far.
#[derive(Default)]
struct Windows {
    record: Record,
    latency: LatencyHistogram,
    accesses: u64,
}

impl Windows {
    /// Takes a window in and says how many accesses completed in it.
    fn add(&mut self, seen: &Observation, goal: Goal) -> u64 {
        self.record.counters.accumulate(&seen.counters);
        accumulate(
            &mut self.record.tenants,
            seen.tenants.iter().map(|t| &t.counters),
        );
        let Some(progress) = seen.tenants.first() else {
            return 0;
        };
        if let Some(latency) = &progress.latency {
            self.latency.merge(latency);
        }
        let figure = match (goal, &progress.latency) {
            (Goal::Bandwidth | Goal::Requests, _) => progress.bandwidth(seen.window).get(),
            (Goal::Latency, Some(latency)) if !latency.is_empty() => latency.mean().get(),
            // A window without a completed access has no latency; it is no sample of zero.
            (Goal::Latency, _) => return 0,
        };
        self.record.samples.push((seen.window, figure));
        if let Some(beside) = seen.tenants.get(1) {
            self.record.beside.push(beside.bandwidth(seen.window).get());
        }
        self.accesses += progress.accesses;
        progress.accesses
    }

    /// The interval so far, as a share of the mean.
    fn reached(&self) -> Option<f64> {
        Estimate::of(self.record.samples.iter().map(|&(_, figure)| figure))?.relative_ci()
    }

    fn into_recorded(mut self, pacing: Pacing, notes: RunNotes) -> Recorded {
        let reached = self.reached().filter(|&share| share > pacing.relative_ci);
        let loose = reached.map(|reached| {
            format!(
                "95 % interval of ±{:.1} % after {} windows; ±{:.1} % was wanted",
                reached * 100.0,
                self.record.samples.len(),
                pacing.relative_ci * 100.0
            )
        });
        self.record.latency = self.latency.buckets();
        Recorded {
            record: self.record,
            notes,
            loose,
        }
    }
}
