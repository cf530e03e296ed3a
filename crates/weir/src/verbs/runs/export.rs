//! `weir runs export`: runs for other tools.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use weir_model::document::{Point, Record, ReproduceDocument};

use crate::cli::Format;
use crate::context::Context;
use crate::documents::{RecordDocument, RunLine};
use crate::failure::{Failure, Result};
use crate::output::{Record as Columns, Rows, point_rows, print, rows_to_csv, to_json, to_parquet};
use crate::store::StoredRun;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir runs export 3 --as csv -o run3.csv
  weir runs export 3 7 --as parquet -o runs.parquet --samples samples.parquet
  weir runs export last --as record | jq '.records[0].counters'")]
pub struct Args {
    /// Numbers, `last`, or beginnings of machines' names.
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// What to write [default: the document as JSON, or CSV with --format csv].
    #[arg(long = "as", value_enum)]
    kind: Option<Export>,
    /// The file [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Another file for raw samples and latency buckets, as CSV or Parquet.
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
}

/// What an export holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Export {
    /// The document, as the run printed it with --format json.
    Json,
    /// One row for each figure.
    Csv,
    /// One row for each figure, with the run, in typed columns.
    Parquet,
    /// The document with raw samples, counters, arguments and the computer.
    Record,
}

/// Writes the runs.
///
/// # Errors
/// A run holds another kind of document, or a file cannot be written.
pub fn run(args: &Args, runs: Vec<StoredRun>, context: &Context) -> Result<()> {
    let kind = args.kind.unwrap_or(match context.global.format {
        Format::Csv => Export::Csv,
        Format::Table | Format::Json => Export::Json,
    });
    if let Some(file) = &args.samples {
        let rows = sample_rows(&runs)?;
        let bytes = match kind {
            Export::Csv => rows_to_csv(&rows)?.into_bytes(),
            Export::Parquet => to_parquet(&rows)?,
            Export::Json | Export::Record => {
                return Err(Failure::request(
                    "--samples is written as CSV or Parquet; add --as csv or --as parquet, or take --as record",
                ));
            }
        };
        keep(file, &bytes)?;
    }
    let text = match kind {
        Export::Csv => match runs.as_slice() {
            [one] => super::as_csv(one)?,
            several => rows_to_csv(&figure_rows(several)?)?,
        },
        Export::Parquet => {
            let bytes = to_parquet(&figure_rows(&runs)?)?;
            let Some(file) = &args.output else {
                return Err(Failure::request(
                    "Parquet is no text for a terminal; name a file with -o",
                ));
            };
            return keep(file, &bytes);
        }
        Export::Json => one_or_all(runs.into_iter().map(|run| run.document).collect())?,
        Export::Record => one_or_all(runs.into_iter().map(record).collect())?,
    };
    match &args.output {
        None => print(&text),
        Some(file) => keep(file, text.as_bytes()),
    }
}

fn keep(file: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(file, bytes)
        .with_context(|| format!("cannot write {}", file.display()))
        .map_err(Failure::Work)
}

/// One document, or a list of several.
fn one_or_all(documents: Vec<impl serde::Serialize>) -> Result<String> {
    match documents.as_slice() {
        [one] => to_json(one),
        several => to_json(&several),
    }
}

/// Columns that say which run a figure is of; its machine's name is a column of the figure.
const RUN_COLUMNS: [&str; 8] = [
    "run_id",
    "began_utc",
    "verb",
    "machine_kind",
    "digest",
    "seed",
    "weir",
    "seq",
];

fn run_fields(run: &RunLine, seq: usize) -> Map<String, Value> {
    let fields = json!({
        "run_id": run.id,
        "began_utc": run.started,
        "verb": run.verb,
        "machine_kind": run.machine_kind,
        "digest": run.digest,
        "seed": run.seed,
        "weir": run.weir,
        "seq": seq,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// One row for each figure, with the run it is of.
fn figure_rows(runs: &[StoredRun]) -> Result<Rows> {
    let mut rows = Rows::default();
    rows.columns.extend(RUN_COLUMNS);
    rows.columns.extend(columns_of(point_rows("", &[])));
    for run in runs {
        if run.schema() == ReproduceDocument::SCHEMA {
            return Err(Failure::request(format!(
                "run {} compares with papers and has no figures of a bench; take --as json or --as csv, alone",
                run.summary.id
            )));
        }
        let document = super::bench_document(run)?;
        let points = point_rows(&document.header.machine.name, &document.points);
        for (point, &seq) in points.zip(&run.places) {
            let mut row = run_fields(&run.summary, seq);
            let point = serde_json::to_value(point)
                .map_err(|error| anyhow::Error::new(error).context("cannot export"))?;
            if let Value::Object(fields) = point {
                row.extend(fields);
            }
            rows.rows.push(row);
        }
    }
    Ok(rows)
}

fn columns_of<R: Columns>(_: impl Iterator<Item = R>) -> &'static [&'static str] {
    R::COLUMNS
}

/// One row for each window, and one for each latency that was seen.
fn sample_rows(runs: &[StoredRun]) -> Result<Rows> {
    let columns = [
        "run_id",
        "seq",
        "kind",
        "window_ns",
        "gbps",
        "mean_ns",
        "latency_ns",
        "count",
    ];
    let mut rows = Rows {
        columns: columns.to_vec(),
        rows: Vec::new(),
    };
    for run in runs {
        let document = super::bench_document(run)?;
        let mut add = |row: Value| {
            if let Value::Object(row) = row {
                rows.rows.push(row);
            }
        };
        let figures = document.points.iter().zip(&run.places).zip(&run.records);
        for ((point, seq), record) in figures {
            let record: Record = serde_json::from_value(record.clone())
                .map_err(|error| anyhow::Error::new(error).context("cannot read the samples"))?;
            let (id, unit) = (run.summary.id, unit(point));
            for (window, figure) in &record.samples {
                add(json!({
                    "run_id": id, "seq": seq, "kind": "window", "window_ns": window.get(),
                    unit: figure,
                }));
            }
            for (latency, count) in &record.latency {
                add(json!({
                    "run_id": id, "seq": seq, "kind": "latency", "latency_ns": latency.get(),
                    "count": count,
                }));
            }
        }
    }
    Ok(rows)
}

/// The column of a window's figure.
fn unit(point: &Point) -> &'static str {
    if point.gbps.is_some() {
        "gbps"
    } else {
        "mean_ns"
    }
}

fn record(run: StoredRun) -> RecordDocument {
    let words = run.arguments.as_array().into_iter().flatten();
    RecordDocument {
        schema: RecordDocument::SCHEMA.into(),
        arguments: words
            .filter_map(|w| w.as_str())
            .map(str::to_owned)
            .collect(),
        run: run.summary,
        host: run.host,
        document: run.document,
        records: run.records,
    }
}
