//! `weir bench`: characterises a machine. Its experiments are [`POINT_STUDIES`].

pub mod dax;
mod file;

use std::fmt;
use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{ArgMatches, Args as _, Command, FromArgMatches, Subcommand};
use weir_lab::stream::Stream;
use weir_lab::studies::{Entry, POINT_STUDIES};
use weir_lab::study::measure;
use weir_lab::{AnyStudy, Lab, LabError, PointStudy, Points, Study};
use weir_model::document::{Document, Point};
use weir_model::machine::MachineKind;

use crate::context::{Context, Format};
use crate::driver::{Done, Job};
use crate::failure::{Failure, Result};
use crate::machine::{self, Chosen};
use crate::output::{point_rows, print, print_text, to_json};
use crate::render::csv;
use crate::studies;

use dax::DaxArgs;
use file::Earlier;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench all --quick
  weir bench latency --quick
  weir bench bandwidth --on emr2s+cxl-a --op ld,nt_st --threads 1..32
  weir bench --file sweep.toml")]
pub struct Args {
    /// Sweeps by name from a file, in place of an experiment (docs/sweeps.md).
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Measure only what an earlier run of the file lacks: this one, or the newest.
    #[arg(long, value_name = "RUN", num_args = 0..=1, requires = "file")]
    resume: Option<Option<String>>,
    /// Start a sweep of very many figures without a question.
    #[arg(long, global = true)]
    yes: bool,
    /// How often each figure is measured, others in between [default: 5 on a
    /// real machine, 1 on a model].
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    #[command(subcommand)]
    what: Option<Picked>,
}

/// The study that was named, with its arguments.
pub struct Picked {
    study: Box<dyn AnyStudy>,
    /// STREAM in a file.
    dax: Option<(DaxArgs, Stream)>,
}

impl fmt::Debug for Picked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.study.verb())
    }
}

/// The command of a study, with what Weir adds to it.
fn command_of(entry: &Entry) -> Command {
    let command = (entry.command)();
    match command.get_name() == Stream::NAME {
        true => {
            // What is added has words of its own, which are not those of the command.
            let about = Resettable::from(command.get_about().cloned());
            let long = Resettable::from(command.get_long_about().cloned());
            (DaxArgs::augment_args(command).about(about)).long_about(long)
        }
        false => command,
    }
}

impl Study for Picked {
    const VERB: &'static str = "bench";
    type Output = Points;

    fn run(&self, lab: &Lab<'_>) -> std::result::Result<Points, LabError> {
        measure(self.study.as_ref(), lab)
    }
}

impl FromArgMatches for Picked {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let (name, own) = matches.subcommand().unwrap_or(("", matches));
        let mut known = POINT_STUDIES.iter();
        match known.find(|entry| (entry.command)().get_name() == name) {
            Some(entry) => {
                let dax = match name == Stream::NAME {
                    true => Some((
                        DaxArgs::from_arg_matches(own)?,
                        Stream::from_arg_matches(own)?,
                    )),
                    false => None,
                };
                let study = (entry.parse)(own)?;
                Ok(Self { study, dax })
            }
            None => Err(clap::Error::new(clap::error::ErrorKind::InvalidSubcommand)),
        }
    }

    fn update_from_arg_matches(
        &mut self,
        matches: &ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Picked {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(POINT_STUDIES.iter().map(command_of))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        POINT_STUDIES
            .iter()
            .any(|entry| (entry.command)().get_name() == name)
    }
}

/// Repetitions on a real machine: enough to see that they disagree.
const ROUNDS_ON_HOST: u32 = 5;

impl Args {
    fn job<'a>(&self, context: &'a Context, chosen: &'a Chosen, verb: &'a str) -> Job<'a> {
        let usual = match chosen.identity.kind {
            MachineKind::Host => ROUNDS_ON_HOST,
            // A model repeats itself.
            MachineKind::Sim => 1,
        };
        Job {
            context,
            chosen,
            verb,
            rounds: self.repeat.unwrap_or(usual),
            yes: self.yes,
            warnings: Vec::new(),
        }
    }
}

/// What is said of figures that are less exact than was asked for.
fn inexact(points: &[Point], error: f64) -> Option<String> {
    let reached = points.iter().filter_map(|point| {
        let figure = match (point.gbps, &point.ns) {
            (Some(gbps), _) => gbps.get(),
            (None, Some(ns)) => ns.mean.get(),
            (None, None) => return None,
        };
        Some(point.ci95? / figure)
    });
    let missed: Vec<f64> = reached.filter(|&reached| reached > error).collect();
    let largest = missed.iter().copied().reduce(f64::max)?;
    Some(format!(
        "{} of {} figures did not reach an error of {:.3} %; the largest is {:.3} %",
        missed.len(),
        points.len(),
        error * 100.0,
        largest * 100.0
    ))
}

/// Measures, keeps and prints.
///
/// # Errors
/// The request fits no machine, a figure could not be taken or kept, or the sweep was stopped.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    match (&args.what, &args.file) {
        (Some(study), None) => {
            if let Some((dax, stream)) = &study.dax
                && let Some(path) = &dax.dax
            {
                return dax::run(dax, path, stream, context);
            }
            let chosen = machine::choose_within(&context.global.on, context.global.error)?;
            let done = args.job(context, &chosen, study.study.verb()).run(study)?;
            show(context, &done)?;
            let inexact = (context.global.error)
                .and_then(|error| inexact(&done.document.output.points, error));
            done.verdict()?;
            inexact.map_or(Ok(()), |text| Err(Failure::work(text)))
        }
        (None, Some(_)) if context.global.error.is_some() => Err(Failure::request(
            "--error is of one experiment; a file of sweeps says itself what is measured",
        )),
        (None, Some(path)) => {
            let earlier = match &args.resume {
                None => Earlier::Leave,
                Some(run) => Earlier::Resume(run.as_deref()),
            };
            file::run(path, earlier, args, context)
        }
        (Some(_), Some(_)) => Err(Failure::request(
            "--file names its experiments itself; leave the experiment or the file out",
        )),
        (None, None) => Err(Failure::request(
            "name an experiment, such as `weir bench latency`, or a file of sweeps with --file; see `weir bench --help`",
        )),
    }
}

/// Prints what was measured on several machines: one document for one, a list for more.
fn show_all(context: &Context, done: &[Done<Points>]) -> Result<()> {
    if let [one] = done {
        return show(context, one);
    }
    match context.global.format {
        Format::Json => print(&to_json(
            &done.iter().map(|d| &d.document).collect::<Vec<_>>(),
        )?),
        Format::Csv => print(&documents_csv(done.iter().map(|d| &d.document))?),
        Format::Table => {
            for (at, done) in done.iter().enumerate() {
                let gap = if at == 0 { "" } else { "\n" };
                print_text(&format!(
                    "{gap}On {}\n\n",
                    done.document.header.machine.name
                ))?;
                show(context, done)?;
            }
            Ok(())
        }
    }
}

/// Figures of several machines under one head.
///
/// # Errors
/// A value cannot be written.
pub fn documents_csv<'d>(documents: impl Iterator<Item = &'d Document<Points>>) -> Result<String> {
    let mut all = point_rows("", &[]);
    for document in documents {
        let name = &document.header.machine.name;
        all.rows
            .extend(point_rows(name, &document.output.points).rows);
    }
    csv::to_csv(&all)
}

/// Prints what was measured.
///
/// # Errors
/// Standard output cannot be written to.
pub fn show(context: &Context, done: &Done<Points>) -> Result<()> {
    studies::show(context, &done.document, Some(done.run))
}
