//! The targets of cold pages. The kernel does not show the order; it follows from files that the kernel does
//! show.

use super::MemoryTier;
use super::node::Node;

/// The first demotion targets of `node`: the nearest nodes of the next tier that has any memory (Linux,
/// `mm/memory-tiers.c`, `establish_demotion_targets`). If those are full, pages move further down. `tiers`
/// are sorted, fastest first.
pub(super) fn targets(nodes: &[Node], tiers: &[MemoryTier], node: u32) -> Vec<u32> {
    let has_memory = |id: &u32| nodes.iter().any(|n| n.id == *id && n.has_memory());
    let below = tiers
        .iter()
        .skip_while(|tier| !tier.nodes.contains(&node))
        .skip(1)
        .find(|tier| tier.nodes.iter().any(has_memory));
    let Some(below) = below else {
        return Vec::new();
    };
    let candidates = || below.nodes.iter().copied().filter(has_memory);
    // The kernel lists distances in the order of online nodes.
    let distances = nodes.iter().find(|n| n.id == node);
    let distances = distances.and_then(|n| n.distances.known());
    let distance = |id: u32| {
        let place = nodes.iter().position(|n| n.id == id)?;
        distances?.get(place).copied()
    };
    let nearest = candidates().filter_map(distance).min();
    candidates()
        .filter(|&id| distance(id) == nearest || nearest.is_none())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::root::Reading;
    use crate::topology::{self, HostView};
    use crate::{Root, recording};

    /// A machine of nodes with memory, at these distances, and these tiers.
    fn machine(distances: &[Vec<u32>], tiers: &[Vec<usize>]) -> HostView {
        let mut text = "weir/machine/1\n".to_owned();
        let base = "/sys/devices/system/node";
        for (node, distances) in distances.iter().enumerate() {
            let words: Vec<String> = distances.iter().map(u32::to_string).collect();
            text += &format!("{base}/node{node}/distance: {}\n", words.join(" "));
            text += &format!("{base}/node{node}/meminfo: Node {node} MemTotal: 1024 kB\n");
        }
        for (tier, nodes) in tiers.iter().enumerate() {
            let words: Vec<String> = nodes.iter().map(usize::to_string).collect();
            text += &format!(
                "/sys/devices/virtual/memory_tiering/memory_tier{tier}/nodelist: {}\n",
                words.join(",")
            );
        }
        text += "end\n";
        topology::discover(&Root::recorded(recording::parse("a test", &text).unwrap()))
    }

    #[test]
    fn pages_go_to_the_nearest_node_of_the_next_tier() {
        // Two sockets, each with its own slow node.
        let distances = [
            vec![10, 21, 14, 24],
            vec![21, 10, 24, 14],
            vec![14, 24, 10, 26],
            vec![24, 14, 26, 10],
        ];
        let view = machine(&distances, &[vec![0, 1], vec![2, 3]]);
        let targets: Vec<_> = (0..4).map(|n| view.demotion_targets(n).unwrap()).collect();
        assert_eq!(targets, [vec![2], vec![3], vec![], vec![]]);
    }

    #[test]
    fn nodes_that_are_equally_near_share_them() {
        let distances = vec![vec![10, 20, 20], vec![20, 10, 20], vec![20, 20, 10]];
        let view = machine(&distances, &[vec![0], vec![1, 2]]);
        assert_eq!(view.demotion_targets(0).unwrap(), [1, 2]);
        let chain = machine(&distances, &[vec![0], vec![1], vec![2]]);
        assert_eq!(chain.demotion_targets(0).unwrap(), [1]);
        assert_eq!(chain.demotion_targets(1).unwrap(), [2]);
        let none = machine(&distances, &[]);
        assert!(matches!(none.memory_tiers, Reading::Absent(_)));
        assert!(none.demotion_targets(0).is_err());
    }

    proptest! {
        #[test]
        fn pages_only_ever_go_down_a_tier(
            tiers in prop::collection::vec(0usize..4, 1..6),
            distances in prop::collection::vec(prop::collection::vec(10u32..40, 6), 6),
        ) {
            let sets: Vec<Vec<usize>> = (0..4)
                .map(|tier| (0..tiers.len()).filter(|&n| tiers[n] == tier).collect())
                .filter(|set: &Vec<usize>| !set.is_empty())
                .collect();
            let cut: Vec<Vec<u32>> = distances[..tiers.len()]
                .iter()
                .map(|row| row[..tiers.len()].to_vec())
                .collect();
            let view = machine(&cut, &sets);
            let place = |node: u32| {
                sets.iter().position(|set| set.contains(&(node as usize))).unwrap()
            };
            for node in 0..tiers.len() as u32 {
                let targets = view.demotion_targets(node).unwrap();
                prop_assert_eq!(targets.is_empty(), place(node) + 1 == sets.len());
                for target in targets {
                    prop_assert_eq!(place(target), place(node) + 1);
                }
            }
        }
    }
}
