//! A B+-tree whose nodes are runs of lines, and the lines that its operations touch.

use super::Line;

/// Bytes of an entry: a key and a child or a value.
const ENTRY: u32 = 16;
const LINE_BYTES: u32 = weir_model::units::LINE_BYTES as u32;

/// A node: a header of one line (version, latch, count), then its entries in order.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// The least key below each child, or the keys of a leaf.
    keys: Vec<u64>,
    /// Empty in a leaf.
    children: Vec<u32>,
    /// Its first line.
    pub header: Line,
}

/// A tree.
#[derive(Debug, Clone)]
pub struct BTree {
    nodes: Vec<Node>,
    root: u32,
    fan_out: usize,
    /// The first line that is not used yet.
    pub next: Line,
}

/// What an insertion changed in a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The node's header.
    pub header: Line,
    /// Levels below the root.
    pub depth: usize,
    /// Lines that were written besides the header.
    pub written: Vec<Line>,
}

impl BTree {
    /// A tree of these keys, which are in order, with nodes two thirds full, as those of trees that grew.
    pub fn of(keys: &[u64], fan_out: usize) -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            root: 0,
            fan_out: fan_out.max(4),
            next: 0,
        };
        let full = (tree.fan_out * 2 / 3).max(2);
        let mut level: Vec<u32> = (keys.chunks(full))
            .map(|keys| tree.add(keys.to_vec(), Vec::new()))
            .collect();
        while level.len() > 1 {
            level = (level.chunks(full))
                .map(|children| {
                    let least = |&child: &u32| tree.least(child);
                    let keys = children.iter().map(least).collect();
                    (keys, children.to_vec())
                })
                .collect::<Vec<_>>()
                .into_iter()
                .map(|(keys, children)| tree.add(keys, children))
                .collect();
        }
        tree.root = match level.first() {
            Some(&root) => root,
            None => tree.add(Vec::new(), Vec::new()),
        };
        tree
    }

    fn add(&mut self, keys: Vec<u64>, children: Vec<u32>) -> u32 {
        let header = self.next;
        self.next += 1 + (self.fan_out as u32 * ENTRY).div_ceil(LINE_BYTES);
        self.nodes.push(Node {
            keys,
            children,
            header,
        });
        self.nodes.len() as u32 - 1
    }

    fn least(&self, node: u32) -> u64 {
        self.node(node).keys.first().copied().unwrap_or(0)
    }

    fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// Levels of nodes.
    pub fn levels(&self) -> usize {
        let mut node = self.root;
        let mut levels = 1;
        while let Some(&child) = self.node(node).children.first() {
            (node, levels) = (child, levels + 1);
        }
        levels
    }

    /// The nodes from the root to the leaf of a key: of each its header and the lines that a binary search reads.
    pub fn path(&self, key: u64) -> Vec<(Line, Vec<Line>)> {
        let mut path = Vec::new();
        let mut at = Some(self.root);
        while let Some(node) = at.map(|at| self.node(at)) {
            let mut lines = Vec::new();
            let (mut low, mut high) = (0, node.keys.len());
            while low < high {
                let mid = usize::midpoint(low, high);
                let line = node.line(mid);
                if !lines.contains(&line) {
                    lines.push(line);
                }
                if node.keys[mid] <= key {
                    low = mid + 1;
                } else {
                    high = mid;
                }
            }
            path.push((node.header, lines));
            at = node.children.get(low.saturating_sub(1)).copied();
        }
        path
    }

    /// Inserts a key; returns what changed, from the leaf up. Half a node moves to a new one where it is full.
    pub fn insert(&mut self, key: u64) -> Vec<Change> {
        let mut way = vec![self.root];
        while let Some(node) = way.last().and_then(|&at| self.nodes.get_mut(at as usize)) {
            // A key below all others belongs to the first child, whose least key it is now.
            if let (false, Some(least)) = (node.children.is_empty(), node.keys.first_mut()) {
                *least = key.min(*least);
            }
            let slot = node
                .keys
                .partition_point(|&own| own <= key)
                .saturating_sub(1);
            match node.children.get(slot) {
                Some(&child) => way.push(child),
                None => break,
            }
        }
        let mut changes = Vec::new();
        let mut up = Some((key, None));
        while let (Some((key, child)), Some(at)) = (up.take(), way.pop()) {
            let depth = way.len();
            let full = self.node(at).keys.len() >= self.fan_out;
            let mut into = at;
            if full {
                let half = self.fan_out / 2;
                let node = &mut self.nodes[at as usize];
                let keys = node.keys.split_off(half);
                let inner = !node.children.is_empty();
                let children = if inner {
                    node.children.split_off(half)
                } else {
                    Vec::new()
                };
                let split = keys[0];
                let new = self.add(keys, children);
                changes.push(Change {
                    header: self.node(new).header,
                    depth,
                    written: self.node(new).lines(0),
                });
                if key >= split {
                    into = new;
                }
                up = Some((split, Some(new)));
                if way.is_empty() {
                    let root = self.add(vec![self.least(at)], vec![at]);
                    self.root = root;
                    way.push(root);
                }
            }
            let node = &mut self.nodes[into as usize];
            let slot = node.keys.partition_point(|&own| own <= key);
            node.keys.insert(slot, key);
            if let Some(child) = child {
                node.children.insert(slot, child);
            }
            let written = node.lines(slot);
            changes.push(Change {
                header: node.header,
                depth,
                written,
            });
        }
        changes
    }
}

impl Node {
    fn line(&self, slot: usize) -> Line {
        self.header + 1 + slot as u32 * ENTRY / LINE_BYTES
    }

    /// The lines of its entries from a slot on.
    fn lines(&self, from: usize) -> Vec<Line> {
        let last = self.keys.len().saturating_sub(1);
        (self.line(from.min(last))..=self.line(last)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn keys(tree: &BTree, node: u32) -> Vec<u64> {
        let node = tree.node(node);
        match node.children.is_empty() {
            true => node.keys.clone(),
            false => node
                .children
                .iter()
                .flat_map(|&child| keys(tree, child))
                .collect(),
        }
    }

    proptest! {
        #[test]
        fn it_holds_what_a_set_holds_in_nodes_of_its_size(
            first in prop::collection::btree_set(0_u64..10_000, 0..300),
            more in prop::collection::vec(0_u64..10_000, 0..300),
            fan_out in 4_usize..20,
        ) {
            let all: Vec<u64> = first.iter().copied().collect();
            let mut tree = BTree::of(&all, fan_out);
            let mut set: BTreeSet<u64> = first;
            for key in more {
                if set.insert(key) {
                    let changes = tree.insert(key);
                    prop_assert!(!changes.is_empty());
                    prop_assert_eq!(tree.path(key).len(), tree.levels());
                }
            }
            prop_assert_eq!(keys(&tree, tree.root), set.into_iter().collect::<Vec<_>>());
            let mut headers: Vec<Line> = tree.nodes.iter().map(|node| node.header).collect();
            headers.sort_unstable();
            let size = 1 + (fan_out.max(4) as u32 * ENTRY).div_ceil(LINE_BYTES);
            prop_assert!(headers.windows(2).all(|two| two[1] - two[0] == size), "nodes are apart");
            for node in &tree.nodes {
                prop_assert!(node.keys.len() <= fan_out.max(4));
                prop_assert!(node.children.is_empty() || node.children.len() == node.keys.len());
            }
        }
    }
}
