//! Where a loaded latency bends.

use weir_model::document::{Beside, Experiment, Point};
use weir_model::topology::TierName;

use super::{Severity, Verdict};

/// Latency has bent where it is this many times that of the idle tier.
const BENT: f64 = 2.0;

/// One line for each mix and number of loading threads: idle, where latency doubles, the end.
pub(super) fn curves(points: &[Point], tier: &TierName) -> Vec<Verdict> {
    let of_tier = || {
        points
            .iter()
            .filter(|p| p.experiment == Experiment::Loaded && p.tier == *tier)
    };
    let mut kinds: Vec<(f64, u32)> = Vec::new();
    for kind in of_tier().filter_map(|p| p.beside.as_ref()).map(kind) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let idle = of_tier()
        .find(|p| p.beside.is_none())
        .and_then(|p| p.ns)
        .map(|ns| ns.mean.get());
    kinds
        .into_iter()
        .filter_map(|wanted| {
            let mut curve: Vec<(f64, f64)> = of_tier()
                .filter_map(|p| {
                    let beside = p.beside.as_ref().filter(|b| kind(b) == wanted)?;
                    Some((beside.traffic_gbps?.get(), p.ns?.mean.get()))
                })
                .collect();
            curve.sort_by(|a, b| a.0.total_cmp(&b.0));
            verdict(tier, wanted, idle?, &curve)
        })
        .collect()
}

fn kind(beside: &Beside) -> (f64, u32) {
    (beside.read_share, beside.threads)
}

fn verdict(
    tier: &TierName,
    (read_share, threads): (f64, u32),
    idle: f64,
    curve: &[(f64, f64)],
) -> Option<Verdict> {
    let &(peak, at_peak) = curve.last()?;
    let bends = match crossing(curve, idle * BENT) {
        Some(gbps) => format!(
            "doubles from {idle:.0} ns at {gbps:.1} GB/s, {:.0} % of the {peak:.1} GB/s that were \
             drawn at most",
            gbps / peak * 100.0
        ),
        None => format!("does not double from {idle:.0} ns up to {peak:.1} GB/s"),
    };
    Some(Verdict::new(
        Severity::Note,
        format!("{tier} under load"),
        format!(
            "latency beside {threads} thread{}, {:.0} % reads, {bends}; {at_peak:.0} ns there",
            if threads == 1 { "" } else { "s" },
            read_share * 100.0
        ),
    ))
}

/// Where latency first reaches `level`. Between two points its inverse is taken to fall in a
/// straight line, as in a queue that is near its end.
fn crossing(curve: &[(f64, f64)], level: f64) -> Option<f64> {
    let at = curve.iter().position(|&(_, ns)| ns >= level)?;
    let &(gbps, ns) = curve.get(at)?;
    let Some(&(before, shorter)) = at.checked_sub(1).and_then(|at| curve.get(at)) else {
        return Some(gbps);
    };
    let part = (1.0 / shorter - 1.0 / level) / (1.0 / shorter - 1.0 / ns);
    Some(before + (gbps - before) * part)
}
