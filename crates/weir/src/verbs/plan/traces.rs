//! Traces that are read from files, or generated.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use weir_lab::Outcome;
use weir_model::document::Document;
use weir_model::stop;
use weir_model::toml::MOST_BYTES;
use weir_model::units::Bytes;
use weir_plan::cost::percent;
use weir_plan::pool::Traced;
use weir_plan::prices::Prices;
use weir_plan::trace::generate::{Generate, INSENSITIVE, MACHINE};
use weir_plan::trace::google;
use weir_plan::trace::problems::Problems;
use weir_plan::trace::read::{self, ReadError};
use weir_plan::trace::{Machine, Trace};
use weir_trace::decode::packed;

use super::{azure_packing, parquet};
use crate::context::Context;
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::files;
use crate::keeping::Keeping;
use crate::output::count;
use crate::source::{Source, packed_again};

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum As {
    /// Weir's columns.
    Own,
    /// The `vmtable` of the Azure VM traces of 2017 and 2019.
    AzureVm,
    /// The Azure packing trace of 2020.
    AzurePacking,
    /// `instance_events` of the Borg traces of Google of 2019.
    #[value(name = "google-2019")]
    Google2019,
}

/// The most clusters of one plan.
const MOST_CLUSTERS: i64 = 10_000;

/// Which clusters.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Traces")]
pub(super) struct Options {
    /// A trace of one cluster; several for several clusters. Without one, clusters are generated.
    #[arg(long = "trace", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How the files are written: own (CSV or Parquet), azure-vm, azure-packing, google-2019.
    #[arg(long = "as", value_enum, value_name = "FORMAT", default_value_t = As::Own, hide_possible_values = true)]
    written_as: As,
    /// The kind of machine of an Azure packing trace [default: the one that takes most types of VMs].
    #[arg(long, value_name = "ID")]
    machine_id: Option<i64>,
    /// Take VMs of low priority of an Azure packing or Google trace too.
    #[arg(long)]
    low_priority: bool,
    /// Size of a machine: cores and memory.
    #[arg(long, value_name = "CORES:SIZE", default_value = "96:472GiB", value_parser = machine)]
    pub(super) machine: Machine,
    /// Machines of a cluster.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(super) machines: u32,
    /// Generated clusters.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "files", value_parser = clap::value_parser!(u32).range(1..=MOST_CLUSTERS))]
    clusters: u32,
    /// Days of generated clusters.
    #[arg(
        long,
        value_name = "DAYS",
        default_value_t = 75.0,
        conflicts_with = "files"
    )]
    days: f64,
    /// Day on which the workloads of generated clusters shift.
    #[arg(
        long,
        value_name = "DAY",
        default_value_t = 36.0,
        conflicts_with = "files"
    )]
    shift_day: f64,
    /// VMs that the pool's latency slows by at most the margin, where a trace does not say; 43 % at 182 % of the local
    /// latency and a margin of 5 %, 37 % at 222 %.
    #[arg(long, value_name = "PERCENT", default_value = "43%", value_parser = percent)]
    insensitive: f64,
}

/// A machine such as `96:472GiB`.
fn machine(text: &str) -> std::result::Result<Machine, String> {
    let example = "such as 96:472GiB";
    let (cores, memory) = text
        .split_once(':')
        .ok_or_else(|| format!("it is cores and memory, {example}"))?;
    let cores: u32 = cores
        .trim()
        .parse()
        .map_err(|_| format!("`{cores}` is no number of cores, {example}"))?;
    let memory: Bytes = memory
        .parse()
        .map_err(|why| format!("{why}; a machine is {example}"))?;
    Machine::of(cores, memory).ok_or_else(|| format!("it has some cores and memory, {example}"))
}

impl Options {
    /// How many clusters there are.
    pub(super) fn count(&self) -> usize {
        match self.files.len() {
            0 => self.clusters as usize,
            files => files,
        }
    }

    /// A cluster, without unknown fields.
    ///
    /// # Errors
    /// Its file cannot be read, or a parameter is outside its bounds.
    pub(super) fn cluster(&self, at: usize, context: &Context) -> Result<Traced> {
        self.check()?;
        let seed = context.global.seed;
        let (name, (mut trace, problems), unit) = match self.files.get(at) {
            Some(file) => {
                let read = self.file(file)?;
                let unit = match self.written_as == As::AzurePacking || parquet::is(file) {
                    true => "row",
                    false => "line",
                };
                (file.display().to_string(), read, unit)
            }
            None => {
                let generate = Generate {
                    // Clusters of one seed are not those of the next.
                    seed: seed.wrapping_mul(1_000_003).wrapping_add(at as u64),
                    machines: self.machines,
                    days: self.days,
                    shift_day: self.shift_day,
                    insensitive: self.insensitive,
                };
                let name = format!("generated {}", at + 1);
                (name, generate.run()?.that_fit(self.machine), "VM")
            }
        };
        if trace.is_empty() {
            return Err(Failure::request(format!(
                "{name}: no VM fits into a machine of {}; name a larger one with --machine",
                self.machine.words()
            )));
        }
        Ok(Traced {
            problems: problems.counts(),
            name,
            drawn: trace.fill(seed, self.insensitive),
            trace,
            unit,
        })
    }

