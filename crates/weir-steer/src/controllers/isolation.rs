//! A fixed number of cores for tenants on the slow tier: what an operator sets by hand, for comparison. It is
//! not work-conserving.

use super::division::{Division, SMALL};
use crate::controller::{Controller, Decision, Needs, Why};
use crate::limit::Grain;
use crate::readings::Readings;

/// The controller, with the cores' worth of running that all limited tenants share.
#[derive(Debug, Clone)]
pub struct Isolation {
    /// Cores' worth of running.
    pub units: f64,
}

impl Controller for Isolation {
    fn needs(&self) -> Needs {
        Needs::Nothing
    }

    fn observe(&mut self, readings: &Readings) -> Decision {
        let why = Why::rule("always");
        Division::default().share(readings, self.units, Grain::Time, SMALL, why)
    }
}
