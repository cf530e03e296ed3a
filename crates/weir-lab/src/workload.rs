//! A described program on a machine: what its cores count in a whole period, as `perf stat` would
//! have counted it.
//!
//! Phases last much longer than caches and queues remember. Each is run by itself until it is in a
//! steady state, and what was counted is scaled to the instructions that it has.

pub mod application;
mod regions;
mod study;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::{Machine, MachineError, Testbed};
use weir_model::region::RegionUse;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};
use weir_model::workload::Workload;

use crate::{Ask, Lab, LabError};
pub use regions::{OneRegion, OneRegionRun};
pub use study::{PageSize, PhaseLine, RunAlone, WorkloadCost};

/// How to run a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkloadOptions {
    /// Whether the hardware prefetchers run.
    pub prefetch: bool,
    /// Lines that each thread touches in a phase while it is watched.
    pub accesses: u64,
    /// What chance is drawn from. Runs that are compared have the same.
    pub seed: u64,
}

impl Default for WorkloadOptions {
    fn default() -> Self {
        Self {
            prefetch: true,
            accesses: 20_000,
            seed: 1,
        }
    }
}

/// A workload with its pages placed: what studies of programs ask of a model.
#[derive(Debug, Clone, Serialize)]
pub struct Placed<'a> {
    /// What runs.
    pub workload: &'a Workload,
    /// Where its pages are.
    pub placement: Placement,
    /// Where those of single regions are instead.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub placements: BTreeMap<String, Placement>,
    /// How it runs.
    pub options: &'a WorkloadOptions,
}

impl<'a> Placed<'a> {
    /// With every page on local memory.
    pub fn local(workload: &'a Workload, options: &'a WorkloadOptions) -> Self {
        Self {
            workload,
            placement: Placement::Bind(TierName::dram()),
            placements: BTreeMap::new(),
            options,
        }
    }
}

/// Refuses more threads than a machine has cores.
///
/// # Errors
/// There are more.
pub fn check_threads(workload: &Workload, topology: &Topology) -> Result<(), LabError> {
    let cores = topology.cores.len() + topology.other_cores.len();
    match workload.threads as usize <= cores {
        true => Ok(()),
        false => Err(LabError::Nothing(format!(
            "`{}` is to run {} threads, one on a core, and there are {cores} cores; give fewer with --threads",
            workload.name, workload.threads
        ))),
    }
}

impl Ask for Placed<'_> {
    type Got = WorkloadRun;
    const KIND: &'static str = "workload";

    fn ask(&self, lab: &Lab<'_>) -> Result<WorkloadRun, LabError> {
        let run = self.run_on(lab.testbed());
        Ok(run?)
    }
}

/// A whole period of a workload: every phase once, all threads together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRun {
    /// The workload's name.
    pub workload: String,
    /// Instructions of all threads.
    pub instructions: u64,
    /// How long it takes.
    pub time: Nanos,
    /// What was counted: the cores' counters of this tenant, and the uncore's of the whole machine.
    pub counters: CounterSet,
    /// The same of each phase, in order.
    pub phases: Vec<PhaseRun>,
}

/// One phase of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseRun {
    /// The phase's name.
    pub phase: String,
    /// Instructions of all threads.
    pub instructions: u64,
    /// How long it takes.
    pub time: Nanos,
    /// What was counted.
    pub counters: CounterSet,
    /// What it did in each of its regions, where the machine counts that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<RegionUse>,
}

impl WorkloadRun {
    fn of(workload: &Workload, phases: Vec<PhaseRun>) -> Self {
        let mut counters = CounterSet::default();
        for phase in &phases {
            counters.accumulate(&phase.counters);
        }
        Self {
            workload: workload.name.clone(),
            instructions: phases.iter().map(|p| p.instructions).sum(),
            time: phases.iter().map(|p| p.time).sum(),
            counters,
            phases,
        }
    }

    /// Lines that crossed the memory interface either way, as a bandwidth.
    ///
    /// # Errors
    /// The machine does not count them.
    pub fn bandwidth(&self) -> Result<GbPerSec, weir_model::capability::Unavailable> {
        let lines = self.counters.get(Counter::TorInsertsIaMiss)?;
        Ok(GbPerSec::from_bytes_in(
            Bytes(lines * LINE_BYTES),
            self.time,
        ))
    }
}

/// Time before anything counts: queues fill, the caches are warm already.
const WARM_UP: Nanos = Nanos(5_000.0);
/// The first look, which tells how fast the program is.
const FIRST_LOOK: Nanos = Nanos(5_000.0);
/// The longest look: a program that hardly touches memory says little more.
const LONGEST_LOOK: Nanos = Nanos(20_000_000.0);

