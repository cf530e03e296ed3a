//! Settings that are changed for a time: of the whole system the weights of interleaving, the kernel's tiering and the
//! clock of processors; for a run's own threads registers and resctrl groups. They are written through journals as all of steering is, so that `weir
//! steer restore` restores them if a measurement was killed.

use std::path::Path;
use std::sync::{Arc, Mutex};

use weir_model::capability::Unavailable;
use weir_model::tiering::KernelTiering;
use weir_model::units::Gigahertz;

use super::actuators::damon::{self, Scheme, SchemesOf};
use super::actuators::{KernelAccess, clock, tiering, weights};
use super::journal::Extent;
use super::journalled_writes::JournalledWrites;
use super::not_put_back::NotPutBack;
use super::release::{Release, lock};
use super::replay::{JournalError, Restored};
use crate::root::Root;

/// The folder of the journal of measurements, for what they change for their own threads: it need not outlive the boot.
pub const RUN_JOURNAL: &str = "/run/weir/bench";

/// Settings that are changed for a time; a drop restores them.
///
/// Those of the system apply to every program of the system. Weights apply to pages that any program under weighted interleave gets
/// in the meantime.
#[derive(Debug)]
pub struct SystemSettings {
    root: Root,
    writes: Arc<Mutex<JournalledWrites>>,
}

impl SystemSettings {
    /// Whether the kernel has weights of interleaving.
    ///
    /// # Errors
    /// Why not.
    pub fn weights_available(root: &Root) -> Result<(), Unavailable> {
        weights::find(root)
    }

    /// Takes the journal of a folder; also returns what an earlier process had left changed, which is restored.
    ///
    /// # Errors
    /// The journal cannot be written, or another process steers this host.
    pub fn open(root: &Root, journal: &Path) -> Result<(Self, Restored), JournalError> {
        let (writes, restored) = JournalledWrites::open(root, journal, Extent::Host)?;
        Ok((Self::on(root, writes), restored))
    }

    /// The same for what one run changes for its own threads, also while another process steers this host.
    ///
    /// # Errors
    /// The journal cannot be written, or another run has it.
    pub(crate) fn open_for_run(
        root: &Root,
        journal: &Path,
    ) -> Result<(Self, Restored), JournalError> {
        let (writes, restored) = JournalledWrites::open(root, journal, Extent::Run)?;
        Ok((Self::on(root, writes), restored))
    }

    /// The same, with a journal that is open.
    pub(super) fn on(root: &Root, writes: JournalledWrites) -> Self {
        Self {
            root: root.clone(),
            writes: Arc::new(Mutex::new(writes)),
        }
    }

    /// The same, with the journal of tenants that this process limits; `None` if it has none. Restoring one of them
    /// restores the other too.
    pub fn sharing(root: &Root, tenants: Release) -> Option<Self> {
        let root = root.clone();
        tenants.0.map(|writes| Self { root, writes })
    }

    /// A way to restore everything from another thread.
    #[cfg(test)]
    pub(super) fn releaser(&self) -> Release {
        Release(Some(Arc::clone(&self.writes)))
    }

    /// Sets the weight of each of some nodes, from 1 to 255, and returns the weights in force.
    ///
    /// # Errors
    /// The kernel has no weights, or does not let this user set them. Those before the refused one stay.
    pub fn set_weights(&mut self, weights: &[(u32, u32)]) -> Result<Vec<(u32, u32)>, Unavailable> {
        let byte = |&(node, weight): &(u32, u32)| {
            let fits = u8::try_from(weight).ok().filter(|&weight| weight > 0);
            let fits = fits.map(|weight| (node, weight));
            fits.ok_or_else(|| Unavailable::because(format!("a weight is 1 to 255, not {weight}")))
        };
        let wanted = weights.iter().map(byte).collect::<Result<Vec<_>, _>>()?;
        let found = self.write(|access| weights::set(access, &wanted))?;
        let wide = found
            .into_iter()
            .map(|(node, weight)| (node, u32::from(weight)));
        Ok(wide.collect())
    }

