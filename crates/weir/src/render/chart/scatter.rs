//! Two figures of the same thing against each other: what lies on the diagonal is equal.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{Chart, Look, Room, Scale, Sign, Spread, legend, mark, paper, px, text_width};
use crate::output::figure;

/// A chart of dots. With bands, both axes have the same unit and reach, and what is equal is on the diagonal.
#[derive(Debug, Clone)]
pub struct ScatterChart {
    /// For those who cannot see it.
    pub label: String,
    /// What runs to the right, with its unit.
    pub x_title: String,
    /// What runs up, with its unit.
    pub y_title: String,
    /// Distances from the diagonal that are marked on both sides of it.
    pub bands: Vec<f64>,
    /// The dots.
    pub clouds: Vec<Cloud>,
}

/// Dots of one look.
#[derive(Debug, Clone)]
pub struct Cloud {
    /// Its name in the legend.
    pub name: String,
    /// Its look.
    pub look: Look,
    /// The dots.
    pub dots: Vec<Dot>,
}

/// One dot.
#[derive(Debug, Clone)]
pub struct Dot {
    /// What it is of.
    pub name: String,
    /// To the right.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Where `y` may lie; absent where nothing is said of it.
    pub interval: Option<[f64; 2]>,
}

/// With more dots than this, each is drawn thin, so that those behind it are seen.
const MANY: usize = 24;

impl Chart for ScatterChart {
    fn draw(&self, room: Room) -> Markup {
        const LEFT: f64 = 54.0;
        const SIDE: f64 = 400.0;
        let entries: Vec<_> = (self.clouds.iter())
            .map(|cloud| (format!("{} ({})", cloud.name, cloud.dots.len()), cloud.look))
            .collect();
        let (legend, legend_height) = legend(room, 2.0, &entries, false);
        let side = (room.width() - LEFT - 16.0).min(SIDE);
        let top = legend_height + 30.0;
        let (right, bottom) = (LEFT + side, top + side);
        let dots = || self.clouds.iter().flat_map(|cloud| &cloud.dots);
        // An interval is cut where dots do not reach: it must not make the others small.
        let reach = || dots().flat_map(|dot| [dot.x, dot.y]);
        let comparable = !self.bands.is_empty();
        let axis = |of: fn(&Dot) -> f64, ends| match comparable {
            true => Scale::over(Spread::Signed, reach(), ends),
            false if dots().all(|dot| of(dot) > 0.0) => {
                Scale::over(Spread::Log, dots().map(of), ends)
            }
            false => Scale::over(Spread::Signed, dots().map(of), ends),
        };
        let x = axis(|dot| dot.x, (LEFT, right));
        let y = axis(|dot| dot.y, (bottom, top));
        let drawing = html! {
            (legend)
            @for (value, label) in y.ticks(30.0) {
                @let at = y.place(value);
                path class="grid" d={ "M" (LEFT) " " (px(at)) "H" (px(right)) } {}
                text class="tick" x=(px(LEFT - 6.0)) y=(px(at + 4.0)) text-anchor="end" { (label) }
            }
            @for (value, label) in x.labels(38.0) {
                @let at = x.place(value);
                path class="grid" d={ "M" (px(at)) " " (px(bottom)) "V" (px(top)) } {}
                text class="tick" x=(px(at)) y=(px(bottom + 17.0)) text-anchor="middle" { (label) }
            }
            path class="axis" d={ "M" (LEFT) " " (px(top)) "V" (px(bottom)) "H" (px(right)) } {}
            text class="title" x="2" y=(px(top - 13.0)) { (self.y_title) }
            @let half = text_width(&self.x_title) / 2.0;
            text class="title" x=(px(((LEFT + right) / 2.0).max(half))) y=(px(bottom + 34.0)) text-anchor="middle" { (self.x_title) }
            @if comparable { (diagonal(&x, &y, 0.0, "limit")) }
            @for band in &self.bands {
                (diagonal(&x, &y, *band, "wall"))
                (diagonal(&x, &y, -band, "wall"))
            }
            @if comparable {
                text class="note" x=(px((LEFT + right) / 2.0)) y=(px(bottom + 51.0)) text-anchor="middle" { (self.key()) }
            }
            @for cloud in &self.clouds { (self.cloud(cloud, &x, &y, dots().count() > MANY)) }
        };
        paper(room, bottom + 58.0, &self.label, drawing)
    }

