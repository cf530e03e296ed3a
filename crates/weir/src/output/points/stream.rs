//! STREAM: threads by kernel, one table for each tier and instruction that stores.

use weir_model::document::{Experiment, Point};

use super::{FIGURES_ABREAST, Grid, bandwidth_cell, distinct, of};
use crate::output::Column;

pub(super) fn kernels(points: &[Point], text: &mut String) {
    let all = || of(points, Experiment::Stream);
    let kernels = distinct(all(), |p| p.kernel.as_deref().unwrap_or_default());
    for (tier, op, prefetch) in distinct(all(), |p| (&p.tier, p.op, p.prefetch)) {
        let of_tier = all().filter(|p| (&p.tier, p.op, p.prefetch) == (tier, op, prefetch));
        let cells = of_tier.filter_map(|p| {
            let kernel = p.kernel.as_deref().unwrap_or_default();
            let column = kernels.iter().position(|known| *known == kernel)?;
            Some((p.threads, column, bandwidth_cell(p)))
        });
        let switched = if prefetch { "" } else { ", prefetchers off" };
        Grid::of(cells).show(
            text,
            &format!("STREAM on {tier} with {op}{switched}: GB/s by threads"),
            FIGURES_ABREAST,
            (&Column::number("threads"), &u32::to_string),
            &|&column| kernels[column].to_owned(),
        );
    }
}
