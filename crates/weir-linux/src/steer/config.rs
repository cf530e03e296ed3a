//! What is steered, and within which bounds.

use weir_model::units::{GbPerSec, Nanos};

use super::actuators::Actuator;
use super::scope::Scope;

/// A tenant as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantScope {
    /// What it is called.
    pub name: String,
    /// Whom it means.
    pub scope: Scope,
    /// Whether it may be held. Nobody else is ever touched.
    pub restrain: bool,
}

/// Whether loads of this program's own from the fast tier are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Probing {
    /// Where the Tables of Requests are not counted.
    Auto,
    /// In any case.
    Always,
    /// Never.
    #[default]
    Never,
}

/// What is steered, and within which bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct HostConfig {
    /// The tenants.
    pub tenants: Vec<TenantScope>,
    /// By what they may be held.
    pub actuators: Vec<Actuator>,
    /// Whether a process that shares its control group with others may be put into one of its own,
    /// below that, for as long as it is steered.
    pub own_groups: bool,
    /// Whether monitoring groups may be made, to count each tenant's bytes.
    pub monitor: bool,
    /// Whether what holds for the whole machine may be changed: the weights of interleaving.
    pub machine_wide: bool,
    /// The part of its processors' time, bandwidth and clock that a tenant keeps, whatever is asked.
    pub floor: f64,
    /// The least time between two changes of one tenant by one means, unless to let go.
    pub dwell: Nanos,
    /// All of the memory bandwidth, where resctrl counts in MB/s.
    pub full: Option<GbPerSec>,
    /// The nodes of the slow tier.
    pub slow_nodes: Vec<u32>,
    /// The node of the fast tier, where the kernel knows nodes.
    pub fast_node: Option<u32>,
    /// Whether loads from it are timed.
    pub probe: Probing,
    /// Whether accesses are sampled with their addresses, where the hardware does that.
    pub sample: bool,
    /// Windows from one look at a tenant's pages to the next, where they stay where they are; 0 for none. Pages
    /// that move are looked at more often.
    pub look_at_pages: u32,
}

impl Default for HostConfig {
    /// Nobody; every means but the clock and the cache; a hundredth is kept; ten changes a second; nothing is
    /// timed.
    fn default() -> Self {
        Self {
            tenants: Vec::new(),
            actuators: vec![
                Actuator::Cores,
                Actuator::ProcessorTime,
                Actuator::Bandwidth,
            ],
            own_groups: false,
            monitor: true,
            machine_wide: false,
            floor: 0.01,
            dwell: Nanos(100e6),
            full: None,
            slow_nodes: Vec::new(),
            fast_node: None,
            probe: Probing::Never,
            sample: false,
            look_at_pages: 8,
        }
    }
}
