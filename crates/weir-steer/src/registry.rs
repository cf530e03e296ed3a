//! Controllers by name, made from the known values of a machine.

use crate::calibrate::{Calibration, Value};
use crate::controller::{Controller, Decision, Needs, Why};
use crate::controllers::{
    Allocation, AllocationConfig, Frequency, FrequencyConfig, Isolation, Latency, LatencyConfig,
    Miku, MikuConfig, Quota, QuotaConfig, Weir, WeirConfig,
};
use crate::guard::{Bounds, Guarded};
use crate::limit::Share;
use crate::readings::Readings;
use crate::steered::Actuators;

weir_model::named! {
    /// The name of a controller.
    #[derive(serde::Serialize)]
    pub enum Policy {
        /// Weir's own.
        Weir = "weir",
        /// As published.
        Miku = "miku",
        /// The loop of CXL-Interplay.
        Quota = "quota",
        /// A lower clock.
        Frequency = "frequency",
        /// Memory bandwidth allocation.
        Allocation = "allocation",
        /// A fixed number of cores.
        Isolation = "isolation",
        /// No tenant is limited.
        None = "none",
    }
}

/// Cores' worth of running that static isolation leaves: the first choice of an operator.
pub const ISOLATED: f64 = 2.0;
/// Steps of bandwidth allocation if a machine does not state them (Intel MBA).
const ALLOCATION_STEP: f64 = 0.1;
/// Windows before a setting of bandwidth allocation has an effect.
const ALLOCATION_SETTLING: u32 = 4;

impl Policy {
    /// The controller, within bounds, for a machine whose tenants have these actuators.
    pub fn controller(
        self,
        known: &Calibration,
        actuators: &Actuators,
        bounds: Bounds,
    ) -> Box<dyn Controller> {
        match self {
            Policy::Weir => {
                let mut config = WeirConfig::new(known.fast, known.slow);
                config.keep = bounds.keep;
                config.step = actuators.allocation;
                config.knees = known.knees.clone();
                guarded(or_probed(Weir::new(config), actuators), bounds)
            }
            Policy::Miku => {
                let miku = Miku::new(MikuConfig {
                    // One core's posted stores may already fill the device's queue; then their residency is
                    // that of a queue. The paper finds twice the residency of a load.
                    slow_write: known.slow_write.min(known.slow_read * 2.0),
                    ..MikuConfig::with_residencies(known.fast, known.slow_read)
                });
                guarded(or_probed(miku, actuators), bounds)
            }
            Policy::Quota => {
                let quota = Quota::new(QuotaConfig::undisturbed(known.fast_loaded));
                guarded(or_probed(quota, actuators), bounds)
            }
            Policy::Frequency => {
                let config = FrequencyConfig {
                    undisturbed: known.fast_loaded,
                    severe: 2.0,
                    clocks: actuators.clocks.clone(),
                };
                guarded(Frequency::new(config), bounds)
            }
            Policy::Allocation => {
                let step = actuators.allocation.map_or(ALLOCATION_STEP, Share::get);
                let config = AllocationConfig {
                    fast: known.fast,
                    target: known.slow_read,
                    step,
                    least: step,
                    settling: ALLOCATION_SETTLING,
                };
                guarded(Allocation::new(config), bounds)
            }
            Policy::Isolation => Self::isolation(ISOLATED, bounds),
            Policy::None => Self::free(),
        }
    }

    /// Static isolation to this many cores' worth of running, within bounds.
    pub fn isolation(units: f64, bounds: Bounds) -> Box<dyn Controller> {
        guarded(Isolation { units }, bounds)
    }

    /// The values of a machine that [`Policy::controller`] reads.
    pub fn values(self) -> &'static [Value] {
        match self {
            Policy::Weir => &[Value::Fast, Value::Slow, Value::Knees],
            Policy::Miku | Policy::Allocation => &[Value::Fast, Value::SlowRead],
            Policy::Quota | Policy::Frequency => &[Value::FastLoaded],
            Policy::Isolation | Policy::None => &[],
        }
    }

    /// The readings that it needs.
    pub fn needs(self) -> Needs {
        match self {
            Policy::Weir | Policy::Miku | Policy::Quota => Needs::TableOrProbe,
            Policy::Frequency | Policy::Allocation => Needs::Table,
            Policy::Isolation | Policy::None => Needs::Nothing,
        }
    }

    /// No control.
    pub fn free() -> Box<dyn Controller> {
        Box::new(Free)
    }
}

fn guarded<C: Controller + 'static>(controller: C, bounds: Bounds) -> Box<dyn Controller> {
    Box::new(Guarded::new(controller, bounds))
}

/// A controller, and the one that replaces it if no table is counted and the fast tier's latency is probed.
fn or_probed<C: Controller>(counted: C, actuators: &Actuators) -> OrProbed<C> {
    let config = LatencyConfig {
        rest: None,
        step: actuators.allocation,
    };
    OrProbed {
        counted,
        probed: Latency::new(config),
    }
}

struct OrProbed<C> {
    counted: C,
    probed: Latency,
}

impl<C: Controller> Controller for OrProbed<C> {
    fn needs(&self) -> Needs {
        Needs::TableOrProbe
    }

    fn observe(&mut self, readings: &Readings) -> Decision {
        match readings.table.is_err() && readings.probe.is_ok() {
            true => self.probed.observe(readings),
            false => self.counted.observe(readings),
        }
    }
}

/// No control.
struct Free;

impl Controller for Free {
    fn needs(&self) -> Needs {
        Needs::Nothing
    }

    fn observe(&mut self, readings: &Readings) -> Decision {
        Decision::free(
            readings.tenants.len(),
            Why::rule("no tenant is ever limited"),
        )
    }
}
