//! The kernel's own tiering, which applies to the whole machine: demotion by reclaim, promotion by NUMA hint faults, and
//! the limit of its rate (kernel documentation, admin-guide/sysctl/kernel.rst and
//! ABI/testing/sysfs-kernel-mm-numa).

use weir_model::capability::Unavailable;
use weir_model::tiering::{Balancing, KernelTiering};
use weir_model::units::GbPerSec;

use super::KernelAccess;
use crate::root::Root;

const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
const LIMIT: &str = "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps";

/// The unit of the limit: the kernel counts pages in 2^20 bytes.
const MEBIBYTE: f64 = 1_048_576.0;

/// The settings in force.
pub fn in_force(root: &Root) -> KernelTiering {
    let demotion = root.text(DEMOTION);
    KernelTiering {
        demotion: demotion.known().and_then(|text| is_on(text)),
        balancing: (root.value(BALANCING).known().copied()).and_then(Balancing::of_number),
        promote_limit: root.value::<u32>(LIMIT).known().copied().map(of_mebibytes),
    }
}

/// Whether the kernel has every setting that is to be changed.
///
/// # Errors
/// The settings that it lacks, each with the kernel that has it.
pub fn check(wanted: &KernelTiering, root: &Root) -> Result<(), Unavailable> {
    let wanted = [
        (
            wanted.demotion.is_some(),
            DEMOTION,
            "demotion needs Linux 5.15 or later with CONFIG_NUMA and CONFIG_MIGRATION",
        ),
        (
            wanted.balancing.is_some(),
            BALANCING,
            "NUMA balancing needs a kernel with CONFIG_NUMA_BALANCING",
        ),
        (
            wanted.promote_limit.is_some(),
            LIMIT,
            "a limit of promotion needs Linux 6.1 or later",
        ),
    ];
    let missing = wanted
        .iter()
        .filter(|(wanted, path, _)| *wanted && !root.exists(path));
    let missing: Vec<String> = missing
        .map(|(_, path, why)| format!("there is no {path}: {why}"))
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Unavailable::because(missing.join("; "))),
    }
}

fn is_on(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn of_mebibytes(rate: u32) -> GbPerSec {
    GbPerSec(f64::from(rate) * MEBIBYTE / 1e9)
}

/// The rate in whole MiB a second. Only a rate of zero is zero, which stops promotion.
fn to_mebibytes(rate: GbPerSec) -> u32 {
    if rate.get() <= 0.0 {
        return 0;
    }
    (rate.get() * 1e9 / MEBIBYTE)
        .round()
        .clamp(1.0, f64::from(u32::MAX)) as u32
}

/// Sets what is to be changed, and returns all settings in force. The limit comes first, so that nothing is promoted
/// without it.
///
/// # Errors
/// The kernel lacks a setting, or does not let this user change it. Those before it stay, for the journal to restore.
pub(crate) fn set(
    access: &mut KernelAccess<'_>,
    wanted: &KernelTiering,
) -> Result<KernelTiering, Unavailable> {
    check(wanted, access.root)?;
    if let Some(rate) = wanted.promote_limit {
        access.writes.set(LIMIT, &to_mebibytes(rate).to_string())?;
    }
    if let Some(on) = wanted.demotion {
        access
            .writes
            .set(DEMOTION, if on { "true" } else { "false" })?;
    }
    if let Some(mode) = wanted.balancing {
        access.writes.set(BALANCING, &mode.number().to_string())?;
    }
    Ok(in_force(access.root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_rounded_to_mebibytes_and_never_down_to_zero() {
        for mebibytes in [1, 7, 65536, u32::MAX] {
            assert_eq!(to_mebibytes(of_mebibytes(mebibytes)), mebibytes);
        }
        assert_eq!(to_mebibytes(GbPerSec(0.0001)), 1);
        assert_eq!(to_mebibytes(GbPerSec(0.0)), 0);
    }

    #[test]
    fn every_mode_has_the_number_of_the_kernel() {
        let numbers = Balancing::ALL.map(Balancing::number);
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!(Balancing::of_number(2), Some(Balancing::Tiering));
        assert_eq!(Balancing::of_number(4), None);
    }

    #[test]
    fn a_kernel_that_lacks_settings_is_reported_with_each_of_them() {
        let empty = tempfile::tempdir().unwrap();
        let root = Root::at(empty.path());
        let all = KernelTiering {
            demotion: Some(true),
            balancing: Some(Balancing::Tiering),
            promote_limit: Some(GbPerSec(1.0)),
        };
        let why = check(&all, &root).unwrap_err().reason;
        for needed in [DEMOTION, BALANCING, LIMIT, "5.15", "6.1"] {
            assert!(why.contains(needed), "{why}");
        }
        assert_eq!(check(&KernelTiering::default(), &root), Ok(()));
        assert_eq!(in_force(&root), KernelTiering::default());
        // Linux 5.18 promotes without a limit.
        let path = empty.path().join(BALANCING.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "0\n").unwrap();
        let promotes = KernelTiering {
            balancing: Some(Balancing::Tiering),
            ..KernelTiering::default()
        };
        assert_eq!(check(&promotes, &root), Ok(()));
    }
}
