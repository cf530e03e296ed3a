//! Blocks at random: the best size, where larger is not better.

use std::collections::BTreeMap;

use weir_model::access::Op;
use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use super::{Severity, Verdict};

/// A larger block is worse if it gives less than this share of the best.
const WORSE: f64 = 0.95;

/// The best block for each thread count for which the largest is not as good.
pub(super) fn blocks(points: &[Point], tier: &TierName, op: Op) -> Option<Verdict> {
    let mut by_threads: BTreeMap<u32, Vec<(Bytes, f64)>> = BTreeMap::new();
    for point in points {
        let mine = point.experiment == Experiment::Random && point.tier == *tier && point.op == op;
        if let (true, Some(block), Some(gbps)) = (mine, point.block_bytes, point.gbps) {
            let row = by_threads.entry(point.threads).or_default();
            row.push((block, gbps.get()));
        }
    }
    let mut sweet = Vec::new();
    for (threads, mut row) in by_threads.clone() {
        row.sort_by_key(|figure| figure.0);
        let best = row
            .iter()
            .copied()
            .reduce(|a, b| if b.1 > a.1 { b } else { a });
        if let (Some((block, gbps)), Some(&(largest, last))) = (best, row.last())
            && last < gbps * WORSE
        {
            let plural = if threads == 1 { "" } else { "s" };
            sweet.push(format!(
                "{block} with {threads} thread{plural} ({gbps:.1} GB/s; {last:.1} at {largest})"
            ));
        }
    }
    if by_threads.values().all(|row| row.len() < 2) {
        return None;
    }
    let text = if sweet.is_empty() {
        "larger blocks are never worse".to_owned()
    } else {
        format!("the best block is {}", sweet.join(", "))
    };
    Some(Verdict::new(
        Severity::Note,
        format!("{tier} {op} at random"),
        text,
    ))
}
