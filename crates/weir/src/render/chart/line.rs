//! Lines: a figure over another.

use std::collections::BTreeSet;

use maud::{Markup, html};
use weir_model::units::Bytes;

use super::{
    Chart, Look, Room, Scale, Sign, Spread, legend, mark, paper, px, quantile_name, text_width,
};
use crate::output::figure;

/// A chart of lines.
#[derive(Debug, Clone)]
pub struct LineChart {
    /// For those who cannot see it.
    pub label: String,
    /// What runs to the right, with its unit.
    pub x_title: String,
    /// How it spreads.
    pub x: Spread,
    /// Figures that the horizontal axis reaches even if no line does.
    pub x_reach: Vec<f64>,
    /// What runs up, with its unit.
    pub y_title: String,
    /// How it spreads.
    pub y: Spread,
    /// Figures that the vertical axis reaches even if no line does, so that panels compare.
    pub y_reach: Vec<f64>,
    /// The lines.
    pub series: Vec<Series>,
    /// Vertical marks, such as the sizes of caches.
    pub walls: Vec<Wall>,
    /// Horizontal marks, such as what physics allows.
    pub limits: Vec<Limit>,
}

/// One line.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its look.
    pub look: Look,
    /// Its figures, in the order in which the line joins them.
    pub samples: Vec<Sample>,
    /// The way of the line, where it is known more finely than by the figures; else empty.
    pub outline: Vec<(f64, f64)>,
}

/// One point of a line.
#[derive(Debug, Clone)]
pub struct Sample {
    /// To the right.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Half-width of its confidence interval.
    pub ci95: Option<f64>,
    /// What makes it less than trustworthy.
    pub sign: Option<Sign>,
    /// What is shown on touching it.
    pub tip: String,
}

/// A vertical mark.
#[derive(Debug, Clone)]
pub struct Wall {
    /// Where.
    pub x: f64,
    /// Its name.
    pub name: String,
}

/// A horizontal mark.
#[derive(Debug, Clone)]
pub struct Limit {
    /// Where.
    pub y: f64,
    /// Its name.
    pub name: String,
}

/// Room to the left of the plot, where labels need no more, and to the right of it.
const LEFT: f64 = 54.0;
const RIGHT: f64 = 16.0;
/// The least distance of two ticks of the vertical axis.
const TICKS: f64 = 26.0;

impl Chart for LineChart {
    fn draw(&self, room: Room) -> Markup {
        const PLOT: f64 = 250.0;
        let entries: Vec<_> = (self.series.iter().enumerate())
            .map(|(n, series)| (self.entry(n, series), series.look))
            .filter(|(name, _)| !name.is_empty())
            .collect();
        let samples = || self.series.iter().flat_map(|s| &s.samples);
        let outlines = || self.series.iter().flat_map(|s| &s.outline);
        let reach = self
            .y_reach
            .iter()
            .copied()
            .chain(self.limits.iter().map(|l| l.y));
        // A whisker may make the axis a little longer, and is cut where it is longer than that.
        let highest = |s: &Sample| s.y + s.ci95.unwrap_or(0.0).max(0.0).min(s.y.abs() / 4.0);
        let up = samples()
            .flat_map(|s| [s.y, highest(s)])
            .chain(outlines().map(|p| p.1))
            .chain(reach);
        let up: Vec<f64> = up.collect();
        let y = |bottom, top| Scale::over(self.y, up.iter().copied(), (bottom, top));
        // The plot begins where the longest label ends.
        let labels = y(PLOT, 0.0).ticks(TICKS).into_iter();
        let left = labels.fold(LEFT, |left, (_, label)| left.max(text_width(&label) + 12.0));
        let (legend, legend_height) = legend(room, left, &entries, true);
        let (right, top) = (room.width() - RIGHT, legend_height + 30.0);
        let bottom = top + PLOT;
        let y = y(bottom, top);
        let across = samples()
            .map(|s| s.x)
            .chain(outlines().map(|p| p.0))
            .chain(self.x_reach.iter().copied());
        let x = Scale::over(self.x, across, (left, right));
        let drawing = html! {
            (legend)
            (self.grid(&x, &y, (left, right), (top, bottom)))
            @for wall in self.walls.iter().filter(|wall| x.holds(wall.x)) {
                @let at = x.place(wall.x);
                path class="wall" d={ "M" (px(at)) " " (px(bottom)) "V" (px(top)) } {}
                @if at + 3.0 + text_width(&wall.name) > room.width() {
                    text class="note" x=(px(at - 3.0)) y=(px(top + 10.0)) text-anchor="end" { (wall.name) }
                } @else {
                    text class="note" x=(px(at + 3.0)) y=(px(top + 10.0)) { (wall.name) }
                }
            }
            @for limit in &self.limits {
                @let at = y.place(limit.y);
                path class="limit" d={ "M" (px(left)) " " (px(at)) "H" (px(right)) } {}
                text class="note" x=(px(right)) y=(px(at - 4.0)) text-anchor="end" { (limit.name) }
            }
            @for series in &self.series { (line(series, &x, &y)) }
        };
        paper(room, bottom + 38.0, &self.label, drawing)
    }

