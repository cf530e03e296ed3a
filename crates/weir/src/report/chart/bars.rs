//! Bars side by side, lying, so that names have room on a phone.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{Chart, Look, Room, Scale, Sign, Spread, legend, paper, px, text_width};
use crate::output::figure;

/// A chart of bars in groups.
#[derive(Debug, Clone)]
pub struct BarChart {
    /// For those who cannot see it.
    pub label: String,
    /// What the length means, with its unit.
    pub title: String,
    /// The legend; empty where bars carry their names.
    pub legend: Vec<(String, Look)>,
    /// The groups, from the top.
    pub groups: Vec<Group>,
}

/// Bars that belong together.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its heading.
    pub name: String,
    /// Its bars, from the top.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Its name on the left.
    pub name: String,
    /// Its colour.
    pub look: Look,
    /// Its length.
    pub value: f64,
    /// The printed figure at its end.
    pub figure: String,
    /// The known limit, marked across it.
    pub limit: Option<f64>,
    /// How far single samples reach, as a thin line.
    pub reach: Option<f64>,
    /// What makes it less than trustworthy.
    pub sign: Option<Sign>,
    /// What is shown on touching it.
    pub tip: String,
}

const BAR: f64 = 16.0;
const PITCH: f64 = 21.0;
const HEADING: f64 = 20.0;
const GAP: f64 = 10.0;

impl Chart for BarChart {
    fn draw(&self, room: Room) -> Markup {
        let bars = || self.groups.iter().flat_map(|g| &g.bars);
        let longest = bars().map(|b| text_width(&b.name)).fold(0.0, f64::max);
        let left = 10.0 + longest.min(room.width() * 0.35);
        let (legend, legend_height) = legend(room, 2.0, &self.legend, false);
        let top = legend_height + 8.0;
        let right = room.width() - 44.0;
        let figures = bars()
            .flat_map(|b| [Some(b.value), b.limit, b.reach])
            .flatten();
        let x = Scale::over(Spread::Linear, figures, (left, right));
        let height: f64 = (self.groups.iter())
            .map(|g| HEADING + PITCH * g.bars.len() as f64 + GAP)
            .sum();
        let bottom = top + height;
        let drawing = html! {
            (legend)
            @for (value, label) in x.ticks(54.0) {
                @let at = x.place(value);
                path class="grid" d={ "M" (px(at)) " " (px(top)) "V" (px(bottom)) } {}
                text class="tick" x=(px(at)) y=(px(bottom + 15.0)) text-anchor="middle" { (label) }
            }
            path class="axis" d={ "M" (px(left)) " " (px(top)) "V" (px(bottom)) } {}
            (self.groups(&x, left, top))
            @let half = text_width(&self.title) / 2.0;
            text class="title" x=(px(((left + right) / 2.0).max(half))) y=(px(bottom + 32.0)) text-anchor="middle" { (self.title) }
        };
        paper(room, bottom + 38.0, &self.label, drawing)
    }

    fn table(&self) -> Markup {
        let bars = || self.groups.iter().flat_map(|g| &g.bars);
        let limits = bars().any(|b| b.limit.is_some());
        let reaches = bars().any(|b| b.reach.is_some());
        let optional = |value: Option<f64>| value.map_or(String::new(), figure);
        html! {
            thead { tr {
                th { "of" } th { "bar" } th { (self.title) }
                @if limits { th { "mark" } }
                @if reaches { th { "whisker" } }
                th {}
            } }
            tbody {
                @for group in &self.groups { @for bar in &group.bars { tr {
                    td { (group.name) } td { (bar.name) } td { (bar.figure) }
                    @if limits { td { (optional(bar.limit)) } }
                    @if reaches { td { (optional(bar.reach)) } }
                    td { (bar.sign.map_or("", Sign::glyph)) }
                } } }
            }
        }
    }

    fn signs(&self) -> BTreeSet<Sign> {
        let bars = self.groups.iter().flat_map(|g| &g.bars);
        bars.filter_map(|b| b.sign).collect()
    }
}

impl BarChart {
    fn groups(&self, x: &Scale, left: f64, top: f64) -> Markup {
        let mut y = top;
        let mut drawn = Vec::new();
        for group in &self.groups {
            let heading = y + 14.0;
            y += HEADING;
            let bars: Vec<Markup> = group
                .bars
                .iter()
                .map(|bar| {
                    let at = y;
                    y += PITCH;
                    draw_bar(bar, x, left, at)
                })
                .collect();
            y += GAP;
            drawn.push(html! {
                text class="heading" x="2" y=(px(heading)) { (group.name) }
                @for bar in &bars { (bar) }
            });
        }
        html! { @for group in &drawn { (group) } }
    }
}

fn draw_bar(bar: &Bar, x: &Scale, left: f64, y: f64) -> Markup {
    let end = x.place(bar.value);
    let words = match bar.sign {
        Some(sign) => format!("{} {}", bar.figure, sign.glyph()),
        None => bar.figure.clone(),
    };
    let middle = y + BAR / 2.0;
    let behind = figure_at(
        end.max(bar.reach.map_or(end, |reach| x.place(reach) + 2.0)),
        bar.limit.map(|limit| x.place(limit)),
        text_width(&words),
    );
    html! {
        text class="tick" x=(px(left - 6.0)) y=(px(middle + 4.0)) text-anchor="end" { (bar.name) }
        rect class={ "bar " (bar.look.class()) } x=(px(left)) y=(px(y)) width=(px((end - left).max(1.0))) height=(BAR)
            data-x=(px(end)) data-y=(px(middle)) { title { (bar.tip) } }
        @if let Some(reach) = bar.reach {
            path class={ "whisker " (bar.look.class()) } d={ "M" (px(end)) " " (px(middle)) "H" (px(x.place(reach))) "m0 -4v8" } {}
        }
        @if let Some(limit) = bar.limit {
            path class="theory" d={ "M" (px(x.place(limit))) " " (px(y - 2.0)) "v" (BAR + 4.0) } {}
        }
        text class="tick" x=(px(behind)) y=(px(middle + 4.0)) { (words) }
    }
}

/// Where a bar's figure begins: close to its end, so that it is not read as that of the limit,
/// unless the limit's mark would cross it.
fn figure_at(end: f64, mark: Option<f64>, width: f64) -> f64 {
    let close = end + 5.0;
    match mark {
        Some(mark) if mark > close - 5.0 && mark < close + width + 4.0 => mark + 7.0,
        _ => close,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_stands_at_its_bar_and_clear_of_the_mark() {
        assert_eq!(figure_at(100.0, None, 20.0), 105.0);
        assert_eq!(figure_at(100.0, Some(200.0), 20.0), 105.0);
        assert_eq!(figure_at(100.0, Some(40.0), 20.0), 105.0);
        for mark in [101.0, 110.0, 128.0] {
            assert!(figure_at(100.0, Some(mark), 20.0) > mark, "{mark}");
        }
    }
}
