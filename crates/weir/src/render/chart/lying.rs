//! Bars that lie: names on the left, a heading over each group, one scale for all below.

use maud::{Markup, html};

use super::{Look, Room, Scale, Spread, legend, paper, px, text_width};

/// How high a bar is.
pub(super) const BAR: f64 = 16.0;
const PITCH: f64 = 20.0;
const HEADING: f64 = 20.0;
const GAP: f64 = 10.0;

/// What stands around the bars.
pub(super) struct Frame<'a> {
    /// For those who cannot see it.
    pub label: &'a str,
    /// What the length means, with its unit.
    pub title: &'a str,
    /// The legend; empty where bars carry their names.
    pub legend: &'a [(String, Look)],
    /// Where the scale begins.
    pub spread: Spread,
}

/// Draws a bar on a scale, with its upper edge at this place.
type Draw<'a> = dyn Fn(&Scale, f64) -> Markup + 'a;

/// A bar with its name.
pub(super) struct Row<'a> {
    /// On the left.
    pub name: &'a str,
    /// Lengths that the scale must hold.
    pub reach: Vec<f64>,
    /// Width of the figure at its end.
    pub figure: f64,
    /// Draws it.
    pub draw: Box<Draw<'a>>,
}

impl Frame<'_> {
    /// Draws groups of bars, each with its heading, from the top.
    pub fn draw(&self, room: Room, groups: &[(&str, Vec<Row<'_>>)]) -> Markup {
        let rows = || groups.iter().flat_map(|(_, rows)| rows);
        let longest = rows().map(|row| text_width(row.name)).fold(0.0, f64::max);
        // Capitals are wider than the mean character.
        let left = 18.0 + longest.min(room.width() * 0.35);
        let (legend, legend_height) = legend(room, 2.0, self.legend, false);
        let top = legend_height + 8.0;
        // A figure behind the mark at the end of the scale begins 7 units after it.
        let figures = rows().map(|row| row.figure).fold(34.0, f64::max);
        let right = room.width() - figures - 10.0;
        let reach = rows().flat_map(|row| row.reach.iter().copied());
        let x = Scale::over(self.spread, reach, (left, right));
        let mut y = top;
        let mut drawn = Vec::new();
        for (heading, rows) in groups {
            if !heading.is_empty() {
                drawn.push(html! { text class="heading" x="2" y=(px(y + 14.0)) { (heading) } });
                y += HEADING;
            }
            for row in rows {
                let middle = y + BAR / 2.0;
                drawn.push(html! {
                    text class="tick" x=(px(left - 6.0)) y=(px(middle + 4.0)) text-anchor="end" { (row.name) }
                    ((row.draw)(&x, y))
                });
                y += PITCH;
            }
            y += GAP;
        }
        let bottom = y;
        let half = text_width(self.title) / 2.0;
        let drawing = html! {
            (legend)
            @for (value, label) in x.labels(54.0) {
                @let at = x.place(value);
                path class="grid" d={ "M" (px(at)) " " (px(top)) "V" (px(bottom)) } {}
                text class="tick" x=(px(at)) y=(px(bottom + 15.0)) text-anchor="middle" { (label) }
            }
            path class="axis" d={ "M" (px(x.place(0.0))) " " (px(top)) "V" (px(bottom)) } {}
            @for part in &drawn { (part) }
            text class="title" x=(px(((left + right) / 2.0).max(half))) y=(px(bottom + 32.0)) text-anchor="middle" { (self.title) }
        };
        paper(room, bottom + 38.0, self.label, drawing)
    }
}
