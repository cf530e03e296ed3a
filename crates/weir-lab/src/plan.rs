//! What to measure: points as data, each complete in itself.

use std::fmt;

use serde::{Deserialize, Serialize};
use weir_model::access::{Op, Pattern};
use weir_model::document::Experiment;
use weir_model::machine::Goal;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::{Tier, TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES};

use crate::LabError;

/// One figure that is wanted: one tenant, alone on the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointSpec {
    /// The experiment it belongs to.
    pub experiment: Experiment,
    /// Where the pages lie.
    pub tier: TierName,
    /// The instruction.
    pub op: Op,
    /// The order of lines.
    pub pattern: Pattern,
    /// Threads, one on each of the first cores.
    pub threads: u32,
    /// Bytes that one thread touches.
    pub working_set: Bytes,
    /// Whether the hardware prefetchers run.
    pub prefetch: bool,
}

impl PointSpec {
    /// What kind of figure this is: a latency where each access is timed, else a bandwidth.
    pub fn goal(&self) -> Goal {
        if self.pattern.is_timed() {
            Goal::Latency
        } else {
            Goal::Bandwidth
        }
    }

    /// The tenant that makes this point, or `None` if the machine has too few cores.
    pub fn tenant(&self, topology: &Topology) -> Option<Tenant> {
        let cores = topology.cores.get(..self.threads as usize)?;
        Some(Tenant {
            name: format!("{}@{}", self.op, self.tier),
            op: self.op,
            pattern: self.pattern,
            cores: cores.to_vec(),
            placement: Placement::Bind(self.tier.clone()),
            working_set: self.working_set,
            prefetch: self.prefetch,
        })
    }

    /// The seed of this point in a sweep of seed `seed`. It depends on what the point is and on
    /// nothing else, so that a point gives one result alone, in any sweep, and at any place in it.
    pub fn seed(&self, seed: u64) -> u64 {
        // FNV-1a over the point's text, then the finaliser of SplitMix64 to spread every bit. Both
        // are fixed for ever, which the standard library's hasher is not.
        let text = self.to_string();
        let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut z = digest ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Everything that names the point, in words: `latency: ld chase_random on dram, 1 thread x
/// 4 KiB, prefetchers off`.
impl fmt::Display for PointSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            experiment,
            tier,
            op,
            pattern,
            threads,
            working_set,
            prefetch,
        } = self;
        write!(f, "{}: {op} {}", experiment.name(), pattern.name())?;
        if let Pattern::RandomBlock { block } = pattern {
            write!(f, " of {} B", block.get())?;
        }
        let plural = if *threads == 1 { "" } else { "s" };
        let switch = if *prefetch { "on" } else { "off" };
        write!(
            f,
            " on {tier}, {threads} thread{plural} x {} B, prefetchers {switch}",
            working_set.get()
        )
    }
}

/// The tiers that were asked for, or all of them; unknown ones are an error that names the known.
pub(crate) fn choose_tiers<'t>(
    topology: &'t Topology,
    wanted: &[TierName],
) -> Result<Vec<&'t Tier>, LabError> {
    if wanted.is_empty() {
        return Ok(topology.tiers.iter().collect());
    }
    wanted
        .iter()
        .map(|name| {
            topology
                .tier(name)
                .ok_or_else(|| LabError::unknown_tier(name, topology))
        })
        .collect()
}

/// Refuses a working set that does not hold two lines.
pub(crate) fn check_working_set(size: Bytes) -> Result<Bytes, LabError> {
    let least = 2 * LINE_BYTES;
    if size.get() < least {
        return Err(LabError::WorkingSet {
            bytes: size.get(),
            least,
        });
    }
    Ok(size)
}

/// What the caches within reach of the first `threads` cores hold together.
pub fn caches_in_reach(topology: &Topology, threads: u32) -> Bytes {
    topology
        .caches
        .iter()
        .map(|level| {
            let instances = threads.div_ceil(level.shared_by.max(1));
            Bytes(level.size.get().saturating_mul(u64::from(instances)))
        })
        .sum()
}
