//! Points as rules name them.

use weir_model::access::{Dataflow, Op, Pattern};
use weir_model::tenant::{Placement, Reads};
use weir_model::topology::{TierName, Topology};
use weir_model::units::Bytes;

use super::Results;
use super::reading::gbps;
use crate::interplay::{REQUESTS, STORAGE_SET};
use crate::{Load, PointSpec, bandwidth};

/// A point as a rule names it: platform and tier by name, working set by size or by rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The platform expression.
    pub platform: &'static str,
    /// The tier.
    pub tier: &'static str,
    /// The instruction.
    pub op: Op,
    /// The order of lines.
    pub pattern: Pattern,
    /// Threads.
    pub threads: u32,
    /// Bytes of one thread; `None` means enough to leave the caches behind.
    pub working_set: Option<Bytes>,
    /// Whether the hardware prefetchers run.
    pub prefetch: bool,
    /// Lines loaded for so many lines that the instruction touches, in a mix.
    pub reads: Option<(u32, u32)>,
    /// Accesses to see at least; 0 leaves it to the machine.
    pub least_accesses: u64,
    /// What runs beside it.
    pub beside: Option<Neighbour>,
}

/// Threads that stream beside those that a figure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Neighbour {
    /// Their tier.
    pub tier: &'static str,
    /// Their instruction.
    pub op: Op,
    /// How many they are.
    pub threads: u32,
}

impl Wanted {
    /// The point on a machine of this topology.
    ///
    /// # Errors
    /// The machine has no such tier, or too few cores; in words.
    pub fn on(&self, topology: &Topology) -> Result<PointSpec, String> {
        let Self {
            platform,
            tier,
            threads,
            ..
        } = *self;
        let cores = topology.cores.len();
        let all = threads + self.beside.map_or(0, |beside| beside.threads);
        if all as usize > cores {
            return Err(format!(
                "{all} threads wanted, but platform {platform} has {cores} cores"
            ));
        }
        let known = |tier: &str| {
            topology
                .tier(&TierName::named(tier))
                .ok_or_else(|| format!("platform {platform} has no tier {tier}"))
        };
        let tier = known(tier)?;
        let timed = self.pattern.is_timed();
        let experiment = match (timed, self.beside) {
            (_, Some(_)) => "interplay",
            (true, None) => "latency",
            (false, None) => "bandwidth",
        };
        let usual = |tier, op: Op, threads| match op.is_storage() {
            true => STORAGE_SET,
            false => bandwidth::working_set(topology, tier, threads),
        };
        let size = (self.working_set).unwrap_or_else(|| usual(tier, self.op, threads));
        let mut load = Load::new(&tier.name, self.op, self.pattern, threads, size);
        load.reads = self.reads.map(|(lines, per)| Reads {
            lines,
            per,
            from: Placement::Bind(tier.name.clone()),
            dataflow: Dataflow::Apart,
        });
        let spec = PointSpec {
            least_accesses: self.least_accesses,
            ..PointSpec::alone(experiment, load.prefetch(self.prefetch))
        };
        let Some(Neighbour { tier, op, threads }) = self.beside else {
            return Ok(spec);
        };
        let tier = known(tier)?;
        let pattern = match op.is_storage() {
            true => REQUESTS,
            false => Pattern::Sequential,
        };
        let size = usual(tier, op, threads);
        Ok(spec.beside(Load::new(&tier.name, op, pattern, threads, size)))
    }
}

/// Threads that move as many bytes as they can.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// The platform expression.
    pub platform: &'static str,
    /// The tier.
    pub tier: &'static str,
    /// The instruction.
    pub op: Op,
    /// The order of lines.
    pub pattern: Pattern,
    /// Lines loaded for so many lines that the instruction touches, in a mix.
    pub reads: Option<(u32, u32)>,
    /// Whether the hardware prefetchers run.
    pub prefetch: bool,
}

/// Lines of a stream until a slow device has been seen for milliseconds, since its bandwidth sways.
pub(super) const LINES: u64 = 400_000;

impl Stream {
    /// One instruction line by line, prefetchers on.
    pub const fn new(platform: &'static str, tier: &'static str, op: Op) -> Self {
        Self {
            platform,
            tier,
            op,
            pattern: Pattern::Sequential,
            reads: None,
            prefetch: true,
        }
    }

    /// Requests to a storage device.
    pub const fn requests(platform: &'static str, tier: &'static str, op: Op) -> Self {
        Self {
            pattern: REQUESTS,
            ..Self::new(platform, tier, op)
        }
    }

    /// The same with the prefetchers off.
    pub const fn without_prefetch(self) -> Self {
        Self {
            prefetch: false,
            ..self
        }
    }

    /// The same in blocks at random.
    pub const fn in_blocks(self, block: Bytes) -> Self {
        Self {
            pattern: Pattern::RandomBlock { block },
            ..self
        }
    }

    /// The same with so many lines loaded for so many that the instruction touches.
    pub const fn mixed(self, lines: u32, per: u32) -> Self {
        Self {
            reads: Some((lines, per)),
            ..self
        }
    }

    pub(super) const fn with(self, threads: u32) -> Wanted {
        let Self {
            platform,
            tier,
            op,
            pattern,
            reads,
            prefetch,
        } = self;
        Wanted {
            platform,
            tier,
            op,
            pattern,
            threads,
            working_set: None,
            prefetch,
            reads,
            // The machine knows how long to look at requests.
            least_accesses: if op.is_storage() { 0 } else { LINES },
            beside: None,
        }
    }
}

/// A stream beside another one of the same platform.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Whose bandwidth it is about.
    pub victim: Stream,
    /// Who runs beside it.
    pub aggressor: Stream,
}

/// Lines of a victim: fewer than alone, for there are many pairs and few of its lines get through.
const LINES_BESIDE: u64 = 40_000;

impl Pair {
    pub(super) const fn with(self, victim_threads: u32, aggressor_threads: u32) -> Wanted {
        let storage = self.victim.op.is_storage();
        Wanted {
            least_accesses: if storage { 0 } else { LINES_BESIDE },
            beside: Some(Neighbour {
                tier: self.aggressor.tier,
                op: self.aggressor.op,
                threads: aggressor_threads,
            }),
            ..self.victim.with(victim_threads)
        }
    }

    /// The change of the victim's bandwidth in percent.
    pub(super) fn change(self, threads: (u32, u32), results: &dyn Results) -> Result<f64, String> {
        let solo = gbps(results.point(&self.victim.with(threads.0))?)?;
        let corun = gbps(results.point(&self.with(threads.0, threads.1))?)?;
        Ok((corun / solo - 1.0) * 100.0)
    }
}

/// Every pair of these thread counts.
pub(super) fn pairs(threads: &'static [u32]) -> impl Iterator<Item = (u32, u32)> {
    (threads.iter()).flat_map(move |&n| threads.iter().map(move |&m| (n, m)))
}
