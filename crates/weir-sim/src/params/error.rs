//! Why a platform cannot be simulated, and what remains of a measured latency.

use weir_model::platform::Sourced;
use weir_model::units::{GbPerSec, Nanos};

/// Why a platform cannot be simulated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimError {
    /// A measured latency is shorter than the sum of its known parts.
    #[error(
        "{what} of {measured:.0} is shorter than its known parts ({parts}), which take {least:.1}; \
         one of them is wrong"
    )]
    TooFast {
        /// Which latency.
        what: String,
        /// The measured value.
        measured: Nanos,
        /// The sum of the parts.
        least: Nanos,
        /// The parts.
        parts: String,
    },
    /// A measured bandwidth is above the limit of its media or link.
    #[error("{what} of {measured:.1} is more than {limit:.1}, the peak of {of}")]
    TooWide {
        /// Which bandwidth.
        what: String,
        /// The measured value.
        measured: GbPerSec,
        /// The limit.
        limit: GbPerSec,
        /// What sets the limit.
        of: String,
    },
    /// More tiers of all hosts than queues are followed for.
    #[error(
        "{hosts} hosts with {tiers} tiers of memory each are {all}; at most {MOST_TIERS} are simulated. Name fewer \
         hosts or devices"
    )]
    TooManyTiers {
        /// Hosts.
        hosts: u32,
        /// Tiers of each.
        tiers: usize,
        /// Both multiplied.
        all: usize,
    },
}

/// Tiers of all hosts: one bit each says whether prefetches from it are throttled.
pub(super) const MOST_TIERS: usize = 32;

/// The part of a measured latency that remains after its known parts.
pub(super) fn left_over(
    what: &str,
    measured: &Sourced<Nanos>,
    least: Nanos,
    parts: &str,
) -> Result<Nanos, SimError> {
    let rest = **measured - least;
    if rest.get() <= 0.0 {
        return Err(SimError::TooFast {
            what: what.into(),
            measured: **measured,
            least,
            parts: parts.into(),
        });
    }
    Ok(rest)
}
