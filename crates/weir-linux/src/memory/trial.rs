//! Memory that is placed only to test whether the kernel places it as requested.

use std::collections::BTreeMap;
use std::io;

use weir_model::capability::Feature;
use weir_model::machine::MachineError;
use weir_model::units::Bytes;

use super::{Pages, Policy, Region, Share, base_page, policy, system};

/// A policy that the kernel applies itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelPolicy {
    /// One node, as long as it has free memory.
    Preferred,
    /// Page by page over nodes.
    Interleave,
    /// Over nodes by weights, which are one setting of the whole system.
    WeightedInterleave,
}

/// Memory with the expected node of each page.
#[derive(Debug)]
pub struct Trial {
    region: Region,
    /// The node on which each page should be.
    promised: Vec<u32>,
}

/// The request and the kernel's report, in pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacementCheck {
    /// Pages that should be on each node.
    pub asked: BTreeMap<u32, u64>,
    /// Pages that are on each node.
    pub found: BTreeMap<u32, u64>,
    /// Pages for which the kernel reports an error instead of a node, by error.
    pub refused: BTreeMap<String, u64>,
    /// Pages on another node than expected.
    pub misplaced: u64,
}

impl Trial {
    /// Memory as a tenant gets it: each share bound to its node, alternating by weight.
    ///
    /// # Errors
    /// The kernel cannot place pages, or refuses.
    pub fn bound(bytes: Bytes, shares: &[Share], can: &Policy) -> Result<Self, MachineError> {
        available(can)?;
        let region = Region::map(bytes, Pages::Base, shares)?;
        region.populate(can)?;
        let nodes = (0..region.bytes / region.unit).map(|unit| region.share_of(unit).node);
        let promised = nodes.collect::<Option<Vec<u32>>>().ok_or_else(no_node)?;
        Ok(Self { region, promised })
    }

    /// Memory under a policy of the kernel. `weights` are the system's, by node.
    ///
    /// # Errors
    /// The kernel cannot place pages, does not know the policy, or refuses.
    pub fn under(
        kernel: KernelPolicy,
        bytes: Bytes,
        nodes: &[u32],
        weights: &[(u32, u32)],
        can: &Policy,
    ) -> Result<Self, MachineError> {
        available(can)?;
        let (mode, name) = match kernel {
            KernelPolicy::Preferred => (policy::MPOL_PREFERRED, "MPOL_PREFERRED"),
            KernelPolicy::Interleave => (policy::MPOL_INTERLEAVE, "MPOL_INTERLEAVE"),
            KernelPolicy::WeightedInterleave => {
                (policy::MPOL_WEIGHTED_INTERLEAVE, "MPOL_WEIGHTED_INTERLEAVE")
            }
        };
        let weight_of = |node: u32| match kernel {
            KernelPolicy::WeightedInterleave => {
                let weight = weights.iter().find(|(id, _)| *id == node);
                weight.map_or(1, |&(_, weight)| weight.max(1))
            }
            KernelPolicy::Preferred | KernelPolicy::Interleave => 1,
        };
        let mut nodes = nodes.to_vec();
        // A mask of nodes has no order and no duplicates.
        nodes.sort_unstable();
        nodes.dedup();
        let region = Region::map(bytes, Pages::Base, &[no_share()])?;
        policy::set_range(region.base(), region.bytes, mode, &nodes)
            .map_err(|e| system(&format!("mbind ({name}) to nodes {nodes:?}"), &e))?;
        region.touch(0, region.bytes)?;
        let first = region.base() as usize / region.unit;
        let pages = region.bytes / region.unit;
        let promised = turns(&nodes, weight_of, first, pages).ok_or_else(no_node)?;
        Ok(Self { region, promised })
    }

    /// Its first address.
    pub fn address(&self) -> u64 {
        self.region.base() as u64
    }

    /// Bytes in it.
    pub fn bytes(&self) -> Bytes {
        self.region.bytes()
    }

    /// Moves every page to a node, which is then the expected node.
    ///
    /// # Errors
    /// The kernel refuses the whole request. Refusals of single pages appear in the next check.
    pub fn move_to(&mut self, node: u32) -> Result<(), MachineError> {
        let pages = self.promised.len();
        policy::move_to(self.region.base(), pages, base_page(), node)
            .map_err(|e| system(&format!("move_pages to node {node}"), &e))?;
        self.promised.fill(node);
        Ok(())
    }

    /// Asks the kernel for the node of every page.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn look(&self) -> Result<PlacementCheck, MachineError> {
        let pages = self.promised.len();
        let found = policy::nodes_of(self.region.base(), pages, base_page())
            .map_err(|e| system("move_pages, to ask where pages lie", &e))?;
        Ok(PlacementCheck::of(&self.promised, &found))
    }
}

