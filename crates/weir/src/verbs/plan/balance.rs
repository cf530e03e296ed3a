//! `weir plan balance`: the documents of the two predictors, and how the errors that are allowed are shared out between them.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use weir_lab::Outcome;
use weir_model::counter_file::MOST_BYTES;
use weir_model::document::Document;
use weir_plan::cost::percent;
use weir_plan::predict::balance::balance;
use weir_plan::predict::insensitive::InsensitivePlan;
use weir_plan::predict::untouched::UntouchedPlan;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::files;
use crate::keeping;
use crate::studies::PLAN_BALANCE;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Solves Pond's Equation 1 on two measured curves: programs marked by false
positives, and untouched memory by over-predictions.

Examples:
  weir plan insensitive --on skx2s --tier remote --format json > programs.json
  weir plan untouched --trace cluster.csv --format json > memory.json
  weir plan balance --programs programs.json --memory memory.json --tail 98%")]
pub(super) struct Args {
    /// The document of `weir plan insensitive --format json`.
    #[arg(long, value_name = "FILE")]
    programs: PathBuf,
    /// The document of `weir plan untouched --format json`.
    #[arg(long, value_name = "FILE")]
    memory: PathBuf,
    /// The machine of the programs, where the document has several [default: its first].
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// VMs that must not be slowed by more than the margin.
    #[arg(long, value_name = "PERCENT", default_value = "98%", value_parser = percent)]
    tail: f64,
}

/// Solves, keeps and prints.
///
/// # Errors
/// A file is no such document, or the tail is no percentage.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    let programs: InsensitivePlan = read(&args.programs)?;
    let memory: UntouchedPlan = read(&args.memory)?;
    let tail_pct = 100.0 * args.tail;
    keeping::found(
        context,
        PLAN_BALANCE,
        balance(&programs, &memory, args.machine.as_deref(), tail_pct)?,
    )
}

/// What every document has.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

fn read<O: Outcome>(file: &Path) -> Result<O> {
    let text = files::text(file, "document", MOST_BYTES)?;
    let read = || -> anyhow::Result<O> {
        let Head { schema } = serde_json::from_str(&text)?;
        anyhow::ensure!(schema == O::SCHEMA, "its schema is `{schema}`");
        let document: Document<O> = serde_json::from_str(&text)?;
        Ok(document.output)
    };
    read()
        .with_context(|| format!("{} is no document of {}", file.display(), O::SCHEMA))
        .map_err(Failure::Request)
}
