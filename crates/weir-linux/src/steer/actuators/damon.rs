//! DAMON's schemes that migrate pages: hot ones to one node, cold ones to another, with a quota each (kernel documentation,
//! admin-guide/mm/damon/usage.rst).
//!
//! Each scheme has a kernel thread of its own, which watches only memory from which the scheme may take pages: pages that are
//! on its node already would use up its quota. The number of threads and the state of each are journalled; what is set below
//! them goes with them.

use std::fmt::Display;

use weir_model::capability::Unavailable;
use weir_model::scope::Scope;
use weir_model::tiering::{Heat, SchemeCounts};
use weir_model::units::{GbPerSec, Nanos};

use super::KernelAccess;
use crate::control::DAMON;
use crate::heat::damon::{COUNT, end_left};
use crate::root::Root;
use crate::steer::group::MOUNT;
use crate::steer::scope::group_of;
use crate::steer::sensors::touched::Blocks;

/// The times of a sample of each region, and of the samples that are counted together.
const SAMPLE: Nanos = Nanos(5e6);
const LOOK: Nanos = Nanos(1e8);
/// A region is hot if this many of the 20 samples of a look, at least, met a touch.
const HOT: u64 = 1;
/// A region is cold if none of this many looks met a touch.
const COLD: u64 = 50;
/// Regions of a thread.
const LEAST_REGIONS: u32 = 100;
const MOST_REGIONS: u32 = 2000;

/// A scheme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scheme {
    /// What it takes.
    pub heat: Heat,
    /// The node to which it brings that.
    pub node: u32,
    /// What it tries in a second, at most.
    pub rate: GbPerSec,
}

/// The memory to which schemes apply: that of a process, or of a control group, or (`None`) all.
pub type SchemesOf<'s> = Option<&'s Scope>;

/// Whether the kernel has DAMON, and no process uses it.
///
/// # Errors
/// Why not.
fn is_free(root: &Root) -> Result<(), Unavailable> {
    end_left(root);
    let used: u32 = *root.value(COUNT).get().map_err(|why| {
        Unavailable::because(format!(
            "{why}; schemes of DAMON need Linux 6.11 with CONFIG_DAMON_SYSFS and CONFIG_DAMON_PADDR"
        ))
    })?;
    match used {
        0 => Ok(()),
        _ => Err(Unavailable::because(format!(
            "another program uses DAMON ({COUNT} is {used}), which is left to it; if it was left by one that has ended, \
             write 0 to it"
        ))),
    }
}

/// Starts schemes, a kernel thread each. `nodes` are those from which pages may be taken.
///
/// # Errors
/// The kernel lacks something, another program uses DAMON, or this user may not. What was begun stays, for the journal
/// to restore.
pub(crate) fn set(
    access: &mut KernelAccess<'_>,
    schemes: &[Scheme],
    of: SchemesOf<'_>,
    nodes: &[u32],
) -> Result<(), Unavailable> {
    is_free(access.root)?;
    access.writes.set(COUNT, &schemes.len().to_string())?;
    for (number, scheme) in schemes.iter().enumerate() {
        let folder = format!("{DAMON}/{number}");
        let context = format!("{folder}/contexts/0");
        put(access.root, &format!("{folder}/contexts/nr_contexts"), 1)?;
        watch(access.root, &context, scheme, of, nodes)?;
        act(access.root, &format!("{context}/schemes"), scheme, of)?;
        let state = access.writes.set(&format!("{folder}/state"), "on");
        state.map_err(|why| {
            Unavailable::because(format!(
                "{why}; DAMON may be in use by a module of the kernel"
            ))
        })?;
    }
    Ok(())
}

/// What a thread watches.
fn watch(
    root: &Root,
    context: &str,
    scheme: &Scheme,
    of: SchemesOf<'_>,
    nodes: &[u32],
) -> Result<(), Unavailable> {
    let put = |path: &str, value: &dyn Display| put(root, &format!("{context}/{path}"), value);
    let (operations, option) = match of {
        Some(Scope::Pid(_)) => ("vaddr", "CONFIG_DAMON_VADDR"),
        _ => ("paddr", "CONFIG_DAMON_PADDR"),
    };
    let listed = root.text(&format!("{context}/avail_operations"));
    if !listed.get()?.lines().any(|line| line == operations) {
        return Err(Unavailable::because(format!(
            "this kernel's DAMON has no `{operations}` ({option})"
        )));
    }
    put("operations", &operations)?;
    let micros = |time: Nanos| (time.get() / 1e3).round() as u64;
    put("monitoring_attrs/intervals/sample_us", &micros(SAMPLE))?;
    put("monitoring_attrs/intervals/aggr_us", &micros(LOOK))?;
    put("monitoring_attrs/nr_regions/max", &MOST_REGIONS)?;
    put("monitoring_attrs/nr_regions/min", &LEAST_REGIONS)?;
    put("targets/nr_targets", &1)?;
    if let Some(Scope::Pid(process)) = of {
        return put("targets/0/pid_target", process);
    }
    let from: Vec<u32> = (nodes.iter().copied())
        .filter(|node| *node != scheme.node)
        .collect();
    let ranges = Blocks::of(root)?.ranges(&from);
    if ranges.is_empty() {
        return Err(Unavailable::because(format!(
            "no node but {} has memory, so that there is none to migrate there",
            scheme.node
        )));
    }
    put("targets/0/regions/nr_regions", &ranges.len())?;
    for (number, (start, end)) in ranges.iter().enumerate() {
        put(&format!("targets/0/regions/{number}/start"), start)?;
        put(&format!("targets/0/regions/{number}/end"), end)?;
    }
    Ok(())
}

