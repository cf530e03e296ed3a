//! From a platform to the constants of the queues.
//!
//! The platform has figures that were measured alone: idle latencies and peak bandwidths. This file derives
//! the parts which have no public value: the fixed time of a path that remains after its known parts (caches,
//! mesh, row activation, data bus, link), and the time of a line on a bus whose scheduler loses a share of
//! the standard's peak. No result with two tenants is an input.

use std::borrow::Cow;

use weir_model::platform::{Platform, Ports};
use weir_model::units::Nanos;

mod backing;
mod cores;
mod error;
mod mesh;
mod path;
mod sockets;
mod storage;
mod uncore;

pub use cores::{AcceleratorParams, CoreParams, PrivateConfig};
use cores::{accelerator_params, core_params};
use error::MOST_TIERS;
pub use error::SimError;
pub use mesh::{Mesh, slice_of};
use path::Path;
pub use path::{TierClass, TierParams};
pub use sockets::SocketParams;
pub use storage::{DriveParams, IoParams};
use uncore::uncore_params;
pub use uncore::{LlcConfig, UncoreParams};

use crate::clock::Ps;
use crate::memory::{BackingConfig, NEVER, Sharing};

/// All constants of a machine.
#[derive(Debug, Clone)]
pub struct Params {
    pub core: CoreParams,
    pub uncore: UncoreParams,
    /// Present if the processor has one.
    pub accelerator: Option<AcceleratorParams>,
    /// Hosts, all alike.
    pub hosts: u32,
    /// Of each host, in the order of the topology's tiers, without storage.
    pub tiers: Vec<TierParams>,
    /// Storage devices, in the order of their tiers.
    pub drives: Vec<DriveParams>,
    /// Present if tenants can run on the other socket.
    pub sockets: Option<SocketParams>,
    pub io: IoParams,
    pub dram_clock_ghz: f64,
}

impl Params {
    /// The constants of a core, or of each of two threads on one.
    pub fn core_of(&self, is_halved: bool) -> Cow<'_, CoreParams> {
        match is_halved {
            true => Cow::Owned(self.core.halved()),
            false => Cow::Borrowed(&self.core),
        }
    }

    /// The longest miss of a device whose DRAM is a cache of another medium, if there is one.
    pub fn longest_miss(&self) -> Option<Ps> {
        let backed = (self.tiers.iter()).filter_map(|t| t.config.device.as_ref()?.backing.as_ref());
        let miss = |b: &BackingConfig| b.firmware + b.flash.read + b.flash.cross;
        backed.map(miss).max()
    }

    /// Whether a device disappears while it runs.
    pub fn fails(&self) -> bool {
        self.tiers.iter().any(|t| t.config.fails_at < NEVER)
    }

    /// Derives the constants of a platform.
    pub fn derive(platform: &Platform) -> Result<Self, SimError> {
        let host = &platform.host;
        let core = core_params(host);
        let uncore = uncore_params(host, &core)?;
        // An idle latency is published for one core; the first core stands for all, and the experiments use
        // it.
        let mesh = uncore.mesh(core.count);
        let link = (uncore.complex.as_ref()).map_or(Nanos(0.0), |c| path::crossing(&c.link));
        let way = |slices: u32| {
            // Lines of a complex go through its own slice.
            let among = if uncore.complex.is_some() { 1 } else { slices };
            let mesh = 2.0 * mesh.mean_from(0, among);
            Path {
                near: Nanos((core.l2_hit as f64 + mesh + uncore.lookup as f64) / 1e3) + link,
                slices,
            }
        };
        // Lines of a sub-NUMA cluster's own DRAM are in its slices; other lines are in all slices (MICRO 2023
        // observation O6).
        let cluster = (uncore.slices / uncore.llc.clusters).max(1);
        let path = way(uncore.slices);

        // The DRAM of other clusters differs by its slices alone: what is known of the path from a slice to its
        // memory is that of the first cluster.
        let dram = way(cluster).dram(host)?;
        let of_cluster = |n| TierParams {
            first_slice: n * cluster,
            ..dram.clone()
        };
        let mut tiers: Vec<TierParams> = (0..uncore.llc.cluster_tiers).map(of_cluster).collect();
        for attached in &platform.devices {
            let mut tier = path.device(attached, host)?;
            tier.capacity = platform.capacity_of(attached);
            tier.config.sharing = platform.is_shared(attached).then(|| Sharing {
                hosts: platform.hosts,
                is_multi_headed: attached.ports == Ports::MultiHeaded,
                range: tier.capacity.lines(),
            });
            tiers.push(tier);
        }
        if let Some(tier) = path.remote(host)? {
            tiers.push(tier);
        }
        let sockets = match platform.topology().other_cores.is_empty() {
            true => None,
            false => path.sockets(platform, &tiers)?,
        };
        let all = tiers.len() * platform.hosts as usize;
        if all > MOST_TIERS && platform.hosts > 1 {
            return Err(SimError::TooManyTiers {
                hosts: platform.hosts,
                tiers: tiers.len(),
                all,
            });
        }
        let dram_clock_ghz = host.dram.media.timing().rate.get() / 2.0;
        let drives = (platform.storage.iter())
            .map(|device| storage::drive_params(device, host, &uncore))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            io: storage::io_params(host, &uncore),
            drives,
            core,
            uncore: uncore.at(host.uncore.running_clock()),
            accelerator: accelerator_params(host),
            hosts: platform.hosts,
            tiers,
            sockets,
            dram_clock_ghz,
        })
    }
}

