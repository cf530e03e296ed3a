//! What a machine is made of, as far as experiments need to know.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, GbPerSec, Gigahertz, Nanos};

/// The stable name of a memory tier: `dram`, `cxl0`, `cxl1` …, `remote`, `ssd0`.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct TierName(String);

impl TierName {
    /// DRAM of the socket that the threads run on.
    pub fn dram() -> Self {
        Self("dram".into())
    }

    /// DRAM of another socket.
    pub fn remote() -> Self {
        Self("remote".into())
    }

    /// DRAM of the `n`th sub-NUMA cluster of the socket; the first one's is `dram`.
    pub fn cluster(n: u32) -> Self {
        Self(format!("dram{n}"))
    }

    /// The `n`th CXL device.
    pub fn cxl(n: usize) -> Self {
        Self(format!("cxl{n}"))
    }

    /// The `n`th storage device.
    pub fn ssd(n: usize) -> Self {
        Self(format!("ssd{n}"))
    }

    /// A tier by the name that a user gave.
    pub fn named(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Any text is a name; whether a machine has such a tier is another question.
impl std::str::FromStr for TierName {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::named(text))
    }
}

impl fmt::Display for TierName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

crate::named! {
    /// What kind of memory a tier is.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum TierKind {
        /// DRAM of this socket.
        Dram = "local DRAM",
        /// DRAM of another socket.
        Remote = "remote DRAM",
        /// Memory behind a CXL link of this socket.
        Cxl = "CXL",
        /// Memory behind a CXL link of another socket.
        RemoteCxl = "CXL, remote",
        /// A node without processors whose kind the system does not tell.
        CpuLess = "CPU-less node",
        /// A storage device, which requests reach and loads do not.
        Ssd = "SSD",
    }
}

impl TierKind {
    /// The kind of this machine's tier for cores of a socket: what is remote for the first is near for the other.
    #[must_use]
    pub const fn seen_from(self, socket: u32) -> Self {
        match (self, socket) {
            (kind, 0) => kind,
            (TierKind::Dram, _) => TierKind::Remote,
            (TierKind::Remote, _) => TierKind::Dram,
            (TierKind::Cxl, _) => TierKind::RemoteCxl,
            (TierKind::RemoteCxl, _) => TierKind::Cxl,
            (kind, _) => kind,
        }
    }
}

crate::named! {
    /// In which order threads take the cores of both sockets, as `OMP_PROC_BIND` of OpenMP names it.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Affinity {
        /// All cores of the first socket, then those of the next.
        Close = "close",
        /// One of each socket in turn.
        Spread = "spread",
    }
}

impl std::str::FromStr for Affinity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text)
            .ok_or_else(|| format!("`{text}` is not an affinity; write close or spread"))
    }
}

/// Whether a socket or a host is the first, whose DRAM is tier `dram`: documents leave that out.
pub const fn is_first(number: &u32) -> bool {
    *number == 0
}

/// One tier of memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tier {
    /// Its name.
    pub name: TierName,
    /// Its kind.
    pub kind: TierKind,
    /// Linux's number for the node, on a real machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Capacity.
    pub capacity: Bytes,
    /// In words: `8 x DDR5-4800`, `CXL-A: 2 x DDR4-2666 behind x8`.
    pub description: String,
    /// What physics allows for each direction, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Pages that its medium can still program before its blocks are worn out, where they wear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs_left: Option<u64>,
}

/// Upper bounds that no measurement can beat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Read data.
    pub read: GbPerSec,
    /// Written data.
    pub write: GbPerSec,
    /// Reads and writes together (half-duplex media, or both directions of a link).
    pub total: GbPerSec,
    /// The least latency the known parts add up to, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Nanos>,
    /// How they were got: `8 ch x 4.8 GT/s x 8 B`.
    pub basis: String,
}

/// One level of cache as a thread sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheLevel {
    /// `L1d`, `L2`, `L3`.
    pub name: String,
    /// Capacity of one instance.
    pub size: Bytes,
    /// Associativity, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<u32>,
    /// Cores that share one instance.
    pub shared_by: u32,
}

