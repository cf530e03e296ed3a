//! Single requests to the far end: one table for each tier.

use weir_model::access::Op;
use weir_model::document::{Experiment, Point};
use weir_model::units::Nanos;

use super::{distinct, of, titled};
use crate::output::{Column, Table, figure};

pub(super) fn tails(points: &[Point], text: &mut String) {
    let all = || of(points, Experiment::Tail);
    for tier in distinct(all(), |p| &p.tier) {
        let mut table = Table::new(&[
            Column::words("beside"),
            Column::number("mean\nns"),
            Column::number("p50\nns"),
            Column::number("p99\nns"),
            Column::number("p99.9\nns"),
            Column::number("p99.99\nns"),
            Column::number("p99.999\nns"),
            Column::number("max\nns"),
        ]);
        for point in all().filter(|p| p.tier == *tier) {
            let mut row = vec![co_runners(point)];
            match &point.ns {
                Some(ns) => row.extend(
                    [
                        Some(ns.mean),
                        Some(ns.p50),
                        ns.p99,
                        ns.p999,
                        ns.p9999,
                        ns.p99999,
                        Some(ns.max),
                    ]
                    .map(|value| value.map_or("-".into(), |ns| figure(ns.get()))),
                ),
                None => row.push("!".into()),
            }
            table.row(row);
        }
        titled(
            text,
            &format!("Latency of single requests to {tier}"),
            &table,
        );
    }
    scores(points, text);
}

/// How far the slow one in a thousand is late, and what company makes of it.
fn scores(points: &[Point], text: &mut String) {
    let mut table = Table::new(&[
        Column::words("tier"),
        Column::number("p50\nns"),
        Column::number("alone\nns"),
        Column::number("chasers\nns"),
        Column::number("readers\nns"),
        Column::number("writers\nns"),
        Column::number("growth"),
        Column::number("score"),
    ]);
    let shown = |gap: Option<Nanos>| gap.map_or("-".into(), |ns| figure(ns.get()));
    for score in weir_lab::tail_scores(points) {
        table.row([
            score.tier.to_string(),
            figure(score.p50_ns.get()),
            figure(score.alone_ns.get()),
            shown(score.chasers_ns),
            shown(score.readers_ns),
            shown(score.writers_ns),
            score
                .growth
                .map_or("-".into(), |growth| format!("{growth:.1}")),
            format!("{:.2}", score.score),
        ]);
    }
    if !table.is_empty() {
        let title = "Tail scores: widest p99.9 - p50, alone and beside others; over p50 alone";
        titled(text, title, &table);
    }
}

/// What ran beside the request that was timed.
pub fn co_runners(point: &Point) -> String {
    let several = |n: u32, what: &str| {
        let plural = if n == 1 { "" } else { "s" };
        format!("{n} {what}{plural}")
    };
    match &point.beside {
        None if point.threads <= 1 => "nothing".into(),
        None => several(point.threads - 1, "chaser"),
        Some(beside) if beside.op == Op::Ld => several(beside.threads, "reader"),
        Some(beside) => several(beside.threads, "writer"),
    }
}
