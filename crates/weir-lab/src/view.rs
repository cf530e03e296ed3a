//! How a study shows its rows: a few shapes over frames, by the names of columns.
//!
//! A renderer (terminal, HTML) draws a view from the frame alone and never learns which study it is of.

use serde_json::Value;
use weir_model::topology::TierName;

/// One table or picture, or one of each kind for every group of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The study whose points it shows; empty where a document has one study.
    pub study: &'static str,
    /// The list of the document that it shows.
    pub frame: &'static str,
    /// The heading; `{column}` is replaced by the group's value.
    pub title: String,
    /// How to read it, for the page.
    pub words: &'static str,
    /// Rows that it shows.
    pub only: Vec<Only>,
    /// One table or picture for each combination of these columns' values. A row without a value belongs to
    /// every group.
    pub each: Vec<&'static str>,
    /// The shape.
    pub shape: Shape,
    /// Where it is shown.
    pub medium: Medium,
}

/// Where a view is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// In the terminal and on the page.
    Both,
    /// In the terminal.
    Text,
    /// On the page.
    Page,
}

/// A condition on rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Only {
    /// The column has this value.
    Is(&'static str, Value),
    /// The column's words begin so.
    Begins(&'static str, &'static str),
    /// The column has a value.
    Has(&'static str),
    /// The column has none.
    Lacks(&'static str),
    /// The column has one of these words.
    OneOf(&'static str, &'static [&'static str]),
    /// The column has its largest value among rows that share the values of other columns.
    Most(&'static str, &'static [&'static str]),
    /// The column has its least value among rows that share the values of other columns.
    Least(&'static str, &'static [&'static str]),
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Col {
    /// The frame's column.
    pub name: &'static str,
    /// The head in place of the column's name.
    pub head: Option<&'static str>,
    /// What an empty cell shows.
    pub empty: &'static str,
    /// Whether numbers carry their sign.
    pub signed: bool,
    /// Whether a number is shown as how many bits it has set.
    pub bits: bool,
    /// Whether a number is a share of 1, shown in percent.
    pub share: bool,
    /// Whether the column is left out where no row has a value.
    pub if_any: bool,
    /// The column whose value stands behind this one's, after a comma.
    pub and: Option<&'static str>,
}

/// A column by its name.
pub fn col(name: &'static str) -> Col {
    Col {
        name,
        head: None,
        empty: "-",
        signed: false,
        bits: false,
        share: false,
        if_any: false,
        and: None,
    }
}

impl Col {
    /// The same under another head.
    #[must_use]
    pub fn head(mut self, head: &'static str) -> Self {
        self.head = Some(head);
        self
    }

    /// The same with words for an empty cell.
    #[must_use]
    pub fn empty(mut self, words: &'static str) -> Self {
        self.empty = words;
        self
    }

    /// The same with signed numbers: changes in percent.
    #[must_use]
    pub fn signed(mut self) -> Self {
        self.signed = true;
        self
    }

    /// The same for a share of 1: in percent.
    #[must_use]
    pub fn share(mut self) -> Self {
        self.share = true;
        self
    }

    /// The same with another column's value behind each, after a comma.
    #[must_use]
    pub fn and(mut self, column: &'static str) -> Self {
        self.and = Some(column);
        self
    }

    /// The same, left out where no row has a value.
    #[must_use]
    pub fn if_any(mut self) -> Self {
        self.if_any = true;
        self
    }

    /// The same for a mask: how many bits it has set.
    #[must_use]
    pub fn bits(mut self) -> Self {
        self.bits = true;
        self
    }
}

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
    /// The known limit of each column stands in a last row.
    pub limits: bool,
    /// Which figures are framed.
    pub best: Best,
    /// Whether figures carry their sign.
    pub signed: bool,
    /// What stands behind a figure that a condition holds for.
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

/// A curve that was not measured by the study.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlay {
    /// The tier whose picture it stands in.
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

impl View {
    fn new(frame: &'static str, title: impl Into<String>, shape: Shape, medium: Medium) -> Self {
        Self {
            study: "",
            frame,
            title: title.into(),
            words: "",
            only: Vec::new(),
            each: Vec::new(),
            shape,
            medium,
        }
    }

    /// A table in the terminal.
    pub fn table(frame: &'static str, title: impl Into<String>, columns: Vec<Col>) -> Self {
        Self::new(frame, title, Shape::Table(columns), Medium::Text)
    }

    /// A grid in both media.
    pub fn grid(
        frame: &'static str,
        title: impl Into<String>,
        rows: &'static str,
        columns: &[&'static str],
        value: &'static str,
    ) -> Self {
        let grid = Grid {
            rows,
            row_title: rows,
            columns: columns.to_vec(),
            value,
            panels: Vec::new(),
            mirrored: false,
            limits: false,
            best: Best::None,
            signed: false,
            marks: Vec::new(),
        };
        Self::new(frame, title, Shape::Grid(grid), Medium::Both)
    }

    /// Lines on the page.
    pub fn lines(
        frame: &'static str,
        title: impl Into<String>,
        (x, x_title): (&'static str, &str),
        (y, y_title): (&'static str, &str),
        series: &[&'static str],
    ) -> Self {
        let lines = Lines {
            x,
            x_title: x_title.to_owned(),
            y,
            y_title: y_title.to_owned(),
            series: series.to_vec(),
            order: None,
            axes: (Axis::Linear, Axis::Linear),
            limits: Vec::new(),
            overlays: Vec::new(),
        };
        Self::new(frame, title, Shape::Lines(lines), Medium::Page)
    }

    /// Bars on the page.
    pub fn bars(
        frame: &'static str,
        title: impl Into<String>,
        group: &[&'static str],
        bar: &'static str,
        (value, value_title): (&'static str, &str),
    ) -> Self {
        let bars = Bars {
            group: group.to_vec(),
            bar,
            value,
            value_title: value_title.to_owned(),
        };
        Self::new(frame, title, Shape::Bars(bars), Medium::Page)
    }

    /// A picture that the report draws by this name.
    pub fn picture(frame: &'static str, name: &'static str) -> Self {
        Self::new(frame, "", Shape::Picture(name), Medium::Page)
    }

    /// The same for each combination of values.
    #[must_use]
    pub fn each(mut self, columns: &[&'static str]) -> Self {
        self.each = columns.to_vec();
        self
    }

    /// The same for some rows.
    #[must_use]
    pub fn only(mut self, condition: Only) -> Self {
        self.only.push(condition);
        self
    }

    /// The same in one medium.
    #[must_use]
    pub fn on(mut self, medium: Medium) -> Self {
        self.medium = medium;
        self
    }

    /// The same with words that say how to read it.
    #[must_use]
    pub fn words(mut self, words: &'static str) -> Self {
        self.words = words;
        self
    }

    /// A grid whose pairs are the same either way round.
    #[must_use]
    pub fn mirrored(self) -> Self {
        self.grid_with(|grid| grid.mirrored = true)
    }

    /// A grid whose rows are called so.
    #[must_use]
    pub fn rows_are(self, title: &'static str) -> Self {
        self.grid_with(|grid| grid.row_title = title)
    }

    /// A grid with a last row of limits.
    #[must_use]
    pub fn with_limits(self) -> Self {
        self.grid_with(|grid| grid.limits = true)
    }

    /// A grid with the best of each column framed, one panel for each of these values.
    #[must_use]
    pub fn panels(self, columns: &[&'static str], best: Best) -> Self {
        self.grid_with(|grid| {
            grid.panels = columns.to_vec();
            grid.best = best;
        })
    }

    /// A grid of changes: figures carry their sign, and these marks.
    #[must_use]
    pub fn changes(self, marks: Vec<Mark>) -> Self {
        self.grid_with(|grid| {
            grid.signed = true;
            grid.marks = marks;
        })
    }

    fn grid_with(mut self, change: impl FnOnce(&mut Grid)) -> Self {
        if let Shape::Grid(grid) = &mut self.shape {
            change(grid);
        }
        self
    }

    /// Lines with these axes.
    #[must_use]
    pub fn axes(self, x: Axis, y: Axis) -> Self {
        self.lines_with(|lines| lines.axes = (x, y))
    }

    /// Lines whose points are in the order of a column, largest first.
    #[must_use]
    pub fn order(self, column: &'static str) -> Self {
        self.lines_with(|lines| lines.order = Some(column))
    }

    /// Lines with known limits.
    #[must_use]
    pub fn limits(self, limits: Vec<Limit>) -> Self {
        self.lines_with(|lines| lines.limits = limits)
    }

    /// Lines with curves from elsewhere.
    #[must_use]
    pub fn overlays(self, overlays: Vec<Overlay>) -> Self {
        self.lines_with(|lines| lines.overlays = overlays)
    }

    fn lines_with(mut self, change: impl FnOnce(&mut Lines)) -> Self {
        if let Shape::Lines(lines) = &mut self.shape {
            change(lines);
        }
        self
    }
}
