//! A figure for each pair: shaded cells with the figures in them.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{Chart, Room, Sign, paper, px, text_width};
use crate::output::figure;

/// Shades that the style sheet knows, from the lowest figure to the highest. They differ in
/// lightness above all, so that any colour vision and grey paper tell them apart.
const SHADES: usize = 9;

/// Matrices of one kind of figure, with one scale for all of their shades.
#[derive(Debug, Clone)]
pub struct HeatChart {
    /// For those who cannot see it.
    pub label: String,
    /// What the figures are, with their unit.
    pub title: String,
    /// What the rows are.
    pub row_title: String,
    /// What the columns are.
    pub column_title: String,
    /// The figures between which shades spread.
    pub reach: (f64, f64),
    /// The matrices.
    pub panels: Vec<Panel>,
}

/// One matrix.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Its name; empty where there is only one.
    pub name: String,
    /// Names of the rows, from the top.
    pub rows: Vec<String>,
    /// Names of the columns, from the left.
    pub columns: Vec<String>,
    /// Row by row; `None` where nothing was measured.
    pub cells: Vec<Vec<Option<Cell>>>,
}

/// One figure of a matrix.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The figure; `None` where it could not be taken.
    pub value: Option<f64>,
    /// Whether it is framed: the best of its column.
    pub best: bool,
    /// What makes it less than trustworthy.
    pub sign: Option<Sign>,
    /// What is shown on touching it.
    pub tip: String,
}

impl Cell {
    /// The figure as it stands in the cell.
    fn words(&self) -> String {
        match (self.value, self.sign) {
            (None, _) => "–".into(),
            (Some(value), None) => figure(value),
            (Some(value), Some(sign)) => format!("{}{}", figure(value), sign.glyph()),
        }
    }
}

/// Height of a row.
const ROW: f64 = 24.0;
/// Height of a panel beyond its rows: the heading above, names and title of the columns below.
const AROUND: f64 = 22.0 + 38.0;
/// Between panels.
const GAP: f64 = 18.0;
/// Height of the scale of shades, and of its title where that has a line of its own.
const KEY: f64 = 22.0;
const KEY_TITLE: f64 = 18.0;

/// Where everything of a chart goes.
struct Plan {
    left: f64,
    cell: f64,
    panel: f64,
    abreast: usize,
}

impl HeatChart {
    fn plan(&self, room: Room) -> Plan {
        let rows = self.panels.iter().flat_map(|p| &p.rows);
        let longest = rows.map(|r| text_width(r)).fold(0.0, f64::max);
        let left = 10.0
            + longest
                .max(text_width(&self.row_title).min(70.0))
                .min(room.width() * 0.35);
        let most = self.panels.iter().map(|p| p.columns.len()).max();
        let columns = most.unwrap_or(0).max(1) as f64;
        let cell = ((room.width() - left - 4.0) / columns).min(52.0);
        let panel = (left + columns * cell).max(text_width(&self.column_title)) + GAP;
        Plan {
            left,
            cell,
            panel,
            abreast: ((room.width() + GAP) / panel).floor().max(1.0) as usize,
        }
    }

    /// The shade of a figure.
    fn shade(&self, value: f64) -> usize {
        let (low, high) = self.reach;
        let share = if high > low {
            (value - low) / (high - low)
        } else {
            1.0
        };
        (share.clamp(0.0, 1.0) * (SHADES - 1) as f64).round() as usize
    }

    fn panel(&self, panel: &Panel, plan: &Plan, (x, y): (f64, f64)) -> Markup {
        let (left, top) = (x + plan.left, y + 22.0);
        let bottom = top + ROW * panel.rows.len() as f64;
        let widest = panel
            .columns
            .iter()
            .map(|c| text_width(c))
            .fold(0.0, f64::max);
        let every = ((widest + 6.0) / plan.cell).ceil().max(1.0) as usize;
        html! {
            text class="note" x=(px(x + 2.0)) y=(px(y + 14.0)) { (self.row_title) }
            text class="heading" x=(px(left.max(x + text_width(&self.row_title) + 8.0))) y=(px(y + 14.0)) { (panel.name) }
            @for (i, (name, row)) in panel.rows.iter().zip(&panel.cells).enumerate() {
                @let at = top + ROW * i as f64;
                text class="tick" x=(px(left - 6.0)) y=(px(at + 16.0)) text-anchor="end" { (name) }
                @for (j, cell) in row.iter().enumerate() {
                    @if let Some(cell) = cell {
                        (self.cell(cell, (left + plan.cell * j as f64, at), plan.cell))
                    }
                }
            }
            @for (j, name) in panel.columns.iter().enumerate().step_by(every) {
                text class="tick" x=(px(left + plan.cell * (j as f64 + 0.5))) y=(px(bottom + 15.0)) text-anchor="middle" { (name) }
            }
            @let middle = left + plan.cell * panel.columns.len() as f64 / 2.0;
            @let least = x + text_width(&self.column_title) / 2.0 + 2.0;
            text class="title" x=(px(middle.max(least))) y=(px(bottom + 31.0)) text-anchor="middle" { (self.column_title) }
        }
    }

