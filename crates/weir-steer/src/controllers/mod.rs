//! The controllers, one file each.

mod allocation;
mod frequency;
mod isolation;
mod miku;
mod quota;
mod weir;

pub use allocation::{Allocation, AllocationConfig};
pub use frequency::{Frequency, FrequencyConfig};
pub use isolation::Isolation;
pub use miku::{Miku, MikuConfig, Rate};
pub use quota::{Quota, QuotaConfig};
pub use weir::{Weir, WeirConfig};

use crate::controller::{Decision, Why};
use crate::hold::{Hold, Share};
use crate::sight::{Role, Sight};

/// The same hold for everybody who may be held and has something to run.
fn hold_all(sight: &Sight, hold: Hold, why: Why) -> Decision {
    let held = |role| {
        if role == Role::Restrained {
            hold
        } else {
            Hold::FREE
        }
    };
    Decision {
        holds: sight.tenants.iter().map(|t| held(t.role)).collect(),
        why,
    }
}

/// So many cores' worth of running, shared among those who may be held: everybody gets an equal part, and
/// what somebody with fewer cores leaves goes to the others (max-min fairness).
fn share_units(sight: &Sight, units: f64, step: Option<Share>, why: Why) -> Decision {
    let mut holds = vec![Hold::FREE; sight.tenants.len()];
    let mut wanting: Vec<(usize, u32)> = (sight.tenants.iter().enumerate())
        .filter(|(_, t)| t.role == Role::Restrained && t.busy)
        .map(|(i, t)| (i, t.cores))
        .collect();
    wanting.sort_by_key(|&(i, cores)| (cores, i));
    let mut left = units;
    for (k, &(i, cores)) in wanting.iter().enumerate() {
        let part = left / (wanting.len() - k) as f64;
        holds[i] = Hold::to_units(part, cores, step);
        left -= part.min(f64::from(cores));
    }
    Decision { holds, why }
}

#[cfg(test)]
mod tests {
    use weir_model::capability::Unavailable;
    use weir_model::units::Nanos;

    use super::*;
    use crate::sight::TenantSight;

    fn sight(cores: &[u32]) -> Sight {
        let none = || Unavailable::because("not counted");
        Sight {
            length: Nanos(1e9),
            table: Err(none()),
            fast_table: Err(none()),
            slow_table: Err(none()),
            ingress: Err(none()),
            fast: Err(none()),
            slow: Err(none()),
            tenants: (cores.iter())
                .map(|&cores| TenantSight {
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
        let shared = share_units(&sight(&[1, 16, 1]), 4.0, None, Why::rule("test"));
        assert!(shared.holds[0].is_free() && shared.holds[2].is_free());
        assert!((shared.holds[1].units(16) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn more_than_all_cores_is_free() {
        let shared = share_units(&sight(&[4, 4]), 9.0, None, Why::rule("test"));
        assert!(shared.holds.iter().all(Hold::is_free));
    }
}
