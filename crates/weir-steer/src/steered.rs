//! Tenants of a machine under limits: windows come out, limits go in. The machine is a model, or this host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::action::Action;
pub use weir_model::action::Actuators;
use weir_model::capability::Unavailable;
use weir_model::counters::CounterSet;
use weir_model::machine::{
    Machine, MachineError, Observation, ProcessProgress, TenantChange, TenantProgress,
};
use weir_model::tenant::Tenant;
use weir_model::topology::{TierKind, TierName};
use weir_model::units::{GbPerSec, Nanos};

use crate::limit::{AppliedLimit, Limit, Share, change, take_over, words};
use crate::own::Done;
use crate::readings::{Readings, Role, TenantReadings};

/// A tenant and its role.
#[derive(Debug, Clone)]
pub struct SteeredTenant {
    /// The load.
    pub tenant: Tenant,
    /// Whether it is protected, or may be limited.
    pub role: Role,
}

/// Tenants that run for a while.
#[derive(Debug, Clone)]
pub struct Phase {
    /// Its duration.
    pub lasts: Nanos,
    /// The tenants that run. Tenants that are not named have nothing to run.
    pub participants: Vec<SteeredTenant>,
}

/// A tenant as a controller knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantOf {
    /// Its name, unique on the machine: a scope on a host, a load's name on a model.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Cores that it has without a limit.
    pub cores: u32,
    /// The actuators by which it can be limited.
    #[serde(rename = "means")]
    pub actuators: Actuators,
}

/// How limits were removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Released {
    /// What is not as before, each with the reason.
    pub different: Vec<String>,
    /// Whether something could not be restored; otherwise it is left to another program.
    pub is_refused: bool,
}

/// Phases of tenants, one after another, on a machine. The last one goes on for as long as it is observed.
pub struct Steered<'a> {
    machine: &'a mut dyn Machine,
    phases: Vec<Phase>,
    quota_period: Nanos,
    tenants: Vec<TenantOf>,
    /// The limit of each tenant, whether it runs or not.
    held: Vec<Limit>,
    /// The phase that runs, and when it ends.
    running: Option<(usize, Nanos)>,
    now: Nanos,
    /// Whether nothing is written: decisions are made, and no tenant is limited.
    dry: bool,
    /// Tiers on which a tenant can load what the fast tier's tenants wait for.
    slow: Vec<TierName>,
    /// The last window as the machine saw it.
    seen: Observation,
}

impl<'a> Steered<'a> {
    /// The tenants of all phases. A tenant of several phases is one tenant, known by its name, with the role and
    /// cores of its first.
    pub fn new(machine: &'a mut dyn Machine, phases: Vec<Phase>, quota_period: Nanos) -> Self {
        let tiers = machine.topology().tiers.iter();
        let slow = tiers.filter(|tier| {
            matches!(
                tier.kind,
                TierKind::Cxl | TierKind::RemoteCxl | TierKind::CpuLess
            )
        });
        let slow = slow.map(|tier| tier.name.clone()).collect();
        let mut tenants: Vec<TenantOf> = Vec::new();
        for steered in phases.iter().flat_map(|p| &p.participants) {
            if !tenants.iter().any(|t| t.name == steered.tenant.name) {
                tenants.push(tenant_of(machine, steered));
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
            dry: false,
            slow,
            seen: Observation::of(Nanos(0.0), Vec::new(), CounterSet::default()),
        }
    }

    /// Tenants that run on the machine already, in the order of its observations, and go on without end.
    pub fn running(
        machine: &'a mut dyn Machine,
        participants: Vec<SteeredTenant>,
        quota_period: Nanos,
    ) -> Self {
        let lasts = Nanos(f64::INFINITY);
        let mut steered = Self::new(
            machine,
            vec![Phase {
                lasts,
                participants,
            }],
            quota_period,
        );
        steered.running = Some((0, lasts));
        steered
    }

    /// The same, with these actuators for every tenant.
    #[must_use]
    pub fn with_actuators(mut self, actuators: &Actuators) -> Self {
        for tenant in &mut self.tenants {
            tenant.actuators = actuators.clone();
        }
        self
    }

    /// The same; if `dry`, no limit is written.
    #[must_use]
    pub fn dry(mut self, dry: bool) -> Self {
        self.dry = dry;
        self
    }

    /// The tenants. A tenant keeps its position, whether it runs or not; new ones come last, or take the position of
    /// one that has ended, and only in [`Steered::observe`] and [`Steered::find`].
    pub fn tenants(&self) -> &[TenantOf] {
        &self.tenants
    }

    /// The actuators that all tenants that may be limited have in common.
    pub fn actuators(&self) -> Actuators {
        let restrained = self.tenants.iter().filter(|t| t.role == Role::Restrained);
        let common = restrained
            .map(|t| t.actuators.clone())
            .reduce(Actuators::common);
        common.unwrap_or_default()
    }

    /// The limit of each tenant now, in their order; that of a tenant without anything to run is the one that it will
    /// have.
    pub fn held(&self) -> &[Limit] {
        &self.held
    }

    /// The last window as the machine saw it, its tenants in the order of their phase.
    pub fn seen(&self) -> &Observation {
        &self.seen
    }

    /// How much time has passed.
    pub fn now(&self) -> Nanos {
        self.now
    }

    fn participants(&self) -> &[SteeredTenant] {
        self.running
            .map_or(&[], |(k, _)| &self.phases[k].participants)
    }

    /// The position of a tenant among those that run now.
    fn position(&self, tenant: usize) -> Option<usize> {
        let (name, participants) = (&self.tenants[tenant].name, self.participants());
        let is_it = |participant: &SteeredTenant| participant.tenant.name == *name;
        // Mostly it is the same, and there may be hundreds.
        match participants.get(tenant) {
            Some(participant) if is_it(participant) => Some(tenant),
            _ => participants.iter().position(is_it),
        }
    }

    /// Starts the tenants of the next window's phase, unless they run, with the limits that they had, unless they are
    /// protected now.
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
        let tenants: Vec<Tenant> = phase
            .participants
            .iter()
            .map(|p| p.tenant.clone())
            .collect();
        self.machine.stop()?;
        if !tenants.is_empty() {
            self.machine.start(&tenants)?;
        }
        self.running = Some((k, end));
        for i in 0..self.tenants.len() {
            let limit = self.held[i];
            let name = &self.tenants[i].name;
            let mut participants = self
                .participants()
                .iter()
                .filter(|p| p.tenant.name == *name);
            if participants.any(|p| p.role == Role::Protected) {
                self.held[i] = Limit::FREE;
                continue;
            }
            // A refusal was reported when the limit was new.
            self.change(i, Limit::FREE, limit);
        }
        Ok(())
    }

