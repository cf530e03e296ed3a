//! The control group (version 2) behind a scope: its files, processors and threads (kernel
//! documentation, admin-guide/cgroup-v2).

use weir_model::capability::Unavailable;

use crate::root::Root;
use crate::topology::list;

/// The mount point of version 2 in the kernel's documentation.
pub(crate) const MOUNT: &str = "/sys/fs/cgroup";

/// Whether a path is a control group.
pub(crate) fn is_group(root: &Root, path: &str) -> bool {
    root.exists(&format!("{path}/cgroup.procs"))
        && root.exists(&format!("{path}/cgroup.controllers"))
}

/// Whether this host has control groups of version 2.
///
/// # Errors
/// Why not, and what to do.
pub fn version_2(root: &Root) -> Result<(), Unavailable> {
    if root.exists(&format!("{MOUNT}/cgroup.controllers")) {
        return Ok(());
    }
    let unified = format!("{MOUNT}/unified/cgroup.controllers");
    let why = if root.exists(&unified) {
        "control groups of version 2 are mounted without controllers, together with those of version 1; boot with systemd.unified_cgroup_hierarchy=1"
    } else if root.exists(&format!("{MOUNT}/cpu")) || root.exists(&format!("{MOUNT}/cpu,cpuacct")) {
        "control groups are of version 1 here, whose limits cannot be restored exactly; boot with systemd.unified_cgroup_hierarchy=1 (cgroup_no_v1=all without systemd)"
    } else {
        "no control groups are mounted; as root: mount -t cgroup2 cgroup2 /sys/fs/cgroup"
    };
    Err(Unavailable::because(why))
}

/// The path of a file of a group.
pub(crate) fn file(group: &str, name: &str) -> String {
    format!("{group}/{name}")
}

/// The group above, unless it is the root of all.
pub(crate) fn above(group: &str) -> Option<&str> {
    let (above, _) = group.rsplit_once('/')?;
    above.starts_with(MOUNT).then_some(above)
}

/// The names of the groups directly below one.
pub(crate) fn groups_in(root: &Root, path: &str) -> Vec<String> {
    let names = root.list(path);
    let names = names.known().map_or(&[][..], Vec::as_slice);
    let is_below = |name: &&String| is_group(root, &format!("{path}/{name}"));
    names.iter().filter(is_below).cloned().collect()
}

/// Every thread of a group and of those below it.
pub(crate) fn threads(root: &Root, group: &str) -> Vec<u32> {
    numbers_below(root, group, "cgroup.threads")
}

/// Every process of a group and of those below it.
pub(crate) fn processes(root: &Root, group: &str) -> Vec<u32> {
    numbers_below(root, group, "cgroup.procs")
}

fn numbers_below(root: &Root, group: &str, name: &str) -> Vec<u32> {
    let mut all = Vec::new();
    let mut open = vec![group.to_owned()];
    while let Some(group) = open.pop() {
        // The processes of a threaded group are listed at its root only, and cannot be read here.
        let text = root.text(&file(&group, name));
        let lines = text.known().map_or("", String::as_str).lines();
        all.extend(lines.filter_map(|line| line.trim().parse::<u32>().ok()));
        if has_none_below(root, &group) {
            continue;
        }
        let below = groups_in(root, &group);
        open.extend(below.iter().map(|name| format!("{group}/{name}")));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether the kernel reports no groups below a group, which costs less than a listing.
fn has_none_below(root: &Root, group: &str) -> bool {
    let stat = root.text(&file(group, "cgroup.stat"));
    let is_none = |text: &String| text.lines().any(|line| line == "nr_descendants 0");
    stat.known().is_some_and(is_none)
}

/// The processors that a group may use now: its own, or those of the nearest group above with a list
/// (`cpuset.cpus.effective`), or all.
///
/// # Errors
/// The kernel does not say, or the list is invalid.
pub(crate) fn processors(root: &Root, group: &str) -> Result<Vec<u32>, Unavailable> {
    let mut at = Some(group);
    while let Some(group) = at {
        let text = root.text(&file(group, "cpuset.cpus.effective"));
        if let Some(text) = text.known() {
            return list::parse(text);
        }
        at = above(group);
    }
    let online = root.text("/sys/devices/system/cpu/online");
    list::parse(online.get()?)
}

/// The kind of a group that is a partition: its processors are its own, and those of no other group.
pub(crate) fn partition(root: &Root, group: &str) -> Option<String> {
    let text = root.text(&file(group, "cpuset.cpus.partition"));
    let kinds = ["root", "isolated"];
    (text.known().filter(|text| kinds.contains(&text.as_str()))).cloned()
}

/// Whether a group has a controller, or can get it.
///
/// # Errors
/// The kernel has no controller of the name.
pub(crate) fn may_have(root: &Root, group: &str, controller: &str) -> Result<(), Unavailable> {
    let text = root.text(&file(MOUNT, "cgroup.controllers"));
    let all = text.get()?;
    if group == MOUNT {
        return Err(Unavailable::because(
            "the root of all control groups is the whole machine, and cannot be limited",
        ));
    }
    if all.split_whitespace().any(|name| name == controller) {
        return Ok(());
    }
    Err(Unavailable::because(format!(
        "this kernel offers no controller `{controller}` to control groups (it has: {all})"
    )))
}

/// The settings of a controller that a group below one has, and their content in a new group (kernel documentation,
/// admin-guide/cgroup-v2).
const DEFAULTS: [(&str, &str, &str); 10] = [
    ("cpu", "cpu.max", "max 100000"),
    ("cpu", "cpu.max.burst", "0"),
    ("cpu", "cpu.weight", "100"),
    ("cpu", "cpu.idle", "0"),
    ("cpu", "cpu.uclamp.min", "0.00"),
    ("cpu", "cpu.uclamp.max", "max"),
    ("cpuset", "cpuset.cpus", ""),
    ("cpuset", "cpuset.mems", ""),
    ("cpuset", "cpuset.cpus.exclusive", ""),
    ("cpuset", "cpuset.cpus.partition", "member"),
];

/// A file of a group directly below one that another program has set, and that would be lost with a controller.
/// `is_own` says which files have a value of Weir.
pub(crate) fn in_use(
    root: &Root,
    group: &str,
    controller: &str,
    is_own: impl Fn(&str) -> bool,
) -> Option<String> {
    let settings = DEFAULTS.iter().filter(|(of, ..)| *of == controller);
    let settings: Vec<_> = settings.collect();
    groups_in(root, group).into_iter().find_map(|name| {
        let below = format!("{group}/{name}");
        let passed_on = file(&below, "cgroup.subtree_control");
        let others = |path: &String, is_set: &dyn Fn(&str) -> bool| {
            !is_own(path) && root.text(path).known().is_some_and(|text| is_set(text))
        };
        let passes_on = |text: &str| text.split_whitespace().any(|known| known == controller);
        if others(&passed_on, &passes_on) {
            return Some(passed_on);
        }
        settings.iter().find_map(|(_, name, new)| {
            let path = file(&below, name);
            others(&path, &|text| text != *new).then_some(path)
        })
    })
}
