//! Divides a limit among the tenants that may be limited.

use crate::controller::{Decision, Why};
use crate::limit::{Grain, Limit};
use crate::readings::{Readings, Role};

/// A tenant that draws less than this share of an equal part is not limited.
pub const SMALL: f64 = 0.5;

/// The division while tenants are limited.
#[derive(Debug, Clone, Default)]
pub struct Division {
    /// The tenants that drew too much to be left without a limit. A tenant that draws little only because of its
    /// limit keeps the limit.
    large: Vec<bool>,
}

impl Division {
    /// Divides this many cores' worth of running among the tenants that may be limited. A tenant that
    /// always drew less than the share `small` of an equal part of their bandwidth is not limited: it is not
    /// the cause, and a limit would gain almost nothing. The others get equal parts of the rest; what a tenant with
    /// fewer cores does not use goes to the others (max-min fairness).
    pub fn share(
        &mut self,
        readings: &Readings,
        units: f64,
        grain: Grain,
        small: f64,
        why: Why,
    ) -> Decision {
        let mut limits = vec![Limit::FREE; readings.tenants.len()];
        let limitable = limitable(readings);
        let (small, part) = self.small(readings, &limitable, small);
        let mut left = units * (1.0 - part);
        let mut wanting: Vec<(u32, usize)> = (limitable.iter())
            .filter(|&i| !small.contains(i))
            .map(|&i| (readings.tenants[i].cores, i))
            .collect();
        wanting.sort_unstable();
        for (k, &(cores, i)) in wanting.iter().enumerate() {
            let part = left / (wanting.len() - k) as f64;
            limits[i] = Limit::to_units(part, cores, grain);
            left -= limits[i].units(cores);
        }
        Decision { limits, why }
    }

    /// Whether a tenant that was left without a limit draws as much now as those with one: the others had kept it from
    /// it, and a window in which it took their part shows nothing of the limit.
    pub fn has_grown(&self, readings: &Readings, share: f64) -> bool {
        let of = limitable(readings);
        let Some(drew) = drawn(readings, &of) else {
            return false;
        };
        let even = even(&drew);
        let is_limited = |i: usize| self.large.get(i).copied().unwrap_or(true);
        drew.iter()
            .any(|&(i, drew)| !is_limited(i) && drew >= share * even)
    }

    /// The tenants that draw little, and their part of what all tenants draw; no tenants if the bandwidth of
    /// each is not known.
    fn small(&mut self, readings: &Readings, of: &[usize], share: f64) -> (Vec<usize>, f64) {
        self.large.resize(readings.tenants.len(), false);
        for (i, _) in (readings.tenants.iter().enumerate()).filter(|(_, t)| !t.busy) {
            self.large[i] = false;
        }
        let Some(drew) = drawn(readings, of) else {
            return (Vec::new(), 0.0);
        };
        let all: f64 = drew.iter().map(|&(_, drew)| drew).sum();
        let even = even(&drew);
        for &(i, drew) in &drew {
            self.large[i] |= drew >= share * even;
        }
        let is_small = |&(i, _): &(usize, f64)| !self.large[i];
        let (small, drawn): (Vec<usize>, Vec<f64>) = drew.into_iter().filter(is_small).unzip();
        let drawn: f64 = drawn.iter().sum();
        (small, if all > 0.0 { drawn / all } else { 0.0 })
    }
}

/// The tenants that may be limited, and run.
fn limitable(readings: &Readings) -> Vec<usize> {
    (readings.tenants.iter().enumerate())
        .filter(|(_, t)| t.role == Role::Restrained && t.busy)
        .map(|(i, _)| i)
        .collect()
}

/// What each of these drew; `None` if it is not known of each.
fn drawn(readings: &Readings, of: &[usize]) -> Option<Vec<(usize, f64)>> {
    of.iter()
        .map(|&i| {
            let drew = readings.tenants[i].drew.as_ref().ok()?.get();
            (drew.is_finite() && drew >= 0.0).then_some((i, drew))
        })
        .collect()
}

