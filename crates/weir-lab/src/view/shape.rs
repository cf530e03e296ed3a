//! The shapes of views.

use weir_model::topology::{Tier, TierName, Topology};

use super::{Col, Only};

/// The shape of a view.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// One line a row.
    Table(Vec<Col>),
    /// One figure for each pair of keys: a pivoted table, and a shaded matrix on the page.
    Grid(Grid),
    /// A figure over another one, a line for each series.
    Lines(Lines),
    /// A bar for each row.
    Bars(Bars),
    /// A dot for each row: one figure against another of the same thing.
    Scatter(Scatter),
    /// A bar for each row, made of parts; or stretches of time, as wide as they are long.
    Stacks(Stacks),
    /// A line for each row across several axes side by side.
    Parallel(Parallel),
    /// A picture of its own, by the name under which the report draws it.
    Picture(&'static str),
}

/// See [`Shape::Grid`].
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// What names the rows.
    pub rows: &'static str,
    /// What the rows are.
    pub row_title: &'static str,
    /// What names the columns; `source` and another one are a way from the first to the second.
    pub columns: Vec<&'static str>,
    /// The figure.
    pub value: &'static str,
    /// One matrix for each of these values, in one picture.
    pub panels: Vec<&'static str>,
    /// A pair is the same either way round.
    pub mirrored: bool,
    /// The last row has the known limit of each column.
    pub limits: bool,
    /// Which figures are framed.
    pub best: Best,
    /// Whether figures carry their sign.
    pub signed: bool,
    /// The mark after a figure that has a condition.
    pub marks: Vec<Mark>,
}

/// A character behind some figures of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// The character.
    pub sign: &'static str,
    /// Which rows have it.
    pub of: Only,
    /// What it marks, for a line below the grid.
    pub words: &'static str,
}

/// Which figures of a grid are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Best {
    /// None.
    None,
    /// The largest of each column.
    OfColumn,
    /// The largest of each pair over all panels.
    OfPair,
}

/// See [`Shape::Lines`].
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// To the right.
    pub x: &'static str,
    /// Title and unit of that axis.
    pub x_title: String,
    /// Upwards.
    pub y: &'static str,
    /// Title and unit of that axis.
    pub y_title: String,
    /// What makes a line; the first decides the colour.
    pub series: Vec<&'static str>,
    /// What orders the points of a line; `x` where nothing is named.
    pub order: Option<&'static str>,
    /// How the axes grow.
    pub axes: (Axis, Axis),
    /// Known limits across the picture.
    pub limits: Vec<Limit>,
    /// Curves from elsewhere, in the groups that they name.
    pub overlays: Vec<Overlay>,
}

/// How an axis grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Evenly.
    Linear,
    /// Evenly, to both sides of zero.
    Signed,
    /// By factors.
    Log,
    /// By factors where the figures span more than six times the least.
    Auto,
    /// Whole numbers that double.
    Counts,
    /// Bytes that double.
    Sizes,
}

/// A known limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The group's tier that it belongs to; `None` for every group.
    pub tier: Option<TierName>,
    /// Whether it is a value of x; else of y.
    pub on_x: bool,
    /// The value, in the axis's unit.
    pub at: f64,
    /// What it is.
    pub name: String,
}

impl Limit {
    /// The read limit of every tier, for pictures of one tier each.
    pub(crate) fn of_reads(topology: &Topology, on_x: bool) -> Vec<Self> {
        let limit = |tier: &Tier| {
            let read = tier.limits.as_ref()?.read;
            Some(Self {
                tier: Some(tier.name.clone()),
                on_x,
                at: read.get(),
                name: format!("read limit {:.0} GB/s", read.get()),
            })
        };
        topology.tiers.iter().filter_map(limit).collect()
    }
}

/// A curve that was not measured by the study.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlay {
    /// The tier whose picture has it.
    pub tier: TierName,
    /// The value of the first series column whose colour it has.
    pub like: String,
    /// Its name.
    pub name: String,
    /// Where it is from.
    pub source: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
}

/// See [`Shape::Bars`].
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// What groups bars.
    pub group: Vec<&'static str>,
    /// What names a bar; the best row of a name is shown.
    pub bar: &'static str,
    /// The length.
    pub value: &'static str,
    /// Title and unit.
    pub value_title: String,
}

/// See [`Shape::Parallel`].
#[derive(Debug, Clone, PartialEq)]
pub struct Parallel {
    /// The columns, an axis each: of figures, or of words.
    pub axes: Vec<String>,
    /// What names a line.
    pub name: &'static str,
    /// What gives a line its colour.
    pub kind: &'static str,
}

/// See [`Shape::Scatter`]. With bands, what is equal is on the diagonal; without, both axes have a reach of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct Scatter {
    /// To the right.
    pub x: &'static str,
    /// Title and unit of that axis.
    pub x_title: String,
    /// Upwards.
    pub y: &'static str,
    /// Title and unit of that axis.
    pub y_title: String,
    /// What names a dot.
    pub name: &'static str,
    /// What makes a cloud of one colour.
    pub cloud: &'static str,
    /// The ends of the interval of `y`, where there is one.
    pub ends: Option<[&'static str; 2]>,
    /// Distances from the diagonal that are marked on both sides of it.
    pub bands: &'static [f64],
}

/// See [`Shape::Stacks`].
#[derive(Debug, Clone, PartialEq)]
pub struct Stacks {
    /// What groups bars, or makes a strip of stretches.
    pub group: Vec<&'static str>,
    /// What names a bar.
    pub bar: &'static str,
    /// The parts that are drawn where a row has them.
    pub parts: Vec<Part>,
    /// Title and unit of the parts.
    pub title: String,
    /// The ends of the interval of the whole, where there is one.
    pub ends: Option<[&'static str; 2]>,
    /// The length of a stretch, with the title of its axis; `None` for bars.
    pub length: Option<(&'static str, &'static str)>,
}

/// A part of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The frame's column.
    pub column: &'static str,
    /// Its name in the legend.
    pub name: &'static str,
    /// The number of its colour.
    pub colour: usize,
}

impl Part {
    /// A part of this column, with a name in the legend and the number of a colour.
    pub const fn new(column: &'static str, name: &'static str, colour: usize) -> Self {
        Self {
            column,
            name,
            colour,
        }
    }
}
