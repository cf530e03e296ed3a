//! The loop of a daemon: windows until a stop is requested; everything is restored, however the loop ends.

use weir_model::units::Nanos;

use crate::control_loop::ControlLoop;
use crate::controller::{Controller, Decision, Why};
use crate::plant::{NotPutBack, Plant, PlantError, TenantOf};
use crate::readings::Readings;
use crate::record::{TierNames, WindowRecord};

/// A window that took this multiple of its length: the process was asleep.
const SLEPT: f64 = 3.0;

/// An observer of each window.
pub trait Witness {
    /// A window has passed. `tenants` are the plant's.
    fn saw(&mut self, window: WindowRecord, tenants: &[TenantOf]);

    /// Whether another window should run.
    fn go_on(&mut self) -> bool;
}

/// How the loop ended.
#[derive(Debug)]
pub struct Ended {
    /// Windows that passed.
    pub windows: u64,
    /// Why it ended, unless a stop was requested.
    pub failure: Option<PlantError>,
    /// What could not be restored.
    pub not_put_back: Vec<NotPutBack>,
}

/// Steers a plant until the witness stops it or the plant fails, and releases the plant; a panic releases it
/// too.
pub fn steer(
    plant: &mut dyn Plant,
    controller: Box<dyn Controller>,
    window: Nanos,
    tiers: &TierNames,
    witness: &mut dyn Witness,
) -> Ended {
    let held = Released(plant);
    let mut controller = Awake { controller, window };
    let mut windows = 0;
    let mut failure = None;
    let mut control_loop = ControlLoop::new(held.0, &mut controller, window);
    while witness.go_on() {
        match control_loop.step() {
            Ok(step) => {
                windows += 1;
                let record = WindowRecord::of(&step, control_loop.tenants(), tiers);
                witness.saw(record, control_loop.tenants());
            }
            Err(PlantError::Interrupted) => break,
            Err(why) => {
                failure = Some(why);
                break;
            }
        }
    }
    Ended {
        windows,
        failure,
        not_put_back: held.0.release(),
    }
}

/// A plant that is released on drop, also after a panic.
struct Released<'a>(&'a mut dyn Plant);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        // A second release is no error, and there is no caller left to inform.
        self.0.release();
    }
}

/// A controller that removes all limits after a window in which the process slept: that window is an average
/// over events to which the controller could not respond.
struct Awake {
    controller: Box<dyn Controller>,
    window: Nanos,
}

impl Controller for Awake {
    fn name(&self) -> &'static str {
        self.controller.name()
    }

    fn observe(&mut self, readings: &Readings) -> Decision {
        if readings.length > self.window * SLEPT {
            return Decision::free(
                readings.tenants.len(),
                Why::rule("the loop was stopped: limits removed"),
            );
        }
        self.controller.observe(readings)
    }
}