impl Params {
    /// Whether a core is on the other socket.
    pub fn is_beyond(&self, core: u16) -> bool {
        self.sockets.is_some() && u32::from(core) >= self.core.count
    }

    /// The lines of each tier that a host may use, of all hosts in order: of a tier that they share, each host's range.
    pub fn frames(&self) -> Vec<std::ops::Range<u64>> {
        let of = |host: u64, tier: &TierParams| {
            let lines = tier.capacity.lines();
            let first = tier
                .config
                .sharing
                .map_or(0, |sharing| host * sharing.range);
            first..first + lines
        };
        let hosts = 0..u64::from(self.hosts);
        hosts
            .flat_map(|host| self.tiers.iter().map(move |tier| of(host, tier)))
            .collect()
    }

    /// What a load takes longer where a tier is mapped past the caches; tiers are numbered through the hosts.
    pub fn uncached(&self, tier: u8) -> Option<Ps> {
        self.tiers[usize::from(tier) % self.tiers.len()].uncached
    }

    /// The host of a core.
    pub fn host_of(&self, core: u16) -> u32 {
        match self.hosts {
            1 => 0,
            _ => u32::from(core) / self.core.count.max(1),
        }
    }

    /// The socket or host of a core: what has a last-level cache of its own.
    pub fn part_of(&self, core: u16) -> usize {
        self.host_of(core) as usize + usize::from(self.is_beyond(core))
    }

    /// The sockets or hosts up to the last of these cores.
    pub fn parts_with(&self, cores: impl Iterator<Item = u16>) -> u32 {
        cores.map(|core| self.part_of(core)).max().unwrap_or(0) as u32 + 1
    }

    /// The tier of the DRAM of a core's own sub-NUMA cluster, if it is another than the first.
    pub fn own_cluster(&self, core: u32) -> Option<usize> {
        let llc = &self.uncore.llc;
        let tile = core * self.uncore.slices / self.core.count.max(1);
        let cluster = tile / (self.uncore.slices / llc.clusters).max(1);
        (1..llc.cluster_tiers)
            .contains(&cluster)
            .then_some(cluster as usize)
    }

    /// The first slice that requests of a core may use: the first of its socket, or the only one of its
    /// complex.
    pub fn first_slice(&self, core: u16) -> u16 {
        if self.hosts > 1 {
            let (host, count) = (self.host_of(core) as u16, self.core.count as u16);
            let of_host = self.uncore.complex_of(core - host * count);
            return host * self.uncore.slices as u16 + of_host;
        }
        match self.uncore.complex {
            Some(_) => self.uncore.complex_of(core),
            None if u32::from(core) >= self.core.count => self.uncore.slices as u16,
            None => 0,
        }
    }
}
