//! Finds tenants by their scopes; all mistakes of a request are reported at once.

use weir_model::capability::Unavailable;

use super::Tenant;
use super::limits::ActiveLimit;
use crate::root::Root;
use crate::steer::actuators::{Actuator, allocation, clock, cores};
use crate::steer::config::HostConfig;
use crate::steer::group::{self, MOUNT, file};
use crate::steer::scope::{Scope, group_of};
use crate::steer::sensors::busy::Busy;
use crate::steer::sensors::traffic::Monitored;

/// All mistakes of a request.
#[derive(Debug, Default)]
pub(in crate::steer) struct Refusals(Vec<String>);

impl Refusals {
    fn add(&mut self, tenant: &str, why: impl std::fmt::Display) {
        self.0.push(format!("tenant `{tenant}`: {why}"));
    }

    pub fn end(self) -> Result<(), Vec<String>> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(self.0)
    }
}

impl Tenant {
    /// Finds every requested tenant.
    pub(in crate::steer) fn find_all(
        root: &Root,
        config: &HostConfig,
        refusals: &mut Refusals,
    ) -> Vec<Self> {
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

    /// Finds one more tenant, with the others known; it replaces the one with its number.
    pub(in crate::steer) fn find_beside(
        root: &Root,
        config: &HostConfig,
        number: usize,
        others: &[Self],
    ) -> Result<Self, Unavailable> {
        let tenant = Self::find(root, config, number)?;
        let others = others
            .iter()
            .enumerate()
            .filter(|(i, other)| *i != number && !other.retired);
        for (_, other) in others {
            if other.name == tenant.name {
                return Err(Unavailable::because("this name is given twice"));
            }
            if let Some(why) = other.overlaps(&tenant) {
                return Err(Unavailable::because(why));
            }
        }
        Ok(tenant)
    }

    fn find(root: &Root, config: &HostConfig, number: usize) -> Result<Self, Unavailable> {
        let asked = &config.tenants[number];
        let mut group = group_of(root, &asked.scope)?;
        let mut moves = None;
        let mut busy = Busy::of_group(&group);
        let mut alone = true;
        if let Scope::Pid(process) = asked.scope {
            alone = group != MOUNT && group::processes(root, &group) == [process];
            if !alone {
                busy = Busy::of_process(process);
            }
            if !alone && asked.restrain {
                if !config.own_groups {
                    return Err(Unavailable::because(format!(
                        "process {process} shares the control group {group} with others; start it in a scope of its own (systemd-run --scope), or allow a group of its own with `own_groups = true` below [tenants]"
                    )));
                }
                let own = format!("{group}/weir-steer-{}-{number}", std::process::id());
                busy = Busy::of_group(&own);
                moves = Some((process, std::mem::replace(&mut group, own)));
            }
        }
        let seen_in = moves.as_ref().map_or(&group, |(_, from)| from);
        let cpus = group::processors(root, seen_in)?;
        let actuator = Actuator::ALL.map(|actuator| {
            let allowed = if !asked.restrain {
                Err(Unavailable::because("it may not be limited"))
            } else if config.actuators.contains(&actuator) {
                available(root, config, actuator, &group, &cpus)
            } else {
                Err(Unavailable::because("not configured"))
            };
            (actuator, allowed)
        });
        if asked.restrain && actuator.iter().all(|(_, allowed)| allowed.is_err()) {
            let why: Vec<String> = (actuator.iter())
                .filter_map(|(actuator, allowed)| {
                    Some(format!("{actuator}: {}", allowed.as_ref().err()?))
                })
                .collect();
            return Err(Unavailable::because(format!(
                "it has no actuator: {}",
                why.join("; ")
            )));
        }
        Ok(Self {
            name: asked.name.clone(),
            scope: asked.scope.clone(),
            restrain: asked.restrain,
            group,
            moves,
            alone,
            cpus,
            actuator: actuator.into(),
            number,
            incarnation: None,
            limit: ActiveLimit::default(),
            busy,
            monitor: None,
            monitored: Monitored::nothing(Unavailable::because("its bytes are not counted")),
            pages: Err(Unavailable::because("its pages were not read yet")),
            look: None,
            was_busy: true,
            retired: false,
        })
    }

    /// Whether it and another could not be separated, and one of them may be limited.
    fn overlaps(&self, other: &Self) -> Option<String> {
        if !self.restrain && !other.restrain {
            return None;
        }
        let both = (&self.scope, &other.scope);
        if let (Scope::Pid(a), Scope::Pid(b)) = both {
            return (a == b).then(|| format!("process {a} is also tenant `{}`", self.name));
        }
        // For a process that shares its group, only the process itself is meant.
        let is_one = |t: &Self| matches!(t.scope, Scope::Pid(_)) && !t.alone;
        let of = |t: &Self| match &t.moves {
            Some((_, from)) => from.clone(),
            None => t.group.clone(),
        };
        let below = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}/"));
        let (mine, others) = (of(self), of(other));
        let clash = match (is_one(self), is_one(other)) {
            (true, _) => below(&mine, &others),
            (_, true) => below(&others, &mine),
            _ => below(&mine, &others) || below(&others, &mine),
        };
        clash.then(|| {
            format!(
                "its scope {} overlaps that of tenant `{}`, {}; two scopes that are limited or protected must not overlap",
                other.scope, self.name, self.scope
            )
        })
    }
}

/// Whether an actuator can limit a group here.
fn available(
    root: &Root,
    config: &HostConfig,
    actuator: Actuator,
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
    match actuator {
        Actuator::Cores => {
            cores::may_be_restored(root, group)?;
            has_file("cpuset.cpus", "cpuset")
        }
        Actuator::ProcessorTime => has_file("cpu.max", "cpu"),
        Actuator::Bandwidth => {
            allocation::scale(root, config.full)?;
            writable(root, "/sys/fs/resctrl/schemata")
        }
        Actuator::CacheWays => {
            crate::resctrl::Resctrl::find(root)?.last_level()?;
            writable(root, "/sys/fs/resctrl/schemata")
        }
        Actuator::Clock => {
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
            std::io::ErrorKind::PermissionDenied => "; this needs root (CAP_DAC_OVERRIDE)",
            std::io::ErrorKind::ReadOnlyFilesystem => "; it is mounted read-only",
            _ => "",
        };
        Unavailable::because(format!("cannot write {path}: {error}{hint}"))
    })
}
