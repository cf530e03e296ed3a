//! The figures of a bench as tables, one file for each kind of experiment.

mod bandwidth;
mod blocks;
mod latency;
mod loaded;
mod movement;
mod share;
mod stream;
mod tail;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use weir_model::document::{Experiment, Point};

use super::{Column, Table, figure, wrap};

pub use latency::{access, locality};
pub use loaded::mix;
pub use movement::method;
pub use tail::co_runners;

/// Columns of figures that fit beside the row's name.
pub(super) const FIGURES_ABREAST: usize = 6;

/// Whether a point is a step of the staircase: a pointer chase over a working set.
pub fn is_chase(point: &Point) -> bool {
    point.experiment == Experiment::Latency && point.pattern.starts_with("chase")
}

/// All tables that these points fill, with the reasons for missing figures under them.
pub fn tables(points: &[Point]) -> String {
    let mut text = String::new();
    latency::staircase(points, &mut text);
    latency::single_accesses(points, &mut text);
    tail::tails(points, &mut text);
    bandwidth::bandwidths(points, &mut text);
    loaded::curves(points, &mut text);
    blocks::surfaces(points, &mut text);
    stream::kernels(points, &mut text);
    movement::matrix(points, &mut text);
    share::matrix(points, &mut text);
    reasons(points, &mut text);
    text
}

/// The points of an experiment.
fn of(points: &[Point], experiment: Experiment) -> impl Iterator<Item = &Point> {
    points.iter().filter(move |p| p.experiment == experiment)
}

/// The values of a field in the order in which they first occur.
fn distinct<'p, T: PartialEq>(
    points: impl Iterator<Item = &'p Point>,
    field: impl Fn(&'p Point) -> T,
) -> Vec<T> {
    let mut seen = Vec::new();
    for value in points.map(field) {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// The bandwidth of a point, marked where it cannot be right or is missing.
fn bandwidth_cell(point: &Point) -> String {
    let beaten = point.theory.as_ref().is_some_and(|t| t.beaten);
    point.gbps.map_or("!".into(), |gbps| {
        format!("{}{}", figure(gbps.get()), if beaten { "?" } else { "" })
    })
}

/// Rows by columns, in order of their keys.
pub(super) struct Grid<R, C> {
    cells: BTreeMap<R, BTreeMap<C, String>>,
}

impl<R: Ord, C: Ord> Grid<R, C> {
    pub(super) fn of(cells: impl Iterator<Item = (R, C, String)>) -> Self {
        let mut grid: BTreeMap<R, BTreeMap<C, String>> = BTreeMap::new();
        for (row, column, cell) in cells {
            grid.entry(row).or_default().insert(column, cell);
        }
        Self { cells: grid }
    }

    /// As tables of at most `abreast` columns beside the name of the row.
    pub(super) fn show(
        &self,
        text: &mut String,
        title: &str,
        abreast: usize,
        (name_head, name): (&Column, &dyn Fn(&R) -> String),
        head: &dyn Fn(&C) -> String,
    ) {
        let mut columns: Vec<&C> = self.cells.values().flat_map(BTreeMap::keys).collect();
        columns.sort_unstable();
        columns.dedup();
        for part in columns.chunks(abreast) {
            let heads = part.iter().map(|column| Column::number(head(column)));
            let heads: Vec<Column> = std::iter::once(name_head.clone()).chain(heads).collect();
            let mut table = Table::new(&heads);
            for (row, cells) in &self.cells {
                if part.iter().any(|column| cells.contains_key(*column)) {
                    let figures = part
                        .iter()
                        .map(|column| cells.get(*column).cloned().unwrap_or_default());
                    table.row(std::iter::once(name(row)).chain(figures));
                }
            }
            titled(text, title, &table);
        }
    }
}

pub(super) fn titled(text: &mut String, title: &str, table: &Table) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&wrap(title, "", "  "));
    let _ = write!(text, "{table}");
}

/// Why figures are missing or cannot be right, each reason once.
pub(super) fn reasons(points: &[Point], text: &mut String) {
    let mut failed: Vec<(&str, String, usize)> = Vec::new();
    for point in points {
        let Some(error) = &point.error else { continue };
        match failed.iter_mut().find(|(seen, _, _)| seen == error) {
            Some((_, _, count)) => *count += 1,
            None => failed.push((error, format!("{} on {}", point.op, point.tier), 1)),
        }
    }
    if !failed.is_empty() {
        text.push('\n');
    }
    for (error, what, count) in failed {
        let more = if count > 1 {
            format!(" and {} more", count - 1)
        } else {
            String::new()
        };
        text.push_str(&wrap(&format!("{what}{more}: {error}"), "! ", "  "));
    }
    let beaten = points
        .iter()
        .filter(|p| p.theory.as_ref().is_some_and(|t| t.beaten))
        .count();
    if beaten > 0 {
        text.push_str(&wrap(
            &format!("{beaten} figures beat their limit and cannot be right"),
            "\n? ",
            "  ",
        ));
    }
}
