//! Constants of the cores and of the accelerator.

use weir_model::platform::{BandwidthAllocation, Host};
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES};

use crate::clock::{Ps, ps};

/// Constants of the cores.
#[derive(Debug, Clone)]
pub struct CoreParams {
    pub count: u32,
    pub cycle: f64,
    /// Instructions in a cycle while every access hits L1, as a share of those of a Skylake core.
    pub ipc: f64,
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
    /// What walks of the hypervisor's tables add to a walk, besides the line with the entry of the data's page.
    pub nested: Ps,
    /// For how much memory a line of the hypervisor's tables has the entries, in a virtual machine.
    pub host_entries: Option<Bytes>,
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
    /// What each of two threads of the core has. Reorder buffer, load buffer and store buffer are divided between them. Other
    /// buffers and the caches are shared, and each has half where both want all of them (Intel, Optimization Reference
    /// Manual, section 2.9, "Intel Hyper-Threading Technology").
    pub fn halved(&self) -> Self {
        let half = |entries: u32| (entries / 2).max(1);
        let lines = |(lines, ways): (u64, u32)| ((lines / 2).max(u64::from(ways)), ways);
        Self {
            line_fill_buffers: half(self.line_fill_buffers),
            super_queue: half(self.super_queue),
            load_window: (self.load_window / 2).max(1),
            random_window: (self.random_window / 2).max(1),
            store_window: (self.store_window / 2).max(1),
            l1_spares: self.l1_spares / 2,
            private: PrivateConfig {
                l1: lines(self.private.l1),
                l2: lines(self.private.l2),
            },
            tlb_reach: Bytes(self.tlb_reach.get() / 2),
            reorder_buffer: half(self.reorder_buffer),
            scheduler: half(self.scheduler),
            integer_registers: half(self.integer_registers),
            vector_registers: half(self.vector_registers),
            load_buffer: half(self.load_buffer),
            store_buffer: half(self.store_buffer),
            l2_outstanding: half(self.l2_outstanding),
            ..self.clone()
        }
    }

    /// Time between two requests under an allocation of this many percent; 0 if the allocation delays none.
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

/// Pages of a hypervisor's tables, unless it backs the guest with larger ones. An entry of the TLBs covers no more than
/// the smaller of both pages.
const HOST_PAGE: Bytes = Bytes::kib(4);

/// Bytes of an entry of page tables.
const ENTRY: u64 = 8;

/// Consecutive pages of 4 KiB that are consecutive in the guest's memory as well, and so have their entries in one line of the
/// hypervisor's tables. Read from `/proc/PID/pagemap` in a guest: 1.2 in the memory of a Redis server, 1.8 to 4.6 in single
/// mappings of 16 MiB to 1 GiB.
const ADJACENT: u64 = 2;

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

pub(super) fn core_params(host: &Host) -> CoreParams {
    let (c, cycle) = (&host.core, 1.0 / host.core.clock.get());
    let (tlb_page, nested) = nested(host);
    let nt_peak =
        GbPerSec(f64::from(*c.line_fill_buffers) * LINE_BYTES as f64 / c.nt_store_hold.get());
    CoreParams {
        count: *c.count,
        cycle,
        ipc: *c.ipc,
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
        walk: ps(*host.tlb.walk) + nested,
        nested,
        host_entries: (nested > 0).then(|| match *host.tlb.page > HOST_PAGE {
            true => Bytes(HOST_PAGE.get() * LINE_BYTES / ENTRY),
            false => Bytes(HOST_PAGE.get() * ADJACENT),
        }),
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

pub(super) fn accelerator_params(host: &Host) -> Option<AcceleratorParams> {
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