    fn cell(&self, cell: &Cell, (x, y): (f64, f64), width: f64) -> Markup {
        let shade = match cell.value {
            Some(value) => format!("h{}", self.shade(value)),
            None => "none".into(),
        };
        let words = cell.words();
        let (middle, centre) = (x + width / 2.0, y + ROW / 2.0);
        let best = if cell.best { " best" } else { "" };
        html! {
            rect class={ "cell " (shade) (best) } x=(px(x + 1.0)) y=(px(y + 1.0)) width=(px((width - 2.0).max(1.0))) height=(px(ROW - 2.0))
                data-x=(px(middle)) data-y=(px(centre)) { title { (cell.tip) } }
            @if text_width(&words) + 4.0 <= width {
                text class={ "in " (shade) } x=(px(middle)) y=(px(centre + 4.0)) text-anchor="middle" { (words) }
            }
        }
    }

    /// The scale of shades, and the height it takes.
    fn key(&self, room: Room, y: f64) -> (Markup, f64) {
        let width = 14.0;
        let (low, high) = (figure(self.reach.0), figure(self.reach.1));
        let left = 6.0 + text_width(&low);
        let right = left + width * SHADES as f64;
        let behind = right + 6.0 + text_width(&high) + 12.0;
        let below = behind + text_width(&self.title) > room.width();
        let key = html! {
            text class="tick" x="2" y=(px(y + 11.0)) { (low) }
            @for shade in 0..SHADES {
                rect class={ "cell h" (shade) } x=(px(left + width * shade as f64)) y=(px(y)) width=(width) height="13" {}
            }
            text class="tick" x=(px(right + 4.0)) y=(px(y + 11.0)) { (high) }
            @if below {
                text class="title" x="2" y=(px(y + 29.0)) { (self.title) }
            } @else {
                text class="title" x=(px(behind)) y=(px(y + 11.0)) { (self.title) }
            }
        };
        (key, if below { KEY + KEY_TITLE } else { KEY })
    }
}

impl Chart for HeatChart {
    fn draw(&self, room: Room) -> Markup {
        let plan = self.plan(room);
        let mut y = 4.0;
        let mut placed = Vec::new();
        for abreast in self.panels.chunks(plan.abreast) {
            for (i, panel) in abreast.iter().enumerate() {
                placed.push((panel, (plan.panel * i as f64, y)));
            }
            let rows = abreast.iter().map(|p| p.rows.len()).max().unwrap_or(0);
            y += AROUND + ROW * rows as f64 + 6.0;
        }
        let (key, key_height) = self.key(room, y + 4.0);
        let drawing = html! {
            @for (panel, at) in placed { (self.panel(panel, &plan, at)) }
            (key)
        };
        paper(room, y + key_height, &self.label, drawing)
    }

    fn table(&self) -> Markup {
        html! {
            @for panel in &self.panels {
                thead { tr {
                    th { (panel.name) " " (self.row_title) " \\ " (self.column_title) ", " (self.title) }
                    @for column in &panel.columns { th { (column) } }
                } }
                tbody { @for (name, row) in panel.rows.iter().zip(&panel.cells) { tr {
                    td { (name) }
                    @for cell in row { td { @if let Some(cell) = cell { (cell.words()) } } }
                } } }
            }
        }
    }

    fn signs(&self) -> BTreeSet<Sign> {
        let rows = self.panels.iter().flat_map(|p| &p.cells);
        rows.flatten().flatten().filter_map(|c| c.sign).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chart(reach: (f64, f64)) -> HeatChart {
        HeatChart {
            label: String::new(),
            title: String::new(),
            row_title: String::new(),
            column_title: String::new(),
            reach,
            panels: Vec::new(),
        }
    }

    proptest! {
        #[test]
        fn a_higher_figure_is_never_shaded_as_a_lower_one(
            low in 0.0f64..100.0,
            more in 0.0f64..1e4,
            (a, b) in (0.0f64..2e4, 0.0f64..2e4),
        ) {
            let chart = chart((low, low + more));
            let (less, greater) = (a.min(b), a.max(b));
            prop_assert!(chart.shade(less) <= chart.shade(greater));
            prop_assert!(chart.shade(greater) < SHADES);
        }
    }
}
