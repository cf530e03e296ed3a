//! Tables of typed rows.
//!
//! A row is a type with serde and JSON Schema derives. Its fields give the columns: the field's name, its unit
//! (by its type, or by the suffix of its name), its kind and its doc comment. Nested structures become columns
//! with a prefix. Terminal, CSV, Parquet and HTML read frames and never the type behind them.

use std::collections::BTreeMap;

use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::Value;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Words; lists of scalars are joined with `+`, other nested values are kept as JSON text.
    Text,
    /// A whole number above or equal to zero.
    Count,
    /// A number.
    Number,
    /// True or false.
    Flag,
}

/// One column of a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name, for CSV and Parquet: `beside_pause_ns`.
    pub name: String,
    /// The unit as printed: `ns`, `GB/s`, `%`; empty where there is none.
    pub unit: String,
    /// What it holds.
    pub kind: Kind,
    /// What the figure means, from the doc comment of the field.
    pub doc: String,
    /// The column that has the half-width of the 95 % confidence interval of this one, in its unit.
    pub interval: Option<String>,
    path: Vec<String>,
    /// The fields of a value that is written as words, each with what stands before it.
    parts: Vec<(String, String)>,
}

/// Rows under one head.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The name of the list in the document: `points`, `advice`.
    pub name: String,
    /// The columns in the order of the fields.
    pub columns: Vec<Column>,
    /// Rows in the order of the columns; `Null` where a value does not apply.
    pub rows: Vec<Vec<Value>>,
}

impl Frame {
    /// Rows of a type, as a frame.
    pub fn of<R: Serialize + JsonSchema>(name: &str, rows: &[R]) -> Self {
        let columns = columns::<R>();
        let rows = rows.iter().map(|row| {
            let value = serde_json::to_value(row).unwrap_or_default();
            flat(&columns, &value)
        });
        Self {
            name: name.to_owned(),
            rows: rows.collect(),
            columns,
        }
    }

    /// Every list of rows in a document, as frames, in the order of the document's fields.
    ///
    /// `schema` is the JSON Schema of the document's type; lists of scalars are not frames.
    pub fn all_of(schema: &Value, document: &Value) -> Vec<Self> {
        let mut frames = Vec::new();
        for (name, property) in properties(schema, schema) {
            let list = resolve(schema, property);
            if list["type"] != "array" {
                continue;
            }
            let items = resolve(schema, &list["items"]);
            if items.get("properties").is_none() {
                continue;
            }
            let columns = columns_of(schema, items);
            let rows = document[name.as_str()].as_array().into_iter().flatten();
            frames.push(Self {
                rows: rows.map(|row| flat(&columns, row)).collect(),
                name,
                columns,
            });
        }
        frames
    }

    /// The place of a column.
    pub fn place(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == column)
    }

    /// The value of a row in a column; `Null` where the frame has no such column.
    pub fn cell<'r>(&self, row: &'r [Value], column: &str) -> &'r Value {
        static NONE: Value = Value::Null;
        (self.place(column).and_then(|at| row.get(at))).unwrap_or(&NONE)
    }

    /// The number of a row in a column.
    pub fn number(&self, row: &[Value], column: &str) -> Option<f64> {
        self.cell(row, column).as_f64()
    }
}

/// A value as words; empty for none.
pub fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The columns of a row type.
pub fn columns<R: JsonSchema>() -> Vec<Column> {
    let schema = schema_for!(R).to_value();
    columns_of(&schema, &schema)
}

/// The values of a row in the order of the columns.
pub fn flat(columns: &[Column], row: &Value) -> Vec<Value> {
    let cell = |column: &Column| {
        let at = (column.path.iter()).try_fold(row, |value, key| value.get(key));
        match at {
            None => Value::Null,
            Some(value) if !column.parts.is_empty() => {
                let known = (column.parts.iter()).filter_map(|(key, before)| {
                    Some(format!("{before}{}", words(value.get(key)?)))
                });
                known.collect::<String>().into()
            }
            Some(Value::Array(list)) if list.iter().all(is_scalar) => match list.as_slice() {
                [] => Value::Null,
                list => list.iter().map(words).collect::<Vec<_>>().join("+").into(),
            },
            Some(nested @ (Value::Array(_) | Value::Object(_))) => nested.to_string().into(),
            Some(scalar) if column.kind == Kind::Text && !scalar.is_null() => words(scalar).into(),
            Some(scalar) => scalar.clone(),
        }
    };
    columns.iter().map(cell).collect()
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn columns_of(root: &Value, row: &Value) -> Vec<Column> {
    let mut found = Found {
        root,
        columns: Vec::new(),
        intervals: BTreeMap::new(),
    };
    found.add(row, &[], &|name| name.to_owned());
    let Found {
        mut columns,
        intervals,
        ..
    } = found;
    for column in &mut columns {
        column.interval = intervals.get(&column.name).cloned();
    }
    columns
}

struct Found<'s> {
    root: &'s Value,
    columns: Vec<Column>,
    intervals: BTreeMap<String, String>,
}

