//! Charts as SVG: drawn here, coloured by the page's style sheet, alive by its script.
//!
//! Each chart is drawn twice, for a wide and for a narrow place, so that its letters keep their
//! size on a phone; the style sheet shows the one that fits.

mod bars;
mod heat;
mod line;
mod lying;
mod parallel;
mod scale;
mod scatter;
mod sign;
mod stack;
mod strip;

use std::collections::BTreeSet;

use maud::{Markup, html};

pub use bars::{Bar, BarChart, Group};
pub use heat::{Cell, HeatChart, Panel, Reach};
pub use line::{Limit, LineChart, Sample, Series, Wall};
pub use parallel::{Across, ParallelChart, Vertical};
pub use scale::{Scale, Spread, quantile_name};
pub use scatter::{Cloud, Dot, ScatterChart};
pub use sign::Sign;
pub use stack::{Stack, StackChart};
pub use strip::{Stretch, Strip, StripChart};

/// A drawing with the same figures as a table, for those who cannot see it.
pub trait Chart {
    /// The drawing on paper of the given room.
    fn draw(&self, room: Room) -> Markup;

    /// Every figure of it, as the head and the body of a table.
    fn table(&self) -> Markup;

    /// The signs that stand in it.
    fn signs(&self) -> BTreeSet<Sign>;
}

/// A chart with its name, which says what it is of where a page has many of a kind.
pub struct Drawn {
    /// `Bandwidth of cxl0 by threads`.
    pub name: String,
    /// The chart.
    pub chart: Box<dyn Chart>,
    /// Where figures come from that are not of the page's runs; else empty.
    pub sources: String,
}

impl Drawn {
    pub(crate) fn new(name: impl Into<String>, chart: impl Chart + 'static) -> Self {
        Self {
            name: name.into(),
            chart: Box::new(chart),
            sources: String::new(),
        }
    }
}

/// How much room a chart has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Half a desk screen, or a printed page.
    Wide,
    /// A phone.
    Narrow,
}

impl Room {
    /// The width of the paper in SVG units, which are pixels where the room is just filled.
    pub const fn width(self) -> f64 {
        match self {
            Room::Wide => 560.0,
            Room::Narrow => 350.0,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Room::Wide => "wide",
            Room::Narrow => "narrow",
        }
    }
}

/// The look of a series: a colour and a mark, so that colour alone never tells two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Number of the colour in the style sheet, whose colours begin again after 7.
    pub colour: usize,
    /// How its line is drawn.
    pub stroke: Stroke,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stroke {
    /// In one stroke, its marks full.
    #[default]
    Solid,
    /// Dashed, its marks hollow: a variant of another line.
    Dashed,
    /// Dotted and thin, its marks hollow: what another instrument saw.
    Dotted,
}

impl Look {
    /// A line in one stroke.
    pub const fn solid(colour: usize) -> Self {
        Self {
            colour,
            stroke: Stroke::Solid,
        }
    }

    /// Whether it is drawn in one stroke.
    pub fn is_solid(self) -> bool {
        self.stroke == Stroke::Solid
    }

    fn class(self) -> String {
        let stroke = match self.stroke {
            Stroke::Solid => "",
            Stroke::Dashed => " dashed",
            Stroke::Dotted => " dotted",
        };
        format!("c{}{stroke}", self.colour % COLOURS)
    }
}

/// How many colours the style sheet knows.
pub const COLOURS: usize = 8;

/// The paper with a drawing on it.
fn paper(room: Room, height: f64, label: &str, drawing: Markup) -> Markup {
    let (width, class) = (room.width(), room.class());
    html! {
        svg class=(class) viewBox={ "0 0 " (width) " " (px(height)) } role="img" aria-label=(label) tabindex="0"
            xmlns="http://www.w3.org/2000/svg" { (drawing) }
    }
}

/// About how wide a text is drawn at the charts' letter size of 12, in SVG units. Widths are those of DejaVu
/// Sans, the widest of the common fonts.
fn text_width(text: &str) -> f64 {
    let wide = |c: char| match c {
        ' ' | '.' | ',' | ':' | ';' | '-' | '\'' | '(' | ')' | 'f' | 'i' | 'j' | 'l' | 'r'
        | 't' => 4.4,
        '%' | 'm' | 'w' | 'M' | 'W' | '@' => 11.0,
        'A'..='Z' => 8.4,
        _ => 7.4,
    };
    text.chars().map(wide).sum()
}

/// A coordinate with a tenth of a pixel, which is all that can be seen.
fn px(value: f64) -> String {
    // A drawing has no place for what is no number.
    let text = format!("{:.1}", if value.is_finite() { value } else { 0.0 });
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// A mark of the shape that goes with a colour: circle, square, diamond, triangle, and again; a colour that comes again
/// has the next shape.
fn mark(x: f64, y: f64, look: Look, tip: Option<&str>) -> Markup {
    let class = format!("mark {}", look.class());
    let path = match (look.colour + look.colour / COLOURS) % 4 {
        0 => format!(
            "M{} {}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
            px(x),
            px(y)
        ),
        1 => format!("M{} {}h6.4v6.4h-6.4z", px(x - 3.2), px(y - 3.2)),
        2 => format!("M{} {}l4.4 4.4l-4.4 4.4l-4.4 -4.4z", px(x), px(y - 4.4)),
        _ => format!("M{} {}l4.2 7.4h-8.4z", px(x), px(y - 4.6)),
    };
    html! {
        path class=(class) d=(path) data-x=[tip.map(|_| px(x))] data-y=[tip.map(|_| px(y))] {
            @if let Some(tip) = tip { title { (tip) } }
        }
    }
}

/// A legend in as many rows as it needs; its markup and the height it takes.
fn legend(room: Room, left: f64, entries: &[(String, Look)], line: bool) -> (Markup, f64) {
    const ROW: f64 = 18.0;
    const MARK: f64 = 30.0;
    let longest = entries.iter().map(|(name, _)| text_width(name));
    let longest = longest.fold(0.0, f64::max);
    // A long name takes the room of the axis too, and is condensed where that is not enough.
    let left = if left + MARK + longest > room.width() {
        2.0
    } else {
        left
    };
    let most = room.width() - left - MARK;
    let (mut x, mut y) = (left, 12.0);
    let mut placed = Vec::new();
    for (name, look) in entries {
        let width = MARK + text_width(name);
        if x > left && x + width > room.width() {
            (x, y) = (left, y + ROW);
        }
        placed.push((x, y, name, *look));
        x += width + 8.0;
    }
    let height = if entries.is_empty() { 0.0 } else { y + 10.0 };
    let markup = html! {
        @for (x, y, name, look) in placed {
            @if line {
                path class={ "line " (look.class()) } d={ "M" (px(x)) " " (px(y - 4.0)) "h22" } {}
                (mark(x + 11.0, y - 4.0, look, None))
            } @else {
                rect class={ "bar " (look.class()) } x=(px(x + 8.0)) y=(px(y - 10.0)) width="12" height="12" {}
            }
            @let condensed = (text_width(name) > most).then(|| px(most));
            text class="legend" x=(px(x + 26.0)) y=(px(y)) textLength=[condensed]
                lengthAdjust="spacingAndGlyphs" { (name) }
        }
    };
    (markup, height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_colour_have_different_marks() {
        let drawn = |colour| mark(0.0, 0.0, Look::solid(colour), None).into_string();
        let all: std::collections::BTreeSet<String> = (0..4 * COLOURS).map(drawn).collect();
        assert_eq!(all.len(), 4 * COLOURS);
    }
}
