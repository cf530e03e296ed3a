//! A tenant of this host: found by its scope, seen, held.

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_model::action::Action;
use weir_model::capability::Unavailable;
use weir_model::units::Nanos;

use super::group::{self, MOUNT, file};
use super::host::{HostConfig, HostError, TenantSeen};
use super::ledger::{Ledger, Wrote};
use super::means::{Hands, Means, allocation, clock, cores, time};
use super::scope::{Scope, group_of};
use super::sight::busy::Busy;
use super::sight::residency::{self, Residency};
use super::sight::traffic::{self, Moved};
use crate::process::started;
use crate::root::Root;
use crate::topology::list;

/// A tenant.
#[derive(Debug)]
pub struct Tenant {
    name: String,
    scope: Scope,
    restrain: bool,
    /// The group that is seen, and held if it may be.
    group: String,
    /// A process that is to be put into a group of its own, and the group that it is in.
    moves: Option<(u32, String)>,
    cpus: Vec<u32>,
    means: Vec<(Means, Result<(), Unavailable>)>,
    number: usize,
    held: Held,
    busy: Busy,
    moved: Result<Moved, Unavailable>,
    pages: Result<Arc<Residency>, Unavailable>,
}

/// To what a tenant is held now.
#[derive(Debug, Default)]
struct Held {
    cores: Option<u32>,
    time: Option<(f64, Nanos)>,
    own: Option<allocation::Own>,
    /// When it was last changed, by means.
    last: Vec<(Means, Instant)>,
}

/// What is wrong with a request, all of it at once.
#[derive(Debug, Default)]
pub(super) struct Refusals(Vec<String>);

impl Refusals {
    fn add(&mut self, tenant: &str, why: impl std::fmt::Display) {
        self.0.push(format!("tenant `{tenant}`: {why}"));
    }

    pub fn end(self) -> Result<(), HostError> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(HostError::Refused(self.0))
    }
}

