//! Copies between tiers.

use weir_model::document::{Experiment, Point};
use weir_model::topology::TierName;

use super::Drawn;
use super::matrix::panel;
use super::words::{cell, distinct, several};
use crate::output::points::method;
use crate::report::Section;
use crate::report::chart::{HeatChart, Panel, Reach};

/// A matrix of source and destination for each method, one chart for each number of threads. The
/// best method of a pair is framed.
pub fn movement(section: &Section) -> Vec<Drawn> {
    let of_movement = |p: &&Point| p.experiment == Experiment::Movement;
    let points: Vec<&Point> = section.document.points.iter().filter(of_movement).collect();
    let mut counts = distinct(points.iter().map(|p| p.threads));
    counts.sort_unstable();
    let drawn = counts.into_iter().map(|threads| {
        let of_count: Vec<&Point> = (points.iter().copied())
            .filter(|p| p.threads == threads)
            .collect();
        let name = format!("Copies by {}", several(threads, "thread"));
        let label = format!("{name} on {}", section.machine());
        Drawn::new(name, matrix(section, label, &of_count))
    });
    drawn.collect()
}

fn matrix(section: &Section, label: String, points: &[&Point]) -> HeatChart {
    let gbps = |p: &Point| p.gbps.map(|g| g.get());
    let most = points.iter().filter_map(|p| gbps(p)).fold(0.0, f64::max);
    let named: Vec<&TierName> = super::tiers(section).collect();
    let in_use =
        |tier: &&TierName, of: &dyn Fn(&Point) -> &TierName| points.iter().any(|p| of(p) == *tier);
    let sources: Vec<&TierName> = named
        .iter()
        .copied()
        .filter(|t| in_use(t, &source))
        .collect();
    let targets: Vec<&TierName> = named
        .iter()
        .copied()
        .filter(|t| in_use(t, &|p| &p.tier))
        .collect();
    let best = |p: &Point| {
        let pair = points
            .iter()
            .filter(|q| (source(q), &q.tier) == (source(p), &p.tier));
        let best = pair.filter_map(|q| gbps(q)).fold(0.0, f64::max);
        gbps(p).is_some_and(|gbps| gbps >= best)
    };
    let methods = distinct(points.iter().map(|p| method(p)));
    let panels: Vec<Panel> = methods
        .into_iter()
        .map(|name| {
            let of_method = points.iter().filter(|p| method(p) == name);
            let filled = of_method.map(|p| {
                let heading = format!("{name}\n{} to {}", source(p), p.tier);
                let mut cell = cell(p, gbps(p), "GB/s", &heading);
                cell.best = best(p);
                (source(p), &p.tier, cell)
            });
            let filled = filled.collect();
            panel(
                name,
                (&sources, |t| t.to_string()),
                (&targets, |t| t.to_string()),
                filled,
            )
        })
        .collect();
    HeatChart {
        label,
        title: "bytes moved [GB/s], framed: best of the pair".into(),
        row_title: "from".into(),
        column_title: "to".into(),
        reach: Reach::Even(0.0, most),
        panels,
    }
}

/// Where a copy comes from; within a tier if nothing else is said.
fn source(point: &Point) -> &TierName {
    point.source.as_ref().unwrap_or(&point.tier)
}
