//! Bounds for every controller: no tenant is stopped, no limit changes faster than its effect shows, and when
//! counters are silent all limits are removed.

use weir_model::units::Nanos;

use crate::controller::{Controller, Decision, Needs, Why};
use crate::limit::{Limit, Share};
use crate::readings::{Readings, Role};

/// Bounds on what a controller may do.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    /// Cores' worth of running that a tenant always keeps, as a share of its own cores.
    pub floor: Share,
    /// Windows in a row without usable readings after which all limits are removed.
    pub silence: u32,
    /// Windows for which a limit stays before it may change, unless it is removed.
    pub dwell: u32,
    /// What `weir` tries to keep of both tiers.
    pub keep: Keep,
}

/// What both tiers are to keep, as a part of the most that each gave. Of two limits the one that misses less is the
/// better one, whatever more the other tier gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Keep {
    /// The fast tier, for the protected tenants.
    pub fast: Share,
    /// The slow tier.
    pub slow: Share,
}

impl Default for Keep {
    /// 95 % of the fast tier, 85 % of the slow one.
    fn default() -> Self {
        Self {
            fast: Share::of(0.95),
            slow: Share::of(0.85),
        }
    }
}

impl Default for Bounds {
    /// A hundredth of a tenant's cores, three windows of silence, and no waiting between changes.
    fn default() -> Self {
        Self {
            floor: Share::of(0.01),
            silence: 3,
            dwell: 0,
            keep: Keep::default(),
        }
    }
}

/// A residency or wait longer than this was not measured but miscounted.
const LONGEST: Nanos = Nanos(1e6);

/// A controller within bounds.
pub struct Guarded<C> {
    controller: C,
    bounds: Bounds,
    silent: u32,
    stands: Vec<(Limit, u32)>,
}

impl<C: Controller> Guarded<C> {
    /// A controller within these bounds.
    pub fn new(controller: C, bounds: Bounds) -> Self {
        Self {
            controller,
            bounds,
            silent: 0,
            stands: Vec::new(),
        }
    }

    /// A limit that leaves a tenant its floor.
    fn floored(&self, limit: Limit, all: u32) -> Limit {
        let floor = self.bounds.floor.get() * f64::from(all);
        let cores = limit.cores.map(|c| c.clamp(1, all.max(1)));
        let running = f64::from(cores.unwrap_or(all).max(1));
        Limit {
            cores,
            time: Share::of(limit.time.get().max(floor / running)),
            allocation: Share::of(limit.allocation.get().max(self.bounds.floor.get())),
            ..limit
        }
    }

    fn steady(&mut self, i: usize, limit: Limit) -> Limit {
        let (standing, since) = self.stands[i];
        if standing == limit || (since < self.bounds.dwell && !limit.is_free()) {
            self.stands[i].1 = since.saturating_add(1);
            return standing;
        }
        self.stands[i] = (limit, 0);
        limit
    }
}

/// Whether the readings that are needed are possible values.
fn is_usable(readings: &Readings, needs: Needs) -> bool {
    if needs == Needs::Nothing {
        return true;
    }
    let plausible = |ns: Nanos| ns.get().is_finite() && ns.get() >= 0.0 && ns.get() < LONGEST.get();
    let moved = |t: f64| t.is_finite() && t >= 0.0;
    let queues = [&readings.table, &readings.slow_table, &readings.ingress];
    readings.length.get() > 0.0
        && needs.are_met_by(readings)
        && readings
            .probe
            .as_ref()
            .map_or(true, |&probe| plausible(probe) && probe.get() > 0.0)
        && queues.into_iter().flatten().all(|q| plausible(q.mean))
        && [&readings.fast, &readings.slow]
            .into_iter()
            .flatten()
            .all(|t| moved(t.total().get()))
}

impl<C: Controller> Controller for Guarded<C> {
    fn needs(&self) -> Needs {
        self.controller.needs()
    }

