//! What is regulated: a model, or this host.
//!
//! A plant is a machine seen from a controller: windows come out, holds go in. How a hold becomes a cgroup's
//! quota or a simulated core's pause, and how it is undone, is the plant's own affair.

mod change;
mod dry;
mod model;

pub use change::change;
pub use dry::Dry;
pub use model::Model;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::action::Action;
use weir_model::machine::MachineError;
use weir_model::topology::Topology;
use weir_model::units::{Gigahertz, Nanos};

use crate::limit::{Limit, Share};
use crate::readings::{Readings, Role};

/// Something that can be regulated.
pub trait Plant {
    /// The tenants. A tenant keeps its place for as long as the plant lives, gone or not; new ones come
    /// last, and only in [`Plant::observe`].
    fn tenants(&self) -> &[TenantOf];

    /// Waits for a window and says what was seen of it, its tenants in the order of [`Plant::tenants`]. On a
    /// model, time passes here.
    ///
    /// # Errors
    /// The machine failed, or the wait was broken off. What could merely not be counted is
    /// unavailable in the sight, and no error.
    fn observe(&mut self, window: Nanos) -> Result<Readings, PlantError>;

    /// Holds each tenant to this, in the order of [`Plant::tenants`]; whoever has no hold in `limits` is let
    /// go. Says for each tenant what is in force now, read back.
    fn apply(&mut self, limits: &[Limit]) -> Vec<AppliedLimit>;

    /// Lets everybody go and puts everything back as it was found. Returns what could not be put back;
    /// releasing twice is no error.
    fn release(&mut self) -> Vec<NotPutBack>;
}

/// A tenant of a plant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantOf {
    /// Its name, unique in the plant: a scope on a host, a load's name on a model.
    pub name: String,
    /// What it is to a controller.
    pub role: Role,
    /// Cores that it has when nobody holds it.
    pub cores: u32,
    /// By what it can be held.
    #[serde(rename = "means")]
    pub actuators: Actuators,
}

/// By what a tenant can be held.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Actuators {
    /// By the number of its cores (cpuset).
    pub cores: bool,
    /// By processor time (CPU quota).
    pub time: bool,
    /// By allocating bandwidth, in steps of this share of the hardware's scale (MBA, SMBA).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Share>,
    /// By the clock of its cores: what they can take, highest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<Gigahertz>,
}

impl Actuators {
    /// What tenants of a model can be held by: everything, bandwidth in the steps that its processor has, and the
    /// clock in tenths down to four of them.
    pub fn of_model(topology: &Topology) -> Self {
        let tenths = |clock: Gigahertz| (4..=10).rev().map(move |n| clock * (f64::from(n) / 10.0));
        Self {
            cores: true,
            time: true,
            allocation: topology.allocation.map(Share::of),
            clocks: topology
                .clock
                .map_or_else(Vec::new, |clock| tenths(clock).collect()),
        }
    }

    /// Whether a tenant can be held by this.
    pub fn can(&self, action: &Action) -> bool {
        match action {
            Action::Cores { .. } => self.cores,
            Action::ProcessorTime { .. } => self.time,
            Action::Bandwidth { .. } => self.allocation.is_some(),
            Action::Clock { .. } => !self.clocks.is_empty(),
            _ => false,
        }
    }
}

/// What became of a hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedLimit {
    /// What was asked for.
    pub requested: Limit,
    /// What is in force, read back.
    pub applied: Limit,
    /// What was refused, each with its reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// Something that is not as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotPutBack {
    /// Whose it is.
    pub tenant: String,
    /// What: a file or a setting.
    pub what: String,
    /// Why it could not be put back.
    pub reason: String,
}

/// Why a plant could not be observed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlantError {
    /// The machine failed.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// Somebody asked to end while a window was waited for.
    #[error("asked to end")]
    Interrupted,
}
