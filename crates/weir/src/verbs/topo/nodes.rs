//! The memory nodes of a real machine, each with what the kernel tells of it and what it does not.

use weir_linux::Reading;
use weir_linux::topology::HostView;
use weir_linux::topology::cxl::CxlNode;
use weir_linux::topology::node::{Access, Node};
use weir_model::topology::Topology;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use crate::documents::{AccessLine, NodeLine};

/// A line for each node that is online.
pub fn lines(view: &HostView, topology: &Topology) -> Vec<NodeLine> {
    let nodes = view.known_nodes().iter();
    nodes.map(|node| line(view, topology, node)).collect()
}

fn line(view: &HostView, topology: &Topology, node: &Node) -> NodeLine {
    let tier = topology.tiers.iter().find(|t| t.node == Some(node.id));
    let mut missing = Missing(Vec::new());
    let mut line = NodeLine {
        node: node.id,
        tier: tier.map(|tier| tier.name.clone()),
        distance: distance(view.known_nodes(), node.id),
        hmat: missing
            .or_known("HMAT", &node.access0)
            .map(|access| figures(access, None)),
        movable: missing
            .or_known("movable", &view.unmovable_nodes)
            .map(|ids| !ids.contains(&node.id)),
        ..NodeLine::default()
    };
    if let Some(tiers) = missing.or_known("memory tier", &view.memory_tiers) {
        let tier = tiers.iter().find(|tier| tier.nodes.contains(&node.id));
        line.memory_tier = tier.map(|tier| tier.id);
        line.demotes_to = view.demotion_targets(node.id).unwrap_or_default();
    }
    let cxl = view.cxl.known();
    if let Some(cxl) = cxl.and_then(|cxl| cxl.nodes.iter().find(|n| n.node == node.id)) {
        add_cxl(&mut line, &mut missing, view, cxl);
    }
    line.missing = missing.0;
    line
}

/// The distance from the nearest node with processors. The kernel lists distances in the order of online nodes.
fn distance(nodes: &[Node], to: u32) -> Option<u32> {
    let place = nodes.iter().position(|node| node.id == to)?;
    let near = nodes.iter().filter(|node| node.has_cpus());
    let distances = near.filter_map(|node| node.distances.known()?.get(place));
    distances.copied().min()
}

fn add_cxl(line: &mut NodeLine, missing: &mut Missing, view: &HostView, cxl: &CxlNode) {
    line.memdevs.clone_from(&cxl.memdevs);
    line.region.clone_from(&cxl.region);
    if let Some(region) = view.region(cxl) {
        line.region_bytes = missing.or_known("region size", &region.size).copied();
        let granularity = missing.or_known("interleave granularity", &region.granularity);
        line.interleave_bytes = granularity
            .filter(|_| cxl.memdevs.len() > 1)
            .map(|&Bytes(bytes)| bytes);
    }
    for memdev in cxl.memdevs.iter().filter_map(|name| view.memdev(name)) {
        let name = &memdev.name;
        line.switches = line.switches.max(memdev.switches.known().copied());
        let access = missing.or_known(&format!("CDAT of {name}"), &memdev.access);
        let access = access.map(|access| figures(access, Some(name)));
        line.cdat.extend(access);
    }
}

fn figures(access: &Access, memdev: Option<&str>) -> AccessLine {
    AccessLine {
        memdev: memdev.map(str::to_owned),
        read_ns: access.read_latency.known().copied().map(Nanos::get),
        write_ns: access.write_latency.known().copied().map(Nanos::get),
        read_gbps: access.read_bandwidth.known().copied().map(GbPerSec::get),
        write_gbps: access.write_bandwidth.known().copied().map(GbPerSec::get),
    }
}

/// What could not be found out.
struct Missing(Vec<String>);

impl Missing {
    /// The value, or nothing and a note of why.
    fn or_known<'a, T>(&mut self, what: &str, reading: &'a Reading<T>) -> Option<&'a T> {
        match reading {
            Reading::Known(value) => Some(value),
            Reading::Absent(why) | Reading::Unreadable(why) => {
                self.0.push(format!("{what}: {why}"));
                None
            }
        }
    }
}
