//! Bandwidth by threads: one table for each tier.

use std::collections::BTreeMap;

use weir_model::access::Op;
use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;

use super::titled;
use crate::output::{Column, Table, figure};

pub(super) fn bandwidths(points: &[Point], text: &mut String) {
    let mut tiers: Vec<&TierName> = Vec::new();
    let bandwidth = |p: &&Point| p.experiment == Experiment::Bandwidth;
    for point in points.iter().filter(bandwidth) {
        if !tiers.contains(&&point.tier) {
            tiers.push(&point.tier);
        }
    }
    for tier in tiers {
        let of_tier: Vec<&Point> = points
            .iter()
            .filter(bandwidth)
            .filter(|p| p.tier == *tier)
            .collect();
        let mut ops: Vec<Op> = of_tier.iter().map(|p| p.op).collect();
        ops.sort_unstable();
        ops.dedup();
        let mut heads = vec![Column::number("threads")];
        heads.extend(ops.iter().map(|op| Column::number(format!("{op}\nGB/s"))));
        let mut table = Table::new(&heads);
        let mut rows: BTreeMap<u32, BTreeMap<Op, String>> = BTreeMap::new();
        for point in &of_tier {
            let beaten = point.theory.as_ref().is_some_and(|t| t.beaten);
            let cell = point.gbps.map_or("!".into(), |gbps| {
                format!("{}{}", figure(gbps.get()), if beaten { "?" } else { "" })
            });
            rows.entry(point.threads)
                .or_default()
                .insert(point.op, cell);
        }
        for (threads, row) in &rows {
            let name = std::iter::once(threads.to_string());
            table.row(
                name.chain(
                    ops.iter()
                        .map(|op| row.get(op).cloned().unwrap_or_default()),
                ),
            );
        }
        let limits: Vec<Option<f64>> = ops.iter().map(|&op| limit(&of_tier, op)).collect();
        if limits.iter().any(Option::is_some) {
            let name = std::iter::once("limit".to_owned());
            table.row(name.chain(limits.into_iter().map(|l| l.map_or(String::new(), figure))));
        }
        titled(text, &format!("Bandwidth of {tier} by threads"), &table);
    }
}

/// What physics allows for an instruction: the loosest bound of its points, which differ where a
/// bound depends on the number of threads.
fn limit(points: &[&Point], op: Op) -> Option<f64> {
    (points.iter().filter(|p| p.op == op))
        .filter_map(|p| p.theory.as_ref().map(|t| t.limit))
        .max_by(f64::total_cmp)
}
