//! Results as rows of comma-separated values, with a head.

use serde::Serialize;
use serde_json::Value;
use weir_model::document::{Point, ReproduceRow, Steadiness};
use weir_model::topology::TierName;

use super::Rows;
use crate::documents::{ComparedFigure, PlatformLine, RunLine};
use crate::failure::{Failure, Result};

/// A type whose values are rows. Its columns are named here and not taken from a row: a field that
/// is left out where it is absent would take its column along.
pub trait Record: Serialize {
    /// Every field that a row can have, in order.
    const COLUMNS: &'static [&'static str];
}

impl<R: Record> Record for &R {
    const COLUMNS: &'static [&'static str] = R::COLUMNS;
}

/// One figure, flat. Columns that do not apply are empty.
#[derive(Debug, Serialize)]
pub struct PointRow<'a> {
    machine: &'a str,
    experiment: &'a str,
    tier: &'a str,
    op: &'a str,
    pattern: &'a str,
    threads: u32,
    cores: String,
    block_bytes: Option<u64>,
    wss_bytes: Option<u64>,
    read_share: Option<f64>,
    source: Option<&'a str>,
    kernel: Option<&'a str>,
    batch: Option<u32>,
    prefetch: bool,
    beside_tier: Option<&'a str>,
    beside_op: Option<&'a str>,
    beside_pattern: Option<&'a str>,
    beside_threads: Option<u32>,
    beside_read_share: Option<f64>,
    beside_pause_ns: Option<f64>,
    beside_gbps: Option<f64>,
    beside_traffic_gbps: Option<f64>,
    gbps: Option<f64>,
    mean_ns: Option<f64>,
    p50_ns: Option<f64>,
    p90_ns: Option<f64>,
    p99_ns: Option<f64>,
    p999_ns: Option<f64>,
    p9999_ns: Option<f64>,
    p99999_ns: Option<f64>,
    max_ns: Option<f64>,
    ci95: Option<f64>,
    samples: u32,
    repetitions: u32,
    steadiness: Option<Steadiness>,
    theory_limit: Option<f64>,
    theory_basis: Option<&'a str>,
    conditions: String,
    error: Option<&'a str>,
}

impl Record for PointRow<'_> {
    const COLUMNS: &'static [&'static str] = &[
        "machine",
        "experiment",
        "tier",
        "op",
        "pattern",
        "threads",
        "cores",
        "block_bytes",
        "wss_bytes",
        "read_share",
        "source",
        "kernel",
        "batch",
        "prefetch",
        "beside_tier",
        "beside_op",
        "beside_pattern",
        "beside_threads",
        "beside_read_share",
        "beside_pause_ns",
        "beside_gbps",
        "beside_traffic_gbps",
        "gbps",
        "mean_ns",
        "p50_ns",
        "p90_ns",
        "p99_ns",
        "p999_ns",
        "p9999_ns",
        "p99999_ns",
        "max_ns",
        "ci95",
        "samples",
        "repetitions",
        "steadiness",
        "theory_limit",
        "theory_basis",
        "conditions",
        "error",
    ];
}

impl Record for ReproduceRow {
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "paper",
        "what",
        "condition",
        "published",
        "ours",
        "unit",
        "difference_pct",
        "kind",
        "note",
    ];
}

impl Record for PlatformLine {
    const COLUMNS: &'static [&'static str] = &["name", "kind", "summary"];
}

impl Record for ComparedFigure {
    const COLUMNS: &'static [&'static str] = &[
        "run_a",
        "run_b",
        "experiment",
        "tier",
        "op",
        "pattern",
        "threads",
        "what",
        "unit",
        "a",
        "b",
        "ratio",
        "beyond_chance",
    ];
}

impl Record for RunLine {
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "started",
        "verb",
        "machine",
        "machine_kind",
        "digest",
        "seed",
        "weir",
        "kept",
        "planned",
        "partial",
        "elapsed_s",
        "best_gbps",
        "least_ns",
    ];
}

/// Points as flat rows.
pub fn point_rows<'a>(
    machine: &'a str,
    points: &'a [Point],
) -> impl Iterator<Item = PointRow<'a>> + 'a {
    points.iter().map(move |p| {
        let ns = p.ns.as_ref();
        let beside = p.beside.as_ref();
        let cores: Vec<String> = p.cores.iter().map(u32::to_string).collect();
        PointRow {
            machine,
            experiment: p.experiment.name(),
            tier: p.tier.as_str(),
            op: p.op.name(),
            pattern: &p.pattern,
            threads: p.threads,
            cores: cores.join("+"),
            block_bytes: p.block_bytes.map(|b| b.get()),
            wss_bytes: p.wss_bytes.map(|b| b.get()),
            read_share: p.read_share,
            source: p.source.as_ref().map(TierName::as_str),
            kernel: p.kernel.as_deref(),
            batch: p.batch,
            prefetch: p.prefetch,
            beside_tier: beside.map(|b| b.tier.as_str()),
            beside_op: beside.map(|b| b.op.name()),
            beside_pattern: beside.map(|b| b.pattern.as_str()),
            beside_threads: beside.map(|b| b.threads),
            beside_read_share: beside.map(|b| b.read_share),
            beside_pause_ns: beside.map(|b| b.pause_ns.get()),
            beside_gbps: beside.and_then(|b| b.gbps).map(|g| g.get()),
            beside_traffic_gbps: beside.and_then(|b| b.traffic_gbps).map(|g| g.get()),
            gbps: p.gbps.map(|g| g.get()),
            mean_ns: ns.map(|l| l.mean.get()),
            p50_ns: ns.map(|l| l.p50.get()),
            p90_ns: ns.and_then(|l| l.p90).map(|q| q.get()),
            p99_ns: ns.and_then(|l| l.p99).map(|q| q.get()),
            p999_ns: ns.and_then(|l| l.p999).map(|q| q.get()),
            p9999_ns: ns.and_then(|l| l.p9999).map(|q| q.get()),
            p99999_ns: ns.and_then(|l| l.p99999).map(|q| q.get()),
            max_ns: ns.map(|l| l.max.get()),
            ci95: p.ci95,
            samples: p.samples,
            repetitions: p.repetitions,
            steadiness: p.steadiness,
            theory_limit: p.theory.as_ref().map(|t| t.limit),
            theory_basis: p.theory.as_ref().map(|t| t.basis.as_str()),
            conditions: p.conditions.join("; "),
            error: p.error.as_deref(),
        }
    })
}