    /// Limits the clock of some processors, and returns the limit in force; `None` restores the earlier one.
    ///
    /// # Errors
    /// The kernel does not scale the clock of these processors alone.
    pub fn set_clock(
        &mut self,
        cpus: &[u32],
        wanted: Option<Gigahertz>,
    ) -> Result<Option<Gigahertz>, Unavailable> {
        self.write(|access| match wanted {
            Some(wanted) => clock::limit(access, cpus, wanted).map(Some),
            None => clock::let_go(access, cpus).map(|()| None),
        })
    }

    /// Sets the kernel's tiering, and returns all of its settings in force.
    ///
    /// # Errors
    /// The kernel lacks a setting, or does not let this user change it. Those before the refused one stay.
    pub fn set_tiering(&mut self, wanted: &KernelTiering) -> Result<KernelTiering, Unavailable> {
        self.write(|access| tiering::set(access, wanted))
    }

    /// Starts schemes of DAMON that migrate pages, of these nodes where they are not of one process.
    ///
    /// # Errors
    /// The kernel lacks something, another program uses DAMON, or this user may not.
    pub fn set_schemes(
        &mut self,
        schemes: &[Scheme],
        of: SchemesOf<'_>,
        nodes: &[u32],
    ) -> Result<(), Unavailable> {
        self.write(|access| damon::set(access, schemes, of, nodes))
    }

    /// Makes a change by the journal.
    pub(crate) fn write<T>(
        &self,
        change: impl FnOnce(&mut KernelAccess<'_>) -> Result<T, Unavailable>,
    ) -> Result<T, Unavailable> {
        change(&mut KernelAccess {
            root: &self.root,
            writes: &mut lock(&self.writes),
        })
    }

    /// Restores every setting, and returns those that are different because another program changed them: they are
    /// left to it.
    ///
    /// # Errors
    /// One could not be restored; the others are restored all the same, and the journal keeps it.
    pub fn restore(self) -> Result<Vec<NotPutBack>, Unavailable> {
        let not = lock(&self.writes).release();
        if !not.iter().any(|not| not.cause.is_refused()) {
            return Ok(not);
        }
        let not: Vec<String> = not.iter().map(ToString::to_string).collect();
        Err(Unavailable::because(not.join("; ")))
    }
}

impl Drop for SystemSettings {
    fn drop(&mut self) {
        // Callers that need to know what could not be restored call `restore`.
        lock(&self.writes).release();
    }
}

#[cfg(test)]
mod tests {
    use weir_model::tiering::{Balancing, Heat};
    use weir_model::units::GbPerSec;

    use crate::control::DAMON;

    use super::super::fake::{Life, Machine, Paper, differences};
    use super::*;

    const FOLDER: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
    const TIERING: KernelTiering = KernelTiering {
        demotion: Some(true),
        balancing: Some(Balancing::Tiering),
        promote_limit: Some(GbPerSec(0.05)),
    };
    const CLOCK: &str = "/sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq";

    const SCHEMES: [Scheme; 2] = [
        Scheme {
            heat: Heat::Hot,
            node: 0,
            rate: GbPerSec(0.2),
        },
        Scheme {
            heat: Heat::Cold,
            node: 1,
            rate: GbPerSec(0.1),
        },
    ];

    const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

    /// All settings, changed twice and in part restored.
    fn change(machine: &Machine, life: &Life, paper: &Paper) -> Option<SystemSettings> {
        let root = machine.root(life);
        let opened = JournalledWrites::on(&root, Box::new(paper.held_by(life)));
        let mut held = SystemSettings::on(&root, opened.ok()?.0);
        held.set_weights(&[(0, 3), (1, 7)]).ok()?;
        held.set_clock(&[1, 2], Some(Gigahertz(1.2))).ok()?;
        held.set_tiering(&TIERING).ok()?;
        held.set_clock(&[2], None).ok()?;
        held.set_weights(&[(1, 9)]).ok()?;
        let faster = KernelTiering {
            promote_limit: Some(GbPerSec(0.1)),
            ..KernelTiering::default()
        };
        held.set_tiering(&faster).ok()?;
        held.set_clock(&[1], Some(Gigahertz(1.0))).ok()?;
        held.set_schemes(&SCHEMES, Some(&"cgroup:/b".parse().ok()?), &[0, 1])
            .ok()?;
        Some(held)
    }

