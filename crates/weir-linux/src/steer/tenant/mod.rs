//! A tenant of this host: found by its scope (`find`), observed, limited.

mod find;

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_model::action::Action;
use weir_model::capability::Unavailable;
use weir_model::units::Nanos;

use super::actuators::{Actuator, KernelAccess, allocation, clock, cores, time};
use super::config::HostConfig;
use super::group::{self, file};
use super::journalled_writes::JournalledWrites;
use super::observation::TenantObservation;
use super::scope::Scope;
use super::sensors::busy::Busy;
use super::sensors::residency::{self, Residency};
use super::sensors::traffic::{self, Moved};
use crate::process::started;
use crate::root::Root;
use crate::topology::list;

pub(super) use find::Refusals;

/// A tenant.
#[derive(Debug)]
pub struct Tenant {
    name: String,
    scope: Scope,
    restrain: bool,
    /// The group that is observed, and limited if it may be.
    group: String,
    /// A process that will be moved into a group of its own, and its present group.
    moves: Option<(u32, String)>,
    /// Whether the group belongs to it alone.
    alone: bool,
    cpus: Vec<u32>,
    actuator: Vec<(Actuator, Result<(), Unavailable>)>,
    number: usize,
    held: ActiveLimit,
    busy: Busy,
    moved: Result<Moved, Unavailable>,
    pages: Result<Arc<Residency>, Unavailable>,
    look: Option<PageScan>,
    was_busy: bool,
    retired: bool,
}

/// When a tenant's pages are read again, and how many windows after the last time.
#[derive(Debug, Clone, Copy)]
struct PageScan {
    due: u64,
    after: u64,
}

/// The factor from one interval to the next.
const RARER: u64 = 8;

impl PageScan {
    /// The next reading after one in window `now`. Pages that do not move are read less and less often: pages
    /// of a new tenant still move, and most pages later stay for good.
    fn next(last: Option<Self>, stayed: bool, now: u64, rarest: u64) -> Self {
        let after = match last {
            Some(look) if stayed => (look.after * RARER).min(rarest),
            _ => 1,
        };
        let due = now + after;
        Self { due, after }
    }
}

/// The limits of a tenant now.
#[derive(Debug, Default)]
struct ActiveLimit {
    cores: Option<u32>,
    time: Option<(f64, Nanos)>,
    own: Option<allocation::Own>,
    /// When it was last changed, by actuator.
    last: Vec<(Actuator, Instant)>,
}

impl Tenant {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its scope.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Its control group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The processors that it may use without a limit.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Its actuators, or why it has none.
    pub fn actuator(&self) -> &[(Actuator, Result<(), Unavailable>)] {
        &self.actuator
    }

    /// Whether it can be limited by this.
    pub fn can(&self, actuator: Actuator) -> bool {
        let mut means_of = self.actuator.iter();
        means_of.any(|(known, allowed)| *known == actuator && allowed.is_ok())
    }

    /// Whether it may be limited at all.
    pub fn is_restrained(&self) -> bool {
        self.restrain
    }

    /// Makes the groups that are needed to observe and limit it.
    pub(super) fn settle(
        &mut self,
        root: &Root,
        writes: &mut JournalledWrites,
        config: &HostConfig,
    ) {
        let mut access = KernelAccess { root, writes };
        if let Some((process, from)) = self.moves.clone()
            && let Err(why) = own_group(&mut access, process, &from, &self.group)
        {
            for (_, allowed) in &mut self.actuator {
                *allowed = allowed.clone().and(Err(why.clone()));
            }
            self.busy = Busy::of_process(process);
        }
        if config.monitor {
            self.moved = self.monitor(&mut access);
        }
    }

    /// Counts its bytes in a monitoring group, if none of its threads is in a group of another program.
    fn monitor(&self, access: &mut KernelAccess<'_>) -> Result<Moved, Unavailable> {
        traffic::find(access.root)?;
        let path = allocation::make_monitor(access, self.number, &self.group)?;
        Ok(Moved::of(access.root, &path))
    }

    /// It is no tenant any more.
    pub(super) fn retire(&mut self) {
        self.retired = true;
        let due = u64::MAX;
        self.look = Some(PageScan { due, after: 1 });
    }

    /// Whether it is no tenant any more.
    pub(super) fn is_retired(&self) -> bool {
        self.retired
    }

    /// The window in which its pages will be read again; `None` before the first time.
    pub(super) fn due(&self) -> Option<u64> {
        self.look.map(|look| look.due)
    }

    /// Reads the nodes of its pages, in window `now`, and at least once in `rarest` windows.
    pub(super) fn look_at_pages(&mut self, root: &Root, now: u64, rarest: u64) {
        let pages = match self.scope {
            Scope::Pid(process) => residency::of_processes(root, &[process]),
            _ => residency::of_group(root, &self.group),
        };
        let stayed = match (&self.pages, &pages) {
            (Ok(before), Ok(after)) => before.is_like(after),
            (before, after) => before.is_err() && after.is_err() && self.look.is_some(),
        };
        self.look = Some(PageScan::next(self.look, stayed, now, rarest));
        self.pages = pages.map(Arc::new);
    }

