//! What may be changed on a machine while tenants run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
}

/// What became of an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// What was asked for.
    pub requested: Action,
    /// What is in force now, read back from the machine.
    pub applied: Action,
}
