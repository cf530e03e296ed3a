//! Tenants under a controller once it has settled: what studies ask that compare machines, and not windows.

use serde::{Deserialize, Serialize};
use weir_lab::{Ask, Lab, LabError};
use weir_model::counters::CounterSet;
use weir_model::latency::LatencyHistogram;
use weir_model::machine::Observation;
use weir_model::tenant::Tenant;
use weir_model::units::{Bytes, Nanos};

use crate::calibrate::{Calibration, calibrate};
use crate::control_loop::ControlLoop;
use crate::guard::Bounds;
use crate::limit::Limit;
use crate::readings::Role;
use crate::registry::Policy;
use crate::steered::{Actuators, Phase, Steered, SteeredTenant};

/// The window of the controller, and the period of processor time quotas: those of `weir steer run` on a model.
const WINDOW: Nanos = Nanos(250e6);
const PERIOD: Nanos = Nanos(100e6);
/// Windows until the first decision counts.
const FIRST: usize = 1;
/// A controller that changed no limit in this many windows has settled.
const SAME: usize = 6;
/// Windows after which it counts as settled in any case: some always try the next limit.
const MOST: usize = 32;
/// Windows that are counted then.
const COUNTED: usize = 4;
/// Windows that are counted at most, for loads that are timed.
const MOST_COUNTED: usize = 100;

/// Tenants under a controller, on a model whose long windows are sampled. The loads of the last one are timed.
#[derive(Debug, Clone, Serialize)]
pub struct Settled {
    /// The tenants and their roles.
    pub tenants: Vec<(Tenant, Role)>,
    /// The controller.
    pub controller: Policy,
    /// Loads of the last tenant that are timed; 0 if its latency is not asked for.
    pub loads: u64,
}

/// What they did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeenSettled {
    /// How long.
    pub time: Nanos,
    /// What the machine counted, of all cores.
    pub counters: CounterSet,
    /// Bytes that each tenant touched, and what its cores counted.
    pub tenants: Vec<(Bytes, CounterSet)>,
    /// Latencies of the last tenant's loads, and how many had each.
    pub latency: Vec<(Nanos, u64)>,
}

/// The values that a controller needs of a machine. Designs on one machine share them.
#[derive(Serialize)]
struct Calibrated {
    controller: Policy,
}

impl Ask for Calibrated {
    type Got = Calibration;
    const KIND: &'static str = "values for a controller";

    fn ask(&self, lab: &Lab<'_>) -> Result<Calibration, LabError> {
        let step = Actuators::of_model(lab.topology()).allocation;
        let values = self.controller.values();
        Ok(calibrate(lab.testbed(), lab.seed(), WINDOW, step, values)?)
    }
}

impl Ask for Settled {
    type Got = SeenSettled;
    const KIND: &'static str = "tenants under a settled controller";

    fn ask(&self, lab: &Lab<'_>) -> Result<SeenSettled, LabError> {
        let actuators = Actuators::of_model(lab.topology());
        let known = match self.controller.values() {
            [] => Calibration::default(),
            _ => lab.answer(&Calibrated {
                controller: self.controller,
            })?,
        };
        let mut controller = (self.controller).controller(&known, &actuators, Bounds::default());
        let participants = self.tenants.iter().cloned();
        let participants = participants.map(|(tenant, role)| SteeredTenant { tenant, role });
        let phase = Phase {
            lasts: Nanos(f64::INFINITY),
            participants: participants.collect(),
        };
        let mut machine = lab.testbed().open(lab.seed())?;
        let steered = Steered::new(machine.as_mut(), vec![phase], PERIOD);
        let mut steered = steered.with_actuators(&actuators);
        let mut control = ControlLoop::new(&mut steered, controller.as_mut(), WINDOW);
        match self.controller {
            Policy::None => drop(control.steps(FIRST)?),
            _ => settle(&mut control)?,
        }
        control.step()?;
        let mut all: Observation = control.seen().clone();
        for counted in 1..MOST_COUNTED {
            if counted >= COUNTED && timed(&all) >= self.loads {
                break;
            }
            control.step()?;
            all.extend(control.seen().clone());
        }
        steered.release();
        Ok(SeenSettled {
            time: all.window,
            latency: latency(&all).map_or_else(Vec::new, LatencyHistogram::buckets),
            tenants: (all.tenants.iter())
                .map(|own| (own.bytes, own.counters.clone()))
                .collect(),
            counters: all.counters,
        })
    }
}

/// Windows until the limits stay as they are.
fn settle(control: &mut ControlLoop<'_, '_>) -> Result<(), LabError> {
    let (mut held, mut same): (Vec<Limit>, usize) = (Vec::new(), 0);
    for _ in 0..MOST {
        let step = control.step()?;
        match step.held == held {
            true => same += 1,
            false => (held, same) = (step.held, 0),
        }
        if same >= SAME {
            break;
        }
    }
    Ok(())
}

fn latency(seen: &Observation) -> Option<&LatencyHistogram> {
    seen.tenants.last()?.latency.as_ref()
}

fn timed(seen: &Observation) -> u64 {
    latency(seen).map_or(0, LatencyHistogram::len)
}
