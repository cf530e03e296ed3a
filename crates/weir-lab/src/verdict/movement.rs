//! Copies: whether to give them to the accelerator, and which loop is best without.

use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;

use super::{ALIKE, Severity, Verdict};

/// For each pair of tiers and one thread, the best loop and the accelerator against it.
pub(super) fn copies(points: &[Point]) -> Vec<Verdict> {
    let such = || {
        points
            .iter()
            .filter(|p| p.experiment == Experiment::Movement && p.threads == 1)
    };
    let mut pairs: Vec<(&TierName, &TierName)> = Vec::new();
    for point in such() {
        let pair = (point.source.as_ref().unwrap_or(&point.tier), &point.tier);
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
        .into_iter()
        .filter_map(|(source, dest)| {
            let of_pair: Vec<&Point> = such()
                .filter(|p| p.source.as_ref().unwrap_or(&p.tier) == source && p.tier == *dest)
                .collect();
            let text = advice(&of_pair)?;
            Some(Verdict::new(
                Severity::Note,
                format!("{source} to {dest}"),
                text,
            ))
        })
        .collect()
}

fn advice(points: &[&Point]) -> Option<String> {
    let best = |offloaded: bool, synchronous: bool| {
        points
            .iter()
            .filter(|p| p.batch.is_some() == offloaded)
            .filter(|p| !synchronous || (p.batch == Some(1) && kernel(p) == "dsa_sync"))
            .filter_map(|p| Some((p.gbps?.get(), *p)))
            .max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let (by_core, fastest_loop) = best(false, false)?;
    let mut text = format!(
        "{} is the fastest loop ({by_core:.1} GB/s)",
        kernel(fastest_loop)
    );
    let Some((offloaded, point)) = best(true, false) else {
        return Some(text);
    };
    let mut how = format!(
        "{offloaded:.1} GB/s, {} in batches of {}",
        kernel(point),
        point.batch.unwrap_or(1)
    );
    if let Some((one, _)) = best(true, true) {
        how += &format!("; {one:.1} GB/s if each page is waited for");
    }
    text += &if offloaded > by_core * (1.0 + ALIKE) {
        let times = offloaded / by_core;
        format!("; the accelerator moves {times:.1}x that ({how}): give pages to it")
    } else {
        format!("; the accelerator gives no more ({how})")
    };
    Some(text)
}

fn kernel(point: &Point) -> &str {
    point.kernel.as_deref().unwrap_or(point.op.name())
}
