//! From nodes to tiers: which memory is local, remote, behind CXL, or of unknown kind.

use weir_model::machine::MachineError;
use weir_model::topology::{Limits, Tier, TierKind, TierName, Topology};
use weir_model::units::GbPerSec;

use super::HostView;
use super::cxl::{CxlNode, Link};
use super::list;
use super::node::Node;
use super::processor::Cpu;

/// A node and its role for threads on the socket of `dram`.
struct Placed<'a> {
    node: &'a Node,
    kind: TierKind,
    cxl: Option<&'a CxlNode>,
}

pub(super) fn topology(view: &HostView) -> Result<Topology, MachineError> {
    let cpus = view
        .cpus
        .get()
        .map_err(|why| unknown("processors", &why.reason))?;
    let (home, tiers) = match view.known_nodes() {
        [] => (None, vec![whole_machine(view)?]),
        nodes => {
            let home = home(view, nodes, cpus)?;
            (Some(home), tiers(view, nodes, home))
        }
    };
    let cores = cores_of(cpus, home);
    if cores.is_empty() {
        return Err(unknown(
            "processors",
            "this program may run on none of them",
        ));
    }
    let mut packages: Vec<u32> = cpus.iter().map(|c| c.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let remote = (tiers.iter().find(|tier| tier.name == TierName::remote())).and_then(|t| t.node);
    let remote = view.known_nodes().iter().find(|n| Some(n.id) == remote);
    // A node whose processors this program may not use has none.
    let mut other_cores = remote.map_or_else(Vec::new, |node| cores_of(cpus, Some(node)));
    other_cores.retain(|core| !cores.contains(core));
    Ok(Topology {
        other_cores,
        other_hosts: Vec::new(),
        processor: match view.processor.model.get() {
            Ok(model) => model.clone(),
            Err(_) => "a processor without a name".to_owned(),
        },
        sockets: u32::try_from(packages.len()).unwrap_or(u32::MAX),
        cores,
        clock: view.processor.clock.known().copied(),
        // The allocation of bandwidth is found in resctrl, by the code that limits tenants.
        allocation: None,
        caches: view.caches.known().cloned().unwrap_or_default(),
        tiers,
        page: view.page,
    })
}

pub(super) fn warnings(view: &HostView) -> Vec<String> {
    let mut warnings = Vec::new();
    for node in view.known_nodes() {
        if let Err(why) = node.total.get() {
            warnings.push(format!("node {} is left out: {why}", node.id));
        } else if !node.has_memory() {
            warnings.push(format!("node {} has no memory", node.id));
        }
    }
    if let (Some(allowed), nodes) = (view.allowed_nodes.known(), view.known_nodes()) {
        for node in nodes {
            if node.has_memory() && !allowed.contains(&node.id) {
                warnings.push(format!(
                    "node {} is left out: this program may not allocate on it (cpuset)",
                    node.id
                ));
            }
        }
    }
    for (what, reason) in [
        ("caches", view.caches.get().err()),
        ("processor model", view.processor.model.get().err()),
        ("CXL bus", unreadable(&view.cxl)),
        ("memory nodes", unreadable(&view.nodes)),
    ] {
        if let Some(why) = reason {
            warnings.push(format!("{what} unknown: {why}"));
        }
    }
    warnings
}

/// Something absent is a missing capability, and no cause for a warning.
fn unreadable<T>(reading: &crate::root::Reading<T>) -> Option<weir_model::capability::Unavailable> {
    match reading {
        crate::root::Reading::Unreadable(why) => Some(why.clone()),
        _ => None,
    }
}

fn unknown(what: &str, why: &str) -> MachineError {
    MachineError::System {
        what: format!("cannot tell this machine's {what}"),
        cause: why.to_owned(),
    }
}

/// Whether a tier may be made of a node.
fn usable(view: &HostView, node: &Node) -> bool {
    node.has_memory() && view.may_use(node.id)
}

/// The node of `dram`: the first usable one with memory and processors, or else the memory nearest to the
/// first processors.
fn home<'a>(view: &HostView, nodes: &'a [Node], cpus: &[Cpu]) -> Result<&'a Node, MachineError> {
    let runs_here = |node: &Node| {
        let ids = node.cpus.known().map_or(&[][..], Vec::as_slice);
        cpus.iter().any(|c| c.allowed && ids.contains(&c.id))
    };
    let mut candidates = nodes.iter().filter(|n| usable(view, n)).collect::<Vec<_>>();
    let starts = nodes.iter().find(|n| runs_here(n));
    if let Some(distances) = starts.and_then(|n| n.distances.known()) {
        let distance = |node: &Node| {
            let place = nodes.iter().position(|n| n.id == node.id);
            place
                .and_then(|i| distances.get(i))
                .copied()
                .unwrap_or(u32::MAX)
        };
        candidates.sort_by_key(|n| (!runs_here(n), distance(n), n.id));
    } else {
        candidates.sort_by_key(|n| (!runs_here(n), n.id));
    }
    candidates.first().copied().ok_or_else(|| {
        let whys: Vec<String> = nodes
            .iter()
            .filter_map(|n| n.total.get().err())
            .map(|w| w.reason)
            .collect();
        let why = if whys.is_empty() {
            "no node has any that this program may use".to_owned()
        } else {
            whys.join("; ")
        };
        unknown("memory", &why)
    })
}

