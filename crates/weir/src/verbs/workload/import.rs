//! `weir workload import`: a description of a program from a trace of its accesses.

use std::path::{Path, PathBuf};

use weir_lab::Outcome as _;
use weir_model::document::Document;
use weir_model::platform::name_of_file;
use weir_model::workload::Workloads;
use weir_trace::Format;
use weir_trace::check::{Imported, check};
use weir_trace::describe::{Description as Described, Origin, describe};

use super::reading::{Read, Reading};
use crate::context::Context;
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::files;
use crate::keeping::Keeping;
use crate::output::print;
use crate::progress::Progress;
use crate::session::say;
use crate::source::Source;
use crate::studies::WORKLOAD_IMPORT;

/// Core cycles of an instruction that are assumed.
const CPI: f64 = 0.5;
/// Ends of names that say how a trace is kept and not what it is of.
const ENDS: [&str; 12] = [
    "gz",
    "xz",
    "zst",
    "bz2",
    "zip",
    "trace",
    "txt",
    "log",
    "champsim",
    "champsimtrace",
    "lackey",
    "out",
];

/// What a description needs besides a trace.
#[derive(Debug, Clone, clap::Args)]
pub struct Description {
    /// The description; without it NAME.toml here, which must not be there.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Core cycles of an instruction while everything hits L1, which no trace has.
    #[arg(long, value_name = "CYCLES", default_value_t = CPI, value_parser = cpi)]
    pub cpi: f64,
}

/// Core cycles within the bounds of the key.
fn cpi(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(cpi) if (0.1..=100.0).contains(&cpi) => Ok(cpi),
        _ => Err("it is from 0.1 to 100, such as 0.5".into()),
    }
}

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Formats, which are found from the content where --as does not name one:
  lackey      valgrind --tool=lackey --trace-mem=yes --log-file=FILE CMD
  champsim    64-byte records of ChampSim's tracers
  ramulator   LD/ST or R/W with an address, or BUBBLES LOAD [STORE]
  gem5        packet traces: protobuf, or the text of decode_packet_trace.py
  drmemtrace  DynamoRIO: records of 12 bytes, or what `view` prints

Files of gzip, xz, zstd, bzip2 and zip are unpacked by the tools of these names.

Examples:
  weir workload import sqlite.lackey -o sqlite.toml
  weir workload import 605.mcf_s-665B.champsimtrace.xz -o mcf.toml
  weir workload import huge.trace.zst --share 5% -o huge.toml
  xz -dc t.champsimtrace.xz | weir workload import - --as champsim -o t.toml

Exit codes: 2 for a trace that is not of its format, 3 where what unpacks it is
not installed, 1 where Ctrl-C ended it; then the description is of what was
read.")]
pub struct Args {
    /// A trace, or - for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Its format: lackey, champsim, ramulator, gem5, drmemtrace.
    #[arg(long = "as", value_name = "FORMAT", value_parser = format)]
    written_as: Option<Format>,
    /// Look at this share of the trace, in windows of 64 MiB at equal distances.
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = share)]
    share: f64,
    #[command(flatten)]
    description: Description,
}

fn format(text: &str) -> std::result::Result<Format, String> {
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    Format::named(text).ok_or_else(|| format!("it is one of {}", names.join(", ")))
}

/// A share of a trace.
pub(super) fn share(text: &str) -> std::result::Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|text| text.trim().parse::<f64>().ok());
    match number {
        Some(percent) if (0.01..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("it is from 0.01% to 100%, such as 5%".into()),
    }
}

/// The name of a workload from that of a file.
fn name_of(path: &Path) -> String {
    let file = path
        .file_name()
        .map_or("trace".into(), |name| name.to_string_lossy().to_lowercase());
    let mut name = file.as_str();
    while let Some((front, end)) = name.rsplit_once('.')
        && !front.is_empty()
        && ENDS.contains(&end)
    {
        name = front;
    }
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                c
            } else {
                '-'
            }
        })
        .collect();
    match plain.trim_matches('-') {
        "" => "trace".into(),
        plain => plain.to_owned(),
    }
}

impl Default for Description {
    fn default() -> Self {
        Self {
            out: None,
            cpi: CPI,
        }
    }
}