    pub(super) fn window(
        &mut self,
        root: &Root,
        window: Nanos,
        buffer: &mut Vec<u8>,
    ) -> TenantObservation {
        if self.retired {
            let gone = || Unavailable::because("it is no tenant any more");
            return TenantObservation {
                cores: 0,
                busy: false,
                ran: Err(gone()),
                drew: Err(gone()),
                touched: Err(gone()),
                pages: Err(gone()),
            };
        }
        let ran = self.busy.window(root, buffer);
        let drew = match &mut self.moved {
            Ok(moved) => moved.window(root, window, buffer),
            Err(why) => Err(why.clone()),
        };
        let busy = ran.as_ref().map_or(true, |ran| ran.is_busy(window));
        if busy && !self.was_busy {
            // A tenant that starts something may have its pages elsewhere.
            self.look = self.look.map(|look| PageScan { due: 0, ..look });
        }
        self.was_busy = busy;
        TenantObservation {
            cores: u32::try_from(self.cpus.len()).unwrap_or(u32::MAX),
            busy,
            ran,
            drew,
            touched: Err(Unavailable::because("accesses are not sampled")),
            pages: self.pages.clone(),
        }
    }

    /// A value that was restored by another thread.
    pub(super) fn forget(&mut self) {
        self.held = ActiveLimit::default();
    }

    pub(super) fn act(
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
                self.held.cores = wanted.map(|_| found);
                // Its share of time is of the cores that it has.
                if let Some((share, period)) = self.held.time {
                    time::limit(access, &self.group, share, self.running(), period)?;
                }
                let cores = cores.map(|_| found);
                Ok(Action::Cores { tenant, cores })
            }
            Action::ProcessorTime { share, period, .. } => {
                let free = share.is_nan() || share >= 1.0;
                self.permit(Actuator::ProcessorTime, config, free)?;
                if free {
                    time::let_go(access, &self.group)?;
                    self.held.time = None;
                    let share = 1.0;
                    return Ok(Action::ProcessorTime {
                        tenant,
                        share,
                        period,
                    });
                }
                let share = share.max(config.floor);
                let found = time::limit(access, &self.group, share, self.running(), period)?;
                self.held.time = Some((share, period));
                let share = found;
                Ok(Action::ProcessorTime {
                    tenant,
                    share,
                    period,
                })
            }
            Action::Bandwidth { percent, .. } => {
                self.permit(Actuator::Bandwidth, config, percent >= 100)?;
                if percent >= 100 && self.held.own.is_none() {
                    return Ok(Action::Bandwidth {
                        tenant,
                        percent: 100,
                    });
                }
                let scale = allocation::scale(access.root, config.full)?;
                let floor = (config.floor * 100.0).ceil() as u32;
                let own = self.own(access)?;
                own.gather(access, &self.group)?;
                let percent = allocation::bandwidth(access, &own, scale, percent.max(floor))?;
                Ok(Action::Bandwidth { tenant, percent })
            }
            Action::CacheWays { mask, .. } => {
                self.permit(Actuator::CacheWays, config, false)?;
                let own = self.own(access)?;
                own.gather(access, &self.group)?;
                let found = allocation::ways(access, &own, u64::from(mask))?;
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

    /// Cores that it may use now.
    fn running(&self) -> u32 {
        let all = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        self.held.cores.unwrap_or(all)
    }

    /// Its group of resctrl, made when it is first needed.
    fn own(&mut self, access: &mut KernelAccess<'_>) -> Result<allocation::Own, Unavailable> {
        // A watchdog may have restored it.
        if let Some(own) = (self.held.own.as_ref()).filter(|own| access.writes.has_made(own.path()))
        {
            return Ok(own.clone());
        }
        let own = allocation::Own::make(access, self.number)?;
        self.moved = Ok(Moved::of(access.root, own.path()));
        Ok(self.held.own.insert(own).clone())
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
            .held
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
                self.held.last.push((actuator, now));
                Ok(())
            }
        }
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

/// Moves a process into a group of its own, below its present group: threaded, so that its memory stays with
/// that group, and no other process must move.
fn own_group(
    access: &mut KernelAccess<'_>,
    process: u32,
    from: &str,
    own: &str,
) -> Result<(), Unavailable> {
    let gone = || Unavailable::because(format!("process {process} has ended"));
    started(access.root, process).ok_or_else(gone)?;
    access.writes.make(own, "cgroup.threads")?;
    access
        .writes
        .set_own(&file(own, "cgroup.type"), "threaded")?;
    group::give(access.root, access.writes, own, "cpu")?;
    // Threads start while others move.
    for _ in 0..8 {
        let all = access.root.list(&format!("/proc/{process}/task"));
        let all = all.get()?.iter().filter_map(|name| name.parse().ok());
        let inside = access.root.text(&file(own, "cgroup.threads"));
        let inside = inside.known().cloned().unwrap_or_default();
        let is_inside = |id: &u32| inside.lines().any(|line| line.trim().parse() == Ok(*id));
        let outside: Vec<u32> = all.filter(|id| !is_inside(id)).collect();
        if outside.is_empty() {
            return Ok(());
        }
        let list = file(from, "cgroup.threads");
        access.writes.take(own, &list, &outside)?;
    }
    Err(Unavailable::because(format!(
        "process {process} starts threads faster than they can be moved"
    )))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn who_stays_is_looked_at_ever_more_rarely_and_who_moves_at_once(
            stayed in prop::collection::vec(any::<bool>(), 1..60), rarest in 1u64..2000,
        ) {
            let (mut look, mut now) = (None, 0);
            for &stayed in &stayed {
                let next = PageScan::next(look, stayed, now, rarest);
                prop_assert!(next.due > now && next.due <= now + rarest);
                if !stayed {
                    prop_assert_eq!(next.due, now + 1);
                }
                let before = look.map_or(0, |look: PageScan| look.after);
                prop_assert!(!stayed || next.after >= before.min(rarest));
                (look, now) = (Some(next), next.due);
            }
        }
    }
}