/// Rows as text under a head; every column in every row, empty where a row has no such field.
///
/// # Errors
/// A row has a field that is no column, or one that does not flatten.
pub fn to_csv<R: Record>(rows: impl IntoIterator<Item = R>) -> Result<String> {
    write(
        R::COLUMNS,
        rows.into_iter().map(|row| serde_json::to_value(&row)),
    )
}

/// As [`to_csv`], of rows that carry their head with them.
///
/// # Errors
/// A row has a field that is no column, or one that does not flatten.
pub fn rows_to_csv(rows: &Rows) -> Result<String> {
    write(
        &rows.columns,
        rows.rows.iter().map(|row| Ok(Value::Object(row.clone()))),
    )
}

/// Writes rows, or stops at the first that cannot be one.
fn write(
    columns: &[&str],
    rows: impl Iterator<Item = serde_json::Result<Value>>,
) -> Result<String> {
    let cannot = |error: anyhow::Error| Failure::Work(error.context("cannot write CSV"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(columns)
        .map_err(|error| cannot(error.into()))?;
    for row in rows {
        let row = row.map_err(|error| cannot(error.into()))?;
        let fields = cells(&row, columns).map_err(cannot)?;
        writer
            .write_record(fields)
            .map_err(|error| cannot(error.into()))?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| cannot(error.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The fields of a row in the order of the columns.
fn cells(row: &Value, columns: &[&str]) -> anyhow::Result<Vec<String>> {
    let fields = row
        .as_object()
        .ok_or_else(|| anyhow::anyhow!("a row has no fields"))?;
    if let Some(unknown) = fields.keys().find(|key| !columns.contains(&key.as_str())) {
        anyhow::bail!("the field `{unknown}` has no column");
    }
    let cell = |column: &&str| match fields.get(*column) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => Ok(value.to_string()),
        Some(_) => anyhow::bail!("the field `{column}` does not fit into a cell"),
    };
    columns.iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::option;
    use proptest::prelude::*;
    use weir_model::document::RowKind;

    fn read(text: &str) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_bytes());
        let record = |r: csv::StringRecord| r.iter().map(str::to_owned).collect();
        reader.records().map(|r| record(r.unwrap())).collect()
    }

    fn row() -> impl Strategy<Value = ReproduceRow> {
        let figure = || option::of(-1e6..1e6_f64);
        (".{0,12}", figure(), figure(), ".{0,12}").prop_map(|(what, ours, off, note)| {
            ReproduceRow {
                id: "SUP-001".into(),
                paper: "supmario".into(),
                what,
                condition: String::new(),
                published: 1.5,
                ours,
                unit: "ns".into(),
                difference_pct: off,
                kind: RowKind::Predicted,
                note,
            }
        })
    }

    proptest! {
        #[test]
        fn every_record_has_every_column_and_each_field_is_in_its_own(
            rows in prop::collection::vec(row(), 0..6),
        ) {
            let records = read(&to_csv(&rows).unwrap());
            prop_assert_eq!(records.len(), rows.len() + 1);
            prop_assert_eq!(&records[0], ReproduceRow::COLUMNS);
            for (record, row) in records[1..].iter().zip(&rows) {
                prop_assert_eq!(record.len(), records[0].len());
                let at = |name| &record[records[0].iter().position(|c| c == name).unwrap()];
                prop_assert_eq!(at("what"), &row.what);
                prop_assert_eq!(at("note"), &row.note);
                prop_assert_eq!(at("ours").parse::<f64>().ok(), row.ours);
                prop_assert_eq!(at("difference_pct").parse::<f64>().ok(), row.difference_pct);
            }
        }
    }

    #[test]
    fn a_field_without_a_column_is_not_lost_in_silence() {
        #[derive(Serialize)]
        struct Wide {
            a: u32,
            b: u32,
        }
        impl Record for Wide {
            const COLUMNS: &'static [&'static str] = &["a"];
        }
        let failure = to_csv([Wide { a: 1, b: 2 }]).unwrap_err();
        assert!(failure.message().unwrap().contains("`b`"));
    }
}
