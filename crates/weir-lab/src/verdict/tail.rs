//! Tails: how far the slowest requests lie from the usual ones, and what company does to that.

use weir_model::access::Op;
use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;

use super::{Severity, Verdict};

/// A tail grows if its gap exceeds the one alone by more than this factor.
const GROWN: f64 = 1.5;

/// The gap between p99.9 and p50, alone and in the company that widens it most; and against DRAM's.
pub(super) fn tails(points: &[Point], tier: &TierName) -> Option<Verdict> {
    let of = |tier: &TierName| -> Vec<&Point> {
        (points.iter())
            .filter(|p| p.experiment == Experiment::Tail && p.tier == *tier)
            .collect()
    };
    let own = of(tier);
    let alone = gap(own.iter().find(|p| is_alone(p))?)?;
    let mut text = format!("p99.9 lies {alone:.0} ns above p50 when alone");
    let dram = TierName::dram();
    if *tier != dram
        && let Some(near) = of(&dram).iter().find(|p| is_alone(p)).and_then(|p| gap(p))
        && near > 0.0
    {
        text += &format!(" ({:.1}x that of dram)", alone / near);
    }
    let company = own.iter().filter(|p| !is_alone(p));
    let worst = company
        .filter_map(|p| Some((gap(p)?, *p)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((wide, point)) = worst {
        text += &if wide > alone * GROWN {
            format!(
                ", and {wide:.0} ns beside {}: the tail grows with load",
                beside(point)
            )
        } else {
            format!(
                ", and {wide:.0} ns at the most beside others: the tail does not grow with load"
            )
        };
    }
    Some(Verdict::new(Severity::Note, format!("{tier} tail"), text))
}

fn is_alone(point: &Point) -> bool {
    point.threads == 1 && point.beside.is_none()
}

fn gap(point: &Point) -> Option<f64> {
    let ns = point.ns?;
    Some(ns.p999?.get() - ns.p50.get())
}

fn beside(point: &Point) -> String {
    let (n, what) = match &point.beside {
        None => (point.threads.saturating_sub(1), "chaser"),
        Some(beside) if beside.op == Op::Ld => (beside.threads, "reader"),
        Some(beside) => (beside.threads, "writer"),
    };
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}
