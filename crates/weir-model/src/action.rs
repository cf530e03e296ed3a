//! What may be changed on a machine while tenants run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::region::Pages;
use crate::tenant::Placement;
use crate::topology::{TierName, Topology};
use crate::units::{GbPerSec, Gigahertz, Nanos};

/// A part of a whole, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Share(f64);

impl Share {
    /// All of it.
    pub const ALL: Share = Share(1.0);
    /// Nothing of it.
    pub const NONE: Share = Share(0.0);

    /// This part of the whole. A value outside 0 to 1 becomes the nearer end. A value that is not a number
    /// becomes the whole, since a limit that could not be computed must not slow a tenant.
    pub fn of(part: f64) -> Self {
        if part.is_nan() {
            return Self::ALL;
        }
        Self(part.clamp(0.0, 1.0))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// The actuators by which a tenant can be limited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Actuators {
    /// The number of its cores (cpuset).
    pub cores: bool,
    /// Processor time (CPU quota).
    pub time: bool,
    /// Bandwidth allocation, in steps of this share of the hardware's scale (MBA, SMBA).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Share>,
    /// The clock of its cores: the values that they can have, the highest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<Gigahertz>,
}

impl Actuators {
    /// All that a model has: bandwidth in the steps of its processor, and the clock in tenths down to four tenths.
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

    /// Whether a tenant can be limited by this.
    pub fn can(&self, action: &Action) -> bool {
        match action {
            Action::Cores { .. } => self.cores,
            Action::ProcessorTime { .. } => self.time,
            Action::Bandwidth { .. } => self.allocation.is_some(),
            Action::Clock { .. } => !self.clocks.is_empty(),
            _ => false,
        }
    }

    /// The actuators that two tenants have in common.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self {
            cores: self.cores && other.cores,
            time: self.time && other.time,
            allocation: self.allocation.filter(|_| other.allocation.is_some()),
            clocks: match self.clocks == other.clocks {
                true => self.clocks,
                false => Vec::new(),
            },
        }
    }
}

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
    /// Let a tenant run on this many of its cores at once (cpuset).
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
        /// At most this many bytes a second; `None` for as fast as the machine copies.
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
        /// At most this many bytes a second; `None` for as fast as the machine copies.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_of_two_lacks_they_do_not_have_in_common() {
        let all = Actuators {
            cores: true,
            time: true,
            allocation: Some(Share::of(0.1)),
            clocks: vec![Gigahertz(2.0), Gigahertz(1.0)],
        };
        assert_eq!(all.clone().common(all.clone()), all);
        let none = Actuators::default();
        assert_eq!(all.clone().common(none.clone()), none);
        assert_eq!(none.clone().common(all), none);
    }
}
