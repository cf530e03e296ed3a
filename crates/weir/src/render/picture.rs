//! Views as pictures on the page: lines, shaded matrices and bars.

use serde_json::Value;
use weir_lab::view::{Axis, Bars, Best, Grid, Lines, Medium, Shape, View};
use weir_model::frame::{Column, Frame, words};
use weir_model::number;

use super::chart::{
    Bar, BarChart, Cell, Drawn, Group, HeatChart, Limit, LineChart, Look, Panel, Reach, Sample,
    Series, Sign, Spread, Stroke, Wall,
};
use super::text::heading;
use super::{colour, distinct, groups, interval, named, plain, rows, short, titled, values};
use crate::output::figure;

/// A vertical axis whose figures span more than this factor is logarithmic where the view leaves the choice.
const LINEAR_UP_TO: f64 = 6.0;

/// Every view that is a picture by its shape. [`Shape::Picture`] is left to the report.
pub fn pictures(frames: &[Frame], views: &[View], machine: &str, tiers: &[String]) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    for view in views.iter().filter(|view| view.medium != Medium::Text) {
        let Some(frame) = frames.iter().find(|frame| frame.name == view.frame) else {
            continue;
        };
        let shown = rows(view, frame);
        let scene = Scene {
            frame,
            machine,
            tiers,
        };
        if let Shape::Bars(bars) = &view.shape {
            drawn.extend(scene.bars(&view.title, bars, &shown));
            continue;
        }
        for (group, rows) in groups(&view.each, frame, &shown) {
            let title = titled(view, &group);
            let tier = (view.each.iter().zip(&group))
                .find(|(column, _)| **column == "tier")
                .map(|(_, tier)| words(tier));
            drawn.extend(match &view.shape {
                Shape::Lines(lines) => scene.lines(&title, lines, &rows, tier.as_deref()),
                Shape::Grid(grid) => scene.grid(&title, grid, &rows),
                Shape::Scatter(scatter) => scene.scatter(&title, scatter, &rows),
                Shape::Parallel(parallel) => scene.parallel(&title, parallel, &rows),
                Shape::Stacks(stacks) => scene.stacks(&title, stacks, &rows),
                Shape::Bars(_) | Shape::Table(_) | Shape::Picture(_) => None,
            });
        }
    }
    drawn
}

pub(super) struct Scene<'a> {
    pub(super) frame: &'a Frame,
    pub(super) machine: &'a str,
    tiers: &'a [String],
}

