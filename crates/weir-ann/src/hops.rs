//! Hops from the entry, the order in which lists are kept in local DRAM, and how much of the reads they serve
//! (CXL-ANNS, section 4.1).

use std::collections::VecDeque;

use crate::AnnError;
use crate::graph::Graph;
use crate::search::Adjacency;

/// Hops from the entry to each node of a graph, as far as there is a path.
pub(crate) fn levels(graph: &impl Adjacency) -> Vec<Option<u32>> {
    let mut level = vec![None; graph.nodes()];
    spread(graph, &mut level, graph.entry(), 0);
    level
}

/// Goes on from a node that was reached in this many hops.
pub(crate) fn spread(graph: &impl Adjacency, level: &mut [Option<u32>], node: u32, hops: u32) {
    let mut waiting = VecDeque::from([(node, hops)]);
    if let Some(own) = level.get_mut(node as usize) {
        *own = Some(hops);
    }
    while let Some((node, hops)) = waiting.pop_front() {
        for &next in graph.neighbours(node) {
            if let Some(own @ None) = level.get_mut(next as usize) {
                *own = Some(hops + 1);
                waiting.push_back((next, hops + 1));
            }
        }
    }
}

/// The hops of a graph, and its nodes in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Hops {
    /// Hops to each node; nothing where no path leads.
    pub level: Vec<Option<u32>>,
    /// Nodes by hops and then by number; those that no path leads to are last. The paper marks them -1 and sorts
    /// ascending, which would put them first.
    pub order: Vec<u32>,
}

impl Hops {
    /// Follows a graph from its entry.
    ///
    /// # Errors
    /// The entry reaches no other node, and there are some.
    pub fn of(graph: &Graph) -> Result<Self, AnnError> {
        let level = levels(graph);
        let unreachable = level.iter().filter(|level| level.is_none()).count();
        if unreachable > 0 && unreachable + 1 == level.len() {
            return Err(AnnError::Isolated {
                entry: graph.entry(),
                unreachable,
            });
        }
        let mut order: Vec<u32> = (0..level.len() as u32).collect();
        let hops = |node: &u32| level.get(*node as usize).copied().flatten();
        order.sort_by_key(|node| hops(node).unwrap_or(u32::MAX));
        Ok(Self { level, order })
    }

    /// Nodes that no path leads to.
    pub fn unreachable(&self) -> usize {
        self.level.iter().filter(|level| level.is_none()).count()
    }

    /// Nodes and reads at each hop, given the reads of each node.
    pub fn histogram(&self, reads: &[u64]) -> Vec<AtHop> {
        let mut all: Vec<AtHop> = Vec::new();
        for (level, reads) in self.level.iter().zip(reads) {
            let Some(level) = *level else { continue };
            if all.len() <= level as usize {
                all.resize(level as usize + 1, AtHop::default());
            }
            if let Some(at) = all.get_mut(level as usize) {
                at.nodes += 1;
                at.reads += reads;
            }
        }
        all
    }

    /// Keeps lists in the order of hops until a budget is used, each as a whole.
    pub fn cache(&self, graph: &Graph, reads: &[u64], budget: u64) -> HopCache {
        let mut cache = HopCache::default();
        let mut is_full = false;
        for &node in &self.order {
            let bytes = graph.list_bytes(node);
            let reads = reads.get(node as usize).copied().unwrap_or(0);
            is_full |= cache.bytes + bytes > budget;
            if !is_full {
                cache.nodes += 1;
                cache.bytes += bytes;
                cache.hits += reads;
            }
            cache.of_bytes += bytes;
            cache.reads += reads;
        }
        cache
    }
}

/// Nodes of one hop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtHop {
    /// How many there are.
    pub nodes: u64,
    /// How often their lists were read.
    pub reads: u64,
}

/// What is kept in local DRAM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HopCache {
    /// Lists.
    pub nodes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of all lists.
    pub of_bytes: u64,
    /// Reads of lists that are kept.
    pub hits: u64,
    /// Reads of all.
    pub reads: u64,
}

impl HopCache {
    /// Share of the reads that it serves.
    pub fn hit_share(&self) -> f64 {
        self.hits as f64 / self.reads.max(1) as f64
    }

    /// Share of the graph's bytes that it has.
    pub fn capacity_share(&self) -> f64 {
        self.bytes as f64 / self.of_bytes.max(1) as f64
    }
}
