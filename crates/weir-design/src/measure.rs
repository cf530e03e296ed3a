//! The figures of a design: workloads run on its model, and the calculators do the rest.

use serde::Serialize;
use weir_lab::lab::Ask;
use weir_lab::{Lab, LabError, Placed, WorkloadOptions, WorkloadRun};
use weir_model::counters::Counter;
use weir_model::latency::LatencyHistogram;
use weir_model::machine::MachineError;
use weir_model::tenant::{Placement, Tenant};
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};
use weir_model::workload::Workload;

use crate::axis::placement;
use crate::candidate::Candidate;
use crate::colocated::{Colocated, LOADS, probe};
use crate::objective::Objective;
use crate::silicon::edp;
use crate::space::{Models, Space};

/// What a design is measured to be, before it is compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Instructions a nanosecond of all threads, of each workload.
    pub rates: Vec<f64>,
    /// The figure of each objective; speed is not among them, since it is relative.
    pub figures: Vec<(Objective, f64)>,
}

/// The latency of loads from memory while a workload runs, from one more core.
#[derive(Debug, Clone, Serialize)]
struct Probe<'a> {
    workload: &'a Workload,
    placement: &'a Placement,
    options: &'a WorkloadOptions,
}

/// Before anything counts.
const WARM_UP: Nanos = Nanos(5_000.0);
/// One window.
const WINDOW: Nanos = Nanos(50_000.0);
/// Windows at most: a load that takes longer is no load.
const MOST_WINDOWS: u32 = 100;

impl Ask for Probe<'_> {
    type Got = Nanos;
    const KIND: &'static str = "design probe";

    fn ask(&self, lab: &Lab<'_>) -> Result<Nanos, LabError> {
        let core = lab.topology().cores.get(self.workload.threads as usize);
        let core = core.copied().ok_or_else(|| {
            LabError::Failed(format!(
                "p99 is measured from a core of its own, and `{}` uses all {}",
                self.workload.name, self.workload.threads
            ))
        })?;
        let mut all = LatencyHistogram::new();
        for phase in 0..self.workload.phases.len() {
            let Some(alone) = self.workload.phase_alone(phase) else {
                continue;
            };
            all.merge(&self.phase(alone, core, lab)?);
        }
        Ok(all.quantile(0.99))
    }
}

impl Probe<'_> {
    fn phase(
        &self,
        alone: Workload,
        core: u32,
        lab: &Lab<'_>,
    ) -> Result<LatencyHistogram, MachineError> {
        let mut machine = lab.testbed().open(self.options.seed)?;
        let cores = lab
            .topology()
            .cores
            .iter()
            .copied()
            .take(alone.threads as usize);
        let program = Tenant::running(alone, cores.collect(), self.placement.clone());
        let probe = probe(self.workload, core, self.placement);
        machine.start(&[program, probe])?;
        let mut seen = LatencyHistogram::new();
        machine.observe(WARM_UP)?;
        for _ in 0..MOST_WINDOWS {
            let window = machine.observe(WINDOW)?;
            if let Some(own) = window
                .tenants
                .get(1)
                .and_then(|probe| probe.latency.as_ref())
            {
                seen.merge(own);
            }
            if seen.len() >= LOADS {
                break;
            }
        }
        machine.stop()?;
        Ok(seen)
    }
}