    fn table(&self) -> Markup {
        let intervals =
            (self.clouds.iter().flat_map(|cloud| &cloud.dots)).any(|dot| dot.interval.is_some());
        html! {
            thead { tr {
                th { "of" } th { "kind" } th { (self.x_title) } th { (self.y_title) }
                @if intervals { th { "from" } th { "to" } }
            } }
            tbody {
                @for cloud in &self.clouds { @for dot in &cloud.dots { tr {
                    td { (dot.name) } td { (cloud.name) } td { (figure(dot.x)) } td { (figure(dot.y)) }
                    @if intervals { @for end in ends(dot) { td { (end) } } }
                } } }
            }
        }
    }

    fn signs(&self) -> BTreeSet<Sign> {
        BTreeSet::new()
    }
}

impl ScatterChart {
    fn cloud(&self, cloud: &Cloud, x: &Scale, y: &Scale, many: bool) -> Markup {
        let thin = if many { " many" } else { "" };
        html! {
            g class={ "series" (thin) } {
                @for dot in &cloud.dots {
                    @if let Some(ends) = dot.interval {
                        @let [low, high] = ends.map(|end| y.place(end));
                        path class={ "whisker " (cloud.look.class()) (thin) }
                            d={ "M" (px(x.place(dot.x))) " " (px(low)) "V" (px(high)) } {}
                    }
                }
                @for dot in &cloud.dots {
                    (mark(x.place(dot.x), y.place(dot.y), cloud.look, Some(&self.tip(dot))))
                }
            }
        }
    }

    /// What the lines are.
    fn key(&self) -> String {
        let bands: Vec<String> = self.bands.iter().map(f64::to_string).collect();
        format!("dashed: equal, dotted: {} off", bands.join(" and "))
    }

    fn tip(&self, dot: &Dot) -> String {
        let [low, high] = ends(dot);
        let mut tip = format!(
            "{}\n{}: {}\n{}: {}",
            dot.name,
            self.x_title,
            figure(dot.x),
            self.y_title,
            figure(dot.y)
        );
        if dot.interval.is_some() {
            tip.push_str(&format!(", {low} to {high}"));
        }
        tip
    }
}

fn ends(dot: &Dot) -> [String; 2] {
    dot.interval
        .map_or_else(Default::default, |ends| ends.map(figure))
}

/// The line on which one figure is the other and this much more.
fn diagonal(x: &Scale, y: &Scale, more: f64, class: &str) -> Markup {
    let (low, high) = x.reach();
    let (from, to) = (low.max(low - more), high.min(high - more));
    let place = |at: f64| (px(x.place(at)), px(y.place(at + more)));
    let (start, end) = (place(from), place(to));
    html! {
        @if from < to {
            path class=(class) d={ "M" (start.0) " " (start.1) "L" (end.0) " " (end.1) } {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_lies_on_the_diagonal_of_a_square() {
        let dot = |name: &str, at: f64| Dot {
            name: name.into(),
            x: at,
            y: at,
            interval: Some([at - 1.0, at + 1.0]),
        };
        let chart = ScatterChart {
            label: "predictions".into(),
            x_title: "measured [%]".into(),
            y_title: "predicted [%]".into(),
            bands: vec![5.0],
            clouds: vec![Cloud {
                name: "latency".into(),
                look: Look::solid(0),
                dots: vec![dot("a", -4.0), dot("b", 38.0)],
            }],
        };
        for room in [Room::Wide, Room::Narrow] {
            let svg = chart.draw(room).into_string();
            let places = |key: &str| -> Vec<f64> {
                let key = format!("{key}=\"");
                let parts = svg.split(key.as_str()).skip(1);
                parts
                    .map(|part| part.split('"').next().unwrap().parse().unwrap())
                    .collect()
            };
            let (x, y) = (places("data-x"), places("data-y"));
            assert!(((x[1] - x[0]) - (y[0] - y[1])).abs() < 0.2, "{x:?} {y:?}");
            assert!(svg.contains("dotted: 5 off"), "{svg}");
        }
        assert!(chart.table().into_string().contains("<td>b</td>"));
        let apart = ScatterChart {
            bands: Vec::new(),
            ..chart
        };
        let svg = apart.draw(Room::Wide).into_string();
        assert!(
            !svg.contains("equal") && !svg.contains("\"limit\""),
            "{svg}"
        );
    }
}
