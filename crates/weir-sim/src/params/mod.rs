//! From a platform to the constants of the queues.
//!
//! The platform has figures that were measured alone: idle latencies and peak bandwidths. This file derives
//! the parts which have no public value: the fixed time of a path that remains after its known parts (caches,
//! mesh, row activation, data bus, link), and the time of a line on a bus whose scheduler loses a share of
//! the standard's peak. No result with two tenants is an input.

use weir_model::platform::{BandwidthAllocation, Host, Platform, Ports, Sourced};
use weir_model::units::{Bytes, GbPerSec, Gigahertz, LINE_BYTES, Nanos};

mod backing;
mod mesh;
mod path;
mod sockets;
mod storage;

pub use mesh::{Mesh, slice_of};
use path::Path;
pub use sockets::SocketParams;
pub use storage::{DriveParams, IoParams};

use crate::clock::{Ps, ps};
use crate::memory::{BackingConfig, LinkConfig, NEVER, Sharing, TierConfig};

/// Why a platform cannot be simulated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimError {
    /// A measured latency is shorter than the sum of its known parts.
    #[error(
        "{what} of {measured:.0} is shorter than its known parts ({parts}), which take {least:.1}; \
         one of them is wrong"
    )]
    TooFast {
        /// Which latency.
        what: String,
        /// The measured value.
        measured: Nanos,
        /// The sum of the parts.
        least: Nanos,
        /// The parts.
        parts: String,
    },
    /// A measured bandwidth is above the limit of its media or link.
    #[error("{what} of {measured:.1} is more than {limit:.1}, the peak of {of}")]
    TooWide {
        /// Which bandwidth.
        what: String,
        /// The measured value.
        measured: GbPerSec,
        /// The limit.
        limit: GbPerSec,
        /// What sets the limit.
        of: String,
    },
    /// More tiers of all hosts than queues are followed for.
    #[error(
        "{hosts} hosts with {tiers} tiers of memory each are {all}; at most {MOST_TIERS} are simulated. Name fewer \
         hosts or devices"
    )]
    TooManyTiers {
        /// Hosts.
        hosts: u32,
        /// Tiers of each.
        tiers: usize,
        /// Both multiplied.
        all: usize,
    },
}

/// Tiers of all hosts: one bit each says whether prefetches from it are throttled.
const MOST_TIERS: usize = 32;

/// Constants of the cores.
#[derive(Debug, Clone)]
pub struct CoreParams {
    pub count: u32,
    pub cycle: f64,
    pub line_fill_buffers: u32,
    pub super_queue: u32,
    pub load_window: u64,
    pub random_window: u64,
    pub store_window: u64,
    pub l1_ahead: u32,
    pub l2_ahead: u32,
    pub l2_ahead_busy: u32,
    /// Accesses before a prefetcher is trained.
    pub training: u32,
    pub load_gap: Ps,
    pub store_gap: Ps,
    pub nt_hold: Ps,
    pub movdir_gap: Ps,
    pub l1_hit: Ps,
    pub l2_hit: Ps,
    /// Times between accesses of a stream that hit L1, and L2.
    pub l1_load_gap: Ps,
    pub l1_store_gap: Ps,
    pub l2_gap: Ps,
    /// The same of lines that the last-level cache has.
    pub llc_gap: Ps,
    /// Time of an atomic instruction that has its line.
    pub atomic: Ps,
    /// Fill buffers that the L1 prefetchers leave to demand.
    pub l1_spares: u32,
    pub private: PrivateConfig,
    pub tlb_reach: Bytes,
    pub page: Bytes,
    /// What an entry of the TLBs covers.
    pub tlb_page: Bytes,
    pub walk: Ps,
    /// What walks of the hypervisor's tables add to a walk; zero without a hypervisor.
    pub nested: Ps,
    /// Entries of the buffers that an out-of-order core has.
    pub reorder_buffer: u32,
    pub scheduler: u32,
    pub integer_registers: u32,
    pub vector_registers: u32,
    pub load_buffer: u32,
    pub store_buffer: u32,
    /// Time from a mispredicted branch to the instruction after it.
    pub mispredict: Ps,
    /// The cost of the first access to a page.
    pub fault: Ps,
    /// Lines that the streamer requests at once, outstanding lines up to which they enter L2, and whether
    /// further ones enter the last-level cache alone.
    pub l2_degree: u32,
    pub l2_outstanding: u32,
    pub llc_prefetch: bool,
    /// Limits the rate of requests from its L2 to the mesh.
    pub allocation: BandwidthAllocation,
    /// The extra time for the coherence of a line that was just flushed.
    pub flushed: Ps,
}