/// Measures a design on a lab of its platform.
///
/// # Errors
/// It has no tier that its policy names, too few cores or too little memory, or the work was stopped.
pub fn measure(
    space: &Space,
    candidate: &Candidate,
    options: &WorkloadOptions,
    lab: &Lab<'_>,
    models: &Models,
) -> Result<Measured, LabError> {
    let figures = space.figures();
    let wants = |objective| figures.contains(&objective);
    let mut parts = candidate.parts.clone();
    let mut measured = Measured::default();
    // Sums by weight: watts, the logarithm of cycles per instruction, and the worst latency.
    let (mut weights, mut watts, mut cycles, mut p99) = (0.0, 0.0, 0.0, 0.0_f64);
    let mut neighbour = 0.0;
    // Also where nothing runs: a design without a tier that its policy names cannot be.
    let pages = placement(&candidate.policy, lab.topology()).map_err(LabError::Failed)?;
    let sampled = match space.tenants.is_empty() || !space.runs() {
        true => None,
        false => Some((models.sampled)(&candidate.on).map_err(LabError::Failed)?),
    };
    let long = sampled.as_deref();
    let long = long.map(|testbed| lab.on(testbed, lab.machine(), lab.topology()));
    let colocated = long.as_ref().map(|lab| Colocated {
        neighbours: &space.tenants,
        controller: candidate.controller,
        options,
        lab,
    });
    for own in space.workloads.iter().filter(|_| space.runs()) {
        let mut workload = own.workload.clone();
        workload.threads = candidate.threads.unwrap_or(workload.threads);
        // Figures are of one socket.
        let cores = lab.topology().cores.len();
        if workload.threads as usize > cores {
            return Err(LabError::Failed(format!(
                "`{}` has {} threads; a socket of this design has {cores} cores",
                workload.name, workload.threads
            )));
        }
        let ran = match &colocated {
            Some(colocated) => {
                let (ran, got) = colocated.run(&workload, &pages)?;
                neighbour += own.weight * got.get();
                ran
            }
            None => {
                let placed = Placed {
                    placement: pages.clone(),
                    ..Placed::local(&workload, options)
                };
                lab.answer(&placed).map_err(|error| match error {
                    LabError::Machine(error) => {
                        let place = (own.largest_region.as_ref())
                            .filter(|_| matches!(error, MachineError::NoMemory { .. }))
                            .map_or_else(String::new, |place| format!(" ({place})"));
                        LabError::Failed(format!("`{}`{place}: {error}", workload.name))
                    }
                    error => error,
                })?
            }
        };
        measured
            .rates
            .push(ran.instructions as f64 / ran.time.get().max(f64::MIN_POSITIVE));
        let used = bandwidths(&ran);
        for (at, channels) in parts.channels.iter_mut().enumerate() {
            let of_devices = usize::from(at > 0);
            channels.utilisation =
                (used[of_devices] / candidate.peaks[of_devices].max(1e-9)).min(1.0);
        }
        weights += own.weight;
        watts += own.weight * candidate.silicon.power(&parts).total();
        cycles += own.weight * cpi(&ran)?.ln();
        if wants(Objective::P99) {
            let found = match &colocated {
                Some(colocated) => colocated.p99(&workload, &pages)?,
                None => lab.answer(&Probe {
                    workload: &workload,
                    placement: &pages,
                    options,
                })?,
            };
            p99 = p99.max(found.get());
        }
    }
    let watts = watts / weights;
    measured.figures = (figures.iter())
        .filter_map(|&objective| {
            let figure = match objective {
                Objective::Speed => return None,
                Objective::Neighbour => neighbour / weights,
                Objective::P99 => p99,
                Objective::Watts => watts,
                Objective::Edp => edp(watts, (cycles / weights).exp()),
                Objective::Area => candidate.silicon.area(&parts),
                Objective::Pins => candidate.silicon.pins(&parts),
                Objective::Dollars => candidate.dollars,
            };
            Some((objective, figure))
        })
        .collect();
    Ok(measured)
}

/// Speed, of that of another design: the geometric mean over workloads, by weight.
pub fn speed(space: &Space, rates: &[f64], first: &[f64]) -> Option<f64> {
    let weights = space.workloads.iter().map(|own| own.weight);
    let total: f64 = weights.clone().sum();
    let pairs = rates.iter().zip(first).zip(weights);
    let sum: f64 = pairs
        .map(|((own, first), weight)| weight * (own / first).ln())
        .sum();
    (rates.len() == first.len() && total > 0.0).then(|| (sum / total).exp())
}

/// Bandwidth of the socket's channels and of the devices', in GB/s, reads and writes together.
fn bandwidths(ran: &WorkloadRun) -> [f64; 2] {
    let of = |counter| ran.counters.get(counter).unwrap_or(0);
    let near = of(Counter::CasRd) + of(Counter::CasWr);
    let all = of(Counter::TorInsertsIaMiss) + of(Counter::TorInsertsIaWbmtoi);
    let far = match of(Counter::TorInsertsIaMissCxl) {
        0 => 0,
        reads => reads.max(all.saturating_sub(near)),
    };
    let rate = |lines: u64| GbPerSec::from_bytes_in(Bytes(lines * LINE_BYTES), ran.time).get();
    [rate(near), rate(far)]
}

/// Cycles of a core for each of its instructions.
fn cpi(ran: &WorkloadRun) -> Result<f64, LabError> {
    let cycles = ran.counters.get(Counter::Cycles);
    let cycles = cycles.map_err(|why| LabError::Failed(format!("cycles: {why}")))?;
    Ok(cycles as f64 / (ran.instructions as f64).max(1.0))
}
