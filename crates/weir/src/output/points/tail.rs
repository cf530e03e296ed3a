//! Single requests to the far end: one table for each tier.

use weir_model::access::Op;
use weir_model::document::{Experiment, Point};

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
            let mut row = vec![company(point)];
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
}

/// What ran beside the request that was timed.
pub fn company(point: &Point) -> String {
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
