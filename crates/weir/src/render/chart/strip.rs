//! Stretches of time side by side, each as wide as it is long, and stacked of what they lose.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{Chart, Look, Room, Scale, Sign, Spread, legend, paper, px, text_width};
use crate::output::figure;

/// A chart of runs over time, one below the other on one axis of time.
#[derive(Debug, Clone)]
pub struct StripChart {
    /// For those who cannot see it.
    pub label: String,
    /// What runs to the right, with its unit.
    pub x_title: String,
    /// What runs up, with its unit.
    pub y_title: String,
    /// What the parts are.
    pub legend: Vec<(String, Look)>,
    /// The runs from the top.
    pub strips: Vec<Strip>,
}

/// A run.
#[derive(Debug, Clone)]
pub struct Strip {
    /// Its name.
    pub name: String,
    /// Its stretches in order.
    pub stretches: Vec<Stretch>,
}

/// A stretch of a run.
#[derive(Debug, Clone)]
pub struct Stretch {
    /// Its name.
    pub name: String,
    /// How long it is.
    pub length: f64,
    /// What it loses, from below: number in the legend, and height. What is below zero is not drawn.
    pub parts: Vec<(usize, f64)>,
}

impl Stretch {
    fn height(&self) -> f64 {
        self.parts.iter().map(|(_, height)| height.max(0.0)).sum()
    }
}

const LEFT: f64 = 54.0;
const PLOT: f64 = 130.0;
const HEADING: f64 = 44.0;
const ROW: f64 = 16.0;
const GAP: f64 = 14.0;

impl Chart for StripChart {
    fn draw(&self, room: Room) -> Markup {
        let (legend, legend_height) = legend(room, 2.0, &self.legend, false);
        let right = room.width() - 16.0;
        let lengths = (self.strips.iter())
            .map(|strip| strip.stretches.iter().map(|s| s.length.max(0.0)).sum());
        let x = Scale::over(Spread::Linear, lengths, (LEFT, right));
        // Numbers stand for names where one of them has not the room.
        let fits = |s: &Stretch| x.place(s.length) - LEFT > text_width(&s.name) + 4.0;
        let named = self.strips.iter().flat_map(|s| &s.stretches).all(fits);
        let heights = || {
            (self.strips.iter())
                .flat_map(|s| &s.stretches)
                .map(Stretch::height)
        };
        let top = legend_height + 22.0;
        let mut y = top;
        let mut drawn = Vec::new();
        for (place, strip) in self.strips.iter().enumerate() {
            y += if place == 0 { 0.0 } else { GAP };
            let (upper, lower) = (y + HEADING, y + HEADING + PLOT);
            let scale = Scale::over(Spread::Linear, heights(), (lower, upper));
            drawn.push(html! {
                text class="heading" x="2" y=(px(y + 14.0)) { (strip.name) }
                (self.draw_strip(strip, &x, &scale, named))
            });
            y = lower;
        }
        let mut bottom = y + 38.0;
        let keys = if named { Vec::new() } else { self.keys(room) };
        let rows: Vec<(f64, &String)> = (keys.iter())
            .map(|key| {
                bottom += ROW;
                (bottom - 6.0, key)
            })
            .collect();
        let drawing = html! {
            (legend)
            text class="title" x="2" y=(px(top - 4.0)) { (self.y_title) }
            @for part in &drawn { (part) }
            @for (value, label) in x.labels(38.0) {
                @let at = x.place(value);
                path class="axis" d={ "M" (px(at)) " " (px(y)) "v4" } {}
                text class="tick" x=(px(at)) y=(px(y + 17.0)) text-anchor="middle" { (label) }
            }
            @let half = text_width(&self.x_title) / 2.0;
            text class="title" x=(px((right - half).min((LEFT + right) / 2.0))) y=(px(y + 34.0)) text-anchor="middle" { (self.x_title) }
            @for (at, key) in &rows { text class="note" x="2" y=(px(*at)) { (key) } }
        };
        paper(room, bottom + 4.0, &self.label, drawing)
    }

    fn table(&self) -> Markup {
        html! {
            thead { tr { th { "run" } th { "stretch" } th { "length" } th { "part" } th { (self.y_title) } } }
            tbody {
                @for strip in &self.strips { @for stretch in &strip.stretches { @for (part, height) in &stretch.parts { tr {
                    td { (strip.name) } td { (stretch.name) } td { (figure(stretch.length)) }
                    td { (self.legend.get(*part).map_or("", |(name, _)| name)) } td { (figure(*height)) }
                } } } }
            }
        }
    }

