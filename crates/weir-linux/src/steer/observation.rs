//! The observation of a window.

use std::sync::Arc;

use weir_model::action::Action;
use weir_model::capability::Unavailable;
use weir_model::counters::CounterSet;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::sensors::busy::Ran;
use super::sensors::residency::Residency;

/// The observation of a tenant in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantObservation {
    /// Processors that it has without a limit.
    pub cores: u32,
    /// What it ran.
    pub ran: Result<Ran, Unavailable>,
    /// Whether it ran at all; a tenant that cannot be observed counts as busy.
    pub busy: bool,
    /// Bytes to and from memory, of all tiers.
    pub drew: Result<GbPerSec, Unavailable>,
    /// Bytes of the last-level cache that its lines filled at the end.
    pub held: Result<Bytes, Unavailable>,
    /// The nodes of the lines that samples saw it access, 64 bytes for each.
    pub touched: Result<Residency, Unavailable>,
    /// The nodes of its pages, when they were last read.
    pub pages: Result<Arc<Residency>, Unavailable>,
    /// Limits that are not as they were last applied or read, as they are now.
    pub limits: Vec<Action>,
}

/// The observation of a window.
#[derive(Debug, Clone)]
pub struct HostObservation {
    /// Its length.
    pub window: Nanos,
    /// The counts of the machine.
    pub counters: CounterSet,
    /// The latency of this program's own loads from the fast tier.
    pub probe: Result<Nanos, Unavailable>,
    /// The tenants, in the order in which they were given.
    pub tenants: Vec<TenantObservation>,
}
