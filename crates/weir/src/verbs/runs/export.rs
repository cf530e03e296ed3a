//! `weir runs export`: runs for other tools.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize as _, Serialize};
use serde_json::json;
use weir_model::document::Record;
use weir_model::frame::{Frame, with_prefix};

use crate::context::{Context, Format};
use crate::documents::RecordDocument;
use crate::failure::{Failure, Result};
use crate::files;
use crate::output::{print, print_bytes, to_json};
use crate::render::csv;
use crate::render::parquet::to_parquet;
use crate::store::{RunId, StoredRun};
use crate::stored;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir runs export 3 --as csv -o run3.csv
  weir runs export 3 7 --as parquet -o runs.parquet --samples samples.parquet
  weir runs export 5 --as csv --frame surface
  weir runs export 6 --as mess -o curves
  weir runs export last --as record | jq '.records[0].counters'")]
pub struct Args {
    /// Numbers, `last`, or beginnings of machines' names.
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// What to write [default: by --format or the ending of the file, else the
    /// document as JSON].
    #[arg(long = "as", value_enum)]
    kind: Option<Export>,
    /// The list of rows for CSV and Parquet, such as cells, surface, latencies
    /// or points of `interplay` [default: the document's first].
    #[arg(long, value_name = "NAME")]
    frame: Option<String>,
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
    /// STREAM's figures as STREAMer's CSV files, one for each memory and access.
    Streamer,
    /// Latency under load as Mess curves, a file for each tier and share of reads.
    Mess,
}

/// Writes the runs.
///
/// # Errors
/// A run holds another kind of document, or a file cannot be written.
pub fn run(args: &Args, runs: Vec<StoredRun>, context: &Context) -> Result<()> {
    let ending = args.output.as_deref().and_then(Path::extension);
    let by_format = match context.global.format {
        Format::Csv => Export::Csv,
        Format::Json => Export::Json,
        Format::Table => match ending.and_then(|ending| ending.to_str()) {
            Some("csv") => Export::Csv,
            Some("parquet") => Export::Parquet,
            _ => Export::Json,
        },
    };
    let kind = args.kind.unwrap_or(by_format);
    if let Some(file) = &args.samples {
        if args.output.as_ref() == Some(file) {
            return Err(Failure::request(format!(
                "--samples {} is the file of -o; name another one",
                file.display()
            )));
        }
        let rows = sample_rows(&runs)?;
        let bytes = match kind {
            Export::Csv => csv::to_csv(&rows)?.into_bytes(),
            Export::Parquet => to_parquet(&rows)?,
            Export::Json | Export::Record | Export::Streamer | Export::Mess => {
                return Err(Failure::request(
                    "--samples is written as CSV or Parquet; add --as csv or --as parquet, or take --as record",
                ));
            }
        };
        files::write(file, &bytes)?;
    }
    let list = args.frame.as_deref();
    if let (Some(list), false) = (list, matches!(kind, Export::Csv | Export::Parquet)) {
        return Err(Failure::request(format!(
            "--frame {list} is a list of rows, for CSV and Parquet; add --as csv or --as parquet"
        )));
    }
    let text = match kind {
        Export::Csv => csv::to_csv(&match runs.as_slice() {
            [one] => stored::frame(one, list)?,
            several => figure_rows(several, list)?,
        })?,
        Export::Parquet => {
            let bytes = to_parquet(&figure_rows(&runs, list)?)?;
            return match &args.output {
                Some(file) => files::write(file, &bytes),
                None => print_bytes(&bytes),
            };
        }
        Export::Streamer => {
            return match runs.as_slice() {
                [run] => super::streamer::write(run, args.output.as_deref()),
                _ => Err(Failure::request("--as streamer writes one run")),
            };
        }
        Export::Mess => {
            return match runs.as_slice() {
                [run] => super::mess::write(run, args.output.as_deref()),
                _ => Err(Failure::request("--as mess writes one run")),
            };
        }
        Export::Json => one_or_all(runs.iter().map(stored::json).collect::<Result<_>>()?)?,
        Export::Record => one_or_all(runs.into_iter().map(record).collect())?,
    };
    match &args.output {
        None => print(&text),
        Some(file) => files::write(file, text),
    }
}

