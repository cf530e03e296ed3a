//! Described programs: their regions in memory, and a core for each thread.

use std::borrow::Cow;
use std::collections::HashSet;

use weir_model::access::Pattern;
use weir_model::machine::MachineError;
use weir_model::tenant::{Tenant, Work};
use weir_model::workload::Workload;

use super::{FRAME_BLOCK_LINES, TierAllocator, WalkOf, stream_of, thread};
use crate::core::{
    Ahead, CacheCapacity, Ooo, OooParams, Private, Script, Service, Style, Thread, Walk,
};
use crate::params::{CoreParams, Params};
use crate::rng;

impl TierAllocator<'_> {
    /// The threads of a described program, with numbers from `first` on, some on cores that have another thread. They
    /// share the program's regions; lines are numbered through all regions in order.
    pub(super) fn program(
        &mut self,
        tenant: &Tenant,
        i: usize,
        work: &Workload,
        (first, halved): (usize, &HashSet<u32>),
    ) -> Result<Vec<Thread>, MachineError> {
        let params = self.params;
        let work = &*at_pace(work, params.core.ipc);
        let mut memory: Vec<(u64, Walk)> = Vec::new();
        let mut base = PROGRAM_BASE;
        let first_core = tenant.cores.first().copied().unwrap_or(0);
        for (n, (name, size)) in work.memory().into_iter().enumerate() {
            let number = first as u64 | (n as u64) << 32;
            let of = WalkOf {
                region: name,
                pattern: Pattern::Sequential,
                reach: params.core.tlb_reach,
                number,
                chance: rng::mix(self.seed ^ number),
            };
            let walk = self.walk((tenant, i), first_core, size, &of)?;
            memory.push((base, walk));
            // The regions are apart, so that no prefetcher runs from one into the next.
            base += size.lines() + FRAME_BLOCK_LINES;
        }
        // Its caches are those of its first core.
        let of_first = params.core_of(halved.contains(&first_core));
        let shelter = shelter(tenant, params, &of_first);
        let stream = stream_of(tenant);
        let threads = (tenant.cores.iter().zip(0..)).filter_map(|(&core, number)| {
            let script = Script::new(work, number, memory.clone(), shelter, self.seed);
            let walk = memory.first()?.1.clone();
            let ahead = ahead(params, tenant.prefetch, tenant.prefetch);
            let is_halved = halved.contains(&core);
            let constants = params.core_of(is_halved);
            let mut ooo = Ooo::new(ooo_params(&constants), script, ahead);
            if work.requests.is_some() {
                ooo = ooo.without_request();
            }
            let mut thread = Thread {
                style: Style::Work,
                private: Private::Streaming { delay: 0 },
                ooo: Some(Box::new(ooo)),
                ..thread(
                    (tenant, &stream),
                    i,
                    (core, is_halved),
                    walk,
                    Vec::new(),
                    params,
                )
            };
            thread.progress.latency = work.requests.is_some().then(Box::default);
            Some(thread)
        });
        Ok(threads.collect())
    }
}

/// A program whose `cpi` counts cycles of a core with this `ipc`, if it names the core whose cycles its own counts.
fn at_pace(work: &Workload, ipc: f64) -> Cow<'_, Workload> {
    let Some(counted_on) = work.core_ipc.filter(|&own| own != ipc) else {
        return Cow::Borrowed(work);
    };
    let mut work = work.clone();
    for phase in &mut work.phases {
        phase.cpi *= counted_on / ipc;
    }
    Cow::Owned(work)
}

/// The requests of each tenant that answers some; its threads are together.
pub fn services(tenants: &[Tenant], threads: &[Thread], seed: u64) -> Vec<Option<Service>> {
    let of = |(i, tenant): (usize, &Tenant)| match &tenant.work {
        Work::Program(work) => {
            let requests = work.requests.as_ref()?;
            let first = threads.iter().position(|t| usize::from(t.tenant) == i)?;
            Some(Service::new(requests, first, tenant.cores.len(), seed))
        }
        _ => None,
    };
    tenants.iter().enumerate().map(of).collect()
}

/// The number of a program's first line.
const PROGRAM_BASE: u64 = 1 << 20;

/// The figures that decide which lines of a program the caches hold.
fn shelter(tenant: &Tenant, params: &Params, core: &CoreParams) -> CacheCapacity {
    let llc = params.uncore.llc;
    let complexes = u64::from(llc.complexes);
    let ways = match tenant.cache_ways {
        Some(mask) => f64::from(mask.count_ones()) / f64::from(llc.ways),
        None => 1.0,
    };
    CacheCapacity {
        l2: core.private.l2.0 as f64,
        llc: (llc.lines / complexes) as f64 * ways,
        tlb: core.tlb_reach.get() as f64 / core.tlb_page.get() as f64,
        page_bits: params.core.page.lines().max(1).ilog2(),
        tlb_bits: params.core.tlb_page.lines().max(1).ilog2(),
        host_bits: (core.host_entries).map(|memory| memory.lines().max(1).ilog2()),
    }
}

/// How far ahead the prefetchers of a program's core run, with L1 and L2 prefetchers switched separately.
pub fn ahead(params: &Params, l1: bool, l2: bool) -> Ahead {
    let lines = |on, lines: u32| if on { u64::from(lines) } else { 0 };
    Ahead {
        l1: lines(l1, params.core.l1_ahead),
        l2: lines(l2, params.core.l2_ahead),
    }
}

/// The architectural registers, which hold retired values: those of x86-64 with AVX-512.
const INTEGERS: u32 = 16;
const VECTORS: u32 = 32;

/// Constants of a core that runs a program.
pub fn ooo_params(c: &CoreParams) -> OooParams {
    OooParams {
        cycle: c.cycle * 1e3,
        reorder_buffer: f64::from(c.reorder_buffer),
        scheduler: f64::from(c.scheduler),
        integer_renames: f64::from(c.integer_registers.saturating_sub(INTEGERS)),
        vector_renames: f64::from(c.vector_registers.saturating_sub(VECTORS)),
        load_buffer: c.load_buffer,
        store_buffer: c.store_buffer,
        fill_buffers: c.line_fill_buffers,
        spared_buffers: c.l1_spares,
        super_queue: c.super_queue,
        l1_hit: c.l1_hit,
        nested: c.nested,
        l2_hit: c.l2_hit,
        redirect: c.mispredict,
        fault: c.fault,
        training: c.training,
        degree: c.l2_degree,
        streamer_yields: c.l2_outstanding.min(c.super_queue),
        llc_prefetch: c.llc_prefetch,
        private: c.private,
    }
}
