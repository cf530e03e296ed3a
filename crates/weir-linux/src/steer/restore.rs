//! Restoring the changes in force.
//!
//! A file or register that contains neither the earlier value nor Weir's was changed by another program in the
//! meantime, and is left to it. A folder that disappeared took its values with it, even if another of its name has
//! come: its inode number shows that (for a control group, its id).

use std::collections::HashMap;
use std::io;

use super::group::{file, groups_in, in_use, partition};
use super::journal::{ActiveChange, Changes, Folder, Task, Value};
use super::not_put_back::{Cause, NotPutBack};
use super::quota;
use crate::process::{leader, started};
use crate::register::Register;
use crate::root::{Reading, Root};

/// The folders of what is steered. A journal that names anything else is not replayed.
const OURS: [&str; 7] = [
    "/sys/fs/cgroup/",
    "/sys/fs/resctrl/",
    "/sys/devices/system/cpu/",
    "/sys/kernel/mm/mempolicy/weighted_interleave/",
    "/sys/kernel/mm/numa/",
    "/sys/kernel/mm/damon/admin/kdamonds/",
    "/proc/sys/kernel/numa_balancing",
];

/// How often a folder is emptied before the attempt is given up: threads start while others leave.
const TURNS: usize = 8;

/// The result of one restoration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Whether anything was written.
    pub touched: bool,
    /// Whether the journal may drop it.
    pub settled: bool,
    /// The report.
    pub not: Vec<NotPutBack>,
}

impl Outcome {
    fn well(touched: bool) -> Self {
        Self {
            touched,
            settled: true,
            not: Vec::new(),
        }
    }

    fn not_restored(touched: bool, path: &str, before: &str, cause: Cause) -> Self {
        Self {
            touched,
            // The list may still go with its controller.
            settled: !cause.is_refused() && !matches!(cause, Cause::Widest { .. }),
            not: vec![NotPutBack {
                path: path.to_owned(),
                before: before.to_owned(),
                cause,
            }],
        }
    }
}

/// Restores one change, of those that are still in force.
pub(crate) fn put_back(root: &Root, active: &ActiveChange, in_force: &Changes) -> Outcome {
    let path = active.path();
    let is_switch = || Register::of_path(path).is_some_and(Register::is_switch);
    let is_steered = OURS.iter().any(|ours| path.starts_with(ours)) || is_switch();
    if !is_steered || path.split('/').any(|part| part == "..") {
        return Outcome::not_restored(false, path, "", Cause::Foreign);
    }
    match active {
        ActiveChange::Value(value) => value_back(root, value, in_force),
        ActiveChange::Folder(folder) => folder_back(root, folder),
    }
}

/// Whether the kernel may change a written value: it rounds a clock to one that the processor has. All other
/// steered files contain what was written, or refuse it.
pub(crate) fn is_rounded(path: &str) -> bool {
    path.ends_with("/scaling_max_freq")
}

/// Whether a file contains what was written to it, or the kernel's own form of that.
pub(crate) fn is_ours(path: &str, ours: &str, now: &str) -> bool {
    ours == now || path.ends_with("/cpu.max") && quota::is_scaled(ours, now)
}

