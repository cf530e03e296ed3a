//! Bars made of parts, lying one above the other where they are to be compared.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::lying::{BAR, Frame, Row};
use super::{Chart, Look, Room, Scale, Sign, Spread, px, text_width};
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
    /// Its parts from the left: number in the legend, and length. What is below zero lies to the left
    /// of it.
    pub parts: Vec<(usize, f64)>,
    /// Where the end of the bar may lie; absent where it is known.
    pub interval: Option<[f64; 2]>,
}

impl Stack {
    fn total(&self) -> f64 {
        self.parts.iter().map(|(_, length)| length).sum()
    }

    /// How far it reaches to the left and to the right.
    fn reach(&self) -> [f64; 2] {
        let side = |sign: fn(f64, f64) -> f64| {
            let lengths = self.parts.iter().map(|&(_, length)| sign(length, 0.0));
            lengths.sum::<f64>()
        };
        let [low, high] = self.interval.unwrap_or([0.0, 0.0]);
        [side(f64::min).min(low), side(f64::max).max(high)]
    }
}

impl Chart for StackChart {
    fn draw(&self, room: Room) -> Markup {
        let frame = Frame {
            label: &self.label,
            title: &self.title,
            legend: &self.legend,
            spread: Spread::Signed,
        };
        let mut groups = Vec::new();
        for (heading, bars) in &self.groups {
            let row = |bar| self.row(heading, bar);
            groups.push((heading.as_str(), bars.iter().map(row).collect()));
        }
        frame.draw(room, &groups)
    }

    fn table(&self) -> Markup {
        html! {
            thead { tr { th { "of" } th { "bar" } th { "part" } th { (self.title) } } }
            tbody {
                @for (group, bars) in &self.groups { @for bar in bars {
                    @for (part, length) in &bar.parts { tr {
                        td { (group) } td { (bar.name) } td { (self.part(*part)) } td { (figure(*length)) }
                    } }
                    @if let Some([low, high]) = bar.interval { tr {
                        td { (group) } td { (bar.name) } td { "interval of the whole" }
                        td { (figure(low)) " to " (figure(high)) }
                    } }
                } }
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

    fn row<'a>(&'a self, group: &'a str, bar: &'a Stack) -> Row<'a> {
        Row {
            name: &bar.name,
            reach: bar.reach().to_vec(),
            figure: 0.0,
            draw: Box::new(move |x, y| self.draw_bar(group, bar, x, y)),
        }
    }

    fn draw_bar(&self, group: &str, bar: &Stack, x: &Scale, y: f64) -> Markup {
        let middle = y + BAR / 2.0;
        let mut sides = [0.0, 0.0];
        let mut parts = Vec::new();
        for &(number, length) in &bar.parts {
            let Some((name, look)) = self.legend.get(number) else {
                continue;
            };
            let side = &mut sides[usize::from(length >= 0.0)];
            let (from, to) = (x.place(*side), x.place(*side + length));
            *side += length;
            parts.push(Part {
                from: from.min(to),
                width: (to - from).abs(),
                class: look.class(),
                inside: figure(length),
                tip: format!("{group}, {}: {} {name}", bar.name, figure(length)),
            });
        }
        let whisker = bar.interval.map(|ends| ends.map(|end| x.place(end)));
        let end = x.place(sides[1]).max(whisker.map_or(0.0, |[_, high]| high));
        html! {
            @for part in &parts {
                rect class={ "bar " (part.class) } x=(px(part.from)) y=(px(y)) width=(px(part.width)) height=(BAR)
                    data-x=(px(part.from + part.width)) data-y=(px(middle)) { title { (part.tip) } }
            }
            // A figure stands in its part where there is room for it, left of where the bar may end.
            @for part in &parts {
                @let to = part.from + part.width;
                @let free = whisker.map_or(to, |[low, _]| low.clamp(part.from, to)) - part.from;
                @if free > text_width(&part.inside) + 4.0 {
                    text class="part" x=(px(part.from + free / 2.0)) y=(px(middle + 4.0)) text-anchor="middle" {
                        (part.inside)
                    }
                }
            }
            @if let Some([low, high]) = whisker {
                path class="whisker" d={
                    "M" (px(low)) " " (px(y + 3.0)) "V" (px(y + BAR - 3.0)) "M" (px(low)) " " (px(middle))
                    "H" (px(high)) "M" (px(high)) " " (px(y + 3.0)) "V" (px(y + BAR - 3.0))
                } {}
            }
            text class="tick" x=(px(end + 5.0)) y=(px(middle + 4.0)) { (figure(bar.total())) }
        }
    }
}

/// A part of a bar as it is drawn.
struct Part {
    from: f64,
    width: f64,
    class: String,
    inside: String,
    tip: String,
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
                    interval: None,
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

    #[test]
    fn what_is_below_zero_lies_to_the_left_of_it_and_the_whole_is_the_sum() {
        let bar = Stack {
            name: "measured".into(),
            parts: vec![(0, 40.0), (1, -10.0), (0, 5.0)],
            interval: Some([20.0, 60.0]),
        };
        assert_eq!(bar.reach(), [-10.0, 60.0]);
        assert_eq!(bar.total(), 35.0);
        let chart = StackChart {
            label: "slowdown".into(),
            title: "points".into(),
            legend: vec![
                ("DRAM".into(), Look::solid(0)),
                ("other".into(), Look::solid(1)),
            ],
            groups: vec![("all".into(), vec![bar])],
        };
        let svg = chart.draw(Room::Narrow).into_string();
        assert!(svg.contains(">35.0<"), "{svg}");
        // The part below zero ends at the axis.
        let after = |mark: &str| svg.split(mark).nth(1).unwrap_or_default();
        let axis = after("class=\"axis\" d=\"M").split('V').next();
        let axis = axis.and_then(|d| d.split(' ').next()).unwrap();
        let (below, _) = svg.split_once("-10.0 other").unwrap();
        let ends = below.rsplit("data-x=\"").next().unwrap();
        assert!(ends.starts_with(&format!("{axis}\"")), "{axis}: {svg}");
        assert!(chart.table().into_string().contains("20.0 to 60.0"));
    }
}
