//! Views as tables that fit the terminal.

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;
use weir_lab::view::{Col, Grid, Medium, Shape, View};
use weir_model::frame::{Frame, Kind, words};

use super::{cell, distinct, groups, head, holds, named, plain, rows, titled};
use crate::output::{Column, Table, figure, width, wrap};

/// Every view of text, one table after the other.
pub fn tables(frames: &[Frame], views: &[View]) -> String {
    let mut text = String::new();
    for view in views.iter().filter(|view| view.medium != Medium::Page) {
        let Some(frame) = frames.iter().find(|frame| frame.name == view.frame) else {
            continue;
        };
        let shown = rows(view, frame);
        for (group, rows) in groups(&view.each, frame, &shown) {
            let title = titled(view, &group);
            match &view.shape {
                Shape::Table(columns) => {
                    let most = view.most.unwrap_or(rows.len()).min(rows.len());
                    let (shown, more) = rows.split_at(most);
                    if let Some(sheet) = sheet(title, columns, frame, shown) {
                        table(sheet, &mut text);
                    }
                    if !more.is_empty() {
                        let more = format!("and {} more; --format csv has every row", more.len());
                        text.push_str(&wrap(&more, "", ""));
                    }
                }
                Shape::Grid(shape) => grid(&title, shape, frame, &rows, &mut text),
                _ => {}
            }
        }
    }
    text
}

fn begin(title: &str, text: &mut String) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&wrap(title, "", "  "));
}