fn value_back(root: &Root, value: &Value, in_force: &Changes) -> Outcome {
    let Value { path, before, .. } = value;
    let not_restored = |cause| Outcome::not_restored(false, path, before, cause);
    let is_same_folder = || value.folder.is_none() || folder_number(root, path) == value.folder;
    let now = match root.text(path) {
        Reading::Known(now) => now,
        // It disappeared with a controller, without which a group has no list either.
        Reading::Absent(_) if before.is_empty() && is_same_folder() => return Outcome::well(false),
        // Its value has not gone with the file of its processor.
        Reading::Absent(why) if is_register(path) => {
            let why = format!("{why}; `modprobe msr` makes it");
            return not_restored(Cause::Refused { why });
        }
        Reading::Absent(_) => return not_restored(Cause::Gone),
        Reading::Unreadable(why) => return not_restored(Cause::Refused { why: why.reason }),
    };
    if !is_same_folder() {
        return not_restored(Cause::Gone);
    }
    if is_controllers(path) {
        return controllers_back(root, value, &now, in_force);
    }
    if now == *before {
        return Outcome::well(false);
    }
    let ours = [&value.ours, &value.pending, &widest(root, value)];
    let mut not = Vec::new();
    if !ours
        .into_iter()
        .flatten()
        .any(|ours| is_ours(path, ours, &now))
    {
        if value.pending.is_none() || !is_rounded(path) {
            return not_restored(Cause::Changed { found: now });
        }
        let cause = Cause::Uncertain { found: now.clone() };
        not = not_restored(cause).not;
    }
    let is_list = path.ends_with("/cpuset.cpus");
    if is_list && partition(root, folder_of(path)).is_some() {
        return not_restored(Cause::Partition { found: now });
    }
    let partitions = match is_list {
        true => partitions_beside(root, path),
        false => Vec::new(),
    };
    let refused = |why: String| Outcome::not_restored(true, path, before, Cause::Refused { why });
    let write = |text: &str| root.write_in(value.folder, path, &format!("{text}\n"));
    // The kernel accepts no empty write, and treats an empty line as nothing.
    if let Err(error) = write(before) {
        if !is_same_folder() {
            return not_restored(Cause::Gone);
        }
        return match widest(root, value) {
            Some(all) if write(&all).is_ok() && root.text(path).known() == Some(&all) => {
                let cause = Cause::Widest { found: all };
                Outcome::not_restored(true, path, before, cause)
            }
            _ => refused(format!("writing that again: {error}")),
        };
    }
    match root.text(path).get() {
        Ok(found) if found == before => {
            let lost = (partitions.into_iter()).filter(|group| partition(root, group).is_none());
            let lost = lost.map(|group| Cause::Overlaps {
                partition: file(&group, "cpuset.cpus.partition"),
            });
            not.extend(lost.flat_map(|cause| not_restored(cause).not));
            Outcome {
                not,
                ..Outcome::well(true)
            }
        }
        Ok(found) if is_rounded(path) || is_register(path) => {
            refused(format!("writing that again changed it to `{found}`"))
        }
        Ok(found) => {
            let found = found.clone();
            Outcome::not_restored(true, path, before, Cause::Changed { found })
        }
        Err(why) => refused(why.reason),
    }
}

/// The processors of a group that had no list of its own: all that the group above has. A list that cannot be
/// restored is at least made this wide.
fn widest(root: &Root, value: &Value) -> Option<String> {
    let group = value.path.strip_suffix("/cpuset.cpus")?;
    let all = root.text(&format!("{}/cpuset.cpus.effective", folder_of(group)));
    all.known().filter(|_| value.before.is_empty()).cloned()
}

/// The partitions among the groups next to that of a list.
fn partitions_beside(root: &Root, list: &str) -> Vec<String> {
    let above = folder_of(folder_of(list));
    let beside = groups_in(root, above).into_iter();
    let beside = beside.map(|name| format!("{above}/{name}"));
    beside
        .filter(|group| partition(root, group).is_some())
        .collect()
}

/// Whether a file lists the controllers of the groups below: `+NAME` and `-NAME` are written to it, and names
/// are read.
pub(crate) fn is_controllers(path: &str) -> bool {
    path.ends_with("/cgroup.subtree_control")
}

/// Removes the controllers that were not there before, except those that a group below uses by now: its values would go
/// with the controller.
fn controllers_back(root: &Root, value: &Value, now: &str, in_force: &Changes) -> Outcome {
    let Value { path, before, .. } = value;
    let has = |text: &str, name: &str| text.split_whitespace().any(|known| known == name);
    let of_ours = value.ours.iter().flat_map(|text| text.split_whitespace());
    let asked = value
        .pending
        .iter()
        .flat_map(|text| text.split_whitespace());
    let asked = asked.filter_map(|word| word.strip_prefix('+'));
    let mut added: Vec<&str> = of_ours
        .chain(asked)
        .filter(|name| !has(before, name) && has(now, name))
        .collect();
    added.sort_unstable();
    added.dedup();
    let mut outcome = Outcome::well(false);
    let mut not = |cause| {
        let more = Outcome::not_restored(true, path, before, cause);
        outcome.settled &= more.settled;
        outcome.not.extend(more.not);
    };
    let is_own = |path: &str| in_force.value(path).is_some();
    added.retain(|name| {
        let by = in_use(root, folder_of(path), name, is_own);
        if let Some(by) = &by {
            let (controller, by) = ((*name).to_owned(), by.clone());
            not(Cause::InUse { controller, by });
        }
        by.is_none()
    });
    let text: Vec<String> = added.iter().map(|name| format!("-{name}")).collect();
    let text = text.join(" ");
    if !text.is_empty() {
        if let Err(error) = root.write_in(value.folder, path, &text) {
            let why = format!("writing `{text}`: {error}");
            not(Cause::Refused { why });
        }
        outcome.touched = true;
    }
    outcome
}