impl Placed<'_> {
    /// Runs it on the first cores of a machine, its pages placed as asked.
    ///
    /// # Errors
    /// The machine does not run described programs, has too few cores or no such tier, or nothing
    /// happened on it.
    pub fn run_on(&self, testbed: &dyn Testbed) -> Result<WorkloadRun, MachineError> {
        let run = |phase: Alone<'_>| phase.run_on(testbed);
        let phases = phases(self).map(run).collect::<Result<_, _>>()?;
        Ok(WorkloadRun::of(self.workload, phases))
    }
}

/// Each phase of a workload, to be run alone.
fn phases<'a>(placed: &'a Placed<'a>) -> impl Iterator<Item = Alone<'a>> {
    let alone = |number| placed.workload.phase_alone(number);
    let phases = (0..placed.workload.phases.len()).filter_map(alone);
    phases.map(move |workload| Alone {
        workload,
        placement: &placed.placement,
        placements: &placed.placements,
        options: placed.options,
    })
}

/// A workload of one phase on a machine.
#[derive(Serialize)]
struct Alone<'a> {
    workload: Workload,
    placement: &'a Placement,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    placements: &'a BTreeMap<String, Placement>,
    options: &'a WorkloadOptions,
}

impl Alone<'_> {
    fn run_on(&self, testbed: &dyn Testbed) -> Result<PhaseRun, MachineError> {
        let mut machine = testbed.open(self.options.seed)?;
        run_phase(&mut *machine, self)
    }
}

impl Ask for Alone<'_> {
    type Got = PhaseRun;
    const KIND: &'static str = "phase of a workload";

    fn ask(&self, lab: &Lab<'_>) -> Result<PhaseRun, LabError> {
        Ok(self.run_on(lab.testbed())?)
    }
}

/// Runs a workload that has one phase.
fn run_phase(machine: &mut dyn Machine, alone: &Alone<'_>) -> Result<PhaseRun, MachineError> {
    let (workload, options) = (alone.workload.clone(), alone.options);
    let (name, one) = match workload.phases.first() {
        Some(phase) => (phase.name.clone(), phase.instructions),
        None => (String::new(), 0),
    };
    let threads = u64::from(workload.threads);
    let cores = (0..workload.threads).collect();
    let tenant = Tenant {
        prefetch: options.prefetch,
        // A phase need not touch all regions.
        placements: (alone.placements.iter())
            .filter(|(region, _)| workload.memory().iter().any(|(name, _)| name == region))
            .map(|(region, placement)| (region.clone(), placement.clone()))
            .collect(),
        ..Tenant::running(workload.clone(), cores, alone.placement.clone())
    };
    machine.start(std::slice::from_ref(&tenant))?;
    let seen = watch(machine, options.accesses * threads);
    machine.stop()?;
    let (window, counters, uses) = seen?;
    let ran = counters.get(Counter::Instructions).unwrap_or(0);
    if ran == 0 {
        return Err(MachineError::Request(format!(
            "`{name}` of `{}` came no instruction further in {window:.0}",
            tenant.name
        )));
    }
    let scale = (one * threads) as f64 / ran as f64;
    let mut whole = CounterSet::default();
    for (counter, value) in counters.iter() {
        whole.set(counter, (value as f64 * scale).round() as u64);
    }
    Ok(PhaseRun {
        phase: name,
        instructions: one * threads,
        time: window * scale,
        counters: whole,
        uses: uses.iter().map(|own| own.times(scale)).collect(),
    })
}

/// Lets a tenant run until it has touched about this many lines, and says what was counted meanwhile.
fn watch(
    machine: &mut dyn Machine,
    accesses: u64,
) -> Result<(Nanos, CounterSet, Vec<RegionUse>), MachineError> {
    machine.observe(WARM_UP)?;
    let mut time = Nanos(0.0);
    let mut counters = CounterSet::default();
    let mut uses: Vec<RegionUse> = Vec::new();
    let mut touched = 0;
    let mut look = FIRST_LOOK;
    while touched < accesses && time < LONGEST_LOOK {
        let seen = machine.observe(look)?;
        time = time + seen.window;
        let mut all = seen.counters;
        if let Some(own) = seen.tenants.first() {
            touched += own.accesses;
            RegionUse::merge(&mut uses, &own.uses);
            for (counter, value) in own.counters.iter() {
                all.set(counter, value);
            }
        }
        counters.accumulate(&all);
        let left = accesses.saturating_sub(touched) as f64;
        look = (time * (left / touched.max(1) as f64))
            .max(FIRST_LOOK)
            .min(LONGEST_LOOK);
    }
    Ok((time, counters, uses))
}
