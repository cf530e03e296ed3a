//! The clock of a tenant's processors: `scaling_max_freq` of their cpufreq policies (kernel
//! documentation, admin-guide/pm/cpufreq), in kHz.

use std::collections::BTreeSet;

use weir_model::capability::Unavailable;
use weir_model::units::Gigahertz;

use super::KernelAccess;
use crate::root::Root;
use crate::topology::list;

const CPUS: &str = "/sys/devices/system/cpu";

/// The policies of some processors, if they include no other processors.
///
/// # Errors
/// A processor has none, or shares it with processors that are not among these.
pub(crate) fn policies(root: &Root, cpus: &[u32]) -> Result<Vec<String>, Unavailable> {
    let mut all = BTreeSet::new();
    for cpu in cpus {
        let policy = root.target(&format!("{CPUS}/cpu{cpu}/cpufreq"));
        let Some(policy) = policy.known() else {
            return Err(Unavailable::because(format!(
                "the kernel does not scale the clock of processor {cpu} (no {CPUS}/cpu{cpu}/cpufreq)"
            )));
        };
        let policy = policy.display().to_string();
        let of = root.text(&format!("{policy}/related_cpus"));
        let of = of.get()?.replace(' ', ",");
        if let Some(other) = list::parse(&of)?.iter().find(|other| !cpus.contains(other)) {
            return Err(Unavailable::because(format!(
                "processor {cpu} has one clock with processor {other}, which is not the tenant's alone"
            )));
        }
        all.insert(policy);
    }
    Ok(all.into_iter().collect())
}

/// The clocks to which some processors can be limited, the highest first; if the kernel lists none, both ends
/// of their range.
pub(crate) fn clocks(root: &Root, cpus: &[u32]) -> Vec<Gigahertz> {
    let Ok(policies) = policies(root, cpus) else {
        return Vec::new();
    };
    let Some(policy) = policies.first() else {
        return Vec::new();
    };
    let of = |name: &str| root.text(&format!("{policy}/{name}")).known().cloned();
    let listed = of("scaling_available_frequencies").unwrap_or_else(|| {
        let ends =
            ["scaling_max_freq", "cpuinfo_min_freq"].map(|name| of(name).unwrap_or_default());
        ends.join(" ")
    });
    let numbers = listed
        .split_whitespace()
        .filter_map(|word| word.parse::<u64>().ok());
    let mut all: Vec<u64> = numbers.collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    all.into_iter()
        .map(|khz| Gigahertz(khz as f64 / 1e6))
        .collect()
}

/// Limits the clock of some processors, and returns the limit of the fastest of them.
pub(crate) fn limit(
    access: &mut KernelAccess<'_>,
    cpus: &[u32],
    clock: Gigahertz,
) -> Result<Gigahertz, Unavailable> {
    for policy in policies(access.root, cpus)? {
        let number = |name: &str| access.root.value::<u64>(&format!("{policy}/{name}"));
        let least = *number("cpuinfo_min_freq").get()?;
        let path = format!("{policy}/scaling_max_freq");
        let before = match access.writes.before(&path) {
            Some(before) => before.parse().unwrap_or(u64::MAX),
            None => *number("scaling_max_freq").get()?,
        };
        let wanted = ((clock.get() * 1e6).round() as u64).max(least).min(before);
        access.writes.set(&path, &wanted.to_string())?;
    }
    in_force(access.root, cpus)
}

/// The limit of the fastest of some processors.
pub(crate) fn in_force(root: &Root, cpus: &[u32]) -> Result<Gigahertz, Unavailable> {
    let mut fastest = 0;
    for policy in policies(root, cpus)? {
        let found = root.value::<u64>(&format!("{policy}/scaling_max_freq"));
        fastest = fastest.max(*found.get()?);
    }
    Ok(Gigahertz(fastest as f64 / 1e6))
}

/// Restores the clocks.
pub(crate) fn let_go(access: &mut KernelAccess<'_>, cpus: &[u32]) -> Result<(), Unavailable> {
    let mut result = Ok(());
    for policy in policies(access.root, cpus)? {
        result = result.and(access.put_back(&format!("{policy}/scaling_max_freq")));
    }
    result
}