    /// Takes over what the machine found, and returns it in words.
    pub fn find(&mut self) -> Vec<String> {
        let changes = self.machine.find_tenants();
        changes
            .into_iter()
            .map(|change| self.take_over(change))
            .collect()
    }

    fn take_over(&mut self, change: TenantChange) -> String {
        let (place, tenant, restrain, why) = match change {
            TenantChange::Refused { why } => return why,
            TenantChange::Ended { place, why } => {
                if let Some(held) = self.held.get_mut(place) {
                    *held = Limit::FREE;
                }
                return why;
            }
            TenantChange::Found {
                place,
                tenant,
                restrain,
                why,
            } => (place, tenant, restrain, why),
        };
        let role = match restrain {
            true => Role::Restrained,
            false => Role::Protected,
        };
        let tenant = *tenant;
        let steered = SteeredTenant { tenant, role };
        let known = tenant_of(self.machine, &steered);
        let Some(phase) = self.running.and_then(|(k, _)| self.phases.get_mut(k)) else {
            return why;
        };
        if place < self.tenants.len() && place < phase.participants.len() {
            phase.participants[place] = steered;
            self.tenants[place] = known;
        } else {
            phase.participants.push(steered);
            self.tenants.push(known);
            self.held.push(Limit::FREE);
        }
        why
    }

    /// Changes the limit of a tenant, if it runs, and returns the limit in force.
    fn change(&mut self, tenant: usize, from: Limit, to: Limit) -> AppliedLimit {
        let running = self
            .position(tenant)
            .map(|k| &self.participants()[k].tenant);
        let Some(running) = running.filter(|_| from != to) else {
            return AppliedLimit::whole(to);
        };
        let (known, is_host) = (&self.tenants[tenant], running.work.is_of_host());
        let within = match is_host {
            true => in_actuators(to, known),
            false => to,
        };
        let machine = &mut *self.machine;
        let act = |action: &Action| match is_host || known.actuators.can(action) {
            true => machine.act(action).map_err(|why| why.to_string()),
            false => Err("tenants of this model have no such actuator".to_owned()),
        };
        let after = change(&known.name, from, within, self.quota_period, act);
        AppliedLimit {
            requested: to,
            ..after
        }
    }

    fn readings(&self, seen: &Observation) -> Vec<TenantReadings> {
        let of = |i: usize| {
            let k = self.position(i)?;
            let own = seen.tenants.get(k)?;
            Some(self.of_running(&self.participants()[k], own, seen.window))
        };
        let nothing = |tenant: &TenantOf| TenantReadings {
            role: tenant.role,
            cores: tenant.cores,
            busy: false,
            drew: Err(Unavailable::because("it had nothing to run")),
        };
        let tenants = self.tenants.iter().enumerate();
        tenants
            .map(|(i, tenant)| of(i).unwrap_or_else(|| nothing(tenant)))
            .collect()
    }

