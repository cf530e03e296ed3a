//! The control loop: windows are observed, decisions are applied and read back.

use weir_model::machine::Machine;
use weir_model::tenant::Tenant;
use weir_model::units::{GbPerSec, Nanos};

use crate::controller::{Controller, Decision};
use crate::limit::Limit;
use crate::plant::{AppliedLimit, Model, Plant, PlantError, TenantOf};
use crate::readings::{Readings, Role};

/// A tenant and its role.
#[derive(Debug, Clone)]
pub struct SteeredTenant {
    /// The load.
    pub tenant: Tenant,
    /// Whether it is protected, or may be limited.
    pub role: Role,
}

/// Tenants that run for a while.
#[derive(Debug, Clone)]
pub struct Phase {
    /// Its duration.
    pub lasts: Nanos,
    /// The tenants that run. Tenants that are not named have nothing to run.
    pub parties: Vec<SteeredTenant>,
}

/// The events of one window. Values per tenant are in the order of [`Plant::tenants`].
#[derive(Debug, Clone)]
pub struct Step {
    /// When the window ended, from the start.
    pub at: Nanos,
    /// The readings of the window.
    pub readings: Readings,
    /// The limit of each tenant during the window, as read back.
    pub held: Vec<Limit>,
    /// The decision at its end.
    pub decision: Decision,
    /// The limits that were applied.
    pub applied: Vec<AppliedLimit>,
}

impl Step {
    /// Bandwidth of a tenant; zero if it ran nothing, or if its bandwidth is not known.
    pub fn drew(&self, tenant: usize) -> GbPerSec {
        let drew = (self.readings.tenants.get(tenant)).and_then(|t| t.drew.clone().ok());
        drew.unwrap_or(GbPerSec(0.0))
    }
}

/// A controller that regulates a plant.
pub struct ControlLoop<'a> {
    plant: &'a mut dyn Plant,
    controller: &'a mut dyn Controller,
    window: Nanos,
    at: Nanos,
    held: Vec<Limit>,
}

impl<'a> ControlLoop<'a> {
    /// A loop that has not begun yet.
    pub fn new(
        plant: &'a mut dyn Plant,
        controller: &'a mut dyn Controller,
        window: Nanos,
    ) -> Self {
        Self {
            held: vec![Limit::FREE; plant.tenants().len()],
            plant,
            controller,
            window,
            at: Nanos(0.0),
        }
    }

    /// The plant's tenants.
    pub fn tenants(&self) -> &[TenantOf] {
        self.plant.tenants()
    }

    /// One window: observes it, decides, applies.
    ///
    /// # Errors
    /// The plant could not be observed. The limits stay as they were.
    pub fn step(&mut self) -> Result<Step, PlantError> {
        let readings = self.plant.observe(self.window)?;
        self.at = self.at + readings.length;
        self.held.resize(readings.tenants.len(), Limit::FREE);
        for (held, tenant) in self.held.iter_mut().zip(&readings.tenants) {
            if tenant.role == Role::Protected {
                *held = Limit::FREE;
            }
        }
        let decision = self.controller.observe(&readings);
        let applied = self.plant.apply(&decision.limits);
        let next = applied.iter().map(|a| a.applied).collect();
        Ok(Step {
            at: self.at,
            readings,
            held: std::mem::replace(&mut self.held, next),
            decision,
            applied,
        })
    }

    /// Runs this many windows.
    ///
    /// # Errors
    /// As [`ControlLoop::step`]; the plant is released then.
    pub fn steps(&mut self, windows: usize) -> Result<Vec<Step>, PlantError> {
        let steps: Result<_, _> = (0..windows).map(|_| self.step()).collect();
        if steps.is_err() {
            self.plant.release();
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
) -> Result<Vec<Step>, PlantError> {
    let windows = windows(phases, window);
    let mut plant = Model::new(machine, phases.to_vec(), quota_period);
    let steps = ControlLoop::new(&mut plant, controller, window).steps(windows)?;
    plant.release();
    Ok(steps)
}

/// Windows from the first phase to the end of the last.
pub fn windows(phases: &[Phase], window: Nanos) -> usize {
    let whole: f64 = phases.iter().map(|phase| phase.lasts.get()).sum();
    // A rounding error does not add a window.
    (whole / window.get() - 1e-6).ceil().max(0.0) as usize
}
