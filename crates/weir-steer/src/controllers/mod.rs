//! The controllers, one file each.

mod allocation;
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
pub use weir::{Weir, WeirConfig};

use crate::controller::{Decision, Why};
use crate::limit::{Grain, Limit};
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

/// Divides this many cores' worth of running among the tenants that may be limited. A tenant that draws less
/// than half of an equal part of their bandwidth is not limited: it is not the cause, and a limit would gain
/// almost nothing. The others get equal parts of the rest; what a tenant with fewer cores does not use goes
/// to the others (max-min fairness).
fn share_units(readings: &Readings, units: f64, grain: Grain, why: Why) -> Decision {
    let mut limits = vec![Limit::FREE; readings.tenants.len()];
    let may_be_held: Vec<usize> = (readings.tenants.iter().enumerate())
        .filter(|(_, t)| t.role == Role::Restrained && t.busy)
        .map(|(i, _)| i)
        .collect();
    let (small, all) = small_drawers(readings, &may_be_held);
    let drawn: f64 = small.iter().map(|&(_, drew)| drew).sum();
    let others = if all > 0.0 { drawn / all } else { 0.0 };
    let mut left = units * (1.0 - others);
    let mut wanting: Vec<(u32, usize)> = (may_be_held.iter())
        .filter(|&&i| !small.iter().any(|&(k, _)| k == i))
        .map(|&i| (readings.tenants[i].cores, i))
        .collect();
    wanting.sort_unstable();
    for (k, &(cores, i)) in wanting.iter().enumerate() {
        let part = left / (wanting.len() - k) as f64;
        limits[i] = Limit::to_units(part, cores, grain);
        left -= part.min(f64::from(cores));
    }
    Decision { limits, why }
}

/// Tenants that draw little, and what all tenants draw together; no tenants if the bandwidth of each is not
/// known.
fn small_drawers(readings: &Readings, of: &[usize]) -> (Vec<(usize, f64)>, f64) {
    let drew = |&i: &usize| {
        let drew = readings.tenants[i].drew.as_ref().ok()?.get();
        (drew.is_finite() && drew >= 0.0).then_some((i, drew))
    };
    let Some(drew) = of.iter().map(drew).collect::<Option<Vec<_>>>() else {
        return (Vec::new(), 0.0);
    };
    let all: f64 = drew.iter().map(|&(_, drew)| drew).sum();
    let even = all / drew.len().max(1) as f64;
    let small = drew.into_iter().filter(|&(_, drew)| drew < 0.5 * even);
    (small.collect(), all)
}

#[cfg(test)]
mod tests {
    use weir_model::capability::Unavailable;
    use weir_model::units::{GbPerSec, Nanos};

    use super::*;
    use crate::readings::TenantReadings;

    fn readings(cores: &[u32]) -> Readings {
        let none = || Unavailable::because("not counted");
        Readings {
            length: Nanos(1e9),
            table: Err(none()),
            fast_table: Err(none()),
            slow_table: Err(none()),
            ingress: Err(none()),
            fast: Err(none()),
            slow: Err(none()),
            probe: Err(none()),
            tenants: (cores.iter())
                .map(|&cores| TenantReadings {
                    role: Role::Restrained,
                    cores,
                    busy: true,
                    drew: Err(none()),
                })
                .collect(),
        }
    }

    #[test]
    fn the_small_keep_theirs_and_the_bully_gets_the_rest() {
        let shared = share_units(&readings(&[1, 16, 1]), 4.0, Grain::Time, Why::rule("test"));
        assert!(shared.limits[0].is_free() && shared.limits[2].is_free());
        assert!((shared.limits[1].units(16) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn more_than_all_cores_is_free() {
        let shared = share_units(&readings(&[4, 4]), 9.0, Grain::Time, Why::rule("test"));
        assert!(shared.limits.iter().all(Limit::is_free));
    }

    #[test]
    fn who_draws_little_is_left_alone() {
        let mut readings = readings(&[4, 12]);
        readings.tenants[0].drew = Ok(GbPerSec(1.0));
        readings.tenants[1].drew = Ok(GbPerSec(9.0));
        let shared = share_units(&readings, 4.0, Grain::Time, Why::rule("test"));
        assert!(shared.limits[0].is_free());
        assert!((shared.limits[1].units(12) - 3.6).abs() < 1e-9);
    }
}
