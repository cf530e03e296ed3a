//! The tenants, and the bounds of steering.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use weir_model::machine::Identity;
use weir_model::topology::Topology;
use weir_model::units::{GbPerSec, Nanos};

use super::actuators::Actuator;
use super::automatic::Rules;
use super::scope::Scope;

/// A requested tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantScope {
    /// Its name.
    pub name: String,
    /// Its processes.
    pub scope: Scope,
    /// Whether it may be limited. No other tenant is ever changed.
    pub restrain: bool,
}

/// Whether this program times loads of its own from the fast tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Probing {
    /// Only if the Tables of Requests are not counted.
    Auto,
    /// Always.
    Always,
    /// Never.
    #[default]
    Never,
}

/// The tenants, and the bounds of steering.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// The host.
    pub identity: Identity,
    /// Its tiers.
    pub topology: Topology,
    /// The rules by which control groups become tenants without a name.
    pub automatic: Option<Rules>,
    /// Ends the wait for a window.
    pub stop: Arc<AtomicBool>,
    /// The tenants.
    pub tenants: Vec<TenantScope>,
    /// The actuators that may be used.
    pub actuators: Vec<Actuator>,
    /// Whether a process that shares its control group with others may be moved into a group of its own,
    /// below that group, while it is steered.
    pub own_groups: bool,
    /// Whether monitoring groups may be made, to count each tenant's bytes.
    pub monitor: bool,
    /// The part of its processors' time, bandwidth and clock that a tenant always keeps.
    pub floor: f64,
    /// The least time between two changes of one tenant by one actuator, unless a limit is removed.
    pub dwell: Nanos,
    /// The full memory bandwidth, if resctrl counts in MB/s.
    pub full: Option<GbPerSec>,
    /// The nodes of the slow tier.
    pub slow_nodes: Vec<u32>,
    /// The node of the fast tier, if the kernel knows nodes.
    pub fast_node: Option<u32>,
    /// Whether loads from it are timed.
    pub probe: Probing,
    /// Whether accesses are sampled with their addresses, if the hardware supports it.
    pub sample: bool,
    /// Windows from one reading of a tenant's pages to the next, if the pages do not move; 0 for none. Pages
    /// that move are read more often.
    pub look_at_pages: u32,
}

impl Default for HostConfig {
    /// No tenants; every actuator except the clock and the cache; a floor of a hundredth; ten changes a
    /// second; no loads are timed.
    fn default() -> Self {
        Self {
            identity: Identity::default(),
            topology: Topology::default(),
            automatic: None,
            stop: Arc::default(),
            tenants: Vec::new(),
            actuators: vec![
                Actuator::Cores,
                Actuator::ProcessorTime,
                Actuator::Bandwidth,
            ],
            own_groups: false,
            monitor: true,
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
