//! `weir runs import`: a run of what another tool wrote.

use std::path::PathBuf;
use std::time::Instant;

use weir_lab::import::{self, Found, Hints, Kind, Readings, Source};
use weir_lab::{Outcome as _, Points};
use weir_model::document::{BenchDocument, Document, Header, Point};
use weir_model::machine::{Identity, MachineKind};
use weir_model::topology::TierName;
use weir_model::units::Gigahertz;

use crate::context::Context;
use crate::driver::header;
use crate::driver::new_run;
use crate::failure::{Failure, Result};
use crate::keeping::Keeping;
use crate::session::say;
use crate::shown::show;
use crate::store::{Figure, RunState, Store};
use crate::studies::RUNS_IMPORT;
use crate::{files, session};

/// Files are at most this long.
const MOST_BYTES: usize = 16 << 20;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir runs import mlc.txt --tier 1=remote,2=cxl0
  weir runs import pcm.csv
  weir runs import local.csv --cpu spr && weir explain --counters last
  weir runs import curves/bwlat_*.txt --clock 2.1GHz --tier cxl0
  weir runs import out.txt --as stream --threads 24

Figures that a bench of ours measures become its figures: `runs compare`,
`report`, `platforms fit` and `accept --baseline` take them. Each keeps its
file and line. Lines that are not understood are counted and shown.
docs/import.md has what is read of each tool.")]
pub struct Args {
    /// Files of one tool.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The tool: mlc, perf-stat, pcm, stream, streamer, ocp-cms, mess [default: found from the text].
    #[arg(long = "as", value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
    /// The tier of all figures, or of a NUMA node: cxl0, 2=cxl0.
    #[arg(long = "tier", value_delimiter = ',', value_name = "[NODE=]TIER")]
    tiers: Vec<String>,
    /// Threads, where a file does not say them.
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Traffic of MLC's loaded latency, as its -W, where its command line does not say it.
    #[arg(long, value_name = "W")]
    traffic: Option<u32>,
    /// Clock of the cycles that curves of Mess count.
    #[arg(long, value_name = "FREQUENCY")]
    clock: Option<Gigahertz>,
    /// Share of reads of a curve of Mess, where the name of its file does not say it.
    #[arg(long, value_name = "PERCENT")]
    reads: Option<u32>,
    /// The microarchitecture whose events were counted: spr, zen4.
    #[arg(long, value_name = "NAME")]
    cpu: Option<String>,
    /// The machine's name in the list of runs [default: the name of the first file].
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
}

fn kind(text: &str) -> std::result::Result<Kind, String> {
    Kind::named(text).ok_or_else(|| format!("no tool is called `{text}`; there are {}", kinds()))
}

fn kinds() -> String {
    Kind::ALL.map(Kind::name).join(", ")
}

/// Reads, keeps and prints.
///
/// # Errors
/// A file has an invalid value or nothing that is known, or the store does not take the run.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let began = Instant::now();
    let hints = Hints {
        tiers: args.tiers.iter().map(|text| tier(text)).collect(),
        threads: args.threads,
        traffic: args.traffic,
        clock: args.clock,
        reads: args.reads,
        cpu: args.cpu.clone(),
    };
    let mut all: Vec<(String, Found)> = Vec::new();
    let mut first: Option<Kind> = args.kind;
    for path in &args.files {
        let name = path.display().to_string();
        let text = files::text(path, "file of another tool", MOST_BYTES)?;
        let kind = first.or_else(|| import::kind_of(&name, &text));
        let kind = kind.ok_or_else(|| {
            Failure::request(format!(
                "{name}: which tool wrote this is not clear; say it with --as: {}",
                kinds()
            ))
        })?;
        first = Some(kind);
        let found = import::read(kind, &name, &text, &hints);
        all.push((name, found.map_err(|error| Failure::Request(error.into()))?));
    }
    let counted = all.iter().filter(|(_, found)| found.counters.is_some());
    if counted.count() > 1 {
        return Err(Failure::request(
            "files of perf stat are runs of their own; import them one by one",
        ));
    }
    let kind = first.unwrap_or_default();
    let stem = args.files.first().and_then(|path| path.file_stem());
    let machine = (args.machine.clone()).or_else(|| Some(stem?.to_string_lossy().into_owned()));
    let machine = machine.unwrap_or_else(|| kind.name().into());
    let warnings = all.iter().flat_map(|(_, found)| found.left.warnings());
    let mut head = header(BenchDocument::SCHEMA, context, "");
    head.warnings = warnings.collect();
    head.machine = Identity {
        kind: MachineKind::Host,
        digest: format!("imported {machine}"),
        name: machine,
    };
    let verb = format!("import {}", kind.name());
    let points: Vec<Point> = (all.iter_mut())
        .flat_map(|(_, found)| std::mem::take(&mut found.points))
        .collect();
    match points.is_empty() {
        false => keep(context, &verb, head, points, began),
        true => {
            head.schema = Readings::SCHEMA.into();
            let output = readings(all);
            Keeping::begin(context, RUNS_IMPORT)?.put(
                Document {
                    header: head,
                    output,
                },
                None,
            )
        }
    }
}

fn tier(text: &str) -> (String, TierName) {
    match text.split_once('=') {
        Some((node, tier)) => (
            node.trim_start_matches("node").into(),
            TierName::named(tier),
        ),
        None => (String::new(), TierName::named(text)),
    }
}

fn readings(all: Vec<(String, Found)>) -> Readings {
    let mut output = Readings {
        readings: Vec::new(),
        sources: Vec::new(),
        counters: None,
    };
    for (file, found) in all {
        output.sources.push(Source {
            file,
            tool: found.tool,
            not_understood: found.left.lines,
        });
        output.readings.extend(found.readings);
        output.counters = output.counters.or(found.counters);
    }
    output
}

/// Keeps figures of benches, and prints them.
fn keep(
    context: &Context,
    verb: &str,
    mut header: Header,
    points: Vec<Point>,
    began: Instant,
) -> Result<()> {
    header.topology = import::topology(&points);
    header.elapsed_s = began.elapsed().as_secs_f64();
    for warning in &header.warnings {
        say(&format!("weir: warning: {warning}"));
    }
    let mut store = Store::open(&context.store_path()?)?;
    let run = store.begin(&new_run(context, verb, &header, points.len())?)?;
    session::is_of(run);
    let figures: Vec<Figure<'_, Point, ()>> = (points.iter().enumerate())
        .map(|(seq, body)| Figure {
            seq,
            body,
            record: None,
            warnings: &[],
            elapsed_s: header.elapsed_s,
            address: None,
        })
        .collect();
    store.add_all(run, &figures)?;
    store.finish(run, RunState::Done, header.elapsed_s, &header.warnings)?;
    let output = Points::of(points);
    show(context, &Document { header, output }, Some(run))
}