impl CoreParams {
    /// Time between two requests under an allocation of so many percent; 0 if the allocation delays none.
    pub fn allocated(&self, percent: u32) -> Ps {
        if percent >= 100 {
            return 0;
        }
        let passes = self.allocation.passes(f64::from(percent) / 100.0);
        (self.load_gap as f64 / passes) as Ps
    }
}

/// Constants of the private caches, in lines.
#[derive(Debug, Clone, Copy)]
pub struct PrivateConfig {
    /// Lines and ways of L1.
    pub l1: (u64, u32),
    /// Lines and ways of L2.
    pub l2: (u64, u32),
}

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

    /// The cache of so many sockets or hosts, each of which has its own.
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
    /// The paths between so many cores and the slices.
    pub fn mesh(&self, cores: u32) -> Mesh {
        match &self.complex {
            Some(complex) => Mesh::of_complexes(cores, self.slices, self.hop, complex.crossing),
            None => Mesh::new(cores, self.slices, self.hop, self.llc.places()),
        }
    }

    /// The same with mesh and slices at another clock: what was derived from latencies at one clock takes as many
    /// cycles at the other.
    fn at(mut self, clock: Gigahertz) -> Self {
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

/// Constants of the Data Streaming Accelerator.
#[derive(Debug, Clone, Copy)]
pub struct AcceleratorParams {
    pub work_queue: u32,
    pub read_buffers: u32,
    /// Least time between two lines.
    pub gap: Ps,
    pub describe: Ps,
    pub submit: Ps,
    pub portal: Ps,
    pub decode: Ps,
}

/// The class of the ToR entries of a tier's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierClass {
    Ddr,
    Cxl,
    Remote,
}

/// A tier and how its requests are counted.
#[derive(Debug, Clone)]
pub struct TierParams {
    pub class: TierClass,
    /// Slices over which its lines are spread, and the first of them.
    pub slices: u32,
    pub first_slice: u32,
    /// What one host may use.
    pub capacity: Bytes,
    /// What a load of a mapping that no cache keeps takes longer, if there are such mappings.
    pub uncached: Option<Ps>,
    /// Requests that its queues and the path to them hold; while this many requests wait, nothing is
    /// prefetched from it. Devices have no such limit: only their credits limit them.
    pub holds: u32,
    pub config: TierConfig,
}

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

/// Pages of a hypervisor's tables, unless it backs the guest with larger ones. An entry of the TLBs covers no more than
/// the smaller of both pages.
const HOST_PAGE: Bytes = Bytes::kib(4);

/// What an entry of the TLBs covers, and how long the hypervisor's tables are walked for a walk: for the data's page, and for
/// the page of the guest's last table, whose entries for large pages stay in the caches of the walker (Bhargava et al.,
/// Accelerating Two-Dimensional Page Walks, ASPLOS 2008).
fn nested(host: &Host) -> (Bytes, Ps) {
    let (page, once) = (*host.tlb.page, ps(*host.tlb.nested));
    match (once > 0, page > HOST_PAGE) {
        (false, _) => (page, 0),
        (true, true) => (HOST_PAGE, once),
        (true, false) => (page, 2 * once),
    }
}

