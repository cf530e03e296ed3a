//! The control loop: windows are observed, decisions are applied and read back.

use weir_model::machine::{Machine, MachineError, Observation};
use weir_model::metric::OwnMetric;
use weir_model::units::{GbPerSec, Nanos};

use crate::controller::{Controller, Decision};
use crate::limit::{AppliedLimit, Limit};
use crate::own::Done;
use crate::readings::Readings;
use crate::steered::{Phase, Steered, TenantOf};

/// The events of one window. Values per tenant are in the order of [`Steered::tenants`].
#[derive(Debug, Clone)]
pub struct Step {
    /// When the window ended, from the start.
    pub at: Nanos,
    /// The readings of the window.
    pub readings: Readings,
    /// The limit of each tenant at the end of the window, as read back.
    pub held: Vec<Limit>,
    /// The decision at its end.
    pub decision: Decision,
    /// The limits that were applied.
    pub applied: Vec<AppliedLimit>,
    /// Changes of the tenants that the machine found, in words.
    pub changes: Vec<String>,
}

impl Step {
    /// Bandwidth of a tenant; zero if it ran nothing, or if its bandwidth is not known.
    pub fn drew(&self, tenant: usize) -> GbPerSec {
        let drew = (self.readings.tenants.get(tenant)).and_then(|t| t.drew.clone().ok());
        drew.unwrap_or(GbPerSec(0.0))
    }
}

/// A tenant's work in these steps together.
pub fn metric(steps: &[Step], tenant: usize) -> Option<OwnMetric> {
    Done::together(
        steps
            .iter()
            .filter_map(|step| step.readings.done.get(tenant)?.as_ref()),
    )
}

/// A controller that regulates tenants.
pub struct ControlLoop<'a, 'm> {
    steered: &'a mut Steered<'m>,
    controller: &'a mut dyn Controller,
    window: Nanos,
    at: Nanos,
}

impl<'a, 'm> ControlLoop<'a, 'm> {
    /// A loop that has not begun yet.
    pub fn new(
        steered: &'a mut Steered<'m>,
        controller: &'a mut dyn Controller,
        window: Nanos,
    ) -> Self {
        Self {
            steered,
            controller,
            window,
            at: Nanos(0.0),
        }
    }

    /// The tenants.
    pub fn tenants(&self) -> &[TenantOf] {
        self.steered.tenants()
    }

    /// The last window as the machine saw it, its tenants in the order of their phase.
    pub fn seen(&self) -> &Observation {
        self.steered.seen()
    }

    /// One window: observes it, decides, applies.
    ///
    /// # Errors
    /// The machine could not be observed. The limits stay as they were.
    pub fn step(&mut self) -> Result<Step, MachineError> {
        let (readings, changes) = self.steered.observe(self.window)?;
        self.at = self.at + readings.length;
        let held = self.steered.held().to_vec();
        let decision = self.controller.observe(&readings);
        let applied = self.steered.apply(&decision.limits);
        Ok(Step {
            at: self.at,
            readings,
            held,
            decision,
            applied,
            changes,
        })
    }

    /// Runs this many windows.
    ///
    /// # Errors
    /// As [`ControlLoop::step`]; all limits are removed then.
    pub fn steps(&mut self, windows: usize) -> Result<Vec<Step>, MachineError> {
        let steps: Result<_, _> = (0..windows).map(|_| self.step()).collect();
        if steps.is_err() {
            self.steered.release();
        }
        steps
    }
}

/// Runs phases on a machine under a controller, from the first to the end of the last.
///
/// # Errors
/// The machine cannot run a phase's tenants, or failed while they ran.
pub fn run_phases(
    machine: &mut dyn Machine,
    controller: &mut dyn Controller,
    phases: &[Phase],
    window: Nanos,
    quota_period: Nanos,
) -> Result<Vec<Step>, MachineError> {
    let windows = windows(phases, window);
    let mut steered = Steered::new(machine, phases.to_vec(), quota_period);
    let steps = ControlLoop::new(&mut steered, controller, window).steps(windows)?;
    steered.release();
    Ok(steps)
}

/// Windows from the first phase to the end of the last.
pub fn windows(phases: &[Phase], window: Nanos) -> usize {
    let whole: f64 = phases.iter().map(|phase| phase.lasts.get()).sum();
    // A rounding error does not add a window.
    (whole / window.get() - 1e-6).ceil().max(0.0) as usize
}