impl Scene<'_> {
    fn column(&self, name: &str) -> Option<&Column> {
        self.frame.columns.get(self.frame.place(name)?)
    }

    pub(super) fn number(&self, row: &[Value], name: &str) -> Option<f64> {
        self.frame.number(row, name)
    }

    /// The values of a column in the whole frame, so that a value has the same look in every picture of it.
    fn domain(&self, column: &str) -> Vec<Value> {
        let all: Vec<&[Value]> = self.frame.rows.iter().map(Vec::as_slice).collect();
        values(self.frame, &all, column)
    }

    /// How a row looks among those of its picture.
    pub(super) fn look(&self, columns: &[&str], row: &[Value], rows: &[&[Value]]) -> Look {
        let Some(first) = columns.first() else {
            return Look::solid(0);
        };
        let value = self.frame.cell(row, first);
        let domain = self.domain(first);
        // The second column is distinguished by the stroke, of which there are few: other pictures have values of their own.
        let stroke = columns
            .get(1)
            .map(|column| match self.frame.cell(row, column) {
                Value::Bool(on) => usize::from(!on),
                value => {
                    let domain = values(self.frame, rows, column);
                    domain.iter().position(|known| known == value).unwrap_or(0)
                }
            });
        Look {
            colour: colour(first, value, &domain, self.tiers),
            stroke: match stroke {
                None | Some(0) => Stroke::Solid,
                Some(1) => Stroke::Dashed,
                Some(_) => Stroke::Dotted,
            },
        }
    }

    /// Names of a series: its values, without those that every series of the group shares.
    pub(super) fn name(&self, columns: &[&str], rows: &[&[Value]], of: &[Value]) -> String {
        let differs =
            |at: usize, column: &str| at == 0 || values(self.frame, rows, column).len() > 1;
        let parts = columns.iter().zip(of).enumerate();
        let parts: Vec<String> = parts
            .filter(|(at, (column, value))| differs(*at, column) && !value.is_null())
            .map(|(_, (column, value))| named(column, value).trim_start_matches(", ").to_owned())
            .filter(|part| !part.is_empty())
            .collect();
        parts.join(", ")
    }

    /// The interval, the limit and the doubts of a figure, for its tip.
    fn remarks(&self, row: &[Value], unit: &str) -> String {
        let mut text = String::new();
        if let Some(limit) = self.number(row, "theory_limit") {
            let basis = words(self.frame.cell(row, "theory_basis"));
            text.push_str(&format!("\nlimit {} {unit}: {basis}", figure(limit)));
        }
        if let Some(sign) = self.sign(row) {
            text.push_str(&format!("\n{} {}", sign.glyph(), sign.meaning()));
        }
        if let Some(count) = self.number(row, "repetitions").filter(|n| *n > 1.0) {
            text.push_str(&format!("\n{count} repetitions"));
        }
        if let Some(why) = self.frame.cell(row, "why").as_str() {
            text.push_str(&format!("\n{why}"));
        }
        text
    }

    fn tip(&self, heading: &str, row: &[Value], column: &Column) -> String {
        let value = self.frame.cell(row, &column.name);
        if value.is_null() {
            let error = words(self.frame.cell(row, "error"));
            let why = if error.is_empty() {
                "no figure"
            } else {
                &error
            };
            return format!("{heading}: {why}");
        }
        let half = interval(self.frame, row, column);
        let half = number::interval(half);
        let unit = &column.unit;
        format!(
            "{heading}: {}{half} {unit}{}",
            plain(column, value, false),
            self.remarks(row, unit)
        )
    }

    fn sign(&self, row: &[Value]) -> Option<Sign> {
        if self.frame.cell(row, "theory_beaten") == &Value::Bool(true) {
            return Some(Sign::Beaten);
        }
        match self.frame.cell(row, "steadiness").as_str()? {
            "noisy" => Some(Sign::Noisy),
            "bimodal" => Some(Sign::Bimodal),
            "drifting" => Some(Sign::Drifting),
            _ => None,
        }
    }

    fn lines(
        &self,
        title: &str,
        lines: &Lines,
        rows: &[&[Value]],
        tier: Option<&str>,
    ) -> Option<Drawn> {
        let (x, y) = (self.column(lines.x)?, self.column(lines.y)?);
        let mut series = Vec::new();
        for (key, mut own) in groups(&lines.series, self.frame, rows) {
            let name = self.name(&lines.series, rows, &key);
            let order = lines.order.unwrap_or(lines.x);
            let at = |row: &[Value]| self.number(row, order).unwrap_or(f64::INFINITY);
            own.sort_by(|a, b| at(a).total_cmp(&at(b)));
            if lines.order.is_some() {
                own.reverse();
            }
            let look = own.iter().find(|row| match lines.series.first() {
                Some(first) => !self.frame.cell(row, first).is_null(),
                None => true,
            });
            let look = look.map_or(Look::solid(0), |row| self.look(&lines.series, row, rows));
            let samples: Vec<Sample> = (own.iter())
                .filter_map(|row| {
                    let x_value = self.number(row, lines.x).unwrap_or(0.0);
                    let at = plain(x, &Value::from(x_value), false);
                    let at = if lines.x.ends_with("_bytes") || lines.x.ends_with("threads") {
                        named(lines.x, self.frame.cell(row, lines.x))
                    } else {
                        format!("{at} {}", x.unit)
                    };
                    Some(Sample {
                        x: x_value,
                        y: self.number(row, lines.y)?,
                        ci95: interval(self.frame, row, y),
                        sign: self.sign(row),
                        tip: self.tip(&format!("{name}\n{at}"), row, y),
                    })
                })
                .collect();
            if !samples.is_empty() {
                series.push(Series {
                    name,
                    look,
                    samples,
                    outline: Vec::new(),
                });
            }
        }
        if series.is_empty() {
            return None;
        }
        let largest = (series.iter().flat_map(|s| &s.samples))
            .map(|s| s.x)
            .fold(0.0, f64::max);
        let own = |limit: &&weir_lab::view::Limit| {
            limit
                .tier
                .as_ref()
                .is_none_or(|of| Some(of.as_str()) == tier)
        };
        // A limit far beyond the lines would press them together.
        let near = |limit: &&weir_lab::view::Limit| !limit.on_x || limit.at < largest * 2.0;
        let limits: Vec<_> = lines.limits.iter().filter(own).filter(near).collect();
        // A chart of one line has no column that tells lines apart.
        let told = lines.series.first().copied();
        let domain = told.map_or_else(Vec::new, |told| self.domain(told));
        let overlays: Vec<_> = (lines.overlays.iter())
            .filter(|overlay| Some(overlay.tier.as_str()) == tier)
            .collect();
        for overlay in &overlays {
            let like = Value::from(overlay.like.clone());
            series.push(Series {
                name: overlay.name.clone(),
                look: Look {
                    colour: colour(told.unwrap_or(""), &like, &domain, self.tiers),
                    stroke: Stroke::Dotted,
                },
                samples: (overlay.points.iter())
                    .map(|&(x, y)| Sample {
                        x,
                        y,
                        ci95: None,
                        sign: None,
                        tip: format!(
                            "{}\n{}: {}\nfrom {}",
                            overlay.name,
                            figure(x),
                            figure(y),
                            overlay.source
                        ),
                    })
                    .collect(),
                outline: Vec::new(),
            });
        }
        let spread = |axis: Axis, figures: &dyn Fn(&Sample) -> f64| match axis {
            Axis::Linear => Spread::Linear,
            Axis::Signed => Spread::Signed,
            Axis::Log => Spread::Log,
            Axis::Counts => Spread::Counts,
            Axis::Sizes => Spread::Sizes,
            Axis::Auto => {
                let all = || series.iter().flat_map(|s| &s.samples).map(figures);
                let (least, most) = (
                    all().fold(f64::INFINITY, f64::min),
                    all().fold(0.0, f64::max),
                );
                if most > least * LINEAR_UP_TO {
                    Spread::Log
                } else {
                    Spread::Linear
                }
            }
        };
        let walls: Vec<Wall> = (limits.iter().filter(|l| l.on_x))
            .map(|l| Wall {
                x: l.at,
                name: l.name.clone(),
            })
            .collect();
        let chart = LineChart {
            label: format!("{title} on {}", self.machine),
            x_title: lines.x_title.clone(),
            x: spread(lines.axes.0, &|s| s.x),
            x_reach: if lines.axes.0 == Axis::Sizes {
                Vec::new()
            } else {
                walls.iter().map(|w| w.x).collect()
            },
            y_title: lines.y_title.clone(),
            y: spread(lines.axes.1, &|s| s.y),
            y_reach: Vec::new(),
            walls,
            limits: (limits.iter().filter(|l| !l.on_x))
                .map(|l| Limit {
                    y: l.at,
                    name: l.name.clone(),
                })
                .collect(),
            series,
        };
        let mut sources: Vec<String> = Vec::new();
        for overlay in overlays {
            if !sources.contains(&overlay.source) {
                sources.push(overlay.source.clone());
            }
        }
        Some(Drawn {
            sources: match sources.as_slice() {
                [] => String::new(),
                known => format!("dotted: measured on the real machine; {}", known.join("; ")),
            },
            ..Drawn::new(title, chart)
        })
    }

    fn grid(&self, title: &str, grid: &Grid, rows: &[&[Value]]) -> Option<Drawn> {
        let value = self.column(grid.value)?;
        let figures = || rows.iter().filter_map(|row| self.number(row, grid.value));
        let (least, most) = (
            figures().fold(f64::INFINITY, f64::min),
            figures().fold(0.0, f64::max),
        );
        let mut panels = Vec::new();
        for (key, own) in groups(&grid.panels, self.frame, rows) {
            let name = self.name(&grid.panels, rows, &key);
            panels.push(self.panel(name, grid, value, &own, rows));
        }
        if rows.is_empty() || panels.iter().all(|panel| panel.rows.is_empty()) {
            return None;
        }
        let framed = match grid.best {
            Best::None => "",
            Best::OfColumn => ", framed: best of the column",
            Best::OfPair => ", framed: best of the pair",
        };
        let chart = HeatChart {
            label: format!("{title} on {}", self.machine),
            title: format!("{}{framed}", heading(value)),
            row_title: grid.row_title.to_owned(),
            column_title: grid
                .columns
                .iter()
                .map(|c| self.axis_title(c))
                .collect::<Vec<_>>()
                .join(", "),
            reach: match value.unit.as_str() {
                "GB/s" => Reach::Even(0.0, most),
                _ => Reach::Even(least.min(most), most),
            },
            panels,
        };
        Some(Drawn::new(title, chart))
    }

    fn panel(
        &self,
        name: String,
        grid: &Grid,
        value: &Column,
        rows: &[&[Value]],
        all: &[&[Value]],
    ) -> Panel {
        let mut filled: Vec<(Value, Value, Cell)> = Vec::new();
        for row in rows {
            let figure = self.number(row, grid.value);
            let cell = |heading: String, best: bool| Cell {
                value: figure,
                best,
                sign: self.sign(row),
                tip: self.tip(&heading, row, value),
                link: None,
            };
            if grid.mirrored {
                let pair = words(self.frame.cell(row, grid.rows));
                if let Some((one, other)) = pair.split_once('+') {
                    let heading = format!("{} {one} and {other}", grid.rows);
                    let number = |text: &str| text.parse::<u64>().map_or(text.into(), Value::from);
                    let (one, other) = (number(one), number(other));
                    filled.push((one.clone(), other.clone(), cell(heading.clone(), false)));
                    filled.push((other, one, cell(heading, false)));
                }
                continue;
            }
            let down = self.frame.cell(row, grid.rows).clone();
            let across = self.frame.cell(row, grid.columns[0]).clone();
            let heading = [
                &name,
                &named(grid.rows, &down),
                &named(grid.columns[0], &across),
            ];
            let heading = heading.map(String::as_str).join("\n");
            // The best of a pair is the best over every panel.
            let rivals = all.iter().filter(|other| {
                let same =
                    |column: &str| self.frame.cell(other, column) == self.frame.cell(row, column);
                grid.best == Best::OfPair && same(grid.rows) && same(grid.columns[0])
            });
            let most = rivals
                .filter_map(|other| self.number(other, grid.value))
                .fold(0.0, f64::max);
            let best = grid.best == Best::OfPair && figure.is_some_and(|figure| figure >= most);
            filled.push((down, across, cell(heading.trim_start().to_owned(), best)));
        }
        let sorted = |values: Vec<Value>, column: &str| {
            let mut values = values;
            if matches!(column, "tier" | "source") {
                values.sort_by_key(|v| self.tiers.iter().position(|t| *t == words(v)));
            }
            values
        };
        let downs = distinct(filled.iter().map(|(down, ..)| down.clone()));
        let acrosses = distinct(filled.iter().map(|(_, across, _)| across.clone()));
        let downs = sorted(downs, grid.rows);
        let acrosses = sorted(acrosses, grid.columns[0]);
        let mut cells: Vec<Vec<Option<Cell>>> = vec![vec![None; acrosses.len()]; downs.len()];
        for (down, across, cell) in filled {
            let (row, column) = (
                downs.iter().position(|d| *d == down),
                acrosses.iter().position(|a| *a == across),
            );
            if let (Some(row), Some(column)) = (row, column)
                && let Some(place) = cells.get_mut(row).and_then(|row| row.get_mut(column))
            {
                *place = Some(cell);
            }
        }
        if grid.best == Best::OfColumn {
            for across in 0..acrosses.len() {
                let column = cells
                    .iter_mut()
                    .filter_map(|row| row.get_mut(across)?.as_mut());
                let best = (column.filter(|cell| cell.value.is_some()))
                    .max_by(|a, b| a.value.unwrap_or(0.0).total_cmp(&b.value.unwrap_or(0.0)));
                if let Some(cell) = best {
                    cell.best = true;
                }
            }
        }
        let key = |column: &str, value: &Value| match column.ends_with("_bytes") {
            true => named(column, value),
            false => short(value),
        };
        Panel {
            name,
            rows: downs.iter().map(|d| key(grid.rows, d)).collect(),
            columns: acrosses.iter().map(|a| key(grid.columns[0], a)).collect(),
            cells,
        }
    }

    fn axis_title(&self, column: &str) -> String {
        match column {
            "source" => "from".into(),
            "tier" => "to".into(),
            "cores" => "core".into(),
            other => self.column(other).map_or_else(String::new, heading),
        }
    }

    fn bars(&self, title: &str, bars: &Bars, shown: &[&[Value]]) -> Option<Drawn> {
        let value = self.column(bars.value)?;
        let measured: Vec<&[Value]> = (shown.iter().copied())
            .filter(|row| self.number(row, bars.value).is_some())
            .collect();
        let mut drawn = Vec::new();
        for (key, own) in groups(&bars.group, self.frame, &measured) {
            let name = self.name(&bars.group, &measured, &key);
            let of_group = groups(&[bars.bar], self.frame, &own)
                .into_iter()
                .filter_map(|(bar, own)| {
                    let best = own.iter().max_by(|a, b| {
                        let length = |row: &[Value]| self.number(row, bars.value).unwrap_or(0.0);
                        length(a).total_cmp(&length(b))
                    })?;
                    let length = self.number(best, bars.value)?;
                    let bar = bar.first().map(words)?;
                    let threads = match self.frame.cell(best, "threads") {
                        Value::Null => String::new(),
                        threads => format!("\n{}", named("threads", threads)),
                    };
                    let group = if name.is_empty() { "" } else { ", " };
                    let heading = format!("{bar}{group}{name}{threads}");
                    Some(Bar {
                        look: self.look(&[bars.bar], best, shown),
                        value: length,
                        figure: figure(length),
                        limit: self
                            .number(best, "theory_limit")
                            .filter(|_| value.unit == "GB/s"),
                        reach: self.number(best, "p99_ns").filter(|_| value.unit == "ns"),
                        sign: self.sign(best),
                        tip: self.tip(&heading, best, value),
                        name: bar,
                    })
                });
            drawn.push(Group {
                bars: of_group.collect(),
                name,
            });
        }
        (!drawn.is_empty()).then(|| {
            let chart = BarChart {
                label: format!("{title} on {}", self.machine),
                title: bars.value_title.clone(),
                legend: Vec::new(),
                groups: drawn,
            };
            Drawn::new(title, chart)
        })
    }
}
