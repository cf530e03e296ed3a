//! A model as a plant: phases of tenants on a machine that has no journal to keep.

use weir_model::action::Action;
use weir_model::capability::Unavailable;
use weir_model::counters::CounterSet;
use weir_model::machine::{Machine, MachineError, Observation};
use weir_model::tenant::Tenant;
use weir_model::units::Nanos;

use super::{Actuators, AppliedLimit, NotPutBack, Plant, PlantError, TenantOf, change};
use crate::control_loop::{Phase, SteeredTenant};
use crate::limit::Limit;
use crate::readings::{Readings, Role, TenantReadings};

/// Phases, one after another, on a machine. The last one goes on for as long as it is looked at.
pub struct Model<'a> {
    machine: &'a mut dyn Machine,
    phases: Vec<Phase>,
    quota_period: Nanos,
    tenants: Vec<TenantOf>,
    /// To what each tenant is held, whether it runs or not.
    held: Vec<Limit>,
    /// The phase that runs, and when it ends.
    running: Option<(usize, Nanos)>,
    now: Nanos,
}

impl<'a> Model<'a> {
    /// A plant of whoever runs in any of the phases. A tenant of several phases is one tenant, known by its
    /// name, with the role and cores of its first.
    pub fn new(machine: &'a mut dyn Machine, phases: Vec<Phase>, quota_period: Nanos) -> Self {
        let actuators = Actuators::of_model(machine.topology());
        let mut tenants: Vec<TenantOf> = Vec::new();
        for steered in phases.iter().flat_map(|p| &p.parties) {
            if !tenants.iter().any(|t| t.name == steered.tenant.name) {
                tenants.push(TenantOf {
                    name: steered.tenant.name.clone(),
                    role: steered.role,
                    cores: steered.tenant.cores.len() as u32,
                    actuators: actuators.clone(),
                });
            }
        }
        Self {
            machine,
            held: vec![Limit::FREE; tenants.len()],
            tenants,
            phases,
            quota_period,
            running: None,
            now: Nanos(0.0),
        }
    }

    /// The same plant, whose tenants can be held by these means alone.
    #[must_use]
    pub fn with_actuators(mut self, actuators: &Actuators) -> Self {
        for tenant in &mut self.tenants {
            tenant.actuators = actuators.clone();
        }
        self
    }

    /// How much time has passed.
    pub fn now(&self) -> Nanos {
        self.now
    }

    fn parties(&self) -> &[SteeredTenant] {
        self.running.map_or(&[], |(k, _)| &self.phases[k].parties)
    }

    /// The phase of the next window: puts its tenants on the machine if they are not there yet, held as
    /// they were, unless they are protected now.
    fn enter_phase(&mut self) -> Result<(), MachineError> {
        let (mut k, mut end) = match self.running {
            Some((_, end)) if self.now < end => return Ok(()),
            Some((k, _)) if k + 1 >= self.phases.len() => return Ok(()),
            Some((k, end)) => (k + 1, end),
            None => (0, Nanos(0.0)),
        };
        while let Some(phase) = self.phases.get(k) {
            end = end + phase.lasts;
            if self.now < end || k + 1 == self.phases.len() {
                break;
            }
            k += 1;
        }
        let Some(phase) = self.phases.get(k) else {
            return Ok(());
        };
        let tenants: Vec<Tenant> = phase.parties.iter().map(|p| p.tenant.clone()).collect();
        self.machine.stop()?;
        if !tenants.is_empty() {
            self.machine.start(&tenants)?;
        }
        self.running = Some((k, end));
        for i in 0..self.tenants.len() {
            let limit = self.held[i];
            let name = &self.tenants[i].name;
            let mut parties = self.parties().iter().filter(|p| p.tenant.name == *name);
            if parties.any(|p| p.role == Role::Protected) {
                self.held[i] = Limit::FREE;
                continue;
            }
            // A refusal was reported when the hold was new.
            self.change(i, Limit::FREE, limit);
        }
        Ok(())
    }

    /// Takes a tenant from one hold to another, if it runs; says what is in force.
    fn change(&mut self, tenant: usize, from: Limit, to: Limit) -> AppliedLimit {
        let name = self.tenants[tenant].name.clone();
        if !self.parties().iter().any(|p| p.tenant.name == name) {
            return AppliedLimit {
                requested: to,
                applied: to,
                refused: Vec::new(),
            };
        }
        let (machine, actuators) = (&mut *self.machine, &self.tenants[tenant].actuators);
        let act = |action: &Action| match actuators.can(action) {
            true => machine.act(action).map_err(|why| why.to_string()),
            false => Err("tenants of this model have no such actuator".to_owned()),
        };
        change(&name, from, to, self.quota_period, act)
    }

    fn sights(&self, seen: &Observation) -> Vec<TenantReadings> {
        let of = |tenant: &TenantOf| {
            let k = (self.parties().iter()).position(|p| p.tenant.name == tenant.name)?;
            Some((&self.parties()[k], seen.tenants.get(k)?))
        };
        (self.tenants.iter())
            .map(|tenant| {
                let Some((steered, progress)) = of(tenant) else {
                    return TenantReadings {
                        role: tenant.role,
                        cores: tenant.cores,
                        busy: false,
                        drew: Err(Unavailable::because("it had nothing to run")),
                    };
                };
                TenantReadings {
                    role: steered.role,
                    cores: steered.tenant.cores.len() as u32,
                    busy: true,
                    drew: if progress.accesses > 0 {
                        Ok(progress.bandwidth(seen.window))
                    } else {
                        Err(Unavailable::because("it touched nothing"))
                    },
                }
            })
            .collect()
    }
}

impl Plant for Model<'_> {
    fn tenants(&self) -> &[TenantOf] {
        &self.tenants
    }

    fn observe(&mut self, window: Nanos) -> Result<Readings, PlantError> {
        self.enter_phase()?;
        let seen = if self.parties().is_empty() {
            Observation {
                window,
                tenants: Vec::new(),
                counters: CounterSet::default(),
            }
        } else {
            self.machine.observe(window)?
        };
        self.now = self.now + window;
        Ok(Readings::of(&seen, self.sights(&seen)))
    }

    fn apply(&mut self, limits: &[Limit]) -> Vec<AppliedLimit> {
        (0..self.tenants.len())
            .map(|i| {
                let to = limits.get(i).copied().unwrap_or(Limit::FREE);
                let after = self.change(i, self.held[i], to);
                self.held[i] = after.applied;
                after
            })
            .collect()
    }

    fn release(&mut self) -> Vec<NotPutBack> {
        self.held.fill(Limit::FREE);
        self.running = None;
        let Err(why) = self.machine.stop() else {
            return Vec::new();
        };
        let left = |tenant: &TenantOf| NotPutBack {
            tenant: tenant.name.clone(),
            what: "its run".to_owned(),
            reason: why.to_string(),
        };
        self.tenants.iter().map(left).collect()
    }
}