    fn of_running(
        &self,
        steered: &SteeredTenant,
        own: &TenantProgress,
        window: Nanos,
    ) -> TenantReadings {
        match &own.process {
            Some(process) => TenantReadings {
                role: self.role(steered.role, process),
                cores: process.cores,
                busy: process.busy,
                drew: (process.traffic.clone()).map(|bytes| GbPerSec::from_bytes_in(bytes, window)),
            },
            None => TenantReadings {
                role: steered.role,
                cores: steered.tenant.cores.len() as u32,
                busy: true,
                drew: match own.accesses {
                    0 => Err(Unavailable::because("it touched nothing")),
                    _ => Ok(own.bandwidth(window)),
                },
            },
        }
    }

    /// A tenant that may be limited and does not use the slow tier is not the cause of its load. If the tiers that
    /// it uses are not known, its configured role is used.
    fn role(&self, configured: Role, process: &ProcessProgress) -> Role {
        let is_elsewhere = process.uses.as_ref().is_ok_and(|uses| {
            !uses.is_empty() && !uses.iter().any(|(tier, _)| self.slow.contains(tier))
        });
        match configured {
            Role::Restrained if !self.slow.is_empty() && is_elsewhere => Role::Bystander,
            configured => configured,
        }
    }

    /// Waits for a window and returns its readings, the tenants in the order of [`Steered::tenants`], and the
    /// changes of tenants in words. On a model, time passes here.
    ///
    /// # Errors
    /// The machine failed, or the wait was interrupted. Something that was not counted is unavailable in the
    /// readings, and no error.
    pub fn observe(&mut self, window: Nanos) -> Result<(Readings, Vec<String>), MachineError> {
        self.enter_phase()?;
        let mut changes = self.find();
        let seen = match self.participants().is_empty() {
            true => Observation::of(window, Vec::new(), CounterSet::default()),
            false => self.machine.observe(window)?,
        };
        self.now = self.now + window;
        let readings = self.readings(&seen);
        for (i, seen) in readings.iter().enumerate() {
            let running = self.position(i).map(|k| &self.participants()[k].tenant);
            if running.is_some_and(|tenant| tenant.work.is_of_host()) {
                self.tenants[i].cores = seen.cores;
            }
        }
        changes.extend(self.read_back(&seen));
        let mut readings = Readings::of(&seen, readings);
        let done = |i| {
            let at = self.position(i)?;
            Done::of(
                &self.participants()[at].tenant,
                seen.tenants.get(at)?,
                seen.window,
            )
        };
        readings.done = (0..self.tenants.len()).map(done).collect();
        if let Some(sampled) = &mut readings.sampled {
            let error = |i| sampled.tenants.get(self.position(i)?).copied().flatten();
            sampled.tenants = (0..self.tenants.len()).map(error).collect();
        }
        self.seen = seen;
        Ok((readings, changes))
    }

    /// Takes over the limits that are not as they were applied, and returns that in words.
    fn read_back(&mut self, seen: &Observation) -> Vec<String> {
        let mut changes = Vec::new();
        for i in 0..self.tenants.len() {
            let own = self.position(i).and_then(|k| seen.tenants.get(k));
            let Some(process) = own.and_then(|own| own.process.as_ref()) else {
                continue;
            };
            for limit in &process.limits {
                take_over(&mut self.held[i], limit);
            }
            if !process.limits.is_empty() {
                changes.push(format!(
                    "the limit of {} was changed, or went when its group was made again; now: {}",
                    self.tenants[i].name,
                    words(&self.held[i])
                ));
            }
        }
        changes
    }

    /// Sets these limits, in the order of [`Steered::tenants`]; a tenant without one in `limits` gets no limit. Returns
    /// for each tenant the limit in force, read back.
    pub fn apply(&mut self, limits: &[Limit]) -> Vec<AppliedLimit> {
        (0..self.tenants.len())
            .map(|i| {
                let to = limits.get(i).copied().unwrap_or(Limit::FREE);
                if self.dry {
                    return not_written(to);
                }
                let after = self.change(i, self.held[i], to);
                self.held[i] = after.applied;
                after
            })
            .collect()
    }

    /// Removes all limits and ends the run. A second release is no error.
    pub fn release(&mut self) -> Released {
        self.held.fill(Limit::FREE);
        self.running = None;
        let (different, is_refused) = match self.machine.stop() {
            Ok(notes) => (notes.warnings, false),
            Err(MachineError::NotRestored(different)) => (different, true),
            Err(why) => (vec![why.to_string()], true),
        };
        Released {
            different,
            is_refused,
        }
    }
}

fn tenant_of(machine: &dyn Machine, steered: &SteeredTenant) -> TenantOf {
    TenantOf {
        name: steered.tenant.name.clone(),
        role: steered.role,
        cores: steered.tenant.cores.len() as u32,
        actuators: machine.actuators(&steered.tenant.name),
    }
}

fn not_written(requested: Limit) -> AppliedLimit {
    AppliedLimit {
        requested,
        applied: Limit::FREE,
        refused: match requested.is_free() {
            true => Vec::new(),
            false => vec!["a dry run writes nothing".to_owned()],
        },
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_tenant_that_cannot_be_limited_by_cores_runs_as_much(
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
