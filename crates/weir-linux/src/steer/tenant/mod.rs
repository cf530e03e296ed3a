//! A tenant of this host: found by its scope (`find`), observed, limited (`limits`).

mod find;
mod limits;

use std::sync::Arc;

use weir_model::capability::Unavailable;
use weir_model::units::Nanos;

use super::actuators::{Actuator, KernelAccess, allocation};
use super::config::HostConfig;
use super::group::{self, file};
use super::journalled_writes::JournalledWrites;
use super::observation::TenantObservation;
use super::scope::Scope;
use super::sensors::busy::Busy;
use super::sensors::residency::{self, Residency};
use super::sensors::traffic::Monitored;
use crate::process::started;
use crate::root::Root;

pub(super) use find::Refusals;
use limits::{ActiveLimit, Incarnation};

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
    /// Which one it is, of those that have its name one after another.
    incarnation: Option<Incarnation>,
    limit: ActiveLimit,
    busy: Busy,
    /// Its monitoring group.
    monitor: Option<String>,
    monitored: Monitored,
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
            self.monitored = self.monitor(&mut access);
        }
        self.incarnation = self.incarnation(root);
    }

    /// Counts its bytes in a monitoring group, if none of its threads is in a group of another program.
    fn monitor(&mut self, access: &mut KernelAccess<'_>) -> Monitored {
        Monitored::of(access.root, || {
            let threads = self.threads(access.root);
            let path = allocation::make_monitor(access, self.number, &threads)?;
            Ok(self.monitor.insert(path).clone())
        })
    }

    /// Counts the bytes of threads that began outside of its monitoring group, too.
    pub(super) fn monitor_more(&self, access: &mut KernelAccess<'_>) {
        let monitor = self.monitor.as_deref();
        let Some(monitor) = monitor.filter(|path| access.writes.has_made(path)) else {
            return;
        };
        let threads = self.threads(access.root);
        // Without them its bandwidth is reported too low, which is no reason to end.
        let _ = allocation::monitor_more(access, monitor, &threads);
    }

    /// Its threads. The group of a process may have others, too.
    fn threads(&self, root: &Root) -> Vec<u32> {
        match self.scope {
            Scope::Pid(process) => threads_of(root, process).unwrap_or_default(),
            _ => group::threads(root, &self.group),
        }
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
                held: Err(gone()),
                touched: Err(gone()),
                pages: Err(gone()),
                limits: Vec::new(),
            };
        }
        let ran = self.busy.window(root, buffer);
        let drew = self.monitored.moved(root, window, buffer);
        let held = self.monitored.held(root, buffer);
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
            held,
            touched: Err(Unavailable::because("accesses are not sampled")),
            pages: self.pages.clone(),
            limits: Vec::new(),
        }
    }
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
    access.give(own, "cpu")?;
    // Threads start while others move.
    for _ in 0..8 {
        let all = threads_of(access.root, process)?.into_iter();
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

/// The threads of a process.
fn threads_of(root: &Root, process: u32) -> Result<Vec<u32>, Unavailable> {
    let names = root.list(&format!("/proc/{process}/task"));
    let names = names.get()?.iter();
    Ok(names.filter_map(|name| name.parse().ok()).collect())
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