    fn signs(&self) -> BTreeSet<Sign> {
        BTreeSet::new()
    }
}

impl StripChart {
    fn draw_strip(&self, strip: &Strip, x: &Scale, y: &Scale, named: bool) -> Markup {
        let (floor, mut from) = (y.place(0.0), 0.0);
        let mut drawn = Vec::new();
        for (number, stretch) in strip.stretches.iter().enumerate() {
            let (left, right) = (x.place(from), x.place(from + stretch.length.max(0.0)));
            from += stretch.length.max(0.0);
            let mut sum = 0.0;
            for &(part, height) in &stretch.parts {
                let Some((name, look)) = self.legend.get(part) else {
                    continue;
                };
                let (low, high) = (y.place(sum), y.place(sum + height.max(0.0)));
                sum += height.max(0.0);
                let tip = format!(
                    "{}, {}: {} {name}",
                    strip.name,
                    stretch.name,
                    figure(height)
                );
                drawn.push(html! {
                    rect class={ "bar share " (look.class()) } x=(px(left)) y=(px(high)) width=(px(right - left))
                        height=(px(low - high)) data-x=(px(right)) data-y=(px((low + high) / 2.0)) { title { (tip) } }
                });
            }
            let middle = (left + right) / 2.0;
            let name = if named {
                stretch.name.clone()
            } else {
                (number + 1).to_string()
            };
            let total = figure(sum);
            drawn.push(html! {
                @if right - left > text_width(&name) {
                    text class="note" x=(px(middle)) y=(px(y.place(sum) - 16.0)) text-anchor="middle" { (name) }
                }
                @if right - left > text_width(&total) {
                    text class="tick" x=(px(middle)) y=(px(y.place(sum) - 4.0)) text-anchor="middle" { (total) }
                }
            });
        }
        html! {
            @for (value, label) in y.ticks(30.0) {
                @let at = y.place(value);
                path class="grid" d={ "M" (LEFT) " " (px(at)) "H" (px(x.place(f64::MAX))) } {}
                text class="tick" x=(px(LEFT - 6.0)) y=(px(at + 4.0)) text-anchor="end" { (label) }
            }
            path class="axis" d={ "M" (LEFT) " " (px(floor)) "H" (px(x.place(f64::MAX))) } {}
            @for part in &drawn { (part) }
        }
    }

    /// What the numbers stand for, in as many lines as that takes.
    fn keys(&self, room: Room) -> Vec<String> {
        let most = self.strips.iter().max_by_key(|s| s.stretches.len());
        let mut lines = vec![String::new()];
        for (number, stretch) in most.iter().flat_map(|s| &s.stretches).enumerate() {
            let key = format!("{} {}", number + 1, stretch.name);
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(&key),
                Some(line) if text_width(line) + text_width(&key) + 20.0 < room.width() => {
                    line.push_str(&format!(" · {key}"));
                }
                _ => lines.push(key),
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_as_wide_as_it_is_long_and_narrow_ones_are_numbered() {
        let stretch = |name: &str, length: f64| Stretch {
            name: name.into(),
            length,
            parts: vec![(0, 10.0), (1, 5.0)],
        };
        let mut chart = StripChart {
            label: "phases".into(),
            x_title: "time".into(),
            y_title: "lost".into(),
            legend: vec![
                ("DRAM".into(), Look::solid(0)),
                ("L3".into(), Look::solid(1)),
            ],
            strips: vec![Strip {
                name: "dram".into(),
                stretches: vec![stretch("load", 75.0), stretch("scan", 25.0)],
            }],
        };
        let svg = chart.draw(Room::Wide).into_string();
        let widths: Vec<f64> = (svg.split("<rect class=\"bar share").skip(1))
            .filter_map(|part| {
                part.split(" width=\"")
                    .nth(1)?
                    .split('"')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        assert!((widths[0] / widths[2] - 3.0).abs() < 0.01, "{widths:?}");
        assert!(svg.contains(">scan<") && svg.contains(">15.0<"), "{svg}");
        chart.strips[0]
            .stretches
            .push(stretch("a short last stretch", 2.0));
        let svg = chart.draw(Room::Narrow).into_string();
        assert!(svg.contains("1 load · 2 scan"), "{svg}");
        assert!(svg.contains("3 a short last stretch"), "{svg}");
    }
}
