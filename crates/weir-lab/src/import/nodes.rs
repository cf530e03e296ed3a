//! NUMA nodes of a file, and the tiers that they are.

use weir_model::topology::{Tier, TierKind, TierName};
use weir_model::units::Bytes;

use super::found::Hints;

/// What the figures of cores that use the memory of their own node are of, where there are several nodes.
pub(crate) const OWN: &str = "local";

/// The tiers of nodes, as the user says them or as a matrix suggests them.
#[derive(Debug, Clone, Default)]
pub struct Places {
    said: Vec<(String, TierName)>,
    /// Nodes with cores: the rows of a matrix.
    rows: Vec<u32>,
}

impl Places {
    /// As the user says.
    pub fn of(hints: &Hints) -> Self {
        Self {
            said: hints.tiers.clone(),
            rows: Vec::new(),
        }
    }

    /// A node that has cores.
    pub fn has_cores(&mut self, node: u32) {
        if !self.rows.contains(&node) {
            self.rows.push(node);
        }
    }

    fn said(&self, node: &str) -> Option<TierName> {
        let one = self.said.iter().find(|(name, _)| name == node);
        one.map(|(_, tier)| tier.clone())
    }

    /// The tier of a node: what the user says; else `dram` for node 0 and, where two nodes have cores, `remote` for the
    /// other. No file says what a further node is.
    pub fn tier(&self, node: u32) -> TierName {
        let known = match node {
            0 => Some(TierName::dram()),
            node if self.rows.len() == 2 && self.rows.contains(&node) => Some(TierName::remote()),
            _ => None,
        };
        self.said(&node.to_string())
            .or_else(|| self.said(""))
            .or(known)
            .unwrap_or_else(|| TierName::named(format!("node{node}")))
    }

    /// The tier of figures for which each core uses the memory of its own node.
    pub fn own(&self) -> TierName {
        self.said("").unwrap_or_else(|| match self.rows.len() {
            0 | 1 => TierName::dram(),
            _ => TierName::named(OWN),
        })
    }

    /// The socket of a node with cores, counted from 0.
    pub fn socket(&self, node: u32) -> u32 {
        let at = self.rows.iter().position(|&row| row == node);
        at.unwrap_or(0) as u32
    }
}

/// A tier of which nothing is known but its name.
pub(super) fn tier(name: &TierName) -> Tier {
    let kind = match name.as_str() {
        "remote" => TierKind::Remote,
        cxl if cxl.starts_with("cxl") => TierKind::Cxl,
        node if node.starts_with("node") => TierKind::CpuLess,
        _ => TierKind::Dram,
    };
    Tier {
        name: name.clone(),
        kind,
        node: None,
        capacity: Bytes(0),
        description: "from a file of another tool".into(),
        limits: None,
        programs_left: None,
    }
}