    fn table(&self) -> Markup {
        let across = |x: f64| match self.x {
            Spread::Sizes => Bytes(x.max(0.0) as u64).to_string(),
            Spread::Counts => format!("{x:.0}"),
            _ => figure(x),
        };
        let up = |y: f64| match self.y {
            Spread::Tail => quantile_name(y),
            _ => figure(y),
        };
        let intervals = self
            .series
            .iter()
            .flat_map(|s| &s.samples)
            .any(|s| s.ci95.is_some());
        html! {
            thead { tr {
                th { "line" } th { (self.x_title) } th { (self.y_title) }
                @if intervals { th { "± 95 %" } }
                th {}
            } }
            tbody {
                @for series in &self.series { @for sample in &series.samples { tr {
                    td { (series.name) } td { (across(sample.x)) } td { (up(sample.y)) }
                    @if intervals { td { (sample.ci95.map_or(String::new(), figure)) } }
                    td { (sample.sign.map_or("", Sign::glyph)) }
                } } }
            }
        }
    }

    fn signs(&self) -> BTreeSet<Sign> {
        let samples = self.series.iter().flat_map(|s| &s.samples);
        samples.filter_map(|s| s.sign).collect()
    }
}

impl LineChart {
    /// The name of a line in the legend, which says which earlier line it covers.
    fn entry(&self, n: usize, series: &Series) -> String {
        let way = |s: &Series| -> Vec<(f64, f64)> {
            let figures = s.samples.iter().map(|sample| (sample.x, sample.y));
            figures.chain(s.outline.iter().copied()).collect()
        };
        let own = way(series);
        let mut before = self.series.iter().take(n);
        match before.find(|other| !own.is_empty() && way(other) == own) {
            Some(other) => format!("{} (the same as {})", series.name, other.name),
            None => series.name.clone(),
        }
    }

    /// Axes, ticks and titles.
    fn grid(
        &self,
        x: &Scale,
        y: &Scale,
        (left, right): (f64, f64),
        (top, bottom): (f64, f64),
    ) -> Markup {
        let widest = match self.x {
            Spread::Linear | Spread::Signed | Spread::Counts => 34.0,
            Spread::Log | Spread::Sizes | Spread::Tail => 44.0,
        };
        html! {
            @for (value, label) in y.ticks(TICKS) {
                @let at = y.place(value);
                path class="grid" d={ "M" (px(left)) " " (px(at)) "H" (px(right)) } {}
                text class="tick" x=(px(left - 6.0)) y=(px(at + 4.0)) text-anchor="end" { (label) }
            }
            path class="axis" d={ "M" (px(left)) " " (px(bottom)) "H" (px(right)) } {}
            @for (value, label) in x.labels(widest) {
                @let at = x.place(value);
                path class="axis" d={ "M" (px(at)) " " (px(bottom)) "v4" } {}
                // The last label stays on the paper.
                @let inside = at.min(right + RIGHT - text_width(&label) / 2.0);
                text class="tick" x=(px(inside)) y=(px(bottom + 17.0)) text-anchor="middle" { (label) }
            }
            text class="title" x="2" y=(px(top - 13.0)) { (self.y_title) }
            @let half = text_width(&self.x_title) / 2.0;
            text class="title" x=(px((right - half).min((left + right) / 2.0)))
                y=(px(bottom + 34.0)) text-anchor="middle" { (self.x_title) }
        }
    }
}

fn line(series: &Series, x: &Scale, y: &Scale) -> Markup {
    let place = |s: &Sample| (x.place(s.x), y.place(s.y));
    let way: Vec<(f64, f64)> = match series.outline.as_slice() {
        [] => series.samples.iter().map(place).collect(),
        outline => (outline.iter())
            .map(|&(along, up)| (x.place(along), y.place(up)))
            .collect(),
    };
    let class = series.look.class();
    let places: Vec<(f64, f64)> = series.samples.iter().map(place).collect();
    html! {
        g class="series" {
            path class={ "line " (class) } d=(path(&way)) {}
            @for ((sample, shown), (at, up)) in series.samples.iter().zip(apart(&places)).zip(places) {
                @if let Some(half) = sample.ci95 {
                    @let (low, high) = (y.place(sample.y - half), y.place(sample.y + half));
                    @if low - high > 2.0 {
                        path class={ "whisker " (class) } d={ "M" (px(at)) " " (px(low)) "V" (px(high)) } {}
                    }
                }
                @if shown {
                    (mark(at, up, series.look, Some(&sample.tip)))
                } @else {
                    g class="between" { (mark(at, up, series.look, Some(&sample.tip))) }
                }
                @if let Some(sign) = sample.sign {
                    text class="sign" x=(px(at + 4.0)) y=(px(up - 5.0)) { (sign.glyph()) }
                }
            }
        }
    }
}

