//! `weir report`: runs as one page.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use weir_model::document::BenchDocument;

use super::runs::{bench_document, load};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::report::{Section, page};
use crate::store::{Store, StoredRun};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir report                         the newest run that has figures
  weir report 3 4 -o compare.html     two runs side by side
  weir report host emr2s+cxl-a        the newest run on each machine")]
pub struct Args {
    /// Numbers, `last`, or beginnings of machines' names [default: the newest bench].
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// The page; `-` for standard output.
    #[arg(long, short, value_name = "FILE", default_value = "weir-report.html")]
    output: PathBuf,
}

/// Writes the page.
///
/// # Errors
/// A run is not in the store or has no figures to draw, or the file cannot be written.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let path = context.store_path()?;
    let store = Store::open_existing(&path)?;
    let names = if args.runs.is_empty() {
        vec![newest_bench(store.as_ref())?]
    } else {
        args.runs.clone()
    };
    let mut sections = Vec::new();
    for name in &names {
        sections.push(section(&load(store.as_ref(), &path, name)?)?);
    }
    write(&sections, &args.output)?;
    context.note(&format!("wrote {}", args.output.display()));
    Ok(())
}

fn newest_bench(store: Option<&Store>) -> Result<String> {
    let runs = store.map(Store::list).transpose()?.unwrap_or_default();
    let drawn = |verb: &str| verb.starts_with("bench") || verb == "tour";
    let newest = runs.iter().find(|run| drawn(&run.verb) && run.kept > 0);
    // Where there is none, `last` fails with the reason.
    Ok(newest.map_or_else(|| "last".into(), |run| run.id.to_string()))
}

/// A stored run as a part of a page.
///
/// # Errors
/// It holds something that is not drawn.
pub fn section(run: &StoredRun) -> Result<Section> {
    let document: BenchDocument = bench_document(run)?;
    Ok(Section {
        run: run.summary.id,
        began: run.summary.started.clone(),
        verb: run.summary.verb.clone(),
        document,
    })
}

/// Writes sections as a page; `-` is standard output.
///
/// # Errors
/// The file cannot be written.
pub fn write(sections: &[Section], output: &PathBuf) -> Result<()> {
    let html = page(sections);
    if output.as_os_str() == "-" {
        return crate::output::print(&html);
    }
    fs::write(output, html)
        .with_context(|| format!("cannot write the report {}", output.display()))
        .map_err(Failure::Work)
}
