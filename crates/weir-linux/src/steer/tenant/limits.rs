//! The limits of a tenant: set, removed, and read back in every window.

use std::mem::discriminant;
use std::time::{Duration, Instant};

use weir_model::action::Action;
use weir_model::capability::Unavailable;
use weir_model::units::Nanos;

use super::Tenant;
use crate::process::started;
use crate::root::Root;
use crate::steer::actuators::{Actuator, KernelAccess, allocation, clock, cores, time};
use crate::steer::config::HostConfig;
use crate::steer::group;
use crate::steer::scope::Scope;
use crate::steer::sensors::traffic::Monitored;
use crate::topology::list;

/// The limits of a tenant now.
#[derive(Debug, Default)]
pub(super) struct ActiveLimit {
    /// The limits in force, as last read back; that of cores first.
    applied: Vec<Action>,
    /// The requested share of processor time, and its period.
    time: Option<(f64, Nanos)>,
    own: Option<allocation::Own>,
    /// When it was last changed, by actuator.
    last: Vec<(Actuator, Instant)>,
}

/// What separates a tenant from a later one of the same name: the inode number of its group, and when its process began.
pub(super) type Incarnation = (u64, Option<u64>);

impl Tenant {
    /// Its group and process now, if they exist.
    pub(super) fn incarnation(&self, root: &Root) -> Option<Incarnation> {
        let group = root.number_of(&self.group)?;
        match self.scope {
            Scope::Pid(process) => Some((group, Some(started(root, process)?))),
            _ => Some((group, None)),
        }
    }

    /// Its limits were removed by another thread.
    pub(in crate::steer) fn forget(&mut self) {
        self.limit = ActiveLimit::default();
    }

    /// Reads back the limits in force, and returns those that are different from what was last applied or read. A group
    /// that was made again has none.
    pub(in crate::steer) fn read_back(
        &mut self,
        access: &mut KernelAccess<'_>,
        config: &HostConfig,
    ) -> Vec<Action> {
        let now = self.incarnation(access.root);
        let is_same = now == self.incarnation;
        let mut changed = Vec::new();
        for k in 0..self.limit.applied.len() {
            let known = self.limit.applied[k].clone();
            let found = match is_same {
                true => self.in_force(access, config, &known),
                false => None,
            };
            let found = found.unwrap_or_else(|| free(&known));
            if found != known {
                self.limit.applied[k] = found.clone();
                changed.push(found);
            }
        }
        if !is_same {
            self.begin_again(access, now);
        }
        let cpus = self.cpus.len();
        self.limit.applied.retain(|limit| !is_free(limit, cpus));
        changed
    }

    /// What a limit is now; `None` if that cannot be read.
    fn in_force(
        &self,
        access: &mut KernelAccess<'_>,
        config: &HostConfig,
        limit: &Action,
    ) -> Option<Action> {
        let mut limit = limit.clone();
        match &mut limit {
            Action::Cores { cores, .. } => {
                let found = group::processors(access.root, &self.group).ok()?.len();
                *cores = u32::try_from(found)
                    .ok()
                    .filter(|_| found < self.cpus.len());
            }
            Action::ProcessorTime { share, .. } => {
                *share = time::in_force(access.root, &self.group, self.running()).ok()?;
            }
            Action::Bandwidth { percent, .. } => {
                let own = self.limit.own.as_ref()?;
                // Threads that began outside of it, as in a container that was entered.
                own.gather(access, &self.threads(access.root)).ok()?;
                let scale = allocation::scale(access.root, config.full).ok()?;
                *percent = allocation::in_force(access.root, own, scale).ok()?;
            }
            Action::Clock { clock, .. } => {
                *clock = Some(clock::in_force(access.root, &self.cpus).ok()?);
            }
            _ => {}
        }
        Some(limit)
    }

    /// Another group has its name now, or none: the values of the old one went with it.
    fn begin_again(&mut self, access: &mut KernelAccess<'_>, now: Option<Incarnation>) {
        access.writes.drop_gone();
        self.limit.time = None;
        // It may have begun again while it was being limited.
        let _ = cores::let_go(access, &self.group);
        let _ = time::let_go(access, &self.group);
        // Another process of this number is not the tenant.
        if matches!(self.scope, Scope::Pid(_)) {
            return;
        }
        // The clock belongs to processors, and these may be others now.
        let _ = clock::let_go(access, &self.cpus);
        self.incarnation = now;
        if now.is_some()
            && let Ok(cpus) = group::processors(access.root, &self.group)
        {
            self.cpus = cpus;
        }
        // Its pages and threads are others.
        self.look = None;
    }

