//! `weir platforms fit`: a machine's file from what was measured on it.

mod source;

use std::path::{Path, PathBuf};

use weir_lab::Study as _;
use weir_lab::fit::{Fit, Fitted, Twin};
use weir_model::machine::Testbed;
use weir_model::platform::{Library, Platform};
use weir_model::published::mlc_output::MlcOptions;
use weir_model::topology::TierName;
use weir_model::units::Gigahertz;
use weir_sim::SimTestbed;

use self::source::{Known, Said};
use crate::context::Context;
use crate::driver::Job;
use crate::failure::{Failure, Result};
use crate::files;
use crate::machine::{self, Chosen};
use crate::shown::show;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench all && weir platforms fit last -o my-server.toml \\
      --set core.microarchitecture=zen4 --set dram.media=ddr5-4800 \\
      --set dram.channels=12
  weir platforms fit mlc-w0.txt mlc-w5.txt --base spr2s --tier dram \\
      -o my-server.toml
  weir platforms fit curves.csv --base spr8480 -o my-server.toml
  weir bench loaded --on ./my-server.toml

What the figures identify is measured or solved for, each value with its source;
the rest is assumed, with a range and the reason. Mixes of reads and writes and
every other point are not used, and are compared with the model at the end.
A machine with CXL devices becomes several files, which belong together.")]
pub struct Args {
    /// Runs of `weir bench` (a number, `last`, the beginning of a machine's name), or files: exports of runs, Intel
    /// MLC's loaded latency, Mess curves.
    #[arg(required = true, value_name = "RUN|FILE")]
    from: Vec<String>,
    /// The file to write; its name is that of the machine.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// A machine that is alike, for all that no figure says [default: the topology in the run].
    #[arg(long, value_name = "PLATFORM")]
    base: Option<String>,
    /// A value that is known otherwise; cxl0.KEY for a device.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The tier that a log is of, or the curves of a name in it: cxl0, NAME=cxl0.
    #[arg(long = "tier", value_delimiter = ',', value_name = "[NAME=]TIER")]
    tiers: Vec<String>,
    /// Loading threads of an MLC output whose command line does not say them.
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Traffic of an MLC output, as its -W, where its command line does not say it.
    #[arg(long, value_name = "W")]
    traffic: Option<u32>,
    /// Clock of the core whose cycles a Mess log counts [default: the base's].
    #[arg(long, value_name = "FREQUENCY")]
    clock: Option<Gigahertz>,
    /// Only take measured values over; solve for none.
    #[arg(long)]
    quick: bool,
}

/// Fits, writes the files, keeps and prints what was found.
///
/// # Errors
/// An input has mistakes or says too little, or a file cannot be written.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let name = name_of(&args.output)?;
    files::check(&args.output)?;
    let base = args
        .base
        .as_deref()
        .map(|base| machine::compose_named(base, "--base"))
        .transpose()?;
    let said = Said {
        tiers: args.tiers.iter().map(|text| tier(text)).collect(),
        mlc: MlcOptions {
            traffic: args.traffic,
            threads: args.threads,
        },
        clock: args
            .clock
            .or_else(|| Some(base.as_ref()?.1.host.core.clock.value)),
    };
    let mut known = Known::default();
    for from in &args.from {
        known.read(from, &said, context)?;
    }
    let known = known.settle(&said, base.as_ref().map(|(_, platform)| platform))?;
    let (library, twin) = start(args, base, &known, &name)?;
    let study = Fit {
        library,
        twin,
        evidence: known.evidence,
        given: args.set.clone(),
        quick: args.quick,
        open,
    };
    let mut chosen = Chosen::of_models();
    chosen.identity.name.clone_from(&name);
    let done = Job::once(context, &chosen, Fit::VERB).run(&study)?;
    write(&args.output, &done.document.output)?;
    show(context, &done.document, done.kept_in())?;
    let path = args.output.display();
    context.note(&format!(
        "{path} is written; `weir bench loaded --on {}` asks it",
        as_path(&args.output)
    ));
    done.verdict()
}

/// The files before anything is fitted: those of the base, or what the machine says of itself.
fn start(
    args: &Args,
    base: Option<(Library, Platform)>,
    known: &Known,
    name: &str,
) -> Result<(Library, Twin)> {
    if let Some((library, platform)) = base {
        let twin =
            Twin::based_on(&library, &platform, name).map_err(|e| Failure::Request(e.into()))?;
        return Ok((library, twin));
    }
    let Some(topology) = &known.topology else {
        return Err(Failure::request(format!(
            "{} says nothing of its machine; add --base PLATFORM, one that is alike",
            known.evidence.from
        )));
    };
    let library = Library::builtin();
    let core = args
        .set
        .iter()
        .find_map(|text| text.strip_prefix("core.microarchitecture="));
    let twin = Twin::of_topology(&library, topology, &known.evidence.from, name, core);
    Ok((library, twin))
}

fn open(platform: &Platform) -> std::result::Result<Box<dyn Testbed>, String> {
    match SimTestbed::new(platform) {
        Ok(testbed) => Ok(Box::new(testbed)),
        Err(error) => Err(format!(
            "the model cannot be built: {error}; correct values with --set"
        )),
    }
}

fn tier(text: &str) -> (String, TierName) {
    match text.split_once('=') {
        Some((name, tier)) => (name.into(), TierName::named(tier)),
        None => (String::new(), TierName::named(text)),
    }
}

/// The name of the machine, from that of its file.
fn name_of(output: &Path) -> Result<String> {
    let name = output.file_name().and_then(|name| name.to_str());
    let stem = name.and_then(|name| name.strip_suffix(".toml"));
    let stem = stem.filter(|stem| !stem.is_empty());
    stem.map(str::to_owned).ok_or_else(|| {
        Failure::request(format!(
            "-o {}: a platform file ends in .toml, and the name before it is the machine's",
            output.display()
        ))
    })
}

/// A path that an expression takes for one.
fn as_path(output: &Path) -> String {
    let text = output.display().to_string();
    match text.contains('/') {
        true => text,
        false => format!("./{text}"),
    }
}

fn write(output: &Path, fitted: &Fitted) -> Result<()> {
    for (n, file) in fitted.files.iter().enumerate() {
        match n {
            0 => files::write(output, &file.text)?,
            _ => files::write(
                &output.with_file_name(format!("{}.toml", file.name)),
                &file.text,
            )?,
        }
    }
    Ok(())
}