fn core_params(host: &Host) -> CoreParams {
    let (c, cycle) = (&host.core, 1.0 / host.core.clock.get());
    let (tlb_page, nested) = nested(host);
    let nt_peak =
        GbPerSec(f64::from(*c.line_fill_buffers) * LINE_BYTES as f64 / c.nt_store_hold.get());
    CoreParams {
        count: *c.count,
        cycle,
        line_fill_buffers: *c.line_fill_buffers,
        super_queue: *c.super_queue,
        load_window: u64::from(*c.reorder_buffer / *c.line_uops).max(1),
        random_window: u64::from(*c.reorder_buffer / *c.random_uops).max(1),
        store_window: u64::from(*c.store_buffer),
        l1_ahead: *host.prefetch.l1_lines,
        l2_ahead: *host.prefetch.l2_lines,
        l2_ahead_busy: *host.prefetch.l2_lines_busy,
        training: *host.prefetch.training,
        load_gap: ps(c.load_peak.line_time()),
        store_gap: ps(c.store_peak.line_time()),
        nt_hold: ps(*c.nt_store_hold),
        movdir_gap: ps((nt_peak * *c.movdir64b_share).line_time()),
        l1_hit: ps(c.clock.time(*host.l1.latency)),
        l2_hit: ps(c.clock.time(*host.l2.latency)),
        l1_load_gap: ps(c.clock.time(*c.l1_load_gap)),
        l1_store_gap: ps(c.clock.time(*c.l1_store_gap)),
        l2_gap: ps(c.clock.time(*c.l2_gap)),
        llc_gap: ps(c.clock.time(*c.llc_gap)),
        atomic: ps(c.clock.time(*c.atomic)),
        l1_spares: (f64::from(*c.line_fill_buffers) * *host.prefetch.l1_spares) as u32,
        private: PrivateConfig {
            l1: (host.l1.size.lines(), *host.l1.ways),
            l2: (host.l2.size.lines(), *host.l2.ways),
        },
        tlb_reach: Bytes(u64::from(*host.tlb.entries) * tlb_page.get()),
        page: *host.tlb.page,
        tlb_page,
        walk: ps(*host.tlb.walk).max(nested),
        nested,
        reorder_buffer: *c.reorder_buffer,
        scheduler: *c.scheduler,
        integer_registers: *c.integer_registers,
        vector_registers: *c.vector_registers,
        load_buffer: *c.load_buffer,
        store_buffer: *c.store_buffer,
        mispredict: ps(c.clock.time(*c.mispredict)),
        fault: ps(*host.tlb.fault),
        l2_degree: *host.prefetch.l2_degree,
        l2_outstanding: *host.prefetch.l2_outstanding,
        llc_prefetch: *host.prefetch.llc == 1,
        allocation: host.allocation.clone(),
        flushed: ps(*host.uncore.flushed_line),
    }
}

fn accelerator_params(host: &Host) -> Option<AcceleratorParams> {
    let dsa = &host.accelerator;
    (*dsa.devices > 0).then(|| AcceleratorParams {
        work_queue: *dsa.work_queue,
        read_buffers: *dsa.read_buffers,
        gap: ps(dsa.peak.line_time()),
        describe: ps(*dsa.describe),
        submit: ps(*dsa.submit),
        portal: ps(*dsa.portal),
        decode: ps(*dsa.decode),
    })
}

fn uncore_params(host: &Host, core: &CoreParams) -> Result<UncoreParams, SimError> {
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

/// The part of a measured latency that remains after its known parts.
fn left_over(
    what: &str,
    measured: &Sourced<Nanos>,
    least: Nanos,
    parts: &str,
) -> Result<Nanos, SimError> {
    let rest = **measured - least;
    if rest.get() <= 0.0 {
        return Err(SimError::TooFast {
            what: what.into(),
            measured: **measured,
            least,
            parts: parts.into(),
        });
    }
    Ok(rest)
}
