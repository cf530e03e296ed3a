//! Tenants on the machine: what is refused, where memory lies, what each thread may have in flight.

use weir_model::access::{Op, Pattern};
use weir_model::capability::{Capability, Feature};
use weir_model::machine::MachineError;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, LINE_BYTES};

use crate::core::{Cursor, Limits, Private, Progress, Region, Tagged, Thread, Walk, Window};
use crate::params::Params;
use crate::rng;
use crate::uncore::Kind;

/// Refuses what makes no sense on this machine.
pub fn check(tenants: &[Tenant], topology: &Topology) -> Result<(), MachineError> {
    let request = |text: String| Err(MachineError::Request(text));
    let mut used = vec![None; topology.cores.len()];
    for (i, tenant) in tenants.iter().enumerate() {
        let name = &tenant.name;
        if tenants[..i].iter().any(|t| t.name == *name) {
            return request(format!("two tenants are called `{name}`"));
        }
        if tenant.cores.is_empty() {
            return request(format!("tenant `{name}` has no cores"));
        }
        if tenant.working_set.lines() == 0 {
            return request(format!(
                "tenant `{name}` has a working set of {}, less than one line",
                tenant.working_set
            ));
        }
        for &core in &tenant.cores {
            let Some(owner) = used.get_mut(core as usize) else {
                return request(format!(
                    "tenant `{name}` wants core {core}, but there are {}",
                    topology.cores.len()
                ));
            };
            if let Some(other) = owner.replace(name) {
                return request(format!(
                    "core {core} is wanted by `{other}` and by `{name}`"
                ));
            }
        }
        if tenant.pattern.is_timed() && !timed(tenant.op, tenant.pattern) {
            return request(format!(
                "tenant `{name}`: {} cannot be timed with {}",
                tenant.op,
                tenant.pattern.name()
            ));
        }
        let offloads =
            tenant.op == Op::Dsa || matches!(tenant.pattern, Pattern::Descriptors { .. });
        if tenant.reads.is_some() || offloads || tenant.pattern == Pattern::SharedLine {
            return request(format!("tenant `{name}`: the model has no such load yet"));
        }
        if tenant.placement.tiers().next().is_none() {
            return request(format!("tenant `{name}` is placed on no tier"));
        }
        if let Placement::Interleave(weights) = &tenant.placement
            && weights.iter().all(|(_, w)| *w == 0)
        {
            return request(format!(
                "tenant `{name}` interleaves with weights that are all zero"
            ));
        }
    }
    Ok(())
}

/// Refuses instructions that the platform's processor lacks.
pub fn check_instructions(
    tenants: &[Tenant],
    capabilities: &[Capability],
) -> Result<(), MachineError> {
    let lacks = |feature| {
        capabilities
            .iter()
            .find(|c| c.feature == feature && !c.present)
    };
    match lacks(Feature::Movdir64b) {
        Some(capability) if tenants.iter().any(|t| t.op == Op::Movdir64b) => {
            Err(MachineError::Missing {
                feature: capability.feature,
                reason: capability.detail.clone(),
            })
        }
        _ => Ok(()),
    }
}

/// Whether single accesses of this kind are timed: chases load; flushed lines take any but atomics.
fn timed(op: Op, pattern: Pattern) -> bool {
    match pattern {
        Pattern::Chase { .. } => op == Op::Ld,
        Pattern::FlushedLine => op != Op::Cas,
        _ => false,
    }
}

