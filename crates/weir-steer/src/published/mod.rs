//! Published figures of regulation, from the same experiments on models: what MIKU's controller and the
//! knobs of CXL-Interplay restore, and what they cost.

mod rows;

use weir_model::access::{Op, Pattern};
use weir_model::machine::Testbed;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Gigahertz, Nanos};
use weir_model::workload::Workloads;

use crate::calibrate::{CalibrateError, calibrate, slow_placement};
use crate::control_loop::{Phase, SteeredTenant, Step, run_phases};
use crate::controller::{Controller, Decision, Why};
use crate::guard::Bounds;
use crate::limit::{Limit, Share};
use crate::plant::{Actuators, PlantError};
use crate::readings::{Readings, Role};
use crate::registry::Policy;
use crate::scenario::{Scenario, ScenarioError};
use rows::{Knob, ROWS, What};

/// Why a figure cannot be had.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unanswered {
    /// The machine could not be run.
    #[error(transparent)]
    Plant(#[from] PlantError),
    /// It could not be calibrated.
    #[error(transparent)]
    Calibrate(#[from] CalibrateError),
    /// The scenario cannot be played there.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// Rows that are answered here.
pub fn ids() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.id)
}

/// The platform that a row is answered on, and what to know when comparing.
pub fn about(id: &str) -> Option<(&'static str, &'static str)> {
    ROWS.iter()
        .find(|row| row.id == id)
        .map(|row| (row.on, row.note))
}

/// Our figure of a row, from a testbed of its platform whose long windows are sampled; `None` for a row that
/// is not answered here.
///
/// # Errors
/// The machine cannot be calibrated or run.
pub fn answer(id: &str, testbed: &dyn Testbed, seed: u64) -> Option<Result<f64, Unanswered>> {
    let row = ROWS.iter().find(|row| row.id == id)?;
    let bench = Bench { testbed, seed };
    Some(bench.figure(row.what))
}

/// What a pair of bandwidth tests of one instruction keeps of what each draws alone under a controller: the
/// one on DRAM and the one on the slow tier.
///
/// # Errors
/// The machine cannot be calibrated or run.
pub fn kept(
    policy: Policy,
    op: Op,
    testbed: &dyn Testbed,
    seed: u64,
) -> Result<(f64, f64), Unanswered> {
    let bench = Bench { testbed, seed };
    let pair = bench.streams(op, op)?;
    let alone = |i: usize| bench.mean(&pair[i..=i], None, 0);
    let under = |i| bench.mean(&pair, Some(policy), i);
    Ok((under(0)? / alone(0)?, under(1)? / alone(1)?))
}

/// MIKU's window (section 5.2), in which everything here is counted.
const WINDOW: Nanos = Nanos(1e9);
/// The period of a quota.
const PERIOD: Nanos = Nanos(1e8);
/// Windows that show a figure; the first is left out.
const SHOWN: u32 = 4;
/// Windows in which MIKU is to settle.
const WATCHED: u32 = 24;
/// Threads of either side in both papers.
const THREADS: usize = 16;
/// What a thread of a bandwidth test touches.
const WORKING_SET: Bytes = Bytes::mib(64);

struct Bench<'a> {
    testbed: &'a dyn Testbed,
    seed: u64,
}

