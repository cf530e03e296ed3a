//! A figure for each pair: shaded cells with the figures in them.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{Chart, Room, Sign, paper, px, text_width};
use crate::output::{figure, percent};

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
    /// How figures become shades.
    pub reach: Reach,
    /// The matrices.
    pub panels: Vec<Panel>,
}

/// How figures become shades.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reach {
    /// Evenly from the lowest figure to the highest.
    Even(f64, f64),
    /// Changes in percent, by their class: losses in one colour, gains in another, none between.
    Signed,
}

/// Shades of changes, from the deepest loss to the highest gain, with the change that each begins or
/// ends at; the one in the middle is for none.
const SIGNED: [(f64, usize); 8] = [
    (-80.0, 0),
    (-40.0, 1),
    (-10.0, 2),
    (-5.0, 3),
    (5.0, 4),
    (10.0, 5),
    (40.0, 6),
    (80.0, 7),
];

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
    /// Where on the page there is more of it.
    pub link: Option<String>,
}

impl Cell {
    /// The figure as it stands in the cell.
    fn words(&self, reach: Reach) -> String {
        let Some(value) = self.value else {
            return "–".into();
        };
        let text = match reach {
            Reach::Even(..) => figure(value),
            Reach::Signed => percent(value),
        };
        let sign = self.sign.map_or("", Sign::glyph);
        format!("{text}{sign}")
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
    /// Lines on which the names of columns stand in turn.
    lines: usize,
}

/// What a second line of names takes.
const LINE: f64 = 13.0;

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
        let names = self.panels.iter().flat_map(|p| &p.columns);
        let widest = names.map(|c| text_width(c)).fold(0.0, f64::max) + 8.0;
        let cells = (self.panels.iter()).flat_map(|panel| panel.cells.iter().flatten().flatten());
        let figures = cells.map(|cell| text_width(&cell.words(self.reach)) + 6.0);
        let wanted = figures.fold(widest, f64::max);
        let cell = ((room.width() - left - 4.0) / columns).min(wanted.clamp(52.0, 80.0));
        let panel = (left + columns * cell).max(text_width(&self.column_title)) + GAP;
        let names = || self.panels.iter().flat_map(|p| &p.columns);
        // Numbers follow from those beside them; words do not.
        let are_words = names().any(|name| name.parse::<f64>().is_err());
        let in_turn = are_words && (cell..2.0 * cell).contains(&(widest - 2.0));
        Plan {
            left,
            cell,
            panel,
            lines: if in_turn { 2 } else { 1 },
            abreast: ((room.width() + GAP) / panel).floor().max(1.0) as usize,
        }
    }

    /// The shade of a figure.
    fn shade(&self, value: f64) -> usize {
        match self.reach {
            Reach::Even(low, high) => {
                let share = if high > low {
                    (value - low) / (high - low)
                } else {
                    1.0
                };
                (share.clamp(0.0, 1.0) * (SHADES - 1) as f64).round() as usize
            }
            // A boundary belongs to the class nearer to none, as in the paper's.
            Reach::Signed => SIGNED
                .iter()
                .find(|(bound, _)| value < *bound || (value == *bound && *bound > 0.0))
                .map_or(SHADES - 1, |(_, shade)| *shade),
        }
    }

    /// The family of shades that the style sheet knows.
    fn family(&self) -> &'static str {
        match self.reach {
            Reach::Even(..) => "h",
            Reach::Signed => "d",
        }
    }

    fn panel(&self, panel: &Panel, plan: &Plan, (x, y): (f64, f64)) -> Markup {
        let (left, top) = (x + plan.left, y + 22.0);
        let bottom = top + ROW * panel.rows.len() as f64;
        let widest = panel
            .columns
            .iter()
            .map(|c| text_width(c))
            .fold(0.0, f64::max);
        let every = match plan.lines {
            1 => ((widest + 6.0) / plan.cell).ceil().max(1.0) as usize,
            _ => 1,
        };
        let right = left + plan.cell * panel.columns.len() as f64;
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
                @let middle = (left + plan.cell * (j as f64 + 0.5)).min(right - text_width(name) / 2.0);
                text class="tick" x=(px(middle)) y=(px(bottom + 15.0 + LINE * (j % plan.lines) as f64)) text-anchor="middle" { (name) }
            }
            @let middle = left + plan.cell * panel.columns.len() as f64 / 2.0;
            @let least = x + text_width(&self.column_title) / 2.0 + 2.0;
            text class="title" x=(px(middle.max(least))) y=(px(bottom + 31.0 + LINE * (plan.lines - 1) as f64)) text-anchor="middle" { (self.column_title) }
        }
    }

    fn cell(&self, cell: &Cell, (x, y): (f64, f64), width: f64) -> Markup {
        let shade = match cell.value {
            Some(value) => format!("{}{}", self.family(), self.shade(value)),
            None => "none".into(),
        };
        let words = cell.words(self.reach);
        let (middle, centre) = (x + width / 2.0, y + ROW / 2.0);
        let best = if cell.best { " best" } else { "" };
        let drawn = html! {
            rect class={ "cell " (shade) (best) } x=(px(x + 1.0)) y=(px(y + 1.0)) width=(px((width - 2.0).max(1.0))) height=(px(ROW - 2.0))
                data-x=(px(middle)) data-y=(px(centre)) { title { (cell.tip) } }
            @if text_width(&words) + 4.0 <= width {
                text class={ "in " (shade) } x=(px(middle)) y=(px(centre + 4.0)) text-anchor="middle" { (words) }
            }
        };
        match &cell.link {
            Some(to) => html! { a href=(to) { (drawn) } },
            None => drawn,
        }
    }

    /// The scale of shades, and the height it takes.
    fn key(&self, room: Room, y: f64) -> (Markup, f64) {
        let width = 14.0;
        let (low, high) = match self.reach {
            Reach::Even(low, high) => (figure(low), figure(high)),
            Reach::Signed => ("below -80".into(), "above 80".into()),
        };
        let left = 6.0 + text_width(&low);
        let right = left + width * SHADES as f64;
        let behind = right + 6.0 + text_width(&high) + 12.0;
        let below = behind + text_width(&self.title) > room.width();
        let key = html! {
            text class="tick" x="2" y=(px(y + 11.0)) { (low) }
            @for shade in 0..SHADES {
                rect class={ "cell " (self.family()) (shade) } x=(px(left + width * shade as f64)) y=(px(y)) width=(width) height="13" {}
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
            y += AROUND + ROW * rows as f64 + LINE * (plan.lines - 1) as f64 + 6.0;
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
                    @for cell in row { td { @if let Some(cell) = cell { (cell.words(self.reach)) } } }
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

    fn chart(reach: Reach) -> HeatChart {
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
            let chart = chart(Reach::Even(low, low + more));
            let (less, greater) = (a.min(b), a.max(b));
            prop_assert!(chart.shade(less) <= chart.shade(greater));
            prop_assert!(chart.shade(greater) < SHADES);
        }
    }

    #[test]
    fn long_figures_stand_in_their_cells() {
        let cell = |value: f64| {
            Some(Cell {
                value: Some(value),
                best: false,
                sign: None,
                tip: String::new(),
                link: None,
            })
        };
        let chart = HeatChart {
            panels: vec![Panel {
                name: String::new(),
                rows: vec!["4 KiB".into()],
                columns: vec!["ext4".into(), "flac".into()],
                cells: vec![vec![cell(1_106_343.0), cell(42_674_872.0)]],
            }],
            ..chart(Reach::Even(1e6, 5e7))
        };
        let drawn = chart.draw(Room::Wide).into_string();
        assert!(
            drawn.contains(">1106343</text>") && drawn.contains(">42674872</text>"),
            "{drawn}"
        );
    }

    #[test]
    fn changes_are_shaded_by_their_class() {
        use weir_model::interplay::ChangeClass;
        let chart = chart(Reach::Signed);
        let shades = [-92.9, -59.7, -20.2, -8.9, -5.0, 0.3, 7.3, 14.8, 60.0, 120.0];
        let shades = shades.map(|change| chart.shade(change));
        assert_eq!(shades, [0, 1, 2, 3, 4, 4, 5, 6, 7, 8]);
        for step in -400..=400 {
            let change = f64::from(step) / 4.0;
            let middle = chart.shade(change) == 4;
            assert_eq!(
                middle,
                ChangeClass::of(change) == ChangeClass::None,
                "{change}"
            );
        }
    }
}
