//! Idle latency: the staircase, and single accesses.

use std::collections::BTreeMap;

use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use super::{FIGURES_ABREAST, is_chase, titled};
use crate::output::{Column, Table, figure};

/// What `--locality` calls a chase, for heads and legends.
pub fn locality(pattern: &str) -> &str {
    match pattern {
        "chase_tlb_friendly" => "tlb-friendly",
        "chase_random" => "random",
        other => other,
    }
}

pub(super) fn staircase(points: &[Point], text: &mut String) {
    let mut cells: BTreeMap<Bytes, BTreeMap<(usize, &str), String>> = BTreeMap::new();
    let mut tiers: Vec<&TierName> = Vec::new();
    for point in points.iter().filter(|p| is_chase(p)) {
        let at = tiers
            .iter()
            .position(|t| **t == point.tier)
            .unwrap_or_else(|| {
                tiers.push(&point.tier);
                tiers.len() - 1
            });
        let cell = point.ns.map_or("!".into(), |ns| figure(ns.mean.get()));
        cells
            .entry(point.wss_bytes.unwrap_or_default())
            .or_default()
            .insert((at, &point.pattern), cell);
    }
    let mut columns: Vec<(usize, &str)> =
        cells.values().flat_map(|row| row.keys()).copied().collect();
    columns.sort_unstable();
    columns.dedup();
    for abreast in columns.chunks(FIGURES_ABREAST) {
        let mut heads = vec![Column::number("working set")];
        heads.extend(abreast.iter().map(|&(tier, pattern)| {
            Column::number(format!("{}\n{}\nns", tiers[tier], locality(pattern)))
        }));
        let mut table = Table::new(&heads);
        for (size, row) in &cells {
            let name = std::iter::once(size.to_string());
            table.row(
                name.chain(
                    abreast
                        .iter()
                        .map(|key| row.get(key).cloned().unwrap_or_default()),
                ),
            );
        }
        titled(text, "Latency of dependent loads by working set", &table);
    }
}

pub(super) fn single_accesses(points: &[Point], text: &mut String) {
    let title = "Latency of single accesses to a flushed line";
    flushed(points, &|p| p.batch.is_none(), title, text);
    let title = "Accesses to flushed lines at once: a burst's time over its accesses";
    flushed(points, &|p| p.batch.is_some(), title, text);
}

fn flushed(points: &[Point], chosen: &dyn Fn(&Point) -> bool, title: &str, text: &mut String) {
    let mut table = Table::new(&[
        Column::words("tier"),
        Column::words("access"),
        Column::number("mean\nns"),
        Column::number("±95 %\nns"),
        Column::number("p50\nns"),
        Column::number("p99\nns"),
        Column::number("p99.9\nns"),
        Column::number("max\nns"),
    ]);
    let single = |p: &&Point| p.experiment == Experiment::Latency && !is_chase(p) && chosen(p);
    for point in points.iter().filter(single) {
        let mut row = vec![point.tier.to_string(), access(point)];
        match &point.ns {
            Some(ns) => row.extend(
                [
                    Some(ns.mean.get()),
                    point.ci95,
                    Some(ns.p50.get()),
                    ns.p99.map(|q| q.get()),
                    ns.p999.map(|q| q.get()),
                    Some(ns.max.get()),
                ]
                .map(|value| value.map_or("-".into(), figure)),
            ),
            None => row.push("!".into()),
        }
        table.row(row);
    }
    if !table.is_empty() {
        titled(text, title, &table);
    }
}

/// The instruction, and how many of it at once.
pub fn access(point: &Point) -> String {
    match point.batch {
        Some(lines) => format!("{} x {lines}", point.op),
        None => point.op.to_string(),
    }
}
