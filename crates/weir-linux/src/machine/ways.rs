//! The last-level cache divided between the tenants of a run, with a resctrl group for each tenant that may
//! not use all of it.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::capability::{Feature, Unavailable};
use weir_model::machine::{MachineError, RunNotes};
use weir_model::tenant::Tenant;

use super::HostParts;
use super::run_changes::RunChanges;
use crate::resctrl::Resctrl;
use crate::root::Root;
use crate::steer::actuators::KernelAccess;
use crate::steer::actuators::allocation::{self, Own, Owner};

/// The groups of a run; its journal removes them.
#[derive(Debug, Default)]
pub(super) struct Ways {
    groups: BTreeMap<usize, Own>,
}

impl Ways {
    /// Makes a group for each tenant that has ways of its own. It has no threads yet.
    ///
    /// # Errors
    /// The cache cannot be divided, or not in this way.
    pub fn divide(
        host: &HostParts,
        changes: &mut RunChanges,
        tenants: &[Tenant],
    ) -> Result<(Self, RunNotes), MachineError> {
        let (mut ways, mut notes) = (Self::default(), RunNotes::default());
        for (index, tenant) in tenants.iter().enumerate() {
            let Some(mask) = tenant.cache_ways else {
                continue;
            };
            let applied = ways.set(host, changes, index, &tenant.name, &tenant.cores, mask)?;
            let name = ways.groups.get(&index).map_or("", Own::name);
            let subject = if tenants.len() > 1 {
                format!("{}: ", tenant.name)
            } else {
                String::new()
            };
            notes.conditions.push(format!(
                "{subject}ways {applied:#x} of the last-level cache, by resctrl group {name}"
            ));
            if applied != mask {
                notes.warnings.push(format!(
                    "{subject}ways {mask:#x} were asked for, and {applied:#x} are in force"
                ));
            }
        }
        Ok((ways, notes))
    }

    /// Gives a tenant these ways, in every instance of the cache that its cores use, and returns the ways
    /// that it has now.
    ///
    /// # Errors
    /// As [`divide`](Self::divide).
    pub fn set(
        &mut self,
        host: &HostParts,
        changes: &mut RunChanges,
        index: usize,
        name: &str,
        cores: &[u32],
        mask: u32,
    ) -> Result<u32, MachineError> {
        check(&host.root, cores, mask)
            .and_then(|()| changes.make(|access| self.apply(access, index, cores, mask)))
            .map_err(|why| of_tenant(name, &why))
    }

    fn apply(
        &mut self,
        access: &mut KernelAccess<'_>,
        index: usize,
        cores: &[u32],
        mask: u32,
    ) -> Result<u32, Unavailable> {
        let domains = domains_of(access.root, cores)?;
        let group = self.group(access, index)?;
        let found = allocation::ways(access, group, Some(&domains), mask.into())?;
        Ok(u32::try_from(found).unwrap_or(u32::MAX))
    }

    /// Bounds the bandwidth of a tenant's cores to the mesh or to memory, and says to how many percent of the
    /// hardware's scale.
    ///
    /// # Errors
    /// Bandwidth cannot be allocated here.
    pub fn bound(
        &mut self,
        host: &HostParts,
        changes: &mut RunChanges,
        index: usize,
        name: &str,
        cores: &[u32],
        percent: u32,
    ) -> Result<u32, MachineError> {
        if !(1..=100).contains(&percent) {
            return Err(MachineError::Request(format!(
                "`{name}` cannot have {percent} percent of its bandwidth: 1 to 100"
            )));
        }
        let mut apply = || {
            let scale = allocation::scale(&host.root, None)?;
            let domains = domains_of(&host.root, cores)?;
            changes.make(|access| {
                let group = self.group(access, index)?;
                allocation::bandwidth(access, group, scale, Some(&domains), percent)
            })
        };
        apply().map_err(|why| of_tenant(name, &why))
    }

    /// The group of a tenant, made when it is first needed.
    fn group(&mut self, access: &mut KernelAccess<'_>, index: usize) -> Result<&Own, Unavailable> {
        use std::collections::btree_map::Entry;
        Ok(match self.groups.entry(index) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Own::make(access, Owner::Run, index)?),
        })
    }

    /// Moves those of some threads, each with its tenant, whose tenant has a group into that group.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(
        &self,
        changes: &mut RunChanges,
        threads: &[(usize, u32)],
    ) -> Result<(), MachineError> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let taken = changes.make(|access| self.gather(access, threads));
        taken.map_err(missing)
    }

    fn gather(
        &self,
        access: &mut KernelAccess<'_>,
        threads: &[(usize, u32)],
    ) -> Result<(), Unavailable> {
        for (tenant, group) in &self.groups {
            let own = threads.iter().filter(|(of, _)| of == tenant);
            let own: Vec<u32> = own.map(|&(_, thread)| thread).collect();
            group.gather(access, &own)?;
        }
        Ok(())
    }
}

/// Whether the cache can be divided in this way; nothing is changed.
fn check(root: &Root, cores: &[u32], mask: u32) -> Result<(), Unavailable> {
    let resctrl = Resctrl::find(root)?;
    for resource in resctrl.last_level()? {
        resctrl.cache_limits(resource)?.check(mask.into())?;
    }
    domains_of(root, cores).map(drop)
}

/// The instances of the last-level cache that some processors use.
fn domains_of(root: &Root, cores: &[u32]) -> Result<BTreeSet<u32>, Unavailable> {
    cores.iter().map(|&core| domain_of(root, core)).collect()
}

