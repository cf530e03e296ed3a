//! Bandwidth and cache ways: a resctrl group of the tenant's own, with its threads in it (kernel
//! documentation, filesystems/resctrl).
//!
//! If the processor can limit the bandwidth of slow memory separately (AMD's SMBA), that limit is used. A new
//! thread starts in the group of the thread that created it.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::capability::Unavailable;
use weir_model::units::GbPerSec;

use super::KernelAccess;
use crate::process::started;
use crate::resctrl::{Resctrl, Resource};
use crate::root::Root;

const MOUNT: &str = "/sys/fs/resctrl";

/// The scale of a bandwidth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub resource: Resource,
    /// The value of 100 %.
    pub all: f64,
    pub least: u64,
    /// The step to which values are rounded.
    pub step: u64,
}

/// The resource by which bandwidth can be limited here.
///
/// # Errors
/// There is none; or resctrl counts in MB/s and the full bandwidth is not configured.
pub(crate) fn scale(root: &Root, full: Option<GbPerSec>) -> Result<Scale, Unavailable> {
    let resctrl = Resctrl::find(root)?;
    let schemata = resctrl.schemata("")?;
    let mut both = [Resource::Smba, Resource::Mb].into_iter();
    let resource = both.find(|r| schemata.resources().any(|known| known == *r));
    let resource = resource.ok_or_else(|| {
        Unavailable::because(
            "this processor does not allocate bandwidth (no MB in resctrl's schemata)",
        )
    })?;
    let limits = resctrl.bandwidth_limits(resource)?;
    let of_default = schemata.iter().filter(|(known, ..)| *known == resource);
    let most = of_default.map(|(.., value)| value).max().unwrap_or(100);
    let all = if in_megabytes(root) && resource == Resource::Mb {
        let full = full.ok_or_else(|| {
            Unavailable::because(
                "resctrl is mounted with mba_MBps: say what all of the bandwidth is, in GB/s, or mount it without",
            )
        })?;
        full.get() * 1e9 / f64::from(1 << 20)
    } else {
        most as f64
    };
    Ok(Scale {
        resource,
        all,
        least: limits.least,
        step: limits.step,
    })
}

/// Whether bandwidths are in MB/s, and the kernel regulates towards them.
fn in_megabytes(root: &Root) -> bool {
    let mounts = root.text("/proc/mounts");
    mounts.known().is_some_and(|mounts| {
        (mounts.lines())
            .filter(|line| line.split_whitespace().nth(2) == Some("resctrl"))
            .any(|line| line.contains("mba_MBps"))
    })
}

/// Whose group it is: it is a part of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A tenant of the host.
    Tenant,
    /// Threads of a measurement.
    Run,
}

/// The instances of a resource for which a value is set; `None` for all.
pub(crate) type Domains<'d> = Option<&'d BTreeSet<u32>>;

/// A tenant's own group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Own {
    path: String,
}

