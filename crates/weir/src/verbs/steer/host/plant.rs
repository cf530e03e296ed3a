//! A host as a plant.

use weir_linux::steer::{
    Actuator as By, Candidate, Host, HostObservation, TenantObservation, TenantScope,
};
use weir_model::machine::Observation;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_steer::config::Config;
use weir_steer::plant::{Actuators, AppliedLimit, NotPutBack, Plant, PlantError, TenantOf, change};
use weir_steer::{Limit, Readings, Role, Share, TenantReadings};

use super::follow::{self, Follow, Followed};
use super::is_settled;
use crate::context::say;
use crate::interrupt::Stop;

/// This host, with the limits of its tenants.
pub struct HostPlant {
    host: Host,
    tenants: Vec<TenantOf>,
    held: Vec<Limit>,
    period: Nanos,
    slow_nodes: Vec<u32>,
    stop: Stop,
    followed: Vec<Followed>,
    follow: Option<Follow>,
}

impl HostPlant {
    /// A host whose tenants are those of the configuration, the protected first.
    pub fn new(host: Host, config: &Config, slow_nodes: Vec<u32>, stop: Stop) -> Self {
        let tenants: Vec<TenantOf> = (0..host.tenants().len())
            .map(|i| {
                let protected = i < config.protect.len();
                tenant_of(
                    &host,
                    i,
                    if protected {
                        Role::Protected
                    } else {
                        Role::Restrained
                    },
                )
            })
            .collect();
        Self {
            host,
            held: vec![Limit::FREE; tenants.len()],
            followed: vec![Followed::Named; tenants.len()],
            follow: None,
            tenants,
            period: config.period,
            slow_nodes,
            stop,
        }
    }

    /// Finds automatic tenants, now and from now on; returns which they are, and why.
    pub fn follow(&mut self, follow: Follow) -> Vec<String> {
        self.follow = Some(follow);
        self.look()
    }

    /// Updates the tenants, if a search is due.
    fn look(&mut self) -> Vec<String> {
        let Some(candidates) = (self.follow.as_mut()).and_then(|follow| follow.look(&self.host))
        else {
            return Vec::new();
        };
        let mut told = Vec::new();
        for place in follow::gone(&candidates, &self.followed) {
            self.limit(place, Limit::FREE);
            self.host.retire(place);
            self.held[place] = Limit::FREE;
            self.followed[place] = Followed::Free;
            told.push(format!(
                "{} has ended, or changes its role",
                self.tenants[place].name
            ));
        }
        for candidate in candidates {
            if !self.followed.contains(&Followed::found(&candidate)) {
                told.extend(self.take_in(candidate));
            }
        }
        told
    }

    /// Makes a tenant of a candidate, in a free position or the last; returns its role and the reason, or why
    /// it is no tenant, the first time.
    fn take_in(&mut self, candidate: Candidate) -> Option<String> {
        let asked = TenantScope {
            name: candidate.scope().to_string(),
            scope: candidate.scope(),
            restrain: candidate.restrain,
        };
        let free = self
            .followed
            .iter()
            .position(|known| *known == Followed::Free);
        let place = match self.host.adopt(asked, free) {
            Ok(place) => place,
            Err(why) => {
                let news = self.follow.as_mut().is_some_and(|f| f.is_news(&candidate));
                return news.then(|| format!("cgroup:{} is not a tenant: {why}", candidate.group));
            }
        };
        let role = match candidate.restrain {
            true => Role::Restrained,
            false => Role::Protected,
        };
        let tenant = tenant_of(&self.host, place, role);
        let found = Followed::found(&candidate);
        if place < self.tenants.len() {
            self.tenants[place] = tenant;
            self.followed[place] = found;
        } else {
            self.tenants.push(tenant);
            self.held.push(Limit::FREE);
            self.followed.push(found);
        }
        Some(candidate.why())
    }

    /// Limits the tenant in a position, and returns the limit in force.
    fn limit(&mut self, place: usize, to: Limit) -> AppliedLimit {
        let (from, host) = (self.held[place], &mut self.host);
        let asked = to;
        let to = in_actuators(to, &self.tenants[place]);
        let act = |action: &_| host.act(action).map_err(|why| why.to_string());
        let after = change(&self.tenants[place].name, from, to, self.period, act);
        self.held[place] = after.applied;
        AppliedLimit {
            requested: asked,
            ..after
        }
    }