impl Tenant {
    /// Finds every tenant that is asked for.
    pub(super) fn find_all(root: &Root, config: &HostConfig, refusals: &mut Refusals) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (number, asked) in config.tenants.iter().enumerate() {
            if all.iter().any(|known| known.name == asked.name) {
                refusals.add(&asked.name, "this name is given twice");
                continue;
            }
            match Self::find(root, config, number) {
                Ok(tenant) => {
                    for other in &all {
                        if let Some(why) = other.overlaps(&tenant) {
                            refusals.add(&tenant.name, why);
                        }
                    }
                    all.push(tenant);
                }
                Err(why) => refusals.add(&asked.name, why),
            }
        }
        all
    }

    fn find(root: &Root, config: &HostConfig, number: usize) -> Result<Self, Unavailable> {
        let asked = &config.tenants[number];
        let mut group = group_of(root, &asked.scope)?;
        let mut moves = None;
        let mut busy = Busy::of_group(&group);
        if let Scope::Process(process) = asked.scope {
            let alone = group != MOUNT && group::processes(root, &group) == [process];
            if !alone {
                busy = Busy::of_process(process);
            }
            if !alone && asked.restrain {
                if !config.own_groups {
                    return Err(Unavailable::because(format!(
                        "process {process} shares the control group {group} with others; name a scope of its own (systemd-run --scope), or allow it a group of its own"
                    )));
                }
                let own = format!("{group}/weir-steer-{}-{number}", std::process::id());
                busy = Busy::of_group(&own);
                moves = Some((process, std::mem::replace(&mut group, own)));
            }
        }
        let seen_in = moves.as_ref().map_or(&group, |(_, from)| from);
        let cpus = group::processors(root, seen_in)?;
        let means = Means::ALL.map(|means| {
            let allowed = if !asked.restrain {
                Err(Unavailable::because("it is not to be held"))
            } else if config.means.contains(&means) {
                available(root, config, means, &group, &cpus)
            } else {
                Err(Unavailable::because("not configured"))
            };
            (means, allowed)
        });
        if asked.restrain && means.iter().all(|(_, allowed)| allowed.is_err()) {
            let why: Vec<String> = (means.iter())
                .filter_map(|(means, allowed)| {
                    Some(format!("{means}: {}", allowed.as_ref().err()?))
                })
                .collect();
            return Err(Unavailable::because(format!(
                "nothing can hold it: {}",
                why.join("; ")
            )));
        }
        Ok(Self {
            name: asked.name.clone(),
            scope: asked.scope.clone(),
            restrain: asked.restrain,
            group,
            moves,
            cpus,
            means: means.into(),
            number,
            held: Held::default(),
            busy,
            moved: Err(Unavailable::because("its bytes are not counted")),
            pages: Err(Unavailable::because("its pages were not looked at yet")),
        })
    }

    /// Whether it and another could not be told apart, and one of them is to be held.
    fn overlaps(&self, other: &Self) -> Option<String> {
        if !self.restrain && !other.restrain {
            return None;
        }
        let is_process = |t: &Self| matches!(t.scope, Scope::Process(_)) && !t.restrain;
        let of = |t: &Self| match &t.moves {
            Some((_, from)) => from.clone(),
            None => t.group.clone(),
        };
        // Two processes of one group are apart as long as each is alone or moved.
        let below = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}/"));
        let (mine, others) = (of(self), of(other));
        let both = (&self.scope, &other.scope);
        if let (Scope::Process(a), Scope::Process(b)) = both {
            return (a == b).then(|| format!("process {a} is also tenant `{}`", self.name));
        }
        // A process that is only seen lies in a held group, or a held group above a seen process.
        let clash = if is_process(self) {
            below(&mine, &others)
        } else if is_process(other) {
            below(&others, &mine)
        } else {
            below(&mine, &others) || below(&others, &mine)
        };
        clash.then(|| {
            format!(
                "its scope {} overlaps that of tenant `{}`, {}; one of two that are held or protected must not be in the other",
                other.scope, self.name, self.scope
            )
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whom it means.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Its control group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The processors that it may run on when nobody holds it.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// By what it can be held, or why not.
    pub fn means(&self) -> &[(Means, Result<(), Unavailable>)] {
        &self.means
    }

    /// Whether it can be held by this.
    pub fn can(&self, means: Means) -> bool {
        let mut means_of = self.means.iter();
        means_of.any(|(known, allowed)| *known == means && allowed.is_ok())
    }

    /// Whether it may be held at all.
    pub fn is_restrained(&self) -> bool {
        self.restrain
    }

    /// Makes the groups that it takes to see and hold it.
    pub(super) fn settle(
        &mut self,
        root: &Root,
        ledger: &mut Ledger,
        config: &HostConfig,
        wrote: &mut Vec<Wrote>,
    ) {
        let mut hands = Hands {
            root,
            ledger,
            wrote,
        };
        if let Some((process, from)) = self.moves.clone()
            && let Err(why) = own_group(&mut hands, process, &from, &self.group)
        {
            for (_, allowed) in &mut self.means {
                *allowed = allowed.clone().and(Err(why.clone()));
            }
            self.busy = Busy::of_process(process);
        }
        if config.monitor {
            self.moved = self.monitor(&mut hands);
        }
    }

    /// Counts its bytes in a monitoring group, where none of its threads is in a group of somebody's.
    fn monitor(&self, hands: &mut Hands<'_>) -> Result<Moved, Unavailable> {
        traffic::find(hands.root)?;
        let path = allocation::make_monitor(hands, self.number, &self.group)?;
        Ok(Moved::of(hands.root, &path))
    }

    pub(super) fn look_at_pages(&mut self, root: &Root) {
        let pages = match self.scope {
            Scope::Process(process) => residency::of_processes(root, &[process]),
            _ => residency::of_group(root, &self.group),
        };
        self.pages = pages.map(Arc::new);
    }

    pub(super) fn window(
        &mut self,
        root: &Root,
        window: Nanos,
        buffer: &mut Vec<u8>,
    ) -> TenantSeen {
        let ran = self.busy.window(root, buffer);
        let drew = match &mut self.moved {
            Ok(moved) => moved.window(root, window, buffer),
            Err(why) => Err(why.clone()),
        };
        TenantSeen {
            cores: u32::try_from(self.cpus.len()).unwrap_or(u32::MAX),
            busy: ran.as_ref().map_or(true, |ran| ran.is_busy(window)),
            ran,
            drew,
            pages: self.pages.clone(),
        }
    }

    /// What was put back behind its back.
    pub(super) fn forget(&mut self) {
        self.held = Held::default();
    }

    pub(super) fn act(
        &mut self,
        hands: &mut Hands<'_>,
        action: &Action,
        config: &HostConfig,
        others: &[Vec<u32>],
    ) -> Result<Action, Unavailable> {
        let tenant = self.name.clone();
        match *action {
            Action::Cores { cores, .. } => {
                let wanted = cores.filter(|&n| (n as usize) < self.cpus.len());
                self.permit(Means::Cores, config, wanted.is_none())?;
                let found = match wanted {
                    Some(n) => cores::hold(hands, &self.group, &self.cpus, n)?,
                    None => {
                        cores::let_go(hands, &self.group)?;
                        group::processors(hands.root, &self.group)?
                    }
                };
                let found = u32::try_from(found.len()).unwrap_or(u32::MAX);
                self.held.cores = wanted.map(|_| found);
                // Its share of time is of the cores that it has.
                if let Some((share, period)) = self.held.time {
                    time::hold(hands, &self.group, share, self.running(), period)?;
                }
                let cores = cores.map(|_| found);
                Ok(Action::Cores { tenant, cores })
            }
            Action::ProcessorTime { share, period, .. } => {
                let free = share.is_nan() || share >= 1.0;
                self.permit(Means::ProcessorTime, config, free)?;
                if free {
                    time::let_go(hands, &self.group)?;
                    self.held.time = None;
                    let share = 1.0;
                    return Ok(Action::ProcessorTime {
                        tenant,
                        share,
                        period,
                    });
                }
                let share = share.max(config.floor);
                let found = time::hold(hands, &self.group, share, self.running(), period)?;
                self.held.time = Some((share, period));
                let share = found;
                Ok(Action::ProcessorTime {
                    tenant,
                    share,
                    period,
                })
            }
            Action::Bandwidth { percent, .. } => {
                self.permit(Means::Bandwidth, config, percent >= 100)?;
                if percent >= 100 && self.held.own.is_none() {
                    return Ok(Action::Bandwidth {
                        tenant,
                        percent: 100,
                    });
                }
                let scale = allocation::scale(hands.root, config.full)?;
                let floor = (config.floor * 100.0).ceil() as u32;
                let own = self.own(hands)?;
                own.gather(hands, &self.group)?;
                let percent = allocation::bandwidth(hands, &own, scale, percent.max(floor))?;
                Ok(Action::Bandwidth { tenant, percent })
            }
            Action::CacheWays { mask, .. } => {
                self.permit(Means::CacheWays, config, false)?;
                let own = self.own(hands)?;
                own.gather(hands, &self.group)?;
                let found = allocation::ways(hands, &own, u64::from(mask))?;
                let mask = u32::try_from(found).unwrap_or(u32::MAX);
                Ok(Action::CacheWays { tenant, mask })
            }
            Action::Clock { clock, .. } => {
                self.permit(Means::Clock, config, clock.is_none())?;
                let Some(wanted) = clock else {
                    clock::let_go(hands, &self.cpus)?;
                    return Ok(Action::Clock {
                        tenant,
                        clock: None,
                    });
                };
                alone_on(hands.root, &self.cpus, others)?;
                let clock = Some(clock::hold(hands, &self.cpus, wanted)?);
                Ok(Action::Clock { tenant, clock })
            }
            Action::Prefetchers { .. } => Err(Unavailable::because(
                "prefetchers belong to cores, and not to a tenant",
            )),
        }
    }

    /// Cores that it may run on now.
    fn running(&self) -> u32 {
        let all = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        self.held.cores.unwrap_or(all)
    }

    /// Its group of resctrl, made when it is first needed.
    fn own(&mut self, hands: &mut Hands<'_>) -> Result<allocation::Own, Unavailable> {
        if let Some(own) = &self.held.own {
            return Ok(own.clone());
        }
        let own = allocation::Own::make(hands, self.number)?;
        self.moved = Ok(Moved::of(hands.root, own.path()));
        Ok(self.held.own.insert(own).clone())
    }

    /// Whether it may be changed by some means now.
    fn permit(&mut self, means: Means, config: &HostConfig, free: bool) -> Result<(), Unavailable> {
        let allowed = self.means.iter().find(|(known, _)| *known == means);
        if let Some((_, Err(why))) = allowed {
            // What cannot be held is free already.
            return if free { Ok(()) } else { Err(why.clone()) };
        }
        let now = Instant::now();
        let last = self.held.last.iter_mut().find(|(known, _)| *known == means);
        let dwell = Duration::from_nanos(config.dwell.get().max(0.0) as u64);
        match last {
            Some((_, at)) if !free && now.duration_since(*at) < dwell => {
                Err(Unavailable::because(format!(
                    "{means} was changed less than {:.0} ms ago",
                    config.dwell.get() / 1e6
                )))
            }
            Some((_, at)) => {
                *at = now;
                Ok(())
            }
            None => {
                self.held.last.push((means, now));
                Ok(())
            }
        }
    }
}

/// Whether a means can hold a group here.
fn available(
    root: &Root,
    config: &HostConfig,
    means: Means,
    group: &str,
    cpus: &[u32],
) -> Result<(), Unavailable> {
    let has_file = |name: &str, controller: &str| {
        group::may_have(root, group, controller)?;
        let path = file(group, name);
        if root.exists(&path) {
            writable(root, &path)
        } else {
            writable(root, &file(MOUNT, "cgroup.subtree_control"))
        }
    };
    match means {
        Means::Cores => has_file("cpuset.cpus", "cpuset"),
        Means::ProcessorTime => has_file("cpu.max", "cpu"),
        Means::Bandwidth => {
            allocation::scale(root, config.full)?;
            writable(root, "/sys/fs/resctrl/schemata")
        }
        Means::CacheWays => {
            crate::resctrl::Resctrl::find(root)?.last_level()?;
            writable(root, "/sys/fs/resctrl/schemata")
        }
        Means::Clock => {
            for policy in clock::policies(root, cpus)? {
                writable(root, &format!("{policy}/scaling_max_freq"))?;
            }
            Ok(())
        }
    }
}

/// Whether this user may write a file. Nothing is written.
fn writable(root: &Root, path: &str) -> Result<(), Unavailable> {
    root.open(path, true).map(drop).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::PermissionDenied => "; it is for root (CAP_DAC_OVERRIDE)",
            std::io::ErrorKind::ReadOnlyFilesystem => "; it is mounted to be read only",
            _ => "",
        };
        Unavailable::because(format!("cannot write {path}: {error}{hint}"))
    })
}