/// One hardware thread of each core of the home node's socket, the node's own cores first.
fn cores_of(cpus: &[Cpu], home: Option<&Node>) -> Vec<u32> {
    let own = home
        .and_then(|n| n.cpus.known())
        .filter(|ids| !ids.is_empty());
    let is_own = |c: &Cpu| own.is_none_or(|ids| ids.contains(&c.id));
    let usable = || cpus.iter().filter(|c| c.allowed);
    let Some(package) = usable()
        .find(|c| is_own(c))
        .or(usable().next())
        .map(|c| c.package)
    else {
        return Vec::new();
    };
    let mut cores: Vec<&Cpu> = Vec::new();
    for cpu in usable().filter(|c| c.package == package) {
        // If the leader of a core is not allowed, its sibling replaces it.
        if !cores.iter().any(|c| c.siblings.contains(&cpu.id)) {
            cores.push(cpu);
        }
    }
    cores.sort_by_key(|c| (!is_own(c), c.id));
    cores.into_iter().map(|c| c.id).collect()
}

/// A kernel without NUMA has one memory, and it is local.
fn whole_machine(view: &HostView) -> Result<Tier, MachineError> {
    let total = view
        .memory
        .0
        .get()
        .map_err(|why| unknown("memory", &why.reason))?;
    Ok(Tier {
        name: TierName::dram(),
        kind: TierKind::Dram,
        node: None,
        capacity: *total,
        description: "all memory; this kernel shows no nodes".to_owned(),
        limits: None,
        programs_left: None,
    })
}

fn tiers(view: &HostView, nodes: &[Node], home: &Node) -> Vec<Tier> {
    let package = package_of(view, home);
    let mut placed: Vec<Placed> = nodes
        .iter()
        .filter(|n| usable(view, n))
        .map(|node| {
            let cxl = view
                .cxl
                .known()
                .and_then(|cxl| cxl.nodes.iter().find(|c| c.node == node.id));
            let kind = if node.id == home.id {
                TierKind::Dram
            } else if let Some(cxl) = cxl {
                cxl_kind(view, cxl, home, package)
            } else if !node.has_cpus() {
                TierKind::CpuLess
            } else if package_of(view, node) == package {
                TierKind::Dram
            } else {
                TierKind::Remote
            };
            Placed { node, kind, cxl }
        })
        .collect();
    placed.sort_by_key(|p| (p.node.id != home.id, p.kind, p.node.id));

    // A device keeps its number while another one's memory is offline, or not for this program.
    let devices = view.cxl.known().map_or(&[][..], |cxl| &cxl.nodes).iter();
    let mut devices: Vec<(TierKind, u32)> = (devices.filter(|device| device.node != home.id))
        .map(|device| (cxl_kind(view, device, home, package), device.node))
        .collect();
    devices.sort_unstable();
    let mut remotes = 0;
    placed
        .into_iter()
        .map(|p| {
            let name = match p.kind {
                TierKind::Dram if p.node.id == home.id => TierName::dram(),
                TierKind::Remote if remotes == 0 => {
                    remotes += 1;
                    TierName::remote()
                }
                TierKind::Cxl | TierKind::RemoteCxl => {
                    let number = devices.iter().position(|(_, node)| *node == p.node.id);
                    TierName::cxl(number.unwrap_or(devices.len()))
                }
                _ => TierName::named(format!("node{}", p.node.id)),
            };
            Tier {
                name,
                kind: p.kind,
                node: Some(p.node.id),
                capacity: p.node.total.known().copied().unwrap_or_default(),
                description: describe(view, &p, home),
                limits: p.cxl.and_then(|cxl| link_limits(view, cxl)),
                programs_left: None,
            }
        })
        .collect()
}

fn package_of(view: &HostView, node: &Node) -> Option<u32> {
    let first = node.cpus.known()?.first()?;
    let cpu = view.known_cpus().iter().find(|c| c.id == *first)?;
    Some(cpu.package)
}

/// A device is remote if every device behind the node is plugged into another socket.
fn cxl_kind(view: &HostView, cxl: &CxlNode, home: &Node, package: Option<u32>) -> TierKind {
    let near = |name: &String| {
        let memdev = view.cxl.known()?.memdevs.iter().find(|m| m.name == *name)?;
        let node = u32::try_from(*memdev.near_node.known()?).ok()?;
        let node = view.known_nodes().iter().find(|n| n.id == node)?;
        Some(node.id == home.id || package_of(view, node) == package)
    };
    let known: Vec<bool> = cxl.memdevs.iter().filter_map(near).collect();
    if !known.is_empty() && known.iter().all(|near| !near) {
        TierKind::RemoteCxl
    } else {
        TierKind::Cxl
    }
}

