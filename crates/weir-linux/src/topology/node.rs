//! Memory nodes: their contents, their distances, and the firmware's figures.

use serde::Serialize;
use weir_model::capability::Unavailable;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::list;
use crate::root::{Reading, Root};

/// The folder of the kernel's nodes.
pub const NODES: &str = "/sys/devices/system/node";

/// One memory node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    /// Linux's number.
    pub id: u32,
    /// Its hardware threads; none for a node that has only memory.
    pub cpus: Reading<Vec<u32>>,
    /// Memory on it.
    pub total: Reading<Bytes>,
    /// Memory that is unused, or only caches files: what a program can get.
    pub free: Reading<Bytes>,
    /// Distances to every online node in ascending order of number, in the firmware's measure (10 is local).
    pub distances: Reading<Vec<u32>>,
    /// The firmware's figures for accesses from the nearest initiator (HMAT access class 0).
    pub access0: Reading<Access>,
    /// The same from the nearest processor (access class 1).
    pub access1: Reading<Access>,
    /// Pools of reserved huge pages.
    pub huge_pages: Vec<HugePool>,
}

impl Node {
    /// Whether it has memory, as far as is known.
    pub fn has_memory(&self) -> bool {
        self.total.known().is_some_and(|total| total.get() > 0)
    }

    /// Whether it has processors.
    pub fn has_cpus(&self) -> bool {
        self.cpus.known().is_some_and(|cpus| !cpus.is_empty())
    }
}

/// Performance of a node as the firmware describes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Access {
    /// The nodes that reach it with this performance.
    pub initiators: Vec<u32>,
    /// Read latency.
    pub read_latency: Reading<Nanos>,
    /// Write latency.
    pub write_latency: Reading<Nanos>,
    /// Read bandwidth.
    pub read_bandwidth: Reading<GbPerSec>,
    /// Write bandwidth.
    pub write_bandwidth: Reading<GbPerSec>,
}

/// Reserved huge pages of one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HugePool {
    /// Bytes in a page.
    pub page: Bytes,
    /// Pages that are reserved.
    pub total: u64,
    /// Of those, pages that are free.
    pub free: u64,
}

/// Reads every online node.
pub fn nodes(root: &Root) -> Reading<Vec<Node>> {
    let names = root.numbered(NODES, "node");
    // On some kernels an offline node keeps its folder.
    let online = root
        .text(&format!("{NODES}/online"))
        .and_then(|text| list::parse(&text));
    names.map(|names| {
        let listed = |id: &u32| online.known().is_none_or(|ids| ids.contains(id));
        // Every machine has an online node: a list without one is broken, and says nothing.
        let broken = !names.iter().any(|(id, _)| listed(id));
        names
            .into_iter()
            .filter(|(id, _)| broken || listed(id))
            .map(|(id, _)| node(root, id))
            .collect()
    })
}

fn node(root: &Root, id: u32) -> Node {
    let base = format!("{NODES}/node{id}");
    let memory = root
        .text(&format!("{base}/meminfo"))
        .map(|text| MemInfo::of(&text));
    Node {
        id,
        cpus: root
            .text(&format!("{base}/cpulist"))
            .and_then(|text| list::parse(&text)),
        total: memory.clone().and_then(|m| m.get("MemTotal")),
        free: memory.and_then(|m| m.obtainable()),
        distances: root.text(&format!("{base}/distance")).and_then(|text| {
            text.split_ascii_whitespace()
                .map(|number| {
                    number.parse().map_err(|_| {
                        Unavailable::because(format!("{base}/distance says `{number}`"))
                    })
                })
                .collect()
        }),
        access0: access(root, &format!("{base}/access0/initiators")),
        access1: access(root, &format!("{base}/access1/initiators")),
        huge_pages: huge_pools(root, &format!("{base}/hugepages")),
    }
}

/// The memory available on one node now. Read again before every allocation.
pub fn free_memory(root: &Root, id: u32) -> Reading<Bytes> {
    match root.text(&format!("{NODES}/node{id}/meminfo")) {
        Reading::Absent(_) if id == 0 && !root.exists(NODES) => machine_memory(root).1,
        text => text.and_then(|text| MemInfo::of(&text).obtainable()),
    }
}

/// Total and free memory of a machine whose kernel knows no nodes.
pub fn machine_memory(root: &Root) -> (Reading<Bytes>, Reading<Bytes>) {
    let memory = root.text("/proc/meminfo").map(|text| MemInfo::of(&text));
    (
        memory.clone().and_then(|m| m.get("MemTotal")),
        memory.and_then(|m| m.get("MemAvailable").or_else(|_| m.obtainable())),
    )
}

