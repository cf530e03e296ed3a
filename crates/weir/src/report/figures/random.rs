//! Bandwidth surfaces: blocks at random by block size and threads.

use weir_model::access::Op;
use weir_model::document::{Experiment, Point};
use weir_model::units::Bytes;

use super::Drawn;
use super::matrix::{frame_best_of_columns, panel};
use super::words::{cell, distinct, several};
use crate::report::Section;
use crate::report::chart::HeatChart;

/// A surface for each tier and instruction. Those of a tier share their shades.
pub fn random(section: &Section) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    for tier in super::tiers(section) {
        let of_tier = |p: &&Point| p.experiment == Experiment::Random && p.tier == *tier;
        let points: Vec<&Point> = section.document.points.iter().filter(of_tier).collect();
        let most = points
            .iter()
            .filter_map(|p| Some(p.gbps?.get()))
            .fold(0.0, f64::max);
        let kinds = distinct(points.iter().map(|p| (p.op, p.prefetch)));
        let switched = distinct(points.iter().map(|p| p.prefetch)).len() > 1;
        for kind in kinds {
            let of_kind: Vec<&Point> = (points.iter().copied())
                .filter(|p| (p.op, p.prefetch) == kind)
                .collect();
            let what = what(kind, switched);
            let name = format!("Random blocks on {tier}, {what}");
            let label = format!("{name}, on {}", section.machine());
            drawn.push(Drawn::new(name, surface(label, &of_kind, most)));
        }
    }
    drawn
}

fn what((op, prefetch): (Op, bool), switched: bool) -> String {
    match (switched, prefetch) {
        (true, false) => format!("{op}, no prefetch"),
        _ => op.to_string(),
    }
}

fn surface(label: String, points: &[&Point], most: f64) -> HeatChart {
    let block = |p: &Point| p.block_bytes.unwrap_or_default();
    let mut blocks = distinct(points.iter().map(|p| block(p)));
    let mut threads = distinct(points.iter().map(|p| p.threads));
    blocks.sort_unstable();
    threads.sort_unstable();
    let filled = points.iter().map(|p| {
        let by = several(p.threads, "thread");
        let heading = format!("{} on {}\nblocks of {}, {by}", p.op, p.tier, block(p));
        (
            block(p),
            p.threads,
            cell(p, p.gbps.map(|g| g.get()), "GB/s", &heading),
        )
    });
    let mut panel = panel(
        String::new(),
        (&blocks, Bytes::to_string),
        (&threads, u32::to_string),
        filled.collect(),
    );
    frame_best_of_columns(&mut panel);
    HeatChart {
        label,
        title: "bandwidth [GB/s], framed: best block".into(),
        row_title: "block".into(),
        column_title: "threads".into(),
        reach: (0.0, most),
        panels: vec![panel],
    }
}