/// A machine as experiments see it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// The processor, in words.
    pub processor: String,
    /// Sockets.
    pub sockets: u32,
    /// The cores that experiments may use, in the order in which to use them: one hardware thread
    /// of each core of the socket whose DRAM is tier `dram`.
    pub cores: Vec<u32>,
    /// Those of the next socket, whose DRAM is tier `remote`; empty where there is none that tenants can be put on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_cores: Vec<u32>,
    /// Cores of further hosts, which share the memory behind a switch; numbered on from those of the first. Each host
    /// has tiers of the same names. Empty where there is one host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_hosts: Vec<Vec<u32>>,
    /// Core clock, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Gigahertz>,
    /// Step in which a core's bandwidth to the mesh can be allocated (MBA), as a share of its scale, where it is
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<f64>,
    /// Data caches, nearest first.
    pub caches: Vec<CacheLevel>,
    /// Memory, fastest kind first; `dram` is always the first.
    pub tiers: Vec<Tier>,
    /// Bytes in a page that placement works on.
    pub page: Bytes,
}

impl Topology {
    /// Whether it describes no machine.
    pub fn is_unknown(&self) -> bool {
        self.tiers.is_empty()
    }

    /// The tier of this name.
    pub fn tier(&self, name: &TierName) -> Option<&Tier> {
        self.tiers.iter().find(|t| t.name == *name)
    }

    /// The cores of a socket that tenants can be put on: 0 is the one whose DRAM is tier `dram`, 1 the next.
    pub fn cores_of(&self, socket: u32) -> &[u32] {
        match socket {
            0 => &self.cores,
            1 => &self.other_cores,
            _ => &[],
        }
    }

    /// The cores of a host, 0 for the first.
    pub fn cores_of_host(&self, host: u32) -> &[u32] {
        match host.checked_sub(1) {
            None => &self.cores,
            Some(other) => (self.other_hosts.get(other as usize)).map_or(&[], Vec::as_slice),
        }
    }

    /// The host that a core belongs to.
    pub fn host_of(&self, core: u32) -> u32 {
        let other = self.other_hosts.iter().position(|own| own.contains(&core));
        other.map_or(0, |other| other as u32 + 1)
    }

    /// Cores that tenants can be put on: those of all sockets and hosts.
    pub fn has_core(&self, core: u32) -> bool {
        let mut own = [&self.cores, &self.other_cores]
            .into_iter()
            .chain(&self.other_hosts);
        own.any(|cores| cores.contains(&core))
    }

    /// The cores of both sockets in the order of an affinity.
    pub fn cores_by(&self, affinity: Affinity) -> Vec<u32> {
        let (first, next) = (&self.cores, &self.other_cores);
        match affinity {
            Affinity::Close => first.iter().chain(next).copied().collect(),
            Affinity::Spread => (0..first.len().max(next.len()))
                .flat_map(|n| first.get(n).into_iter().chain(next.get(n)))
                .copied()
                .collect(),
        }
    }

    /// The tier of the DRAM at a core's own socket.
    pub fn local_tier(&self, core: u32) -> TierName {
        let kind = match self.other_cores.contains(&core) {
            true => TierKind::Remote,
            false => TierKind::Dram,
        };
        let local = self.tiers.iter().find(|tier| tier.kind == kind);
        local.map_or_else(TierName::dram, |tier| tier.name.clone())
    }

    /// Capacity of the last-level cache, or zero if there is none.
    pub fn last_level_cache(&self) -> Bytes {
        self.caches.last().map_or(Bytes(0), |c| c.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_fills_a_socket_and_spread_alternates() {
        let machine = |other: &[u32]| Topology {
            cores: vec![0, 1, 2],
            other_cores: other.to_vec(),
            ..Topology::default()
        };
        let both = machine(&[7, 8, 9]);
        assert_eq!(both.cores_by(Affinity::Close), [0, 1, 2, 7, 8, 9]);
        assert_eq!(both.cores_by(Affinity::Spread), [0, 7, 1, 8, 2, 9]);
        assert_eq!(machine(&[7]).cores_by(Affinity::Spread), [0, 7, 1, 2]);
        assert_eq!(machine(&[]).cores_by(Affinity::Spread), [0, 1, 2]);
    }
}