/// A table before it is laid out.
pub struct Sheet {
    /// The heading.
    pub title: String,
    /// The heads.
    pub heads: Vec<Column>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

/// Every view that is a table, for the page.
pub fn sheets(frames: &[Frame], views: &[View]) -> Vec<Sheet> {
    let mut sheets = Vec::new();
    for view in views {
        let frame = frames.iter().find(|frame| frame.name == view.frame);
        if let (Shape::Table(columns), Some(frame)) = (&view.shape, frame) {
            let of_group = |(group, rows): (Vec<Value>, Vec<&[Value]>)| {
                sheet(titled(view, &group), columns, frame, &rows)
            };
            let groups = groups(&view.each, frame, &rows(view, frame));
            sheets.extend(groups.into_iter().filter_map(of_group));
        }
    }
    sheets
}

fn sheet(title: String, columns: &[Col], frame: &Frame, rows: &[&[Value]]) -> Option<Sheet> {
    let has = |col: &Col| rows.iter().any(|row| !frame.cell(row, col.name).is_null());
    let known: Vec<(&Col, &weir_model::frame::Column)> = (columns.iter())
        .filter(|col| !col.if_any || has(col))
        .filter_map(|col| Some((col, frame.columns.get(frame.place(col.name)?)?)))
        .collect();
    let heads = known.iter().map(|(col, column)| {
        let head = match (&col.head, col.without_unit) {
            (Some(named), true) => named.to_string(),
            (named, _) => head(column, named.as_deref()),
        };
        match column.kind {
            Kind::Text | Kind::Flag => Column::words(head),
            Kind::Count | Kind::Number => Column::number(head),
        }
    });
    let shown = |row: &[Value], col: &Col, column| {
        let value = frame.cell(row, col.name);
        match (value.as_u64(), value.as_f64(), col.and) {
            (Some(mask), ..) if col.bits => mask.count_ones().to_string(),
            (_, Some(number), _) if col.places.is_some() => match col.places {
                Some(places) if number.abs() < 100.0 => format!("{number:.places$}"),
                _ => figure(number),
            },
            (_, Some(share), _) if col.share => format!("{:.0} %", share * 100.0),
            (_, Some(number), _) if col.small && number != 0.0 && number.abs() < 0.005 => {
                let places = -number.abs().log10().floor();
                format!("{number:.*}", (places as usize).min(6))
            }
            _ if col.in_words => words(value).replace('_', " "),
            (.., Some(more)) => format!("{}, {}", words(value), words(frame.cell(row, more))),
            _ => cell(frame, row, column, col.signed, col.empty),
        }
    };
    let cells = rows.iter().map(|row| {
        let cells = known.iter().map(|(col, column)| shown(row, col, column));
        cells.collect()
    });
    (!rows.is_empty() && !known.is_empty()).then(|| Sheet {
        title,
        heads: heads.collect(),
        rows: cells.collect(),
    })
}

fn table(sheet: Sheet, text: &mut String) {
    let mut table = Table::new(&sheet.heads);
    for row in sheet.rows {
        table.row(row);
    }
    begin(&sheet.title, text);
    text.push_str(&table.to_string());
}

fn grid(title: &str, grid: &Grid, frame: &Frame, rows: &[&[Value]], text: &mut String) {
    let Some(value) = frame.place(grid.value).and_then(|at| frame.columns.get(at)) else {
        return;
    };
    let pair = |row: &[Value]| -> Option<(Value, Value)> {
        if grid.mirrored {
            let (one, other) =
                words(frame.cell(row, grid.rows))
                    .split_once('+')
                    .map(|(a, b)| {
                        let number =
                            |text: &str| text.parse::<u64>().map_or(text.into(), Value::from);
                        (number(a), number(b))
                    })?;
            return Some((one, other));
        }
        let names = grid.columns.iter().map(|column| {
            let value = frame.cell(row, column);
            match grid.columns.len() {
                1 => value.clone(),
                _ => named(column, value).into(),
            }
        });
        let names: Vec<Value> = names.collect();
        let column = match names.as_slice() {
            [one] => one.clone(),
            several => {
                // A pair of tiers is a way from the source to the other.
                let way = grid.columns.first() == Some(&"source");
                let joint = if way { "\nto " } else { "\n" };
                several
                    .iter()
                    .map(words)
                    .collect::<Vec<_>>()
                    .join(joint)
                    .into()
            }
        };
        Some((frame.cell(row, grid.rows).clone(), column))
    };
    let placed: Vec<(Value, Value, &[Value])> = (rows.iter())
        .filter_map(|row| pair(row).map(|(name, column)| (name, column, *row)))
        .collect();
    let names = distinct(placed.iter().map(|(name, ..)| name.clone()));
    let columns = distinct(placed.iter().map(|(_, column, _)| column.clone()));
    if names.is_empty() {
        return;
    }
    let shown = |name: &Value, column: &Value| {
        let place = placed.iter().find(|(n, c, _)| n == name && c == column);
        place.map_or(String::new(), |(.., row)| {
            let marks = (grid.marks.iter()).filter(|mark| holds(frame, rows, row, &mark.of));
            let marks: String = marks.map(|mark| mark.sign).collect();
            cell(frame, row, value, grid.signed, "-") + &marks
        })
    };
    let limit = |column: &Value| {
        let of_column = placed.iter().filter(|(_, c, _)| c == column);
        let limits = of_column.filter_map(|(.., row)| frame.number(row, "theory_limit"));
        limits.max_by(f64::total_cmp)
    };
    let row_head = grid.row_title;
    // Rows that need no title are named in words.
    let row_head_column = match row_head.is_empty() {
        true => Column::words(row_head),
        false => Column::number(row_head),
    };
    let key = |name: &Value| match grid.rows.ends_with("_bytes") {
        true => named(grid.rows, name),
        false => words(name),
    };
    let mut lines: Vec<Vec<String>> = (names.iter())
        .map(|name| columns.iter().map(|column| shown(name, column)).collect())
        .collect();
    let mut keys: Vec<String> = names.iter().map(key).collect();
    let limits: Vec<Option<f64>> = columns.iter().map(limit).collect();
    if grid.limits && limits.iter().any(Option::is_some) {
        keys.push("limit".into());
        lines.push(
            limits
                .into_iter()
                .map(|l| l.map_or(String::new(), figure))
                .collect(),
        );
    }
    let heads: Vec<String> = (columns.iter())
        .map(|column| match grid.columns.first() {
            Some(name) if name.ends_with("_bytes") => named(name, column),
            _ => words(column),
        })
        .collect();
    let first = keys
        .iter()
        .map(|k| k.width())
        .max()
        .unwrap_or(0)
        .max(row_head.width());
    let unit = match value.unit.as_str() {
        "" => String::new(),
        unit => format!(" [{unit}]"),
    };
    for part in parts(first, &heads, &lines) {
        let of_part = heads.iter().skip(part.start).take(part.len());
        let shown: Vec<Column> = std::iter::once(row_head_column.clone())
            .chain(of_part.map(|head| Column::number(head.clone())))
            .collect();
        let mut table = Table::new(&shown);
        for (key, line) in keys.iter().zip(&lines) {
            let cells = line.iter().skip(part.start).take(part.len());
            if cells.clone().any(|cell| !cell.is_empty()) {
                table.row(std::iter::once(key.clone()).chain(cells.cloned()));
            }
        }
        begin(&format!("{title}{unit}"), text);
        text.push_str(&table.to_string());
    }
    for mark in &grid.marks {
        if placed
            .iter()
            .any(|(.., row)| holds(frame, rows, row, &mark.of))
        {
            text.push_str(&wrap(
                &format!("{} marks {}", mark.sign, mark.words),
                "",
                "  ",
            ));
        }
    }
}

/// Columns that fit next to each other.
fn parts(first: usize, heads: &[String], lines: &[Vec<String>]) -> Vec<std::ops::Range<usize>> {
    let wide = |at: usize| {
        let head = heads
            .get(at)
            .into_iter()
            .flat_map(|h| h.lines())
            .map(|l| l.width());
        let cells = lines
            .iter()
            .filter_map(|line| line.get(at))
            .map(|cell| cell.width());
        head.chain(cells).max().unwrap_or(0) + 2
    };
    let mut parts: Vec<std::ops::Range<usize>> = Vec::new();
    let mut used = usize::MAX;
    for at in 0..heads.len() {
        match parts.last_mut() {
            Some(part) if used.saturating_add(wide(at)) <= width() => {
                part.end = at + 1;
                used += wide(at);
            }
            _ => {
                parts.push(at..at + 1);
                used = first + 2 + wide(at);
            }
        }
    }
    parts
}

/// The head of a column on one line: `mean [ns]`.
pub fn heading(column: &weir_model::frame::Column) -> String {
    let head = head(column, None);
    match head.split_once('\n') {
        Some((name, unit)) => format!("{name} [{unit}]"),
        // A column that is named after its unit.
        None if head == "GB/s" => format!("bandwidth [{head}]"),
        None => head,
    }
}

/// A value as tables show it, without its interval.
pub fn value(frame: &Frame, row: &[Value], column: &weir_model::frame::Column) -> String {
    plain(column, frame.cell(row, &column.name), false)
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Serialize;
    use weir_lab::view::col;

    use super::*;

    #[derive(Serialize, JsonSchema)]
    struct Row {
        kind: &'static str,
        gbps: f64,
    }

    #[test]
    fn names_are_words_and_small_figures_keep_a_digit_where_a_column_says_so() {
        let row = |gbps| Row {
            kind: "not_modelled",
            gbps,
        };
        let frame = Frame::of("rows", &[0.0, 0.0003, 0.00496, 0.005, 7.25].map(row));
        let columns = vec![col("kind").in_words(), col("gbps").small(), col("gbps")];
        let text = tables(&[frame], &[View::table("rows", "", columns)]);
        let lines: Vec<Vec<&str>> = (text.lines().rev().take(5))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert!(lines.iter().all(|line| line[..2] == ["not", "modelled"]));
        let small: Vec<&str> = lines.iter().rev().map(|line| line[2]).collect();
        assert_eq!(small, ["0.00", "0.0003", "0.005", "0.01", "7.25"]);
    }
}