impl PlacementCheck {
    /// Compares the expected nodes with the kernel's report of each page: its node or a negative error
    /// number.
    fn of(promised: &[u32], found: &[i32]) -> Self {
        let mut seen = Self::default();
        for (&promised, &status) in promised.iter().zip(found) {
            *seen.asked.entry(promised).or_default() += 1;
            let node = u32::try_from(status);
            match node {
                Ok(node) => *seen.found.entry(node).or_default() += 1,
                Err(_) => {
                    let error = io::Error::from_raw_os_error(status.saturating_neg());
                    *seen.refused.entry(error.to_string()).or_default() += 1;
                }
            }
            seen.misplaced += u64::from(node != Ok(promised));
        }
        seen
    }
}

/// The node of each page of an interleaved range: the kernel counts pages from address 0, and cycles through
/// the nodes in the order of their numbers (`mm/mempolicy.c`, `weighted_interleave_nid`).
fn turns(
    nodes: &[u32],
    weight_of: impl Fn(u32) -> u32,
    first: usize,
    pages: usize,
) -> Option<Vec<u32>> {
    let round: Vec<u32> = nodes
        .iter()
        .flat_map(|&node| std::iter::repeat_n(node, weight_of(node) as usize))
        .collect();
    (first..first.checked_add(pages)?)
        .map(|page| round.get(page.checked_rem(round.len())?).copied())
        .collect()
}

fn available(can: &Policy) -> Result<(), MachineError> {
    can.availability().map_err(|why| MachineError::Missing {
        feature: Feature::NumaPolicy,
        reason: why.reason,
    })
}

fn no_node() -> MachineError {
    MachineError::Request("memory is placed on nodes, and none was named".to_owned())
}

/// A range under a policy of the kernel has no shares of ours.
fn no_share() -> Share {
    Share {
        tier: weir_model::topology::TierName::dram(),
        node: None,
        weight: 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_model::capability::Unavailable;

    use super::*;

    #[test]
    fn a_kernel_with_one_node_puts_every_page_there_under_every_policy() {
        let can = Policy::probe();
        if can.availability().is_err() {
            return;
        }
        let under = |kernel| Trial::under(kernel, Bytes::mib(1), &[0, 0], &[], &can);
        let pages = (1 << 20) / base_page() as u64;
        for kernel in [KernelPolicy::Preferred, KernelPolicy::Interleave] {
            let mut trial = under(kernel).unwrap();
            trial.move_to(0).unwrap();
            let seen = trial.look().unwrap();
            assert_eq!(
                (seen.misplaced, seen.asked.values().sum::<u64>()),
                (0, pages),
                "{seen:?}"
            );
            assert_eq!(seen.found, BTreeMap::from([(0, pages)]));
        }
    }

    #[test]
    fn what_the_kernel_refuses_is_said_with_the_call() {
        let can = Policy::probe();
        if can.availability().is_err() {
            return;
        }
        let error = Trial::under(KernelPolicy::Interleave, Bytes::mib(1), &[900], &[], &can);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("mbind (MPOL_INTERLEAVE)") && error.contains("900"));
        let denied = Policy::denied(Unavailable::because("a test"));
        let error = Trial::under(KernelPolicy::Preferred, Bytes::mib(1), &[0], &[], &denied);
        assert!(matches!(error, Err(MachineError::Missing { .. })));
    }

    proptest! {
        #[test]
        fn turns_are_in_proportion_to_weights(
            weights in prop::collection::vec(1u32..9, 1..5),
            first in 0usize..1000,
            rounds in 1usize..20,
        ) {
            let nodes: Vec<u32> = (0..weights.len() as u32).collect();
            let round: u32 = weights.iter().sum();
            let pages = round as usize * rounds;
            let turns = turns(&nodes, |n| weights[n as usize], first, pages).unwrap();
            for (node, weight) in nodes.iter().zip(&weights) {
                let own = turns.iter().filter(|n| *n == node).count();
                prop_assert_eq!(own, *weight as usize * rounds);
            }
        }

        #[test]
        fn a_page_is_misplaced_unless_the_kernel_names_its_node(
            pages in prop::collection::vec((0u32..4, -20i32..4), 0..50),
        ) {
            let (promised, found): (Vec<u32>, Vec<i32>) = pages.iter().copied().unzip();
            let seen = PlacementCheck::of(&promised, &found);
            prop_assert_eq!(seen.asked.values().sum::<u64>(), pages.len() as u64);
            let right = pages.iter().filter(|(p, f)| i64::from(*p) == i64::from(*f)).count();
            prop_assert_eq!(seen.misplaced, (pages.len() - right) as u64);
            let reported: u64 = seen.found.values().chain(seen.refused.values()).sum();
            prop_assert_eq!(reported, seen.asked.values().sum::<u64>());
        }
    }
}
