//! Nodes of this machine, and the policy of memory by which the kernel chooses among them.

use std::fs;
use std::io;

/// Pages of unequal shares change their node in such steps: each change is a mapping for the kernel, which has 65530.
pub const STRETCH: usize = 2 << 20;
/// Of a large mapping, at most this many stretches.
const STRETCHES: usize = 512;
/// The kernel's own limit of nodes (`MAX_NUMNODES`).
pub const NODES: u32 = 1024;

const NODE: &str = "/sys/devices/system/node";
const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

// Modes of a memory policy (`linux/mempolicy.h`).
const MPOL_PREFERRED: libc::c_int = 1;
const MPOL_BIND: libc::c_int = 2;
const MPOL_INTERLEAVE: libc::c_int = 3;
/// Linux 5.15 and later.
const MPOL_PREFERRED_MANY: libc::c_int = 5;
/// Linux 6.9 and later.
const MPOL_WEIGHTED_INTERLEAVE: libc::c_int = 6;

/// Where the pages of a class are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Nodes, each with its share where pages are spread; without any, where the kernel puts them.
    pub nodes: Vec<(u32, u32)>,
    /// Whether the nodes are shares, and not a choice.
    pub spread: bool,
    /// The nodes of stretches that follow each other, where pages are spread ([`order`]).
    pub order: Vec<u32>,
    /// Whether pages may be elsewhere where these nodes have no room.
    pub elsewhere: bool,
}

/// Nodes with memory; 0 where the kernel knows no nodes.
pub fn present() -> Vec<u32> {
    let Ok(list) = fs::read_to_string(format!("{NODE}/has_memory")) else {
        return vec![0];
    };
    let parts = list.trim().split(',');
    let ends = parts.filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.parse::<u32>().ok()?, last.parse::<u32>().ok()?))
    });
    ends.flat_map(|(first, last)| first..=last).collect()
}

/// Bytes of these nodes that are free or hold unchanged copies of files; `None` where the kernel does not say.
pub fn free(nodes: impl Iterator<Item = u32>) -> Option<u64> {
    let of = |node: u32| {
        let text = fs::read_to_string(format!("{NODE}/node{node}/meminfo")).ok()?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.split_once(name));
            line?.1.split_whitespace().next()?.parse::<u64>().ok()
        };
        let files = field("Inactive(file):")? + field("Active(file):")?;
        Some((field("MemFree:")? + files) << 10)
    };
    nodes.map(of).sum()
}

impl Place {
    /// Gives pages that do not exist yet their place. `turn` is the number of stretches of this class so far.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn bind(&self, start: usize, bytes: usize, turn: usize) -> io::Result<()> {
        let all: Vec<u32> = self.nodes.iter().map(|&(node, _)| node).collect();
        let equal = self.nodes.windows(2).all(|two| two[0].1 == two[1].1);
        match (all.as_slice(), self.spread, self.elsewhere) {
            ([], ..) => Ok(()),
            ([_], _, true) => mbind(start, bytes, MPOL_PREFERRED, &all),
            (_, false, true) => mbind(start, bytes, MPOL_PREFERRED_MANY, &all),
            ([_], ..) | (_, false, false) => mbind(start, bytes, MPOL_BIND, &all),
            _ if equal => mbind(start, bytes, MPOL_INTERLEAVE, &all),
            _ if self.are_weights() => mbind(start, bytes, MPOL_WEIGHTED_INTERLEAVE, &all),
            _ => self.stretches(start, bytes, turn),
        }
    }

    /// Whether the kernel's own weights have the same ratios. They hold for the whole machine, so they are not set here.
    fn are_weights(&self) -> bool {
        let weight = |node: u32| {
            let text = fs::read_to_string(format!("{WEIGHTS}/node{node}")).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let weights: Option<Vec<u64>> = self.nodes.iter().map(|one| weight(one.0)).collect();
        let Some(weights) = weights else { return false };
        let pairs = || {
            weights
                .iter()
                .zip(self.nodes.iter().map(|one| u64::from(one.1)))
        };
        pairs().all(|(a, b)| pairs().all(|(c, d)| a * d == c * b))
    }

    fn stretches(&self, start: usize, bytes: usize, turn: usize) -> io::Result<()> {
        let step = bytes.div_ceil(STRETCHES).next_multiple_of(STRETCH);
        let mut mode = MPOL_BIND;
        if self.elsewhere {
            mode = MPOL_PREFERRED;
        }
        let mut at = start;
        while at < start + bytes {
            let node = self.node_of(turn + (at - start) / step);
            let mut end = at;
            while end < start + bytes && self.node_of(turn + (end - start) / step) == node {
                end += step;
            }
            let end = end.min(start + bytes);
            mbind(at, end - at, mode, &[node])?;
            at = end;
        }
        Ok(())
    }

    fn node_of(&self, number: usize) -> u32 {
        let order = self.order.get(number % self.order.len().max(1));
        order.copied().unwrap_or(0)
    }
}

/// The nodes of stretches that follow each other: of any this many, each node has its share within one or two.
pub fn order(nodes: &[(u32, u32)]) -> Vec<u32> {
    let sum: i64 = nodes.iter().map(|one| i64::from(one.1)).sum();
    let mut had = vec![0_i64; nodes.len()];
    let next = |n: i64| {
        let behind = |&i: &usize| i64::from(nodes[i].1) * n - had[i] * sum;
        let next = (0..nodes.len()).rev().max_by_key(behind).unwrap_or(0);
        had[next] += 1;
        nodes[next].0
    };
    (1..=sum).map(next).collect()
}

fn mbind(start: usize, bytes: usize, mode: libc::c_int, nodes: &[u32]) -> io::Result<()> {
    let mut mask = [0_u64; NODES as usize / 64];
    for &node in nodes {
        if let Some(word) = mask.get_mut(node as usize / 64) {
            *word |= 1 << (node % 64);
        }
    }
    // The kernel reads one bit less than the stated number.
    let bits = NODES as usize + 1;
    // SAFETY: the kernel reads the mask and changes the policy of the range, not its content.
    let done =
        unsafe { libc::syscall(libc::SYS_mbind, start, bytes, mode, mask.as_ptr(), bits, 0) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nodes_have_their_shares_of_any_stretches(shares in prop::collection::vec(1_u32..12, 2..5), count in 1_usize..60) {
            let nodes: Vec<(u32, u32)> = (0..).zip(shares.iter().copied()).collect();
            let place = Place { order: order(&nodes), nodes, spread: true, elsewhere: false };
            let sum: u32 = shares.iter().sum();
            for (node, share) in shares.iter().enumerate() {
                let had = (0..count).filter(|&n| place.node_of(n) == node as u32).count();
                let due = count as f64 * f64::from(*share) / f64::from(sum);
                prop_assert!((had as f64 - due).abs() < shares.len() as f64, "node {} has {} of {}", node, had, due);
            }
            let whole = (0..sum as usize).filter(|&n| place.node_of(n) == 0).count();
            prop_assert_eq!(whole, shares[0] as usize);
        }
    }

    #[test]
    fn this_machine_has_a_node_with_memory() {
        let nodes = present();
        assert!(!nodes.is_empty());
        if let Some(free) = free(nodes.into_iter()) {
            assert!(free > 1 << 20);
        }
    }
}
