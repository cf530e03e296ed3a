//! The controllers, one file each.

mod allocation;
mod division;
mod frequency;
mod isolation;
mod latency;
mod miku;
mod quota;
mod weir;

pub use allocation::{Allocation, AllocationConfig};
pub use frequency::{Frequency, FrequencyConfig};
pub use isolation::Isolation;
pub use latency::{Latency, LatencyConfig};
pub use miku::{Miku, MikuConfig};
pub use quota::{Quota, QuotaConfig};
pub use weir::{Tuning, Weir, WeirConfig};

use crate::controller::{Decision, Why};
use crate::limit::Limit;
use crate::readings::{Readings, Role};

/// The same limit for every tenant that may be limited and has something to run.
fn hold_all(readings: &Readings, limit: Limit, why: Why) -> Decision {
    let held = |role| {
        if role == Role::Restrained {
            limit
        } else {
            Limit::FREE
        }
    };
    Decision {
        limits: readings.tenants.iter().map(|t| held(t.role)).collect(),
        why,
    }
}