impl Own {
    /// Makes one; owner and `number` separate it from other groups of this process.
    pub fn make(
        access: &mut KernelAccess<'_>,
        owner: Owner,
        number: usize,
    ) -> Result<Self, Unavailable> {
        let path = format!("{MOUNT}/{}", own_name(access.root, owner, number));
        let made = access.writes.make(&path, "tasks");
        made.map_err(|why| with_status(access.root, why))?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Moves in the threads that are not in yet; the earlier group of each is recorded.
    pub fn gather(
        &self,
        access: &mut KernelAccess<'_>,
        threads: &[u32],
    ) -> Result<(), Unavailable> {
        let inside = inside(access.root, &self.path);
        let outside: Vec<u32> = (threads.iter().copied())
            .filter(|thread| !inside.contains(thread))
            .collect();
        if outside.is_empty() {
            return Ok(());
        }
        let lists = lists(access.root);
        let mut from: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        let first = format!("{MOUNT}/tasks");
        for thread in outside {
            let known = lists.get(&thread).map_or(first.as_str(), String::as_str);
            from.entry(known).or_default().push(thread);
        }
        for (list, threads) in from {
            access.writes.take(&self.path, list, &threads)?;
        }
        Ok(())
    }

    /// Sets a resource in some domains, and returns the smallest value of one of them.
    pub fn set(
        &self,
        access: &mut KernelAccess<'_>,
        resource: Resource,
        domains: Domains<'_>,
        value: u64,
    ) -> Result<u64, Unavailable> {
        let resctrl = Resctrl::find(access.root)?;
        let is_asked = |domain: &u32| domains.is_none_or(|asked| asked.contains(domain));
        let domains: Vec<u32> = (resctrl.schemata(self.name())?.iter())
            .filter(|(known, ..)| *known == resource)
            .map(|(_, domain, _)| domain)
            .filter(is_asked)
            .collect();
        let path = format!("{}/schemata", self.path);
        let mut least = None;
        for domain in domains {
            let text = resource.assign(domain, value);
            let written = access.writes.set_own(&path, &text);
            written.map_err(|why| with_status(access.root, why))?;
            let now = resctrl.value(self.name(), resource, domain)?;
            least = Some(least.map_or(now, |least: u64| least.min(now)));
        }
        least.ok_or_else(|| Unavailable::because(format!("{path} has no {resource}")))
    }
}

/// A refusal with the kernel's own message, which is about the last command only.
fn with_status(root: &Root, why: Unavailable) -> Unavailable {
    let status = root.text(&format!("{MOUNT}/info/last_cmd_status"));
    match status.known().filter(|said| *said != "ok") {
        Some(said) => Unavailable::because(format!("{why} ({said})")),
        None => why,
    }
}

/// Makes a monitoring group for threads, and returns its path.
///
/// # Errors
/// A thread is in a group of another program, which already counts its bytes; or the kernel refuses.
pub(crate) fn make_monitor(
    access: &mut KernelAccess<'_>,
    number: usize,
    threads: &[u32],
) -> Result<String, Unavailable> {
    let lists = lists(access.root);
    if let Some(list) = threads.iter().find_map(|thread| lists.get(thread)) {
        return Err(Unavailable::because(format!(
            "its threads are in {list}, a group of another program"
        )));
    }
    let name = own_name(access.root, Owner::Tenant, number);
    let path = format!("{MOUNT}/mon_groups/{name}");
    access.writes.make(&path, "tasks")?;
    access
        .writes
        .take(&path, &format!("{MOUNT}/tasks"), threads)?;
    Ok(path)
}

/// Moves threads that began since then into a monitoring group, unless they are in another group.
pub(crate) fn monitor_more(
    access: &mut KernelAccess<'_>,
    monitor: &str,
    threads: &[u32],
) -> Result<(), Unavailable> {
    let lists = lists(access.root);
    let new = threads.iter().filter(|thread| !lists.contains_key(thread));
    let new: Vec<u32> = new.copied().collect();
    let list = format!("{MOUNT}/tasks");
    access.writes.take(monitor, &list, &new).map(drop)
}

/// A name that no other process gives to a group.
fn own_name(root: &Root, owner: Owner, number: usize) -> String {
    let process = std::process::id();
    let start = started(root, process).unwrap_or(0);
    let owner = match owner {
        Owner::Tenant => "steer",
        Owner::Run => "bench",
    };
    format!("weir-{owner}-{process}-{start}-{number}")
}

/// Limits a group's bandwidth to this percentage of the scale; returns the percentage in force.
pub(crate) fn bandwidth(
    access: &mut KernelAccess<'_>,
    own: &Own,
    scale: Scale,
    domains: Domains<'_>,
    percent: u32,
) -> Result<u32, Unavailable> {
    let wanted = (f64::from(percent.min(100)) / 100.0 * scale.all).round() as u64;
    let wanted = wanted.max(scale.least).max(1);
    own.set(access, scale.resource, domains, wanted)?;
    in_force(access.root, own, scale)
}

/// The percentage of the scale that a group has.
pub(crate) fn in_force(root: &Root, own: &Own, scale: Scale) -> Result<u32, Unavailable> {
    let schemata = Resctrl::find(root)?.schemata(own.name())?;
    let values = schemata
        .iter()
        .filter(|(known, ..)| *known == scale.resource);
    let least = values.map(|(.., value)| value).min();
    let least = least
        .ok_or_else(|| Unavailable::because(format!("{} has no {}", own.path, scale.resource)))?;
    Ok((least as f64 / scale.all * 100.0).round() as u32)
}

/// Limits the ways that a group's lines fill; returns the ways in force.
pub(crate) fn ways(
    access: &mut KernelAccess<'_>,
    own: &Own,
    domains: Domains<'_>,
    mask: u64,
) -> Result<u64, Unavailable> {
    let resctrl = Resctrl::find(access.root)?;
    let mut found = mask;
    for resource in resctrl.last_level()? {
        resctrl.cache_limits(resource)?.check(mask)?;
        found = own.set(access, resource, domains, mask)?;
    }
    Ok(found)
}

/// The threads in a group.
fn inside(root: &Root, path: &str) -> BTreeSet<u32> {
    let tasks = root.text(&format!("{path}/tasks"));
    let lines = tasks.known().map_or("", String::as_str).lines();
    lines.filter_map(|line| line.trim().parse().ok()).collect()
}

/// The list of every thread in a group other than the default group, as resctrl has it.
fn lists(root: &Root) -> BTreeMap<u32, String> {
    let mut all = BTreeMap::new();
    let mut read = |folder: &str, deeper: bool| {
        let names = root.list(folder);
        for name in names.known().map_or(&[][..], Vec::as_slice) {
            let path = format!("{folder}/{name}/tasks");
            let text = root.text(&path);
            let Some(text) = text.known() else { continue };
            for thread in text.lines().filter_map(|line| line.trim().parse().ok()) {
                // A thread of a monitoring group is also in the list of the group above.
                if deeper || !all.contains_key(&thread) {
                    all.insert(thread, path.clone());
                }
            }
        }
    };
    read(MOUNT, false);
    let groups = root.list(MOUNT);
    read(&format!("{MOUNT}/mon_groups"), true);
    for name in groups.known().map_or(&[][..], Vec::as_slice) {
        read(&format!("{MOUNT}/{name}/mon_groups"), true);
    }
    all
}
