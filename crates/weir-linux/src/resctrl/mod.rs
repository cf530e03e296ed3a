//! Cache ways and memory bandwidth for groups of threads, through the kernel's resctrl file system (kernel
//! documentation, filesystems/resctrl: Intel RDT, AMD QoS).
//!
//! A group is a folder with a list of threads and a text of values, the *schemata*. Groups of Weir's own
//! carry their process in the name, so that a group of a killed Weir is recognised and removed.
//!
//! | file | content |
//! |---|---|
//! | `schemata` | the values: resources, domains, values, and their text |
//! | `limits` | the limits of the hardware: masks, steps, number of groups |
//! | `group` | groups of Weir's own, and removal of old ones |

#[cfg(test)]
pub(crate) mod fake;
mod group;
mod limits;
mod schemata;

use std::io;

use weir_model::capability::Unavailable;

use crate::root::Root;

pub use group::Group;
pub use limits::{BandwidthLimits, CacheLimits};
pub use schemata::{Resource, Schemata};

/// The mount point in the kernel's documentation.
const MOUNT: &str = "/sys/fs/resctrl";

/// A requested value and the kernel's value now: the hardware rounds bandwidths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The requested value.
    pub requested: u64,
    /// The value in force, read back.
    pub applied: u64,
}

/// The resctrl of a machine.
#[derive(Debug, Clone)]
pub struct Resctrl {
    root: Root,
}

impl Resctrl {
    /// The resctrl below a root.
    ///
    /// # Errors
    /// It is not mounted, or the kernel has none.
    pub fn find(root: &Root) -> Result<Self, Unavailable> {
        if !root.exists(MOUNT) {
            return Err(Unavailable::because(format!(
                "there is no {MOUNT}: the kernel was built without resctrl (CONFIG_X86_CPU_RESCTRL), or the processor allocates neither cache nor bandwidth"
            )));
        }
        if !root.exists(&format!("{MOUNT}/schemata")) {
            return Err(Unavailable::because(format!(
                "{MOUNT} is not mounted; as root: mount -t resctrl resctrl {MOUNT}"
            )));
        }
        Ok(Self { root: root.clone() })
    }

    /// The values of a group; the empty name is the default group.
    ///
    /// # Errors
    /// There is no such group, or its text is invalid.
    pub fn schemata(&self, group: &str) -> Result<Schemata, Unavailable> {
        let text = self.root.text(&self.file(group, "schemata"));
        Schemata::parse(text.get()?)
    }

    /// Sets one value of a group and reads it back.
    ///
    /// # Errors
    /// There is no such group, resource or domain, or the kernel refuses, with its message.
    pub fn set(
        &self,
        group: &str,
        resource: Resource,
        domain: u32,
        value: u64,
    ) -> Result<Setting, Unavailable> {
        self.value(group, resource, domain)?;
        let line = format!("{}\n", resource.assign(domain, value));
        self.write(&self.file(group, "schemata"), &line)?;
        let applied = self.value(group, resource, domain)?;
        Ok(Setting {
            requested: value,
            applied,
        })
    }

    /// One value of a group.
    ///
    /// # Errors
    /// As [`schemata`](Self::schemata); or there is no such resource or domain.
    pub fn value(&self, group: &str, resource: Resource, domain: u32) -> Result<u64, Unavailable> {
        self.schemata(group)?.get(resource, domain).ok_or_else(|| {
            Unavailable::because(format!(
                "{} has no {resource} of domain {domain}",
                self.file(group, "schemata")
            ))
        })
    }

    fn file(&self, group: &str, name: &str) -> String {
        if group.is_empty() {
            format!("{MOUNT}/{name}")
        } else {
            format!("{MOUNT}/{group}/{name}")
        }
    }

    fn write(&self, path: &str, text: &str) -> Result<(), Unavailable> {
        self.root
            .write(path, text)
            .map_err(|error| self.refused(&format!("writing `{}` to {path}", text.trim()), &error))
    }

    /// Why the kernel refused; its own message is about the last command only.
    fn refused(&self, what: &str, error: &io::Error) -> Unavailable {
        let status = self.root.text(&format!("{MOUNT}/info/last_cmd_status"));
        let said = status.known().filter(|said| *said != "ok");
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => "; it is for root",
            io::ErrorKind::StorageFull => {
                "; all groups that the processor has are in use, remove one"
            }
            _ => "",
        };
        let said = said.map_or_else(String::new, |said| format!(" ({said})"));
        Unavailable::because(format!("{what}: {error}{said}{hint}"))
    }
}
