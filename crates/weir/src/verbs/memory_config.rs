//! `weir platforms import`: a platform file with the memory of another simulator's configuration.

use std::path::PathBuf;

use weir_lab::import::config;
use weir_model::platform::{Library, name_of_file};
use weir_model::toml::MOST_BYTES;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::{files, machine};

/// A `config.json` of a machine with many cores has several MiB.
const MOST: usize = 64 * MOST_BYTES;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir platforms import example_config.yaml --base skx2s -o ours.toml
  weir platforms import m5out/config.ini --base skx2s -o ours.toml
  weir bench bandwidth --on ./ours.toml

Speed grade, channels, ranks, capacity and queues are taken over, each with its
line; all else is that of the base. A configuration has no latency and no
bandwidth that is measured: these are the base's, marked as assumed. Values
that have no key are listed at the end of the file.")]
pub struct Args {
    /// A configuration of Ramulator 2 (YAML) or gem5 (config.ini, config.json).
    #[arg(value_name = "FILE")]
    config: PathBuf,
    /// A server that is alike, for all that is not memory.
    #[arg(long, value_name = "PLATFORM")]
    base: String,
    /// The file to write; its name is that of the machine.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

/// Reads, checks and writes.
///
/// # Errors
/// The configuration has mistakes or memory that the model has not, or the file cannot be written.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let output = args.output.display().to_string();
    let name =
        name_of_file(&output).map_err(|why| Failure::request(format!("-o {output}: {why}")))?;
    files::check(&args.output)?;
    let (library, base) = machine::compose_named(&args.base, "--base")?;
    let file = args.config.display().to_string();
    let text = files::text(&args.config, "configuration", MOST)?;
    let wrong = |error: weir_lab::import::ImportError| Failure::Request(error.into());
    let memory = config::read(&file, &text).map_err(wrong)?;
    let text = memory
        .platform(&library, &base, name, &file)
        .map_err(wrong)?;
    Library::builtin()
        .check(&output, &text)
        .map_err(|mistakes| Failure::request(mistakes.to_string()))?;
    files::write(&args.output, text)?;
    context.note(&format!(
        "{output} is written with {} x {} of {}; values without a key, listed in it: {}",
        memory.channels.0,
        memory.media.0.name(),
        memory.tool,
        memory.unmapped.len()
    ));
    Ok(())
}