/// Which marks are drawn. Those of a long line would run into one another and hide it: between two that
/// are drawn the others only tell their figures. The last one is drawn.
fn apart(places: &[(f64, f64)]) -> Vec<bool> {
    const SHORT: usize = 60;
    const GAP: f64 = 24.0;
    let mut last: Option<(f64, f64)> = None;
    let drawn = |(n, &(x, y)): (usize, &(f64, f64))| {
        let far = last.is_none_or(|(was, up)| (x - was).hypot(y - up) >= GAP);
        let draw = places.len() <= SHORT || far || n + 1 == places.len();
        if draw {
            last = Some((x, y));
        }
        draw
    };
    places.iter().enumerate().map(drawn).collect()
}

/// A line through these places; one that stays is not drawn twice.
fn path(way: &[(f64, f64)]) -> String {
    let mut text = String::new();
    let mut last = (String::new(), String::new());
    for &(x, y) in way {
        let next = (px(x), px(y));
        let step = match (text.is_empty(), next.0 == last.0, next.1 == last.1) {
            (true, ..) => format!("M{} {}", next.0, next.1),
            (_, true, true) => continue,
            (_, true, false) => format!("V{}", next.1),
            (_, false, true) => format!("H{}", next.0),
            (_, false, false) => format!("L{} {}", next.0, next.1),
        };
        text.push_str(&step);
        last = next;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_a_long_line_keep_apart_and_those_of_a_short_one_all_stay() {
        let level = |n: u32| -> Vec<(f64, f64)> { (0..n).map(|i| (f64::from(i), 5.0)).collect() };
        assert!(apart(&level(60)).iter().all(|drawn| *drawn));
        let long = apart(&level(400));
        let at: Vec<usize> = (0..400).filter(|i| long[*i]).collect();
        assert_eq!((at[0], at[at.len() - 1]), (0, 399));
        assert!(
            at[..at.len() - 1]
                .windows(2)
                .all(|pair| pair[1] - pair[0] == 24)
        );
        // A step upwards is not lost between two marks.
        let mut step = level(400);
        step[30..].iter_mut().for_each(|place| place.1 = 90.0);
        assert!(apart(&step)[30]);
    }

    #[test]
    fn the_legend_says_which_line_is_hidden_and_long_labels_stay_on_the_paper() {
        let line = |name: &str, y: f64| Series {
            name: name.into(),
            look: Look::solid(0),
            samples: [0.0, 1.4e6]
                .map(|x| Sample {
                    x,
                    y,
                    ci95: None,
                    sign: None,
                    tip: String::new(),
                })
                .to_vec(),
            outline: Vec::new(),
        };
        let chart = LineChart {
            label: String::new(),
            x_title: "work (ns)".into(),
            x: Spread::Linear,
            x_reach: Vec::new(),
            y_title: "commit (ns)".into(),
            y: Spread::Linear,
            y_reach: Vec::new(),
            series: vec![line("one", 2.0), line("other", 2.0), line("third", 1.0)],
            walls: Vec::new(),
            limits: Vec::new(),
        };
        let names: Vec<String> = (chart.series.iter().enumerate())
            .map(|(n, series)| chart.entry(n, series))
            .collect();
        assert_eq!(names, ["one", "other (the same as one)", "third"]);
        for room in [Room::Wide, Room::Narrow] {
            let drawn = chart.draw(room).into_string();
            let ticks = drawn.split("<text class=\"tick\" x=\"").skip(1);
            let end = |text: &str| -> Option<f64> {
                let (at, rest) = text.split_once('"')?;
                let label = rest.split(['>', '<']).nth(1)?;
                Some(at.parse::<f64>().ok()? + text_width(label) / 2.0)
            };
            let ends: Vec<f64> = ticks.map(|text| end(text).unwrap()).collect();
            assert!(drawn.contains(">1400000<") || room == Room::Narrow);
            assert!(ends.iter().all(|end| *end <= room.width()), "{ends:?}");
        }
    }

    #[test]
    fn long_labels_of_the_vertical_axis_stay_on_the_paper() {
        let chart = LineChart {
            label: String::new(),
            x_title: "requests/s".into(),
            x: Spread::Linear,
            x_reach: vec![0.0, 5e5],
            y_title: "99 % within, ns".into(),
            y: Spread::Linear,
            y_reach: vec![2.15e9],
            series: Vec::new(),
            walls: Vec::new(),
            limits: Vec::new(),
        };
        let drawn = chart.draw(Room::Narrow).into_string();
        let ticks = drawn.split("<text class=\"tick\" x=\"").skip(1);
        let starts: Vec<f64> = ticks
            .filter_map(|text| {
                let (at, rest) = text.split_once('"')?;
                let (tag, rest) = rest.split_once('>')?;
                let (label, _) = rest.split_once('<')?;
                tag.contains("\"end\"")
                    .then_some(at.parse::<f64>().ok()? - text_width(label))
            })
            .collect();
        assert!(starts.len() > 2, "{drawn}");
        assert!(starts.iter().all(|start| *start >= 0.0), "{starts:?}");
    }

    #[test]
    fn a_line_that_stays_is_not_drawn_twice() {
        let way = [(1.0, 2.0), (1.0, 2.0), (3.0, 2.0), (3.0, 4.0), (5.0, 6.5)];
        assert_eq!(path(&way), "M1 2H3V4L5 6.5");
        assert_eq!(path(&[]), "");
    }
}