/// The instance of the last-level cache that a processor uses, as resctrl numbers it.
fn domain_of(root: &Root, cpu: u32) -> Result<u32, Unavailable> {
    let base = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let indices = root.numbered(&base, "index");
    for (_, index) in indices.get()? {
        let level = root.value::<u32>(&format!("{base}/{index}/level"));
        if level.known() == Some(&3) {
            return root.value(&format!("{base}/{index}/id")).get().copied();
        }
    }
    Err(Unavailable::because(format!(
        "CPU {cpu} has no third-level cache in {base}"
    )))
}

fn of_tenant(name: &str, why: &Unavailable) -> MachineError {
    let reason = format!("tenant `{name}`: {}", why.reason);
    missing(Unavailable::because(reason))
}

fn missing(why: Unavailable) -> MachineError {
    MachineError::Missing {
        feature: Feature::Resctrl,
        reason: why.reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resctrl::Resource;
    use crate::resctrl::fake::Fake;
    use crate::steer::Extent;
    use crate::steer::journalled_writes::JournalledWrites;

    /// Acts on a machine, and restores it.
    fn on(root: &Root, act: impl FnOnce(&mut Ways, &mut KernelAccess<'_>)) {
        let folder = tempfile::tempdir().unwrap();
        let (mut writes, _) = JournalledWrites::open(root, folder.path(), Extent::Run).unwrap();
        let mut access = KernelAccess {
            root,
            writes: &mut writes,
        };
        act(&mut Ways::default(), &mut access);
        assert_eq!(writes.release(), []);
    }

    #[test]
    fn a_tenant_has_its_ways_where_its_cores_are_and_nowhere_else() {
        let fake = Fake::intel();
        let (resctrl, root) = (fake.resctrl(), fake.root());
        for thread in [77, 78] {
            let stat = format!("{thread} (a) S {} 9 0", ["0"; 18].join(" "));
            fake.process(thread, &stat);
            root.write("/sys/fs/resctrl/tasks", &format!("{thread}\n"))
                .unwrap();
        }
        on(&root, |ways, access| {
            // Processors 2 and 3 are of domain 1.
            assert_eq!(ways.apply(access, 0, &[2, 3], 0xf0), Ok(0xf0));
            let name = fake.groups().pop().unwrap();
            let found = resctrl.schemata(&name).unwrap();
            assert_eq!(found.get(Resource::L3, 1), Some(0xf0));
            assert_eq!(found.get(Resource::L3, 0), Some(0xffff));
            // A tenant without ways of its own stays in its group.
            ways.gather(access, &[(0, 77), (1, 78)]).unwrap();
            assert_eq!(fake.threads(&name), [77]);
            // During a run: the same group, other ways.
            assert_eq!(ways.apply(access, 0, &[2, 3], 0x3), Ok(0x3));
            assert_eq!(fake.groups(), [name.as_str()]);
        });
        assert!(fake.groups().is_empty() && fake.threads("") == [77, 78]);
    }

    #[test]
    fn code_and_data_get_the_same_ways() {
        let fake = Fake::with_code_and_data();
        on(&fake.root(), |ways, access| {
            ways.apply(access, 0, &[0], 0x7).unwrap();
            let name = fake.groups().pop().unwrap();
            let found = fake.resctrl().schemata(&name).unwrap();
            for resource in [Resource::L3Code, Resource::L3Data] {
                assert_eq!(found.get(resource, 0), Some(0x7));
            }
        });
    }

    #[test]
    fn ways_that_cannot_be_are_refused_in_words() {
        let fake = Fake::intel();
        for (cores, mask, said) in [
            (&[0][..], 0, "at least 1"),
            (&[0], 0x1_0000, "the cache has 0xffff"),
            (&[0], 0b101, "side by side"),
            (&[9], 0b1, "/sys/devices/system/cpu/cpu9/cache"),
        ] {
            let error = check(&fake.root(), cores, mask).unwrap_err();
            assert!(error.reason.contains(said), "{error}");
        }
        // Masks with holes are valid on AMD.
        let fake = Fake::amd();
        check(&fake.root(), &[0], 0b101).unwrap();
        on(&fake.root(), |ways, access| {
            assert_eq!(ways.apply(access, 0, &[0], 0b101), Ok(0b101));
        });
    }

    #[test]
    fn groups_run_out_and_it_is_said() {
        let fake = Fake::intel();
        on(&fake.root(), |ways, access| {
            let most = fake.resctrl().cache_limits(Resource::L3).unwrap().groups;
            let mut all = (0..).map(|index| ways.apply(access, index, &[0], 1));
            let error = all.find_map(Result::err).unwrap();
            assert!(error.reason.contains("in use"), "{error}");
            assert_eq!(fake.groups().len() + 1, most as usize);
        });
        assert!(fake.groups().is_empty());
    }

    #[test]
    fn where_there_is_no_resctrl_or_no_allocation_it_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let error = Resctrl::find(&root).unwrap_err();
        assert!(error.reason.contains("CONFIG_X86_CPU_RESCTRL"), "{error}");
        let mount = folder.path().join("sys/fs/resctrl");
        std::fs::create_dir_all(&mount).unwrap();
        let error = Resctrl::find(&root).unwrap_err();
        assert!(error.reason.contains("mount -t resctrl"), "{error}");
        std::fs::write(mount.join("schemata"), "MB:0=100\n").unwrap();
        let resctrl = Resctrl::find(&root).unwrap();
        let error = resctrl.last_level().unwrap_err();
        assert!(error.reason.contains("does not allocate"), "{error}");
    }
}
