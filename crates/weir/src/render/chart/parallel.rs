//! Lines across axes side by side: one line a thing, one axis a figure or a choice of it.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{Chart, Look, Room, Sign, legend, mark, paper, px, text_width};
use crate::output::figure;

/// A chart of parallel coordinates.
#[derive(Debug, Clone)]
pub struct ParallelChart {
    /// For those who cannot see it.
    pub label: String,
    /// The axes, from the left.
    pub axes: Vec<Vertical>,
    /// The lines; those drawn last are on top.
    pub lines: Vec<Across>,
    /// Names and looks of the kinds of lines.
    pub legend: Vec<(String, Look)>,
    /// What heads the names of lines in the table.
    pub name_title: String,
}

/// One axis.
#[derive(Debug, Clone)]
pub struct Vertical {
    /// Its name, with the unit.
    pub title: String,
    /// Its words from the bottom, where it has no figures.
    pub words: Vec<String>,
}

/// One line.
#[derive(Debug, Clone)]
pub struct Across {
    /// What it is of.
    pub name: String,
    /// Its kind, as the legend has it.
    pub kind: String,
    /// Its look.
    pub look: Look,
    /// Where it crosses each axis: a figure, or the number of a word; nothing where it has none.
    pub at: Vec<Option<f64>>,
}

/// More words than this are not printed along an axis, but for the first and the last.
const MOST_WORDS: usize = 8;

impl Chart for ParallelChart {
    fn draw(&self, room: Room) -> Markup {
        const HEIGHT: f64 = 260.0;
        const SIDE: f64 = 34.0;
        let (legend, legend_height) = legend(room, 2.0, &self.legend, true);
        let top = legend_height + 54.0;
        let bottom = top + HEIGHT;
        let count = self.axes.len();
        let step = (room.width() - 2.0 * SIDE) / (count.max(2) - 1) as f64;
        let x = |axis: usize| SIDE + step * axis as f64;
        let reach: Vec<(f64, f64)> = (0..count).map(|axis| self.reach(axis)).collect();
        let y = |axis: usize, figure: f64| {
            let (low, high) = reach[axis];
            bottom - HEIGHT * (figure - low) / (high - low)
        };
        let at = |axis: usize| (x(axis) + shift(axis, count), anchor(axis, count));
        let drawing = html! {
            (legend)
            @for (axis, own) in self.axes.iter().enumerate() {
                path class="axis" d={ "M" (px(x(axis))) " " (px(top)) "V" (px(bottom)) } {}
                // Titles of neighbours are on two lines, so that each has the room of two axes.
                @let line = if axis % 2 == 0 { 36.0 } else { 20.0 };
                (text("title", &own.title, at(axis), top - line, 2.0 * step - 6.0))
            }
            @for line in &self.lines {
                g class="series" {
                    @let places: Vec<(f64, f64)> = line.at.iter().enumerate()
                        .filter_map(|(axis, at)| Some((x(axis), y(axis, (*at)?)))).collect();
                    @let path: Vec<String> = places.iter().map(|(x, y)| format!("{} {}", px(*x), px(*y))).collect();
                    path class={ "line " (line.look.class()) } d={ "M" (path.join("L")) } {}
                    @if line.look.is_solid() {
                        @for (x, y) in &places { (mark(*x, *y, line.look, Some(&line.name))) }
                    }
                }
            }
            @for (axis, own) in self.axes.iter().enumerate() {
                @for (figure, label) in self.ticks(axis) {
                    // Figures are above and below the axis, words along it.
                    @let off = match (own.words.is_empty(), figure > reach[axis].0) {
                        (false, _) => 4.0,
                        (true, true) => -5.0,
                        (true, false) => 16.0,
                    };
                    (text("tick halo", &label, at(axis), y(axis, figure) + off, step - 4.0))
                }
            }
        };
        paper(room, bottom + 24.0, &self.label, drawing)
    }

