//! A controller at the wheel: windows observed, decisions applied, and read back.

use weir_model::machine::Machine;
use weir_model::tenant::Tenant;
use weir_model::units::{GbPerSec, Nanos};

use crate::controller::{Controller, Decision};
use crate::limit::Limit;
use crate::plant::{AppliedLimit, Model, Plant, PlantError, TenantOf};
use crate::readings::{Readings, Role};

/// A tenant and what it is to a controller.
#[derive(Debug, Clone)]
pub struct SteeredTenant {
    /// The load.
    pub tenant: Tenant,
    /// Whether it is protected, or may be held.
    pub role: Role,
}

/// Tenants that run for a while.
#[derive(Debug, Clone)]
pub struct Phase {
    /// For how long.
    pub lasts: Nanos,
    /// Who runs. Who is not named has nothing to run.
    pub parties: Vec<SteeredTenant>,
}

/// What happened in one window. Everything that is by tenant is in the order of [`Plant::tenants`].
#[derive(Debug, Clone)]
pub struct Step {
    /// When the window ended, from the start.
    pub at: Nanos,
    /// What was seen.
    pub readings: Readings,
    /// To what each tenant was held during the window, as read back.
    pub held: Vec<Limit>,
    /// What was decided at its end.
    pub decision: Decision,
    /// What became of it.
    pub applied: Vec<AppliedLimit>,
}

impl Step {
    /// Bandwidth that a tenant drew; zero where it ran nothing, or where that cannot be told.
    pub fn drew(&self, tenant: usize) -> GbPerSec {
        let drew = (self.readings.tenants.get(tenant)).and_then(|t| t.drew.clone().ok());
        drew.unwrap_or(GbPerSec(0.0))
    }
}

/// A controller at the wheel of a plant.
pub struct ControlLoop<'a> {
    plant: &'a mut dyn Plant,
    controller: &'a mut dyn Controller,
    window: Nanos,
    at: Nanos,
    held: Vec<Limit>,
}

impl<'a> ControlLoop<'a> {
    /// Takes the wheel; nothing happens yet.
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
    /// The plant could not be observed. Holds stand as they were.
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

    /// So many windows.
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

/// Plays phases on a machine under a controller, from the first to the end of the last.
///
/// # Errors
/// The machine cannot run a phase's tenants, or failed under them.
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
    // A window that ends a rounding error late is none.
    (whole / window.get() - 1e-6).ceil().max(0.0) as usize
}
