//! What is seen in a window.

use std::sync::Arc;

use weir_model::capability::Unavailable;
use weir_model::counters::CounterSet;
use weir_model::units::{GbPerSec, Nanos};

use super::sensors::busy::Ran;
use super::sensors::residency::Residency;

/// What is seen of a tenant in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantObservation {
    /// Processors that it has when nobody holds it.
    pub cores: u32,
    /// What it ran.
    pub ran: Result<Ran, Unavailable>,
    /// Whether that is anything; a tenant that cannot be seen is taken to be at work.
    pub busy: bool,
    /// Bytes to and from memory, of all tiers.
    pub drew: Result<GbPerSec, Unavailable>,
    /// On which nodes the lines were that samples saw it touch, 64 bytes for each.
    pub touched: Result<Residency, Unavailable>,
    /// Where its pages lie, when they were last looked at.
    pub pages: Result<Arc<Residency>, Unavailable>,
}

/// What is seen in a window.
#[derive(Debug, Clone)]
pub struct HostObservation {
    /// How long it was.
    pub window: Nanos,
    /// What the machine counted.
    pub counters: CounterSet,
    /// How long loads of this program's own from the fast tier took.
    pub probe: Result<Nanos, Unavailable>,
    /// The tenants, in the order in which they were given.
    pub tenants: Vec<TenantObservation>,
}