/// An equal part of what they drew.
fn even(drew: &[(usize, f64)]) -> f64 {
    drew.iter().map(|&(_, drew)| drew).sum::<f64>() / drew.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use weir_model::capability::Unavailable;
    use weir_model::units::{GbPerSec, Nanos};

    use super::*;
    use crate::limit::Share;
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
            done: Vec::new(),
            sampled: None,
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

    fn share(readings: &Readings, units: f64) -> Decision {
        Division::default().share(readings, units, Grain::Time, SMALL, Why::rule("test"))
    }

    #[test]
    fn small_tenants_are_free_and_the_large_one_gets_the_rest() {
        let shared = share(&readings(&[1, 16, 1]), 4.0);
        assert!(shared.limits[0].is_free() && shared.limits[2].is_free());
        assert!((shared.limits[1].units(16) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn one_tenant_after_another_gets_the_next_step() {
        let grain = Grain::Wide(Share::of(0.1));
        for steps in 2..9 {
            let units = f64::from(steps) * 0.1;
            let mut division = Division::default();
            let shared = division.share(&readings(&[4, 4]), units, grain, SMALL, Why::rule("test"));
            let held: f64 = shared.limits.iter().map(|limit| limit.units(4)).sum();
            assert!((held - units).abs() < 1e-9, "{units}: {:?}", shared.limits);
        }
    }

    #[test]
    fn tenants_get_whole_cores_of_a_limit_of_whole_cores() {
        let limits = share(&readings(&[8, 8]), 3.0).limits;
        assert_eq!([0, 1].map(|i| limits[i].cores), [Some(2), Some(1)]);
        assert!(limits.iter().all(|limit| limit.time == Share::ALL));
    }

    #[test]
    fn more_than_all_cores_is_free() {
        let shared = share(&readings(&[4, 4]), 9.0);
        assert!(shared.limits.iter().all(Limit::is_free));
    }

    #[test]
    fn a_tenant_that_draws_little_is_not_limited() {
        let mut readings = readings(&[4, 12]);
        readings.tenants[0].drew = Ok(GbPerSec(1.0));
        readings.tenants[1].drew = Ok(GbPerSec(9.0));
        let shared = share(&readings, 4.0);
        assert!(shared.limits[0].is_free());
        assert!((shared.limits[1].units(12) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_tenant_that_draws_little_only_under_a_limit_stays_limited() {
        let (mut division, mut readings) = (Division::default(), readings(&[4, 12]));
        let mut limits = Vec::new();
        for drew in [(6.0, 6.0), (1.0, 9.0), (1.0, 9.0)] {
            readings.tenants[0].drew = Ok(GbPerSec(drew.0));
            readings.tenants[1].drew = Ok(GbPerSec(drew.1));
            let shared = division.share(&readings, 4.0, Grain::Time, SMALL, Why::rule("test"));
            limits.push(shared.limits);
        }
        assert!(limits.iter().flatten().all(|limit| !limit.is_free()));
        assert_eq!(limits[0], limits[2]);
    }

    #[test]
    fn a_tenant_that_others_had_kept_small_is_seen_to_grow_once() {
        let (mut division, mut readings) = (Division::default(), readings(&[4, 12]));
        let mut grown = Vec::new();
        for drew in [(1.0, 9.0), (1.0, 4.0), (4.0, 3.0), (4.0, 3.0)] {
            readings.tenants[0].drew = Ok(GbPerSec(drew.0));
            readings.tenants[1].drew = Ok(GbPerSec(drew.1));
            grown.push(division.has_grown(&readings, SMALL));
            division.share(&readings, 4.0, Grain::Time, SMALL, Why::rule("test"));
        }
        assert_eq!(grown, [false, false, true, false]);
    }
}
