//! The memory placement of programs that are started from here, as `numactl` does it.

use std::io;

use weir_model::capability::Unavailable;

use super::policy;
use crate::root::Root;

/// The policy of a program's memory, inherited by all its children.
///
/// It applies to pages that are made after the program begins. Pages in the kernel's page cache, such as the
/// program's own file, stay where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramPolicy {
    mode: libc::c_int,
    name: &'static str,
    nodes: Vec<u32>,
}

impl ProgramPolicy {
    /// Every page on one node; if the node is full, the program is killed.
    pub fn bind(node: u32) -> Self {
        Self {
            mode: policy::MPOL_BIND,
            name: "MPOL_BIND",
            nodes: vec![node],
        }
    }

    /// Every page on one node as long as it has free memory.
    pub fn preferred(node: u32) -> Self {
        Self {
            mode: policy::MPOL_PREFERRED,
            name: "MPOL_PREFERRED",
            nodes: vec![node],
        }
    }

    /// Page by page over nodes.
    pub fn interleave(nodes: &[u32]) -> Self {
        Self {
            mode: policy::MPOL_INTERLEAVE,
            name: "MPOL_INTERLEAVE",
            nodes: nodes.to_vec(),
        }
    }

    /// Over nodes by the system's weights (`SystemSettings`).
    pub fn weighted(nodes: &[u32]) -> Self {
        Self {
            mode: policy::MPOL_WEIGHTED_INTERLEAVE,
            name: "MPOL_WEIGHTED_INTERLEAVE",
            nodes: nodes.to_vec(),
        }
    }

    /// Starts a program with the policy: this thread has the policy in the meantime, and a child inherits it.
    ///
    /// # Errors
    /// The kernel refuses the policy, or the program does not start.
    pub fn around<T>(&self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let failed =
            |what: &str, error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"));
        let mut thread =
            policy::ThreadPolicy::save().map_err(|error| failed("get_mempolicy", error))?;
        thread.set(self.mode, &self.nodes).map_err(|error| {
            let what = format!("set_mempolicy ({}) to nodes {:?}", self.name, self.nodes);
            failed(&what, error)
        })?;
        start()
    }
}

/// The size of the pages of programs that this process starts, for as long as this is kept.
#[derive(Debug)]
pub struct ProgramPages(());

/// Where the kernel says to whom it gives transparent huge pages.
const TRANSPARENT: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

impl ProgramPages {
    /// No huge pages but those that a program reserves: `PR_SET_THP_DISABLE` of prctl(2), which children inherit.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn base() -> io::Result<Self> {
        disable_transparent(true)?;
        Ok(Self(()))
    }

    /// Huge pages wherever they fit.
    ///
    /// # Errors
    /// The kernel gives them only to programs that ask, or to none; the reason has what changes that.
    pub fn huge(root: &Root) -> Result<(), Unavailable> {
        match root.text(TRANSPARENT).known() {
            Some(text) if text.contains("[always]") => Ok(()),
            Some(_) => Err(Unavailable::because(format!(
                "this host does not give every program pages of 2 MiB; as root: echo always > {TRANSPARENT}"
            ))),
            None => Err(Unavailable::because(format!(
                "this kernel has no transparent huge pages: {TRANSPARENT} cannot be read"
            ))),
        }
    }
}

impl Drop for ProgramPages {
    fn drop(&mut self) {
        // It was possible before.
        let _ = disable_transparent(false);
    }
}

fn disable_transparent(disable: bool) -> io::Result<()> {
    // SAFETY: this operation takes numbers alone, and no memory of this process.
    let done = unsafe {
        libc::prctl(
            libc::PR_SET_THP_DISABLE,
            libc::c_ulong::from(disable),
            0,
            0,
            0,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The policy of each mapping of a child, as the kernel reports it.
    fn child(policy: &ProgramPolicy) -> Option<String> {
        let mut cat = Command::new("cat");
        let done = policy.around(|| cat.arg("/proc/self/numa_maps").output());
        let done = done.ok().filter(|done| done.status.success())?;
        String::from_utf8(done.stdout).ok()
    }

    #[test]
    fn a_child_has_the_policy_and_its_parent_has_it_no_more() {
        let Some(maps) = child(&ProgramPolicy::bind(0)) else {
            // A kernel without nodes has no policies to inherit.
            return;
        };
        // The kernel's own mappings, such as its clock page, keep the kernel's policy.
        let heap = |maps: &str| {
            let line = maps.lines().find(|line| line.contains(" heap"));
            line.unwrap_or_else(|| panic!("{maps}")).to_owned()
        };
        assert!(heap(&maps).contains(" bind:0 "), "{maps}");
        let own = heap(&std::fs::read_to_string("/proc/thread-self/numa_maps").unwrap());
        assert!(!own.contains(" bind:0 "), "{own}");
    }

    #[test]
    fn a_child_has_no_huge_pages_while_they_are_off() {
        let of_child = || {
            let done = Command::new("cat")
                .arg("/proc/self/status")
                .output()
                .unwrap();
            let text = String::from_utf8(done.stdout).unwrap();
            let line = text.lines().find(|line| line.starts_with("THP_enabled:"));
            line.map(|line| line.ends_with('1'))
        };
        let before = of_child();
        let off = ProgramPages::base().unwrap();
        assert_eq!(of_child(), before.map(|_| false));
        drop(off);
        assert_eq!(of_child(), before);
    }

    #[test]
    fn a_node_that_is_not_there_is_named() {
        let error = ProgramPolicy::bind(1000)
            .around(|| Ok(()))
            .expect_err("node 1000 exists");
        let words = error.to_string();
        assert!(words.contains("mempolicy"), "{words}");
    }
}
