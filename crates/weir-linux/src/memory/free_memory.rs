//! How much memory is available, so that no request makes the kernel kill a process.

use weir_model::machine::MachineError;
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use crate::root::Root;
use crate::topology::{list, node};

/// Memory left for the kernel, page tables and other programs.
const RESERVE: u64 = 64 << 20;

/// The memory available on a node, and what limits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeMemory {
    /// Bytes.
    pub free: Bytes,
    /// The tightest limit: the node's own memory or a control group.
    pub limit: String,
    /// Whether that is a control group.
    pub is_of_group: bool,
}

impl FreeMemory {
    /// Refuses what has no room on a tier of this node.
    pub fn refuses(self, tier: TierName, wanted: Bytes) -> MachineError {
        MachineError::NoMemory {
            tier,
            free: self.free,
            wanted,
            within: self.is_of_group.then_some(self.limit),
        }
    }
}

/// The memory available on a node (or of the whole machine), minus a reserve for other programs. `None` if it
/// is unknown.
pub fn free_memory(root: &Root, id: Option<u32>) -> Option<FreeMemory> {
    let on_node = match id {
        Some(id) => node::free_memory(root, id),
        None => node::machine_memory(root).1,
    };
    let on_node = on_node.known().map(|free| FreeMemory {
        free: Bytes(free.get().saturating_sub(RESERVE)),
        limit: id.map_or("the machine".to_owned(), |id| format!("node {id}")),
        is_of_group: false,
    });
    on_node
        .into_iter()
        .chain(control_groups(root))
        .min_by_key(|free_memory| free_memory.free)
}

/// The memory available on a node, minus a reserve for other programs. `None` if it is unknown. Pages that move from node to
/// node count against no other limit.
pub fn free_on_node(root: &Root, id: u32) -> Option<Bytes> {
    let free = node::free_memory(root, id);
    (free.known()).map(|free| Bytes(free.get().saturating_sub(RESERVE)))
}

/// Whether a node has memory now; one of which the kernel does not say has.
pub fn has_memory(root: &Root, id: u32) -> bool {
    let text = root.text("/sys/devices/system/node/has_memory");
    (text.known()).is_none_or(|text| list::parse(text).is_ok_and(|nodes| nodes.contains(&id)))
}

/// The files of a version of control groups: where it is mounted, the limit, what is used, and what of that can be dropped.
struct Files {
    mount: &'static str,
    most: &'static str,
    used: &'static str,
    cached: &'static str,
}

const FILES: [Files; 2] = [
    Files {
        mount: "/sys/fs/cgroup",
        most: "memory.max",
        used: "memory.current",
        cached: "inactive_file ",
    },
    Files {
        mount: "/sys/fs/cgroup/memory",
        most: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        cached: "total_inactive_file ",
    },
];

/// The tightest limit of this process's control group and those above it, in either version.
fn control_groups(root: &Root) -> Option<FreeMemory> {
    let groups = root.text("/proc/self/cgroup");
    // `0::/a` is version 2, `4:memory:/a` version 1.
    let own = groups.known()?.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let version = match controllers {
            "" => 0,
            "memory" => 1,
            _ => return None,
        };
        tightest(root, &FILES[version], path)
    });
    own.min_by_key(|free_memory| free_memory.free)
}

fn tightest(root: &Root, files: &Files, own: &str) -> Option<FreeMemory> {
    let mut path = own;
    let mut tightest: Option<FreeMemory> = None;
    loop {
        let base = format!("{}{}", files.mount, path.trim_end_matches('/'));
        let number = |name: &str| {
            root.value::<u64>(&format!("{base}/{name}"))
                .known()
                .copied()
        };
        // Without a limit the file contains `max`.
        if let (Some(most), Some(used)) = (number(files.most), number(files.used)) {
            let stat = root.text(&format!("{base}/memory.stat"));
            let cached = stat.known().and_then(|text| {
                let line = text.lines().find_map(|l| l.strip_prefix(files.cached))?;
                line.parse::<u64>().ok()
            });
            let free = most
                .saturating_sub(used)
                .saturating_add(cached.unwrap_or(0))
                .saturating_sub(RESERVE);
            if tightest
                .as_ref()
                .is_none_or(|free_memory| free < free_memory.free.get())
            {
                tightest = Some(FreeMemory {
                    free: Bytes(free),
                    limit: format!("the control group {path}"),
                    is_of_group: true,
                });
            }
        }
        match path.rfind('/') {
            Some(end) if path.len() > 1 => path = if end == 0 { "/" } else { &path[..end] },
            _ => return tightest,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(base: &std::path::Path, path: &str, text: &str) {
        let file = base.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn the_tightest_of_node_and_control_groups_counts() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        let meminfo = "Node 1 MemTotal: 4194304 kB\nNode 1 MemFree: 1048576 kB\n";
        write(base, "sys/devices/system/node/node1/meminfo", meminfo);
        let root = Root::at(base);
        let alone = free_memory(&root, Some(1)).unwrap();
        assert_eq!(alone.free, Bytes((1 << 30) - RESERVE));
        assert_eq!(free_memory(&root, Some(2)), None);

        write(base, "proc/self/cgroup", "0::/a/b\n");
        write(base, "sys/fs/cgroup/a/memory.max", "536870912\n");
        write(base, "sys/fs/cgroup/a/memory.current", "268435456\n");
        write(
            base,
            "sys/fs/cgroup/a/memory.stat",
            "anon 1\ninactive_file 4096\n",
        );
        write(base, "sys/fs/cgroup/a/b/memory.max", "max\n");
        write(base, "sys/fs/cgroup/a/b/memory.current", "1\n");
        let limited = free_memory(&root, Some(1)).unwrap();
        assert_eq!(limited.free, Bytes((256 << 20) + 4096 - RESERVE));
        assert_eq!(limited.limit, "the control group /a");
        let refused = limited.refuses(TierName::dram(), Bytes::gib(1)).to_string();
        assert!(
            refused.contains("free within the control group /a, but"),
            "{refused}"
        );
        let refused = alone.refuses(TierName::dram(), Bytes::gib(1)).to_string();
        assert!(refused.contains("free, but"), "{refused}");
        write(base, "sys/fs/cgroup/a/b/memory.max", "134217728\n");
        let inner = free_memory(&root, Some(1)).unwrap();
        assert_eq!(inner.limit, "the control group /a/b");
        assert_eq!(inner.free, Bytes((128 << 20) - 1 - RESERVE));

        write(base, "proc/self/cgroup", "5:devices:/\n4:memory:/c\n0::/\n");
        write(
            base,
            "sys/fs/cgroup/memory/c/memory.limit_in_bytes",
            "134217728\n",
        );
        write(
            base,
            "sys/fs/cgroup/memory/c/memory.usage_in_bytes",
            "8192\n",
        );
        write(
            base,
            "sys/fs/cgroup/memory/c/memory.stat",
            "inactive_file 1\ntotal_inactive_file 4096\n",
        );
        let limited = free_memory(&root, Some(1)).unwrap();
        assert_eq!(limited.free, Bytes((128 << 20) - 4096 - RESERVE));
        assert_eq!(limited.limit, "the control group /c");
    }
}