fn describe(view: &HostView, placed: &Placed, home: &Node) -> String {
    let mut parts = Vec::new();
    match (placed.kind, placed.cxl) {
        (_, Some(cxl)) => {
            parts.push(describe_devices(view, cxl));
        }
        (TierKind::Dram, None) if placed.node.id != home.id => {
            parts.push("memory of the same socket, another cluster".to_owned());
        }
        (TierKind::Dram, None) if !placed.node.has_cpus() => {
            parts.push("the nearest memory; its node has no processors".to_owned());
        }
        (kind, None) => parts.push(kind.name().to_owned()),
    }
    if let Some(cpus) = placed.node.cpus.known().filter(|c| !c.is_empty()) {
        parts.push(format!("CPUs {}", list::format(cpus)));
    }
    // The firmware's figures for accesses of another socket do not apply to this one.
    let access = placed.node.access1.get().or(placed.node.access0.get());
    let ours = access
        .ok()
        .filter(|a| a.initiators.is_empty() || a.initiators.contains(&home.id));
    if let Some(access) = ours {
        if let Some(latency) = access.read_latency.known() {
            parts.push(format!("HMAT {latency} read"));
        }
        if let Some(rate) = access.read_bandwidth.known() {
            parts.push(format!("HMAT {rate:.1} read"));
        }
    }
    let latencies = placed.cxl.iter().flat_map(|cxl| &cxl.memdevs);
    let latencies = latencies.filter_map(|name| {
        let access = view.memdev(name)?.access.known()?;
        access.read_latency.known().copied()
    });
    // The slowest of several devices: the others wait for it.
    if let Some(latency) = latencies.max_by(|a, b| a.get().total_cmp(&b.get())) {
        parts.push(format!("CDAT {latency} read"));
    }
    let tier = view.memory_tiers.known().into_iter().flatten();
    if let Some(tier) = tier.into_iter().find(|t| t.nodes.contains(&placed.node.id)) {
        parts.push(format!("memory tier {}", tier.id));
    }
    match view.demotion_targets(placed.node.id) {
        Ok(below) if !below.is_empty() => {
            parts.push(format!("demotes to node {}", list::format(&below)));
        }
        _ => {}
    }
    let unmovable = view.unmovable_nodes.known();
    if !placed.node.has_cpus() && unmovable.is_some_and(|ids| ids.contains(&placed.node.id)) {
        parts.push("not movable".to_owned());
    }
    parts.join(", ")
}

/// The devices behind a node, how they are joined, and the evidence.
fn describe_devices(view: &HostView, cxl: &CxlNode) -> String {
    let mut devices = if cxl.memdevs.is_empty() {
        "CXL memory".to_owned()
    } else {
        format!("CXL {}", cxl.memdevs.join("+"))
    };
    if cxl.memdevs.len() > 1 {
        devices.push_str(" interleaved");
        if let Some(granularity) = view.region(cxl).and_then(|r| r.granularity.known()) {
            devices.push_str(&format!(" by {granularity}"));
        }
    }
    let switches = cxl.memdevs.iter().filter_map(|name| view.memdev(name));
    let switches = switches.filter_map(|m| m.switches.known()).max();
    match switches {
        Some(1) => devices.push_str(" behind a switch"),
        Some(&n) if n > 1 => devices.push_str(&format!(" behind {n} switches")),
        _ => {}
    }
    format!("{devices}: {}", cxl.evidence)
}

/// The bandwidth of the links behind a node, if every one of them is known: the raw rate after line coding
/// and flit framing, which no traffic can exceed (CXL 2.0: 68-byte flits carry 64 bytes of slots, PCIe 5.0
/// codes 128 bits in 130; CXL 3.0 at 64 GT/s carries 240 bytes in 256).
fn link_limits(view: &HostView, cxl: &CxlNode) -> Option<Limits> {
    let bus = view.cxl.known()?;
    let links: Vec<Link> = cxl
        .memdevs
        .iter()
        .map(|name| {
            bus.memdevs
                .iter()
                .find(|m| m.name == *name)?
                .link
                .known()
                .copied()
        })
        .collect::<Option<_>>()?;
    let first = *links.first()?;
    let rate: f64 = links
        .iter()
        .map(|link| {
            let raw = link.gigatransfers * f64::from(link.lanes) / 8.0;
            if link.gigatransfers > 32.0 {
                raw * 240.0 / 256.0
            } else {
                raw * (128.0 / 130.0) * (64.0 / 68.0)
            }
        })
        .sum();
    Some(Limits {
        read: GbPerSec(rate),
        write: GbPerSec(rate),
        total: GbPerSec(rate * 2.0),
        idle: None,
        basis: format!(
            "{} link(s), the first {} GT/s x{}, after coding and flit framing",
            links.len(),
            first.gigatransfers,
            first.lanes
        ),
    })
}