    fn observe(&mut self, readings: &Readings) -> Decision {
        self.stands
            .resize(readings.tenants.len(), (Limit::FREE, u32::MAX));
        let needs = self.controller.needs();
        let quiet = !needs.are_met_by(readings) && !readings.tenants.iter().any(|t| t.busy);
        if !is_usable(readings, needs) && !quiet {
            self.silent = self.silent.saturating_add(1);
            if self.silent >= self.bounds.silence {
                self.stands.fill((Limit::FREE, u32::MAX));
                return Decision::free(
                    readings.tenants.len(),
                    Why::rule("counters are silent: limits removed"),
                );
            }
            return Decision {
                limits: self.stands.iter().map(|&(limit, _)| limit).collect(),
                why: Why::rule("as before: this window's counters cannot be true"),
            };
        }
        self.silent = 0;
        let decision = self.controller.observe(readings);
        let limits = (readings.tenants.iter().zip(decision.limits).enumerate())
            .map(|(i, (tenant, limit))| match tenant.role {
                Role::Restrained => self.steady(i, self.floored(limit, tenant.cores)),
                Role::Protected | Role::Bystander => Limit::FREE,
            })
            .collect();
        Decision {
            limits,
            why: decision.why,
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_model::capability::Unavailable;
    use weir_model::counters::CounterSet;
    use weir_model::machine::Observation;

    use super::*;
    use crate::readings::{Residency, TenantReadings};

    /// Asks for one limit after another, the last one first.
    struct Asks(Vec<Limit>);

    impl Controller for Asks {
        fn observe(&mut self, _: &Readings) -> Decision {
            Decision {
                limits: vec![self.0.pop().unwrap()],
                why: Why::rule("asked"),
            }
        }
    }

    /// The limits of a tenant with 16 cores, in windows whose table is counted or not.
    fn held(mut asks: Vec<Limit>, bounds: Bounds, counted: &[bool]) -> Vec<Limit> {
        asks.reverse();
        let mut guarded = Guarded::new(Asks(asks), bounds);
        let seen = Observation::of(Nanos(1e9), Vec::new(), CounterSet::default());
        let tenant = TenantReadings {
            role: Role::Restrained,
            cores: 16,
            busy: true,
            drew: Err(Unavailable::because("not counted")),
        };
        let mut readings = Readings::of(&seen, vec![tenant]);
        let mut window = |&counted: &bool| {
            readings.table = match counted {
                true => Ok(Residency {
                    mean: Nanos(100.0),
                    entries: 1.0,
                    inserts: 1.0,
                }),
                false => Err(Unavailable::because("silent")),
            };
            guarded.observe(&readings).limits[0]
        };
        counted.iter().map(&mut window).collect()
    }

    fn cores(cores: u32, time: f64) -> Limit {
        Limit {
            cores: Some(cores),
            time: Share::of(time),
            ..Limit::FREE
        }
    }

    #[test]
    fn a_limit_below_the_floor_becomes_the_floor_and_no_more() {
        let bounds = Bounds {
            floor: Share::of(0.05),
            ..Bounds::default()
        };
        let units = |limit| held(vec![limit], bounds.clone(), &[true])[0].units(16);
        for (asked, given) in [
            (cores(2, 0.1), 0.8),
            (cores(2, 0.7), 1.4),
            (cores(1, 0.0), 0.8),
        ] {
            assert!((units(asked) - given).abs() < 1e-12, "{asked:?}");
        }
        let none = Limit {
            allocation: Share::NONE,
            ..Limit::FREE
        };
        assert!((units(none) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn a_limit_stays_for_its_time_unless_it_is_removed() {
        let bounds = Bounds {
            dwell: 2,
            ..Bounds::default()
        };
        let (one, two) = (cores(1, 1.0), cores(2, 1.0));
        let asked = vec![one, two, two, two, Limit::FREE, one];
        let found = held(asked, bounds, &[true; 6]);
        assert_eq!(found, [one, one, one, two, Limit::FREE, Limit::FREE]);
    }

    #[test]
    fn only_windows_of_silence_in_a_row_remove_a_limit() {
        let one = cores(1, 1.0);
        let counted = [true, false, false, true, false, false, false];
        let found = held(vec![one; 7], Bounds::default(), &counted);
        assert_eq!(found[..6], [one; 6]);
        assert_eq!(found[6], Limit::FREE);
        // What was removed does not stand.
        let bounds = Bounds {
            dwell: 9,
            ..Bounds::default()
        };
        let two = cores(2, 1.0);
        let found = held(vec![one, two], bounds, &[true, false, false, false, true]);
        assert_eq!(found[3..], [Limit::FREE, two]);
    }
}
