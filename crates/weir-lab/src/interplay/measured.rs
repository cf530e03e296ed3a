//! Points of a matrix, and whose they are: the victim alone, a pair, or accesses that are timed.

use weir_model::access::Pattern;
use weir_model::document::{Beside, Point, Record};
use weir_model::interplay::{At, TierOp};

/// A point of a matrix with what it was made from.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// The figure.
    pub point: &'a Point,
    /// Its record.
    pub record: &'a Record,
}

/// The tenants of a pair; `None` for what ran alone, and for the timed chase.
pub(super) fn pair_of(point: &Point) -> Option<(TierOp, TierOp)> {
    let beside = point.beside.as_ref()?;
    (!is_timed(point)).then(|| (tier_op(point), co_runner(beside)))
}

/// Whether it is no victim, but times the victim's tier.
pub(super) fn is_timed(point: &Point) -> bool {
    is_chase(&point.pattern) || point.pattern == Pattern::SharedLine.name()
}

/// Whether a pattern is a chase.
pub(super) fn is_chase(pattern: &str) -> bool {
    pattern.starts_with("chase")
}

/// Whom a point is about: the victim.
pub(super) fn tier_op(point: &Point) -> TierOp {
    TierOp {
        tier: point.tier.clone(),
        op: point.op,
        from: point.source.clone(),
        socket: point.socket,
        host: point.host,
    }
}

/// Who runs with it.
pub(super) fn co_runner(beside: &Beside) -> TierOp {
    TierOp {
        tier: beside.tier.clone(),
        op: beside.op,
        from: beside.source.clone(),
        socket: beside.socket,
        host: beside.host,
    }
}

/// The thread counts of a pair.
pub(super) fn at_of(point: &Point) -> Option<At> {
    let beside = point.beside.as_ref()?;
    Some(At {
        victim_threads: point.threads,
        aggressor_threads: beside.threads,
        aggressor_pause_ns: beside.pause_ns,
        victim_ways: point.cache_ways,
        aggressor_ways: beside.cache_ways,
    })
}
