//! The figures of a bench as tables: one staircase, one table of single accesses, one table of
//! bandwidths for each tier.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use weir_model::access::Op;
use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use super::{Column, Table, figure, wrap};

/// Columns of figures that fit beside the row's name.
const FIGURES_ABREAST: usize = 6;

/// Whether a point is a step of the staircase: a pointer chase over a working set.
pub fn is_chase(point: &Point) -> bool {
    point.experiment == Experiment::Latency && point.pattern.starts_with("chase")
}

/// All tables that these points fill, with the reasons for missing figures under them.
pub fn tables(points: &[Point]) -> String {
    let mut text = String::new();
    staircase(points, &mut text);
    single_accesses(points, &mut text);
    bandwidths(points, &mut text);
    reasons(points, &mut text);
    text
}

fn titled(text: &mut String, title: &str, table: &Table) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&wrap(title, "", "  "));
    let _ = write!(text, "{table}");
}

/// What `--locality` calls a chase, for heads and legends.
pub fn locality(pattern: &str) -> &str {
    match pattern {
        "chase_tlb_friendly" => "tlb-friendly",
        "chase_random" => "random",
        other => other,
    }
}

fn staircase(points: &[Point], text: &mut String) {
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

fn single_accesses(points: &[Point], text: &mut String) {
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
    let single = |p: &&Point| p.experiment == Experiment::Latency && !is_chase(p);
    for point in points.iter().filter(single) {
        let mut row = vec![point.tier.to_string(), point.op.to_string()];
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
        titled(text, "Latency of single accesses to a flushed line", &table);
    }
}

fn bandwidths(points: &[Point], text: &mut String) {
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

/// Why figures are missing or cannot be right, each reason once.
fn reasons(points: &[Point], text: &mut String) {
    let mut failed: Vec<(&str, String, usize)> = Vec::new();
    for point in points {
        let Some(error) = &point.error else { continue };
        match failed.iter_mut().find(|(seen, _, _)| seen == error) {
            Some((_, _, count)) => *count += 1,
            None => failed.push((error, format!("{} on {}", point.op, point.tier), 1)),
        }
    }
    if !failed.is_empty() {
        text.push('\n');
    }
    for (error, what, count) in failed {
        let more = if count > 1 {
            format!(" and {} more", count - 1)
        } else {
            String::new()
        };
        text.push_str(&wrap(&format!("{what}{more}: {error}"), "! ", "  "));
    }
    let beaten = points
        .iter()
        .filter(|p| p.theory.as_ref().is_some_and(|t| t.beaten))
        .count();
    if beaten > 0 {
        text.push_str(&wrap(
            &format!("{beaten} figures beat their limit and cannot be right"),
            "\n? ",
            "  ",
        ));
    }
}