impl Bench<'_> {
    fn figure(&self, what: What) -> Result<f64, Unanswered> {
        match what {
            What::Settles { most } => self.settles(most),
            What::Protected(scenario, policy) => {
                let pair = self.pair(scenario)?;
                let alone = self.mean(&pair[..1], None, 0)?;
                Ok(100.0 * (self.mean(&pair, policy, 0)? / alone))
            }
            What::Restrained(scenario) => {
                let pair = self.pair(scenario)?;
                let racing = self.mean(&pair, None, 1)?;
                Ok(100.0 * (self.mean(&pair, Some(Policy::Miku), 1)? / racing))
            }
            What::Racing(scenario) => {
                let pair = self.pair(scenario)?;
                let alone = self.mean(&pair[1..], None, 0)?;
                Ok(100.0 * (self.mean(&pair, None, 1)? / alone))
            }
            What::Alone(scenario) => self.mean(&self.pair(scenario)?[..1], None, 0),
            What::Free(scenario) => self.mean(&self.pair(scenario)?, None, 0),
            What::Program(name, knob) => {
                let mut pair = self.streams(Op::Ld, Op::NtSt)?;
                pair[0].tenant = program(name, &pair[0].tenant)?;
                let alone = self.mean(&pair[..1], None, 0)?;
                Ok(100.0 * (self.beside(&pair, knob)?.0.get() / alone))
            }
            What::Restored(knob) => Ok(self.under(knob)?.0.get()),
            What::RestoredPct(knob) => {
                let alone = self.mean(&self.streams(Op::Ld, Op::NtSt)?[..1], None, 0)?;
                Ok(100.0 * (self.under(knob)?.0.get() / alone))
            }
            What::GivenUp(knob) => {
                let racing = self.mean(&self.streams(Op::Ld, Op::NtSt)?, None, 1)?;
                Ok(racing - self.under(knob)?.1.get())
            }
        }
    }

    /// Seconds after which MIKU's hold stands.
    fn settles(&self, most: bool) -> Result<f64, Unanswered> {
        let mut found: Option<f64> = None;
        for op in [Op::Ld, Op::St, Op::NtSt] {
            let steps = self.play(&self.streams(op, op)?, Some(Policy::Miku), WATCHED)?;
            let Some(last) = steps.last().map(|s| s.held[1]) else {
                continue;
            };
            // Who was never held had nothing to settle.
            let Some(moved) = steps.iter().rposition(|step| step.held[1] != last) else {
                continue;
            };
            let seconds = steps[moved].at.get() / WINDOW.get();
            let pick = |so_far: f64| {
                if most {
                    so_far.max(seconds)
                } else {
                    so_far.min(seconds)
                }
            };
            found = Some(found.map_or(seconds, pick));
        }
        Ok(found.unwrap_or(0.0))
    }

    /// Both bandwidths of loads and non-temporal stores under a knob.
    fn under(&self, knob: Knob) -> Result<(GbPerSec, GbPerSec), Unanswered> {
        self.beside(&self.streams(Op::Ld, Op::NtSt)?, knob)
    }

    /// Both bandwidths of a pair under a knob.
    fn beside(
        &self,
        pair: &[SteeredTenant],
        knob: Knob,
    ) -> Result<(GbPerSec, GbPerSec), Unanswered> {
        let clock = self
            .testbed
            .open(self.seed)
            .map_err(PlantError::from)?
            .topology()
            .clock;
        let limit = match knob {
            Knob::Quota => Limit {
                time: Share::of(1.0 / THREADS as f64),
                ..Limit::FREE
            },
            Knob::Clock(part) => Limit {
                clock: clock.map(|clock: Gigahertz| clock * part),
                ..Limit::FREE
            },
            Knob::Allocation(share) => Limit {
                allocation: Share::of(share),
                ..Limit::FREE
            },
        };
        let steps = self.run(pair, &mut Fixed(limit), SHOWN + 1)?;
        let mean = |i: usize| {
            let shown = &steps[steps.len() - SHOWN as usize..];
            GbPerSec(shown.iter().map(|s| s.drew(i).get()).sum::<f64>() / f64::from(SHOWN))
        };
        Ok((mean(0), mean(1)))
    }

    /// A tenant's bandwidth in the mean of the last windows.
    fn mean(
        &self,
        parties: &[SteeredTenant],
        policy: Option<Policy>,
        i: usize,
    ) -> Result<f64, Unanswered> {
        let windows = if policy.is_some() { WATCHED } else { SHOWN + 1 };
        let steps = self.play(parties, policy, windows)?;
        let shown = &steps[steps.len() - SHOWN as usize..];
        Ok(shown.iter().map(|s| s.drew(i).get()).sum::<f64>() / f64::from(SHOWN))
    }

    fn play(
        &self,
        parties: &[SteeredTenant],
        policy: Option<Policy>,
        windows: u32,
    ) -> Result<Vec<Step>, Unanswered> {
        let mut controller = match policy {
            None => Policy::free(),
            Some(policy) => {
                let machine = self.testbed.open(self.seed).map_err(PlantError::from)?;
                let actuators = Actuators::of_model(machine.topology());
                let known = calibrate(self.testbed, self.seed, WINDOW, actuators.allocation)?;
                policy.controller(&known, &actuators, Bounds::default())
            }
        };
        self.run(parties, controller.as_mut(), windows)
    }

    fn run(
        &self,
        parties: &[SteeredTenant],
        controller: &mut dyn Controller,
        windows: u32,
    ) -> Result<Vec<Step>, Unanswered> {
        let phase = Phase {
            lasts: WINDOW * f64::from(windows),
            parties: parties.to_vec(),
        };
        let mut machine = self.testbed.open(self.seed).map_err(PlantError::from)?;
        Ok(run_phases(
            machine.as_mut(),
            controller,
            &[phase],
            WINDOW,
            PERIOD,
        )?)
    }

    /// The tenants of a scenario's first phase.
    fn pair(&self, scenario: &str) -> Result<Vec<SteeredTenant>, Unanswered> {
        let machine = self.testbed.open(self.seed).map_err(PlantError::from)?;
        let scenario = Scenario::builtin(scenario, machine.topology())?;
        Ok(scenario
            .phases
            .into_iter()
            .next()
            .map_or(Vec::new(), |phase| phase.parties))
    }

    /// A bandwidth test on each tier.
    fn streams(&self, fast: Op, slow: Op) -> Result<Vec<SteeredTenant>, Unanswered> {
        let machine = self.testbed.open(self.seed).map_err(PlantError::from)?;
        let topology = machine.topology();
        let beyond = slow_placement(topology).ok_or(CalibrateError::NoSlowTier)?;
        let threads = THREADS.min(topology.cores.len() / 2);
        let (first, rest) = topology.cores.split_at(threads);
        let stream = |name: &str, op, cores: &[u32], placement| Tenant {
            name: name.into(),
            cores: cores.to_vec(),
            placement,
            ..Tenant::on_first_cores(op, Pattern::Sequential, &TierName::dram(), 1, WORKING_SET)
        };
        let dram = Placement::Bind(TierName::dram());
        Ok(vec![
            SteeredTenant {
                tenant: stream("fast", fast, first, dram),
                role: Role::Protected,
            },
            SteeredTenant {
                tenant: stream("slow", slow, &rest[..threads], beyond),
                role: Role::Restrained,
            },
        ])
    }
}

/// A program of the library in a tenant's place.
fn program(name: &'static str, place: &Tenant) -> Result<Tenant, ScenarioError> {
    let known = Workloads::builtin();
    let work = known.get(name).ok_or(ScenarioError::NoWorkload(name))?;
    let mut work = work.clone();
    work.name = place.name.clone();
    work.threads = place.cores.len() as u32;
    Ok(Tenant::running(
        work,
        place.cores.clone(),
        place.placement.clone(),
    ))
}

/// A knob that is set and left.
struct Fixed(Limit);

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn observe(&mut self, readings: &Readings) -> Decision {
        let held = |role| {
            if role == Role::Restrained {
                self.0
            } else {
                Limit::FREE
            }
        };
        Decision {
            limits: readings.tenants.iter().map(|t| held(t.role)).collect(),
            why: Why::rule("set and left"),
        }
    }
}