    #[test]
    fn settings_are_restored_after_success_and_after_refusal() {
        for auto in ["true\n", "false\n"] {
            let machine = Machine::new();
            machine.put(&format!("{FOLDER}/auto"), auto);
            let before = machine.tree();
            let held = change(&machine, &Life::default(), &Paper::default()).unwrap();
            assert_eq!(machine.text(&format!("{FOLDER}/node1")), "9\n");
            assert_eq!(machine.text(&format!("{FOLDER}/auto")), "false\n");
            assert_eq!(machine.text(CLOCK), "1000000\n");
            assert_eq!(
                machine.text("/sys/kernel/mm/numa/demotion_enabled"),
                "true\n"
            );
            assert_eq!(machine.text(BALANCING), "2\n");
            assert_eq!(
                machine.text(&format!("{BALANCING}_promote_rate_limit_MBps")),
                "95\n"
            );
            held.restore().unwrap();
            assert_eq!(differences(&before, &machine.tree()), [""; 0]);
            // The second weight is refused, so the first must be restored.
            for wrong in [(1, 256), (1, 0), (7, 1)] {
                let mut held = change(&machine, &Life::default(), &Paper::default()).unwrap();
                held.set_weights(&[(0, 9), wrong]).unwrap_err();
                held.set_clock(&[9], Some(Gigahertz(1.0))).unwrap_err();
                drop(held);
                assert_eq!(differences(&before, &machine.tree()), [""; 0]);
            }
        }
    }

    #[test]
    fn a_process_that_is_killed_at_any_step_leaves_settings_that_are_restored() {
        let whole = Life::default();
        drop(change(&Machine::new(), &whole, &Paper::default()));
        assert!(whole.taken() > 20, "{}", whole.taken());
        for step in 0..whole.taken() {
            let (machine, paper) = (Machine::new(), Paper::default());
            machine.put(&format!("{FOLDER}/auto"), "true\n");
            let before = machine.tree();
            drop(change(&machine, &Life::until(Some(step)), &paper));
            let after = Life::default();
            let (_, restored) =
                JournalledWrites::on(&machine.root(&after), Box::new(paper.held_by(&after)))
                    .unwrap();
            assert!(restored.is_whole(), "{step}: {:?}", restored.not);
            assert_eq!(differences(&before, &machine.tree()), [""; 0], "{step}");
        }
    }

    #[test]
    fn a_sysctl_whose_folder_has_a_new_number_is_restored() {
        // The kernel creates the folders of /proc/sys again whenever it has dropped them.
        let machine = Machine::new();
        let before = machine.tree();
        let held = change(&machine, &Life::default(), &Paper::default()).unwrap();
        let (folder, aside) = (
            machine.real("/proc/sys/kernel"),
            machine.real("/proc/sys/old"),
        );
        std::fs::rename(&folder, &aside).unwrap();
        std::fs::create_dir(&folder).unwrap();
        for file in std::fs::read_dir(&aside).unwrap().flatten() {
            std::fs::rename(file.path(), folder.join(file.file_name())).unwrap();
        }
        held.restore().unwrap();
        assert_eq!(differences(&before, &machine.tree()), [""; 0]);
    }

    #[test]
    fn no_clock_is_limited_to_more_than_it_was_before() {
        let machine = Machine::new();
        let mut held = change(&machine, &Life::default(), &Paper::default()).unwrap();
        let found = held.set_clock(&[1], Some(Gigahertz(9.0)));
        assert_eq!(found, Ok(Some(Gigahertz(3.45))));
    }

    #[test]
    fn what_another_program_changed_is_left_to_it_and_told() {
        let machine = Machine::new();
        let held = change(&machine, &Life::default(), &Paper::default()).unwrap();
        machine.write(CLOCK, "900000");
        let left = held.restore().unwrap();
        let left: Vec<&str> = left.iter().map(|not| not.path.as_str()).collect();
        assert_eq!(left, [CLOCK]);
        assert_eq!(machine.text(CLOCK), "900000\n");
    }

