//! The memory that a tenant accesses: accesses that the hardware samples, by the node of their physical
//! address.
//!
//! Unused pages on the slow tier do not count here, unlike in [`super::residency`].

use std::collections::HashMap;

use weir_model::capability::Unavailable;

use super::residency::Residency;
use crate::perf::OnEveryCpu;
use crate::perf::sample::{Sample, Sampler, Source, source};
use crate::root::Root;
use crate::steer::scope::{Scope, group_of};
use crate::topology::node::NODES;
use weir_loops::kernels::LINE;

/// The most processes of a window that are looked up.
const MOST: usize = 256;

/// Sampled accesses of all processors.
#[derive(Debug)]
pub(crate) struct Touched {
    sampler: OnEveryCpu<Sampler>,
    source: Source,
    blocks: Blocks,
    /// For each process, lines accessed by node.
    seen: HashMap<u32, Residency>,
}

impl Touched {
    /// Opens sampling on every processor.
    ///
    /// # Errors
    /// The hardware samples no addresses, or the kernel refuses, or does not say which memory is on which
    /// node.
    pub fn open(root: &Root) -> Result<Self, Unavailable> {
        let blocks = Blocks::of(root)?;
        let source = source(root)?;
        Ok(Self {
            sampler: OnEveryCpu::open(root, |cpus| Sampler::open(root, &source, cpus))?,
            source,
            blocks,
            seen: HashMap::new(),
        })
    }

    /// The lines accessed since the last window, one for each sample: for each of some processes, or control groups
    /// with those below them, in their order.
    pub fn window(&mut self, root: &Root, tenants: &[(&Scope, &str)]) -> Vec<Residency> {
        let Self {
            sampler,
            source,
            blocks,
            seen,
        } = self;
        seen.clear();
        sampler.events.drain(|sample: Sample| {
            let Some(node) = blocks.node(sample.physical) else {
                return;
            };
            if seen.len() < MOST || seen.contains_key(&sample.process) {
                seen.entry(sample.process)
                    .or_default()
                    .add(node, LINE as u64);
            }
        });
        sampler.follow(root, |cpus| Sampler::open(root, source, cpus));
        let mut all = vec![Residency::default(); tenants.len()];
        for (&process, touched) in seen.iter() {
            let Ok(of) = group_of(root, &Scope::Pid(process)) else {
                continue;
            };
            // The group of a process may have others, too.
            let is_in = |(scope, group): &(&Scope, &str)| match scope {
                Scope::Pid(own) => *own == process,
                _ => of
                    .strip_prefix(group)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            };
            if let Some(place) = tenants.iter().position(is_in) {
                for (node, bytes) in touched.iter() {
                    all[place].add(node, bytes.get());
                }
            }
        }
        all
    }
}

/// The node of physical memory, by the kernel's blocks (ABI/testing/sysfs-devices-memory).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Bytes of a block.
    size: u64,
    /// Blocks by number, ascending, and their nodes.
    nodes: Vec<(u64, u32)>,
}

impl Blocks {
    pub(crate) fn of(root: &Root) -> Result<Self, Unavailable> {
        let path = "/sys/devices/system/memory/block_size_bytes";
        let text = root.text(path);
        let size = u64::from_str_radix(text.get()?.trim(), 16).ok();
        let size = size.filter(|&size| size > 0).ok_or_else(|| {
            Unavailable::because(format!("{path} has no size, in hexadecimal digits"))
        })?;
        let found = root.numbered(NODES, "node");
        let mut nodes = Vec::new();
        for (node, name) in found.get()? {
            let blocks = root.numbered(&format!("{NODES}/{name}"), "memory");
            let blocks = blocks.known().map_or(&[][..], Vec::as_slice);
            nodes.extend(blocks.iter().map(|(block, _)| (u64::from(*block), *node)));
        }
        nodes.sort_unstable();
        if nodes.is_empty() {
            return Err(Unavailable::because(format!(
                "{NODES} does not say which memory is on which node (CONFIG_MEMORY_HOTPLUG)"
            )));
        }
        Ok(Self { size, nodes })
    }

    /// Start and end of the memory of some nodes, ascending; blocks next to each other are one.
    pub(crate) fn ranges(&self, nodes: &[u32]) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (block, _) in self.nodes.iter().filter(|(_, node)| nodes.contains(node)) {
            let start = block.saturating_mul(self.size);
            let end = start.saturating_add(self.size);
            match ranges.last_mut().filter(|last| last.1 == start) {
                Some(last) => last.1 = end,
                None => ranges.push((start, end)),
            }
        }
        ranges
    }

    /// The node of an address; `None` if it was not recorded, or is in no memory.
    fn node(&self, physical: u64) -> Option<u32> {
        let block = physical.checked_div(self.size).filter(|_| physical > 0)?;
        let place = self.nodes.binary_search_by_key(&block, |&(block, _)| block);
        Some(self.nodes[place.ok()?].1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_address_is_on_the_node_of_its_block(
            of in prop::collection::btree_map(0u32..64, 0u32..4, 1..20), address: u64,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let make = |path: String, text: &str| {
                let path = folder.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            };
            make("sys/devices/system/memory/block_size_bytes".into(), "8000000\n");
            for (block, node) in &of {
                make(format!("sys/devices/system/node/node{node}/memory{block}"), "");
            }
            let blocks = Blocks::of(&Root::at(folder.path())).unwrap();
            let size = 0x800_0000;
            let address = address % (70 * size);
            let known = of.get(&((address / size) as u32)).filter(|_| address > 0);
            prop_assert_eq!(blocks.node(address), known.copied());
        }

        #[test]
        fn garbage_for_a_size_is_reported(text in ".{0,20}") {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("sys/devices/system/memory");
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("block_size_bytes"), &text).unwrap();
            prop_assert!(Blocks::of(&Root::at(folder.path())).is_err());
        }
    }
}
