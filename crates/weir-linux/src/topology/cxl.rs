//! The CXL bus: memory devices, regions, and which memory node each region became.

use std::path::{Component, Path};

use serde::Serialize;
use weir_model::capability::Unavailable;
use weir_model::units::Bytes;

use super::cdat;
use super::node::{self, Access, NODES, Node};
use crate::root::{Reading, Root};

const DEVICES: &str = "/sys/bus/cxl/devices";
const DAX: &str = "/sys/bus/dax/devices";
const BLOCKS: &str = "/sys/devices/system/memory";
const PCI: &str = "/sys/bus/pci/devices";

/// Memory, CXL, of a standard interface (PCI code and ID assignment 1.11, class 05 subclass 02).
const CXL_MEMORY_CLASS: &str = "0x050210";

/// What the CXL bus holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cxl {
    /// Memory devices.
    pub memdevs: Vec<Memdev>,
    /// Regions: ranges of physical addresses that devices serve.
    pub regions: Vec<Region>,
    /// Nodes that are known to be CXL memory.
    pub nodes: Vec<CxlNode>,
    /// PCI functions that are CXL memory, if no driver has made a memory device of any.
    pub undriven: Vec<String>,
}

/// One memory device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memdev {
    /// `mem0`.
    pub name: String,
    /// Volatile capacity.
    pub volatile: Reading<Bytes>,
    /// Persistent capacity.
    pub persistent: Reading<Bytes>,
    /// The node of the socket in which it is plugged.
    pub near_node: Reading<i32>,
    /// Its link, if it can be read.
    pub link: Reading<Link>,
    /// Its own description of its memory, without the path to it (CDAT). Only root may read it.
    pub access: Reading<Access>,
    /// Switches between it and its host bridge.
    pub switches: Reading<usize>,
}

/// A PCIe link as trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// Transfers per lane, in GT/s.
    pub gigatransfers: f64,
    /// Lanes.
    pub lanes: u32,
}

/// One region.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Region {
    /// `region0`.
    pub name: String,
    /// First physical address.
    pub base: Reading<u64>,
    /// Bytes.
    pub size: Reading<u64>,
    /// The devices over which it is interleaved.
    pub memdevs: Vec<String>,
    /// Bytes that one device serves before the next one.
    pub granularity: Reading<Bytes>,
    /// Its performance, which the kernel computed from the tables of the firmware and the devices.
    pub access: Reading<Access>,
}

/// A node that is CXL memory, and the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CxlNode {
    /// Linux's number.
    pub node: u32,
    /// The devices behind it, if they are known.
    pub memdevs: Vec<String>,
    /// Its region, if it is known.
    pub region: Option<String>,
    /// The evidence.
    pub evidence: String,
}

