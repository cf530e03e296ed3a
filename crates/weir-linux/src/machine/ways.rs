//! The last-level cache divided between the tenants of a run, with a resctrl group for each tenant that may
//! not use all of it.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::capability::{Feature, Unavailable};
use weir_model::machine::{MachineError, RunNotes};
use weir_model::tenant::Tenant;

use super::HostParts;
use crate::resctrl::{Group, Resctrl};
use crate::root::Root;
use crate::steer::actuators::allocation;

/// The groups of a run, removed with it.
#[derive(Debug, Default)]
pub(super) struct Ways {
    groups: BTreeMap<usize, Group>,
}

impl Ways {
    /// Makes a group for each tenant that has ways of its own. It has no threads yet.
    ///
    /// # Errors
    /// The cache cannot be divided, or not in this way.
    pub fn divide(host: &HostParts, tenants: &[Tenant]) -> Result<(Self, RunNotes), MachineError> {
        let (mut ways, mut notes) = (Self::default(), RunNotes::default());
        for (index, tenant) in tenants.iter().enumerate() {
            let Some(mask) = tenant.cache_ways else {
                continue;
            };
            let applied = ways.set(host, index, &tenant.name, &tenant.cores, mask)?;
            let name = ways.groups.get(&index).map_or("", Group::name);
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
        index: usize,
        name: &str,
        cores: &[u32],
        mask: u32,
    ) -> Result<u32, MachineError> {
        let resctrl = host.resctrl.as_ref().map_err(|why| missing(why.clone()))?;
        self.apply(resctrl, &host.root, index, cores, mask)
            .map_err(|why| {
                let reason = format!("tenant `{name}`: {}", why.reason);
                missing(Unavailable::because(reason))
            })
    }

    fn apply(
        &mut self,
        resctrl: &Resctrl,
        root: &Root,
        index: usize,
        cores: &[u32],
        mask: u32,
    ) -> Result<u32, Unavailable> {
        let wanted = u64::from(mask);
        let resources = resctrl.last_level()?;
        for &resource in &resources {
            resctrl.cache_limits(resource)?.check(wanted)?;
        }
        let domains = domains_of(root, cores)?;
        let group = self.group(resctrl, index)?;
        let mut applied = wanted;
        for domain in domains {
            for &resource in &resources {
                applied = group.set(resource, domain, wanted)?.applied;
            }
        }
        Ok(u32::try_from(applied).unwrap_or(u32::MAX))
    }

    /// Bounds the bandwidth of a tenant's cores to the mesh or to memory, and says to how many percent of the
    /// hardware's scale.
    ///
    /// # Errors
    /// Bandwidth cannot be allocated here.
    pub fn bound(
        &mut self,
        host: &HostParts,
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
        let resctrl = host.resctrl.as_ref().map_err(|why| missing(why.clone()))?;
        let mut apply = || {
            let scale = allocation::scale(&host.root, None)?;
            let wanted = (f64::from(percent) / 100.0 * scale.all).round() as u64;
            let wanted = wanted.max(scale.least).max(1);
            let group = self.group(resctrl, index)?;
            let mut applied = wanted;
            for domain in domains_of(&host.root, cores)? {
                applied = group.set(scale.resource, domain, wanted)?.applied;
            }
            Ok((applied as f64 / scale.all * 100.0).round() as u32)
        };
        apply().map_err(|why: Unavailable| {
            let reason = format!("tenant `{name}`: {}", why.reason);
            missing(Unavailable::because(reason))
        })
    }

    /// The group of a tenant, made when it is first needed.
    fn group(&mut self, resctrl: &Resctrl, index: usize) -> Result<&mut Group, Unavailable> {
        use std::collections::btree_map::Entry;
        Ok(match self.groups.entry(index) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(resctrl.make_group()?),
        })
    }

    /// Puts a thread into its tenant's group, if the tenant has one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&self, tenant: usize, thread: u32) -> Result<(), MachineError> {
        let group = self.groups.get(&tenant);
        group.map_or(Ok(()), |group| group.take(thread).map_err(missing))
    }

    /// Removes all groups.
    ///
    /// # Errors
    /// One cannot be removed; the others are.
    pub fn end(self) -> Result<(), MachineError> {
        let mut lost = None;
        for group in self.groups.into_values() {
            lost = lost.or(group.remove().err());
        }
        lost.map_or(Ok(()), |why| {
            Err(MachineError::System {
                what: "removing a resctrl group".into(),
                cause: why.reason,
            })
        })
    }
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

    #[test]
    fn a_tenant_has_its_ways_where_its_cores_are_and_nowhere_else() {
        let fake = Fake::intel();
        let (resctrl, root) = (fake.resctrl(), fake.root());
        let mut ways = Ways::default();
        // Processors 2 and 3 are of domain 1.
        let applied = ways.apply(&resctrl, &root, 0, &[2, 3], 0xf0).unwrap();
        assert_eq!(applied, 0xf0);
        let name = fake.groups().pop().unwrap();
        let found = resctrl.schemata(&name).unwrap();
        assert_eq!(found.get(Resource::L3, 1), Some(0xf0));
        assert_eq!(found.get(Resource::L3, 0), Some(0xffff));
        ways.take(0, 77).unwrap();
        // A tenant without ways of its own stays in its group.
        ways.take(1, 78).unwrap();
        assert_eq!(fake.threads(&name), [77]);
        // During a run: the same group, other ways.
        assert_eq!(ways.apply(&resctrl, &root, 0, &[2, 3], 0x3), Ok(0x3));
        assert_eq!(fake.groups(), [name.as_str()]);
        ways.end().unwrap();
        assert!(fake.groups().is_empty() && fake.threads("") == [77]);
    }

    #[test]
    fn code_and_data_get_the_same_ways() {
        let fake = Fake::with_code_and_data();
        let (resctrl, root) = (fake.resctrl(), fake.root());
        let mut ways = Ways::default();
        ways.apply(&resctrl, &root, 0, &[0], 0x7).unwrap();
        let found = resctrl.schemata(&fake.groups().pop().unwrap()).unwrap();
        for resource in [Resource::L3Code, Resource::L3Data] {
            assert_eq!(found.get(resource, 0), Some(0x7));
        }
    }

    #[test]
    fn ways_that_cannot_be_are_refused_in_words_and_leave_no_group() {
        let fake = Fake::intel();
        let (resctrl, root) = (fake.resctrl(), fake.root());
        for (cores, mask, said) in [
            (&[0][..], 0, "at least 1"),
            (&[0], 0x1_0000, "the cache has 0xffff"),
            (&[0], 0b101, "side by side"),
            (&[9], 0b1, "/sys/devices/system/cpu/cpu9/cache"),
        ] {
            let mut ways = Ways::default();
            let error = ways.apply(&resctrl, &root, 0, cores, mask).unwrap_err();
            assert!(error.reason.contains(said), "{error}");
            assert!(fake.groups().is_empty());
        }
        // Masks with holes are valid on AMD.
        let fake = Fake::amd();
        let mut ways = Ways::default();
        let applied = ways.apply(&fake.resctrl(), &fake.root(), 0, &[0], 0b101);
        assert_eq!(applied, Ok(0b101));
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
        // A recording can be read, but not written.
        let error = resctrl.make_group().unwrap_err();
        assert!(error.reason.contains("recorded machine"), "{error}");
    }
}
