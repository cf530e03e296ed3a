//! The loop of a daemon: windows until a stop is requested; everything is restored, however the loop ends.

use weir_model::machine::MachineError;
use weir_model::units::Nanos;

use crate::control_loop::ControlLoop;
use crate::controller::{Controller, Decision, Why};
use crate::readings::Readings;
use crate::record::{TierNames, WindowRecord};
use crate::steered::{Released, Steered, TenantOf};

/// A window that took this multiple of its length: the process was asleep, or the system was suspended, which the clock of
/// windows counts.
const SLEPT: f64 = 3.0;

/// An observer of each window.
pub trait Witness {
    /// A window has passed.
    fn saw(&mut self, window: WindowRecord, tenants: &[TenantOf]);

    /// The machine found a tenant, or lost one.
    fn found(&mut self, change: &str) {
        let _ = change;
    }

    /// The loop has ended, and everything is restored next.
    fn ends(&mut self) {}

    /// Whether another window should run.
    fn go_on(&mut self) -> bool;
}

/// How the loop ended.
#[derive(Debug)]
pub struct Ended {
    /// Windows that passed.
    pub windows: u64,
    /// Why it ended, unless a stop was requested.
    pub failure: Option<MachineError>,
    /// How limits were removed.
    pub released: Released,
}

/// Steers tenants until the witness stops it or the machine fails, and releases them; a panic releases them too.
pub fn steer(
    steered: &mut Steered<'_>,
    controller: Box<dyn Controller>,
    window: Nanos,
    tiers: &TierNames,
    witness: &mut dyn Witness,
) -> Ended {
    let held = ReleasedOnDrop(steered);
    let mut controller = Awake { controller, window };
    let mut windows = 0;
    let mut failure = None;
    let mut control_loop = ControlLoop::new(held.0, &mut controller, window);
    while witness.go_on() {
        match control_loop.step() {
            Ok(step) => {
                windows += 1;
                for change in &step.changes {
                    witness.found(change);
                }
                let record = WindowRecord::of(&step, control_loop.tenants(), tiers);
                witness.saw(record, control_loop.tenants());
            }
            Err(MachineError::Interrupted) => break,
            Err(why) => {
                failure = Some(why);
                break;
            }
        }
    }
    witness.ends();
    Ended {
        windows,
        failure,
        released: held.0.release(),
    }
}

/// Tenants that are released on drop, also after a panic.
struct ReleasedOnDrop<'a, 'm>(&'a mut Steered<'m>);

impl Drop for ReleasedOnDrop<'_, '_> {
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
    fn observe(&mut self, readings: &Readings) -> Decision {
        if readings.length > self.window * SLEPT {
            return Decision::free(
                readings.tenants.len(),
                Why::rule("the loop was stopped: no limits"),
            );
        }
        self.controller.observe(readings)
    }
}

#[cfg(test)]
mod tests {
    use weir_model::capability::Unavailable;
    use weir_model::counters::CounterSet;
    use weir_model::machine::Observation;

    use super::*;
    use crate::limit::{Limit, Share};
    use crate::readings::{Role, TenantReadings};

    /// Limits every tenant, whatever the readings.
    struct Half;

    impl Controller for Half {
        fn observe(&mut self, readings: &Readings) -> Decision {
            let limit = Limit {
                time: Share::of(0.5),
                ..Limit::FREE
            };
            Decision {
                limits: vec![limit; readings.tenants.len()],
                why: Why::rule("half"),
            }
        }
    }

    #[test]
    fn after_a_far_too_long_window_no_tenant_is_limited() {
        let window = Nanos(250e6);
        let mut awake = Awake {
            controller: Box::new(Half),
            window,
        };
        let mut limits = |length| {
            let seen = Observation::of(length, Vec::new(), CounterSet::default());
            let tenant = TenantReadings {
                role: Role::Restrained,
                cores: 4,
                busy: true,
                drew: Err(Unavailable::because("suspended")),
            };
            awake.observe(&Readings::of(&seen, vec![tenant])).limits
        };
        assert_eq!(limits(window)[0].time, Share::of(0.5));
        assert_eq!(limits(Nanos(600e9)), [Limit::FREE]);
        assert_eq!(limits(window)[0].time, Share::of(0.5));
    }
}
