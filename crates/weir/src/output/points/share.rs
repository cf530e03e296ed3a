//! Hand-overs of a line: core by core.

use weir_model::document::{Experiment, Point};

use super::{Grid, distinct, of};
use crate::output::{Column, figure};

/// Columns of three digits that fit beside the name of a core.
const ABREAST: usize = 11;

pub(super) fn matrix(points: &[Point], text: &mut String) {
    let all = || of(points, Experiment::Share);
    for tier in distinct(all(), |p| &p.tier) {
        let cells = all().filter(|p| p.tier == *tier).filter_map(|p| {
            let &[one, other] = p.cores.as_slice() else {
                return None;
            };
            let cell = p.ns.map_or("!".into(), |ns| figure(ns.mean.get()));
            Some((one, other, cell))
        });
        Grid::of(cells).show(
            text,
            &format!("Handing a line of {tier} over between two cores: ns one way"),
            ABREAST,
            (&Column::number("core"), &u32::to_string),
            &u32::to_string,
        );
    }
}
