//! Bars made of parts, lying one above the other in pairs that are to be compared.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{Chart, Look, Room, Scale, Sign, Spread, legend, paper, px, text_width};
use crate::output::figure;

/// A chart of bars that are made of parts.
#[derive(Debug, Clone)]
pub struct StackChart {
    /// For those who cannot see it.
    pub label: String,
    /// What the length means, with its unit.
    pub title: String,
    /// What the parts are.
    pub legend: Vec<(String, Look)>,
    /// Headings with the bars under them, from the top.
    pub groups: Vec<(String, Vec<Stack>)>,
}

/// One bar.
#[derive(Debug, Clone)]
pub struct Stack {
    /// Its name on the left.
    pub name: String,
    /// Its parts from the left: number in the legend, and length.
    pub parts: Vec<(usize, f64)>,
}

impl Stack {
    fn total(&self) -> f64 {
        self.parts.iter().map(|(_, length)| length).sum()
    }
}

const BAR: f64 = 16.0;
const PITCH: f64 = 19.0;
const HEADING: f64 = 20.0;
const GAP: f64 = 8.0;

impl Chart for StackChart {
    fn draw(&self, room: Room) -> Markup {
        let bars = || self.groups.iter().flat_map(|(_, bars)| bars);
        let longest = bars().map(|b| text_width(&b.name)).fold(0.0, f64::max);
        let left = 10.0 + longest.min(room.width() * 0.35);
        let (legend, legend_height) = legend(room, 2.0, &self.legend, false);
        let top = legend_height + 8.0;
        let right = room.width() - 44.0;
        let x = Scale::over(Spread::Linear, bars().map(Stack::total), (left, right));
        let mut y = top;
        let mut drawn = Vec::new();
        for (name, bars) in &self.groups {
            drawn.push(html! { text class="heading" x="2" y=(px(y + 14.0)) { (name) } });
            y += HEADING;
            for bar in bars {
                drawn.push(self.draw_bar(name, bar, &x, (left, y)));
                y += PITCH;
            }
            y += GAP;
        }
        let bottom = y;
        let drawing = html! {
            (legend)
            @for (value, label) in x.ticks(54.0) {
                @let at = x.place(value);
                path class="grid" d={ "M" (px(at)) " " (px(top)) "V" (px(bottom)) } {}
                text class="tick" x=(px(at)) y=(px(bottom + 15.0)) text-anchor="middle" { (label) }
            }
            path class="axis" d={ "M" (px(left)) " " (px(top)) "V" (px(bottom)) } {}
            @for part in &drawn { (part) }
            @let half = text_width(&self.title) / 2.0;
            text class="title" x=(px(((left + right) / 2.0).max(half))) y=(px(bottom + 32.0)) text-anchor="middle" { (self.title) }
        };
        paper(room, bottom + 38.0, &self.label, drawing)
    }

    fn table(&self) -> Markup {
        html! {
            thead { tr { th { "of" } th { "bar" } th { "part" } th { (self.title) } } }
            tbody {
                @for (group, bars) in &self.groups { @for bar in bars { @for (part, length) in &bar.parts { tr {
                    td { (group) } td { (bar.name) } td { (self.part(*part)) } td { (figure(*length)) }
                } } } }
            }
        }
    }

    fn signs(&self) -> BTreeSet<Sign> {
        BTreeSet::new()
    }
}

impl StackChart {
    /// The name of a part.
    fn part(&self, number: usize) -> &str {
        self.legend.get(number).map_or("", |(name, _)| name)
    }

    fn draw_bar(&self, group: &str, bar: &Stack, x: &Scale, (left, y): (f64, f64)) -> Markup {
        let middle = y + BAR / 2.0;
        let mut sum = 0.0;
        let parts: Vec<(f64, f64, String, String)> = (bar.parts.iter())
            .filter_map(|&(number, length)| {
                let (name, look) = self.legend.get(number)?;
                let from = x.place(sum);
                sum += length;
                let tip = format!("{group}, {}: {} {name}", bar.name, figure(length));
                Some((from, x.place(sum) - from, look.class(), tip))
            })
            .collect();
        html! {
            text class="tick" x=(px(left - 6.0)) y=(px(middle + 4.0)) text-anchor="end" { (bar.name) }
            @for (from, width, class, tip) in &parts {
                rect class={ "bar " (class) } x=(px(*from)) y=(px(y)) width=(px(*width)) height=(BAR)
                    data-x=(px(from + width)) data-y=(px(middle)) { title { (tip) } }
            }
            text class="tick" x=(px(x.place(sum) + 5.0)) y=(px(middle + 4.0)) { (figure(sum)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_behind_each_other_and_their_sum_at_the_end() {
        let chart = StackChart {
            label: "queues".into(),
            title: "requests".into(),
            legend: vec![
                ("dram".into(), Look::solid(0)),
                ("CXL".into(), Look::solid(1)),
            ],
            groups: vec![(
                "ToR".into(),
                vec![Stack {
                    name: "beside".into(),
                    parts: vec![(0, 10.0), (1, 30.0)],
                }],
            )],
        };
        let svg = chart.draw(Room::Wide).into_string();
        let widths: Vec<f64> = svg
            .split("data-x")
            .filter_map(|part| {
                part.rsplit_once(" width=\"")?
                    .1
                    .split('"')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        assert!((widths[1] / widths[0] - 3.0).abs() < 0.01, "{widths:?}");
        assert!(svg.contains(">40<"), "{svg}");
        let table = chart.table().into_string();
        assert!(table.contains("<td>CXL</td><td>30"), "{table}");
    }
}