/// A thread for every core of every tenant, its memory laid out.
pub fn place_threads(
    tenants: &[Tenant],
    params: &Params,
    topology: &Topology,
    seed: u64,
) -> Result<Vec<Thread>, MachineError> {
    let mut used = vec![0u64; params.tiers.len()];
    let mut threads = Vec::new();
    for (i, tenant) in tenants.iter().enumerate() {
        let weights: Vec<(usize, u64)> = match &tenant.placement {
            Placement::Bind(name) => vec![(tier_index(name, topology)?, 1)],
            Placement::Interleave(weights) => weights
                .iter()
                .filter(|(_, w)| *w > 0)
                .map(|(name, w)| Ok((tier_index(name, topology)?, u64::from(*w))))
                .collect::<Result<_, MachineError>>()?,
        };
        let total: u64 = weights.iter().map(|w| w.1).sum();
        for &core in &tenant.cores {
            let number = threads.len() as u64;
            let mut regions = Vec::new();
            for &(tier, weight) in &weights {
                let lines = tenant.working_set.lines();
                let share = u128::from(lines) * u128::from(weight) / u128::from(total);
                let capacity = params.tiers[tier].capacity;
                // Regions lie apart by some pages, as allocations do.
                let gap = 64 * (1 + rng::below(seed ^ tier as u64, number, 512));
                let first = used[tier] + gap;
                if u128::from(first) + share + 64 > u128::from(capacity.lines()) {
                    let all = tenant
                        .working_set
                        .get()
                        .saturating_mul(tenant.cores.len() as u64);
                    return Err(MachineError::NoMemory {
                        tier: topology.tiers[tier].name.clone(),
                        free: capacity,
                        wanted: Bytes(all),
                    });
                }
                regions.push(Region {
                    tier: tier as u8,
                    first,
                    weight,
                });
                used[tier] = first + (share as u64 + 64).next_multiple_of(FRAME_BLOCK_LINES);
            }
            let walk = Walk::new(
                tenant.pattern,
                tenant.working_set,
                regions,
                params.core.page,
                Bytes(params.core.tlb_reach.get() / 4),
                rng::mix(seed ^ (number << 20)),
            );
            let prefetch = tenant.prefetch;
            threads.push(Thread {
                tenant: i as u16,
                core: core as u16,
                op: tenant.op,
                pattern: tenant.pattern,
                limits: limits(params, tenant.op, tenant.pattern, prefetch, prefetch),
                private: private(&walk, tenant.op, params),
                // Far from zero, so that what left the caches before has a number too; a multiple
                // of every working set, so that a walk starts at its beginning.
                window: Window::new(first_index(walk.lines())),
                timed: tenant.pattern.is_timed(),
                unending: walk.run_lines() == u64::MAX,
                walk,
                kinds: kinds(tenant.op),
                cursor: Cursor::default(),
                outstanding: 0,
                write_backs: 0,
                unobserved: 0,
                next_issue: 0,
                asleep: false,
                began: 0,
                progress: Progress {
                    accesses: 0,
                    latency: tenant.pattern.is_timed().then(Box::default),
                },
            });
        }
    }
    Ok(threads)
}

/// Regions are whole blocks of 2 MiB, within which frames are dealt out.
const FRAME_BLOCK_LINES: u64 = (2 << 20) / LINE_BYTES;

fn first_index(lines: u64) -> u64 {
    ((1u64 << 40) / lines) * lines
}

fn tier_index(name: &TierName, topology: &Topology) -> Result<usize, MachineError> {
    topology
        .tiers
        .iter()
        .position(|t| t.name == *name)
        .ok_or_else(|| MachineError::no_such_tier(name, topology))
}

/// What demand, the L1 and the L2 prefetchers of an instruction ask the uncore for.
fn kinds(op: Op) -> [Kind; 3] {
    match op {
        Op::Ld => [Kind::Drd, Kind::DrdL1Pref, Kind::DrdL2Pref],
        Op::NtSt | Op::Movdir64b | Op::Dsa => [Kind::Wcilf; 3],
        Op::St | Op::StClwb | Op::Cas => [Kind::Rfo, Kind::RfoPref, Kind::RfoPref],
    }
}

/// Threads whose lines cannot survive in L2 need no tags.
fn private(walk: &Walk, op: Op, params: &Params) -> Private {
    let config = params.core.private;
    if walk.lines() > 4 * config.l2.0 || op.is_posted() {
        Private::Streaming { delay: config.l2.0 }
    } else {
        Private::Tagged(Box::new(Tagged::new(config)))
    }
}

/// What a thread may have in flight.
pub fn limits(params: &Params, op: Op, pattern: Pattern, l1: bool, l2: bool) -> Limits {
    let c = &params.core;
    let buffers = c.line_fill_buffers;
    let runs = matches!(pattern, Pattern::Sequential)
        || matches!(pattern, Pattern::RandomBlock { block } if block.lines() >= 4);
    let demand_window = match (op, pattern) {
        (Op::Ld, Pattern::RandomLine) => c.random_window,
        (Op::Ld, _) => c.load_window,
        _ => c.store_window,
    }
    .min(Window::MOST);
    if pattern.is_timed() || op == Op::Cas {
        // Dependent, fenced, or locked: one at a time. A write-back may overlap it.
        return Limits {
            outstanding: 2,
            window: 1,
            demand: 1,
            l1_ahead: 0,
            gap: 0,
        };
    }
    let gap = match op {
        Op::Ld => c.load_gap,
        Op::NtSt => 0,
        Op::Movdir64b => c.movdir_gap,
        _ => c.store_gap,
    };
    let alone = Limits {
        outstanding: buffers,
        window: demand_window,
        demand: demand_window,
        l1_ahead: 0,
        gap,
    };
    if op.is_posted() || !runs || !(l1 || l2) {
        return alone;
    }
    // Demand keeps the fill buffers; the prefetchers run ahead of it in the super-queue.
    let demand = u64::from(buffers);
    let l1_ahead = if l1 { u64::from(c.l1_ahead) } else { 0 };
    let l2_ahead = if l2 { u64::from(c.l2_ahead) } else { 0 };
    Limits {
        outstanding: if l2 { c.super_queue } else { buffers },
        window: (demand + l1_ahead + l2_ahead).min(Window::MOST),
        demand,
        l1_ahead,
        gap,
    }
}
