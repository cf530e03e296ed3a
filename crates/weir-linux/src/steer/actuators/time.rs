//! Processor time: `cpu.max` of a control group.

use weir_model::capability::Unavailable;
use weir_model::units::Nanos;

use super::KernelAccess;
use crate::root::Root;
use crate::steer::group::file;
use crate::steer::quota::Quota;

/// Gives a group a share of the time of some processors, and returns the share in force.
pub(crate) fn limit(
    access: &mut KernelAccess<'_>,
    group: &str,
    share: f64,
    processors: u32,
    period: Nanos,
) -> Result<f64, Unavailable> {
    let path = file(group, "cpu.max");
    if !access.root.exists(&path) {
        access.give(group, "cpu")?;
    }
    let before = match access.writes.before(&path) {
        Some(before) => Quota::parse(before)?,
        None => Quota::parse(access.root.text(&path).get()?)?,
    };
    let all = f64::from(processors.max(1));
    let quota = Quota::of(share * all, period, before);
    access.writes.set(&path, &quota.to_string())?;
    in_force(access.root, group, processors)
}

/// The share of the time of some processors that a group has.
pub(crate) fn in_force(root: &Root, group: &str, processors: u32) -> Result<f64, Unavailable> {
    let found = Quota::parse(root.text(&file(group, "cpu.max")).get()?)?;
    let all = f64::from(processors.max(1));
    Ok(found.processors().map_or(1.0, |p| (p / all).min(1.0)))
}

/// Restores the time of a group.
pub(crate) fn let_go(access: &mut KernelAccess<'_>, group: &str) -> Result<(), Unavailable> {
    access.put_back(&file(group, "cpu.max"))
}
