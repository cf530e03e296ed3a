//! Constants of the uncore: mesh, slices and the last-level cache.

use weir_model::platform::Host;
use weir_model::units::{Gigahertz, Nanos};

use super::cores::CoreParams;
use super::error::{SimError, left_over};
use super::mesh::Mesh;
use crate::clock::{Ps, ps};
use crate::memory::LinkConfig;

/// Constants of the last-level cache.
#[derive(Debug, Clone, Copy)]
pub struct LlcConfig {
    /// Lines of the whole cache.
    pub lines: u64,
    /// Ways of a set.
    pub ways: u32,
    /// Sub-NUMA clusters: lines of a cluster's own DRAM are in the part of that cluster.
    pub clusters: u32,
    /// Tiers, from the first on, that are the DRAM of one cluster each.
    pub cluster_tiers: u32,
    /// Core complexes, or sockets: each has its own part. 1 if all cores share the cache.
    pub complexes: u32,
    /// Slices of one such part.
    pub slices: u32,
}

impl LlcConfig {
    /// Clusters whose places on the mesh matter: one if no other cluster's DRAM is used.
    fn places(&self) -> u32 {
        if self.cluster_tiers > 1 {
            self.clusters
        } else {
            1
        }
    }

    /// The cache of this many sockets or hosts, each of which has its own.
    pub fn times(self, parts: u32) -> Self {
        Self {
            lines: u64::from(parts) * self.lines,
            complexes: parts * self.complexes,
            ..self
        }
    }
}

/// Constants of the uncore.
#[derive(Debug, Clone)]
pub struct UncoreParams {
    pub slices: u32,
    pub tor: u32,
    /// Requests that wait for a tier from which the L2 prefetchers run less far ahead.
    pub busy: u32,
    pub irq: u32,
    pub eviction_buffers: u32,
    pub hop: Ps,
    /// Slice time of a hit, and the time until a miss is known.
    pub hit: Ps,
    pub lookup: Ps,
    pub clock_ghz: f64,
    pub llc: LlcConfig,
    /// Platforms on which cores are grouped into complexes, each with its own cache and link to memory.
    pub complex: Option<ComplexParams>,
}

/// Constants of core complexes, each of which is one slice.
#[derive(Debug, Clone, Copy)]
pub struct ComplexParams {
    /// Cores of one complex.
    pub cores: u32,
    /// Its link to memory.
    pub link: LinkConfig,
    /// The link to another complex.
    pub crossing: Ps,
}

impl UncoreParams {
    /// The paths between this many cores and the slices.
    pub fn mesh(&self, cores: u32) -> Mesh {
        match &self.complex {
            Some(complex) => Mesh::of_complexes(cores, self.slices, self.hop, complex.crossing),
            None => Mesh::new(cores, self.slices, self.hop, self.llc.places()),
        }
    }

    /// The same with mesh and slices at another clock: what was derived from latencies at one clock takes as many
    /// cycles at the other.
    pub(super) fn at(mut self, clock: Gigahertz) -> Self {
        let slower = self.clock_ghz / clock.get();
        if slower == 1.0 {
            return self;
        }
        let scale = |time: &mut Ps| *time = (*time as f64 * slower).round() as Ps;
        for time in [&mut self.hop, &mut self.hit, &mut self.lookup] {
            scale(time);
        }
        if let Some(complex) = &mut self.complex {
            let link = &mut complex.link;
            for time in [&mut link.line_in, &mut link.line_out, &mut complex.crossing] {
                scale(time);
            }
        }
        self.clock_ghz = clock.get();
        self
    }

    /// The complex of a core; 0 if there are none.
    pub fn complex_of(&self, core: u16) -> u16 {
        self.complex.map_or(0, |c| core / c.cores as u16)
    }
}

pub(super) fn uncore_params(host: &Host, core: &CoreParams) -> Result<UncoreParams, SimError> {
    let slices = *host.llc.slices;
    let hop = ps(host.uncore.clock.time(*host.uncore.hop));
    let complex = complex_params(host);
    let llc = LlcConfig {
        lines: host.llc.size.lines(),
        ways: *host.llc.ways,
        clusters: *host.uncore.clusters,
        cluster_tiers: host.uncore.cluster_tiers(),
        complexes: host.uncore.complexes.as_ref().map_or(1, |c| *c.count),
        slices: match complex {
            Some(_) => 1,
            None => slices,
        },
    };
    let mesh = match complex {
        Some(_) => hop as f64,
        None => Mesh::new(core.count, slices, hop, llc.places()).mean_from(0, slices),
    };
    let side = Nanos((core.l2_hit as f64 + 2.0 * mesh) / 1e3);
    let hit = left_over(
        "the last-level cache's latency",
        &host.llc.latency,
        side,
        "a miss in L2, the mesh there and back",
    )?;
    Ok(UncoreParams {
        slices,
        tor: *host.uncore.tor,
        busy: (f64::from(slices * *host.uncore.tor) * *host.prefetch.busy_at) as u32,
        irq: *host.uncore.irq,
        eviction_buffers: *host.uncore.eviction_buffers,
        hop,
        hit: ps(hit),
        // Tags are read before data: after half of a hit's time a miss is known.
        lookup: ps(hit * 0.5),
        clock_ghz: host.uncore.clock.get(),
        llc,
        complex,
    })
}

fn complex_params(host: &Host) -> Option<ComplexParams> {
    let complexes = host.uncore.complexes.as_ref()?;
    let (read, write) = complexes.link(*host.uncore.clock);
    Some(ComplexParams {
        cores: (*host.core.count / *complexes.count).max(1),
        // Requests and acknowledgements have their own wires, separate from those of the data.
        link: LinkConfig {
            line_in: ps(read.line_time()),
            line_out: ps(write.line_time()),
            request_out: 0,
            completion_in: 0,
        },
        crossing: ps(*complexes.crossing),
    })
}