fn access(root: &Root, base: &str) -> Reading<Access> {
    root.numbered(base, "node").and_then(|initiators| {
        let access = performance(root, base).get()?.clone();
        Ok(Access {
            initiators: initiators.into_iter().map(|(id, _)| id).collect(),
            ..access
        })
    })
}

/// Latency and bandwidth as the kernel writes them, in files of a folder.
pub(super) fn performance(root: &Root, base: &str) -> Reading<Access> {
    let latency = |name| {
        root.value::<u32>(&format!("{base}/{name}"))
            .and_then(|ns| reported(ns, name).map(|ns| Nanos(f64::from(ns))))
    };
    // The kernel's unit is MB/s.
    let bandwidth = |name| {
        root.value::<u32>(&format!("{base}/{name}"))
            .and_then(|mb| reported(mb, name).map(|mb| GbPerSec(f64::from(mb) / 1e3)))
    };
    if !root.exists(base) {
        return Reading::Absent(Unavailable::because(format!("there is no {base}")));
    }
    let access = Access {
        initiators: Vec::new(),
        read_latency: latency("read_latency"),
        write_latency: latency("write_latency"),
        read_bandwidth: bandwidth("read_bandwidth"),
        write_bandwidth: bandwidth("write_bandwidth"),
    };
    // Without firmware tables the kernel still links initiators, and gives no numbers.
    match (access.read_latency.get(), access.read_bandwidth.get()) {
        (Err(why), Err(_)) => Reading::Unreadable(why),
        _ => Reading::Known(access),
    }
}

/// The kernel shows a zero if the firmware gave no figure.
fn reported(value: u32, name: &str) -> Result<u32, Unavailable> {
    if value == 0 {
        return Err(Unavailable::because(format!(
            "the firmware leaves {name} empty"
        )));
    }
    Ok(value)
}

fn huge_pools(root: &Root, base: &str) -> Vec<HugePool> {
    let Reading::Known(sizes) = root.list(base) else {
        return Vec::new();
    };
    let mut pools: Vec<HugePool> = sizes
        .iter()
        .filter_map(|name| {
            let page: u64 = name
                .strip_prefix("hugepages-")?
                .strip_suffix("kB")?
                .parse()
                .ok()?;
            let count = |what: &str| {
                root.value(&format!("{base}/{name}/{what}"))
                    .known()
                    .copied()
            };
            Some(HugePool {
                page: Bytes(page.checked_mul(1024)?),
                total: count("nr_hugepages")?,
                free: count("free_hugepages")?,
            })
        })
        .collect();
    pools.sort_by_key(|pool| pool.page);
    pools
}

/// `meminfo` of a node (`Node 0 MemFree:  1 kB`) or of the machine (`MemFree:  1 kB`).
#[derive(Debug, Clone)]
struct MemInfo(Vec<(String, u64)>);

impl MemInfo {
    fn of(text: &str) -> Self {
        let entry = |line: &str| {
            let (name, rest) = line.split_once(':')?;
            let name = name.rsplit(' ').next()?;
            let kib: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
            Some((name.to_owned(), kib.checked_mul(1024)?))
        };
        Self(text.lines().filter_map(entry).collect())
    }

    fn get(&self, name: &str) -> Result<Bytes, Unavailable> {
        self.0
            .iter()
            .find(|(n, _)| n == name)
            .map(|&(_, bytes)| Bytes(bytes))
            .ok_or_else(|| Unavailable::because(format!("meminfo has no {name}")))
    }

    /// Free pages and clean file pages that have not been used lately.
    fn obtainable(&self) -> Result<Bytes, Unavailable> {
        let free = self.get("MemFree")?;
        let cached = self.get("Inactive(file)").unwrap_or_default();
        Ok(Bytes(free.get().saturating_add(cached.get())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_can_get_is_free_or_caches_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let text = "MemTotal: 100 kB\nMemFree: 10 kB\nInactive(file): 5 kB\n";
        put("proc/meminfo", text);
        assert_eq!(machine_memory(&root).1, Reading::Known(Bytes::kib(15)));
        put("proc/meminfo", &format!("{text}MemAvailable: 50 kB\n"));
        let (total, free) = machine_memory(&root);
        assert_eq!(total, Reading::Known(Bytes::kib(100)));
        assert_eq!(free, Reading::Known(Bytes::kib(50)));
        let node = text.replace("Mem", "Node 1 Mem");
        let node = node.replace("Inactive", "Node 1 Inactive");
        put("sys/devices/system/node/node1/meminfo", &node);
        assert_eq!(free_memory(&root, 1), Reading::Known(Bytes::kib(15)));
    }
}
