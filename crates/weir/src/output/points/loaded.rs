//! Loaded latency: one table for each tier and mix, the longest pause first.

use weir_model::document::{Beside, Experiment, Point};

use super::{distinct, of, titled};
use crate::output::{Column, Table, figure};

/// The mix that ran beside, as the command line calls it.
pub fn mix(beside: &Beside) -> String {
    let share = beside.read_share;
    if share >= 1.0 {
        return "reads".into();
    }
    if share <= 0.0 {
        return "nt_writes".into();
    }
    // The smallest whole numbers that give the share.
    let ratio = share / (1.0 - share);
    (1..=1000_u32)
        .map(|writes| ((ratio * f64::from(writes)).round(), writes))
        .find(|&(reads, writes)| (reads / f64::from(writes) / ratio - 1.0).abs() < 1e-9)
        .map_or_else(
            || format!("{:.0} % reads", share * 100.0),
            |(reads, writes)| format!("{reads:.0}:{writes}"),
        )
}

pub(super) fn curves(points: &[Point], text: &mut String) {
    let all = || of(points, Experiment::Loaded);
    let loaded = || all().filter(|p| p.beside.is_some());
    let kind = |p: &Point| p.beside.as_ref().map(|b| (mix(b), b.threads));
    for tier in distinct(all(), |p| &p.tier) {
        let idle = || all().filter(|p| p.beside.is_none() && p.tier == *tier);
        let of_tier = || loaded().filter(|p| p.tier == *tier);
        for (mix, threads) in distinct(of_tier(), kind).into_iter().flatten() {
            let mut table = Table::new(&[
                Column::number("pause\nns"),
                Column::number("traffic\nGB/s"),
                Column::number("mean\nns"),
                Column::number("±95 %\nns"),
                Column::number("p50\nns"),
                Column::number("p99\nns"),
                Column::number("p99.9\nns"),
            ]);
            let curve = of_tier().filter(|p| kind(p) == Some((mix.clone(), threads)));
            for point in idle().chain(curve) {
                table.row(row(point));
            }
            let plural = if threads == 1 { "" } else { "s" };
            titled(
                text,
                &format!("Latency on {tier} beside {threads} thread{plural}, {mix}"),
                &table,
            );
        }
        if of_tier().next().is_none() {
            for point in idle() {
                let ns = point.ns.map_or("!".into(), |ns| figure(ns.mean.get()));
                text.push_str(&format!("\nIdle latency of {tier}: {ns} ns\n"));
            }
        }
    }
}

fn row(point: &Point) -> Vec<String> {
    let pause = point
        .beside
        .as_ref()
        .map_or("idle".into(), |b| figure(b.pause_ns.get()));
    let Some(ns) = &point.ns else {
        return vec![pause, "!".into()];
    };
    let traffic = point
        .beside
        .as_ref()
        .map_or(Some(0.0), |b| b.traffic_gbps.map(|gbps| gbps.get()));
    let figures = [
        traffic,
        Some(ns.mean.get()),
        point.ci95,
        Some(ns.p50.get()),
        ns.p99.map(|q| q.get()),
        ns.p999.map(|q| q.get()),
    ];
    std::iter::once(pause)
        .chain(figures.map(|value| value.map_or("-".into(), figure)))
        .collect()
}
