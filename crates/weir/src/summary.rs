//! Each tier of a bench in a few figures, for the tour's table and the report's first charts.

use std::collections::BTreeMap;

use weir_lab::latency::LAST_QUICK_STEP;
use weir_model::access::Op;
use weir_model::document::{BenchDocument, Point, Theory};
use weir_model::topology::{Tier, TierName};

/// One tier in short.
#[derive(Debug, Clone)]
pub struct TierSummary {
    /// The tier.
    pub tier: Tier,
    /// The last step of the staircase: latency of memory beyond every cache.
    pub idle: Option<Idle>,
    /// The best bandwidth over all thread counts.
    pub peaks: BTreeMap<Op, Peak>,
}

/// Idle latency of a tier.
#[derive(Debug, Clone)]
pub struct Idle {
    /// Mean, in ns.
    pub ns: f64,
    /// Half-width of its 95 % confidence interval, in ns.
    pub ci95: Option<f64>,
    /// Which chase it is from, and over what working set.
    pub from: String,
    /// The least that physics allows, in ns.
    pub theory: Option<Theory>,
}

/// Peak bandwidth of a tier for one instruction.
#[derive(Debug, Clone)]
pub struct Peak {
    /// In GB/s.
    pub gbps: f64,
    /// Half-width of its 95 % confidence interval, in GB/s.
    pub ci95: Option<f64>,
    /// The thread count that gave it.
    pub threads: u32,
    /// The most that physics allows.
    pub theory: Option<Theory>,
}

/// The tiers of a document that have figures, in the machine's order.
pub fn summarise(document: &BenchDocument) -> Vec<TierSummary> {
    (document.header.topology.tiers.iter())
        .map(|tier| TierSummary {
            tier: tier.clone(),
            idle: idle(document, &tier.name),
            peaks: peaks(&document.points, &tier.name),
        })
        .filter(|summary| summary.idle.is_some() || !summary.peaks.is_empty())
        .collect()
}

/// The largest working set, without page walks where both kinds of chase were run.
fn idle(document: &BenchDocument, tier: &TierName) -> Option<Idle> {
    let steps = document
        .points
        .iter()
        .filter(|p| p.tier == *tier && is_chase(p) && p.ns.is_some());
    let last = steps.max_by_key(|p| (p.pattern == "chase_tlb_friendly", p.wss_bytes))?;
    if !leaves_caches(document, last) {
        return None;
    }
    let size = last.wss_bytes.unwrap_or_default();
    Some(Idle {
        ns: last.ns?.mean.get(),
        ci95: last.ci95,
        from: format!("{} over {size}", last.pattern),
        theory: last.theory.clone(),
    })
}

/// Whether the last step of a staircase is one of memory: a run that was stopped may not have come to one.
pub fn leaves_caches(document: &BenchDocument, last: &Point) -> bool {
    !document.header.partial || last.wss_bytes.is_some_and(|size| size >= LAST_QUICK_STEP)
}

fn peaks(points: &[Point], tier: &TierName) -> BTreeMap<Op, Peak> {
    let mut peaks: BTreeMap<Op, Peak> = BTreeMap::new();
    for point in points {
        let Some(gbps) = point.gbps.map(|g| g.get()) else {
            continue;
        };
        if point.experiment != "bandwidth" || point.tier != *tier {
            continue;
        }
        if peaks.get(&point.op).is_none_or(|best| gbps > best.gbps) {
            let peak = Peak {
                gbps,
                ci95: point.ci95,
                threads: point.threads,
                theory: point.theory.clone(),
            };
            peaks.insert(point.op, peak);
        }
    }
    peaks
}

/// Whether a point is a step of the staircase of dependent loads.
pub fn is_chase(point: &Point) -> bool {
    point.experiment == "latency" && point.pattern.starts_with("chase")
}
