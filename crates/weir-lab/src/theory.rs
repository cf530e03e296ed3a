//! What physics allows, beside what was measured.
//!
//! A tier's [`Limits`] bound the bytes on its wires; a figure counts the bytes of the program. An
//! instruction that reads a line for ownership before it writes it moves two for each of the
//! program's, one in each direction. A latency is bounded from below by the idle path, for the
//! share of accesses that must go to memory.

use weir_model::access::{Op, Pattern};
use weir_model::document::Theory;
use weir_model::machine::Goal;
use weir_model::topology::{Limits, Topology};
use weir_model::units::{Bytes, GbPerSec};

use crate::bandwidth::TIMES_CACHES;
use crate::plan::caches_in_reach;
use crate::statistics::Estimate;
use crate::{Load, PointSpec};

/// The known limit of a figure; `None` where none is known or the caches take part.
pub fn beside(spec: &PointSpec, figure: &Estimate, topology: &Topology) -> Option<Theory> {
    let load = &spec.load;
    let limits = topology.tier(&load.tier)?.limits.as_ref()?;
    let caches = caches_in_reach(topology, load.threads);
    match spec.goal() {
        Goal::Bandwidth => bandwidth(load, figure, limits, caches),
        Goal::Latency => latency(load, figure, limits, caches),
    }
}

/// Program bytes a second that the tier's limits allow for one instruction, and why.
pub fn bandwidth_limit(op: Op, limits: &Limits) -> (GbPerSec, String) {
    let Limits {
        read,
        write,
        total,
        basis,
        ..
    } = limits;
    if op.reads_for_ownership() {
        let each_way = read.min(*write).min(*total / 2.0);
        (
            each_way,
            format!("{basis}; each line is read for ownership and written back"),
        )
    } else if op.is_posted() {
        (write.min(*total), basis.clone())
    } else {
        (read.min(*total), basis.clone())
    }
}

fn bandwidth(load: &Load, figure: &Estimate, limits: &Limits, caches: Bytes) -> Option<Theory> {
    // Below this, hits would make any bandwidth possible.
    let footprint = load
        .working_set
        .get()
        .saturating_mul(u64::from(load.threads));
    if footprint < caches.get().saturating_mul(TIMES_CACHES) {
        return None;
    }
    let (GbPerSec(limit), basis) = bandwidth_limit(load.op, limits);
    (limit > 0.0).then(|| Theory {
        limit,
        share_pct: figure.mean / limit * 100.0,
        basis,
        // Only a figure whose whole interval lies beyond the limit is called wrong.
        beaten: figure.mean - figure.ci95.unwrap_or(0.0) > limit,
    })
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
