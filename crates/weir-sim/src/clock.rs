//! Virtual time in whole picoseconds, so that sums are exact and every run gives the same result.

use weir_model::units::Nanos;

/// A point in virtual time, or a span of it, in picoseconds.
pub type Ps = u64;

/// A span as picoseconds, rounded to the nearest.
pub fn ps(span: Nanos) -> Ps {
    (span.get() * 1e3).round().max(0.0) as Ps
}

/// Picoseconds as a span.
pub fn nanos(span: Ps) -> Nanos {
    Nanos(span as f64 / 1e3)
}