impl Description {
    /// The file, by default named after what is described.
    pub fn path(&self, of: &Path) -> PathBuf {
        let named = || PathBuf::from(format!("{}.toml", name_of(of)));
        self.out.clone().unwrap_or_else(named)
    }

    /// The file that is written, whose name is the workload's.
    ///
    /// # Errors
    /// It cannot be written, or would replace a file that was not named.
    pub fn file(&self, of: &Path) -> Result<PathBuf> {
        let file = self.path(of);
        if self.out.is_none() && file.exists() {
            return Err(Failure::request(format!(
                "{} is there already; name it with -o to replace it",
                file.display()
            )));
        }
        if let Err(why) = name_of_file(&file.display().to_string()) {
            return Err(Failure::request(format!(
                "{} cannot be the name of a workload: {why}",
                file.display()
            )));
        }
        files::check(&file)?;
        Ok(file)
    }
}

/// Reads a trace and describes its program.
///
/// # Errors
/// It is no trace, or the description cannot be written.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let name = match args.file.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => args.file.display().to_string(),
    };
    let keeping = Keeping::begin(context, WORKLOAD_IMPORT)?;
    let source = Source::open(&args.file)?;
    let file = args.description.file(&args.file)?;
    let reading = Reading {
        name: &name,
        format: args.written_as,
        share: args.share,
        context,
    };
    let read = reading.run(source)?;
    let partial = context.stop.requested();
    let of = match args.file.file_name() {
        Some(file) if args.file.as_os_str() != "-" => file.to_string_lossy().into_owned(),
        _ => name.clone(),
    };
    write(
        &read,
        &of,
        &file,
        &args.description,
        keeping,
        partial,
        context,
    )?;
    match partial {
        true => Err(Failure::Partial(format!(
            "stopped: {} is of what was read until then",
            file.display()
        ))),
        false => Ok(()),
    }
}

/// Describes what was read, compares the description with it, and writes and keeps both.
///
/// # Errors
/// There is nothing to describe, or something cannot be written.
pub fn write(
    read: &Read,
    of: &str,
    file: &Path,
    asked: &Description,
    keeping: Keeping<'_>,
    partial: bool,
    context: &Context,
) -> Result<()> {
    let path = file.display().to_string();
    let origin = Origin {
        name: name_of_file(&path).unwrap_or("trace").to_owned(),
        of: of.to_owned(),
        format: read.decoder.format(),
        has_instructions: read.decoder.has_instructions() && read.watch.instructions() > 0,
        has_dependences: read.decoder.has_dependences(),
        cpi: asked.cpi,
        mappings: read.mappings.clone(),
    };
    let described = |phases| {
        describe(&read.watch, &origin, phases)
            .map_err(|why| Failure::request(format!("{of}: {why}")))
    };
    let written = |description: &Described| {
        let text = description.workload.to_toml(&description.remarks);
        // The file has to be one that is read again.
        Workloads::check(&path, &text).map_err(|mistakes| Failure::work(mistakes.to_string()))?;
        files::write(file, &text).inspect_err(|_| {
            // A recording may have taken hours; that it cannot be printed either adds nothing to the error.
            drop(print(&text));
        })
    };
    let mut progress = Progress::percent("comparing", context.global.quiet);
    let mut compared = |description: &Described| {
        let found = check(
            &read.watch,
            description,
            &origin,
            read.looked_at,
            context.global.seed,
            |share| {
                progress.share(share);
                partial || !context.stop.requested()
            },
        );
        found.ok_or_else(|| {
            Failure::Partial(format!(
                "stopped: {path} is written and was not compared with the trace"
            ))
        })
    };
    let description = described(true)?;
    written(&description)?;
    let mut output = compared(&description)?;
    if description.workload.phases.len() > 1 && output.is_off() {
        // Phases do not say what one finds of another in caches.
        let whole = described(false)?;
        let of_whole = compared(&whole)?;
        if of_whole.off() < output.off() {
            written(&whole)?;
            output = of_whole;
        }
    }
    progress.end();
    let mut header = header(Imported::SCHEMA, context, "");
    header.partial = partial;
    header.warnings.clone_from(&read.warnings);
    keeping.put(Document { header, output }, None)?;
    if !context.global.quiet {
        say(&format!(
            "wrote {path}; `weir workload run {path} --on MACHINE` runs it"
        ));
    }
    Ok(())
}