    /// Refuses what would change nothing, and a trace that is named twice.
    fn check(&self) -> Result<()> {
        let is_of = |option: &str, of: &str| {
            Err(Failure::request(format!(
                "{option} is of {of}, and would change nothing here; leave it out"
            )))
        };
        let written_as = self.written_as;
        if self.files.is_empty() && written_as != As::Own {
            return is_of("--as", "files that --trace names");
        }
        if self.machine_id.is_some() && written_as != As::AzurePacking {
            return is_of("--machine-id", "traces --as azure-packing");
        }
        if self.low_priority && !matches!(written_as, As::AzurePacking | As::Google2019) {
            return is_of("--low-priority", "traces --as azure-packing or google-2019");
        }
        let mut before = self.files.iter().enumerate();
        match before.find(|(at, file)| self.files[..*at].contains(file)) {
            Some((_, twice)) => Err(Failure::request(format!(
                "--trace {} is named twice; each is a cluster of its own",
                twice.display()
            ))),
            None => Ok(()),
        }
    }

    fn file(&self, file: &Path) -> Result<(Trace, Problems)> {
        if self.written_as == As::AzurePacking {
            let kind = (self.machine_id, self.low_priority);
            return azure_packing::read(file, self.machine, kind);
        }
        let name = file.display().to_string();
        if parquet::is(file) {
            return match self.written_as {
                As::Own => parquet::read(file, self.machine),
                _ => Err(Failure::request(format!(
                    "{name} is Parquet, which has the columns {}; leave --as out",
                    read::HEAD
                ))),
            };
        }
        let mut source = Source::open(file)?.giving_up();
        let mut from = BufReader::new(files::OfLines::new(&mut source));
        let head = from.fill_buf().map_err(anyhow::Error::new)?;
        if let Some(tool) = packed(head) {
            return Err(Failure::request(format!("{name}: {}", packed_again(tool))));
        }
        let read = match self.written_as {
            As::Google2019 => google::read(&name, self.machine, self.low_priority, from),
            As::AzureVm => read::read(&name, read::Format::AzureVm, self.machine, from),
            _ => read::read(&name, read::Format::Own, self.machine, from),
        };
        if stop::requested() {
            return Err(Failure::Partial(format!(
                "a stop was requested, and {name} was not read to its end"
            )));
        }
        let read = read.map_err(|error| match error {
            ReadError::Io { .. } => Failure::Work(error.into()),
            error => Failure::Request(error.into()),
        })?;
        // Only after the last line: until then what unpacks the file waits for a reader.
        match source.end()?.0 {
            Some(damaged) => Err(Failure::request(format!("{name}: {damaged}"))),
            None => Ok(read),
        }
    }
}

/// Keeps and prints what clusters say together; `figures` says what they are of, should the work have been stopped.
///
/// # Errors
/// It cannot be kept or printed, or the work was stopped.
pub(super) fn put<O: Outcome>(
    keeping: Keeping<'_>,
    context: &Context,
    clusters: &[Traced],
    output: O,
    figures: String,
) -> Result<()> {
    let stopped = context.stop.requested();
    let mut header = header(O::SCHEMA, context, "");
    header.partial = stopped;
    header.warnings = clusters.iter().flat_map(words).collect();
    keeping.put(Document { header, output }, None)?;
    match stopped {
        false => Ok(()),
        true => Err(Failure::Partial(format!("stopped: {figures}"))),
    }
}

/// The problems of a trace and what was drawn of it, in words.
pub(super) fn words(traced: &Traced) -> Vec<String> {
    let problems = traced.problems.iter();
    let words = problems.map(|row| format!("{}: {}", traced.name, row.words(traced.unit)));
    let drawn = (traced.drawn > 0).then(|| {
        format!(
            "{}: what {} touch, or whether the pool slows them, is not in the trace and is drawn from the published marginals",
            traced.name,
            count(traced.drawn, "VM")
        )
    });
    words.chain(drawn).collect()
}

/// What the generator assumes is what the options say.
const _: () =
    assert!(MACHINE.millicores == 96_000 && MACHINE.memory_mib == 472 << 10 && INSENSITIVE == 0.43);

/// The prices of a file, or those that come with Weir.
pub(super) fn prices(file: Option<&Path>) -> Result<Prices> {
    let read = match file {
        None => Prices::builtin(),
        Some(file) => {
            let text = files::text(file, "file of prices", MOST_BYTES)?;
            Prices::read(&file.display().to_string(), &text)
        }
    };
    read.map_err(|mistakes| Failure::request(mistakes.to_string()))
}
