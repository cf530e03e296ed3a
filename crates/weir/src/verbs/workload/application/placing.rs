//! Where the pages of an application are to be, and where they are.

use std::collections::BTreeMap;

use weir_lab::workload::application::ApplicationMemory;
use weir_linux::application::Where;
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use super::OnHost;
use crate::failure::{Failure, Result};
use crate::nodes::{Held, node_of, spread};

/// Where the pages of one run are to be.
pub(super) struct Place {
    pub name: String,
    /// The share of each node; empty where the kernel has no nodes.
    nodes: Vec<(u32, f64)>,
    pub place: Where,
    /// The weights of the system, while they are changed.
    pub held: Option<Held>,
}

impl OnHost<'_> {
    /// The policy of a placement. A machine with one node needs none.
    pub(super) fn place(&self, placement: &Placement) -> Result<Place> {
        let weights: Vec<(TierName, u32)> = match placement {
            Placement::Interleave(weights) => {
                weights.iter().filter(|(_, n)| *n > 0).cloned().collect()
            }
            other => other.tiers().map(|tier| (tier.clone(), 1)).collect(),
        };
        let name = match weights.as_slice() {
            [(tier, _)] => tier.to_string(),
            several => {
                let part = |(tier, pages): &(TierName, u32)| format!("{tier}={pages}");
                several.iter().map(part).collect::<Vec<_>>().join(",")
            }
        };
        let without = [TierName::dram()]
            == *weights
                .iter()
                .map(|(tier, _)| tier.clone())
                .collect::<Vec<_>>()
            && self
                .topology
                .tier(&TierName::dram())
                .is_some_and(|tier| tier.node.is_none());
        let mut place = Place {
            name,
            nodes: Vec::new(),
            place: Where {
                cpus: self.cpus.clone(),
                policy: None,
            },
            held: None,
        };
        if without {
            return Ok(place);
        }
        let node = |(tier, weight): &(TierName, u32)| Ok((node_of(&self.topology, tier)?, *weight));
        let nodes: Vec<(u32, u32)> = weights.iter().map(node).collect::<Result<_>>()?;
        let all: u32 = nodes.iter().map(|(_, weight)| weight).sum();
        if all == 0 {
            return Err(Failure::request("no tier has a weight in --tier"));
        }
        place.nodes = nodes
            .iter()
            .map(|&(node, weight)| (node, f64::from(weight) / f64::from(all)))
            .collect();
        let (policy, held) = spread(&self.host, &nodes)?;
        (place.place.policy, place.held) = (Some(policy), held);
        Ok(place)
    }

    /// Keeps where the pages of a placement are, in place of what was known of it.
    pub(super) fn memory(&mut self, place: &Place, resident: Option<BTreeMap<u32, Bytes>>) {
        let Some(mut resident) = resident else {
            return;
        };
        for (node, _) in &place.nodes {
            resident.entry(*node).or_insert(Bytes(0));
        }
        let all: u64 = resident.values().map(|bytes| bytes.get()).sum();
        self.run
            .memory
            .retain(|memory| memory.placement != place.name);
        for (node, bytes) in resident {
            let asked = place.nodes.iter().find(|(of, _)| *of == node);
            // Without a policy every node is right.
            let share = bytes.get() as f64 / all.max(1) as f64;
            let asked = if place.nodes.is_empty() {
                share
            } else {
                asked.map_or(0.0, |(_, share)| *share)
            };
            let tier = self
                .topology
                .tiers
                .iter()
                .find(|tier| tier.node == Some(node));
            self.run.memory.push(ApplicationMemory {
                placement: place.name.clone(),
                tier: tier.map(|tier| tier.name.clone()),
                node,
                resident_bytes: bytes,
                share,
                asked,
            });
        }
    }
}
