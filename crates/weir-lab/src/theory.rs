//! What physics allows, with what was measured.
//!
//! A tier's [`Limits`] bound the bytes on its wires; a figure counts the bytes of the program. An
//! instruction that reads a line for ownership before it writes it moves two for each of the
//! program's, one in each direction. A latency is bounded from below by the idle path, for the
//! share of accesses that must go to memory.

use std::collections::BTreeMap;

use weir_model::access::{Op, Pattern};
use weir_model::document::Theory;
use weir_model::machine::Goal;
use weir_model::topology::{Limits, TierName, Topology};
use weir_model::units::{Bytes, GbPerSec};

use crate::plan::caches_in_reach;
use crate::room::TIMES_CACHES;
use crate::statistics::Estimate;
use crate::{Load, PointSpec};

/// The known limit of a figure; `None` where none is known or the caches take part.
pub fn beside(spec: &PointSpec, figure: &Estimate, topology: &Topology) -> Option<Theory> {
    let load = &spec.load;
    let caches = caches_in_reach(topology, load.threads);
    match spec.goal() {
        Goal::Bandwidth | Goal::Requests => {
            bandwidth(load, figure, topology, caches, spec.counted_part())
        }
        Goal::Latency => {
            let limits = topology.tier(&load.tier)?.limits.as_ref()?;
            latency(load, figure, limits, caches)
        }
    }
}

/// What may cross a tier's wires in a second, reads and writes together, if this share is read.
pub fn traffic_limit(limits: &Limits, read_share: f64) -> GbPerSec {
    let wires = Wires {
        read: read_share,
        written: 1.0 - read_share,
    };
    GbPerSec(wires.limit(limits))
}

/// Program bytes a second that the tier's limits allow for one instruction, and why.
pub fn bandwidth_limit(op: Op, limits: &Limits) -> (GbPerSec, String) {
    let owned = if op.reads_for_ownership() {
        "; each line is read for ownership and written back"
    } else {
        ""
    };
    let limit = Wires::of(op).limit(limits);
    (GbPerSec(limit), format!("{}{owned}", limits.basis))
}

/// Bytes that cross a tier's wires for each byte of the program.
#[derive(Debug, Clone, Copy, Default)]
struct Wires {
    read: f64,
    written: f64,
}

impl Wires {
    /// For one instruction, once the caches are full.
    fn of(op: Op) -> Self {
        // A request that reads crosses the device's link in that direction alone, as a load does.
        let writes = !(op.is_load() || matches!(op, Op::RandRead | Op::SeqRead));
        Self {
            read: if !writes || op.reads_for_ownership() {
                1.0
            } else {
                0.0
            },
            written: if writes { 1.0 } else { 0.0 },
        }
    }

    /// Program bytes a second, in GB/s.
    fn limit(self, limits: &Limits) -> f64 {
        let Limits {
            read, write, total, ..
        } = limits;
        [
            (*read, self.read),
            (*write, self.written),
            (*total, self.read + self.written),
        ]
        .into_iter()
        .filter(|&(_, bytes)| bytes > 0.0)
        .map(|(limit, bytes)| limit.get() / bytes)
        .fold(f64::INFINITY, f64::min)
    }
}

/// What each tier carries for each byte that a load's program touches.
fn carried(load: &Load) -> BTreeMap<TierName, Wires> {
    let mut carried: BTreeMap<TierName, Wires> = BTreeMap::new();
    let (loaded, touched) = match &load.reads {
        Some(reads) => (f64::from(reads.lines), f64::from(reads.per)),
        None => (0.0, 1.0),
    };
    let all = loaded + touched;
    let own = Wires::of(load.op);
    let wires = carried.entry(load.tier.clone()).or_default();
    wires.read += own.read * touched / all;
    wires.written += own.written * touched / all;
    if let Some(reads) = &load.reads {
        let weights = reads.from.weights(&TierName::dram());
        let sum: u32 = weights.iter().map(|w| w.1).sum();
        for (tier, weight) in weights {
            let share = f64::from(weight) / f64::from(sum.max(1));
            carried.entry(tier).or_default().read += loaded / all * share;
        }
    }
    carried
}