    /// The actuators that all tenants that may be limited have.
    pub fn actuators(&self) -> Actuators {
        let restrained = self.tenants.iter().filter(|t| t.role == Role::Restrained);
        let common = restrained
            .map(|t| t.actuators.clone())
            .reduce(|a, b| Actuators {
                cores: a.cores && b.cores,
                time: a.time && b.time,
                allocation: a.allocation.filter(|_| b.allocation.is_some()),
                clocks: match a.clocks == b.clocks {
                    true => a.clocks,
                    false => Vec::new(),
                },
            });
        common.unwrap_or_default()
    }
}

/// The same running by processor time alone, for a tenant that cannot be limited by cores.
fn in_actuators(limit: Limit, tenant: &TenantOf) -> Limit {
    if limit.cores.is_none() || tenant.actuators.cores || !tenant.actuators.time {
        return limit;
    }
    let whole = Limit {
        allocation: Share::ALL,
        ..limit
    };
    Limit {
        cores: None,
        time: Share::of(whole.units(tenant.cores) / f64::from(tenant.cores.max(1))),
        ..limit
    }
}

fn tenant_of(host: &Host, place: usize, role: Role) -> TenantOf {
    let tenant = &host.tenants()[place];
    TenantOf {
        name: tenant.name().to_owned(),
        role,
        cores: tenant.cpus().len() as u32,
        actuators: Actuators {
            cores: tenant.can(By::Cores),
            time: tenant.can(By::ProcessorTime),
            allocation: host.allocation_step(tenant).map(Share::of),
            clocks: host.clocks(tenant),
        },
    }
}

/// Samples of a window, one line each, from which on they are better than the nodes of pages.
const SAMPLED: Bytes = Bytes(64 * LINE_BYTES);

/// A tenant that may be limited and has no page on the slow tier is not the cause of its load. If its pages
/// are not known, its configured role is used.
fn role(told: Role, seen: &TenantObservation, slow_nodes: &[u32]) -> Role {
    let elsewhere = match &seen.touched {
        Ok(touched) if touched.total() >= SAMPLED => touched.on(slow_nodes).get() == 0,
        _ => (seen.pages.as_ref())
            .is_ok_and(|pages| pages.total().get() > 0 && pages.on(slow_nodes).get() == 0),
    };
    if told == Role::Restrained && !slow_nodes.is_empty() && elsewhere {
        return Role::Bystander;
    }
    told
}

impl Plant for HostPlant {
    fn tenants(&self) -> &[TenantOf] {
        &self.tenants
    }

    fn observe(&mut self, window: Nanos) -> Result<Readings, PlantError> {
        for told in self.look() {
            say(&format!("weir: {told}"));
        }
        let HostObservation {
            window,
            counters,
            probe,
            tenants,
        } = (self.host)
            .observe_unless(window, &|| self.stop.requested())
            .ok_or(PlantError::Interrupted)?;
        let sights = (self.tenants.iter_mut().zip(tenants))
            .map(|(tenant, seen)| {
                tenant.cores = seen.cores;
                TenantReadings {
                    role: role(tenant.role, &seen, &self.slow_nodes),
                    cores: seen.cores,
                    busy: seen.busy,
                    drew: seen.drew,
                }
            })
            .collect();
        let seen = Observation {
            window,
            tenants: Vec::new(),
            counters,
        };
        Ok(Readings {
            probe,
            ..Readings::of(&seen, sights)
        })
    }

    fn apply(&mut self, limits: &[Limit]) -> Vec<AppliedLimit> {
        let of = |place: usize| limits.get(place).copied().unwrap_or(Limit::FREE);
        (0..self.tenants.len())
            .map(|place| self.limit(place, of(place)))
            .collect()
    }

    fn release(&mut self) -> Vec<NotPutBack> {
        self.held.fill(Limit::FREE);
        let left = self.host.release().into_iter();
        left.filter(|not| !is_settled(&not.cause))
            .map(|not| NotPutBack {
                tenant: "host".into(),
                what: not.path.clone(),
                reason: not.to_string(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn who_cannot_be_held_by_cores_runs_as_much(
            held in 1u32..80, all in 1u32..80, time in 0.01..1.0_f64, cores: bool,
        ) {
            let tenant = TenantOf {
                name: "a".into(),
                role: Role::Restrained,
                cores: all,
                actuators: Actuators { cores, time: true, ..Actuators::default() },
            };
            let limit = Limit { cores: Some(held), time: Share::of(time), ..Limit::FREE };
            let found = in_actuators(limit, &tenant);
            prop_assert_eq!(found.cores.is_some(), cores);
            prop_assert!((found.units(all) - limit.units(all)).abs() < 1e-9);
            prop_assert_eq!(in_actuators(Limit::FREE, &tenant), Limit::FREE);
        }
    }
}
