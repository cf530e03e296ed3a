//! Cores: `cpuset.cpus` of a control group.
//!
//! The kernel accepts no empty list for a group with tasks in it (ENOSPC), though groups begin with one. An
//! empty list is restored by removing the controller that Weir gave to the group; if the group had the
//! controller before, its cores are not changed.

use weir_model::capability::Unavailable;

use super::KernelAccess;
use crate::root::Root;
use crate::steer::group::{self, file};
use crate::topology::list;

/// Limits a group to the first `count` of the processors that it had, and returns the processors in force.
///
/// A processor that was unplugged since then is not counted.
pub(crate) fn limit(
    access: &mut KernelAccess<'_>,
    group: &str,
    all: &[u32],
    cores: u32,
) -> Result<Vec<u32>, Unavailable> {
    let path = file(group, "cpuset.cpus");
    is_no_partition(access.root, group)?;
    if !access.root.exists(&path) {
        access.give(group, "cpuset")?;
    } else if access.writes.before(&path).is_none() && !access.has_given(group, "cpuset") {
        may_be_restored(access.root, group)?;
    }
    let there = match group::above(group) {
        Some(above) => group::processors(access.root, above)?,
        None => all.to_vec(),
    };
    let first: Vec<u32> = (all.iter().copied())
        .filter(|cpu| there.contains(cpu))
        .take(cores.max(1) as usize)
        .collect();
    if first.is_empty() {
        return Err(Unavailable::because(format!(
            "none of the processors {} that {group} had is left",
            list::format(all)
        )));
    }
    access.writes.set(&path, &list::format(&first))?;
    // The groups above may reduce the list in force.
    group::processors(access.root, group)
}

/// Lets a group run wherever the groups above may.
pub(crate) fn let_go(access: &mut KernelAccess<'_>, group: &str) -> Result<(), Unavailable> {
    let path = file(group, "cpuset.cpus");
    match (access.writes.before(&path), group::above(group)) {
        (Some(""), Some(above)) if is_no_partition(access.root, group).is_ok() => {
            let all = group::processors(access.root, above)?;
            access.writes.set(&path, &list::format(&all)).map(drop)
        }
        _ => access.put_back(&path),
    }
}

/// Whether a changed list could be restored.
///
/// # Errors
/// The group is a partition, or its list is empty, and the kernel accepts no empty list while tasks are in the group: there may be some later.
pub(crate) fn may_be_restored(root: &Root, group: &str) -> Result<(), Unavailable> {
    is_no_partition(root, group)?;
    let path = file(group, "cpuset.cpus");
    if root.text(&path).known().is_some_and(String::is_empty) {
        return Err(Unavailable::because(format!(
            "{path} is empty, which the kernel does not take again while tasks are in the group; set it to what is meant, or take +cpuset away from the group above"
        )));
    }
    Ok(())
}

/// Processors that a partition gives up are other groups' at once, and may be another partition's later.
fn is_no_partition(root: &Root, group: &str) -> Result<(), Unavailable> {
    match group::partition(root, group) {
        None => Ok(()),
        Some(kind) => Err(Unavailable::because(format!(
            "{group} is a partition (its cpuset.cpus.partition is `{kind}`), whose processors are not changed"
        ))),
    }
}