/// Moves a folder's threads back and removes it.
fn folder_back(root: &Root, folder: &Folder) -> Outcome {
    let Folder { path, members, .. } = folder;
    if !root.exists(path) {
        return Outcome::well(false);
    }
    let listed = format!("{path}/{members}");
    let homes: HashMap<Task, &str> = (folder.moved.iter())
        .flat_map(|(from, tasks)| tasks.iter().map(|&task| (task, from.as_str())))
        .collect();
    let mut not = Vec::new();
    for _ in 0..TURNS {
        let text = root.text(&listed);
        let ids: Vec<u32> = (text.known().map_or("", String::as_str).lines())
            .filter_map(|line| line.trim().parse().ok())
            .collect();
        if ids.is_empty() {
            break;
        }
        not.clear();
        for id in ids {
            let Some(home) = home_of(root, folder, &homes, id) else {
                // A thread without a recorded group goes where the kernel puts threads without a group.
                continue;
            };
            match move_to(root, home, id) {
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => not.push(NotPutBack {
                    path: listed.clone(),
                    before: format!("thread {id} in {home}"),
                    cause: Cause::Refused {
                        why: error.to_string(),
                    },
                }),
            }
        }
        if !not.is_empty() {
            break;
        }
        if path.starts_with("/sys/fs/resctrl/") {
            // Threads that start now disappear with the folder.
            break;
        }
    }
    if let Err(error) = root.remove_folder(path) {
        let why = format!("removing it: {error}");
        not.push(
            Outcome::not_restored(true, path, "not there", Cause::Refused { why })
                .not
                .remove(0),
        );
    }
    Outcome {
        touched: true,
        settled: not.is_empty() || !root.exists(path),
        not,
    }
}

/// Moves a thread to a list. It reaches a monitoring group of resctrl by way of the group that contains it.
fn move_to(root: &Root, list: &str, id: u32) -> io::Result<()> {
    let text = format!("{id}\n");
    if let Some((above, _)) = list.split_once("/mon_groups/") {
        root.write(&format!("{above}/tasks"), &text)?;
    }
    root.write(list, &text)
}

/// The file that listed a thread before. A thread that started in the folder belongs to the list from which
/// its process, or a thread that was moved with it, came.
fn home_of<'f>(
    root: &Root,
    folder: &'f Folder,
    homes: &HashMap<Task, &'f str>,
    id: u32,
) -> Option<&'f str> {
    let start = started(root, id)?;
    if let Some(home) = homes.get(&Task { id, start }) {
        return Some(home);
    }
    let with_leader = leader(root, id).and_then(|id| {
        let start = started(root, id)?;
        homes.get(&Task { id, start }).copied()
    });
    with_leader.or_else(|| folder.moved.first().map(|(from, _)| from.as_str()))
}

/// Whether a path is that of a processor's register.
pub(crate) fn is_register(path: &str) -> bool {
    Register::of_path(path).is_some()
}

/// The inode number of the folder that a file is in. A register is in none: the file of its processor may be made again.
/// Nor is a sysctl: the kernel gives `/proc/sys` new numbers whenever it has forgotten the old ones.
pub(crate) fn folder_number(root: &Root, path: &str) -> Option<u64> {
    match is_register(path) || path.starts_with("/proc/sys/") {
        true => None,
        false => root.number_of(folder_of(path)),
    }
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("/", |(folder, _)| folder)
}
