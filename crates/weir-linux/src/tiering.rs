//! What the kernel's tiering does: pages that it promoted and demoted, what found them, and the pressure of memory;
//! and demotion of a control group's cold pages on request.
//!
//! Counts are those of `/proc/vmstat` (names as in `include/linux/vm_event_item.h` and `mmzone.h`); a count that a kernel lacks is
//! `None`.

use weir_model::capability::Unavailable;
use weir_model::scope::Scope;
use weir_model::tiering::TieringCounts;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use crate::root::{Reading, Root};
pub use crate::steer::actuators::damon::{Scheme, counts as scheme_counts};
pub use crate::steer::actuators::tiering::{check, in_force};
use crate::steer::group::{may_have, version_2};
use crate::steer::scope::group_of;

/// The counts now.
///
/// # Errors
/// `/proc/vmstat` cannot be read.
pub fn counts(root: &Root) -> Result<TieringCounts, Unavailable> {
    let text = root.text("/proc/vmstat");
    Ok(counts_of(text.get()?))
}

fn counts_of(text: &str) -> TieringCounts {
    let lines = || text.lines().filter_map(|line| line.split_once(' '));
    let count = |name: &str| {
        let (_, number) = lines().find(|(found, _)| *found == name)?;
        number.trim().parse().ok()
    };
    // One count for each kind of reclaim; kernels differ in how many there are.
    let demoted = lines().filter(|(name, _)| name.starts_with("pgdemote_"));
    let demoted = demoted.filter_map(|(_, number)| number.trim().parse::<u64>().ok());
    TieringCounts {
        promoted: count("pgpromote_success"),
        candidates: count("pgpromote_candidate"),
        demoted: demoted.fold(None, |sum, n| Some(sum.unwrap_or(0) + n)),
        hint_faults: count("numa_hint_faults"),
        unmapped: count("numa_pte_updates"),
        migrated: count("pgmigrate_success"),
        failed: count("pgmigrate_fail"),
        swapped: count("pswpout"),
    }
}

/// How long some task has waited for memory, of the whole machine or of a control group (kernel documentation,
/// accounting/psi.rst).
///
/// # Errors
/// The kernel does not count it, or the file cannot be read.
pub fn pressure(root: &Root, group: Option<&DemotedGroup>) -> Result<Nanos, Unavailable> {
    let path = match group {
        None => "/proc/pressure/memory".to_owned(),
        Some(group) => format!("{}/memory.pressure", group.path),
    };
    let total = |text: &str| {
        let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
        let total = some
            .split(' ')
            .find_map(|word| word.strip_prefix("total="))?;
        Some(Nanos(total.parse::<f64>().ok()? * 1e3))
    };
    match root.text(&path) {
        Reading::Known(text) => total(&text)
            .ok_or_else(|| Unavailable::because(format!("{path} has no total of `some`"))),
        other => Err(Unavailable::because(format!(
            "{}; pressure needs CONFIG_PSI, and psi=1 on some kernels' command line",
            other.get().err().map_or_else(String::new, |why| why.reason)
        ))),
    }
}

/// A control group whose cold pages are demoted on request (`memory.reclaim`, Linux 5.19; kernel documentation,
/// admin-guide/cgroup-v2.rst).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemotedGroup {
    path: String,
}

impl DemotedGroup {
    /// The group of a scope.
    ///
    /// # Errors
    /// There is no such group, or it cannot be reclaimed from; what to do.
    pub fn of(root: &Root, scope: &Scope) -> Result<Self, Unavailable> {
        version_2(root)?;
        let path = group_of(root, scope)?;
        if root.exists(&format!("{path}/memory.reclaim")) {
            return Ok(Self { path });
        }
        may_have(root, &path, "memory")?;
        Err(Unavailable::because(format!(
            "there is no {path}/memory.reclaim: it needs Linux 5.19 or later, and the memory controller \
             (`echo +memory` to cgroup.subtree_control of the group above)"
        )))
    }

    /// Asks the kernel to reclaim this many bytes of the group, which demotes cold pages where demotion is on. Returns
    /// whether it found as many.
    ///
    /// # Errors
    /// The group is gone, or this user may not write to it.
    pub fn demote(&self, root: &Root, bytes: Bytes) -> Result<bool, Unavailable> {
        let path = format!("{}/memory.reclaim", self.path);
        match root.write(&path, &format!("{}\n", bytes.get())) {
            Ok(()) => Ok(true),
            // Less than that was cold.
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(false),
            Err(error) => Err(Unavailable::because(format!("{path}: {error}"))),
        }
    }
}

/// Control groups whose cold pages are demoted, each at a rate, unless its tasks wait for memory.
#[derive(Debug)]
pub struct Demotion {
    groups: Vec<(DemotedGroup, GbPerSec, Option<Nanos>)>,
    most: f64,
}

