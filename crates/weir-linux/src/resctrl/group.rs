//! Groups of Weir's own. Their names identify their process: `weir-PROCESS-START-NUMBER`, with the start time
//! in the kernel's ticks, since process numbers are reused.

use std::sync::atomic::{AtomicU32, Ordering};

use weir_model::capability::Unavailable;

use super::{MOUNT, Resctrl, Resource, Setting};
use crate::process::started;

/// What the names of our groups begin with.
const OURS: &str = "weir-";
/// Separates the groups of this process.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A group that is removed on drop. Threads in it then move to the default group.
#[derive(Debug)]
pub struct Group {
    resctrl: Resctrl,
    name: String,
    gone: bool,
}

impl Resctrl {
    /// A new group without threads and without limits.
    ///
    /// # Errors
    /// The processor has no group left, or this user may not make one.
    pub fn make_group(&self) -> Result<Group, Unavailable> {
        let own = std::process::id();
        let start = started(&self.root, own).unwrap_or(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{OURS}{own}-{start}-{number}");
        let path = format!("{MOUNT}/{name}");
        self.root
            .make_folder(&path)
            .map_err(|error| self.refused(&format!("making the group {path}"), &error))?;
        Ok(Group {
            resctrl: self.clone(),
            name,
            gone: false,
        })
    }

    /// Removes groups of Weir processes that have ended, and returns their names.
    ///
    /// # Errors
    /// One of them cannot be removed; the others are removed all the same.
    pub fn sweep(&self) -> Result<Vec<String>, Unavailable> {
        let names = self.root.list(MOUNT);
        let names = names.known().map_or(&[][..], Vec::as_slice);
        let left = names.iter().filter(|name| {
            whose(name).is_some_and(|(process, start)| started(&self.root, process) != Some(start))
        });
        let mut removed = Vec::new();
        let mut failed = None;
        for name in left {
            let path = format!("{MOUNT}/{name}");
            match self.root.remove_folder(&path) {
                Ok(()) => removed.push(name.clone()),
                Err(error) => {
                    failed = failed.or(Some(self.refused(&format!("removing {path}"), &error)));
                }
            }
        }
        failed.map_or(Ok(removed), Err)
    }
}

impl Group {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Moves a thread into the group, out of the group in which it was.
    ///
    /// # Errors
    /// There is no such thread, or it may not be moved.
    pub fn take(&self, thread: u32) -> Result<(), Unavailable> {
        let tasks = self.resctrl.file(&self.name, "tasks");
        self.resctrl.write(&tasks, &format!("{thread}\n"))
    }

    /// Sets one of its values and reads it back.
    ///
    /// # Errors
    /// As [`Resctrl::set`].
    pub fn set(&self, what: Resource, domain: u32, value: u64) -> Result<Setting, Unavailable> {
        self.resctrl.set(&self.name, what, domain, value)
    }

    /// Removes it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove(mut self) -> Result<(), Unavailable> {
        self.go()
    }

    fn go(&mut self) -> Result<(), Unavailable> {
        if std::mem::replace(&mut self.gone, true) {
            return Ok(());
        }
        let path = format!("{MOUNT}/{}", self.name);
        let removed = self.resctrl.root.remove_folder(&path);
        removed.map_err(|error| self.resctrl.refused(&format!("removing {path}"), &error))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Callers that need the error call `remove`; the next Weir tries again.
        let _ = self.go();
    }
}

/// The process of a Weir group, and its start time; `None` for other groups.
fn whose(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(OURS)?.split('-');
    let process = parts.next()?.parse().ok()?;
    let start = parts.next()?.parse().ok()?;
    let _number: u32 = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some((process, start))
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_group_takes_threads_and_goes() {
        let fake = Fake::intel();
        let resctrl = fake.resctrl();
        let group = resctrl.make_group().unwrap();
        group.take(7).unwrap();
        assert_eq!(fake.threads(group.name()), [7]);
        let name = group.name().to_owned();
        assert!(name.starts_with(OURS) && fake.groups().contains(&name));
        group.remove().unwrap();
        assert!(fake.groups().is_empty());
        assert!(fake.threads("").contains(&7));
        drop(resctrl.make_group().unwrap());
        assert!(fake.groups().is_empty());
    }

    #[test]
    fn groups_run_out_and_it_is_said() {
        let fake = Fake::intel();
        let resctrl = fake.resctrl();
        let most = resctrl.cache_limits(Resource::L3).unwrap().groups;
        let all: Result<Vec<Group>, _> = (1..most).map(|_| resctrl.make_group()).collect();
        let error = resctrl.make_group().unwrap_err();
        assert!(error.reason.contains("in use"), "{error}");
        drop(all);
        assert!(resctrl.make_group().is_ok());
    }

    #[test]
    fn what_a_killed_weir_left_is_removed_and_nothing_else() {
        let fake = Fake::intel();
        let stat = |start: u64| format!("9 (a) b) S {} {start} 0", ["0"; 18].join(" "));
        fake.process(100, &stat(5));
        for name in [
            "weir-100-5-0",
            "weir-100-4-0",
            "weir-101-5-0",
            "weir-x",
            "weir-1-2",
            "weir-1-2-3-4",
            "others",
        ] {
            fake.add_group(name);
        }
        let mut removed = fake.resctrl().sweep().unwrap();
        removed.sort();
        assert_eq!(removed, ["weir-100-4-0", "weir-101-5-0"]);
        let kept = [
            "others",
            "weir-1-2",
            "weir-1-2-3-4",
            "weir-100-5-0",
            "weir-x",
        ];
        assert_eq!(fake.groups(), kept);
    }

    proptest! {
        #[test]
        fn a_name_tells_its_process(process: u32, start: u64, number: u32) {
            let name = format!("{OURS}{process}-{start}-{number}");
            prop_assert_eq!(whose(&name), Some((process, start)));
        }

        #[test]
        fn other_names_are_nobodys(name in "(weir-)?[a-z0-9-]{0,12}") {
            if let Some((process, start)) = whose(&name) {
                prop_assert!(name.contains(&process.to_string()) && name.contains(&start.to_string()));
            }
        }
    }
}