/// Lines that were under way when a window began complete in it, so that a tier at its limit may
/// seem to give this much more.
const EDGE: f64 = 0.005;

fn bandwidth(
    load: &Load,
    figure: &Estimate,
    topology: &Topology,
    caches: Bytes,
    counted: f64,
) -> Option<Theory> {
    // Below this, hits would make any bandwidth possible.
    let footprint = load
        .working_set
        .get()
        .saturating_mul(u64::from(load.threads));
    if footprint < caches.get().saturating_mul(TIMES_CACHES) {
        return None;
    }
    let mut tightest: Option<(f64, String)> = None;
    for (tier, wires) in carried(load) {
        // A tier without known limits leaves the figure without one.
        let limits = topology.tier(&tier)?.limits.as_ref()?;
        let limit = wires.limit(limits) * counted;
        if tightest.as_ref().is_none_or(|(least, _)| limit < *least) {
            let basis = match (&load.reads, load.op.reads_for_ownership()) {
                (None, _) => bandwidth_limit(load.op, limits).1,
                (Some(_), owns) => {
                    let owned = if owns {
                        "; written lines are read for ownership first"
                    } else {
                        ""
                    };
                    format!("{tier}: {}{owned}", limits.basis)
                }
            };
            tightest = Some((limit, basis));
        }
    }
    let (mut limit, mut basis) = tightest.filter(|(limit, _)| *limit > 0.0 && limit.is_finite())?;
    if let Some(misses) = random_misses(load, caches.get() as f64 / footprint as f64) {
        limit /= misses;
        basis += &format!(
            "; at least {:.0} % of accesses miss the caches",
            misses * 100.0
        );
    }
    Some(Theory {
        limit,
        share_pct: figure.mean / limit * 100.0,
        basis,
        // Only a figure whose whole interval lies beyond the limit is called wrong.
        beaten: figure.mean - figure.ci95.unwrap_or(0.0) > limit * (1.0 + EDGE),
    })
}

/// The share of accesses that miss caches which hold this share of the lines, where lines come back
/// at random; `None` where they come back after all others, or pass the caches by.
fn random_misses(load: &Load, held: f64) -> Option<f64> {
    let at_random = matches!(
        load.pattern,
        Pattern::RandomLine | Pattern::RandomBlock { .. }
    );
    (at_random && !load.op.is_posted()).then_some(1.0 - held)
}

fn latency(load: &Load, figure: &Estimate, limits: &Limits, caches: Bytes) -> Option<Theory> {
    // A posted store completes before its line arrives, and a prefetcher may have fetched a line
    // before it is asked for: the path bounds neither.
    if load.op.is_posted() || load.prefetch {
        return None;
    }
    let idle = limits.idle?.get();
    let (limit, basis) = match load.pattern {
        Pattern::FlushedLine => (idle, limits.basis.clone()),
        Pattern::FlushedBurst { lines } => (
            idle / f64::from(lines.max(1)),
            format!("{}, shared by {lines} accesses at once", limits.basis),
        ),
        Pattern::Chase { .. } => {
            // A hop comes back to its line after all others, so that whatever the replacement
            // keeps, no more hops hit than lines fit.
            let misses = 1.0 - caches.get() as f64 / load.working_set.get() as f64;
            let basis = format!(
                "{}; at least {:.0} % of hops miss the caches",
                limits.basis,
                misses * 100.0
            );
            (idle * misses, basis)
        }
        _ => return None,
    };
    (limit > 0.0 && figure.mean > 0.0).then(|| Theory {
        limit,
        share_pct: limit / figure.mean * 100.0,
        basis,
        beaten: figure.mean + figure.ci95.unwrap_or(0.0) < limit,
    })
}