impl Demotion {
    /// Groups of scopes with their rates. Nothing is demoted of a group whose tasks waited for memory for more than
    /// `most` percent of a window (TMO, ASPLOS 2022, section 3.3).
    ///
    /// # Errors
    /// There is no such group, it cannot be reclaimed from, or its pressure is not counted.
    pub fn find(root: &Root, of: &[(Scope, GbPerSec)], most: f64) -> Result<Self, Unavailable> {
        let one = |(scope, rate): &(Scope, GbPerSec)| {
            let group = DemotedGroup::of(root, scope)?;
            // Without it nothing would ever be demoted.
            let waited = pressure(root, Some(&group))?;
            Ok((group, *rate, Some(waited)))
        };
        let groups = of.iter().map(one).collect::<Result<_, _>>()?;
        Ok(Self { groups, most })
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Asks the kernel for each rate's part of the time `ahead`, if the time that `passed` since the last call was
    /// without pressure, and as long as demotion is on. Returns how much was asked for, and what went wrong.
    pub fn ask(&mut self, root: &Root, passed: Nanos, ahead: Nanos) -> (Bytes, Vec<Unavailable>) {
        let (mut asked, mut wrong) = (0, Vec::new());
        if !self.is_empty() && in_force(root).demotion != Some(true) {
            let why = "demotion is off now, so that nothing is demoted: it would go to swap";
            return (Bytes(0), vec![Unavailable::because(why)]);
        }
        for (group, rate, waited) in &mut self.groups {
            let now = pressure(root, Some(group)).ok();
            let since = now
                .zip(*waited)
                .map(|(now, before)| now.get() - before.get());
            *waited = now;
            // A group of which nothing is known is not pressed.
            if since.is_none_or(|since| 100.0 * since / passed.get() > self.most) {
                continue;
            }
            let bytes = Bytes((rate.get() * ahead.get()) as u64);
            asked += bytes.get();
            wrong.extend(group.demote(root, bytes).err());
        }
        (Bytes(asked), wrong)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VMSTAT: &str = "nr_free_pages 1\npgpromote_success 7\npgpromote_candidate 9\npgdemote_kswapd 4\n\
                          pgdemote_direct 5\npgdemote_khugepaged 1\nnuma_hint_faults 20\nnuma_pte_updates 30\npgmigrate_success 40\n";

    #[test]
    fn counts_are_those_of_the_kernel_and_missing_ones_are_missing() {
        let counts = counts_of(VMSTAT);
        assert_eq!(counts.promoted, Some(7));
        assert_eq!(counts.candidates, Some(9));
        assert_eq!(counts.demoted, Some(10));
        assert_eq!((counts.hint_faults, counts.unmapped), (Some(20), Some(30)));
        assert_eq!((counts.migrated, counts.failed), (Some(40), None));
        assert_eq!(counts.since(&counts).migrated, Some(0));
        let none = counts_of("nr_free_pages 1\n");
        assert_eq!(none, TieringCounts::default());
        assert_eq!(counts.since(&none), TieringCounts::default());
        assert_eq!(none.since(&counts), TieringCounts::default());
    }

    #[test]
    fn pressure_is_the_total_of_some() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let why = pressure(&root, None).unwrap_err();
        assert!(why.reason.contains("CONFIG_PSI"), "{why}");
        let path = folder.path().join("proc/pressure");
        std::fs::create_dir_all(&path).unwrap();
        let some = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500\n";
        let text = format!("{some}full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n");
        std::fs::write(path.join("memory"), text).unwrap();
        assert_eq!(pressure(&root, None), Ok(Nanos(1_500_000.0)));
        std::fs::write(path.join("memory"), "some avg10=0.00\n").unwrap();
        assert!(pressure(&root, None).is_err());
    }

    #[test]
    fn a_group_without_reclaim_is_refused_with_what_it_needs() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let scope: Scope = "cgroup:/cold".parse().unwrap();
        let group = folder.path().join("sys/fs/cgroup/cold");
        std::fs::create_dir_all(&group).unwrap();
        for folder in [folder.path().join("sys/fs/cgroup"), group.clone()] {
            std::fs::write(folder.join("cgroup.procs"), "").unwrap();
            std::fs::write(folder.join("cgroup.controllers"), "memory\n").unwrap();
        }
        let why = DemotedGroup::of(&root, &scope).unwrap_err();
        assert!(why.reason.contains("memory.reclaim"), "{why}");
        std::fs::write(group.join("memory.reclaim"), "").unwrap();
        let found = DemotedGroup::of(&root, &scope).unwrap();
        // A folder is no kernel, and takes no writes.
        assert!(found.demote(&root, Bytes(4096)).is_err());
        // Where demotion is off the kernel is not even asked.
        std::fs::write(group.join("memory.pressure"), "some total=5\n").unwrap();
        let mut demotion = Demotion::find(&root, &[(scope, GbPerSec(1.0))], 0.1).unwrap();
        let off = folder.path().join("sys/kernel/mm/numa");
        std::fs::create_dir_all(&off).unwrap();
        for (on, asked, why) in [
            ("false\n", 0, "demotion is off"),
            ("true\n", 1024, "memory.reclaim"),
        ] {
            std::fs::write(off.join("demotion_enabled"), on).unwrap();
            let (bytes, wrong) = demotion.ask(&root, Nanos(4096.0), Nanos(1024.0));
            assert_eq!(bytes, Bytes(asked));
            assert!(wrong[0].reason.contains(why), "{wrong:?}");
        }
        // A microsecond more is a fifth of a percent of half a millisecond, and a twentieth of two.
        for (total, passed, asked) in [(6, 5e5, 0), (7, 2e6, 1024)] {
            let pressure = group.join("memory.pressure");
            std::fs::write(pressure, format!("some total={total}\n")).unwrap();
            let (bytes, _) = demotion.ask(&root, Nanos(passed), Nanos(1024.0));
            assert_eq!(bytes, Bytes(asked), "{passed}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,200}|(pg[a-z]{3,7}_[a-z]{1,9} [0-9-]{0,25}\n){0,9}") {
            counts_of(&text);
        }
    }
}