/// Reads the bus. Absent if the kernel has no CXL bus.
pub fn cxl(root: &Root, nodes: &[Node]) -> Reading<Cxl> {
    root.list(DEVICES).map(|names| {
        let memdevs: Vec<Memdev> = names
            .iter()
            .filter(|name| is_numbered(name, "mem"))
            .map(|name| memdev(root, name, &names))
            .collect();
        let regions = names
            .iter()
            .filter(|name| is_numbered(name, "region"))
            .map(|name| region(root, name, &names))
            .collect();
        let mut cxl = Cxl {
            undriven: if memdevs.is_empty() {
                undriven(root)
            } else {
                Vec::new()
            },
            memdevs,
            regions,
            nodes: Vec::new(),
        };
        find_by_dax(root, &mut cxl);
        // A device that is not system memory has a target node that does not exist.
        let online = |id: u32| nodes.iter().any(|n| n.id == id && n.has_memory());
        cxl.nodes.retain(|n| online(n.node));
        find_by_address(root, nodes, &mut cxl);
        find_by_size(nodes, &mut cxl);
        cxl.nodes.sort_by_key(|n| n.node);
        cxl
    })
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// CXL memory that PCI lists. Read only if the CXL bus has no memory device.
fn undriven(root: &Root) -> Vec<String> {
    let names = root.list(PCI);
    let is_memory = |name: &&String| {
        let class = root.text(&format!("{PCI}/{name}/class"));
        class.known().is_some_and(|class| class == CXL_MEMORY_CLASS)
    };
    let names = names.known().into_iter().flatten();
    names.filter(is_memory).cloned().collect()
}

fn memdev(root: &Root, name: &str, devices: &[String]) -> Memdev {
    let base = format!("{DEVICES}/{name}");
    let size = |path| {
        root.text(&format!("{base}/{path}"))
            .and_then(|text| hexadecimal(&text).map(Bytes))
    };
    let endpoint = endpoint_of(root, name, devices);
    Memdev {
        name: name.to_owned(),
        volatile: size("ram/size"),
        persistent: size("pmem/size"),
        near_node: root.value(&format!("{base}/numa_node")),
        link: link(root, &base),
        access: match &endpoint {
            Ok(endpoint) => root
                .hex(&format!("{DEVICES}/{endpoint}/CDAT"))
                .and_then(|table| cdat::access(&table)),
            Err(why) => Reading::Absent(why.clone()),
        },
        switches: match &endpoint {
            Ok(endpoint) => root
                .target(&format!("{DEVICES}/{endpoint}"))
                .map(|path| ports(&path).saturating_sub(1)),
            Err(why) => Reading::Absent(why.clone()),
        },
    }
}

/// The port of a device's decoders.
fn endpoint_of(root: &Root, memdev: &str, devices: &[String]) -> Result<String, Unavailable> {
    let own = |name: &&String| {
        let device = root.target(&format!("{DEVICES}/{name}/uport"));
        let device = device.known().and_then(|path| path.file_name());
        device.is_some_and(|device| device == memdev)
    };
    let mut endpoints = devices.iter().filter(|name| is_numbered(name, "endpoint"));
    endpoints.find(own).cloned().ok_or_else(|| {
        Unavailable::because(format!(
            "{memdev} has no endpoint on the CXL bus: no port leads to it"
        ))
    })
}

/// The number of ports in a path: the host bridge's, and one for each switch.
fn ports(path: &Path) -> usize {
    let parts = path
        .components()
        .filter_map(|part| part.as_os_str().to_str());
    parts.filter(|part| is_numbered(part, "port")).count()
}

/// The memory device is in the folder of its PCI function.
fn link(root: &Root, memdev: &str) -> Reading<Link> {
    root.target(memdev).and_then(|path| {
        let function = path
            .parent()
            .unwrap_or(Path::new("/"))
            .display()
            .to_string();
        // `32.0 GT/s PCIe`
        let speed = root
            .text(&format!("{function}/current_link_speed"))
            .get()
            .cloned()?;
        let lanes = *root
            .value(&format!("{function}/current_link_width"))
            .get()?;
        let gigatransfers = speed
            .split_ascii_whitespace()
            .next()
            .and_then(|number| number.parse().ok())
            .filter(|&rate: &f64| rate > 0.0 && lanes > 0)
            .ok_or_else(|| {
                Unavailable::because(format!("the link of {memdev} is `{speed}`, {lanes} lanes"))
            })?;
        Ok(Link {
            gigatransfers,
            lanes,
        })
    })
}

fn region(root: &Root, name: &str, devices: &[String]) -> Region {
    let base = format!("{DEVICES}/{name}");
    let number = |what| {
        root.text(&format!("{base}/{what}"))
            .and_then(|text| hexadecimal(&text))
    };
    let ways: u32 = root
        .value(&format!("{base}/interleave_ways"))
        .known()
        .copied()
        .unwrap_or(0)
        .min(64);
    let memdevs = (0..ways)
        .filter_map(|i| {
            let decoder = root.text(&format!("{base}/target{i}"));
            memdev_of(root, decoder.known()?, devices)
        })
        .collect();
    Region {
        name: name.to_owned(),
        base: number("resource"),
        size: number("size"),
        memdevs,
        granularity: root
            .value(&format!("{base}/interleave_granularity"))
            .map(Bytes),
        access: node::performance(root, &format!("{base}/access0")),
    }
}

/// An endpoint decoder `decoder2.0` belongs to port `endpoint2`, whose upstream is the device.
fn memdev_of(root: &Root, decoder: &str, devices: &[String]) -> Option<String> {
    let port = decoder.strip_prefix("decoder")?.split('.').next()?;
    let endpoint = format!("endpoint{port}");
    if !devices.contains(&endpoint) {
        return None;
    }
    let device = root.target(&format!("{DEVICES}/{endpoint}/uport"));
    Some(device.known()?.file_name()?.to_str()?.to_owned())
}

/// A region that became system memory through a DAX device names its node.
fn find_by_dax(root: &Root, cxl: &mut Cxl) {
    let Reading::Known(names) = root.list(DAX) else {
        return;
    };
    for name in names {
        let path = format!("{DAX}/{name}");
        let (Reading::Known(node), Reading::Known(target)) = (
            root.value::<u32>(&format!("{path}/target_node")),
            root.target(&path),
        ) else {
            continue;
        };
        let region = target.components().find_map(|part| match part {
            Component::Normal(part) => part.to_str().filter(|p| is_numbered(p, "region")),
            _ => None,
        });
        if let Some(region) = region {
            let memdevs = devices_of(cxl, region);
            let evidence = format!("{region} is {name}");
            add(cxl, node, memdevs, Some(region), evidence);
        }
    }
}

/// A region that the firmware made is ordinary memory to the kernel: its address identifies the node.
fn find_by_address(root: &Root, nodes: &[Node], cxl: &mut Cxl) {
    let block = root
        .text(&format!("{BLOCKS}/block_size_bytes"))
        .and_then(|text| hexadecimal(&format!("0x{}", text.trim_start_matches("0x"))));
    let Some(&block) = block.known().filter(|&&size| size > 0) else {
        return;
    };
    for region in cxl.regions.clone() {
        let (Some(base), Some(size)) = (region.base.known(), region.size.known()) else {
            continue;
        };
        // The first block that is completely inside: the kernel drops a partial one.
        let first = base.div_ceil(block);
        if first.saturating_add(1).saturating_mul(block) > base.saturating_add(*size) {
            continue;
        }
        let holder = nodes
            .iter()
            .find(|n| root.exists(&format!("{NODES}/node{}/memory{first}", n.id)));
        if let Some(node) = holder.filter(|n| !n.has_cpus()) {
            let evidence = format!("{} is its memory block {first}", region.name);
            let memdevs = region.memdevs.clone();
            add(cxl, node.id, memdevs, Some(&region.name), evidence);
        }
    }
}

/// A device of CXL 1.1 has no region; a node without processors of just its size is probably its memory.
fn find_by_size(nodes: &[Node], cxl: &mut Cxl) {
    for memdev in cxl.memdevs.clone() {
        let taken = cxl.nodes.iter().any(|n| n.memdevs.contains(&memdev.name));
        let Some(capacity) = memdev.volatile.known().filter(|c| c.get() > 0 && !taken) else {
            continue;
        };
        let unknown = |n: &&Node| !n.has_cpus() && cxl.nodes.iter().all(|c| c.node != n.id);
        // The kernel's own structures take up to 1/64 of a node, and the firmware takes some more.
        let same_size = |n: &&Node| {
            n.total.known().is_some_and(|total| {
                *total <= *capacity && total.get() as f64 >= capacity.get() as f64 * 0.95
            })
        };
        if let Some(node) = nodes.iter().filter(unknown).find(same_size) {
            let evidence = format!("it has the size of {}", memdev.name);
            add(cxl, node.id, vec![memdev.name], None, evidence);
        }
    }
}

fn devices_of(cxl: &Cxl, region: &str) -> Vec<String> {
    cxl.regions
        .iter()
        .find(|r| r.name == region)
        .map(|r| r.memdevs.clone())
        .unwrap_or_default()
}

fn add(cxl: &mut Cxl, node: u32, memdevs: Vec<String>, region: Option<&str>, evidence: String) {
    if cxl.nodes.iter().all(|n| n.node != node) {
        cxl.nodes.push(CxlNode {
            node,
            memdevs,
            region: region.map(str::to_owned),
            evidence,
        });
    }
}

/// The CXL bus writes its numbers in hexadecimal, with `0x`; a decimal number is accepted too.
fn hexadecimal(text: &str) -> Result<u64, Unavailable> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| Unavailable::because(format!("`{text}` is not a number")))
}
