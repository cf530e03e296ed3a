//! What may be changed on a machine while tenants run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::region::Pages;
use crate::tenant::Placement;
use crate::topology::TierName;
use crate::units::{GbPerSec, Gigahertz, Nanos};

/// A change to the machine. Every machine says what it applied, which may differ from what was
/// asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Action {
    /// Switch the hardware prefetchers of every core.
    Prefetchers {
        /// The L1 prefetchers (next line, stride).
        l1: bool,
        /// The L2 prefetchers (streamer, adjacent line).
        l2: bool,
    },
    /// Restrict where a tenant's lines are allocated in the last-level cache (CAT).
    CacheWays {
        /// The tenant's name.
        tenant: String,
        /// One bit for each way it may fill.
        mask: u32,
    },
    /// Let a tenant run on so many of its cores at once (cpuset).
    Cores {
        /// The tenant's name.
        tenant: String,
        /// How many, the first of its own; `None` for all.
        cores: Option<u32>,
    },
    /// Let a tenant run for a part of each period (CPU quota).
    ProcessorTime {
        /// The tenant's name.
        tenant: String,
        /// The part, above 0, to 1, of what the cores that it may use have.
        share: f64,
        /// After how long its time is given anew.
        period: Nanos,
    },
    /// Set the clock of the cores that a tenant runs on.
    Clock {
        /// The tenant's name.
        tenant: String,
        /// The clock; `None` for what it was.
        clock: Option<Gigahertz>,
    },
    /// Allocate a tenant's cores a part of the bandwidth between core and mesh (MBA).
    Bandwidth {
        /// The tenant's name.
        tenant: String,
        /// Percent of the hardware's scale, 100 for all.
        percent: u32,
    },
    /// Move those pages of a tenant which are on one tier to another, in the windows that follow.
    MovePages {
        /// The tenant's name.
        tenant: String,
        /// Which of its pages.
        pages: Pages,
        /// The tier from which.
        from: TierName,
        /// The tier to which.
        to: TierName,
        /// At most so many bytes a second; `None` for as fast as the machine copies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<GbPerSec>,
    },
    /// Place pages of a tenant as if it started now: those that are elsewhere move, in the windows that
    /// follow, and those that it touches later go there too.
    Place {
        /// The tenant's name.
        tenant: String,
        /// Which of its pages.
        pages: Pages,
        /// Where to.
        placement: Placement,
        /// At most so many bytes a second; `None` for as fast as the machine copies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<GbPerSec>,
    },
    /// Set the weights by which the system interleaves pages that are touched later.
    InterleaveWeights {
        /// The weight of each tier, from 1 to 255. Others keep theirs.
        weights: Vec<(TierName, u32)>,
    },
}

impl Action {
    /// The tenant that it is about, if it is about one.
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Action::Prefetchers { .. } | Action::InterleaveWeights { .. } => None,
            Action::CacheWays { tenant, .. }
            | Action::Cores { tenant, .. }
            | Action::ProcessorTime { tenant, .. }
            | Action::Clock { tenant, .. }
            | Action::Bandwidth { tenant, .. }
            | Action::MovePages { tenant, .. }
            | Action::Place { tenant, .. } => Some(tenant),
        }
    }
}

/// What became of an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// What was asked for.
    pub requested: Action,
    /// What is in force now, read back from the machine.
    pub applied: Action,
}