    /// Limits it or removes a limit, and returns the limit in force.
    pub(in crate::steer) fn act(
        &mut self,
        access: &mut KernelAccess<'_>,
        action: &Action,
        config: &HostConfig,
        others: &[Vec<u32>],
    ) -> Result<Action, Unavailable> {
        let is_free = |action: &Action| is_free(action, self.cpus.len());
        let now = self.incarnation(access.root);
        if !is_free(action) && (now.is_none() || now != self.incarnation) {
            return Err(Unavailable::because(format!(
                "{} has ended, or began again in this window; it is limited from the next one on",
                self.scope
            )));
        }
        let applied = self.apply(access, action, config, others)?;
        self.note(&applied);
        Ok(applied)
    }

    /// Takes over a limit that is in force.
    fn note(&mut self, applied: &Action) {
        let limits = &mut self.limit.applied;
        limits.retain(|known| discriminant(known) != discriminant(applied));
        if !is_free(applied, self.cpus.len()) {
            let place = match applied {
                Action::Cores { .. } => 0,
                _ => limits.len(),
            };
            limits.insert(place, applied.clone());
        }
    }

    fn apply(
        &mut self,
        access: &mut KernelAccess<'_>,
        action: &Action,
        config: &HostConfig,
        others: &[Vec<u32>],
    ) -> Result<Action, Unavailable> {
        let tenant = self.name.clone();
        match *action {
            Action::Cores { cores, .. } => {
                let wanted = cores.filter(|&n| (n as usize) < self.cpus.len());
                self.permit(Actuator::Cores, config, wanted.is_none())?;
                let found = match wanted {
                    Some(n) => cores::limit(access, &self.group, &self.cpus, n)?,
                    None => {
                        cores::let_go(access, &self.group)?;
                        group::processors(access.root, &self.group)?
                    }
                };
                let found = u32::try_from(found.len()).unwrap_or(u32::MAX);
                let cores = cores.map(|_| found);
                let applied = Action::Cores { tenant, cores };
                self.note(&applied);
                self.keep_time(access);
                Ok(applied)
            }
            Action::ProcessorTime { share, period, .. } => {
                let free = share.is_nan() || share >= 1.0;
                self.permit(Actuator::ProcessorTime, config, free)?;
                let share = if free {
                    time::let_go(access, &self.group)?;
                    self.limit.time = None;
                    1.0
                } else {
                    let wanted = share.max(config.floor);
                    let found = time::limit(access, &self.group, wanted, self.running(), period)?;
                    self.limit.time = Some((wanted, period));
                    found
                };
                Ok(Action::ProcessorTime {
                    tenant,
                    share,
                    period,
                })
            }
            Action::Bandwidth { percent, .. } => {
                self.permit(Actuator::Bandwidth, config, percent >= 100)?;
                if percent >= 100 && self.limit.own.is_none() {
                    return Ok(Action::Bandwidth {
                        tenant,
                        percent: 100,
                    });
                }
                let scale = allocation::scale(access.root, config.full)?;
                let floor = (config.floor * 100.0).ceil() as u32;
                let own = self.own(access)?;
                own.gather(access, &self.threads(access.root))?;
                let percent = allocation::bandwidth(access, &own, scale, None, percent.max(floor))?;
                Ok(Action::Bandwidth { tenant, percent })
            }
            Action::CacheWays { mask, .. } => {
                self.permit(Actuator::CacheWays, config, false)?;
                let own = self.own(access)?;
                own.gather(access, &self.threads(access.root))?;
                let found = allocation::ways(access, &own, None, u64::from(mask))?;
                let mask = u32::try_from(found).unwrap_or(u32::MAX);
                Ok(Action::CacheWays { tenant, mask })
            }
            Action::Clock { clock, .. } => {
                self.permit(Actuator::Clock, config, clock.is_none())?;
                let Some(wanted) = clock else {
                    clock::let_go(access, &self.cpus)?;
                    return Ok(Action::Clock {
                        tenant,
                        clock: None,
                    });
                };
                alone_on(access.root, &self.cpus, others)?;
                let clock = Some(clock::limit(access, &self.cpus, wanted)?);
                Ok(Action::Clock { tenant, clock })
            }
            Action::Prefetchers { .. } => Err(Unavailable::because(
                "prefetchers belong to cores, not to a tenant",
            )),
            Action::InterleaveWeights { .. } => Err(Unavailable::because(
                "the weights of interleaving are the system's, and not a tenant's",
            )),
            Action::MovePages { .. } | Action::Place { .. } => Err(Unavailable::because(
                "pages are moved by the machine that started the tenant",
            )),
        }
    }

