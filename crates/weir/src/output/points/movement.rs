//! Copies: methods by pairs of tiers.

use weir_model::document::{Experiment, Point};

use super::{FIGURES_ABREAST, Grid, bandwidth_cell, distinct, of};
use crate::output::Column;

pub(super) fn matrix(points: &[Point], text: &mut String) {
    let all = || of(points, Experiment::Movement);
    let methods = distinct(all(), method);
    let pairs = distinct(all(), |p| (p.source.as_ref(), &p.tier));
    for threads in distinct(all(), |p| p.threads) {
        let cells = all().filter(|p| p.threads == threads).filter_map(|p| {
            let row = methods.iter().position(|m| *m == method(p))?;
            let pair = (p.source.as_ref(), &p.tier);
            let column = pairs.iter().position(|known| *known == pair)?;
            Some((row, column, bandwidth_cell(p)))
        });
        let plural = if threads == 1 { "" } else { "s" };
        Grid::of(cells).show(
            text,
            &format!("Copies by {threads} thread{plural}: GB/s moved, by method and tiers"),
            FIGURES_ABREAST,
            (&Column::words("method"), &|&row| methods[row].clone()),
            &|&column| {
                let (source, dest) = pairs[column];
                let source = source.map_or("?", |s| s.as_str());
                format!("{source}\nto {dest}")
            },
        );
    }
}

/// The method, and for an accelerator what it was given.
pub fn method(point: &Point) -> String {
    let name = point.kernel.as_deref().unwrap_or(point.op.name());
    match (point.batch, point.block_bytes) {
        (Some(1), Some(bytes)) => format!("{name} {bytes}"),
        (Some(batch), Some(bytes)) => format!("{name} {batch} x {bytes}"),
        _ => name.to_owned(),
    }
}