    fn table(&self) -> Markup {
        html! {
            thead { tr {
                th { (self.name_title) } th { "kind" }
                @for axis in &self.axes { th { (axis.title) } }
            } }
            tbody {
                @for line in self.lines.iter().rev() { tr {
                    td { (line.name) } td { (line.kind) }
                    @for (axis, at) in line.at.iter().enumerate() {
                        td { (at.map_or(String::new(), |at| self.label_of(axis, at))) }
                    }
                } }
            }
        }
    }

    fn signs(&self) -> BTreeSet<Sign> {
        BTreeSet::new()
    }
}

/// A text of this much room at most.
fn text(class: &str, words: &str, (x, anchor): (f64, &str), y: f64, most: f64) -> Markup {
    let condensed = (text_width(words) > most).then(|| px(most));
    html! {
        text class=(class) x=(px(x)) y=(px(y)) text-anchor=(anchor) textLength=[condensed]
            lengthAdjust="spacingAndGlyphs" { (words) }
    }
}

/// The first axis has its text to its right, the last to its left, so that none leaves the paper.
fn anchor(axis: usize, count: usize) -> &'static str {
    match axis {
        0 => "start",
        axis if axis + 1 == count => "end",
        _ => "middle",
    }
}

fn shift(axis: usize, count: usize) -> f64 {
    match anchor(axis, count) {
        "start" => -30.0,
        "end" => 30.0,
        _ => 0.0,
    }
}

impl ParallelChart {
    /// The figures at the ends of an axis.
    fn reach(&self, axis: usize) -> (f64, f64) {
        let own = &self.axes[axis].words;
        if !own.is_empty() {
            return (-0.5, own.len() as f64 - 0.5);
        }
        let figures = self
            .lines
            .iter()
            .filter_map(|line| line.at.get(axis).copied().flatten());
        let (low, high) = figures
            .filter(|figure| figure.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), figure| {
                (low.min(figure), high.max(figure))
            });
        match low < high {
            true => (low, high),
            false if low.is_finite() => (low - 1.0, low + 1.0),
            false => (0.0, 1.0),
        }
    }

    fn ticks(&self, axis: usize) -> Vec<(f64, String)> {
        let words = &self.axes[axis].words;
        if words.is_empty() {
            let (low, high) = self.reach(axis);
            return vec![(low, figure(low)), (high, figure(high))];
        }
        let shown = |at: usize| words.len() <= MOST_WORDS || at == 0 || at + 1 == words.len();
        let all = words.iter().enumerate().filter(|(at, _)| shown(*at));
        all.map(|(at, word)| (at as f64, word.clone())).collect()
    }

    fn label_of(&self, axis: usize, at: f64) -> String {
        let word = self.axes[axis].words.get(at as usize);
        word.cloned().unwrap_or_else(|| figure(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_crosses_the_axes_between_their_ends() {
        let line = |name: &str, at: [f64; 3]| Across {
            name: name.into(),
            kind: "front".into(),
            look: Look::solid(0),
            at: at.map(Some).to_vec(),
        };
        let axis = |title: &str, words: &[&str]| Vertical {
            title: title.into(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        let chart = ParallelChart {
            label: "designs".into(),
            axes: vec![
                axis("policy", &["dram", "cxl"]),
                axis("speed (x)", &[]),
                axis("watts (W)", &[]),
            ],
            lines: vec![line("a", [0.0, 1.0, 700.0]), line("b", [1.0, 1.5, 900.0])],
            legend: vec![("front".into(), Look::solid(0))],
            name_title: "design".into(),
        };
        for room in [Room::Wide, Room::Narrow] {
            let svg = chart.draw(room).into_string();
            for part in svg.split("data-x=\"").skip(1) {
                let x: f64 = part
                    .split('"')
                    .next()
                    .unwrap_or_default()
                    .parse()
                    .unwrap_or(f64::NAN);
                assert!((0.0..=room.width()).contains(&x), "{x}");
            }
            assert_eq!(svg.matches("class=\"axis\"").count(), 3);
        }
        let table = chart.table().into_string();
        assert!(
            table.contains("<td>cxl</td>") && table.contains("<td>900</td>"),
            "{table}"
        );
    }
}
