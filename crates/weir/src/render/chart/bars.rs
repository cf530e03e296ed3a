//! Bars side by side, lying, so that names have room on a phone.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::lying::{BAR, Frame, Row};
use super::{Chart, Look, Room, Scale, Sign, Spread, px, text_width};
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

impl Chart for BarChart {
    fn draw(&self, room: Room) -> Markup {
        let mut bars = self.groups.iter().flat_map(|group| &group.bars);
        let frame = Frame {
            label: &self.label,
            title: &self.title,
            legend: &self.legend,
            spread: match bars.any(|bar| bar.value < 0.0) {
                true => Spread::Signed,
                false => Spread::Linear,
            },
        };
        let mut groups = Vec::new();
        for group in &self.groups {
            groups.push((
                group.name.as_str(),
                group.bars.iter().map(Bar::row).collect(),
            ));
        }
        frame.draw(room, &groups)
    }

    fn table(&self) -> Markup {
        let bars = || self.groups.iter().flat_map(|g| &g.bars);
        let limits = bars().any(|b| b.limit.is_some());
        let reaches = bars().any(|b| b.reach.is_some());
        let named = self.groups.iter().any(|group| !group.name.is_empty());
        let optional = |value: Option<f64>| value.map_or(String::new(), figure);
        html! {
            thead { tr {
                @if named { th { "of" } } th { "bar" } th { (self.title) }
                @if limits { th { "mark" } }
                @if reaches { th { "whisker" } }
                th {}
            } }
            tbody {
                @for group in &self.groups { @for bar in &group.bars { tr {
                    @if named { td { (group.name) } } td { (bar.name) } td { (bar.figure) }
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

impl Bar {
    fn row(&self) -> Row<'_> {
        Row {
            name: &self.name,
            reach: ([Some(self.value), self.limit, self.reach].into_iter())
                .flatten()
                .collect(),
            figure: text_width(&self.words()),
            draw: Box::new(|x, y| self.draw(x, y)),
        }
    }

    fn words(&self) -> String {
        match self.sign {
            Some(sign) => format!("{} {}", self.figure, sign.glyph()),
            None => self.figure.clone(),
        }
    }

    fn draw(&self, x: &Scale, y: f64) -> Markup {
        let (zero, end) = (x.place(0.0), x.place(self.value));
        let words = self.words();
        let middle = y + BAR / 2.0;
        let behind = figure_at(
            zero.max(end)
                .max(self.reach.map_or(end, |reach| x.place(reach) + 2.0)),
            self.limit.map(|limit| x.place(limit)),
            text_width(&words),
        );
        html! {
            rect class={ "bar " (self.look.class()) } x=(px(zero.min(end))) y=(px(y)) width=(px((end - zero).abs().max(1.0))) height=(BAR)
                data-x=(px(end)) data-y=(px(middle)) { title { (self.tip) } }
            @if let Some(reach) = self.reach {
                path class={ "whisker " (self.look.class()) } d={ "M" (px(end)) " " (px(middle)) "H" (px(x.place(reach))) "m0 -4v8" } {}
            }
            @if let Some(limit) = self.limit {
                path class="theory" d={ "M" (px(x.place(limit))) " " (px(y - 2.0)) "v" (BAR + 4.0) } {}
            }
            text class="tick" x=(px(behind)) y=(px(middle + 4.0)) { (words) }
        }
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

    #[test]
    fn a_bar_below_zero_has_its_length() {
        let bar = |value: f64| Bar {
            name: "bar".into(),
            look: Look::solid(0),
            value,
            figure: value.to_string(),
            limit: None,
            reach: None,
            sign: None,
            tip: String::new(),
        };
        let chart = BarChart {
            label: String::new(),
            title: "slowdown [%]".into(),
            legend: Vec::new(),
            groups: vec![Group {
                name: String::new(),
                bars: vec![bar(20.0), bar(-10.0)],
            }],
        };
        let drawn = chart.draw(Room::Wide).into_string();
        let number = |text: &str| text.split('"').next()?.parse::<f64>().ok();
        let bars = drawn.split("<rect class=\"bar").skip(1).map(|rect| {
            let of = |name: &str| number(rect.split_once(name)?.1);
            (of(" x=\"").unwrap(), of(" width=\"").unwrap())
        });
        let bars: Vec<(f64, f64)> = bars.collect();
        let [(zero, up), (low, down)] = bars[..] else {
            panic!("{drawn}");
        };
        assert!(
            (low + down - zero).abs() < 0.2 && (up - 2.0 * down).abs() < 0.2,
            "{bars:?}"
        );
    }
}