    /// Keeps its share of time, which is of the cores that it has. A refusal shows when limits are read back.
    fn keep_time(&mut self, access: &mut KernelAccess<'_>) {
        let Some((wanted, period)) = self.limit.time else {
            return;
        };
        if let Ok(share) = time::limit(access, &self.group, wanted, self.running(), period) {
            let tenant = self.name.clone();
            self.note(&Action::ProcessorTime {
                tenant,
                share,
                period,
            });
        }
    }

    /// Cores that it may use now.
    fn running(&self) -> u32 {
        let all = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        match self.limit.applied.first() {
            Some(Action::Cores {
                cores: Some(cores), ..
            }) => *cores,
            _ => all,
        }
    }

    /// Its group of resctrl, made when it is first needed.
    fn own(&mut self, access: &mut KernelAccess<'_>) -> Result<allocation::Own, Unavailable> {
        // A watchdog may have restored it.
        if let Some(own) =
            (self.limit.own.as_ref()).filter(|own| access.writes.has_made(own.path()))
        {
            return Ok(own.clone());
        }
        let own = allocation::Own::make(access, allocation::Owner::Tenant, self.number)?;
        self.monitored = Monitored::of(access.root, || Ok(own.path().to_owned()));
        Ok(self.limit.own.insert(own).clone())
    }

    /// Whether it may be changed by an actuator now.
    fn permit(
        &mut self,
        actuator: Actuator,
        config: &HostConfig,
        free: bool,
    ) -> Result<(), Unavailable> {
        let allowed = self.actuator.iter().find(|(known, _)| *known == actuator);
        if let Some((_, Err(why))) = allowed {
            // A tenant that cannot be limited is free already.
            return if free { Ok(()) } else { Err(why.clone()) };
        }
        let now = Instant::now();
        let last = self
            .limit
            .last
            .iter_mut()
            .find(|(known, _)| *known == actuator);
        let dwell = Duration::from_nanos(config.dwell.get().max(0.0) as u64);
        match last {
            Some((_, at)) if !free && now.duration_since(*at) < dwell => {
                Err(Unavailable::because(format!(
                    "{actuator} was changed less than {:.0} ms ago",
                    config.dwell.get() / 1e6
                )))
            }
            Some((_, at)) => {
                *at = now;
                Ok(())
            }
            None => {
                self.limit.last.push((actuator, now));
                Ok(())
            }
        }
    }
}

/// The same action without a limit.
fn free(limit: &Action) -> Action {
    let mut limit = limit.clone();
    match &mut limit {
        Action::Cores { cores, .. } => *cores = None,
        Action::ProcessorTime { share, .. } => *share = 1.0,
        Action::Bandwidth { percent, .. } => *percent = 100,
        Action::Clock { clock, .. } => *clock = None,
        _ => {}
    }
    limit
}

/// Whether an action does not limit a tenant with this many processors.
fn is_free(action: &Action, cpus: usize) -> bool {
    match action {
        Action::Cores { cores, .. } => cores.is_none_or(|cores| cores as usize >= cpus),
        Action::ProcessorTime { share, .. } => share.is_nan() || *share >= 1.0,
        Action::Bandwidth { percent, .. } => *percent >= 100,
        Action::Clock { clock, .. } => clock.is_none(),
        _ => false,
    }
}

/// Whether no other tenant uses some processors.
fn alone_on(root: &Root, cpus: &[u32], others: &[Vec<u32>]) -> Result<(), Unavailable> {
    let online = root.text("/sys/devices/system/cpu/online");
    let online = list::parse(online.get()?)?;
    if online.iter().all(|cpu| cpus.contains(cpu)) {
        return Err(Unavailable::because(
            "it may run on every processor, whose clocks it shares with all programs; give it processors of its own (cpuset.cpus)",
        ));
    }
    if others.iter().flatten().any(|cpu| cpus.contains(cpu)) {
        return Err(Unavailable::because(
            "other tenants may run on its processors and share their clocks",
        ));
    }
    Ok(())
}
