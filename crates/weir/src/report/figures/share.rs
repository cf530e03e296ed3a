//! Handing a line over between two cores.

use weir_model::document::{Experiment, Point};

use super::Drawn;
use super::matrix::panel;
use super::words::{cell, distinct};
use crate::report::Section;
use crate::report::chart::{HeatChart, Reach};

/// A matrix of cores for each tier that held the line.
pub fn share(section: &Section) -> Vec<Drawn> {
    let tiers = super::tiers(section).filter_map(|tier| {
        let of_tier = |p: &&Point| p.experiment == Experiment::Share && p.tier == *tier;
        let points: Vec<&Point> = section.document.points.iter().filter(of_tier).collect();
        let name = format!("Hand-over between cores, line on {tier}");
        let label = format!("{name}, {}", section.machine());
        Some(Drawn::new(name, matrix(label, &points)?))
    });
    tiers.collect()
}

fn matrix(label: String, points: &[&Point]) -> Option<HeatChart> {
    let pairs = points.iter().filter_map(|p| match *p.cores.as_slice() {
        [one, other] => Some((one, other, *p)),
        _ => None,
    });
    let pairs: Vec<(u32, u32, &Point)> = pairs.collect();
    let mut cores = distinct(pairs.iter().flat_map(|&(one, other, _)| [one, other]));
    cores.sort_unstable();
    let figures = || pairs.iter().filter_map(|(.., p)| Some(p.ns?.mean.get()));
    let least = figures().fold(f64::INFINITY, f64::min);
    let most = figures().fold(0.0, f64::max);
    // What was measured of a pair is told in both of its places.
    let filled = pairs.iter().flat_map(|&(one, other, p)| {
        let heading = format!("cores {one} and {other}\none way");
        let cell = cell(p, p.ns.map(|ns| ns.mean.get()), "ns", &heading);
        [(one, other, cell.clone()), (other, one, cell)]
    });
    let panel = panel(
        String::new(),
        (&cores, u32::to_string),
        (&cores, u32::to_string),
        filled.collect(),
    );
    (!cores.is_empty()).then(|| HeatChart {
        label,
        title: "one hand-over, mean [ns]".into(),
        row_title: "core".into(),
        column_title: "core".into(),
        reach: Reach::Even(least.min(most), most),
        panels: vec![panel],
    })
}
