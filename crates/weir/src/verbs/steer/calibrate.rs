//! `weir steer calibrate`: measures the values of a machine that controllers need, and writes them to a file.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use weir_linux::{Root, topology};
use weir_model::units::{Bytes, Nanos};
use weir_steer::calibrate::{Measured, Value, calibrate, calibrate_host};
use weir_steer::config::Known;
use weir_steer::steered::Actuators;

use super::options::window;
use super::{clock, config_file};
use crate::context::{Context, Format};
use crate::failure::{Failure, Result};
use crate::machine::{self, HOST};
use crate::output::print;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir steer calibrate --out /etc/weir/machine.toml
  weir steer calibrate --config /etc/weir/steer.toml
  weir steer calibrate --on miku-a

Threads of its own run on the first socket, some seconds in all; nothing else
should. The file is named in a configuration by `from` of [machine].")]
pub struct Args {
    /// The output file [default: standard output].
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    out: Option<PathBuf>,
    /// Write to the file that this configuration names.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How long each point is observed.
    #[arg(long, value_name = "TIME", default_value = "250 ms", value_parser = window)]
    window: Nanos,
    /// On this host: memory of each thread [default: four times the last-level cache].
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
}

/// A working set of this many last-level caches is not cached for a thread.
const CACHES: u64 = 4;

/// Measures and writes.
///
/// # Errors
/// The request was wrong, the machine cannot be measured, or the file cannot be written.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    if context.global.format != Format::Table {
        return Err(Failure::request(
            "the result is a TOML file for a configuration; remove --format",
        ));
    }
    let out = match &args.config {
        Some(config) => Some(config_file::names_machine(config)?),
        None => args.out.clone(),
    };
    let known = match context.global.on == HOST {
        true => host(args, context)?,
        false => model(args, context)?,
    };
    let text = known.to_toml();
    match out {
        None => print(&text),
        Some(path) => {
            let message = || format!("cannot write {}", path.display());
            write(&path, &text)
                .with_context(message)
                .map_err(Failure::Work)
        }
    }
}

/// A model has counters, and its tenants can be limited.
fn model(args: &Args, context: &Context) -> Result<Known> {
    let chosen = machine::choose_sampled(&context.global.on, context.global.error)?;
    let step = Actuators::of_model(&chosen.topology).allocation;
    let testbed = chosen.testbed.as_ref();
    let calibration = calibrate(testbed, context.global.seed, args.window, step, &Value::ALL)?;
    Ok(Known::of(
        &calibration,
        chosen.identity.digest,
        clock::now(),
    ))
}

fn host(args: &Args, context: &Context) -> Result<Known> {
    let chosen = machine::choose(HOST)?;
    let memory = chosen
        .topology
        .tiers
        .iter()
        .filter(|tier| tier.node.is_some());
    if memory.count() < 2 {
        return Err(Failure::Missing(anyhow::anyhow!(
            "this host has one tier of memory; steer needs a slow one to be calibrated for"
        )));
    }
    let caches = chosen.topology.last_level_cache().get() * CACHES;
    let mut message = |what: &str| context.note(&format!("measuring {what}"));
    let Measured {
        calibration,
        slow,
        counted,
    } = calibrate_host(
        chosen.testbed.as_ref(),
        context.global.seed,
        args.window,
        args.size.unwrap_or(Bytes(caches)),
        &mut message,
    )?;
    if !counted {
        context.note(
            "the Table of Requests is not counted here: loads were timed, which take longer than they stay \
             in it by the way to it",
        );
    }
    match slow {
        Some(tier) if calibration.knees.is_empty() => context.note(&format!(
            "no knee of {tier} was found: one thread fills its queue, or there are no more cores"
        )),
        Some(tier) => context.note(&format!("{tier} is the slow tier")),
        None => context.note("this host has only one tier; a slow one was not measured"),
    }
    let view = topology::discover(&Root::live());
    let known = Known::of(&calibration, topology::digest(&view, None), clock::now());
    Ok(known)
}

/// The whole file or nothing.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)
}