/// One document, or a list of several.
fn one_or_all(documents: Vec<impl serde::Serialize>) -> Result<String> {
    match documents.as_slice() {
        [one] => to_json(one),
        several => to_json(&several),
    }
}

/// One row for each figure of runs of one kind, with the run it is of.
fn figure_rows(runs: &[StoredRun], list: Option<&str>) -> Result<Frame> {
    let mut all: Option<Frame> = None;
    for run in runs {
        let rows = stored::frame(run, list)?;
        let head = &run.summary;
        let fields = |seq: usize| {
            [
                ("run_id", json!(head.id)),
                ("began_utc", json!(head.started)),
                ("verb", json!(head.verb)),
                ("machine_kind", json!(head.machine_kind)),
                ("digest", json!(head.digest)),
                ("seed", json!(head.seed)),
                ("weir", json!(head.weir)),
                ("seq", json!(seq)),
            ]
        };
        let mut own = with_prefix(
            &fields(0),
            &Frame {
                rows: Vec::new(),
                ..rows.clone()
            },
        );
        for (at, row) in rows.rows.iter().cloned().enumerate() {
            // Of the list that was measured, each row has its place in the plan.
            let planned = (rows.name == "points")
                .then(|| run.places.get(at))
                .flatten();
            let seq = planned.copied().unwrap_or(at);
            let values = fields(seq).into_iter().map(|(_, value)| value);
            own.rows.push(values.chain(row).collect());
        }
        match &mut all {
            None => all = Some(own),
            Some(all) if all.columns == own.columns => all.rows.extend(own.rows),
            Some(_) => {
                return Err(Failure::request(format!(
                    "run {} is of another kind than the runs before it; export it alone",
                    run.summary.id
                )));
            }
        }
    }
    all.ok_or_else(|| Failure::request("name a run"))
}

/// One window, or one latency that was seen.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Sample {
    /// The run.
    pub run_id: RunId,
    /// The figure's place in it.
    pub seq: usize,
    /// `window` or `latency`.
    pub kind: &'static str,
    /// Length of the window.
    pub window_ns: Option<f64>,
    /// Bandwidth in it.
    pub gbps: Option<f64>,
    /// Mean latency in it.
    pub mean_ns: Option<f64>,
    /// A latency.
    pub latency_ns: Option<f64>,
    /// How often it was seen.
    pub count: Option<u64>,
}

fn sample_rows(runs: &[StoredRun]) -> Result<Frame> {
    Ok(Frame::of("samples", &samples(runs)?))
}

/// One row for each window, and one for each latency that was seen.
///
/// # Errors
/// A run is of no points.
pub fn samples(runs: &[StoredRun]) -> Result<Vec<Sample>> {
    let mut rows = Vec::new();
    for run in runs {
        let document = stored::bench_document(run)?;
        let figures = document.points.iter().zip(&run.places).zip(&run.records);
        for ((point, &seq), record) in figures {
            let record = Record::deserialize(record)
                .map_err(|error| anyhow::Error::new(error).context("cannot read the samples"))?;
            let sample = |kind| Sample {
                run_id: run.summary.id,
                seq,
                kind,
                window_ns: None,
                gbps: None,
                mean_ns: None,
                latency_ns: None,
                count: None,
            };
            let is_bandwidth = point.gbps.is_some();
            rows.extend(record.samples.iter().map(|&(window, figure)| Sample {
                window_ns: Some(window.get()),
                gbps: is_bandwidth.then_some(figure),
                mean_ns: (!is_bandwidth).then_some(figure),
                ..sample("window")
            }));
            rows.extend(record.latency.iter().map(|&(latency, count)| Sample {
                latency_ns: Some(latency.get()),
                count: Some(count),
                ..sample("latency")
            }));
        }
    }
    Ok(rows)
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