/// Whether nobody else runs on some processors.
fn alone_on(root: &Root, cpus: &[u32], others: &[Vec<u32>]) -> Result<(), Unavailable> {
    let online = root.text("/sys/devices/system/cpu/online");
    let online = list::parse(online.get()?)?;
    if online.iter().all(|cpu| cpus.contains(cpu)) {
        return Err(Unavailable::because(
            "it may run on every processor, whose clocks are everybody's; give it processors of its own (cpuset.cpus)",
        ));
    }
    if others.iter().flatten().any(|cpu| cpus.contains(cpu)) {
        return Err(Unavailable::because(
            "other tenants may run on its processors, whose clocks are theirs too",
        ));
    }
    Ok(())
}

/// Puts a process into a group of its own, below the one that it is in: threaded, so that its memory
/// stays with that group, and no other process has to move.
fn own_group(
    hands: &mut Hands<'_>,
    process: u32,
    from: &str,
    own: &str,
) -> Result<(), Unavailable> {
    let gone = || Unavailable::because(format!("there is no process {process} any more"));
    started(hands.root, process).ok_or_else(gone)?;
    hands.ledger.make(own, "cgroup.threads")?;
    hands.set_own(&file(own, "cgroup.type"), "threaded")?;
    let given = group::give(hands.root, hands.ledger, own, "cpu")?;
    hands.wrote.extend(given);
    // Threads begin while others move.
    for _ in 0..8 {
        let all = hands.root.list(&format!("/proc/{process}/task"));
        let all = all.get()?.iter().filter_map(|name| name.parse().ok());
        let inside = hands.root.text(&file(own, "cgroup.threads"));
        let inside = inside.known().cloned().unwrap_or_default();
        let is_inside = |id: &u32| inside.lines().any(|line| line.trim().parse() == Ok(*id));
        let outside: Vec<u32> = all.filter(|id| !is_inside(id)).collect();
        if outside.is_empty() {
            return Ok(());
        }
        let list = file(from, "cgroup.threads");
        hands.ledger.take(own, &list, &outside)?;
    }
    Err(Unavailable::because(format!(
        "process {process} begins threads faster than they can be moved"
    )))
}
