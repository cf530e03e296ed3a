//! The staircase, page walks, and stores that are waited for.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::document::{Experiment, Point};
use weir_model::topology::{TierName, Topology};
use weir_model::units::Bytes;

use super::{ALIKE, Severity, Verdict};
use crate::curve::Curve;
use crate::plan::caches_in_reach;

/// A cache shows as a step if latency grows by at least this factor across its size.
const STEP: f64 = 1.2;

/// Mean latency by working set, smallest first.
fn chase(points: &[Point], tier: &TierName, locality: Locality) -> Vec<(Bytes, f64)> {
    let pattern = Pattern::Chase { locality }.name();
    let mut steps: Vec<(Bytes, f64)> = points
        .iter()
        .filter(|p| p.experiment == Experiment::Latency)
        .filter(|p| p.tier == *tier && p.pattern == pattern)
        .filter_map(|p| Some((p.wss_bytes?, p.ns?.mean.get())))
        .collect();
    steps.sort_by_key(|step| step.0);
    steps
}

/// Plateaus at the caches, and whether each cache ends in a step.
pub(super) fn staircase(topology: &Topology, points: &[Point], tier: &TierName) -> Vec<Verdict> {
    let mut steps = chase(points, tier, Locality::TlbFriendly);
    if steps.is_empty() {
        steps = chase(points, tier, Locality::Random);
    }
    let about = format!("{tier} latency");
    let mut plateaus = Vec::new();
    let mut found = Vec::new();
    let mut smaller = Bytes(0);
    for level in &topology.caches {
        // Half a cache fits it for certain; twice a cache does not.
        let inside = steps
            .iter()
            .rfind(|s| s.0.get() <= level.size.get() / 2 && s.0 > smaller);
        let beyond = steps
            .iter()
            .find(|s| s.0.get() >= level.size.get().saturating_mul(2));
        if let Some((_, ns)) = inside {
            plateaus.push(format!("{} {ns:.1} ns", level.name));
        }
        if let (Some((_, inside)), Some((size, beyond))) = (inside, beyond)
            && *beyond < inside * STEP
        {
            found.push(Verdict::new(
                Severity::Doubt,
                &about,
                format!(
                    "no step where {} ends: {inside:.1} ns within its {}, {beyond:.1} ns at {size}",
                    level.name, level.size
                ),
            ));
        }
        smaller = level.size;
    }
    let in_memory = caches_in_reach(topology, 1).get().saturating_mul(2);
    if let Some((size, ns)) = steps.last().filter(|s| s.0.get() >= in_memory) {
        plateaus.push(format!("memory {ns:.1} ns (at {size})"));
    }
    if !plateaus.is_empty() {
        found.insert(0, Verdict::new(Severity::Note, about, plateaus.join(", ")));
    }
    found
}

/// What leaving the reach of the TLB adds.
pub(super) fn page_walks(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let friendly = chase(points, tier, Locality::TlbFriendly);
    let &(size, far) = chase(points, tier, Locality::Random).last()?;
    let &(_, near) = friendly.iter().find(|step| step.0 == size)?;
    (far > near * (1.0 + ALIKE)).then(|| {
        Verdict::new(
            Severity::Note,
            format!("{tier} latency"),
            format!(
                "page walks add {:.0} ns to a random access: {far:.1} ns instead of {near:.1} ns \
                 at {size}",
                far - near
            ),
        )
    })
}

/// The same two where one line is written and waited for.
pub(super) fn flushed_stores(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let mean = |op| {
        let is =
            |p: &&Point| p.tier == *tier && p.op == op && p.pattern == Pattern::FlushedLine.name();
        points
            .iter()
            .find(is)
            .and_then(|p| p.ns)
            .map(|ns| ns.mean.get())
    };
    let (written_back, posted) = (mean(Op::StClwb)?, mean(Op::NtSt)?);
    Some(Verdict::new(
        Severity::Note,
        format!("{tier} latency"),
        format!(
            "a store with clwb takes {:.1}x a fenced non-temporal store ({written_back:.0} / \
             {posted:.0} ns)",
            written_back / posted
        ),
    ))
}
/// Latency and load bandwidth as multiples of local DRAM's.
pub(super) fn against_dram(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let dram = TierName::dram();
    if *tier == dram {
        return None;
    }
    let mut parts = Vec::new();
    for (locality, words) in [
        (Locality::TlbFriendly, "the latency"),
        (Locality::Random, "the latency at random"),
    ] {
        let near = chase(points, &dram, locality);
        let far = chase(points, tier, locality);
        let common = far.iter().rev().find_map(|&(size, ns)| {
            near.iter()
                .find(|step| step.0 == size)
                .map(|step| (step.1, ns))
        });
        if let Some((near, far)) = common {
            parts.push(format!(
                "{:.2}x {words} ({far:.0} / {near:.0} ns)",
                far / near
            ));
        }
    }
    let peak = |tier: &TierName| {
        let curves = [true, false].map(|prefetch| Curve::of(points, tier, Op::Ld, prefetch));
        curves.iter().find_map(Curve::peak)
    };
    if let (Some((_, near)), Some((_, far))) = (peak(&dram), peak(tier)) {
        parts.push(format!(
            "{:.2}x the load bandwidth ({far:.1} / {near:.1} GB/s)",
            far / near
        ));
    }
    let about = format!("{tier} against dram");
    (!parts.is_empty()).then(|| Verdict::new(Severity::Note, about, parts.join(", ")))
}
