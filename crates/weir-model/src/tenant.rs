//! Tenants: who loads the machine, with what, from where, into which tier.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{Op, Pattern};
use crate::topology::TierName;
use crate::units::Bytes;

/// One load on the machine: a number of threads that all do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tenant {
    /// A name that is unique among the tenants of a run.
    pub name: String,
    /// The instruction.
    pub op: Op,
    /// The order of lines.
    pub pattern: Pattern,
    /// The cores to use, one thread on each; disjoint between tenants.
    pub cores: Vec<u32>,
    /// Where its pages lie.
    pub placement: Placement,
    /// Bytes that one thread touches, private to it.
    pub working_set: Bytes,
    /// Whether the hardware prefetchers run on its cores, where the machine can tell.
    pub prefetch: bool,
}

impl Tenant {
    /// A tenant of `threads` threads on the first cores, bound to one tier, prefetchers on.
    pub fn on_first_cores(
        op: Op,
        pattern: Pattern,
        tier: &TierName,
        threads: u32,
        working_set: Bytes,
    ) -> Self {
        Self {
            name: format!("{op}@{tier}"),
            op,
            pattern,
            cores: (0..threads).collect(),
            placement: Placement::Bind(tier.clone()),
            working_set,
            prefetch: true,
        }
    }
}

/// Where a tenant's pages lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// All on one tier.
    Bind(TierName),
    /// Page by page in proportion to the weights (Linux weighted interleave).
    Interleave(Vec<(TierName, u32)>),
}

impl Placement {
    /// The tiers this touches, in order.
    pub fn tiers(&self) -> impl Iterator<Item = &TierName> {
        let (bind, weights) = match self {
            Placement::Bind(tier) => (Some(tier), [].as_slice()),
            Placement::Interleave(weights) => (None, weights.as_slice()),
        };
        bind.into_iter().chain(weights.iter().map(|(tier, _)| tier))
    }
}
