//! Blocks at random: threads by block, one table for each tier and instruction.

use weir_model::document::{Experiment, Point};

use super::{Grid, bandwidth_cell, distinct, of};
use crate::output::Column;

/// Seven blocks, and an eighth that was asked for.
const ABREAST: usize = 8;

pub(super) fn surfaces(points: &[Point], text: &mut String) {
    let all = || of(points, Experiment::Random);
    for (tier, op, prefetch) in distinct(all(), |p| (&p.tier, p.op, p.prefetch)) {
        let surface = all().filter(|p| (&p.tier, p.op, p.prefetch) == (tier, op, prefetch));
        let grid = Grid::of(surface.map(|p| {
            let block = p.block_bytes.unwrap_or_default();
            (p.threads, block, bandwidth_cell(p))
        }));
        let switched = if prefetch { "" } else { ", prefetchers off" };
        grid.show(
            text,
            &format!("Blocks at random on {tier}, {op}{switched}: GB/s by threads and block"),
            ABREAST,
            (&Column::number("threads"), &u32::to_string),
            &|block| block.to_string(),
        );
    }
}
