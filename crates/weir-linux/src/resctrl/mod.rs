//! Cache ways and memory bandwidth for groups of threads, through the kernel's resctrl file system (kernel
//! documentation, filesystems/resctrl: Intel RDT, AMD QoS).
//!
//! A group is a folder with a list of threads and a text of values, the *schemata*. Groups are made and changed
//! through the journal (`steer::actuators::allocation`).
//!
//! | file | content |
//! |---|---|
//! | `schemata` | the values: resources, domains, values, and their text |
//! | `limits` | the limits of the hardware: masks, steps, number of groups |

#[cfg(test)]
pub(crate) mod fake;
mod limits;
mod schemata;

use weir_model::capability::Unavailable;

use crate::root::Root;

pub use limits::{BandwidthLimits, CacheLimits};
pub use schemata::{Resource, Schemata};

/// The mount point in the kernel's documentation.
const MOUNT: &str = "/sys/fs/resctrl";

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
}
