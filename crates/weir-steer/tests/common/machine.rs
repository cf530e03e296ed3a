//! A machine whose windows a test makes, and which records the limit in force.

use weir_model::action::{Action, Applied};
use weir_model::capability::Capability;
use weir_model::machine::{Goal, Identity, Machine, MachineError, Observation, Pacing, RunNotes};
use weir_model::tenant::Tenant;
use weir_model::topology::Topology;
use weir_model::units::Nanos;

/// The machine; its tenants run already.
pub struct MadeUp<F> {
    topology: Topology,
    window: F,
    /// The limit of the last tenant that was limited by cores.
    pub cores: Option<u32>,
    /// How often all limits were removed.
    pub released: u32,
}

impl<F: FnMut(Nanos) -> Result<Observation, MachineError>> MadeUp<F> {
    pub fn new(window: F) -> Self {
        Self {
            topology: Topology::default(),
            window,
            cores: None,
            released: 0,
        }
    }
}

impl<F: FnMut(Nanos) -> Result<Observation, MachineError> + Send> Machine for MadeUp<F> {
    fn identity(&self) -> Identity {
        Identity::default()
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn capabilities(&self) -> &[Capability] {
        &[]
    }

    fn pacing(&self, _: Goal) -> Pacing {
        unreachable!("the loop has windows of its own")
    }

    fn start(&mut self, _: &[Tenant]) -> Result<(), MachineError> {
        unreachable!("the tenants run already")
    }

    fn observe(&mut self, window: Nanos) -> Result<Observation, MachineError> {
        (self.window)(window)
    }

    fn act(&mut self, action: &Action) -> Result<Applied, MachineError> {
        if let Action::Cores { cores, .. } = action {
            self.cores = *cores;
        }
        Ok(Applied {
            requested: action.clone(),
            applied: action.clone(),
        })
    }

    fn stop(&mut self) -> Result<RunNotes, MachineError> {
        self.cores = None;
        self.released += 1;
        Ok(RunNotes::default())
    }
}