impl Found<'_> {
    fn add(&mut self, schema: &Value, path: &[String], named: &dyn Fn(&str) -> String) {
        for (figure, interval) in schema["x-intervals"].as_object().into_iter().flatten() {
            self.intervals
                .insert(named(figure), named(&words(interval)));
        }
        for (field, property) in properties(self.root, schema) {
            let target = resolve(self.root, property);
            let path = [path, std::slice::from_ref(&field)].concat();
            if target.get("properties").is_some() && target.get("oneOf").is_none() {
                // `x-words` writes the nested value as words, in a column before those of its fields.
                if let Some(parts) = target["x-words"].as_object() {
                    self.columns.push(Column {
                        name: named(&field),
                        unit: String::new(),
                        kind: Kind::Text,
                        doc: self::words(&property["description"]),
                        interval: None,
                        path: path.clone(),
                        parts: (parts.iter())
                            .map(|(key, before)| (key.clone(), self::words(before)))
                            .collect(),
                    });
                }
                // `x-names: after` puts the nested name first: the mean of `ns` is `mean_ns`.
                let after = property["x-names"] == "after";
                let nested = |name: &str| match after {
                    true => named(&format!("{name}_{field}")),
                    false => named(&format!("{field}_{name}")),
                };
                self.add(target, &path, &nested);
                continue;
            }
            let name = named(&field);
            self.columns.push(Column {
                unit: unit(property, target, &name),
                kind: kind(target),
                doc: words(&property["description"]),
                interval: None,
                name,
                path,
                parts: Vec::new(),
            });
        }
    }
}

/// The fields of an object, those of flattened parts included.
fn properties<'s>(root: &'s Value, schema: &'s Value) -> Vec<(String, &'s Value)> {
    let mut all: Vec<(String, &Value)> = (schema["properties"].as_object().into_iter().flatten())
        .map(|(name, property)| (name.clone(), property))
        .collect();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        all.extend(properties(root, resolve(root, part)));
    }
    all
}

/// Follows references and options to the schema of the value itself.
fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|r| r.strip_prefix("#/$defs/"))
    {
        return root["$defs"]
            .get(name)
            .map_or(schema, |to| resolve(root, to));
    }
    match schema["anyOf"].as_array().map(Vec::as_slice) {
        Some([one, null] | [null, one]) if null["type"] == "null" => resolve(root, one),
        _ => schema,
    }
}

fn kind(schema: &Value) -> Kind {
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    match types.iter().find(|t| **t != "null") {
        Some(&"integer") if schema["minimum"] == 0 => Kind::Count,
        Some(&"integer" | &"number") => Kind::Number,
        Some(&"boolean") => Kind::Flag,
        _ => Kind::Text,
    }
}

/// Suffixes of names that say the unit, longest first.
const SUFFIXES: [(&str, &str); 10] = [
    ("gbps", "GB/s"),
    ("_bytes", "B"),
    ("_pct", "%"),
    ("percent", "%"),
    ("_k_per_s", "1000/s"),
    ("_per_s", "1/s"),
    ("_ghz", "GHz"),
    ("_mhz", "MHz"),
    ("_ns", "ns"),
    ("_s", "s"),
];

fn unit(property: &Value, target: &Value, name: &str) -> String {
    for schema in [property, target] {
        if let Some(unit) = schema["x-unit"].as_str() {
            return unit.to_owned();
        }
    }
    let suffix = SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix));
    match (kind(target), suffix) {
        (Kind::Count | Kind::Number, Some((_, unit))) => (*unit).to_owned(),
        _ => String::new(),
    }
}

