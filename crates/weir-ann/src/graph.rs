//! A proximity graph: for each node a list of neighbours, and one entry.

use crate::AnnError;

/// Neighbours of a list at most: it fills the largest chunk of an arena, 1 KiB, with its header.
pub const MOST_NEIGHBOURS: usize = 254;
/// Bytes of a neighbour's number.
pub const ID_BYTES: u64 = 4;
/// Bytes of a list's header. With these, the sizes that CXL-ANNS prints for graphs follow from its degrees (section 6.2).
pub const HEADER_BYTES: u64 = 8;

/// A graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    entry: u32,
    ends: Vec<usize>,
    ids: Vec<u32>,
}

impl Graph {
    /// A graph of these lists.
    ///
    /// # Errors
    /// The entry or a neighbour is no node, or a list is too long.
    pub fn new(entry: u32, lists: impl IntoIterator<Item = Vec<u32>>) -> Result<Self, AnnError> {
        let (mut ends, mut ids) = (Vec::new(), Vec::new());
        for (node, list) in lists.into_iter().enumerate() {
            if list.len() > MOST_NEIGHBOURS {
                return Err(AnnError::Bounds(format!(
                    "node {node} has {} neighbours; a list has at most {MOST_NEIGHBOURS}",
                    list.len()
                )));
            }
            ids.extend(list);
            ends.push(ids.len());
        }
        let nodes = ends.len();
        let wrong = ids.iter().chain([&entry]).find(|id| **id as usize >= nodes);
        match wrong {
            Some(id) => Err(AnnError::Bounds(format!(
                "there is no node {id} among {nodes}"
            ))),
            None => Ok(Self { entry, ends, ids }),
        }
    }

    /// Where searches begin.
    pub fn entry(&self) -> u32 {
        self.entry
    }

    /// Nodes.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no node.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The neighbours of a node; none where there is no such node.
    pub fn neighbours(&self, node: u32) -> &[u32] {
        let node = node as usize;
        let from = match node {
            0 => 0,
            _ => self.ends.get(node - 1).copied().unwrap_or(0),
        };
        let to = self.ends.get(node).copied().unwrap_or(from);
        self.ids.get(from..to).unwrap_or_default()
    }

    /// Neighbours of a node in the mean.
    pub fn degree(&self) -> f64 {
        self.ids.len() as f64 / self.len().max(1) as f64
    }

    /// Bytes of a node's list with its header.
    pub fn list_bytes(&self, node: u32) -> u64 {
        HEADER_BYTES + ID_BYTES * self.neighbours(node).len() as u64
    }

    /// Bytes of all lists.
    pub fn bytes(&self) -> u64 {
        HEADER_BYTES * self.len() as u64 + ID_BYTES * self.ids.len() as u64
    }
}
