//! How a study shows its rows: a few shapes over frames, by the names of columns.
//!
//! A renderer (terminal, HTML) draws a view from the frame alone and never learns which study it is of.

mod shape;

use std::borrow::Cow;

use serde_json::Value;

pub use shape::{
    Axis, Bars, Best, Grid, Limit, Lines, Mark, Overlay, Parallel, Part, Scatter, Shape, Stacks,
};

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
    /// This many rows of a table are shown, all where nothing is said.
    pub most: Option<usize>,
    /// The shape.
    pub shape: Shape,
    /// Where it is shown.
    pub medium: Medium,
    /// Whether a page of several runs shows their rows in one picture, each with a column `machine`.
    pub together: bool,
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
    pub head: Option<Cow<'static, str>>,
    /// What an empty cell shows.
    pub empty: &'static str,
    /// Whether numbers carry their sign.
    pub signed: bool,
    /// Whether a number is shown as how many bits it has set.
    pub bits: bool,
    /// Whether a number is a share of 1, shown in percent.
    pub share: bool,
    /// Whether a number that would show as `0.00` keeps its first digit: `0.0003`.
    pub small: bool,
    /// Whether a name such as `not_modelled` is shown as the words `not modelled`.
    pub in_words: bool,
    /// Whether the column is left out where no row has a value.
    pub if_any: bool,
    /// The column whose value follows this one's, after a comma.
    pub and: Option<&'static str>,
    /// Digits behind the point of numbers below 100; `None` for as many as a figure usually has.
    pub places: Option<usize>,
    /// Whether the head leaves the column's unit out.
    pub without_unit: bool,
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
        small: false,
        in_words: false,
        if_any: false,
        and: None,
        places: None,
        without_unit: false,
    }
}

impl Col {
    /// The same under another head.
    #[must_use]
    pub fn head(mut self, head: impl Into<Cow<'static, str>>) -> Self {
        self.head = Some(head.into());
        self
    }

    /// The same without the column's unit, where its numbers have another one or none.
    #[must_use]
    pub fn without_unit(mut self) -> Self {
        self.without_unit = true;
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

    /// The same with the first digit of numbers that would show as `0.00`.
    #[must_use]
    pub fn small(mut self) -> Self {
        self.small = true;
        self
    }

    /// The same with words for names: `not modelled` of `not_modelled`.
    #[must_use]
    pub fn in_words(mut self) -> Self {
        self.in_words = true;
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

    /// The same with this many digits behind the point of numbers below 100.
    #[must_use]
    pub fn places(mut self, places: usize) -> Self {
        self.places = Some(places);
        self
    }

    /// The same for a mask: how many bits it has set.
    #[must_use]
    pub fn bits(mut self) -> Self {
        self.bits = true;
        self
    }
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
            most: None,
            shape,
            medium,
            together: false,
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

    /// Dots on the page.
    pub fn scatter(
        frame: &'static str,
        title: impl Into<String>,
        (x, x_title): (&'static str, impl Into<String>),
        (y, y_title): (&'static str, &str),
        (name, cloud): (&'static str, &'static str),
        bands: &'static [f64],
    ) -> Self {
        let scatter = Scatter {
            x,
            x_title: x_title.into(),
            y,
            y_title: y_title.to_owned(),
            name,
            cloud,
            ends: None,
            bands,
        };
        Self::new(frame, title, Shape::Scatter(scatter), Medium::Page)
    }

    /// Lines across axes side by side, on the page.
    pub fn parallel(
        frame: &'static str,
        title: impl Into<String>,
        axes: Vec<String>,
        (name, kind): (&'static str, &'static str),
    ) -> Self {
        let parallel = Parallel { axes, name, kind };
        Self::new(frame, title, Shape::Parallel(parallel), Medium::Page)
    }

    /// Bars of parts on the page.
    pub fn stacks(
        frame: &'static str,
        title: impl Into<String>,
        group: &[&'static str],
        bar: &'static str,
        (parts, parts_title): (&[Part], impl Into<String>),
    ) -> Self {
        let stacks = Stacks {
            group: group.to_vec(),
            bar,
            parts: parts.to_vec(),
            title: parts_title.into(),
            ends: None,
            length: None,
        };
        Self::new(frame, title, Shape::Stacks(stacks), Medium::Page)
    }

    /// Dots or bars with an interval.
    #[must_use]
    pub fn between(mut self, low: &'static str, high: &'static str) -> Self {
        match &mut self.shape {
            Shape::Scatter(scatter) => scatter.ends = Some([low, high]),
            Shape::Stacks(stacks) => stacks.ends = Some([low, high]),
            _ => {}
        }
        self
    }

    /// Bars as stretches of time, of such a length each.
    #[must_use]
    pub fn over(mut self, length: &'static str, title: &'static str) -> Self {
        if let Shape::Stacks(stacks) = &mut self.shape {
            stacks.length = Some((length, title));
        }
        self
    }

    /// The same for several runs at once.
    #[must_use]
    pub fn together(mut self) -> Self {
        self.together = true;
        self
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

    /// A table of this many rows at most.
    #[must_use]
    pub fn at_most(mut self, rows: usize) -> Self {
        self.most = Some(rows);
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