/// A row of a document with what says which run and machine it is from, for exports.
pub fn with_prefix(prefix: &[(&str, Value)], frame: &Frame) -> Frame {
    let head = prefix.iter().map(|(name, value)| Column {
        name: (*name).to_owned(),
        unit: String::new(),
        kind: match value {
            Value::Number(_) => Kind::Count,
            Value::Bool(_) => Kind::Flag,
            _ => Kind::Text,
        },
        doc: String::new(),
        interval: None,
        path: Vec::new(),
        parts: Vec::new(),
    });
    let values: Vec<Value> = prefix.iter().map(|(_, value)| value.clone()).collect();
    Frame {
        name: frame.name.clone(),
        columns: head.chain(frame.columns.iter().cloned()).collect(),
        rows: (frame.rows.iter())
            .map(|row| [values.as_slice(), row.as_slice()].concat())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, GbPerSec, Nanos};

    #[derive(Serialize, JsonSchema)]
    struct Inner {
        /// The mean.
        mean: Nanos,
        p99: Option<Nanos>,
    }

    #[derive(Serialize, JsonSchema)]
    #[schemars(extend("x-intervals" = {"gbps": "ci95", "mean_ns": "ci95"}))]
    struct Row {
        /// The tier.
        tier: String,
        cores: Vec<u32>,
        block: Option<Bytes>,
        gbps: Option<GbPerSec>,
        #[schemars(extend("x-names" = "after"))]
        ns: Option<Inner>,
        ci95: Option<f64>,
        change_pct: f64,
        prefetch: bool,
    }

    #[derive(Serialize, JsonSchema)]
    struct Rates {
        touches_per_s: f64,
        offered_k_per_s: f64,
        run_s: f64,
    }

    #[test]
    fn rates_are_by_the_second() {
        let units: Vec<String> = (columns::<Rates>().into_iter())
            .map(|column| column.unit)
            .collect();
        assert_eq!(units, ["1/s", "1000/s", "s"]);
    }

    #[derive(Serialize, JsonSchema)]
    #[schemars(extend("x-words" = {"tier": "", "op": ":"}))]
    struct Side {
        tier: String,
        op: Option<String>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Pair {
        /// Who.
        victim: Side,
    }

    #[test]
    fn a_value_with_words_is_a_column_before_its_fields() {
        let side = |op: Option<&str>| Pair {
            victim: Side {
                tier: "dram".into(),
                op: op.map(str::to_owned),
            },
        };
        let frame = Frame::of("pairs", &[side(Some("ld"))]);
        let names: Vec<&str> = frame.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["victim", "victim_tier", "victim_op"]);
        assert_eq!(frame.cell(&frame.rows[0], "victim"), "dram:ld");
    }

    #[derive(Serialize, JsonSchema)]
    struct Document {
        name: String,
        rows: Vec<Row>,
    }

    fn row() -> Row {
        Row {
            tier: "dram".into(),
            cores: vec![0, 3],
            block: Some(Bytes(64)),
            gbps: None,
            ns: Some(Inner {
                mean: Nanos(90.5),
                p99: None,
            }),
            ci95: Some(0.5),
            change_pct: -1.0,
            prefetch: true,
        }
    }

    #[test]
    fn a_row_type_gives_names_units_kinds_and_docs() {
        let frame = Frame::of("rows", &[row()]);
        let column = |name: &str| &frame.columns[frame.place(name).unwrap()];
        let names: Vec<&str> = frame.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "tier",
                "cores",
                "block",
                "gbps",
                "mean_ns",
                "p99_ns",
                "ci95",
                "change_pct",
                "prefetch"
            ]
        );
        assert_eq!(column("tier").doc, "The tier.");
        assert_eq!(column("block").kind, Kind::Count);
        assert_eq!([&column("block").unit, &column("gbps").unit], ["B", "GB/s"]);
        assert_eq!(
            [&column("p99_ns").unit, &column("change_pct").unit],
            ["ns", "%"]
        );
        assert_eq!(column("mean_ns").interval.as_deref(), Some("ci95"));
        assert_eq!(column("p99_ns").interval, None);
        assert_eq!(column("prefetch").kind, Kind::Flag);
    }

    #[test]
    fn a_row_is_flat_and_what_does_not_apply_is_null() {
        let frame = Frame::of("rows", &[row()]);
        let [cells] = frame.rows.as_slice() else {
            panic!("one row")
        };
        assert_eq!(frame.cell(cells, "cores"), "0+3");
        assert_eq!(frame.number(cells, "mean_ns"), Some(90.5));
        assert_eq!(frame.cell(cells, "p99_ns"), &Value::Null);
        assert_eq!(frame.cell(cells, "no such column"), &Value::Null);
    }

    #[test]
    fn every_list_of_rows_in_a_document_is_a_frame() {
        let schema = schema_for!(Document).to_value();
        let document = serde_json::to_value(Document {
            name: "x".into(),
            rows: vec![row(), row()],
        });
        let frames = Frame::all_of(&schema, &document.unwrap());
        assert_eq!(frames.len(), 1);
        assert_eq!((frames[0].name.as_str(), frames[0].rows.len()), ("rows", 2));
        assert_eq!(frames[0].columns, columns::<Row>());
    }
}
