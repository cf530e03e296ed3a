//! Bandwidth surfaces: blocks at random by block size and threads.

use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use super::Drawn;
use super::matrix::{frame_best_of_columns, panel};
use super::words::{cell, distinct, several};
use crate::report::Section;
use crate::report::chart::{HeatChart, Panel, Reach};

/// A chart for each tier, a surface for each instruction, all with the same shades.
pub fn random(section: &Section) -> Vec<Drawn> {
    let chart = |tier: &TierName| {
        let of_tier = |p: &&Point| p.experiment == Experiment::Random && p.tier == *tier;
        let points: Vec<&Point> = section.document.points.iter().filter(of_tier).collect();
        let name = format!("Random blocks on {tier}");
        let label = format!("{name}, {}", section.machine());
        (!points.is_empty()).then(|| Drawn::new(name, surfaces(label, &points)))
    };
    super::tiers(section).filter_map(chart).collect()
}

fn surfaces(label: String, points: &[&Point]) -> HeatChart {
    let gbps = points.iter().filter_map(|p| Some(p.gbps?.get()));
    let kinds = distinct(points.iter().map(|p| (p.op, p.prefetch)));
    let panels = kinds.into_iter().map(|(op, prefetch)| {
        let of_kind = points.iter().copied();
        let of_kind: Vec<&Point> = of_kind
            .filter(|p| (p.op, p.prefetch) == (op, prefetch))
            .collect();
        let name = if prefetch {
            op.to_string()
        } else {
            format!("{op}, no prefetch")
        };
        surface(name, &of_kind)
    });
    HeatChart {
        label,
        title: "bandwidth [GB/s], framed: best block".into(),
        row_title: "block".into(),
        column_title: "threads".into(),
        reach: Reach::Even(0.0, gbps.fold(0.0, f64::max)),
        panels: panels.collect(),
    }
}

fn surface(name: String, points: &[&Point]) -> Panel {
    let block = |p: &Point| p.block_bytes.unwrap_or_default();
    let mut blocks = distinct(points.iter().map(|p| block(p)));
    let mut threads = distinct(points.iter().map(|p| p.threads));
    blocks.sort_unstable();
    threads.sort_unstable();
    let filled = points.iter().map(|p| {
        let by = several(p.threads, "thread");
        let heading = format!("{} on {}\nblocks of {}, {by}", p.op, p.tier, block(p));
        let gbps = p.gbps.map(|g| g.get());
        (block(p), p.threads, cell(p, gbps, "GB/s", &heading))
    });
    let mut panel = panel(
        name,
        (&blocks, Bytes::to_string),
        (&threads, u32::to_string),
        filled.collect(),
    );
    frame_best_of_columns(&mut panel);
    panel
}