/// What a thread does.
fn act(root: &Root, schemes: &str, scheme: &Scheme, of: SchemesOf<'_>) -> Result<(), Unavailable> {
    put(root, &format!("{schemes}/nr_schemes"), 1)?;
    let put = |path: &str, value: &dyn Display| put(root, &format!("{schemes}/0/{path}"), value);
    if matches!(of, Some(Scope::Pid(_))) && !root.exists(&format!("{schemes}/0/dests")) {
        return Err(Unavailable::because(
            "this kernel's DAMON does not migrate memory of one process, which needs Linux 6.17; \
             name its control group, or leave --schemes-of out",
        ));
    }
    let action = match scheme.heat {
        Heat::Hot => "migrate_hot",
        Heat::Cold => "migrate_cold",
    };
    put("action", &action).map_err(|why| {
        Unavailable::because(format!("{why}; DAMON's `{action}` needs Linux 6.11"))
    })?;
    put("target_nid", &scheme.node)?;
    let (touches, age) = match scheme.heat {
        Heat::Hot => ((HOT, u64::from(u32::MAX)), (0, u64::from(u32::MAX))),
        Heat::Cold => ((0, 0), (COLD, u64::from(u32::MAX))),
    };
    for (key, (least, most)) in [
        ("sz", (0, u64::MAX)),
        ("nr_accesses", touches),
        ("age", age),
    ] {
        put(&format!("access_pattern/{key}/max"), &most)?;
        put(&format!("access_pattern/{key}/min"), &least)?;
    }
    // Of more than the quota the hottest or coldest regions come first.
    put(
        "quotas/bytes",
        &((scheme.rate.get() * 1e9) as u64).max(4096),
    )?;
    put("quotas/reset_interval_ms", &1000)?;
    put("quotas/weights/nr_accesses_permil", &500)?;
    put("quotas/weights/age_permil", &500)?;
    let group = match of {
        None | Some(Scope::Pid(_)) => return Ok(()),
        Some(scope) => group_of(root, scope)?,
    };
    if !root.exists(&format!("{group}/memory.current")) {
        return Err(Unavailable::because(format!(
            "{group} does not have the memory controller (`echo +memory` to cgroup.subtree_control of the group above)"
        )));
    }
    put("filters/nr_filters", &1)?;
    put("filters/0/type", &"memcg")?;
    put(
        "filters/0/memcg_path",
        &group.strip_prefix(MOUNT).unwrap_or(&group),
    )?;
    // What is not of the group is left out.
    put("filters/0/matching", &"N")
}

/// What a scheme has tried and done since it was started.
///
/// # Errors
/// Its thread has stopped, as it does when a process ends.
pub fn counts(root: &Root, number: usize) -> Result<SchemeCounts, Unavailable> {
    let folder = format!("{DAMON}/{number}");
    put(root, &format!("{folder}/state"), "update_schemes_stats").map_err(|why| {
        Unavailable::because(format!(
            "DAMON has stopped, as it does when a process ends ({why})"
        ))
    })?;
    let count = |name: &str| {
        let count = root.value(&format!("{folder}/contexts/0/schemes/0/stats/{name}"));
        count.get().copied()
    };
    Ok(SchemeCounts {
        tried_regions: count("nr_tried")?,
        tried: count("sz_tried")?,
        applied_regions: count("nr_applied")?,
        applied: count("sz_applied")?,
        quota_exceeded: count("qt_exceeds")?,
    })
}

fn put(root: &Root, path: &str, value: impl Display) -> Result<(), Unavailable> {
    root.write(path, &value.to_string()).map_err(|why| {
        let hint = match why.kind() {
            std::io::ErrorKind::PermissionDenied => "; it is for root",
            _ => "",
        };
        Unavailable::because(format!("writing {value} to {path}: {why}{hint}"))
    })
}
