//! The loop that one leaves running: windows until somebody asks to end, and everything put back whatever
//! ends it.

use weir_model::units::Nanos;

use crate::control_loop::ControlLoop;
use crate::controller::{Controller, Decision, Why};
use crate::plant::{NotPutBack, Plant, PlantError, TenantOf};
use crate::readings::Readings;
use crate::record::{TierNames, WindowRecord};

/// A window that took so many times its length was slept through.
const SLEPT: f64 = 3.0;

/// Whoever is told of each window.
pub trait Witness {
    /// A window has passed. `tenants` are the plant's.
    fn saw(&mut self, window: WindowRecord, tenants: &[TenantOf]);

    /// Whether another window is wanted.
    fn go_on(&mut self) -> bool;
}

/// How the loop ended.
#[derive(Debug)]
pub struct Ended {
    /// Windows that passed.
    pub windows: u64,
    /// Why it ended, unless it was asked to.
    pub failure: Option<PlantError>,
    /// What could not be put back.
    pub not_put_back: Vec<NotPutBack>,
}

/// Steers a plant until the witness has seen enough or the plant fails, and releases it; a panic releases
/// it as well.
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

/// A plant that is released when this goes, in a panic too.
struct Released<'a>(&'a mut dyn Plant);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        // Releasing twice is no error, and nobody is left to tell.
        self.0.release();
    }
}

/// A controller that lets go after a window that was slept through: what it saw is an average over things
/// that it could not have answered.
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
                Why::rule("the loop stood still: let go"),
            );
        }
        self.controller.observe(readings)
    }
}