    #[test]
    fn schemes_watch_what_they_may_take_and_are_refused_where_another_program_has_damon() {
        let machine = Machine::new();
        let before = machine.tree();
        let held = change(&machine, &Life::default(), &Paper::default()).unwrap();
        let said = |number: u32, path: &str| {
            let path = format!("{DAMON}/{number}/{path}");
            machine.text(&path).trim().to_owned()
        };
        for (number, action, node, quota, ranges) in [
            (0, "migrate_hot", "0", "200000000", &[(2, 4), (5, 6)][..]),
            (1, "migrate_cold", "1", "100000000", &[(0, 2)][..]),
        ] {
            assert_eq!(said(number, "state"), "on");
            let scheme = |path: &str| said(number, &format!("contexts/0/schemes/0/{path}"));
            assert_eq!(
                (scheme("action"), scheme("target_nid")),
                (action.into(), node.into())
            );
            assert_eq!(scheme("quotas/bytes"), quota);
            assert_eq!(scheme("filters/0/memcg_path"), "/b");
            for (part, (start, end)) in ranges.iter().enumerate() {
                let region = |name: &str| {
                    said(
                        number,
                        &format!("contexts/0/targets/0/regions/{part}/{name}"),
                    )
                };
                let block = |number: &u64| (number << 27).to_string();
                assert_eq!((region("start"), region("end")), (block(start), block(end)));
            }
        }
        drop(held);
        assert_eq!(differences(&before, &machine.tree()), [""; 0]);
        // A process that ends stops the kernel's thread.
        let held = change(&machine, &Life::default(), &Paper::default()).unwrap();
        machine.write(&format!("{DAMON}/1/state"), "off");
        assert_eq!(held.restore(), Ok(vec![]));
        assert_eq!(differences(&before, &machine.tree()), [""; 0]);
        machine.write(&format!("{DAMON}/nr_kdamonds"), "1");
        machine.write(&format!("{DAMON}/0/contexts/nr_contexts"), "1");
        let others = machine.tree();
        assert!(change(&machine, &Life::default(), &Paper::default()).is_none());
        assert_eq!(differences(&others, &machine.tree()), [""; 0]);
    }

    #[test]
    fn a_kernel_that_lacks_schemes_is_reported_with_its_version() {
        let machine = Machine::new();
        let life = Life::default();
        let root = machine.root(&life);
        let paper = Paper::default();
        let (writes, _) = JournalledWrites::on(&root, Box::new(paper.held_by(&life))).unwrap();
        let mut held = SystemSettings::on(&root, writes);
        let why = |held: &mut SystemSettings, of: Option<&str>, nodes: &[u32]| {
            let of = of.map(|of| of.parse().unwrap());
            let why = held.set_schemes(&SCHEMES, of.as_ref(), nodes).unwrap_err();
            lock(&held.writes).release();
            why.reason
        };
        assert!(why(&mut held, Some("pid:101"), &[]).contains("Linux 6.17"));
        assert!(why(&mut held, Some("cgroup:/nobody"), &[0, 1]).contains("no control group"));
        let no_memory = why(&mut held, Some("cgroup:/shared"), &[0, 1]);
        assert!(no_memory.contains("echo +memory"), "{no_memory}");
        assert!(why(&mut held, None, &[0]).contains("no node but 0"));
        std::fs::remove_file(machine.real(&format!("{DAMON}/nr_kdamonds"))).unwrap();
        assert!(why(&mut held, None, &[0]).contains("Linux 6.11 with CONFIG_DAMON_SYSFS"));
    }

    #[test]
    fn without_weights_of_interleaving_the_reason_is_named() {
        let empty = tempfile::tempdir().unwrap();
        let why = SystemSettings::weights_available(&Root::at(empty.path())).unwrap_err();
        assert!(why.reason.contains("Linux 6.9"), "{}", why.reason);
        let folder = empty.path().join(FOLDER.trim_start_matches('/'));
        std::fs::create_dir_all(folder).unwrap();
        let why = SystemSettings::weights_available(&Root::at(empty.path())).unwrap_err();
        assert!(why.reason.contains("node"), "{}", why.reason);
    }
}
