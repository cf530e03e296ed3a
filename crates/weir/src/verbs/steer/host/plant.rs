//! A host as a plant.

use weir_linux::steer::{Host, Means as By, Seen, TenantSeen};
use weir_model::machine::Observation;
use weir_model::units::Nanos;
use weir_steer::config::Config;
use weir_steer::plant::{AppliedHold, Means, NotPutBack, Plant, PlantError, TenantOf, change};
use weir_steer::{Hold, Role, Share, Sight, TenantSight};

use super::is_settled;
use crate::interrupt::Stop;

/// This host, its tenants held as they were told to be.
pub struct HostPlant {
    host: Host,
    tenants: Vec<TenantOf>,
    held: Vec<Hold>,
    period: Nanos,
    slow_nodes: Vec<u32>,
    stop: Stop,
}

impl HostPlant {
    /// A host whose tenants are those of the configuration, the protected first.
    pub fn new(host: Host, config: &Config, slow_nodes: Vec<u32>, stop: Stop) -> Self {
        let tenants: Vec<TenantOf> = (host.tenants().iter().enumerate())
            .map(|(i, tenant)| TenantOf {
                name: tenant.name().to_owned(),
                role: if i < config.protect.len() {
                    Role::Protected
                } else {
                    Role::Restrained
                },
                cores: tenant.cpus().len() as u32,
                means: Means {
                    cores: tenant.can(By::Cores),
                    time: tenant.can(By::ProcessorTime),
                    allocation: host.allocation_step(tenant).map(Share::of),
                    clocks: host.clocks(tenant),
                },
            })
            .collect();
        Self {
            host,
            held: vec![Hold::FREE; tenants.len()],
            tenants,
            period: config.period,
            slow_nodes,
            stop,
        }
    }

    /// The means that everybody who may be held has.
    pub fn means(&self) -> Means {
        let restrained = self.tenants.iter().filter(|t| t.role == Role::Restrained);
        let common = restrained.map(|t| t.means.clone()).reduce(|a, b| Means {
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

/// Who may be held and has no page on the slow tier is not to blame for what happens there. Where pages were
/// not seen, it is as it was told.
fn role(told: Role, seen: &TenantSeen, slow_nodes: &[u32]) -> Role {
    let elsewhere = (seen.pages.as_ref())
        .is_ok_and(|pages| pages.total().get() > 0 && pages.on(slow_nodes).get() == 0);
    if told == Role::Restrained && !slow_nodes.is_empty() && elsewhere {
        return Role::Bystander;
    }
    told
}

impl Plant for HostPlant {
    fn tenants(&self) -> &[TenantOf] {
        &self.tenants
    }

    fn observe(&mut self, window: Nanos) -> Result<Sight, PlantError> {
        let Seen {
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
                TenantSight {
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
        Ok(Sight {
            probe,
            ..Sight::of(&seen, sights)
        })
    }

    fn apply(&mut self, holds: &[Hold]) -> Vec<AppliedHold> {
        (0..self.tenants.len())
            .map(|i| {
                let to = holds.get(i).copied().unwrap_or(Hold::FREE);
                let name = &self.tenants[i].name;
                let host = &mut self.host;
                let act = |action: &_| host.act(action).map_err(|why| why.to_string());
                let after = change(name, self.held[i], to, self.period, act);
                self.held[i] = after.applied;
                after
            })
            .collect()
    }

    fn release(&mut self) -> Vec<NotPutBack> {
        self.held.fill(Hold::FREE);
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
