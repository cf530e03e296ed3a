//! Lines: a figure over another.

use maud::{Markup, html};

use super::{CHARACTER, Look, Room, Scale, Spread, legend, mark, paper, px};

/// A chart of lines.
#[derive(Debug, Clone)]
pub struct LineChart {
    /// For those who cannot see it.
    pub label: String,
    /// What runs to the right, with its unit.
    pub x_title: String,
    /// How it spreads.
    pub x: Spread,
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
    /// Its points, from left to right.
    pub samples: Vec<Sample>,
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

impl LineChart {
    /// The chart on paper of the given room.
    pub fn draw(&self, room: Room) -> Markup {
        const LEFT: f64 = 46.0;
        const PLOT: f64 = 250.0;
        let entries: Vec<_> = self
            .series
            .iter()
            .map(|s| (s.name.clone(), s.look))
            .collect();
        let (legend, legend_height) = legend(room, LEFT, &entries, true);
        let (right, top) = (room.width() - 12.0, legend_height + 30.0);
        let bottom = top + PLOT;
        let samples = || self.series.iter().flat_map(|s| &s.samples);
        let x = Scale::over(self.x, samples().map(|s| s.x), (LEFT, right));
        let reach = self
            .y_reach
            .iter()
            .copied()
            .chain(self.limits.iter().map(|l| l.y));
        let y = Scale::over(self.y, samples().map(|s| s.y).chain(reach), (bottom, top));
        let drawing = html! {
            (legend)
            (self.grid(&x, &y, (LEFT, right), (top, bottom)))
            @for wall in &self.walls {
                @let at = x.place(wall.x);
                path class="wall" d={ "M" (px(at)) " " (px(bottom)) "V" (px(top)) } {}
                text class="note" x=(px(at + 3.0)) y=(px(top + 10.0)) { (wall.name) }
            }
            @for limit in &self.limits {
                @let at = y.place(limit.y);
                path class="limit" d={ "M" (LEFT) " " (px(at)) "H" (px(right)) } {}
                text class="note" x=(px(right)) y=(px(at - 4.0)) text-anchor="end" { (limit.name) }
            }
            @for series in &self.series { (line(series, &x, &y)) }
        };
        paper(room, bottom + 38.0, &self.label, drawing)
    }

    fn grid(
        &self,
        x: &Scale,
        y: &Scale,
        (left, right): (f64, f64),
        (top, bottom): (f64, f64),
    ) -> Markup {
        let widest = match self.x {
            Spread::Linear | Spread::Counts => 34.0,
            Spread::Log | Spread::Sizes => 44.0,
        };
        html! {
            @for (value, label) in y.ticks(26.0) {
                @let at = y.place(value);
                path class="grid" d={ "M" (left) " " (px(at)) "H" (px(right)) } {}
                text class="tick" x=(px(left - 6.0)) y=(px(at + 4.0)) text-anchor="end" { (label) }
            }
            path class="axis" d={ "M" (left) " " (px(bottom)) "H" (px(right)) } {}
            @for (value, label) in x.ticks(widest) {
                @let at = x.place(value);
                path class="axis" d={ "M" (px(at)) " " (px(bottom)) "v4" } {}
                text class="tick" x=(px(at)) y=(px(bottom + 17.0)) text-anchor="middle" { (label) }
            }
            text class="title" x="2" y=(px(top - 13.0)) { (self.y_title) }
            @let width = self.x_title.chars().count() as f64 * CHARACTER;
            text class="title" x=(px((right - width / 2.0).min((left + right) / 2.0)))
                y=(px(bottom + 34.0)) text-anchor="middle" { (self.x_title) }
        }
    }
}

fn line(series: &Series, x: &Scale, y: &Scale) -> Markup {
    let place = |s: &Sample| (x.place(s.x), y.place(s.y));
    let path: String = series
        .samples
        .iter()
        .enumerate()
        .map(|(i, sample)| {
            let (x, y) = place(sample);
            format!("{}{} {}", if i == 0 { "M" } else { "L" }, px(x), px(y))
        })
        .collect();
    let class = series.look.class();
    html! {
        g class="series" {
            path class={ "line " (class) } d=(path) {}
            @for sample in &series.samples {
                @let (at, up) = place(sample);
                @if let Some(half) = sample.ci95 {
                    @let (low, high) = (y.place(sample.y - half), y.place(sample.y + half));
                    @if low - high > 2.0 {
                        path class={ "whisker " (class) } d={ "M" (px(at)) " " (px(low)) "V" (px(high)) } {}
                    }
                }
                (mark(at, up, series.look, Some(&sample.tip)))
            }
        }
    }
}
